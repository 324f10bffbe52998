import { hasOption, listOperands } from "./options.ts";

/** Reach other machines, or services that act on them, whatever they are given. */
const REMOTE = new Set(
  (
    "curl wget aria2c http https httpie xh lynx links elinks w3m ping ping6 traceroute tracepath mtr nmap ssh ssh-copy-id sshfs sshpass scp sftp " +
    "mosh rsync rclone nc ncat netcat socat telnet ftp lftp dig nslookup host whois mail mailx sendmail mutt gh glab " +
    "hub aws gcloud gsutil s3cmd az kubectl helm terraform tofu pulumi ansible ansible-playbook cdk sls serverless eb " +
    "docker docker-compose podman nerdctl skopeo heroku vercel netlify fly flyctl doctl wrangler firebase supabase ngrok " +
    "cloudflared tailscale psql pg_dump mysql mysqldump redis-cli mongosh mongo apt apt-get aptitude brew dnf yum apk " +
    "pacman zypper emerge snap flatpak winget choco scoop nix-env nix-shell guix svn cvs pipx twine npx pnpx bunx uvx " +
    "cpan cpanm nvm fnm volta corepack ollama hf huggingface-cli claude codex gyre " +
    "grpcurl websocat yt-dlp youtube-dl axel smbclient ntpdate ssh-keyscan vagrant minikube k3d skaffold eksctl istioctl argocd " +
    "kubectx kubens oc etcdctl nomad consul vault sentry-cli datadog-ci sonar-scanner codecov snyk trivy cosign oras crictl restic " +
    "pg_restore pg_dumpall createdb pg_isready mongodump mongorestore sqlcmd cqlsh clickhouse-client stripe twilio eas fastlane " +
    "lftpget amplify railway localtunnel gh-pages surge"
  ).split(" "),
);

/** Which of a program's own commands reach the network. */
const REMOTE_COMMANDS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    git: "clone fetch pull push ls-remote lfs send-email request-pull svn p4 fetch-pack send-pack http-fetch http-push remote-http remote-https imap-send instaweb daemon cvsimport",
    hg: "clone pull push incoming outgoing",
    jj: "git",
    npm: "install i in ins inst insta instal isnt isntall add ci clean-install ic install-clean update up upgrade udpate outdated view v info show search s se find publish unpublish deprecate undeprecate audit login logout adduser add-user whoami exec x create init innit dist-tag dist-tags owner author access ping fund install-test it install-ci-test cit star stars unstar token team org hook hooks profile dedupe ddp find-dupes link ln doctor docs repo bugs issues home pack rebuild rb ci diff sbom",
    pnpm: "install i add update up upgrade outdated view info publish audit dlx create import fetch login env self-update deploy install-test it link ln dedupe rebuild",
    yarn: "install add upgrade up outdated info publish audit dlx create npm login global import policies set plugin dedupe",
    bun: "install i add update upgrade outdated publish audit x create pm c a",
    deno: "add install upgrade publish outdated i jupyter",
    pip: "install download search index wheel lock",
    pip3: "install download search index wheel lock",
    pipenv: "install sync update lock upgrade",
    uv: "add sync pip tool lock publish self python remove",
    poetry: "add install update publish lock search self sync",
    pdm: "add install update publish lock sync",
    hatch: "publish env",
    conda: "install create update search",
    mamba: "install create update search",
    cargo: "install add update publish fetch search login logout yank owner binstall",
    rustup: "update install target toolchain component self default",
    go: "get install mod",
    gem: "install update push fetch search",
    bundle: "install update add outdated",
    composer: "install require update create-project search remove",
    dotnet: "restore add nuget tool workload",
    nuget: "install restore push update",
    mvn: "deploy release:perform dependency:get dependency:resolve dependency:go-offline",
    mix: "deps.get deps.update hex.publish archive.install",
    stack: "update upgrade upload",
    cabal: "update install upload get fetch",
    opam: "install update upgrade",
    luarocks: "install upload download",
    sbt: "update publish",
    lein: "deps deploy",
    rebar3: "get-deps upgrade",
    pod: "install update repo",
    carthage: "update bootstrap",
    flutter: "pub upgrade",
    dart: "pub",
    nix: "build develop run shell flake profile",
    openssl: "s_client s_time",
    getent: "hosts ahosts ahostsv4 ahostsv6",
    playwright: "install",
    "pre-commit": "run install-hooks autoupdate try-repo hook-impl",
    bzr: "branch checkout co get clone pull push update up send merge missing info bind commit ci launchpad-login lp-login",
    mc: "alias cp mv mb rb rm ls cat head pipe share find mirror diff stat tree du put get undo watch sql event admin ping ready support od",
    pyenv: "install update",
    rbenv: "install",
    asdf: "install plugin update latest",
    mise: "install use upgrade",
    sdk: "install update",
    dvc: "pull push fetch get import",
    packer: "init build",
    sam: "deploy sync",
    prisma: "db migrate",
    sentry: "releases",
  }).map(([program, commands]) => [program, new Set(commands.split(" "))]),
);

