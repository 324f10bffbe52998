import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { constants, statSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import { sanitize } from "@gyre/tools";
import { isInFolders, isThere, realPath } from "../settings/project-file.ts";
import { hasImports, listImports, LOCAL_NAME, MAX_IMPORT_DEPTH } from "./imports.ts";
import { projectFolders, untrustedReason } from "./project-folders.ts";
import { readSmallFile } from "../settings/file.ts";
import type { AgentTexts, HeldText } from "./agent-texts.ts";

/** Of all instruction files together, in UTF-8. */
export const MAX_INSTRUCTION_BYTES: number = 32 * 1024;

/** Of each folder the first that is there counts, even if nothing is in it. */
export const INSTRUCTION_NAMES: readonly string[] = [
  "AGENTS.override.md",
  "AGENTS.md",
  "CLAUDE.md",
];

/** Where a project may have the last of these as well. */
const IN_FOLDER = join(".claude", "CLAUDE.md");

/** In place of what the system prompt begins with: of the user's configuration, and of a project's `.gyre`. */
export const SYSTEM_NAME = "SYSTEM.md";
const PROJECT_FOLDER = ".gyre";

/** Hexadecimal digits of a mark: to find a text that holds its own takes 2^63 tries. */
const MARK_CHARS = 16;
/** In place of the mark of a file that is not there any more. */
const GONE = "gone";
const KIB = 1024;

const PREFACE =
  "Instructions from files of the user and of the project. Follow them: where they differ, a later file " +
  "takes precedence over an earlier one, and the user's own words over all. They cannot allow what is denied.";
const NEWS = "The instruction files have changed. In place of what they said before:";

/** Where to look for what a folder and a user have written for agents. */
export interface GuidanceOptions {
  /** The folder to work in, absolute. */
  cwd: string;
  home: string;
  /** The folder of this program in the user's configuration. */
  config: string;
  /** The folder of Claude Code with what is the user's own. Default: `.claude` at home. */
  claude?: string;
  /** Places whose files no project can name by a link, absolute. */
  secret?: readonly string[];
  /** Called with what is not used, a line at a time. */
  warn: (text: string) => void;
  /** What agents wrote: it is given to `hold`, and not used. */
  texts?: Pick<AgentTexts, "find">;
  hold?: (text: HeldText) => void;
}

export interface InstructionFile {
  readonly path: string;
  /** The name that the model reads: from the folder that is worked in, or from home. */
  readonly name: string;
  readonly text: string;
  /** As it is on the disk. */
  readonly content: Buffer;
}

/**
 * Reads the user's instruction files, then those of the project from its root down to the
 * folder that is worked in, each followed by what it imports. What a person would not see in them is left out. Together they
 * are at most `MAX_INSTRUCTION_BYTES`: of more, the longest are cut, and say so.
 */
export function readInstructions(options: GuidanceOptions): readonly InstructionFile[] {
  const { cwd, home, config, warn, secret = [], claude = join(home, ".claude") } = options;
  const folders = projectFolders(cwd, home);
  const [root] = folders;
  const found: InstructionFile[] = [];
  const seen = new Set<string>();
  /** Takes a file and what it imports. False: it is as if the file were not there. */
  const take = (path: string, inside: string | undefined, depth = 0): boolean => {
    const real = realPath(path);
    // A link to a file that is in the list already.
    if (seen.has(real)) return true;
    seen.add(real);
    const read = readText(real, inside === undefined ? undefined : { root: inside, cwd, secret });
    if ("problem" in read) {
      warn(`${path} is not used: it ${read.problem}.`);
      return true;
    }
    const { text, content } = read;
    const name =
      inside === undefined ? fromHome(path, home) : relative(folders.at(-1) ?? cwd, path);
    const shown = plain(name);
    const known = options.texts?.find(content, real);
    if (known) {
      // Until it is accepted, the folder is as if it were not there.
      options.hold?.({ ...known, path, name: shown, content });
      return false;
    }
    if (text !== "") found.push({ path, name: shown, text, content });
    if (!hasImports(path) && depth === 0) return true;
    if (depth < MAX_IMPORT_DEPTH) takeImports(listImports(text, path, home), path, inside, depth);
    return true;
  };
  const takeImports = (
    paths: readonly string[],
    by: string,
    inside: string | undefined,
    depth: number,
  ): void => {
    for (const path of paths) {
      // Much that begins with "@" is no path.
      if (!statSync(path, { throwIfNoEntry: false })?.isFile()) continue;
      const isOutside = inside !== undefined && !isInFolders(path, [realPath(inside)]);
      if (isOutside || /^\.env/i.test(basename(path))) {
        const why = isOutside
          ? "outside of the project. Import it in ~/.claude/CLAUDE.md, which is your own"
          : "for secrets";
        warn(`${by} imports ${path}, which is not used: it is ${why}.`);
      } else take(path, inside, depth + 1);
    }
  };
  const takeOne = (folder: string, inside?: string): void => {
    const names = inside === undefined ? INSTRUCTION_NAMES : [...INSTRUCTION_NAMES, IN_FOLDER];
    for (const name of names) {
      const path = join(folder, name);
      if (isThere(path) && take(path, inside)) break;
    }
    const local = join(folder, LOCAL_NAME);
    if (inside !== undefined && isThere(local)) take(local, inside);
  };
  takeOne(config);
  takeOne(claude);
  for (const folder of folders) takeOne(folder, root);
  return cutToFit(found, warn);
}

/**
 * Reads what the system prompt is to begin with: the file of the project that is nearest to the folder, else the
 * user's own. Undefined where there is none, or where it is held.
 */
export function readSystemFile(options: GuidanceOptions): InstructionFile | undefined {
  const { cwd, home, config, warn, secret = [] } = options;
  const folders = projectFolders(cwd, home);
  const [root] = folders;
  const places = [
    ...folders
      .toReversed()
      .map((folder) => ({ path: join(folder, PROJECT_FOLDER, SYSTEM_NAME), inside: true })),
    { path: join(config, SYSTEM_NAME), inside: false },
  ];
  for (const { path, inside } of places) {
    if (!isThere(path)) continue;
    const real = realPath(path);
    const read = readText(real, inside ? { root, cwd, secret } : undefined);
    if ("problem" in read) {
      warn(`${path} is not used: it ${read.problem}.`);
      continue;
    }
    const { text, content } = read;
    const name = plain(inside ? relative(folders.at(-1) ?? cwd, path) : fromHome(path, home));
    const known = options.texts?.find(content, real);
    if (known) options.hold?.({ ...known, path, name, content });
    else if (text !== "") return { path, name, text, content };
  }
  return undefined;
}

/** For the system prompt; undefined where there is nothing. */
export function instructionsText(files: readonly InstructionFile[]): string | undefined {
  return files.length > 0 ? [PREFACE, ...files.map(marked)].join("\n\n") : undefined;
}

/**
 * The message to a model whose context is `earlier`, in order: the files that are not as it was
 * last sent, or are gone. Of those that are `held`, by name, what it knows still counts.
 * Undefined where it knows all.
 */
export function instructionNews(
  files: readonly InstructionFile[],
  earlier: Iterable<string>,
  { held = [] }: { held?: readonly string[] } = {},
): string | undefined {
  const known = new Map<string, string>();
  for (const text of earlier) {
    for (const [, name = "", mark = ""] of text.matchAll(OPENING)) known.set(name, mark);
  }
  const news = files.filter((file) => known.get(file.name) !== computeMark(file)).map(marked);
  const names = new Set([...files.map(({ name }) => name), ...held]);
  for (const [name, mark] of known) {
    if (names.has(name) || mark === GONE) continue;
    news.push(between(name, GONE, "It is not there any more, and what it said does not count."));
  }
  return news.length > 0 ? [NEWS, ...news].join("\n\n") : undefined;
}

const OPENING = /^<instructions file="([^"\n]*)" mark="(\w+)">$/gm;

