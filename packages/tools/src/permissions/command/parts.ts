import { type Escape, findEscapes, findSettings, runsArguments } from "./escapes.ts";
import { describePosixDoubt } from "./posix.ts";
import {
  type Group,
  type ListedWord,
  parseCommandLine,
  type Redirect,
  type SimpleCommand,
  type Word,
} from "./parse.ts";

/** A longer command line is asked about, whatever rules allow. */
export const MAX_COMMAND_CHARS: number = 10 * 1024;
/** So is one of more parts. All of them are looked at nevertheless. */
export const MAX_COMMAND_PARTS = 50;
/** Commands that are arguments of commands, and so on. */
const MAX_WRAPPERS = 8;

/** One command that a command line runs, in the form that rules are matched with. */
export interface CommandPart {
  /** The program and its arguments. */
  words: readonly Word[];
  /** Variables that it sets for itself, or for what follows. */
  assignments: readonly Word[];
  /** Assignments, program and arguments; in quotes where they need some. */
  text: string;
  /** The same with `OPEN` for what is not known of it: only `*` in a rule stands for that. */
  shape: string;
  /** The same as a person might write it in a rule that forbids: bare name, no quotes. */
  plain: readonly string[];
  /** What each of `plain` surely begins with, where a word is not known. */
  known?: readonly string[];
  /** The same, if a word behind an option before the first operand is the value of that. */
  behindValues?: readonly string[];
  /** What it may run of what it is given: for rules that forbid, in the form of `plain`. */
  guesses: readonly string[];
  /** What is written in it, of which it may make a command in its own way. */
  hints?: string;
  /** What is written in it and goes elsewhere: to a file, or to the next command. */
  passesOn?: string;
  /** It runs a file, or what it reads. */
  runsText: boolean;
  /** It runs what files of the project say, as `make` does. */
  runsFiles: boolean;
  redirects: readonly Redirect[];
  /** How it can do more than it seems to. */
  escapes: readonly Escape[];
  /** It does nothing by itself: no rule is needed. */
  inert: boolean;
  /** It changes the folder that later parts run in. */
  moves: boolean;
  /** Where it may run, from the workspace, if that was found out. */
  folders?: readonly string[];
}

/** A command, and where it may run. */
export interface PlacedCommand extends SimpleCommand {
  /** From the workspace. */
  folders: readonly string[];
}

/** Says what commands may be once the shell has expanded their words. */
export interface Expander {
  /** Called with what a loop goes through, before its commands. */
  loop(words: readonly ListedWord[]): void;
  /** Called with each command, in their order, and with each that another one runs. */
  expand(command: SimpleCommand): readonly PlacedCommand[];
}

export interface CommandParts {
  parts: CommandPart[];
  /** What loops go through. */
  listed: ListedWord[];
  /** Why these may not be all of it: no rule allows it then. */
  unclear?: string;
  /** Texts of which only the beginning could be read. */
  unread: string[];
  /** It changes folders: what its paths mean is not known. */
  moves: boolean;
  steps: number;
}

/**
 * All that a command line would run: also in substitutions, and as arguments of commands
 * that run others (`env`, `xargs`, `find -exec`, `bash -c`, ...). `isPosix`: a shell other than
 * bash reads it, and what that may take for something else is unclear. `expander`: words are expanded by it.
 */
export function commandParts(
  text: string,
  { isPosix = false, expander }: { isPosix?: boolean; expander?: Expander } = {},
): CommandParts {
  const found: CommandParts = { parts: [], listed: [], unread: [], moves: false, steps: 0 };
  const doubt = isPosix ? describePosixDoubt(text) : undefined;
  addScript(found, text, { depth: 0, groups: [], expander });
  if (doubt !== undefined) found.unclear ??= doubt;
  if (text.length > MAX_COMMAND_CHARS) {
    found.unclear = `It has more than ${MAX_COMMAND_CHARS} characters.`;
  } else if (found.parts.length > MAX_COMMAND_PARTS) {
    found.unclear = `It has more than ${MAX_COMMAND_PARTS} parts.`;
  } else if (found.parts.length === 0) {
    found.unclear ??= "There is nothing to run in it.";
  }
  return found;
}

