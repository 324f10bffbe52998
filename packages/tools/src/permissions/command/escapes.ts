import type { Word } from "./parse.ts";

/** Something that a program can be made to do beyond what its name says. */
export interface Escape {
  /** The option or word that does it. A rule that has this word in it means it. */
  word: string;
  why: string;
}

/**
 * What an argument makes of a program that is harmless by its name: one that runs another
 * program, or writes where it goes unnoticed. `program` is its bare name, `args` what follows.
 * A table of what is known, so it is no proof: it makes rules for such programs ask.
 */
export function findEscape(program: string, args: readonly Word[]): Escape | undefined {
  if (RUNNERS.has(program)) return { word: program, why: `"${program}" runs what it is given` };
  if (CHANGERS.has(program)) {
    return { word: program, why: `"${program}" may change what later commands mean` };
  }
  const known = PROGRAMS.get(program);
  if (!known) return undefined;
  for (const [index, { text, literal, prefix }] of args.entries()) {
    if (!literal) {
      // A pattern of files begins as it begins. What a variable holds may be several words.
      const isPattern = !/[$`]/.test(text);
      if (isPattern && prefix !== "" && !prefix.startsWith("-")) continue;
      return { word: text, why: `"${text}" may turn out to be an option of "${program}"` };
    }
    // Behind an option it may be its value, and options go on.
    const mayBeValue = args[index - 1]?.text.startsWith("-") ?? false;
    if (text === "--" && program !== "find" && !mayBeValue) break;
    if (!optionEscapes(text, known)) continue;
    return {
      word: parseOptionName(text),
      why: `"${program} ${parseOptionName(text)}" can run or write other things`,
    };
  }
  const script = known.script?.(args);
  return script === undefined
    ? undefined
    : { word: script, why: `"${program}" may run or write something there` };
}

interface Program {
  /** Long options, or such as `-exec`; also when cut short. */
  long?: readonly string[];
  /** Letters of short options, also among others: `-ni`. */
  short?: string;
  /** The argument that does it, where it needs a closer look. */
  script?: (args: readonly Word[]) => string | undefined;
}

function optionEscapes(text: string, { long, short }: Program): boolean {
  if (!text.startsWith("-") || text === "-") return false;
  const name = parseOptionName(text);
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
    "pwsh rsh telnet nc ncat socat vim vi view ex ed emacs less more man screen tmux"
  ).split(" "),
);

/** Of the shell itself. */
const CHANGERS = new Set(
  (
    ". source alias unalias hash enable trap set shopt export declare typeset local readonly " +
    "let read mapfile readarray getopts bind complete fc"
  ).split(" "),
);

const SED_PLAIN =
  /^(?:(?:\d+|\$)(?:,(?:\d+|\$))?[pdq=](?:;|$))+$|^(?:\d+|\$)?(?:,(?:\d+|\$))?s([/|,#])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*$/;

/** Scripts of sed can write (`w`) and run (`e`): only the plainest are taken as they are. */
function sedScript(args: readonly Word[]): string | undefined {
  const scripts: Word[] = [];
  for (const [index, word] of args.entries()) {
    if (/^(?:-[nErsuz]*e|--e[a-z]*)$/.test(args[index - 1]?.text ?? "")) scripts.push(word);
    const attached = /^(?:--e[a-z]*=|-[nErsuz]*e)(.+)$/s.exec(word.text)?.[1];
    if (attached !== undefined) scripts.push({ ...word, text: attached });
  }
  if (scripts.length === 0) {
    const first = args.find(({ text }) => !text.startsWith("-"));
    if (first) scripts.push(first);
  }
  return scripts.find(({ text, literal }) => !literal || !SED_PLAIN.test(text))?.text;
}

/** Programs of awk can run and write with few signs, and load others. */
function awkProgram(args: readonly Word[]): string | undefined {
  return args.find(({ text, literal }) => !literal || /system|getline|[|>@]/.test(text))?.text;
}

/** The second file is written. */
function secondOperand(args: readonly Word[]): string | undefined {
  return args.filter(({ text }) => !text.startsWith("-"))[1]?.text;
}

/** Commands of git that run others, or set what it runs. */
const GIT_RUNNERS = new Set(
  (
    "config bisect submodule filter-branch difftool mergetool daemon send-email instaweb " +
    "credential hook maintenance svn p4 web--browse help fast-import"
  ).split(" "),
);
/** Short options of single commands of git that name a program, or a setting. */
const GIT_SHORT = new Map([
  ["grep", /^-[^-]*O/],
  ["rebase", /^-[^-]*x/],
  ["clone", /^-[^-]*[uc]/],
]);

/** Options before the command of git choose its settings and its repository. */
function gitCommand(args: readonly Word[]): string | undefined {
  const [command, ...rest] = args;
  if (!command) return undefined;
  if (/^-[^-]/.test(command.text) || GIT_RUNNERS.has(command.text)) return command.text;
  if (command.text.startsWith("--")) return gitCommand(rest);
  const short = GIT_SHORT.get(command.text);
  return rest.find(({ text }) => short?.test(text))?.text;
}

/** Options of tar may stand without their dash. */
function tarLetters(args: readonly Word[]): string | undefined {
  const first = args[0]?.text ?? "";
  return /^[A-Za-z]*[IF]/.test(first) ? first : undefined;
}

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
  ["sed", { long: ["--in-place", "--file"], short: "if", script: sedScript }],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, Program] => [
    name,
    {
      long: "--file --include --load --exec --debug --profile --pretty-print --dump-variables".split(
        " ",
      ),
      short: "fileEDopd",
      script: awkProgram,
    },
  ]),
  [
    "git",
    {
      long: (
        "--config-env --exec-path --git-dir --work-tree --namespace --upload-pack --receive-pack " +
        "--exec --ext-diff --textconv --open-files-in-pager --output --extcmd --paginate --template " +
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
        "--info-script --new-volume-script --absolute-names"
      ).split(" "),
      short: "IFP",
      script: tarLetters,
    },
  ],
  ["sort", { long: ["--output", "--compress-program", "--files0-from"], short: "oT" }],
  ["uniq", { script: secondOperand }],
  ["xxd", { short: "r", script: secondOperand }],
  ["tree", { short: "oR" }],
  ["split", { long: ["--filter"] }],
  ["diff", { long: ["--paginate"], short: "l" }],
  ["date", { long: ["--set"], short: "s" }],
  ["file", { long: ["--compile"], short: "C" }],
  ["yq", { long: ["--inplace", "--in-place"], short: "i" }],
  [
    "dd",
    {
      script: (args) => args.find(({ text, literal }) => !literal || text.startsWith("of="))?.text,
    },
  ],
  ["rsync", { long: ["--rsh", "--rsync-path"], short: "e" }],
  ["scp", { short: "oSFJ" }],
  ["zip", { long: ["--unzip-command", "--test"], short: "T" }],
  ["fzf", { long: ["--preview", "--bind", "--with-shell"] }],
  ["tcpdump", { short: "zw" }],
  [
    "curl",
    {
      long: (
        "--output --remote-name --config --data --data-binary --data-raw --data-urlencode --form " +
        "--json --upload-file --dump-header --cookie-jar --trace --trace-ascii --proxy --unix-socket"
      ).split(" "),
      short: "oOKdFTDcx",
    },
  ],
  [
    "wget",
    {
      long: "--output-document --post-data --post-file --body-data --body-file --execute --use-askpass --config".split(
        " ",
      ),
      short: "OePi",
    },
  ],
  ["printf", { short: "v" }],
  ["test", { short: "v" }],
  ["[", { short: "v" }],
  ...["python", "python3"].map((name): [string, Program] => [name, { short: "cm" }]),
  ["node", { long: ["--eval", "--print", "--require", "--import", "--loader"], short: "epr" }],
  ["perl", { short: "eEpniMm" }],
  ["ruby", { short: "epnir" }],
  ["php", { short: "rBRd" }],
]);
