import { errorMessage, explainUnchecked, type Tool, toJsonSchema } from "@gyre/ai";
import { warn } from "../contract/contain.ts";
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
    reportUnchecked(tool);
    specs.push({ name, description, parameters: toJsonSchema(tool.parameters) });
  }
  return { byName, specs };
}

const reported = new WeakSet<object>();

/** Reports once that a tool runs with arguments that are not checked (R12). */
function reportUnchecked({ name, parameters }: AgentTool): void {
  if (reported.has(parameters)) return;
  reported.add(parameters);
  let why: string | undefined;
  try {
    why = explainUnchecked(parameters);
  } catch (error) {
    why = errorMessage(error);
  }
  if (why !== undefined) warn(`The arguments of tool "${name}" are not checked`, why);
}
