import { closeSync, constants, type Dirent, openSync, readdirSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import { estimateTokens } from "@gyre/ai";
import { sanitize } from "@gyre/tools";
import type { AgentTexts, HeldText } from "./agent-texts.ts";
import type { GuidanceOptions } from "./instructions.ts";
import { isThere, realPath } from "../settings/project-file.ts";
import { projectFolders, untrustedReason } from "./project-folders.ts";
import { describeCode, readSmallFile } from "../settings/file.ts";
import { type Field, type FieldValue, readFrontmatter } from "./frontmatter.ts";

export const SKILL_FILE = "SKILL.md";
/** The tool that gives the text of a skill. */
export const SKILL_TOOL = "skill";
/** More than anybody reads through; each costs a look at the disk. */
export const MAX_SKILLS = 500;
/** What all skills together, and one of them, may take of the system prompt. */
export const MAX_SKILLS_TOKENS = 2_000;
export const MAX_SKILL_TOKENS = 100;

const MAX_NAME_CHARS = 64;
const MAX_DESCRIPTION_CHARS = 1024;
const MAX_COMPATIBILITY_CHARS = 500;
/** Files of a skill that are compared with what agents wrote. */
const MAX_LOOKED_FILES = 1_000;
/** The lines about a skill are at the beginning of its file. */
const HEAD_BYTES = 16 * 1024;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const KEYS: ReadonlySet<string> = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
]);

/** Instructions for a kind of task, in a folder with all that they need. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** With all links followed. */
  readonly folder: string;
  readonly license?: string;
  /** What it needs: programs, a network, ... */
  readonly compatibility?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** What its author thinks it needs. Allows nothing. */
  readonly allowedTools?: readonly string[];
}

/**
 * Looks for skills: the user's, which go before those of the same name of a project, and
 * the project's, the nearest first. `warn` gets what is wrong with one, with file and
 * line. Nothing but the beginning of their files is read.
 */
export async function findSkills(options: GuidanceOptions): Promise<readonly Skill[]> {
  const { warn } = options;
  const places = listPlaces(options);
  if (places.length === 0) return [];
  const skills = new Map<string, Skill>();
  for (const { path, real, folder, name: folderName } of places) {
    const held = options.texts ? findHeldFiles(folder, options.texts) : [];
    for (const text of held) options.hold?.(text);
    if (held.length > 0) continue;
    const head = readHead(real);
    if (typeof head !== "string") {
      warn(`${path} is not used: it ${head.problem}.`);
      continue;
    }
    const { fields, problems } = await readFrontmatter(head, KEYS);
    const found = problems.map(({ line, text }) => `${path}, line ${line}: ${text}.`);
    const skill = parseSkill(fields, folder, folderName, (line, text) => {
      found.push(`${path}, line ${line}: ${text}.`);
    });
    // What its fields lack is because they could not be read.
    for (const text of problems.length > 0 && !skill ? found.slice(0, problems.length) : found) {
      warn(text);
    }
    if (!skill) continue;
    const taken = skills.get(skill.name);
    if (taken) warn(`${path} is not used: ${join(taken.folder, SKILL_FILE)} has the same name.`);
    else skills.set(skill.name, skill);
  }
  return [...skills.values()];
}

interface Place {
  path: string;
  /** The file and its folder with all links followed. */
  real: string;
  folder: string;
  name: string;
}

/** Where skills are, each once. */
function listPlaces({ cwd, home, config, warn }: GuidanceOptions): Place[] {
  const folders = projectFolders(cwd, home);
  const [root] = folders;
  const places: Place[] = [];
  const seen = new Set<string>();
  const look = (among: string, refuse: (real: string) => string | undefined): void => {
    for (const name of namesIn(among)) {
      const path = join(among, name, SKILL_FILE);
      if (!isThere(path)) continue;
      const real = realPath(path);
      if (seen.has(real)) continue;
      seen.add(real);
      const folder = realPath(dirname(path));
      const problem = refuse(real) ?? refuse(folder);
      if (problem !== undefined) warn(`${path} is not used: it ${problem}.`);
      else places.push({ path, real, folder, name });
    }
  };
  for (const among of [join(config, "skills"), ...inFolder(home).slice(1)])
    look(among, () => undefined);
  for (const folder of folders.toReversed()) {
    for (const among of inFolder(folder)) look(among, (real) => untrustedReason(real, root, cwd));
  }
  if (places.length <= MAX_SKILLS) return places;
  warn(`There are ${places.length} skills; the first ${MAX_SKILLS} are used.`);
  return places.slice(0, MAX_SKILLS);
}

/** The first to count first. */
/** Where skills may be, of these folders and of the configuration. */
export function skillFolders(folders: readonly string[], config: string): string[] {
  return [join(config, "skills"), ...folders.flatMap(inFolder)];
}

/** The files of a skill that an agent wrote and the user has not seen. */
function findHeldFiles(folder: string, texts: Pick<AgentTexts, "find">): HeldText[] {
  const held: HeldText[] = [];
  const folders = [folder];
  let looked = 0;
  for (const each of folders) {
    // What the model reads of it is looked at first, however many files are beside it.
    const entries = entriesIn(each).sort((a, b) => rank(a) - rank(b));
    for (const entry of entries) {
      const path = join(each, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (looked++ < MAX_LOOKED_FILES) {
        const read = readSmallFile(path);
        const known = read && "content" in read ? texts.find(read.content, path) : undefined;
        if (known && read && "content" in read) {
          held.push({ ...known, path, content: read.content });
        }
      }
    }
    if (looked >= MAX_LOOKED_FILES) break;
  }
  return held;
}

function rank({ name }: Dirent): number {
  return name === SKILL_FILE ? 0 : 1;
}

function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Gone meanwhile, or closed to us: then nothing of it is read.
    return [];
  }
}

