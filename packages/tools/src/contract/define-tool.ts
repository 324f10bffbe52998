import type { AgentTool } from "@gyre/agent";
import type { ToolSchema } from "@gyre/ai";
import type { GuardedTool } from "./access.ts";
import type { ToolEntry } from "./entry.ts";

/**
 * The tool of an entry. As `defineTool`, it works out the type of `args` from `parameters`; it
 * loads no package, so that a small tool can stand in one file with its entry.
 */
export function defineEntryTool<const S extends ToolSchema>(
  { name, presentation }: Pick<ToolEntry, "name" | "presentation">,
  tool: Omit<AgentTool<S>, "name" | "presentation"> & Pick<GuardedTool, "access" | "check">,
): GuardedTool {
  return { ...tool, name, presentation };
}
