import type { Word } from "./parse.ts";

/** What a sandbox with the workspace in it does not make harmless. */
export interface Danger {
  kind: "network" | "destructive";
  /** A sentence for the person who is asked. */
  why: string;
}

/**
 * Whether a command is known to need the network, or to destroy what an undo of files does not
 * bring back. `words` are the program and its arguments. A table of what is known: the sandbox is
 * what confines a command, this decides what a person wants to know of before.
 */
export function findDanger(words: readonly Word[]): Danger | undefined {
  const [first, ...rest] = words;
  if (!first) return undefined;
  const program = first.text.slice(first.text.lastIndexOf("/") + 1);
  const args = rest.map(({ text }) => text);
  if (destroys(program, rest)) {
    return { kind: "destructive", why: `"${show(program, args)}" cannot be undone.` };
  }
  if (needsNetwork(program, args)) {
    return { kind: "network", why: `"${show(program, args)}" needs the network.` };
  }
  return undefined;
}

/** The program and the word that says what it is to do. */
function show(program: string, args: readonly string[]): string {
  const [subcommand] = operands(args, GLOBAL_VALUES.get(program));
  return subcommand !== undefined && /^[\w-]+$/.test(subcommand)
    ? `${program} ${subcommand}`
    : program;
}

/** Reach other machines, or services that act on them, whatever they are given. */
const REMOTE = new Set(
  (
    "curl wget aria2c http https xh ping ping6 traceroute tracepath mtr ssh scp sftp mosh rsync nc ncat " +
    "netcat socat telnet ftp lftp dig nslookup host whois gh glab hub aws gcloud gsutil az kubectl helm " +
    "terraform tofu pulumi ansible ansible-playbook docker docker-compose podman nerdctl heroku vercel " +
    "netlify fly flyctl doctl wrangler firebase supabase psql mysql redis-cli mongosh apt apt-get aptitude " +
    "brew dnf yum apk pacman zypper snap flatpak nix-env svn pipx twine npx pnpx bunx uvx"
  ).split(" "),
);

/** Which of a program's own commands reach the network. */
const REMOTE_COMMANDS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    git: "clone fetch pull push ls-remote lfs send-email request-pull",
    hg: "clone pull push incoming outgoing",
    npm: "install i in add ci clean-install update up upgrade outdated view info show search publish unpublish deprecate audit login logout adduser whoami exec x create init dist-tag owner access ping fund install-test it",
    pnpm: "install i add update up upgrade outdated view info publish audit dlx create import fetch login",
    yarn: "install add upgrade up outdated info publish audit dlx create npm login",
    bun: "install i add update upgrade outdated publish audit x create pm",
    deno: "add install upgrade publish outdated",
    pip: "install download search index wheel",
    pip3: "install download search index wheel",
    uv: "add sync pip tool lock publish self python",
    poetry: "add install update publish lock search self",
    pdm: "add install update publish lock sync",
    conda: "install create update search",
    mamba: "install create update search",
    cargo: "install add update publish fetch search login yank owner",
    go: "get install mod",
    gem: "install update push fetch search",
    bundle: "install update add outdated",
    composer: "install require update create-project search",
    dotnet: "restore add nuget tool workload",
    mvn: "deploy dependency:get",
    systemctl: "start stop restart reload enable disable",
  }).map(([program, commands]) => [program, new Set(commands.split(" "))]),
);

function needsNetwork(program: string, args: readonly string[]): boolean {
  if (args.some((arg) => /^(?:--version|--help|-V)$/.test(arg))) return false;
  if (REMOTE.has(program)) return true;
  const [subcommand, next] = operands(args, GLOBAL_VALUES.get(program));
  // `yarn` alone installs.
  if (program === "yarn" && args.length === 0) return true;
  if (/^python[\d.]*$|^py$/.test(program)) {
    const module = args.indexOf("-m");
    return module >= 0 && needsNetwork(args[module + 1] ?? "", args.slice(module + 2));
  }
  if (subcommand === undefined) return false;
  if (program === "git") {
    if (subcommand === "remote") return next === "update" || next === "show" || next === "prune";
    if (subcommand === "submodule") return next === "update" || next === "add";
    if (subcommand === "archive") return args.some((arg) => arg.startsWith("--remote"));
  }
  if (program === "go" && subcommand === "mod") return next === "download" || next === "tidy";
  return REMOTE_COMMANDS.get(program)?.has(subcommand) ?? false;
}