/** Which of their commands stay on this machine. */
const LOCAL_COMMANDS: ReadonlyMap<string, RegExp> = new Map([
  ...["terraform", "tofu"].map((name): [string, RegExp] => [name, /^(?:fmt|validate|version)$/]),
  ["helm", /^(?:lint|template|version)$/],
]);

/** Programs that take the commands of another one. */
const SAME_COMMANDS: ReadonlyMap<string, string> = new Map([
  ["cnpm", "npm"],
  ["tnpm", "npm"],
  ["brz", "bzr"],
  ["breezy", "bzr"],
  ["mcli", "mc"],
  ["prek", "pre-commit"],
]);
/** Make environments and install into them before they run anything, unless these say otherwise. */
const INSTALLERS: ReadonlyMap<string, RegExp> = new Map([
  ["tox", /^(?:-l|-a|--listenvs(?:-all)?|--showconfig|list|l|config|c)$/],
  ["nox", /^(?:-l|--list|--list-sessions|--no-install|-R)$/],
]);

/** Words that say so for programs that are not known, as the first behind their name. */
const REMOTE_VERBS = new Set(
  "install deploy publish login download upload push pull fetch clone update".split(" "),
);
/** Their first word is a file, a text or a script. */
const TAKES_FILES = new Set(
  (
    "echo printf cat ls head tail wc grep egrep fgrep rg ag cut paste tr sort uniq shuf diff cmp comm join test [ [[ true " +
    "false : cd pushd popd pwd mkdir rmdir touch cp mv ln chmod chown stat file du df date basename dirname realpath " +
    "readlink which type whereis jq yq tee sed awk gawk sleep seq exit return break continue set shopt tree column fold " +
    "fmt nl rev tac sha256sum md5sum base64 xxd od strings find fd rm unlink node tsx ts-node python python3 perl ruby " +
    "php bash sh dash zsh source . make gmake just task rake tar zip unzip gzip gunzip less more bat man export local " +
    "declare read unset alias tsc eslint prettier jest vitest mocha pytest patch kill wait jobs bg fg command xargs"
  ).split(" "),
);

/** Names of programs that are words as well. */
const ORDINARY = new Set("http https links host hub mail eb fly security volta".split(" "));

/** Whether a text that may be a command is one of a program that is known to reach other machines. */
export function isRemoteProgram(program: string, args: readonly string[]): boolean {
  if (args.length === 0 || ORDINARY.has(program)) return false;
  return (REMOTE.has(program) || REMOTE_COMMANDS.has(program)) && needsNetwork(program, args);
}

/** Get what their operands name, as a package or an image, behind a word that says so. */
const GETTERS = new Set(
  "apt apt-get aptitude brew dnf yum apk pacman zypper snap flatpak docker podman nerdctl gh glab pipx ollama npx pnpx bunx uvx".split(
    " ",
  ),
);

/** Whether operands of a program name what it gets or sends: packages, images, branches. */
export function takesNames(name: string): boolean {
  const program = SAME_COMMANDS.get(name) ?? name;
  return REMOTE_COMMANDS.has(program) || GETTERS.has(program);
}

