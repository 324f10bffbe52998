import { createHash } from "node:crypto";

/** What services take for the name of a tool. */
export const MAX_TOOL_NAME_CHARS = 64;
const MAX_ALIAS_CHARS = 28;
const MARK_CHARS = 6;

const PREFIX = "mcp__";
const BETWEEN = "__";

/**
 * How servers are called in the names of their tools, in the order of `names`: letters,
 * digits, hyphens and single underscores, each different from the others. None has two
 * underscores in a row or one at its end, so a name says which server it is of.
 */
export function serverAliases(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const plain = name.replace(/[^A-Za-z0-9-]+/g, "_").replace(/^_+|_+$/g, "");
    const fits = plain.length <= MAX_ALIAS_CHARS && plain !== "" && !taken.has(plain);
    const alias = fits ? plain : marked(plain, name, MAX_ALIAS_CHARS, taken);
    taken.add(alias);
    return alias;
  });
}

/**
 * The names by which a model knows the tools of a server, in the order of `tools`: at most
 * 64 characters, each different from the others.
 */
export function toolNames(alias: string, tools: readonly string[]): string[] {
  const start = `${PREFIX}${alias}${BETWEEN}`;
  const room = MAX_TOOL_NAME_CHARS - start.length;
  const taken = new Set<string>();
  return tools.map((tool) => {
    const plain = tool.replace(/[^A-Za-z0-9_-]/g, "_");
    const fits = plain.length <= room && plain !== "" && !taken.has(plain);
    const name = fits ? plain : marked(plain, tool, room, taken);
    taken.add(name);
    return start + name;
  });
}

/** A rule for all tools of a server. */
export function ruleForServer(alias: string): string {
  return `${PREFIX}${alias}${BETWEEN}*`;
}

/**
 * Cut to fit, with an end that is made of the whole: others cut to the same have another. One
 * that is taken all the same, because a server has foreseen it, gets the next.
 */
function marked(plain: string, whole: string, most: number, taken: ReadonlySet<string>): string {
  const mark = createHash("sha256").update(whole).digest("hex").slice(0, MARK_CHARS);
  const head = plain.slice(0, most - MARK_CHARS - 1).replace(/_+$/, "");
  const name = head === "" ? mark : `${head}_${mark}`;
  return taken.has(name) ? marked(plain, `${whole}\0`, most, taken) : name;
}
