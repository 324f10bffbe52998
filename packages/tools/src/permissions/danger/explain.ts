import { existsSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { type CommandPart, type CommandParts, commandParts } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import { inspectCode, isInterpreter } from "./code.ts";
import { destroys, destroysFilesAlone } from "./destroys.ts";
import { findLoss, findRemoval, isMadeAgain, type LossContext } from "./loss.ts";
import { needsNetwork } from "./network.ts";
import { hasOption, listOperands } from "./options.ts";
import { findPlaceOutside, findWordOutside, type Ground, isOutside } from "./outside.ts";
import { findScript, judgeName } from "./scripts.ts";
import { changesSystem } from "./system.ts";

/** Why a person is asked about a command line. */
export interface Danger {
  kind: "network" | "outside" | "destructive" | "system" | "unclear";
  /** A sentence for people. */
  why: string;
}

/** Scripts that run scripts, and so on. */
const MAX_SCRIPTS = 4;

/** Where a command line runs, and since when the agent works there. */
export interface DangerContext extends Ground {
  /** The real path of the workspace. */
  root: string;
  since: number;
  /** Whatever it does to files of the workspace can be undone. */
  isUndoable?: boolean;
}

/**
 * Why a person is asked about a command line in mode `auto` although a sandbox confines it: it needs the
 * network, names something outside of the workspace, or cannot be undone. Nothing where it may run. A
 * table of what is known: the sandbox is what confines a command, this decides what a person wants to
 * know of before.
 */
export async function explainDanger(
  commands: readonly CommandParts[],
  targets: readonly string[],
  context: DangerContext,
): Promise<Danger | undefined> {
  for (const [index, { parts, listed }] of commands.entries()) {
    let here = context;
    const isStraight = runsInOrder(parts, targets[index] ?? "");
    for (const part of parts) {
      const why = await explainPart(part, parts, { ...here, depth: 0 });
      if (why !== undefined) return why;
      const outside = await findPlaceOutside([part], here);
      if (outside !== undefined)
        return { kind: "outside", why: `"${outside}" is outside of the workspace.` };
      const folder = isStraight && part.moves ? await findFolder(part, here) : undefined;
      if (folder !== undefined) here = { ...here, cwd: folder };
    }
    const looped = await findWordOutside(listed, context);
    if (looped !== undefined)
      return { kind: "outside", why: `"${looped}" is outside of the workspace.` };
  }
  return undefined;
}

/** Whether a folder that a part moves to holds for all that follow: no group, no branch, no pipe around it. */
function runsInOrder(parts: readonly CommandPart[], text: string): boolean {
  const isPlain = parts.every(({ moves, words }) => !moves || words[0]?.text === "cd");
  const isGrouped = /[()`{}]|(?:^|[;&|\s])(?:if|for|while|until|case|select)\s|\|\|/.test(text);
  return isPlain && !isGrouped && !/(?<![&])&(?![&>])|\bcd\s[^;&|\n]*\||\|\s*cd\b/.test(text);
}

/** Where `cd` leads, if that is a folder of the workspace. */
async function findFolder(
  { words: [, target] }: CommandPart,
  { cwd, workspace, root }: DangerContext,
): Promise<string | undefined> {
  if (!target?.literal) return undefined;
  const path = isAbsolute(target.text) ? target.text : join(cwd, target.text);
  const resolved = await workspace?.resolve(path).catch(() => undefined);
  if (!resolved?.exists) return undefined;
  return statSync(join(root, resolved.path)).isDirectory() ? resolved.path || "." : undefined;
}

interface Looked extends DangerContext {
  /** Scripts around it: what it names there is the project's, and not what the model wrote. */
  depth: number;
}

async function explainPart(
  part: CommandPart,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  const { words } = part;
  const [first, ...rest] = words;
  const isScript = context.depth > 0;
  if (!first) return isScript || context.isUndoable ? undefined : explainEmptied([part], context);
  if (!first.literal)
    return isScript
      ? undefined
      : { kind: "unclear", why: `It is unclear which command "${first.text}" is.` };
  const program = first.text.slice(first.text.lastIndexOf("/") + 1);
  const args = rest.map(({ text }) => text);
  const shown = `"${show(program, args)}"`;
  if (program === "git" && args.some((arg) => arg.startsWith("alias."))) {
    return { kind: "unclear", why: `${shown} gives a command another name.` };
  }
  const isLost = destroys(program, args) || (!isScript && discards(program, args, context));
  if (isLost && !(context.isUndoable && destroysFilesAlone(program, args))) {
    return { kind: "destructive", why: `${shown} cannot be undone.` };
  }
  if (changesSystem(program, args))
    return { kind: "system", why: `${shown} reaches beyond the workspace.` };
  if (needsNetwork(program, args) && !(await isInstalled(words, context))) {
    return { kind: "network", why: `${shown} needs the network.` };
  }
  return (
    (isScript || context.isUndoable ? undefined : explainRemoval(program, rest, line, context)) ??
    (await explainCode(part, program, line, context)) ??
    (await explainScript(program, words, context))
  );
}

/** The program and the word that says what it is to do. */
function show(program: string, args: readonly string[]): string {
  const [subcommand] = listOperands(program, args);
  return subcommand !== undefined && /^[\w-]+$/.test(subcommand)
    ? `${program} ${subcommand}`
    : program;
}

/** `git checkout` of files, which throws away what was changed in them. */
function discards(program: string, args: readonly string[], { root, cwd }: Looked): boolean {
  const [subcommand, ...operands] = listOperands(program, args);
  if (program !== "git" || subcommand !== "checkout" || args.some((arg) => /^-[bt]/.test(arg)))
    return false;
  if (hasOption(args, "--pathspec-from-file")) return true;
  return operands.some(
    (operand) => /^:|[*?[]/.test(operand) || existsSync(join(root, cwd, operand)),
  );
}

function explainRemoval(
  program: string,
  words: readonly Word[],
  line: readonly CommandPart[],
  context: Looked,
): Danger | undefined {
  const { root, since } = context;
  const loss: LossContext = { root, since, cwd: join(root, context.cwd) };
  const removal = program === "find" ? findSearched(words) : findRemoval(program, words);
  if (!removal) return empties(program, words) ? explainEmptied(line, context) : undefined;
  const targets = removal.targets.filter((word) => !isKnownRemoval(word, line));
  const lost = findLoss({ ...removal, targets }, loss);
  return lost === undefined
    ? undefined
    : { kind: "destructive", why: `"${show(program, [])} ${lost}" cannot be undone.` };
}

/** Prints nothing, so that a redirection leaves nothing of a file. */
function empties(program: string, words: readonly Word[]): boolean {
  return /^(?::|true)$/.test(program) || (program === "cat" && words[0]?.text === "/dev/null");
}

function explainEmptied(parts: readonly CommandPart[], context: Looked): Danger | undefined {
  const targets = parts
    .flatMap(({ redirects }) => redirects)
    .filter(({ kind }) => kind === "write")
    .map(({ target }) => target);
  const { root, since } = context;
  const lost = findLoss(
    { targets, isRecursive: false },
    { root, since, cwd: join(root, context.cwd) },
  );
  return lost === undefined
    ? undefined
    : { kind: "destructive", why: `Emptying "${lost}" cannot be undone.` };
}

/** What `find -delete` removes: all below its folders, unless it looks for what is made again. */
function findSearched(words: readonly Word[]): ReturnType<typeof findRemoval> {
  const args = words.map(({ text }) => text);
  if (!args.includes("-delete") || args.includes("-empty") || searchesMadeAgain(args))
    return undefined;
  const end = args.findIndex((arg) => arg.startsWith("-"));
  const targets = words.slice(0, end < 0 ? undefined : end);
  const here: Word = { text: ".", literal: true, prefix: "." };
  return { targets: targets.length === 0 ? [here] : targets, isRecursive: true };
}

function searchesMadeAgain(args: readonly string[]): boolean {
  const names = args.filter((_, index) => /^-i?name$/.test(args[index - 1] ?? ""));
  if (args.some((arg) => arg === "!" || arg === "-not")) return false;
  return names.length > 0 && names.every(isMadeAgain) && !args.includes("-o") === names.length < 2;
}

/** A word that stands for what a search finds, or for a file that the line itself has made. */
function isKnownRemoval({ text, literal }: Word, line: readonly CommandPart[]): boolean {
  if (literal) return false;
  if (text === "{}") {
    return line.some(
      ({ words: [first, ...rest] }) =>
        first?.text === "find" && searchesMadeAgain(rest.map((word) => word.text)),
    );
  }
  const name = /^"?\$\{?(\w+)\}?"?$/.exec(text)?.[1];
  return line.some(({ assignments }) =>
    assignments.some((word) => new RegExp(`^${name}="?(?:\\$\\(|\`)mktemp\\b`).test(word.text)),
  );
}

const INLINE = /^-[a-zA-Z]*[cepErR]$|^--(?:eval|print|run)|^-[ep]./;

async function explainCode(
  part: CommandPart,
  program: string,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  const [, ...rest] = part.words;
  const args = rest.map(({ text }) => text);
  if (program === "sed") return explainSed(args, context);
  const reads = args.every((arg) => arg.startsWith("-"));
  if (
    /^(?:bash|sh|dash|zsh|ksh)$/.test(program) &&
    reads &&
    !args.some((arg) => /^-\w*c|^--(?:version|help)$/.test(arg))
  ) {
    const isWritten = part.redirects.some(({ kind }) => kind === "input");
    return isWritten ? undefined : { kind: "unclear", why: `"${program}" runs what it reads.` };
  }
  if (!isInterpreter(program)) return undefined;
  const isAwk = program.endsWith("awk");
  const isInline = isAwk || args[0] === "eval" || args.some((arg) => INLINE.test(arg));
  if (!isInline && !reads) return undefined;
  const code = [
    part.hints ?? "",
    part.passesOn ?? "",
    ...(isInline ? [] : line.map((each) => each.passesOn ?? "")),
  ].join("\n");
  const use = inspectCode(code);
  if (use.needsNetwork)
    return { kind: "network", why: `The code for "${program}" needs the network.` };
  if (context.depth > 0) return undefined;
  if (use.usesHome)
    return {
      kind: "outside",
      why: `The code for "${program}" uses the home folder, which is outside of the workspace.`,
    };
  for (const path of use.paths) {
    const isMeant =
      /^\/[^/]|^~\//.test(path) ||
      (path.startsWith("../") && existsSync(join(context.root, context.cwd, path)));
    if (isMeant && (path.startsWith("~") || (await isOutside(path, context))))
      return { kind: "outside", why: `"${path}" is outside of the workspace.` };
  }
  if (use.removes && !context.isUndoable) {
    const targets = use.paths.map((text): Word => ({
      text,
      literal: !text.includes("*"),
      prefix: text.slice(0, text.indexOf("*")),
    }));
    const { root, since } = context;
    const lost = findLoss(
      { targets, isRecursive: true },
      { root, since, cwd: join(root, context.cwd) },
    );
    if (lost !== undefined)
      return { kind: "destructive", why: `Removing "${lost}" cannot be undone.` };
  }
  for (const command of use.commands) {
    const place = await findPlaceOutside(commandParts(command).parts, context);
    if (place !== undefined)
      return { kind: "outside", why: `"${place}" is outside of the workspace.` };
  }
  // The model wrote these as well.
  return explainLines(use.commands, { ...context, depth: -1 });
}

/** Files that a script of sed reads and writes. */
async function explainSed(args: readonly string[], context: Looked): Promise<Danger | undefined> {
  for (const arg of args) {
    const path = /(?:^|[\s;}/\d$])[rRwW]\s+((?:\/|\.\.\/)[^\s;}]+)/.exec(arg)?.[1];
    if (path !== undefined && (await isOutside(path, context)))
      return { kind: "outside", why: `"${path}" is outside of the workspace.` };
  }
  return undefined;
}

