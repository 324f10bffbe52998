import { type AgentTool, defineTool } from "@gyre/agent";
import type { ToolSchema } from "@gyre/ai";
import type { GuardedTool } from "./access.ts";
import type { ToolEntry } from "./entry.ts";

/** The tool of an entry. As `defineTool`, it works out the type of `args` from `parameters`. */
export function defineEntryTool<const S extends ToolSchema>(
  { name, presentation }: Pick<ToolEntry, "name" | "presentation">,
  tool: Omit<AgentTool<S>, "name" | "presentation"> & Pick<GuardedTool, "access">,
): GuardedTool {
  return { ...defineTool<S>({ ...tool, name, presentation }), access: tool.access };
}
