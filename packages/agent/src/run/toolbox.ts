import { errorMessage, explainUnchecked, type Tool, toJsonSchema } from "@gyre/ai";
import { warn } from "../contract/contain.ts";
import { type AgentTool, checkTool } from "../contract/types.ts";

/** The tools of a run: by name for the loop, and as the model reads about them. */
export interface Toolbox {
  readonly byName: ReadonlyMap<string, AgentTool>;
  readonly specs: readonly Tool[];
}

/** Throws on what is no tool, and on two tools of the same name. */
export function makeToolbox(tools: readonly AgentTool[]): Toolbox {
  if (!Array.isArray(tools)) throw new TypeError("`tools` is a list: write [one, another].");
  const byName = new Map<string, AgentTool>();
  const specs: Tool[] = [];
  for (const tool of tools) {
    if (!checked.has(tool)) checkTool(tool);
    checked.add(tool);
    const { name, description } = tool;
    if (byName.has(name)) {
      throw new TypeError(`Two tools are named "${name}". Names must be unique.`);
    }
    byName.set(name, tool);
    specs.push({ name, description, parameters: toJsonSchema(tool.parameters) });
  }
  return { byName, specs };
}

const checked = new WeakSet<AgentTool>();
const reported = new WeakSet<object>();

/**
 * Reports once that a tool runs with arguments that are not checked (R12). For the first call of it: a
 * schema takes time to compile, and most tools of a run are not called.
 */
export function reportUnchecked({ name, parameters }: AgentTool): void {
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
