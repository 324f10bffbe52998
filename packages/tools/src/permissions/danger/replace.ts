import { readFileSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import type { CommandPart } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import type { Drafts } from "../follow/drafts.ts";
import type { Danger } from "./explain.ts";
import { searchesMadeAgain } from "../follow/made-again.ts";
import { findLoss, findRemoval } from "./loss.ts";
import { hasOption, listOperands } from "./options.ts";
import { createBudget, findBySearch, isWideSearch } from "../follow/search.ts";
import { ifThere } from "../follow/if-there.ts";

/** Where a command runs, and what its line makes. */
export interface LossGround {
  root: string;
  cwd: string;
  since: number;
  drafts: Drafts;
}

/** What a command removes, replaces or empties for good, as the reason for a question. */
export function findLost(
  program: string,
  { words, redirects }: Pick<CommandPart, "words" | "redirects">,
  context: LossGround,
): Danger | undefined {
  const args = words.slice(1);
  const removal =
    program === "find"
      ? findSearched(args, context)
      : program === "tar"
        ? findExtracted(args, context)
        : findRemoval(program, args);
  const removed = removal && findOldLoss(removal, context, ["moved"], args);
  if (removed !== undefined)
    return { kind: "destructive", why: `"${program} ${removed}" cannot be undone.` };
  const written = redirects.flatMap(({ kind, target, appends }) =>
    kind === "write" && !appends ? [target] : [],
  );
  const isEmpty = empties(program, args);
  const targets = [
    // Of a name that is not known, one that is emptied is asked about.
    ...written.filter(({ literal }) => literal || isEmpty),
    ...listReplaced(program, args),
    ...listSaved(program, args, redirects),
    ...listEdited(program, args).filter(
      (word) => isLarge(word, context) || (program === "sed" && isCleared(word, args, context)),
    ),
  ];
  const replaced = findThrough(targets, context);
  return replaced === undefined
    ? undefined
    : {
        kind: "destructive",
        why: `${isEmpty ? "Emptying" : "Replacing"} "${replaced}" cannot be undone.`,
      };
}

/** Whether a command removes, replaces or empties files. */
export function mayLose({ words, redirects }: Pick<CommandPart, "words" | "redirects">): boolean {
  const program = words[0]?.text ?? "";
  const args = words.slice(1);
  return (
    redirects.some(({ kind }) => kind === "write") ||
    (findRemoval(program, args)?.targets ?? listReplaced(program, args)).length > 0
  );
}

/** The first of some paths that cannot be brought back once it is removed, or written from its beginning. */
export function findLostPaths(
  paths: readonly string[],
  isRemoval: boolean,
  context: LossGround,
): string | undefined {
  const targets = paths.map((text): Word => {
    const at = text.search(/[*?[]/);
    return { text, literal: at < 0, prefix: at < 0 ? text : text.slice(0, at) };
  });
  return isRemoval
    ? findOldLoss({ targets, isRecursive: true }, context, ["moved"])
    : findThrough(
        targets.filter(({ literal }) => literal),
        context,
      );
}

/** Prints nothing, so that a redirection leaves nothing of a file. */
function empties(program: string, [first]: readonly Word[]): boolean {
  return /^(?::|true|)$/.test(program) || (program === "cat" && first?.text === "/dev/null");
}

/** Files that a program writes from their beginning. */
function listReplaced(program: string, words: readonly Word[]): Word[] {
  const args = words.map(({ text }) => text);
  const operands = words.filter(({ text }) => !/^-./.test(text));
  switch (program) {
    case "cp":
      // What `xargs` puts in may stand there twice.
      return new Set(operands.map(({ text }) => text)).size === 2
        ? operands.slice(1).filter(({ literal }) => literal)
        : [];
    case "sort":
    case "shuf": {
      const output = findValue(words, /^-\w*o$/, /^(?:-\w*o|--output=)(.+)$/);
      const isInput = args.filter((arg) => arg === output?.text).length > 1;
      return output && !isInput ? [output] : [];
    }
    case "uniq":
      return operands.slice(1, 2);
    case "script":
      return operands.slice(0, 1);
    case "objcopy":
    case "strip":
      return operands.slice(-1);
    case "iconv": {
      const output = findValue(words, /^-o$|^--output$/, /^(?:-o|--output=)(.+)$/);
      return output ? [output] : [];
    }
    case "tar":
      return listArchive(words);
    case "find": {
      const at = args.findIndex((arg) => /^-f(?:print0?|printf|ls)$/.test(arg));
      return at < 0 ? [] : words.slice(at + 1, at + 2);
    }
    case "python3":
    case "python":
      return /^(?:zipfile|tarfile)$/.test(args[args.indexOf("-m") + 1] ?? "") &&
        args.some((arg) => /^(?:-c|--create)$/.test(arg))
        ? operands.slice(1, 2)
        : [];
    // Of a file that is edited nothing is left.
    case "perl":
      return isEdit(args) &&
        (!args.some((arg) => /^-\w*p/.test(arg)) || args.some((arg) => /\$_\s*=(?![~=])/.test(arg)))
        ? operands.slice(1)
        : [];
    case "gawk":
    case "awk": {
      const [code, ...files] = operands.filter(({ text }) => text !== "inplace");
      const isPrinted = /\bprint|(?:^|[;}\s])1\s*$/.test(code?.text ?? "");
      return args.includes("inplace") && !isPrinted ? files : [];
    }
    case "truncate":
      return operands.filter(({ text }) => !/^[+-]?\d+[KMG]?$/.test(text));
    case "git": {
      const [subcommand] = listOperands(program, args);
      const short = subcommand === "archive" ? /^(?:-o|--output)$/ : /^--output$/;
      const output = findValue(words, short, /^--output=(.+)$/);
      const isForced = subcommand === "mv" && hasOption(args, "--force", /f/);
      const isBundle = subcommand === "bundle" && args.includes("create");
      return output
        ? [output]
        : isForced
          ? operands.slice(-1)
          : isBundle
            ? operands.slice(2, 3)
            : [];
    }
    default:
      return [];
  }
}

function isEdit(args: readonly string[]): boolean {
  return args.some((arg) => /^-[a-zA-Z]*i|^--in-place/.test(arg));
}

/** The archive that `tar` writes, if it does. */
function listArchive(words: readonly Word[]): Word[] {
  const [first] = words;
  const bundle = first && /^-?[a-zA-Z]*c[a-zA-Z]*$/.test(first.text) ? first.text : "";
  const isNew = bundle !== "" || words.some(({ text }) => /^-\w*c\w*$|^--create$/.test(text));
  if (!isNew) return [];
  if (bundle.endsWith("f")) return words.slice(1, 2);
  const given = findValue(words, /^-\w*f$|^--file$/, /^--file=(.+)$/);
  return given ? [given] : [];
}

/** What an archive may replace that is not there yet, so that it cannot be said what is in it. */
function findExtracted(words: readonly Word[], context: LossGround): Removal | undefined {
  const [first] = words;
  const bundle = first && /^-?[a-zA-Z]*x[a-zA-Z]*$/.test(first.text) ? first.text : "";
  if (bundle === "" && !words.some(({ text }) => /^-\w*x\w*$|^--extract$/.test(text)))
    return undefined;
  const archive = bundle.endsWith("f")
    ? words[1]
    : findValue(words, /^-\w*f$|^--file$/, /^--file=(.+)$/);
  const path = archive?.text ?? "-";
  const absolute = isAbsolute(path) ? path : join(context.root, context.cwd, path);
  if (path !== "-" && ifThere(() => statSync(absolute))?.isFile()) return undefined;
  const folder = findValue(words, /^-C$|^--directory$/, /^(?:-C|--directory=)(.+)$/);
  const here: Word = { text: ".", literal: true, prefix: "." };
  return { targets: [folder ?? here], isRecursive: true };
}

/** Files that an editor without a screen writes from their beginning, or empties. */
function listSaved(
  program: string,
  words: readonly Word[],
  redirects: CommandPart["redirects"],
): Word[] {
  if (!/^(?:ed|ex|vi|vim|nvim)$/.test(program)) return [];
  const inputs = redirects.flatMap(({ kind, body, target }) =>
    kind === "input" ? [body ?? target.text] : [],
  );
  const commands = [
    ...inputs.flatMap((text) => text.split(/\n|\\n/)),
    ...words.map(({ text }) => text),
  ];
  const saved = commands.flatMap((text) => /^w!?\s+(\S+)$/.exec(text.trim())?.[1] ?? []);
  const isEmptied = commands.some((text) => /^(?:[%,]|1,\$|[gv]\/.*\/)d$/.test(text.trim()));
  const files = isEmptied ? words.filter(({ text }) => !text.startsWith("-")) : [];
  return [...files, ...saved.map((text): Word => ({ text, literal: true, prefix: text }))];
}

/** A rewind keeps no larger files. */
const MAX_KEPT_BYTES: number = 1024 * 1024;

/** Files that a program edits in their place: a rewind brings them back. */
function listEdited(program: string, words: readonly Word[]): Word[] {
  const files = words.filter(({ text, literal }) => literal && !text.startsWith("-"));
  if (/^(?:ed|ex)$/.test(program)) return files;
  if (program !== "sed" && program !== "perl") return [];
  if (!words.some(({ text }) => /^-[a-zA-Z]*i|^--in-place/.test(text))) return [];
  return files;
}

function isLarge({ text }: Word, { root, cwd }: LossGround): boolean {
  const path = isAbsolute(text) ? text : join(root, cwd, text);
  return (ifThere(() => statSync(path))?.size ?? 0) > MAX_KEPT_BYTES;
}

/** Whether a script of sed leaves no line of a file as it was. */
function isCleared({ text }: Word, words: readonly Word[], { root, cwd }: LossGround): boolean {
  const path = isAbsolute(text) ? text : join(root, cwd, text);
  const stats = ifThere(() => statSync(path));
  const isSmall = stats?.isFile() === true && stats.size <= MAX_KEPT_BYTES;
  const lines = isSmall
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
  const isQuiet = words.some((word) => /^-[a-zA-Z]*n|^--quiet$|^--silent$/.test(word.text));
  return words.some(({ text: script }) => clears(script, lines, isQuiet));
}

/** The same for a script of one command. */
function clears(script: string, lines: readonly string[], isQuiet: boolean): boolean {
  if (/^(?:1,\$)?d$|^(?:1,\$)?c(?:\\|\s|$)|^s(\W)\^?\.\*\$?\1/.test(script)) return true;
  const [, pattern, not, command] = /^\/((?:[^/\\]|\\.)+)\/(!?)([dp])$/.exec(script) ?? [];
  if (pattern === undefined || (command === "p" && !isQuiet)) return false;
  // A pattern of which it cannot be said how long a comparison takes.
  if (/\)\\?[*+{]/.test(pattern)) return true;
  const keepsFound = (command === "p") !== (not === "!");
  try {
    const expression = new RegExp(pattern);
    return lines.every((line) => expression.test(line) !== keepsFound);
  } catch {
    // No pattern of ours: the file may be empty then.
    return true;
  }
}

/** The value of an option, behind it or in the same word. */
function findValue(words: readonly Word[], behind: RegExp, inside: RegExp): Word | undefined {
  for (const [index, { text, literal }] of words.entries()) {
    if (behind.test(text)) return words[index + 1];
    const value = literal ? inside.exec(text)?.[1] : undefined;
    if (value !== undefined) return { text: value, literal: true, prefix: value };
  }
  return undefined;
}

/** What `find -delete` removes. */
function findSearched(words: readonly Word[], context: LossGround): ReturnType<typeof findRemoval> {
  const args = words.map(({ text }) => text);
  if (!args.includes("-delete") || args.includes("-empty")) return undefined;
  if (searchesMadeAgain(args)) return undefined;
  const isKnown = words.every(({ literal }) => literal) && !isWideSearch(args, context.cwd);
  const found = isKnown ? findBySearch(args, { ...context, budget: createBudget() }) : undefined;
  if (found) {
    const targets = found.map(({ path }): Word => ({ text: path, literal: true, prefix: path }));
    return { targets, isRecursive: false };
  }
  const end = args.findIndex((arg) => arg.startsWith("-"));
  const folders = words.slice(0, end < 0 ? undefined : end);
  const here: Word = { text: ".", literal: true, prefix: "." };
  return { targets: folders.length === 0 ? [here] : folders, isRecursive: true };
}

type Removal = NonNullable<ReturnType<typeof findRemoval>>;

/** As `findLoss`, also for what had another name before the line. */
function findOldLoss(
  { targets, isRecursive }: Removal,
  { root, cwd, since, drafts }: LossGround,
  how: Parameters<Drafts["listSources"]>[1],
  /** What the command itself moves is not gone. */
  moved: readonly Word[] = [],
): string | undefined {
  const context = { root, since, cwd: join(root, cwd) };
  for (const target of targets) {
    const path = isAbsolute(target.text) ? join(target.text) : join(context.cwd, target.text);
    const own = new Set(
      moved.map(({ text }) => join(isAbsolute(text) ? text : join(context.cwd, text))),
    );
    const sources = target.literal
      ? drafts
          .listSources(path, how)
          .slice(1)
          .filter((source) => !own.has(source))
      : [];
    const old = sources.map((text): Word => ({ text, literal: true, prefix: text }));
    const lost = findLoss({ targets: [target, ...old], isRecursive }, context);
    if (lost !== undefined) return target.text;
  }
  return undefined;
}

/** The same for files that are written: through links. */
function findThrough(targets: readonly Word[], context: LossGround): string | undefined {
  const { root, cwd } = context;
  const here = join(root, cwd);
  for (const target of targets) {
    const path = isAbsolute(target.text) ? target.text : `${here}/${target.text}`;
    const real = target.literal
      ? context.drafts
          .listSources(join(path), ["moved", "linked"])
          .map(findRealFile)
          .filter((each) => each !== undefined)
      : [];
    const words = target.literal
      ? real
          .filter((each) => isBelow(root, each))
          .map((text): Word => ({ text, literal: true, prefix: text }))
      : [target];
    const lost = findOldLoss({ targets: words, isRecursive: false }, context, []);
    if (lost !== undefined) return target.literal ? relative(root, lost) : target.text;
  }
  return undefined;
}

/** Where the links of a path lead, if there is a file. */
function findRealFile(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // Nothing is there to be replaced.
    return undefined;
  }
}

function isBelow(root: string, path: string): boolean {
  return path.startsWith(`${root}/`);
}
