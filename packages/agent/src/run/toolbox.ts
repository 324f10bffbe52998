import { type Tool, toJsonSchema } from "@gyre/ai";
import type { AgentTool } from "../contract/types.ts";

/** The tools of a run: by name for the loop, and as the model reads about them. */
export interface Toolbox {
  readonly byName: ReadonlyMap<string, AgentTool>;
  readonly specs: readonly Tool[];
}

/** Throws on two tools of the same name. */
export function makeToolbox(tools: readonly AgentTool[]): Toolbox {
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
  return { byName, specs };
}
