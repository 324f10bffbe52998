import { existsSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { type CommandPart, type CommandParts, commandParts } from "../command/parts.ts";
import { parseCommandLine, type Word } from "../command/parse.ts";
import { isInterpreter } from "../follow/written.ts";
import { ATTACHED, findMentioned, inspectCode } from "./code.ts";
import { destroys, destroysFilesAlone } from "./destroys.ts";
import { Drafts } from "../follow/drafts.ts";
import { ANYWHERE, Flow } from "../follow/flow.ts";
import { createBudget, findByPattern, listFolders } from "../follow/search.ts";
import { findGrave } from "./grave.ts";
import { findHidden, isWideForPosix } from "./hides.ts";
import { findFollowedLink } from "./links.ts";
import { isOwnFile } from "./loss.ts";
import { isRemoteProgram, needsNetwork } from "./network.ts";
import { hasOption, listOperands } from "./options.ts";
import { findPlaceOutside, findWordOutside, type Ground, isOutside } from "./outside.ts";
import { findLost, findLostPaths, mayLose } from "./replace.ts";
import { findScript, judgeName } from "./scripts.ts";
import { changesSystem } from "./system.ts";
import { ifThere } from "../follow/if-there.ts";

/** Why a person is asked about a command line. */
export interface Danger {
  kind: "network" | "outside" | "destructive" | "system" | "unclear";
  /** A sentence for people. */
  why: string;
}

/** Scripts that run scripts, and so on. */
const MAX_SCRIPTS = 4;
/** Looks at a line, until all that is known of its variables is known. */
const MAX_LOOKS = 3;

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
  lines: readonly string[],
  context: DangerContext,
): Promise<Danger | undefined> {
  for (const line of lines) {
    const looked = { ...context, depth: 0, drafts: new Drafts(), known: new Map() };
    const danger = await explainLine(line, looked);
    const loss = findGraveLoss(line, looked);
    if (loss !== undefined)
      return {
        kind: "destructive",
        why: danger?.kind === "destructive" ? `${danger.why} ${loss}` : loss,
      };
    if (danger !== undefined) return danger;
  }
  return undefined;
}

/** What the worst command of a line destroys, wherever it stands in it. */
function findGraveLoss(line: string, context: Looked): string | undefined {
  const { parts } = followLine(line, new Flow(context, new Drafts()));
  for (const part of parts) {
    for (const cwd of part.folders ?? [context.cwd]) {
      if (cwd === ANYWHERE) continue;
      const grave = findGrave(part, { root: context.root, cwd });
      if (grave && !(context.isUndoable && grave.isFilesAlone)) return grave.loss;
    }
  }
  return undefined;
}

interface Looked extends DangerContext {
  /** Scripts around it. */
  depth: number;
  /** It is a file of the project: what that names is not what the model wrote. */
  isScript?: boolean;
  drafts: Drafts;
}

/** A command line that the model wrote, be it in a file. */
async function explainLine(text: string, context: Looked): Promise<Danger | undefined> {
  if (context.depth > MAX_SCRIPTS) return undefined;
  const flow = new Flow(context, context.drafts);
  const { parts, unread } = followLine(text, flow);
  if (flow.isExhausted) return { kind: "unclear", why: "It runs more than is looked at." };
  for (const part of parts) {
    for (const cwd of part.folders ?? [context.cwd]) {
      const why =
        cwd === ANYWHERE
          ? await explainAnywhere(part, parts, context)
          : await explainPlaced(part, parts, { ...context, cwd });
      if (why !== undefined) return why;
    }
  }
  for (const { words, cwd } of flow.listed) {
    if (cwd === ANYWHERE) continue;
    const why = explainOutside(await findWordOutside(words, { ...context, cwd }));
    if (why !== undefined) return why;
  }
  for (const rest of unread) {
    const why = await explainUnread(rest, context);
    if (why !== undefined) return why;
  }
  return undefined;
}

async function explainPlaced(
  part: CommandPart,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  return (
    (await explainPart(part, line, context)) ??
    explainOutside(
      (await findPlaceOutside([part], context)) ?? (await findMovedOutside(part, context)),
    )
  );
}