function inFolder(folder: string): string[] {
  return [".gyre", ".agents", ".claude"].map((name) => join(folder, name, "skills"));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // Not there, or not for us: no skills of it then.
    return [];
  }
}

function readHead(path: string): string | { problem: string } {
  try {
    // Without waiting: a pipe would keep us until a program writes into it.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const head = Buffer.alloc(HEAD_BYTES);
      return head.toString("utf8", 0, readSync(file, head));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return { problem: `cannot be read (${describeCode(error)})` };
  }
}

/** A skill by what is said of it; undefined where too little is. */
function parseSkill(
  fields: ReadonlyMap<string, Field>,
  folder: string,
  folderName: string,
  wrong: (line: number, text: string) => void,
): Skill | undefined {
  const readField = (key: string): { text: string; line: number } | undefined => {
    const field = fields.get(key);
    if (!field) return undefined;
    if (typeof field.value === "string") {
      return { text: sanitize(field.value).trim(), line: field.line };
    }
    wrong(field.line, `"${key}" has to be a text`);
    return undefined;
  };
  const name = readField("name");
  const description = readField("description");
  if (!name?.text || !description?.text) {
    const missing = name?.text ? "description" : "name";
    wrong(fields.get(missing)?.line ?? 1, `the skill is not used: it has no ${missing}`);
    return undefined;
  }
  if (name.text.length > MAX_NAME_CHARS || !NAME.test(name.text)) {
    wrong(
      name.line,
      `the skill is not used: its name has to be at most ${MAX_NAME_CHARS} of a-z, 0-9 and single "-" between them`,
    );
    return undefined;
  }
  if (name.text !== folderName) {
    wrong(name.line, `the name "${name.text}" is not that of its folder, "${folderName}"`);
  }
  if (description.text.length > MAX_DESCRIPTION_CHARS) {
    wrong(description.line, `the description has more than ${MAX_DESCRIPTION_CHARS} characters`);
  }
  const license = readField("license");
  const compatibility = readField("compatibility");
  if (compatibility && compatibility.text.length > MAX_COMPATIBILITY_CHARS) {
    wrong(
      compatibility.line,
      `"compatibility" has more than ${MAX_COMPATIBILITY_CHARS} characters`,
    );
  }
  const metadata = fields.get("metadata");
  const isMetadata = metadata !== undefined && isRecord(metadata.value);
  if (metadata && !isMetadata) wrong(metadata.line, '"metadata" has to be keys with texts');
  const allowed = fields.get("allowed-tools");
  const tools = allowed && toolsIn(allowed.value);
  if (allowed && !tools) wrong(allowed.line, '"allowed-tools" has to be a text or a list');
  return {
    name: name.text,
    description: description.text.slice(0, MAX_DESCRIPTION_CHARS),
    folder,
    ...(license && { license: license.text }),
    ...(compatibility && { compatibility: compatibility.text.slice(0, MAX_COMPATIBILITY_CHARS) }),
    ...(isMetadata && isRecord(metadata.value) && { metadata: metadata.value }),
    ...(tools && { allowedTools: tools }),
  };
}

function isRecord(value: FieldValue): value is Readonly<Record<string, string>> {
  return typeof value === "object" && !Array.isArray(value);
}

/** Names with blanks or commas between them; what is in brackets belongs to a name. */
function toolsIn(value: FieldValue): readonly string[] | undefined {
  if (typeof value === "string") return value.match(/(?:[^\s,(]|\([^)]*\))+/g) ?? [];
  return isRecord(value) ? undefined : value;
}

/** What the system prompt says of skills; undefined where there are none. */
export function skillsText(skills: readonly Skill[]): string | undefined {
  if (skills.length === 0) return undefined;
  const preface = `Skills say how to do certain tasks. When a task fits one, read it with the tool ${SKILL_TOOL} before you begin:`;
  const lines = [preface];
  let left = MAX_SKILLS_TOKENS - estimateTokens(preface) - estimateTokens(moreText(MAX_SKILLS));
  for (const skill of skills) {
    const line = cutToTokens(formatSkill(skill), MAX_SKILL_TOKENS);
    left -= estimateTokens(line) + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const more = skills.length - (lines.length - 1);
  return [...lines, ...(more > 0 ? [moreText(more)] : [])].join("\n");
}

/** A skill on one line. */
export function formatSkill({ name, description }: Skill): string {
  return `- ${name}: ${description.replace(/\s+/g, " ")}`;
}

function moreText(count: number): string {
  return `- and ${count} more: ${SKILL_TOOL} without a name lists all.`;
}

/** As much of a text as is about so many tokens. */
function cutToTokens(text: string, tokens: number): string {
  let cut = text;
  for (let size = estimateTokens(cut); size > tokens; size = estimateTokens(cut)) {
    const fits = Math.min(cut.length - 1, Math.floor((cut.length * tokens) / size));
    // Not within a pair that is one character.
    cut = cut.slice(0, fits).replace(/[\ud800-\udbff]$/, "");
  }
  return cut === text ? text : `${cut.trimEnd()}…`;
}
