import type { Word } from "./parse.ts";

/** Something that a program can be made to do beyond what its name says. */
export interface Escape {
  /** The option or word that does it, never empty. A rule that has this word in it means it. */
  word: string;
  why: string;
  /** It may run a command that is not looked into: perhaps one that a rule forbids. */
  runs: boolean;
}

/**
 * What arguments make of a program that is harmless by its name: one that runs another
 * program, or writes where it goes unnoticed. `program` is its bare name, `args` what follows.
 * A table of what is known, so it is no proof: it makes rules for such programs ask.
 */
export function findEscapes(program: string, args: readonly Word[]): Escape[] {
  const plain = plainProgram(program);
  if (RUNNERS.has(plain)) {
    const option = program === "ssh" ? sshOption(args) : undefined;
    return [program, ...(option === undefined ? [] : [option])].map((word) => ({
      word,
      why: `"${program}" runs what it is given`,
      runs: true,
    }));
  }
  if (CHANGERS.has(program)) {
    const runs =
      RUNNING_CHANGERS.has(program) ||
      args.some(({ text }) => CHANGING_OPTIONS.get(program)?.test(text)) ||
      args.some(
        ({ text, literal, prefix }) =>
          /[[`]|^-C/.test(text) ||
          (literal && /^\w+\+?=\(/.test(text)) ||
          RUNNING_SETTINGS.test(prefix),
      );
    return [{ word: program, why: `"${program}" may change what later commands mean`, runs }];
  }
  const known = PROGRAMS.get(plain);
  if (!known) return [];
  const escapes: Escape[] = [];
  for (const [index, { text, literal, prefix }] of args.entries()) {
    if (!literal) {
      // A pattern of files begins as it begins. What a variable holds may be several words.
      const isPattern = !/[$`]/.test(text);
      if (isPattern && prefix !== "" && !prefix.startsWith("-")) continue;
      const why = `"${text}" may turn out to be an option of "${program}"`;
      escapes.push({ word: text, why, runs: false });
      continue;
    }
    // Behind an option it may be its value, and options go on.
    const mayBeValue = args[index - 1]?.text.startsWith("-") ?? false;
    if (text === "--" && !OPERATORS.has(program) && !mayBeValue) break;
    if (!optionEscapes(text, known)) continue;
    escapes.push({
      word: parseOptionName(text),
      why: `"${program} ${parseOptionName(text)}" can run or write other things`,
      runs: optionRuns(text, known),
    });
  }
  const word = known.script?.(args);
  if (word !== undefined && !escapes.some((escape) => escape.word === parseOptionName(word))) {
    const why = `"${program}" may run or write something there`;
    escapes.push({ word: word === "" ? program : word, why, runs: known.interprets !== true });
  }
  return escapes;
}

/** Programs to which `--` is a word as others: options, or operators, go on behind it. */
const OPERATORS = new Set(["find", "test", "["]);

/** Variables that have any program, or any shell, run something else. */
const RUNNING_SETTINGS = /^(?:BASH_ENV|ENV|PS4|PROMPT_COMMAND|LD_[A-Z_]+|DYLD_[A-Z_]+)\+?=/;

/** Which assignments before a command, or on their own, have it run something else. */
export function findSettings(assignments: readonly Word[]): Escape[] {
  return assignments
    .filter(({ prefix }) => RUNNING_SETTINGS.test(prefix))
    .map(({ text }) => ({ word: text, why: `"${text}" may run something else`, runs: true }));
}

/** Whether a program runs what it is given, whichever options it has. */
export function runsArguments(program: string): boolean {
  return RUNNERS.has(plainProgram(program));
}

/** Other names under which systems have a program. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["nodejs", "node"],
  ["pypy", "python3"],
  ["pip3", "pip"],
  ["original-awk", "awk"],
  ["yarnpkg", "yarn"],
  ["c++", "g++"],
  ["c89", "cc"],
  ["c99", "cc"],
  ["rvim", "vim"],
  ["rview", "vim"],
  ["vimdiff", "vim"],
]);
/** A name with a version, or with the system that it is for: `python3.11`, `gcc-12`, `perl5.36-x86_64-linux-gnu`. */
const VERSIONED =
  /^(?:[\w]+-linux-gnu-)?(python|pypy|pip|perl|ruby|php|node|gcc|g\+\+|clang|clang\+\+|vim)(?:[-.]?\d[\d.]*|\.\w+)?(?:-[\w-]+-gnu)?$/;

/** The name under which a program is known here. */
function plainProgram(program: string): string {
  const bare = ALIASES.get(program) ?? VERSIONED.exec(program)?.[1] ?? program;
  return ALIASES.get(bare) ?? bare;
}

interface Program {
  /** Long options, or such as `-exec`; also when cut short. */
  long?: readonly string[];
  /** Letters of short options, also among others: `-ni`. */
  short?: string;
  /** Of these letters, those by which it writes or sends, and runs nothing. */
  writes?: string;
  /** It runs programs in a language of its own, of which files are full. */
  interprets?: boolean;
  /** The argument that does it, where it needs a closer look. */
  script?: (args: readonly Word[]) => string | undefined;
}

/** Long options by which programs write or send, and run nothing. */
const WRITING = new Set(
  (
    "--in-place --inplace --output --output-document --output-directory --output-dir --remote-name --remote-name-all --data --data-binary " +
    "--data-raw --data-urlencode --form --json --upload-file --dump-header --cookie-jar --trace " +
    "--trace-ascii --proxy --unix-socket --stderr --etag-save --post-data --post-file --body-data " +
    "--body-file --compile --set --save-config --absolute-names --files0-from --template " +
    "--separate-git-dir -delete -fprint -fprint0 -fprintf -fls -files0-from -o"
  ).split(" "),
);

function optionRuns(text: string, { long, short = "", writes = "", interprets }: Program): boolean {
  if (interprets) return false;
  const name = parseOptionName(text);
  if (long?.includes(name) || text.startsWith("--")) return !WRITING.has(name);
  return [...text.slice(1)].some((letter) => short.includes(letter) && !writes.includes(letter));
}

function optionEscapes(text: string, { long, short }: Program): boolean {
  if (!text.startsWith("-") || text === "-") return false;
  // Some programs take the one sign for the other.
  const name = parseOptionName(text).replaceAll("_", "-");
  if (long?.some((option) => option === name)) return true;
  if (text.startsWith("--")) return long?.some((option) => option.startsWith(name)) ?? false;
  return short !== undefined && [...text.slice(1)].some((letter) => short.includes(letter));
}

function parseOptionName(text: string): string {
  const [name = text] = text.split("=", 1);
  return name;
}

/** Run what they are given, in ways that are not looked into. */
const RUNNERS = new Set(
  (
    "ssh su script strace ltrace gdb valgrind unshare nsenter chroot flock systemd-run at batch " +
    "crontab docker podman kubectl npx bunx expect entr parallel runuser start-stop-daemon " +
    "pwsh rsh telnet nc ncat socat vim vi view nvim ex ed emacs less more man screen tmux dc psql " +
    "mysql sqlite3 pkexec gosu setpriv capsh taskset chrt prlimit setarch linux32 linux64 choom numactl fakeroot firejail " +
    "bwrap xvfb-run dbus-run-session unbuffer rlwrap faketime proxychains torsocks sshpass tini " +
    "dumb-init chronic nyc c8 dotenv env-cmd dotenvx perf hyperfine watchexec nodemon concurrently cross-env direnv nix-shell " +
    "powershell osascript run-parts logrotate ftp sftp lftp"
  ).split(" "),
);

/** Of the shell itself. */
const CHANGERS = new Set(
  (
    ". source alias unalias hash enable trap set shopt export declare typeset local readonly " +
    "let read mapfile readarray getopts unset wait bind complete compgen compopt fc"
  ).split(" "),
);

/** Of these, such as may stand for another command from then on, or run one. */
const RUNNING_CHANGERS = new Set(
  ". source alias hash enable trap bind complete compgen fc".split(" "),
);

/** What makes words of a command assignments, or has assignments calculate or lead elsewhere. */
const CHANGING_OPTIONS: ReadonlyMap<string, RegExp> = new Map([
  ["set", /^-\w*k|^keyword$/],
  ...["declare", "typeset", "local"].map((name): [string, RegExp] => [name, /^-\w*[in]/]),
]);

/** Short options of ssh that a value follows. */
const SSH_VALUED = "BbcDEeFIiJLlmOoPpQRSWw";

/** An option of ssh by which it runs something here, or writes: it may stand behind the host. */
function sshOption(args: readonly Word[]): string | undefined {
  let hasHost = false;
  for (let at = 0; at < args.length; at++) {
    const { text = "", literal = true, prefix = "" } = args[at] ?? {};
    // What expands may be an option as well.
    if (!literal && prefix === "") return text;
    if (!text.startsWith("-")) {
      if (hasHost) return undefined;
      hasHost = true;
      continue;
    }
    const place = [...text].findIndex((letter, index) => index > 0 && SSH_VALUED.includes(letter));
    if (place < 0) continue;
    if ("oFEI".includes(text.charAt(place))) return text;
    if (place === text.length - 1) at++;
  }
  return undefined;
}

const SED_PLAIN =
  /^(?:(?:\d+|\$)(?:,(?:\d+|\$))?[pdq=](?:;|$))+$|^(?:\d+|\$)?(?:,(?:\d+|\$))?s([/|,#])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*$/;

const SED_FLAGS = new Set(
  (
    "--quiet --silent --regexp-extended --separate --unbuffered --null-data --posix --sandbox " +
    "--version --help"
  ).split(" "),
);

/**
 * Scripts of sed can write (`w`) and run (`e`): only the plainest are taken as they are. So
 * are its options: which word is the script depends on all of them.
 */
function sedScript(args: readonly Word[]): string | undefined {
  const scripts: Word[] = [];
  const operands: Word[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at];
    if (!word) break;
    const { text, literal } = word;
    if (literal && text === "--") {
      operands.push(...args.slice(at + 1));
      break;
    }
    if (!literal || text === "-" || !text.startsWith("-")) {
      operands.push(word);
      continue;
    }
    if (SED_FLAGS.has(text) || /^-[nErsuz]+$/.test(text)) continue;
    const attached = /^(?:--expression=|-[nErsuz]*e)(.*)$/s.exec(text)?.[1];
    if (attached === undefined && /^-[nErsuz]*i|^--in-place/.test(text)) continue;
    if (attached === undefined && text !== "--expression") return text;
    const script = attached ? { ...word, text: attached } : args[++at];
    if (script) scripts.push(script);
  }
  const all = scripts.length > 0 ? scripts : operands.slice(0, 1);
  const isPlain = ({ text, literal }: Word): boolean =>
    literal && (text === "" || SED_PLAIN.test(text));
  return all.find((script) => !isPlain(script))?.text;
}

/** Programs of awk can run and write with few signs, and load others. */
function awkProgram(args: readonly Word[]): string | undefined {
  return args.find(({ text, literal }) => !literal || /system|getline|[|>@]/.test(text))?.text;
}

/** Options of curl without a value that are often there. */
const CURL_FLAGS =
  /^-[sSfLkivIgG46qN#]+$|^--(?:silent|show-error|fail|location|compressed|head|get)$/;

/** Files that curl sends by a header or a cookie, and addresses beside the first. */
function curlValues(args: readonly Word[]): string | undefined {
  let addresses = 0;
  for (const [index, { text }] of args.entries()) {
    if (/^--(?:variable|expand-|next|url$|url=|netrc-file)|^-:/.test(text)) return text;
    if (/^(?:-H|--header=|--proxy-header=)@/.test(text)) return text;
    const before = args[index - 1]?.text ?? "";
    if (/^(?:-\w*H|--header|--proxy-header)$/.test(before) && text.startsWith("@")) return before;
    if (/^(?:-\w*b|--cookie)$/.test(before) && !text.includes("=")) return before;
    if (text.startsWith("-") || (before.startsWith("-") && !CURL_FLAGS.test(before))) continue;
    if (++addresses > 1 || /^[^/]*(?:\/\/)?[^/]*@/.test(text)) return text;
  }
  return undefined;
}

/** The second file is written. A pattern may be two. */
function secondOperand(args: readonly Word[]): string | undefined {
  const end = args.findIndex(({ text }) => text === "--");
  const operands = args.filter(
    ({ text }, index) => (end >= 0 && index > end) || text === "-" || !text.startsWith("-"),
  );
  return operands.find(({ literal }) => !literal)?.text ?? operands[1]?.text;
}

/**
 * Commands of git that run nothing but hooks and what is in the settings. All others, also
 * those that the settings give a name to, are asked about unless a rule names them.
 */
const GIT_PLAIN = new Set(
  (
    "add am apply archive blame branch cat-file check-attr check-ignore check-ref-format checkout " +
    "cherry cherry-pick clean clone commit commit-tree count-objects describe diff diff-files " +
    "diff-index diff-tree fetch for-each-ref format-patch fsck gc grep hash-object init log ls-files " +
    "ls-remote ls-tree merge merge-base merge-tree mktag mktree mv name-rev notes pack-refs prune " +
    "pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm " +
    "shortlog show show-branch show-ref sparse-checkout stash status stripspace switch symbolic-ref " +
    "tag update-index update-ref var verify-commit verify-tag version whatchanged worktree write-tree"
  ).split(" "),
);
const GIT_FLAGS = new Set(
  (
    "--no-pager --no-optional-locks --no-replace-objects --literal-pathspecs --glob-pathspecs " +
    "--noglob-pathspecs --icase-pathspecs --version --help"
  ).split(" "),
);
/** Short options of single commands of git that name a program, a setting or a file to write. */
const GIT_SHORT = new Map([
  ["grep", /^-[^-]*O/],
  ["rebase", /^-[^-]*x/],
  ["clone", /^-[^-]*[uc]/],
  ["archive", /^-[^-]*o/],
  ["format-patch", /^-[^-]*o/],
]);

/** Options before the command of git choose its settings and its repository. */
function gitCommand(args: readonly Word[]): string | undefined {
  const [command, ...rest] = args;
  if (!command) return undefined;
  const { text, literal } = command;
  // A pattern may find a file that has the name of a command.
  if (!literal) return text;
  if (GIT_FLAGS.has(text)) return gitCommand(rest);
  if (!GIT_PLAIN.has(text)) return text;
  const short = GIT_SHORT.get(text);
  const namesStrategy = /^(?:merge|pull|rebase)$/.test(text)
    ? /^(?:--strategy|-s)$/
    : /^--strategy$/;
  return (
    rest.find((word) => short?.test(word.text)) ??
    // A strategy is a part of the name of a program, and of its path where it has a slash.
    rest.find(
      (word, index) =>
        /^--strategy=.*\//.test(word.text) ||
        (namesStrategy.test(rest[index - 1]?.text ?? "") && word.text.includes("/")),
    )
  )?.text;
}

/** Options of tar may stand without their dash. */
function tarLetters(args: readonly Word[]): string | undefined {
  const [first] = args;
  return first && (!first.literal || /^[A-Za-z]*[IFT]/.test(first.text)) ? first.text : undefined;
}

/** Without a file they run what they read. */
function readsProgram(valued: string): (args: readonly Word[]) => string | undefined {
  return (args) => {
    for (let at = 0; at < args.length; at++) {
      const text = args[at]?.text ?? "";
      // With this, Node looks for tests by itself.
      if (/^(?:-V|-v|-h|--version|--help|--test)$/.test(text)) return undefined;
      if (text === "-" || /^\/(?:dev|proc)\//.test(text)) return text;
      if (!text.startsWith("-")) return undefined;
      if (text.length === 2 && valued.includes(text.charAt(1))) at++;
    }
    return "-";
  };
}

/**
 * The word that may be the command of a program, where it is one of these: the first operand, and
 * while that may be the value of an option, the next. Some programs take a part of a name for it.
 */
function subcommand(
  names: readonly string[],
  { isShort = false }: { isShort?: boolean } = {},
): (args: readonly Word[]) => string | undefined {
  const isMeant = (text: string): boolean =>
    names.some((name) => name === text || (isShort && text !== "" && name.startsWith(text)));
  return (args) => {
    for (const [index, { text, literal }] of args.entries()) {
      if (text.startsWith("-")) continue;
      if (!literal || isMeant(text)) return text;
      const before = args[index - 1]?.text ?? "";
      if (!before.startsWith("-") || before.includes("=")) return undefined;
    }
    return undefined;
  };
}

/** An option of these names, with one dash or two, in any case, with any sign between its words. */
function matchOption(names: string): (args: readonly Word[]) => string | undefined {
  const known = new Set(names.split(" ").map((name) => name.replaceAll("-", "")));
  return (args) => args.find(({ prefix }) => known.has(readOptionName(prefix)))?.text;
}

function readOptionName(text: string): string {
  return /^--?([\w.-]+)/.exec(text)?.[1]?.toLowerCase().replaceAll(/[-_]/g, "") ?? "";
}

/** The same where the value is no plain word: a path, or a module. */
function matchPath(names: string): (args: readonly Word[]) => string | undefined {
  const known = new Set(names.split(" ").map((name) => name.replaceAll("-", "")));
  return (args) =>
    args.find(({ prefix, text }, index) => {
      if (!known.has(readOptionName(prefix))) return false;
      const value = text.includes("=") ? text.slice(text.indexOf("=") + 1) : args[index + 1]?.text;
      return !/^[\w-]*$/.test(value ?? "");
    })?.text;
}

/** The first that finds something. */
function tryEach(
  ...looks: readonly ((args: readonly Word[]) => string | undefined)[]
): (args: readonly Word[]) => string | undefined {
  return (args) => {
    for (const look of looks) {
      const found = look(args);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Commands of npm that run what they are given, or change what others run. */
const NPM_RUNNING = "exec x dlx explore edit config c set create init innit node pkg".split(" ");
/** Commands of npm that begin as one of these do, and mean something else. */
const NPM_PLAIN = new Set("i in s se".split(" "));

/** Modules and settings that tools for JavaScript load, and files that they write. */
const loadsModules = tryEach(
  matchOption(
    "config c plugin plugins resolve-plugins-relative-to rulesdir parser custom-formatter custom-syntax " +
      "output-file output o cache-location plugin-search-dir config-path config-basedir config-file presets " +
      "require r import loader file global-setup global-teardown test-runner setup-files " +
      "setup-files-after-env transform preset resolver watch-plugins root-dir root roots coverage-directory " +
      "coverage.reports-directory browser.provider module-name-mapper test-results-processor " +
      "snapshot-resolver out-dir out-file declaration-dir ts-build-info-file generate-trace " +
      "generate-cpu-profile inspect inspect-brk dependency-extractor haste filter test-sequencer " +
      "prettier-path snapshot-serializers projects module-paths cache-directory snapshot-environment " +
      "workspace typecheck.checker sequence.sequencer coverage.custom-provider-module diff " +
      "benchmark.output-json node-option package",
  ),
  // Options for Node in those of its pools.
  (args) => args.find(({ text }) => /^--.*exec-?argv/i.test(text))?.text,
  matchPath(
    "format f formatter reporter reporters runner env environment test-environment pool ui",
  ),
);

const PROGRAMS: ReadonlyMap<string, Program> = new Map<string, Program>([
  ["rg", { long: ["--pre", "--hostname-bin", "--search-zip"], short: "z" }],
  ["ug", { long: ["--filter", "--pager", "--view", "--save-config"], short: "Q" }],
  ["ag", { long: ["--pager"] }],
  [
    "find",
    {
      long: "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from".split(
        " ",
      ),
    },
  ],
  ["fd", { long: ["--exec", "--exec-batch"], short: "xX" }],
  ["sed", { long: ["--in-place", "--file"], short: "if", writes: "i", script: sedScript }],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, Program] => [
    name,
    {
      long: "--file --include --load --exec --debug --profile --pretty-print --dump-variables".split(
        " ",
      ),
      short: "fileEDopdW",
      script: awkProgram,
    },
  ]),
  [
    "git",
    {
      long: (
        "--config-env --exec-path --git-dir --work-tree --namespace --upload-pack --receive-pack " +
        "--exec --ext-diff --textconv --open-files-in-pager --output --output-directory --extcmd --paginate --template " +
        "--separate-git-dir --config"
      ).split(" "),
      script: gitCommand,
    },
  ],
  [
    "tar",
    {
      long: (
        "--to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command " +
        "--info-script --new-volume-script --absolute-names --files-from " +
        "--index-file --listed-incremental --remove-files --volno-file"
      ).split(" "),
      // A list of files may have options in it.
      short: "IFPTg",
      writes: "Pg",
      script: tarLetters,
    },
  ],
  [
    "sort",
    { long: ["--output", "--compress-program", "--files0-from"], short: "oT", writes: "oT" },
  ],
  ["iconv", { long: ["--output"], short: "o", writes: "o" }],
  ["cmake", { long: ["-E", "-P"] }],
  ...["cc", "gcc", "g++", "clang", "clang++"].map((name): [string, Program] => [
    name,
    {
      long: ["-wrapper", "-fplugin", "-specs", "--specs", "-B"],
      // A folder for its programs, a file with more options, or something for the linker to load.
      script: (args) =>
        args.find(({ text }) =>
          /^(?:-B|@|-Wl,.*plugin|-Xlinker|-Xclang|--ld-path|--config|-fuse-ld=.*\/|-iplugindir|-fpass-plugin)/.test(
            text,
          ),
        )?.text,
    },
  ]),
  ["shuf", { long: ["--output"], short: "o", writes: "o" }],
  ["uniq", { script: secondOperand, interprets: true }],
  ["xxd", { short: "r", writes: "r", script: secondOperand, interprets: true }],
  ["tree", { short: "oR", writes: "oR" }],
  ["split", { long: ["--filter"] }],
  ["diff", { long: ["--paginate"], short: "l" }],
  ["date", { long: ["--set"], short: "s", writes: "s" }],
  ["file", { long: ["--compile"], short: "C", writes: "C" }],
  ["yq", { long: ["--inplace", "--in-place"], short: "i", writes: "i" }],
  ["bat", { long: ["--pager"] }],
  [
    "dd",
    {
      script: (args) => args.find(({ text, literal }) => !literal || text.startsWith("of="))?.text,
      interprets: true,
    },
  ],
  [
    "rsync",
    {
      long: (
        "--rsh --rsync-path --daemon --config --remote-option --write-batch --only-write-batch --log-file " +
        "--temp-dir --partial-dir --backup-dir --early-input"
      ).split(" "),
      short: "eMT",
    },
  ],
  ["scp", { short: "oSFJ" }],
  ["zip", { long: ["--unzip-command", "--test"], short: "T" }],
  ["fzf", { long: ["--preview", "--bind", "--with-shell"] }],
  ["tcpdump", { short: "zw" }],
  [
    "curl",
    {
      long: (
        "--output --remote-name --remote-name-all --config --data --data-binary --data-raw --data-urlencode --form " +
        "--json --upload-file --dump-header --cookie-jar --trace --trace-ascii --proxy --unix-socket " +
        "--stderr --etag-save --hsts --alt-svc --libcurl --output-dir --write-out --url-query --engine " +
        "--preproxy --abstract-unix-socket"
      ).split(" "),
      short: "oOKdFTDcxwJ",
      writes: "oOKdFTDcxwJ",
      script: curlValues,
      interprets: true,
    },
  ],
  [
    "wget",
    {
      long: (
        "--output-document --output-file --append-output --post-data --post-file --body-data " +
        "--body-file --execute --use-askpass --config --save-cookies --warc-file --hsts-file " +
        "--directory-prefix --input-file --rejected-log --warc-tempdir"
      ).split(" "),
      short: "OePioa",
      writes: "OPioa",
    },
  ],
  ["printf", { short: "v" }],
  ["test", { short: "v" }],
  ["[", { short: "v" }],
  ...["make", "gmake"].map((name): [string, Program] => [
    name,
    {
      long: ["--eval", "--file", "--makefile", "--directory", "--include-dir"],
      short: "fCIE",
      script: (args) => args.find(({ text, literal }) => !literal || text.includes("="))?.text,
    },
  ]),
  ...["npm", "pnpm", "yarn"].map((name): [string, Program] => [
    name,
    {
      long: (
        "--script-shell --shell --call --prefix --dir --cwd --node-options --userconfig " +
        "--globalconfig --init-module --editor --viewer --git --use-yarnrc --browser --node-gyp " +
        "--pnpmfile --global-pnpmfile --cache --logs-dir --store-dir --modules-dir"
      ).split(" "),
      short: "Cc",
      script: tryEach(
        (args) => args.find(({ text }) => text.startsWith("--config."))?.text,
        // What is run in workspaces, and what yarn loads.
        (args) =>
          /^(?:workspaces?|plugin)$/.test(args[0]?.text ?? "")
            ? args.find(({ text }) => /^(?:exec|dlx|node|import)$/.test(text))?.text
            : undefined,
        // One dash is as good as two.
        matchOption("script-shell shell call prefix node-options userconfig globalconfig cache"),
        (args) => {
          const found = subcommand(NPM_RUNNING, { isShort: name === "npm" })(args);
          return found !== undefined && NPM_PLAIN.has(found) ? undefined : found;
        },
      ),
    },
  ]),
  [
    "cargo",
    {
      long: ["--config", "--manifest-path", "--target-dir"],
      short: "ZC",
      // They pass options to the compiler, which has a linker to run.
      script: tryEach(
        (args) => args.find(({ text }) => /^\+.*\//.test(text))?.text,
        subcommand(["rustc", "rustdoc", "install"]),
      ),
    },
  ],
  [
    "go",
    {
      script: tryEach(
        matchOption("exec toolexec vettool c compiler overlay modfile pkgdir gccgoflags"),
        (args) => args.find(({ text }) => /extld|extar|linkmode/.test(text))?.text,
        (args) => (matchOption("w u")(args) === undefined ? undefined : subcommand(["env"])(args)),
        subcommand(["run", "generate", "tool"]),
      ),
    },
  ],
  ...(
    "eslint eslint_d prettier jest vitest mocha ava tap playwright cypress stylelint babel webpack rollup vite " +
    "tsup esbuild swc karma wtr tsc vue-tsc typedoc biome knip"
  )
    .split(" ")
    .map((name): [string, Program] => [name, { script: loadsModules }]),
  ...["pytest", "py.test"].map((name): [string, Program] => [
    name,
    {
      long: (
        "--rootdir --confcutdir --override-ini --config-file --pyargs --import-mode --junitxml --junit-xml --pastebin " +
        "--pdbcls --basetemp --log-file --debug --cov-config --cov-report --report-log --html"
      ).split(" "),
      short: "pco",
      // A file with more options.
      script: (args) => args.find(({ text }) => text.startsWith("@"))?.text,
    },
  ]),
  ["mypy", { long: ["--config-file", "--python-executable", "--cache-dir", "--install-types"] }],
  ["pylint", { long: ["--load-plugins", "--init-hook", "--rcfile", "--output"] }],
  ["flake8", { long: ["--config", "--append-config", "--output-file", "--tee"] }],
  ...["tox", "nox"].map((name): [string, Program] => [
    name,
    { long: ["--conf", "--noxfile", "--override", "--workdir", "--root"], short: "cfx" },
  ]),
  ...["rake", "rspec"].map((name): [string, Program] => [
    name,
    {
      long: "--rakefile --execute --require --options --format --out --libdir --default-path".split(
        " ",
      ),
      short: "fepErRIOo",
    },
  ]),
  [
    "gradle",
    {
      long: ["--init-script", "--build-file", "--project-dir", "--settings-file"],
      short: "Ibpc",
    },
  ],
  [
    "mvn",
    {
      script: (args) =>
        args.find(({ text }) =>
          /^-(?:f|s|gs)$|^--(?:file|settings|global-settings)|exec/.test(text),
        )?.text,
    },
  ],
  ...["bun", "deno"].map((name): [string, Program] => [
    name,
    {
      long: "--eval --print --preload --require --config --env-file --import-map --cwd --inspect --inspect-brk".split(
        " ",
      ),
      short: "epric",
      script: subcommand("x exec eval repl create task compile".split(" ")),
    },
  ]),
  ...["uv", "poetry", "pipenv", "bundle", "pdm", "hatch", "rye"].map((name): [string, Program] => [
    name,
    {
      long: ["--directory", "--project", "--config-file"],
      script: subcommand("run exec shell config tool console".split(" ")),
    },
  ]),
  [
    "pip",
    {
      long: "--python --config-settings --global-option --target --prefix --root --log --cert --cache-dir --src --report".split(
        " ",
      ),
      script: subcommand(["config"]),
    },
  ],
  ...["python", "python3"].map((name): [string, Program] => [
    name,
    {
      long: ["--check-hash-based-pycs"],
      short: "cmi",
      interprets: true,
      script: readsProgram("WX"),
    },
  ]),
  ...["node", "tsx", "ts-node"].map((name): [string, Program] => [
    name,
    {
      long: (
        "--eval --print --require --import --loader --experimental-loader --entry-url " +
        "--experimental-entry-url --compiler"
      ).split(" "),
      short: "epri",
      interprets: true,
      script: tryEach(
        matchOption(
          "env-file env-file-if-exists run test-reporter test-reporter-destination test-global-setup " +
            "experimental-config-file experimental-default-config-file inspect inspect-brk inspect-wait " +
            "redirect-warnings build-snapshot build-snapshot-config snapshot-blob openssl-config cpu-prof " +
            "heap-prof diagnostic-dir report-directory report-dir report-filename trace-event-file-pattern " +
            "heapsnapshot-signal heapsnapshot-near-heap-limit experimental-sea-config build-sea " +
            "localstorage-file icu-data-dir",
        ),
        readsProgram("C"),
      ),
    },
  ]),
  ["perl", { short: "eEpniMmd", interprets: true, script: readsProgram("I") }],
  ["ruby", { short: "epnir", interprets: true, script: readsProgram("IC") }],
  [
    "php",
    {
      long: (
        "--run --process-begin --process-code --process-end --process-file --define --interactive " +
        "--server --zend-extension"
      ).split(" "),
      short: "rBREFdazS",
      interprets: true,
      script: readsProgram("c"),
    },
  ],
]);
