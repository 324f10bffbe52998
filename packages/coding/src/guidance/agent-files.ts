import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { AGENT_KINDS, type AgentKind, sanitize } from "@gyre/tools";
import { TOOLS } from "@gyre/tools/catalog";
import { readSmallFile } from "../settings/file.ts";
import { isThere, realPath } from "../settings/project-file.ts";
import { type Field, readBody, readFrontmatter } from "./frontmatter.ts";
import type { GuidanceOptions } from "./instructions.ts";
import { projectFolders, untrustedReason } from "./project-folders.ts";

/** Of one folder; each is named in every request. */
export const MAX_AGENT_FILES = 50;
/** Of a description, in every request. */
const MAX_DESCRIPTION_CHARS = 160;
const NAME = /^[\w][\w-]{0,63}$/;
const KEYS: ReadonlySet<string> = new Set(["name", "description", "tools", "model"]);
const FOLDERS = [".gyre", ".claude"];
/** Models that other programs call so: the caller's own. */
const INHERIT = "inherit";

/** A kind of sub-agent that a file describes. */
export interface AgentFile extends AgentKind {
  readonly path: string;
  /** As it is on the disk. */
  readonly content: Buffer;
}

/**
 * Reads what files say of sub-agents: the user's, which go before those of the same name of a project,
 * and the project's, the nearest first. `warn` gets what is wrong with one, with file and line.
 */
export async function findAgentFiles(options: GuidanceOptions): Promise<readonly AgentFile[]> {
  const { warn, texts, hold } = options;
  const found = new Map<string, AgentFile>();
  for (const path of listFiles(options)) {
    const read = readSmallFile(path);
    if (!read) continue;
    if ("problem" in read) {
      warn(`${path} is not used: it ${read.problem}.`);
      continue;
    }
    const written = texts?.find(read.content, realPath(path));
    if (written) {
      hold?.({ ...written, path, content: read.content });
      continue;
    }
    const agent = await parseAgent(path, read.content, warn);
    if (!agent) continue;
    const taken = found.get(agent.name);
    if (AGENT_KINDS.some(({ name }) => name === agent.name)) {
      warn(`${path} is not used: "${agent.name}" is an agent of gyre. Give it another name.`);
    } else if (taken) warn(`${path} is not used: ${taken.path} has the same name.`);
    else found.set(agent.name, agent);
  }
  return [...found.values()];
}

/** Where such files may be, of these folders and of the configuration. */
export function agentFolders(folders: readonly string[], config: string): string[] {
  return [join(config, "agents"), ...folders.flatMap(inFolder)];
}

function inFolder(folder: string): string[] {
  return FOLDERS.map((name) => join(folder, name, "agents"));
}

function listFiles({ cwd, home, config, warn }: GuidanceOptions): string[] {
  const folders = projectFolders(cwd, home);
  const [root] = folders;
  const paths = new Map<string, string>();
  const look = (folder: string, refuse: (real: string) => string | undefined): void => {
    for (const name of namesIn(folder).slice(0, MAX_AGENT_FILES)) {
      const path = join(folder, name);
      if (!name.endsWith(".md") || !isThere(path)) continue;
      const real = realPath(path);
      if (paths.has(real)) continue;
      const problem = refuse(real);
      if (problem === undefined) paths.set(real, path);
      else warn(`${path} is not used: it ${problem}.`);
    }
  };
  for (const folder of [join(config, "agents"), ...inFolder(home)]) look(folder, () => undefined);
  for (const folder of folders.toReversed()) {
    for (const each of inFolder(folder)) look(each, (real) => untrustedReason(real, root, cwd));
  }
  return [...paths.values()];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // Not there, or not for us: no agents of it then.
    return [];
  }
}

async function parseAgent(
  path: string,
  content: Buffer,
  warn: (text: string) => void,
): Promise<AgentFile | undefined> {
  const text = content.toString("utf8");
  const { fields, problems } = await readFrontmatter(text, KEYS);
  for (const problem of problems) warn(`${path}, line ${problem.line}: ${problem.text}.`);
  const name = readText(fields, "name") ?? basename(path, ".md");
  const description = readText(fields, "description");
  if (!NAME.test(name)) {
    warn(
      `${path} is not used: its name has to be at most 64 letters, digits, "-" and "_", not ${JSON.stringify(name)}.`,
    );
    return undefined;
  }
  if (description === undefined) {
    warn(`${path} is not used: it has no description.`);
    return undefined;
  }
  const tools = readTools(fields.get("tools"), (tool) =>
    warn(`${path}: there is no tool ${JSON.stringify(tool)}; the agent has the others.`),
  );
  const model = readText(fields, "model");
  return {
    path,
    content,
    name,
    description: shorten(description),
    instructions: sanitize(readBody(text)),
    ...(tools && { tools }),
    ...(model !== undefined && model !== INHERIT && { model }),
  };
}

function readText(fields: ReadonlyMap<string, Field>, key: string): string | undefined {
  const value = fields.get(key)?.value;
  const text = typeof value === "string" ? sanitize(value, { keepNewlines: false }).trim() : "";
  return text === "" ? undefined : text;
}

/** Our names of tools, which other programs call otherwise: `Bash` is `shell`. */
function readTools(
  field: Field | undefined,
  missing: (name: string) => void,
): readonly string[] | undefined {
  if (!field) return undefined;
  const { value } = field;
  const names =
    typeof value === "string" ? value.split(/[\s,]+/) : Array.isArray(value) ? value : [];
  const wanted = names.map(String).filter((name) => name !== "");
  if (wanted.length === 0 || wanted.includes("*")) return undefined;
  return wanted.flatMap((name) => {
    // Tools of servers, of plugins and of skills are not known here.
    if (/^mcp__|^(?:tool_search|mcp_call|skill|task)$/.test(name)) return [name];
    const known = TOOLS.filter((tool) => tool.name === name || tool.aliases?.includes(name));
    if (known.length === 0) missing(name);
    return known.map((tool) => tool.name);
  });
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ");
  if (line.length <= MAX_DESCRIPTION_CHARS) return line;
  return `${line.slice(0, MAX_DESCRIPTION_CHARS).replace(/[\ud800-\udbff]$/, "")}…`;
}