/** What is around a command: others that run it, and groups. */
interface Around {
  depth: number;
  groups: readonly Group[];
  expander: Expander | undefined;
}

function addScript(found: CommandParts, text: string, around: Around): void {
  const { commands, listed, unclear, unread, steps } = parseCommandLine(text);
  const { groups, expander } = around;
  found.steps += steps;
  found.listed.push(...listed);
  if (unclear !== undefined) found.unclear ??= unclear;
  if (unread !== undefined) found.unread.push(unread);
  for (const [index, command] of commands.entries()) {
    const loops = listed.filter(({ at }) => at === index);
    expander?.loop(loops.map((word) => ({ ...word, groups: [...groups, ...word.groups] })));
    const placed = { ...command, groups: [...groups, ...command.groups] };
    for (const each of expander?.expand(placed) ?? [placed]) addCommand(found, each, around);
  }
}

const INERT = new Set(["true", "false", ":", "exit", "break", "continue", "[", "[[", "test"]);
/** Run what they are given as if it stood in their place. */
const SAME_SHELL = new Set(["eval", "trap"]);
const MOVERS = new Set(["cd", "pushd", "popd"]);

function addCommand(
  found: CommandParts,
  command: SimpleCommand | PlacedCommand,
  around: Around,
): void {
  const { depth, expander } = around;
  const { assignments, words, redirects } = command;
  const [first, ...args] = words;
  const program = first ? baseName(first.text) : "";
  if (first && (!first.literal || /[\s\\]/.test(first.text) || first.text === "")) {
    found.unclear ??= `It is unclear which command "${first.text}" is.`;
  }
  const moves = MOVERS.has(program);
  found.moves ||= moves;
  const wrapped = first?.literal ? unwrap(program, args, redirects) : undefined;
  if (wrapped?.unclear !== undefined) found.unclear ??= wrapped.unclear;
  if (wrapped && depth >= MAX_WRAPPERS) {
    found.unclear ??= "Commands run commands that run commands, too deeply.";
  } else {
    const inside = { ...around, depth: depth + 1 };
    for (const inner of wrapped?.commands ?? []) {
      const run = { ...command, assignments: [], words: [...inner], redirects: [] };
      for (const each of expander?.expand(run) ?? [run]) addCommand(found, each, inside);
    }
    if (wrapped?.script !== undefined) {
      const shell: Group = SAME_SHELL.has(program)
        ? { kind: program === "trap" ? "function" : "branch", joint: "" }
        : { kind: "subshell", joint: "", isProcess: true };
      addScript(found, wrapped.script, { ...inside, groups: [...command.groups, shell] });
    }
  }
  const escapes = [
    ...findSettings(assignments),
    ...(first?.literal && !wrapped ? findEscapes(program, args) : []),
  ];
  const runs = escapes.some((escape) => escape.runs);
  const isGuessed = runs || (wrapped?.unclear !== undefined && WRAPPERS.has(program));
  const assigned = assignments.map(({ text }) => text);
  const texts = [...assigned, ...args.map(({ text }) => text)];
  const inputs = redirects.flatMap(({ kind, target, written: body }) =>
    kind === "input" ? [body ?? target.text] : [],
  );
  // A word that expands may be the option by which it runs what follows.
  const isOpen = escapes.some(({ word }) =>
    args.some(({ text, literal }) => !literal && text === word),
  );
  const isQuiet = !runs && !isOpen && !wrapped && assignments.length === 0 && QUIET.has(program);
  const hasSubcommand =
    SUBCOMMANDS.has(program) && assignments.length === 0 && !texts[0]?.startsWith("-");
  const named = hasSubcommand ? texts.slice(1) : texts;
  found.parts.push({
    words,
    assignments,
    text: [...assignments, ...words].map(written).join(" "),
    shape: [...assignments, ...words].map(describeShape).join(" "),
    ...plainForms(words, program),
    behindValues: formsBehindValues(program, args),
    guesses: isGuessed && depth < MAX_WRAPPERS ? guessCommands(program, args, depth) : [],
    ...(!isQuiet && { hints: (wrapped ? assigned : [...named, ...inputs]).join("\n") }),
    ...(isQuiet && { passesOn: [...texts, ...inputs].join("\n") }),
    runsText:
      escapes.some(({ word }) => word === "-") ||
      (!wrapped && SHELLS.has(program) && args.length > 0) ||
      // Programs may be found elsewhere from then on.
      texts.some((text) => /^PATH\+?=/.test(text)) ||
      (first?.text.includes("/") ?? false),
    runsFiles: BUILDERS.has(program),
    redirects: [...redirects, ...teeFiles(program, args)],
    escapes,
    moves,
    ...("folders" in command && { folders: command.folders }),
    inert:
      escapes.length === 0 &&
      assignments.length === 0 &&
      (words.length === 0 ||
        (wrapped?.alone === false && isSystemProgram(first?.text ?? "")) ||
        (INERT.has(program) && first?.text === program)),
  });
}

