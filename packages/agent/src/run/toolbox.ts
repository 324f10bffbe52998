import { type Tool, toJsonSchema } from "@gyre/ai";
import type { AgentTool } from "../contract/types.ts";

/** The tools of a run: by name for the loop, and as the model is told of them. */
export interface Toolbox {
  readonly byName: ReadonlyMap<string, AgentTool>;
  readonly specs: readonly Tool[];
}

interface Known extends Toolbox {
  readonly tools: readonly AgentTool[];
}

const known = new WeakMap<readonly AgentTool[], Known>();

/** Made once for a list of tools that stays as it is. Throws on a name that is there twice. */
export function toolboxOf(tools: readonly AgentTool[]): Toolbox {
  const before = known.get(tools);
  if (before && sameTools(before.tools, tools)) return before;
  const byName = new Map<string, AgentTool>();
  const specs: Tool[] = [];
  for (const tool of tools) {
    const { name, description } = tool;
    if (byName.has(name)) {
      throw new TypeError(`Two tools are named "${name}". Names must be unique.`);
    }
    byName.set(name, tool);
    specs.push({ name, description, parameters: toJsonSchema(tool.parameters) });
  }
  const toolbox: Known = { byName, specs, tools: tools.slice() };
  known.set(tools, toolbox);
  return toolbox;
}

function sameTools(one: readonly AgentTool[], other: readonly AgentTool[]): boolean {
  return one.length === other.length && one.every((tool, index) => tool === other[index]);
}
