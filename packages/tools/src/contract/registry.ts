import type { AgentTool } from "@gyre/agent";
import { nearNames } from "@gyre/ai";

/** A tool was asked for that is not there. */
export class UnknownToolError extends Error {
  readonly code = "unknown_tool";
  constructor(message: string) {
    super(message);
    this.name = "UnknownToolError";
  }
}

/** The tools that an agent may be given, by name. */
export class ToolRegistry {
  readonly #tools = new Map<string, AgentTool>();

  constructor(tools: Iterable<AgentTool> = []) {
    for (const tool of tools) this.register(tool);
  }

  /** Adds a tool. A name that is taken is an error. */
  register(tool: AgentTool): void {
    if (this.#tools.has(tool.name)) throw new Error(`There is a tool "${tool.name}" already.`);
    this.#tools.set(tool.name, tool);
  }

  /** All of them, in the order in which they were registered. */
  list(): AgentTool[] {
    return [...this.#tools.values()];
  }

  /** The tool of a name. Throws with the nearest names where there is no such tool. */
  get(name: string): AgentTool {
    const tool = this.#tools.get(name);
    if (tool) return tool;
    throw noSuchTool(name, this.#tools.keys());
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }
}

/** What to say of a name that no tool has: the near ones, or all. */
export function noSuchTool(name: string, names: Iterable<string>): UnknownToolError {
  const all = [...names];
  const near = nearNames(name, all);
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(" or ")}?`
      : `Available: ${all.join(", ") || "none"}.`;
  return new UnknownToolError(`There is no tool "${name}". ${hint}`);
}