async function explainScript(
  program: string,
  words: readonly Word[],
  context: Looked,
): Promise<Danger | undefined> {
  if (program === "alias" || program === "env") {
    return explainLines(
      words.slice(1).map(({ text }) => text.replace(/^(?:[\w.-]+=|-S|--split-string=)/, "")),
      { ...context, depth: context.depth - 1 },
    );
  }
  const script = findScript(
    program,
    words.map(({ text }) => text),
    join(context.root, context.cwd),
  );
  if (!script) return undefined;
  const kind = judgeName(script.name);
  if (kind === "network")
    return { kind: "network", why: `"${script.name}" may reach other machines.` };
  if (kind === "destructive")
    return {
      kind: "destructive",
      why: `"${script.name}" may destroy what cannot be brought back.`,
    };
  return explainLines(script.lines, context);
}

/** The danger of what is run by something else. */
async function explainLines(
  lines: readonly string[],
  context: Looked,
): Promise<Danger | undefined> {
  if (context.depth >= MAX_SCRIPTS) return undefined;
  for (const line of lines) {
    const { parts } = commandParts(line);
    for (const part of parts) {
      const why = await explainPart(part, parts, { ...context, depth: context.depth + 1 });
      if (why !== undefined) return why;
    }
  }
  return undefined;
}

/** `npx` of a program that the project has installed fetches nothing. */
async function isInstalled(
  [program, name]: readonly Word[],
  { cwd, workspace }: Ground,
): Promise<boolean> {
  if (program?.text !== "npx" || !name?.literal) return false;
  if (/^--no(?:-install)?$/.test(name.text)) return true;
  if (!/^[\w.-]+$/.test(name.text)) return false;
  const path = join(cwd, "node_modules/.bin", name.text);
  return (await workspace?.resolve(path).catch(() => undefined))?.exists ?? false;
}
