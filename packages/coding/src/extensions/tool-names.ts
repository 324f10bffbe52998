import type { AgentTool } from "@gyre/agent";
import { TOOL_NAMES } from "@gyre/tools";
import { DEFAULT_TOOLS, PLUGIN_GROUP, SKILL_GROUP } from "../core/tool-lists.ts";
import { SKILL_TOOL } from "../guidance/skills.ts";

export interface WantedTools {
  /** By name. Absent: the usual ones, and all of plugins. */
  named: readonly string[] | undefined;
  /** Those of plugins. */
  plugins: readonly AgentTool[];
  /** A name that no tool has is reported and passed over; else it is left for an error. */
  isLenient: boolean;
  warn: (text: string) => void;
}

/** The tools that are asked for, apart by who has them. */
export function selectTools({ named, plugins, isLenient, warn }: WantedTools): {
  /** Names of our own. */
  own: readonly string[];
  added: readonly AgentTool[];
} {
  if (!named) return { own: DEFAULT_TOOLS, added: plugins };
  const hasAll = named.includes(PLUGIN_GROUP);
  const added = plugins.filter(
    ({ name }) => named.includes(name) || (hasAll && !named.includes(`-${name}`)),
  );
  const ours = new Set([...TOOL_NAMES, SKILL_TOOL]);
  const others = new Set([
    PLUGIN_GROUP,
    SKILL_GROUP,
    ...plugins.flatMap(({ name }) => [name, `-${name}`]),
  ]);
  const own = named.filter((name) => !others.has(name));
  const missing = own.filter((name) => !ours.has(name));
  if (!isLenient || missing.length === 0) return { own, added };
  warn(`There is no tool "${missing.join('", "')}": it goes on without.`);
  return { own: own.filter((name) => ours.has(name)), added };
}