/** The danger of a command of which it is not known where in the workspace it runs. */
async function explainAnywhere(
  part: CommandPart,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  for (const cwd of listFolders(context.root)) {
    if (cwd === undefined)
      return !keepsFiles(context) && mayLose(part)
        ? { kind: "unclear", why: `It is unclear in which folder "${part.text}" runs.` }
        : undefined;
    if (!namesFile(part, join(context.root, cwd))) continue;
    const why = await explainPlaced(part, line, { ...context, cwd });
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Whether a command names something that is in a folder, or has code that may do so. */
function namesFile({ words, redirects }: CommandPart, folder: string): boolean {
  const [first, ...args] = words;
  if (first && /^(?:cd|pushd|popd)$/.test(first.text)) return false;
  if (first && isInterpreter(first.text)) return true;
  const program = first?.text.includes("/") ? [first] : [];
  const files = redirects.flatMap(({ kind, target }) => (kind === "input" ? [] : [target]));
  return [...program, ...args, ...files].some(({ text, literal, prefix }) => {
    if (text.startsWith("-")) return false;
    const path = literal ? text : prefix;
    return !isAbsolute(path) && !path.startsWith("..") && existsSync(join(folder, path));
  });
}

/** What the line itself has moved or copied, and led out of the workspace before. */
async function findMovedOutside(
  { words }: CommandPart,
  context: Looked,
): Promise<string | undefined> {
  const here = join(context.root, context.cwd);
  // They take a link for itself, and make the file that is named.
  if (/^(?:mv|cp|ln|install|rm|unlink)$/.test(words[0]?.text ?? "")) return undefined;
  for (const { text, literal } of words.slice(1)) {
    if (!literal || text.startsWith("-")) continue;
    const path = join(isAbsolute(text) ? text : join(here, text), ".");
    for (const source of context.drafts.listSources(path, ["moved", "copied"]).slice(1)) {
      if (await isOutside(source, context)) return text;
    }
  }
  return undefined;
}

/** Patterns of the shell that are on by a setting. */
const EXTENDED_PATTERN = /[!@+?*]\([^)]*\)/;

/** A text that cannot be read as a whole: its lines may be, one by one. */
async function explainUnread(text: string, context: Looked): Promise<Danger | undefined> {
  const lines = text.split(/\n|;|&&|\|\||&/).filter((line) => line.trim() !== "");
  const moves = /\b(?:cd|pushd|popd)\b/.test(text);
  for (const line of lines.length > 1 ? lines : []) {
    const why = await explainLine(line, deepen(context));
    if (why !== undefined) return why;
    // Which of the others ran before it is not known.
    const moved = moves
      ? await explainLine(line, { ...deepen(context), cwd: ANYWHERE })
      : undefined;
    if (moved !== undefined) return moved;
  }
  // What those that can be read do one after the other.
  const known = lines.filter((line) => parseCommandLine(line).unread === undefined);
  const together =
    known.length > 1 && known.length < lines.length
      ? await explainLine(known.join("\n"), deepen(context))
      : undefined;
  if (together !== undefined) return together;
  if (/\bextglob\b/.test(text) || EXTENDED_PATTERN.test(text))
    return { kind: "unclear", why: "It is unclear which files a pattern finds." };
  // What it writes to, as far as it can be seen.
  const files = [...text.replaceAll(/["']/g, "").matchAll(/(?<!>)>\|?\s*([\w./~*?[\]-]+)/g)].map(
    ([, path = ""]) => path,
  );
  for (const path of files) {
    const why = (await isOutside(path, context)) ? explainOutside(path) : undefined;
    if (why !== undefined) return why;
  }
  const lost = context.isUndoable
    ? undefined
    : findLostPaths(listFiles(files, context), false, context);
  if (lost !== undefined)
    return { kind: "destructive", why: `Replacing "${lost}" cannot be undone.` };
  const guess = await explainGuess(text, context, true);
  if (guess !== undefined) return guess;
  return /\w\[[^\]]*\]\+?=/.test(text) && /\$\{\w+\[/.test(text)
    ? { kind: "unclear", why: "It is unclear what is in a list." }
    : undefined;
}

/** The parts of a line with its words expanded. What stands behind may be known at the second look alone. */
function followLine(text: string, flow: Flow): CommandParts {
  for (let look = 1; ; look++) {
    const { knowledge } = flow;
    flow.begin();
    const found = commandParts(text, { expander: flow });
    if (look >= MAX_LOOKS || flow.knowledge === knowledge) return found;
  }
}

function explainOutside(place: string | undefined): Danger | undefined {
  return place === undefined
    ? undefined
    : { kind: "outside", why: `"${place}" is outside of the workspace.` };
}

/** Whether what becomes of files of the workspace is not asked about. */
function keepsFiles({ isScript = false, isUndoable = false }: Looked): boolean {
  return isScript || isUndoable;
}

async function explainPart(
  part: CommandPart,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  const { words } = part;
  const [first, ...rest] = words;
  const { isScript = false } = context;
  const keeps = keepsFiles(context);
  const set = await explainSettings(part, context);
  if (set !== undefined) return set;
  const hidden = isScript ? undefined : findHidden(part, context.root);
  if (hidden !== undefined) return { kind: "unclear", why: hidden };
  if (!first) return keeps ? undefined : findLost("", part, context);
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
  const listed = isScript ? undefined : await findListedOutside(args, context);
  if (listed !== undefined) return explainOutside(listed);
  const linked = isScript ? undefined : await findFollowedLink(program, rest, context);
  if (linked !== undefined) return { kind: "outside", why: `${shown} follows links: ${linked}` };
  return (
    (keeps ? undefined : findLost(program, part, context)) ??
    (await explainCode(part, program, line, context)) ??
    (await explainArguments(part, program, context)) ??
    (await explainScript(program, part, context, line))
  );
}

/** Options by which programs take a list of files from a file. */
const LISTS = /^(?:-T|--files-from|--files0-from|--pathspec-from-file)(?:=(.+))?$/;

/** What leads out of the workspace in a list of files that the line itself writes. */
async function findListedOutside(
  args: readonly string[],
  context: Looked,
): Promise<string | undefined> {
  for (const [index, arg] of args.entries()) {
    const [option, inside] = LISTS.exec(arg) ?? [];
    if (option === undefined) continue;
    const list = inside ?? args[index + 1] ?? "";
    const path = isAbsolute(list) ? list : join(context.root, context.cwd, list);
    const words = (context.drafts.read(path) ?? "").split(/[\n\0]/).filter((word) => word !== "");
    const place = await findWordOutside(
      words.map((text) => ({ text, literal: true, prefix: text })),
      context,
    );
    if (place !== undefined) return place;
  }
  return undefined;
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
    (operand) =>
      /^:|[*?[]/.test(operand) ||
      existsSync(isAbsolute(operand) ? operand : join(root, cwd, operand)),
  );
}

/** Variables with commands that other programs run. */
const COMMANDS_IN =
  /^(?:[A-Z_]*(?:EDITOR|PAGER|BROWSER|ASKPASS)|VISUAL|LESSOPEN|LESSCLOSE|SHELL|CC|CXX|LD|AR|BASH_ENV|ENV|PS4|PROMPT_COMMAND|GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND))$/;

async function explainSettings(
  { assignments, words }: CommandPart,
  context: Looked,
): Promise<Danger | undefined> {
  const isMake = /^g?make$/.test(words[0]?.text ?? "");
  const settings = [...assignments, ...words.slice(1)];
  for (const { text } of settings) {
    const [, name = "", value = ""] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(text) ?? [];
    // What is calculated or shown as a prompt may run what is in a text.
    const runs =
      /\$\(|`/.test(value) && assignments.some((each) => each.literal && each.text === text);
    if (!COMMANDS_IN.test(name) && !(isMake && name !== "") && !runs) continue;
    const isFile = /^(?:BASH_ENV|ENV)$/.test(name);
    const why =
      (isFile ? await explainFile(value, context) : undefined) ??
      (runs ? await explainLine(`: "${value.replaceAll('"', "")}"`, deepen(context)) : undefined) ??
      (await explainGuess(value, context, true)) ??
      (COMMANDS_IN.test(name)
        ? ((await explainGuess(`${value} files`, context)) ??
          // Git runs it from the top of its folders.
          (await explainGuess(value, { ...context, cwd: "." }, true)))
        : undefined);
    if (why !== undefined) return why;
  }
  return undefined;
}

function deepen(context: Looked): Looked {
  return { ...context, depth: context.depth + 1 };
}

/** The danger of a file that a shell runs. */
function explainFile(path: string, context: Looked): Promise<Danger | undefined> {
  const words = ["sh", path].map((text): Word => ({ text, literal: true, prefix: text }));
  return explainScript("sh", { words, redirects: [] }, context);
}

const INLINE = /^-m$|^-[a-zA-Z]*[cepErR]$|^--(?:eval|print|run)|^-[ep]./;
/** Languages of which only well-known commands are looked for. */
const LANGUAGES =
  /^(?:tclsh[\d.]*|wish|m4|gnuplot|ghci|octave|guile|racket|sbcl|clisp|elixir|iex|erl|groovy|jshell|scala|swipl|emacs)$/;
const SHELLS = /^(?:bash|sh|dash|zsh|ksh)$/;
const COMPILERS =
  /^(?:[\w-]+-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|tcc)(?:-\d+)?$|^(?:rustc|go|javac|java|kotlinc|swiftc|swift|zig|ghc|nim|dmd)$/;

async function explainCode(
  part: CommandPart,
  program: string,
  line: readonly CommandPart[],
  context: Looked,
): Promise<Danger | undefined> {
  const [, ...rest] = part.words;
  const args = rest.map(({ text }) => text);
  if (program === "sed") {
    const files = args.flatMap((arg) => readDraft(arg, context) ?? []);
    return explainSed([...args, ...files.flatMap((file) => file.split("\n"))], context);
  }
  const reads =
    args.every((arg) => arg.startsWith("-") || arg === "/dev/stdin") ||
    (SHELLS.test(program) && args.some((arg) => /^-\w*s$/.test(arg)));
  const isWritten = part.redirects.some(({ kind }) => kind === "input");
  if (
    (SHELLS.test(program) &&
      reads &&
      !args.some((arg) => /^-\w*c|^--(?:version|help)$/.test(arg))) ||
    (/^(?:\.|source)$/.test(program) && (!rest[0]?.literal || args[0]?.startsWith("/dev/")))
  ) {
    if (isWritten && SHELLS.test(program)) return undefined;
    const input = part.redirects.find(({ kind }) => kind === "input");
    const text = input?.body ?? (input?.target.literal ? input.target.text : undefined);
    if (text !== undefined) return explainLine(text, { ...context, depth: context.depth + 1 });
    return { kind: "unclear", why: `"${program}" runs what it reads.` };
  }
  if (/^(?:sqlite3|duckdb)$/.test(program)) {
    const inputs = part.redirects.flatMap(({ kind, body, written, target }) =>
      kind === "input" ? [body ?? written ?? target.text] : [],
    );
    const files = args.flatMap((arg) => readDraft(arg, context) ?? []);
    const text = [...args, ...inputs, ...files].join("\n");
    const shell = [...text.matchAll(/^\s*\.(?:shell|system)\s+(.+)$/gm)].map(([, run = ""]) => run);
    return (
      (await explainLines(shell, deepen(context))) ??
      (await explainText(text, program, [], context))
    );
  }
  if (LANGUAGES.test(program)) {
    const inputs = part.redirects.flatMap(({ kind, body, written, target }) =>
      kind === "input" ? [body ?? written ?? target.text] : [],
    );
    return explainGuess([...args, ...inputs].join("\n"), context, true);
  }
  if (COMPILERS.test(program)) {
    // What it makes of code that the line itself writes may run later.
    const texts = args.flatMap((arg) => readDraft(arg, context) ?? []);
    return texts.length === 0 ? undefined : explainText(texts.join("\n"), program, [], context);
  }
  if (!isInterpreter(program)) return undefined;
  const isAwk = program.endsWith("awk");
  const isInline =
    isAwk || args[0] === "eval" || args.some((arg) => INLINE.test(arg) || ATTACHED.test(arg));
  if (!isInline && !reads) return undefined;
  const code = [
    ...context.drafts.listCode(),
    part.hints ?? "",
    ...args.flatMap((arg) => (ATTACHED.test(arg) ? [arg.replace(/^-[a-zA-Z]*?[ceE]/, "")] : [])),
    part.passesOn ?? "",
    ...(isInline ? [] : line.map((each) => each.passesOn ?? "")),
  ].join("\n");
  return explainText(code, program, args, context);
}

/** What the line itself writes to a file. */
function readDraft(path: string, { root, cwd, drafts }: Looked): string | undefined {
  return path.startsWith("-")
    ? undefined
    : drafts.read(isAbsolute(path) ? path : join(root, cwd, path));
}

/** What code does that the model wrote, be it in a file. */
async function explainText(
  code: string,
  program: string,
  args: readonly string[],
  context: Looked,
  isFile = false,
): Promise<Danger | undefined> {
  const use = inspectCode(code, { program, args, isFile });
  if (use.needsNetwork)
    return { kind: "network", why: `The code for "${program}" needs the network.` };
  if (context.isScript) return undefined;
  if (use.isUnclear)
    return {
      kind: "unclear",
      why: `It is unclear what the code for "${program}" runs or changes.`,
    };
  if (use.goesUp)
    return { kind: "outside", why: `The code for "${program}" leads outside of the workspace.` };
  const folder = use.reads
    ? use.paths.find((path) => path !== "" && isPlainFolder(path, context))
    : undefined;
  const linked =
    folder === undefined
      ? undefined
      : await findFollowedLink("find", [toWord("-L"), toWord(folder)], context);
  if (linked !== undefined)
    return { kind: "outside", why: `The code for "${program}" follows links: ${linked}` };
  if (use.usesHome)
    return {
      kind: "outside",
      why: `The code for "${program}" uses the home folder, which is outside of the workspace.`,
    };
  for (const path of use.paths) {
    const place = isMeantPath(path, context);
    if (place !== undefined && (path.startsWith("~") || (await isOutside(place, context))))
      return explainOutside(path);
  }
  if (!context.isUndoable) {
    const lost =
      findLostPaths(use.removes ? use.paths : use.gone, true, context) ??
      findLostPaths(listFiles(use.replaces, context), false, context);
    if (lost !== undefined)
      return {
        kind: "destructive",
        why: `${use.removes ? "Removing" : "Replacing"} "${lost}" cannot be undone.`,
      };
  }
  for (const command of use.commands) {
    if (isWideForPosix(command)) return explainOutside(command);
    const why = await explainLine(command, { ...context, depth: context.depth + 1 });
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Paths, and the files that are there for patterns among them. */
function listFiles(paths: readonly string[], { root, cwd }: Looked): string[] {
  return paths.flatMap((path) =>
    /[*?[]/.test(path)
      ? (findByPattern(path, { root, cwd, budget: createBudget() }) ?? [])
      : [path],
  );
}

function isPlainFolder(path: string, { root, cwd }: Looked): boolean {
  return ifThere(() => statSync(join(root, cwd, path)))?.isDirectory() ?? false;
}

/** The place that a text in code stands for, if it seems to be one. */
function isMeantPath(path: string, { root, cwd }: Looked): string | undefined {
  const plain = path.replace(/[*?[].*$/s, "");
  if (/^\/[^/]|^~\//.test(path)) return plain;
  const at = join(root, cwd);
  if (/(?:^|\/)\.\.(?:\/|$)/.test(plain)) {
    const isAbove = /(?:^|\/)\.\.$/.test(plain);
    const folder = isAbove ? plain : plain.slice(0, plain.lastIndexOf("/") + 1);
    return existsSync(`${at}/${folder}`) ? folder : undefined;
  }
  return plain !== "" && existsSync(`${at}/${plain}`) ? plain : undefined;
}

/** Files that a script of sed reads and writes, and what it runs. */
async function explainSed(args: readonly string[], context: Looked): Promise<Danger | undefined> {
  for (const arg of args) {
    // The result of a replacement is a command.
    if (/(?:^|[\s;{}/\d$])s([^\w\s]).*\1.*\1\w*e/s.test(arg) && !context.isScript)
      return { kind: "unclear", why: '"sed" runs what it makes of a text.' };
    const path = /(?:^|[\s;{}/\d$])[rRwW]\s*([^\s;}]+)/.exec(arg)?.[1];
    const place = path === undefined ? "" : join(context.root, context.cwd, path);
    const isMeant =
      path !== undefined &&
      (/^(?:\/|\.\.\/)/.test(path) ||
        existsSync(place) ||
        (path.includes("/") && existsSync(dirname(place))));
    if (isMeant && !context.isScript && (await isOutside(path, context)))
      return explainOutside(path);
    if (isMeant && /(?:^|[\s;{}/\d$])[wW]/.test(arg) && !context.isUndoable) {
      const lost = findLostPaths([path], false, context);
      if (lost !== undefined)
        return { kind: "destructive", why: `Replacing "${lost}" cannot be undone.` };
    }
    const command = /(?:(?:^|[\s;{}/\d$])e\s+|[\d$;{]e)(\S.*)$/s.exec(arg)?.[1];
    const why = command === undefined ? undefined : await explainGuess(command, context);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Behind which words git expects a command, or a setting that may be one. */
const GIT_RUNS =
  /^(?:-c|-x|--exec|--extcmd|--upload-pack|--receive-pack|--open-files-in-pager|foreach|run)$/;

/** The texts among the words of a command by which it may run other commands. */
function listRunTexts({ words, redirects, escapes }: CommandPart, program: string): string[] {
  const args = words.slice(1).map(({ text }) => text);
  if (program !== "git") {
    const inputs = redirects.flatMap(({ kind, written, target }) =>
      kind === "input" ? [written ?? target.text] : [],
    );
    const values = args.map((arg) =>
      arg.replace(/^(?:--?[\w.-]+=(?:exec=)?|[\w.]+=|-[A-Za-z](?=\S+\s))/, ""),
    );
    const options = new Set(escapes.flatMap(({ word, runs }) => (runs ? [word] : [])));
    // A program alone behind an option gets its words later.
    const alone = args.flatMap((arg, index) => {
      const [, inside] = /^--?[\w-]+=(.+)$/s.exec(arg) ?? [];
      if (inside !== undefined && options.has(arg.split("=", 1)[0] ?? "")) return [inside];
      return options.has(args[index - 1] ?? "") ? [arg] : [];
    });
    return [
      ...values.filter((value) => /[\s/]/.test(value)),
      ...alone.map((value) => `${value.replaceAll(",", " ")} files`),
      ...inputs,
    ];
  }
  return args.flatMap((arg, index) => {
    if (GIT_RUNS.test(args[index - 1] ?? "")) {
      if (args[index - 1] === "run") return [args.slice(index).join(" ")];
      return [arg, `${arg.slice(arg.indexOf("=") + 1)} files`];
    }
    // `git grep -Oless` runs it with the files that it finds.
    const pager = /^-\w*O(.+)$/.exec(arg)?.[1];
    const [, option = "", value = ""] = /^(--[\w-]+)=(.*)$/s.exec(arg) ?? [];
    return pager !== undefined ? [`${pager} files`] : GIT_RUNS.test(option) ? [value] : [];
  });
}

/** Options and settings by which a program runs others. */
async function explainArguments(
  part: CommandPart,
  program: string,
  context: Looked,
): Promise<Danger | undefined> {
  const runs = part.escapes.filter((escape) => escape.runs);
  const calculates =
    program === "[[" && part.words.some(({ text }) => /^-(?:v|eq|ne|lt|le|gt|ge)$/.test(text));
  if (runs.length === 0 && program !== "ed" && !calculates) return undefined;
  for (const text of listRunTexts(part, program)) {
    const why =
      (await explainGuess(text, context)) ??
      (program === "git" ? await explainGuess(text, { ...context, cwd: "." }) : undefined);
    if (why !== undefined) return why;
  }
  if (!runs.some(({ word }) => word === program)) return undefined;
  // "flock file curl": a command in the middle of the words.
  const words = part.words.slice(1).map(({ text }) => text);
  return explainGuess(words.join(" "), context, true);
}

/** The danger of a text that may have commands in it, as far as they are well known. */
async function explainGuess(
  text: string,
  context: Looked,
  isEverywhere = false,
): Promise<Danger | undefined> {
  for (const [name = "", ...args] of findMentioned(text, isEverywhere)) {
    const program = name.slice(name.lastIndexOf("/") + 1);
    if (isRemoteProgram(program, args))
      return { kind: "network", why: `"${show(program, args)}" needs the network.` };
    if (destroys(program, args) && !(context.isUndoable && destroysFilesAlone(program, args)))
      return { kind: "destructive", why: `"${show(program, args)}" cannot be undone.` };
    const isFile = name.includes("/") || SHELLS.test(program);
    const named = [name, ...args].map(toWord);
    const inside = isFile
      ? await explainScript(program, { words: named, redirects: [] }, deepen(context))
      : undefined;
    if (inside !== undefined) return inside;
    if (context.isScript) continue;
    const words = named.slice(1);
    const places = (name.startsWith("../") ? named : words).filter(
      ({ text: word }) => isMeantPath(word, context) !== undefined,
    );
    const why = explainOutside(await findWordOutside(places, context));
    if (why !== undefined) return why;
    const part = {
      words: [toWord(program), ...words],
      redirects: [],
    };
    const lost = context.isUndoable ? undefined : findLost(program, part, context);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

function toWord(text: string): Word {
  return { text, literal: true, prefix: text };
}

/** What commands become whose names the line gives another meaning. */
function listAliased(words: readonly Word[], line: readonly CommandPart[]): string[] {
  return words.flatMap(({ text }) => {
    const [, name = "", value = ""] = /^([\w.-]+)=(.*)$/s.exec(text) ?? [];
    const uses = line.filter((part) => part.words[0]?.text === name);
    return [value, ...uses.map((part) => [value, part.text.slice(name.length)].join(" "))];
  });
}

async function explainScript(
  program: string,
  part: Pick<CommandPart, "words" | "redirects">,
  context: Looked,
  line: readonly CommandPart[] = [],
): Promise<Danger | undefined> {
  const { words } = part;
  const deeper = deepen(context);
  if (deeper.depth > MAX_SCRIPTS) return undefined;
  if (program === "alias") return explainLines(listAliased(words.slice(1), line), deeper);
  if (program === "env") {
    const texts = words.slice(1).flatMap(({ text }, index) => {
      const split = /^(?:-S|--split-string=)(.+)$/s.exec(text)?.[1];
      return split ?? (words[index]?.text === "-S" ? [text] : []);
    });
    return explainLines(texts, deeper);
  }
  const cwd = join(context.root, context.cwd);
  const { drafts } = context;
  const input = part.redirects.find(({ kind }) => kind === "input")?.body;
  const script = findScript(
    program,
    words.map(({ text }) => text),
    { cwd, drafts, input },
  );
  if (!script) return undefined;
  // Of several files that something finds, each is run.
  const others = SHELLS.test(program)
    ? words
        .slice(2)
        .filter(({ text, literal }) => literal && /\.(?:ba)?sh$/.test(text) && text !== script.name)
    : [];
  for (const other of others) {
    const why = await explainFile(other.text, deeper);
    if (why !== undefined) return why;
  }
  if (script.isUnknown && !context.isScript)
    return {
      kind: "unclear",
      why: `It is unclear what "${script.name}" does, which the line itself writes.`,
    };
  const kind = judgeName(script.name);
  if (kind === "network")
    return { kind: "network", why: `"${script.name}" may reach other machines.` };
  if (kind === "destructive")
    return {
      kind: "destructive",
      why: `"${script.name}" may destroy what cannot be brought back.`,
    };
  for (const edit of script.path === undefined ? [] : drafts.listEdits(script.path)) {
    const why = await explainGuess(edit, context, true);
    if (why !== undefined) return why;
  }
  const isOwn = script.isDraft || (script.path !== undefined && isOwnFile(script.path, context));
  if (script.isCode) {
    // It may load other files that the line writes.
    const loaded = script.isDraft ? drafts.listCode() : [];
    const text = isOwn ? [...new Set([...script.lines, ...loaded])].join("\n") : "";
    const args = words.slice(1).map((word) => word.text);
    const { interpreter = program } = script;
    return text === "" ? undefined : explainText(text, interpreter, args, deeper, true);
  }
  return explainLines(script.lines, isOwn ? deeper : { ...deeper, isScript: true });
}

/** The danger of what is run by something else. */
async function explainLines(
  lines: readonly string[],
  context: Looked,
): Promise<Danger | undefined> {
  if (context.depth > MAX_SCRIPTS) return undefined;
  for (const line of lines) {
    if (!context.isScript) {
      const why = await explainLine(line, context);
      if (why !== undefined) return why;
      continue;
    }
    const { parts } = commandParts(line);
    for (const part of parts) {
      const why = await explainPart(part, parts, context);
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
