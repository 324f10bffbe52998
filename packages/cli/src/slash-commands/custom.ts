import { readdirSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import { sanitize } from "@gyre/tools";
import type { GuidanceOptions } from "@gyre/coding/internal/guidance/instructions";
import { projectFolders, untrustedReason } from "@gyre/coding/internal/guidance/project-folders";
import {
  readBody,
  type FieldValue,
  readFrontmatter,
} from "@gyre/coding/internal/guidance/frontmatter";
import type { Skill } from "@gyre/coding/internal/guidance/skills";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { isThere, realPath } from "@gyre/coding/internal/settings/project-file";
import { readSmallFile } from "@gyre/coding/internal/settings/file";
import { oneLine } from "@gyre/coding/internal/settings/problem";
import type { SlashCommand } from "./command-context.ts";
import { filledIn } from "./files/fill.ts";

/** A longer file is no command. */
export const MAX_COMMAND_BYTES: number = 64 * 1024;
/** More than anybody reads through; each costs a look at the disk. */
export const MAX_COMMANDS = 500;
/** Folders below the one for commands. */
const MAX_DEPTH = 3;
const MAX_ABOUT_CHARS = 120;
const FOLDER = "commands";
const ENDING = ".md";
/** What a file or a folder may be called to be a command's name, or a part of it. */
const NAME = /^[A-Za-z0-9][\w-]{0,63}$/;
const KEYS: ReadonlySet<string> = new Set(["description", "argument-hint"]);
/** What a command runs, or a file that it names. */
const NEEDS_TOOLS = /!`[^`\n]+`|(?<=^|\s)@\S/m;

export interface CustomOptions extends GuidanceOptions {
  harness: Pick<Harness, "skills" | "commands">;
  /** Commands of the program: theirs are the names. */
  own: readonly SlashCommand[];
}

/** A file that is a command, as it was found. */
interface CommandFile {
  name: string;
  path: string;
  /** Why it is not to be used, if it is not; looked at again each time. */
  problem: () => string | undefined;
}

/**
 * Commands that others made: Markdown files of the user and the project, skills and plugins,
 * in this order. A file is a prompt that the user sends; what it runs is asked about as calls are. Of a name that is
 * there twice the first counts, and `warn` is called.
 */
export async function customCommands({
  harness,
  own,
  ...given
}: CustomOptions): Promise<SlashCommand[]> {
  // What is quoted, names of files too, is for a repository's author to choose.
  const where = { ...given, warn: (text: string): void => given.warn(oneLine(text)) };
  const taken = new Set(own.filter((each) => !each.isReplaceable).map(({ name }) => name));
  const isNew = (name: string, path: string): boolean => {
    const isFirst = !taken.has(name);
    if (!isFirst) where.warn(`${path} is not used: there is a command "/${name}" already.`);
    taken.add(name);
    return isFirst;
  };
  const files = await readFiles(where, isNew);
  const skills = skillCommands(harness.skills ?? []).filter(({ name }) => isNew(name, "A skill"));
  const plugins = pluginCommands(harness).filter(({ name }) => isNew(name, "A plugin's command"));
  return [...files, ...skills, ...plugins];
}

/** A command in a file. */
export interface FileCommand extends SlashCommand {
  /** Its prompt, without a session. Throws where it runs something, or names files. */
  fill: (rest: string) => string;
}

/** The commands in files alone: for those who have no session. */
export function fileCommands({
  own,
  ...where
}: Omit<CustomOptions, "harness">): Promise<FileCommand[]> {
  const taken = new Set(own.filter((each) => !each.isReplaceable).map(({ name }) => name));
  return readFiles(where, (name) => !taken.has(name) && !!taken.add(name));
}

async function readFiles(
  where: GuidanceOptions,
  isNew: (name: string, path: string) => boolean,
): Promise<FileCommand[]> {
  const files: FileCommand[] = [];
  for (const file of listFiles(where)) {
    const command = isNew(file.name, file.path) ? await readCommand(file, where.warn) : undefined;
    if (command) files.push(command);
  }
  return files;
}

/** The commands of plugins, in the shape of all commands. */
export function pluginCommands({ commands }: Pick<Harness, "commands">): SlashCommand[] {
  return (commands?.list() ?? []).map(({ name, about, hint }) => ({
    name,
    about,
    ...(hint !== undefined && { hint }),
    run: async (rest) => commands?.run(name, rest),
  }));
}

/** Before the name of a skill. */
export const SKILL_PREFIX = "skill:";

/** `/skill:NAME rest` for each skill: has the model read it, and do the rest by it. */
function skillCommands(skills: readonly Skill[]): SlashCommand[] {
  return skills.map(({ name, description }) => ({
    name: `${SKILL_PREFIX}${name}`,
    aliases: [name],
    about: description,
    hint: "what to do",
    run: (rest) => ({
      prompt: rest === "" ? `Use the skill ${name}.` : `Use the skill ${name}: ${rest}`,
    }),
  }));
}

/** The user's own first, then the project's, the nearest folder first. */
function listFiles({
  cwd,
  home,
  config,
  claude = join(home, ".claude"),
  warn,
}: GuidanceOptions): CommandFile[] {
  const folders = projectFolders(cwd, home);
  const [root] = folders;
  const files: CommandFile[] = [];
  const seen = new Set<string>();
  const add = (among: string, problemOf: (path: string) => string | undefined): void => {
    for (const path of pathsIn(among)) {
      const name = parseName(relative(among, path));
      const real = realPath(path);
      if (name === undefined || seen.has(real)) continue;
      seen.add(real);
      files.push({ name, path, problem: () => problemOf(path) });
    }
  };
  add(join(config, FOLDER), () => undefined);
  add(join(claude, FOLDER), () => undefined);
  for (const folder of folders.toReversed()) {
    for (const owner of [".gyre", ".claude"]) {
      add(join(folder, owner, FOLDER), (path) => untrustedReason(realPath(path), root, cwd));
    }
  }
  if (files.length <= MAX_COMMANDS) return files;
  warn(`There are ${files.length} commands in files; the first ${MAX_COMMANDS} are used.`);
  return files.slice(0, MAX_COMMANDS);
}

function pathsIn(folder: string, depth = 0): string[] {
  if (depth > MAX_DEPTH || !isThere(folder)) return [];
  try {
    return readdirSync(folder, { withFileTypes: true })
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .flatMap((entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return pathsIn(path, depth + 1);
        return entry.name.endsWith(ENDING) ? [path] : [];
      });
  } catch {
    // Not for us: no commands of it then.
    return [];
  }
}

/** `folder:name`; undefined where that could not be typed. */
function parseName(path: string): string | undefined {
  const parts = path.slice(0, -ENDING.length).split(sep);
  return parts.every((part) => NAME.test(part)) ? parts.join(":") : undefined;
}

async function readCommand(
  file: CommandFile,
  warn: GuidanceOptions["warn"],
): Promise<FileCommand | undefined> {
  const text = readText(file);
  if (typeof text !== "string") {
    warn(`${file.path} is not used: it ${text.problem}.`);
    return undefined;
  }
  const { fields, problems } = await readFrontmatter(text, KEYS);
  // A file without lines about it is all text.
  if (text.startsWith("---")) {
    for (const problem of problems) warn(`${file.path}, line ${problem.line}: ${problem.text}.`);
  }
  const hint = fieldText(fields.get("argument-hint")?.value);
  const readNow = (): string => {
    const now = readText(file);
    if (typeof now !== "string") throw new Error(`${file.path} ${now.problem}.`);
    return readBody(now);
  };
  const checkText = (prompt: string): string => {
    if (prompt.trim() === "") throw new Error(`${file.path} has no text to send.`);
    return prompt.trim();
  };
  return {
    name: file.name,
    about: fieldText(fields.get("description")?.value) ?? firstLine(text) ?? basename(file.path),
    ...(hint !== undefined && { hint }),
    fill: (rest) => {
      const body = readNow();
      if (!NEEDS_TOOLS.test(body)) return checkText(filledIn(body, rest));
      throw new Error(`/${file.name} runs commands or names files: it is for a session of gyre.`);
    },
    async run(rest, { harness, signal }) {
      const body = readNow();
      const prompt = checkText(
        NEEDS_TOOLS.test(body)
          ? await (await import("./files/expand.ts")).expand(body, rest, { harness, signal })
          : filledIn(body, rest),
      );
      // In the editor these begin a command.
      return { prompt: /^[!/]/.test(prompt) ? ` ${prompt}` : prompt };
    },
  };
}

function readText({ path, problem }: CommandFile): string | { problem: string } {
  const strange = problem();
  if (strange !== undefined) return { problem: strange };
  const read = readSmallFile(path, 0, MAX_COMMAND_BYTES) ?? { problem: "is not there any more" };
  return "problem" in read ? read : sanitize(read.content.toString("utf8"));
}

function firstLine(text: string): string | undefined {
  const line = readBody(text)
    .split("\n")
    .map((each) => each.replace(/^#+\s*/, "").trim())
    .find((each) => each !== "");
  return line === undefined ? undefined : cut(line);
}

function fieldText(value: FieldValue | undefined): string | undefined {
  if (value === undefined || typeof value === "string") {
    return value?.trim() ? cut(value) : undefined;
  }
  // `[file] [line]` without quotes is a list to YAML.
  return Array.isArray(value) ? cut(`[${value.join(", ")}]`) : undefined;
}

function cut(text: string): string {
  const line = sanitize(text.trim().replace(/\s+/g, " "));
  return line.length > MAX_ABOUT_CHARS ? `${line.slice(0, MAX_ABOUT_CHARS)}…` : line;
}