/** Print, compare or move what they are given, and never run it. */
const QUIET = new Set(
  (
    "echo printf cat ls head tail wc grep egrep fgrep rg ag cut paste tr sort uniq shuf diff cmp comm " +
    "join test [ [[ true false : cd pushd popd pwd mkdir rmdir touch cp mv ln chmod chown stat file " +
    "du df date basename dirname realpath readlink which type whereis jq tee sed awk gawk git sleep " +
    "seq exit return break continue set shopt curl wget tree column " +
    "fold fmt nl rev tac sha256sum md5sum base64 xxd od strings find fd"
  ).split(" "),
);

/** Run what files of the project say. */
const BUILDERS = new Set(
  "make gmake just rake ninja npm yarn pnpm bun deno cargo gradle mvn tox nox".split(" "),
);

/** The word behind them is a command of their own. */
const SUBCOMMANDS = new Set(
  (
    "npm yarn pnpm bun cargo go pip pip3 uv poetry gem bundle composer dotnet gh hub glab hg svn jj " +
    "apt apt-get brew dnf yum pacman apk snap flatpak aws gcloud az terraform helm heroku fly"
  ).split(" "),
);

/** Behind which of its words a program expects the command that it runs. Others: from the first on. */
const COMMAND_BEHIND: ReadonlyMap<string, RegExp> = new Map([
  ["git", /^run$/],
  ...["npm", "pnpm", "yarn"].map((name): [string, RegExp] => [name, /^(?:exec|x|dlx|--)$/]),
  ...["docker", "podman", "kubectl"].map((name): [string, RegExp] => [name, /^(?:run|exec|--)$/]),
]);

/** Of many arguments only these are tried as the beginning of a command, and as its words. */
const MAX_GUESSES = 100;

/** What a program may run of its arguments: each of them may begin a command, or be a script. */
function guessCommands(program: string, args: readonly Word[], depth: number): string[] {
  const texts = args.map(({ text }) => text);
  const behind = COMMAND_BEHIND.get(program);
  const isRunner = runsArguments(program) || WRAPPERS.has(program);
  const before = behind ? texts.findIndex((text) => behind.test(text)) : -1;
  const from = (behind && before >= 0) || (!behind && isRunner) ? before + 1 : texts.length;
  const tails = texts
    .slice(from, from + MAX_GUESSES)
    .map((name, index) =>
      [baseName(name), ...texts.slice(from + index + 1, from + index + MAX_GUESSES)].join(" "),
    );
  const scripts = texts
    .map((text) => text.replace(/^-{0,2}[\w.-]+=/, ""))
    .filter((text) => /\s/.test(text))
    .slice(0, MAX_GUESSES)
    .flatMap((script) => {
      const inner: CommandParts = { parts: [], listed: [], unread: [], moves: false, steps: 0 };
      addScript(inner, script, { depth: depth + 1, groups: [], expander: undefined });
      return inner.parts.flatMap(({ plain, guesses }) => [...plain, ...guesses]);
    });
  return [...tails, ...scripts];
}