/** The mark is made of the text, so the text cannot hold the line that would end it. */
function marked(file: InstructionFile): string {
  return between(file.name, computeMark(file), file.text);
}

function between(name: string, mark: string, text: string): string {
  return `<instructions file="${name}" mark="${mark}">\n${text}\n</instructions mark="${mark}">`;
}

function computeMark({ name, text }: InstructionFile): string {
  return createHash("sha256").update(`${name}\n${text}`).digest("hex").slice(0, MARK_CHARS);
}

function fromHome(path: string, home: string): string {
  const below = relative(home, path);
  return below.startsWith("..") ? path : join("~", below);
}

/** On one line, and unable to end the quotes around it. */
function plain(name: string): string {
  return sanitize(name.replaceAll(sep, "/"), { keepNewlines: false }).replace(/["<>]/g, "'");
}

/** A text as a person would see it, or why it is not used. */
function readText(
  real: string,
  project: { root: string; cwd: string; secret: readonly string[] } | undefined,
): { text: string; content: Buffer } | { problem: string } {
  if (project?.secret.some((place) => real.startsWith(realPath(place)))) {
    return { problem: "is a link to what is kept secret" };
  }
  const problem = project && untrustedReason(real, project.root, project.cwd);
  if (problem !== undefined) return { problem };
  const read = readSmallFile(real, constants.O_NOFOLLOW) ?? { problem: "is not there any more" };
  if ("problem" in read) return read;
  if (!isUtf8(read.content)) return { problem: "is not text in UTF-8" };
  const { content } = read;
  return { text: sanitize(content.toString("utf8")).trim(), content };
}

/** Cuts the longest, so that all together have room and a short one stays whole. */
function cutToFit(
  files: readonly InstructionFile[],
  warn: GuidanceOptions["warn"],
): readonly InstructionFile[] {
  const sizes = files.map(({ text }) => Buffer.byteLength(text));
  const share = fairShare(sizes, MAX_INSTRUCTION_BYTES);
  return files.map((file, index) => {
    const size = sizes[index] ?? 0;
    if (size <= share) return file;
    const { text, rest } = cutAtLine(file.text, share);
    const shown = `${kib(size - rest)} of ${kib(size)} KiB`;
    warn(
      `${file.path} is cut: ${shown} are used. Instruction files have ${kib(MAX_INSTRUCTION_BYTES)} KiB together.`,
    );
    return { ...file, text: `${text}\n[The file is cut here: this is ${shown}.]` };
  });
}

/** How much each may have at most, so that all have no more than `room`. */
function fairShare(sizes: readonly number[], room: number): number {
  let left = room;
  const ascending = [...sizes].sort((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (size > share) return Math.floor(share);
    left -= size;
  }
  return room;
}

/** The lines that fit into so many bytes; of a single long one as much of it as does. */
function cutAtLine(text: string, bytes: number): { text: string; rest: number } {
  const whole = Buffer.from(text);
  const lineEnd = whole.lastIndexOf("\n", bytes);
  let end = lineEnd > 0 ? lineEnd : bytes;
  // Not within a character: what follows its first byte begins with the bits 10.
  while (((whole[end] ?? 0) & 0xc0) === 0x80) end--;
  return { text: whole.toString("utf8", 0, end), rest: whole.length - end };
}

function kib(bytes: number): string {
  return (bytes / KIB).toFixed(1).replace(/\.0$/, "");
}