/** Options of a program, before its own command, that are followed by a value. */
const GLOBAL_VALUES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["git", new Set(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"])],
  ["npm", new Set(["--prefix", "-C", "-w", "--workspace", "--registry"])],
  ["pnpm", new Set(["-C", "--dir", "--filter", "-F"])],
  ["yarn", new Set(["--cwd"])],
  ["cargo", new Set(["-Z", "--config", "-C", "--color"])],
]);

function operands(args: readonly string[], values?: ReadonlySet<string>): string[] {
  const found: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? "";
    if (values?.has(arg)) index++;
    else if (!arg.startsWith("-")) found.push(arg);
  }
  return found;
}

/** Destroy data, or act as another user, whatever they are given. */
const DESTROYERS =
  /^(?:shred|wipefs|fdisk|sfdisk|parted|mkswap|mkfs(?:\..+)?|sudo|doas|su|pkexec|shutdown|reboot|halt|poweroff|srm)$/;

function destroys(program: string, words: readonly Word[]): boolean {
  if (DESTROYERS.test(program)) return true;
  const args = words.map(({ text }) => text);
  switch (program) {
    case "git":
      return gitDestroys(args);
    case "rm":
      return hasFlag(args, /[rR]/, "--recursive") && words.some(mayBeEverything);
    case "find":
      return (
        args.includes("-delete") &&
        !args.some((arg) => /^-(?:i?(?:name|path|regex|wholename))$/.test(arg))
      );
    case "dd":
      return args.some((arg) => arg.startsWith("of="));
    default:
      return false;
  }
}

/** An operand that is, or may turn out to be, the whole folder, or what git has of it. */
function mayBeEverything({ text, literal, prefix }: Word): boolean {
  if (text.startsWith("-")) return false;
  const path = text.replace(/\/+$/, "");
  if (/^(?:|\.|\.\.|~|\*|\.\/\*|\.\*)$/.test(path) || /(?:^|\/)\.git$/.test(path)) return true;
  return !literal && (prefix === "" || /^[~/]/.test(text) || prefix === "./");
}

function gitDestroys(args: readonly string[]): boolean {
  const [subcommand, next] = operands(args, GLOBAL_VALUES.get("git"));
  const has = (...options: string[]): boolean => args.some((arg) => options.includes(arg));
  switch (subcommand) {
    case "reset":
      return has("--hard", "--merge", "--keep");
    case "clean":
      return !hasFlag(args, /n/, "--dry-run");
    case "checkout":
      return hasFlag(args, /f/, "--force") || has("--", ".");
    case "switch":
      return hasFlag(args, /f/, "--force") || has("--discard-changes");
    case "restore":
      return !has("--staged", "-S") || has("--worktree", "-W");
    case "stash":
      return next === "drop" || next === "clear";
    case "branch":
      return hasFlag(args, /D/) || (has("-d", "--delete") && hasFlag(args, /f/, "--force"));
    case "tag":
      return has("-d", "--delete");
    case "push":
      return (
        hasFlag(args, /[fd]/, "--force") ||
        args.some((arg) => /^--(?:force-|mirror|delete|prune)|^\+|^:/.test(arg))
      );
    case "reflog":
      return next === "expire" || next === "delete";
    case "worktree":
      return next === "remove" && hasFlag(args, /f/, "--force");
    case "update-ref":
      return has("-d", "--stdin");
    case "gc":
    case "prune":
      return subcommand === "prune" || args.some((arg) => arg.startsWith("--prune"));
    case "filter-branch":
    case "filter-repo":
      return true;
    default:
      return false;
  }
}

/** A short option, also among others, or a long one. */
function hasFlag(args: readonly string[], short: RegExp, long?: string): boolean {
  return args.some((arg) => arg === long || (/^-[A-Za-z]/.test(arg) && short.test(arg.slice(1))));
}