/** The forms that a forbidding rule is matched with, and what is known of them. */
function plainForms(words: readonly Word[], program: string): Pick<CommandPart, "plain" | "known"> {
  const texts = words.map(({ text }) => text);
  const [name = "", ...rest] = texts;
  const isOption = (text: string): boolean => /^[-+]./.test(text);
  const operand = rest.findIndex((text) => !isOption(text));
  // With and without the options before the first operand: "git --no-pager push" pushes.
  const forms = operand > 0 ? [rest, rest.slice(operand)] : [rest];
  const names = name === program ? [name] : [name, program];
  const plain = names.flatMap((each) => forms.map((form) => [each, ...form].join(" ")));
  const unknown = words.findIndex(({ literal }) => !literal);
  if (unknown < 0) return { plain };
  const prefix = words[unknown]?.prefix ?? "";
  if (unknown === 0) return { plain, known: [prefix] };
  const before = texts.slice(1, unknown);
  const starts = before.length > 0 && before.every(isOption) ? [before, []] : [before];
  const known = names.flatMap((each) => starts.map((start) => [each, ...start, prefix].join(" ")));
  return { plain, known };
}

/** What a command may be where options before its first operand have values: `npm -w a publish`. */
function formsBehindValues(program: string, args: readonly Word[]): string[] {
  const texts = args.map(({ text }) => text);
  const forms: string[] = [];
  for (let at = 0; at < Math.min(texts.length, MAX_GUESSES); at++) {
    if (!texts[at]?.startsWith("-")) break;
    if (texts[at + 1]?.startsWith("-") !== false) continue;
    at++;
    forms.push([program, ...texts.slice(at + 1)].join(" "));
  }
  return forms;
}

