import { DEFAULT_TOOLS, TOOL_NAMES } from "@gyre/tools/catalog";

export { DEFAULT_TOOLS };

/** What an agent has if it is named. */
export const OTHER_TOOLS: readonly string[] = TOOL_NAMES.filter(
  (name) => !DEFAULT_TOOLS.includes(name),
);

/** Stands for the tools of MCP servers in a list of tools. */
export const MCP_GROUP = "mcp";
/** Stands for all tools of plugins. */
export const PLUGIN_GROUP = "plugins";
/** Stands for the tool that reads skills, where there are skills. */
export const SKILL_GROUP = "skills";

const SKILL_TOOL = "skill";
/** Names that stand for tools that depend on the folder. */
export const TOOL_GROUPS: readonly string[] = [SKILL_GROUP, PLUGIN_GROUP, MCP_GROUP];

const USUAL: readonly string[] = [...DEFAULT_TOOLS, ...TOOL_GROUPS];

/** Whether a name in a list of tools adds a tool to others ("+git"), or takes one away ("-git"). */
export function isToolChange(name: string): boolean {
  return /^[+-]./.test(name);
}

/** A later list of tools put to an earlier one: names replace it, changes alone change it. */
export function addToolLists(earlier: readonly string[], later: readonly string[]): string[] {
  return isOnlyChanges(later) ? [...earlier, ...later] : [...later];
}

/**
 * A list of names without changes: "+git" and "-git" change the names before them, or the usual
 * tools where there are none before. A tool that is not in the list and taken away stays as "-name":
 * it may be one of a plugin.
 */
export function applyToolChanges(list: readonly string[]): readonly string[] {
  if (!list.some(isToolChange)) return list;
  const names = new Set(isToolChange(list[0] ?? "") ? USUAL : []);
  for (const item of list) {
    if (!isToolChange(item)) names.add(item);
    else if (item.startsWith("+")) names.add(item.slice(1)).delete(`-${item.slice(1)}`);
    else if (
      !names.delete(item.slice(1)) &&
      !(item === `-${SKILL_TOOL}` && names.delete(SKILL_GROUP))
    ) {
      names.add(item);
    }
  }
  return [...names];
}

/** Whether a list has a tool, by its name or by a name that stands for it. No list: the usual tools. */
export function isToolIn(
  list: readonly string[] = USUAL,
  name: string,
  isOfServer: boolean,
): boolean {
  if (list.includes(name)) return true;
  if (isOfServer) return list.includes(MCP_GROUP);
  if (name === SKILL_TOOL) return list.includes(SKILL_GROUP);
  const isOfPlugin = !TOOL_NAMES.includes(name);
  return isOfPlugin && list.includes(PLUGIN_GROUP) && !list.includes(`-${name}`);
}

function isOnlyChanges(list: readonly string[]): boolean {
  return list.length > 0 && list.every(isToolChange);
}