/** Whether a program is known to reach other machines with these arguments. */
export function needsNetwork(name: string, args: readonly string[]): boolean {
  const program = SAME_COMMANDS.get(name) ?? name;
  if (args.some((arg) => /^(?:--version|--help|-V)$/.test(arg))) return false;
  if (args.length === 1 && args[0] === "-v" && REMOTE_COMMANDS.has(program)) return false;
  if (/^(?:curl|wget|http|xh)$/.test(program) && asksLocalHost(args)) return false;
  // An archive on another machine.
  if (program === "tar" && !args.includes("--force-local"))
    return args.some(
      (arg, index) =>
        /^(?:--file=|-f)?[\w.@-]+:/.test(arg) && /^-?\w*f$|^--file$/.test(args[index - 1] ?? "-f"),
    );
  // Between folders of this machine.
  if (program === "rsync" && !args.some((arg) => /^[^/]*:/.test(arg))) return false;
  const local = LOCAL_COMMANDS.get(program);
  if (local?.test(listOperands(program, args)[0] ?? "")) return false;
  if (REMOTE.has(program)) return true;
  const keepsOff = INSTALLERS.get(program);
  if (keepsOff) return !args.some((arg) => keepsOff.test(arg));
  const [subcommand, next] = listOperands(program, args);
  // Behind an option it may be the value of that.
  const isValue = args[args.indexOf(subcommand ?? "") - 1]?.startsWith("--") ?? false;
  if (isValue && next !== undefined && REMOTE_COMMANDS.get(program)?.has(next)) return true;
  // Alone, or with options, they install.
  if (/^(?:yarn|bundle|pnpm)$/.test(program) && subcommand === undefined) return true;
  if (/^python[\d.]*$|^py$/.test(program)) {
    const module = args.indexOf("-m");
    return module >= 0 && needsNetwork(args[module + 1] ?? "", args.slice(module + 2));
  }
  if (subcommand === undefined) return false;
  const known = REMOTE_COMMANDS.get(program);
  if (known?.has(subcommand)) return needsNetworkFor(program, subcommand, next, args);
  if (program === "git") return gitNeedsNetwork(subcommand, next, args);
  if (program === "uv") return hasOption(args, "--with");
  if (/^(?:mvn|gradle|gradlew)$/.test(program)) {
    return hasOption(args, "--refresh-dependencies") || args.includes("-U");
  }
  if (program === "swift")
    return subcommand === "package" && /^(?:resolve|update)$/.test(next ?? "");
  if (program === "logger") return hasOption(args, "--server", /n/);
  if (program === "meson") return subcommand === "subprojects";
  if (program === "go") return subcommand === "run" && /@/.test(next ?? "");
  if (!known && !TAKES_FILES.has(program) && REMOTE_VERBS.has(subcommand)) return true;
  return !TAKES_TEXT.has(program) && args.some(isRemoteAddress);
}

/** Programs that do nothing with an address but keep it, show it or look for it. */
const TAKES_TEXT = new Set(
  "echo printf grep egrep fgrep rg ag sed awk gawk jq yq test [ [[ git export local declare tee find cat true false :".split(
    " ",
  ),
);

function needsNetworkFor(
  program: string,
  subcommand: string,
  next: string | undefined,
  args: readonly string[],
): boolean {
  if (program === "go" && subcommand === "mod") return next === "download" || next === "tidy";
  if (program === "npm" && subcommand === "pack") return next !== undefined && !/^[./]/.test(next);
  if (program === "npm" && /^(?:init|innit)$/.test(subcommand)) {
    return next !== undefined || !hasOption(args, "--yes", /y/);
  }
  if (program === "prisma") return next !== undefined && !/^(?:diff|format|validate)$/.test(next);
  return true;
}

function gitNeedsNetwork(
  subcommand: string,
  next: string | undefined,
  args: readonly string[],
): boolean {
  switch (subcommand) {
    case "remote":
      return next === "update" || next === "show" || next === "prune" || args.includes("-f");
    case "submodule":
      return (
        next === "update" ||
        next === "add" ||
        (next === "foreach" && args.some((arg) => /\b(?:pull|fetch|push|clone)\b/.test(arg)))
      );
    case "archive":
      return hasOption(args, "--remote");
    case "maintenance":
      return args.some((arg) => arg.includes("prefetch"));
    case "subtree":
      return /^(?:pull|push|add)$/.test(next ?? "");
    default:
      return false;
  }
}

/** An address of another machine, as a word of its own. */
export function isRemoteAddress(word: string): boolean {
  if (/^[\w.-]+@[\w.-]+\.\w+:/.test(word)) return true;
  if (!/^(?:https?|wss?|ftps?|sftp|ssh|git|s3|gs):\/\//i.test(word)) return false;
  return !isLocalAddress(word);
}

/** An address of this machine; in a sandbox without network there is nothing else behind it. */
export function isLocalAddress(address: string): boolean {
  try {
    return /^(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])$/i.test(new URL(address).hostname);
  } catch {
    return false;
  }
}

/** All that is asked for is a server of this machine. */
function asksLocalHost(args: readonly string[]): boolean {
  const places = args.filter((arg) => /:\/\/|^(?:localhost|127\.0\.0\.1|\[::1\]|:\d)/.test(arg));
  const others = args.filter(
    (arg) => /^[\w-]+(?:\.[\w-]+)+(?:[:/]|$)/.test(arg) && !arg.startsWith("127."),
  );
  const isLocal = (place: string): boolean =>
    isLocalAddress(place.includes("://") ? place : `http://${place.replace(/^:/, "localhost:")}`);
  const isRedirected =
    hasOption(args, "--proxy", /[xK]/) ||
    hasOption(args, "--config") ||
    hasOption(args, "--connect-to") ||
    hasOption(args, "--resolve");
  return places.length > 0 && !isRedirected && places.every(isLocal) && others.length === 0;
}