/** A word as it may stand in a command line: two that differ never look the same. */
function written({ text, literal }: Word): string {
  if (!literal || /^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Not in a command line, so that no text in a rule is taken for it. */
const OPEN = "\0";

/** A word for rules that allow: what it expands to may be anything behind its beginning. */
function describeShape(word: Word): string {
  if (word.literal) return written(word);
  return /^[\w@%+=:,./-]*$/.test(word.prefix) ? `${word.prefix}${OPEN}` : OPEN;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Whether a program is the one that its name says, and no file of the workspace. */
function isSystemProgram(path: string): boolean {
  return /^(?:(?:\/usr)?\/bin\/)?[^/]+$/.test(path);
}

/** `tee` is a redirection with another name. */
function teeFiles(program: string, args: readonly Word[]): Redirect[] {
  if (program !== "tee") return [];
  const appends = args.some(({ text }) => /^-\w*a|^--a/.test(text));
  return args
    .filter(({ text }) => !text.startsWith("-"))
    .map((target) => ({ kind: "write", target, ...(appends && { appends }) }));
}

/** What a command runs that is given to it. */
interface Wrapped {
  commands?: readonly (readonly Word[])[];
  script?: string | undefined;
  unclear?: string | undefined;
  /** The wrapper has to be allowed itself, not only what it runs. */
  alone: boolean;
}

interface Wrapper {
  /** Short options without and with a value. */
  flags?: string;
  valued?: string;
  long?: readonly string[];
  /** Arguments before the command. */
  operands?: number;
  assignments?: boolean;
  alone?: boolean;
}

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  [
    "env",
    { flags: "i0v", valued: "u", long: ["--ignore-environment"], assignments: true, alone: true },
  ],
  ["sudo", { flags: "EHnbkKPSA", valued: "ugpCThDRrt", assignments: true, alone: true }],
  ["doas", { flags: "n", valued: "uC", alone: true }],
  ["nice", { flags: "0123456789", valued: "n" }],
  [
    "timeout",
    {
      flags: "v",
      valued: "ks",
      long: ["--foreground", "--preserve-status", "--verbose"],
      operands: 1,
    },
  ],
  ["nohup", {}],
  ["setsid", { flags: "cfw" }],
  ["stdbuf", { valued: "ioe" }],
  ["ionice", { flags: "t", valued: "cn" }],
  ["builtin", {}],
  ["exec", { flags: "cl", valued: "a", alone: true }],
  ["time", { flags: "pv", assignments: true }],
  ["busybox", {}],
  ["toybox", {}],
]);

const OTHER_SHELLS = new Set(["zsh", "ksh", "mksh", "fish", "csh", "tcsh"]);
const SHELLS = new Set(["sh", "bash", "dash", "ash", "rbash", ...OTHER_SHELLS]);
const HARMLESS_SHELL_OPTIONS = new Set(["--norc", "--noprofile", "--login", "--posix"]);
/** Names behind `-o` that leave the meaning of a line as it is. */
const PLAIN_SHELL_SETTINGS = new Set(
  "errexit errtrace functrace nounset pipefail posix verbose xtrace noglob noclobber".split(" "),
);
const UNKNOWN: Word = { text: "{}", literal: false, prefix: "" };

function unwrap(
  program: string,
  args: readonly Word[],
  redirects: readonly Redirect[],
): Wrapped | undefined {
  if (SHELLS.has(program)) return unwrapShell(program, args, redirects);
  const wrapper = WRAPPERS.get(program);
  if (wrapper) return unwrapOptions(program, wrapper, args);
  switch (program) {
    case "command":
      // With these it only prints what the command is.
      if (/^-[vV]$/.test(args[0]?.text ?? "")) return undefined;
      return unwrapOptions(program, { flags: "p" }, args);
    case "eval":
      return unwrapText(program, withoutDashes(args));
    case "trap":
      return { ...unwrapText(program, withoutDashes(args).slice(0, 1)), alone: true };
    case "watch": {
      const inner = unwrapOptions(program, { flags: "bcdegtw", valued: "n" }, args);
      const text = unwrapText(program, inner?.commands?.[0] ?? []);
      const differs = isBashOnly(text.script ?? "") ? '"watch" runs it by "sh".' : undefined;
      return { ...text, unclear: inner?.unclear ?? text.unclear ?? differs };
    }
    case "xargs": {
      const options = { flags: "0rtxpo", valued: "ILnPsdEa" };
      const inner = unwrapOptions(program, options, args);
      const replaces = args.some(({ text }) => /^-[Ii]|^--replace/.test(text));
      const words = inner?.commands?.[0]?.map((word) =>
        replaces && word.text === "{}" ? UNKNOWN : word,
      );
      const isFilled = words?.includes(UNKNOWN) ?? false;
      return {
        ...(words && words.length > 0 && { commands: [isFilled ? words : [...words, UNKNOWN]] }),
        unclear: '"xargs" takes arguments from elsewhere.',
        alone: true,
      };
    }
    case "parallel": {
      const command = args.slice(args.findIndex(({ text }) => !text.startsWith("-")));
      return {
        commands: [[...command, UNKNOWN]],
        unclear: '"parallel" puts commands together.',
        alone: true,
      };
    }
    case "find":
    case "fd":
      return unwrapSearch(program, args);
    default:
      return undefined;
  }
}

/** Options, then a command. Without a command it is one itself. */
function unwrapOptions(
  program: string,
  wrapper: Wrapper,
  args: readonly Word[],
): Wrapped | undefined {
  const { flags = "", valued = "", long = [], operands = 0, assignments, alone = false } = wrapper;
  const strange = (word: Word): Wrapped => {
    // The word behind it may be its value, or an operand of the program.
    const rest = args.slice(args.indexOf(word) + 1);
    return {
      commands: [rest, rest.slice(1)].filter((words) => words.length > 0),
      unclear: `What "${word.text}" means to "${program}" is not known.`,
      alone: true,
    };
  };
  let at = 0;
  for (; at < args.length; at++) {
    const word = args[at];
    if (!word) break;
    const { text, literal } = word;
    if (!literal) return strange(word);
    if (text === "--") {
      at++;
      break;
    }
    // Another way to write "-i".
    if (program === "env" && text === "-") continue;
    if (!text.startsWith("-") || text === "-") break;
    if (long.includes(text)) continue;
    const letters = /^-([^-].*)$/s.exec(text)?.[1];
    if (letters === undefined) return strange(word);
    const place = [...letters].findIndex((letter) => !flags.includes(letter));
    if (place < 0) continue;
    if (!valued.includes(letters.charAt(place))) return strange(word);
    if (place === letters.length - 1) at++;
    const value = args[at];
    if (value && !value.literal) return strange(value);
  }
  const first = at;
  // The shell itself reads what is behind "time": "1x=" is a program there.
  const assignment = program === "time" ? /^[A-Za-z_]\w*\+?=/ : /^[^=-][^=]*=/;
  while (assignments && assignment.test(args[at]?.text ?? "")) at++;
  const expanded = args.slice(at, at + operands).find(({ literal }) => !literal);
  if (expanded) return strange(expanded);
  const words = args.slice(at + operands);
  if (words.length === 0) return undefined;
  const sets = at > first ? `"${program}" sets variables for what it runs.` : undefined;
  return { commands: [words], unclear: sets, alone };
}

function unwrapShell(
  program: string,
  args: readonly Word[],
  redirects: readonly Redirect[],
): Wrapped | undefined {
  let at = 0;
  let letters = "";
  let strange = OTHER_SHELLS.has(program) ? `"${program}" has a language of its own.` : undefined;
  for (; at < args.length; at++) {
    const { text = "", literal = true } = args[at] ?? {};
    if (literal && !/^[-+]./.test(text)) break;
    if (literal && HARMLESS_SHELL_OPTIONS.has(text)) continue;
    if (!literal || !/^[-+][A-Za-z]+$/.test(text)) {
      strange ??= `What "${text}" means to "${program}" is not known.`;
      continue;
    }
    letters += text.slice(1);
    // Each "o" takes the name of an option along.
    const names = text.replace(/[^oO]/g, "").length;
    const isPlain = args
      .slice(at + 1, at + 1 + names)
      .every((name) => name.literal && PLAIN_SHELL_SETTINGS.has(name.text));
    if (!isPlain || /[kHO]/.test(text)) {
      strange ??= `The options of "${program}" may change what a line means.`;
    }
    at += names;
  }
  // Ends the options, as "--" does.
  if (args[at]?.text === "-") at++;
  const next = args[at];
  if (letters.includes("c") && next) {
    const text = unwrapText(program, [next]);
    if (!program.endsWith("bash") && isBashOnly(next.text)) {
      strange ??= `"${program}" may not read it as bash does.`;
    }
    return { ...text, unclear: strange ?? text.unclear };
  }
  if (next && !letters.includes("s") && !/^\/(?:dev|proc)\//.test(next.text)) {
    return strange === undefined ? undefined : { unclear: strange, alone: true };
  }
  const input = redirects.findLast(({ kind }) => kind === "input");
  return {
    script: input && (input.body ?? input.written ?? input.target.text),
    unclear: `"${program}" runs what it reads.`,
    alone: true,
  };
}

/** Whether another shell may read a script differently, or puts one together that it may. */
function isBashOnly(script: string): boolean {
  return describePosixDoubt(script) !== undefined;
}

/** What follows the end of the options, if that is marked. */
function withoutDashes(args: readonly Word[]): readonly Word[] {
  return args[0]?.text === "--" ? args.slice(1) : args;
}

/** Words that are a command line together. */
function unwrapText(program: string, words: readonly Word[]): Wrapped {
  const script = words.map(({ text }) => text).join(" ");
  if (words.every(({ literal }) => literal)) return { script, alone: false };
  return { script, unclear: `What "${program}" runs is put together elsewhere.`, alone: true };
}

const SEARCH_RUNS = /^(?:-exec(?:dir)?|-ok(?:dir)?|-x|-X|--exec(?:-batch)?)$/;

function unwrapSearch(program: string, args: readonly Word[]): Wrapped | undefined {
  const commands: Word[][] = [];
  let open: Word[] | undefined;
  for (const word of args) {
    const { text, literal } = word;
    if (open && (text === ";" || text === "+")) open = undefined;
    else if (open) open.push(text.includes("{}") ? UNKNOWN : word);
    else if (literal && SEARCH_RUNS.test(text)) commands.push((open = []));
  }
  if (commands.length === 0) return undefined;
  return {
    commands: commands.map((words) => (words.includes(UNKNOWN) ? words : [...words, UNKNOWN])),
    unclear: `"${program}" runs a command on what it finds.`,
    alone: true,
  };
}
