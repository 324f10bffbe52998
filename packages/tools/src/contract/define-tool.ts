import type { AgentTool, AgentToolResult } from "@gyre/agent";
import type { InferArguments, ToolSchema } from "@gyre/ai";
import type { GuardedTool } from "./access.ts";
import type { ToolEntry } from "./entry.ts";

type Shown = Pick<ToolEntry, "name" | "presentation">;
type Rest<S extends ToolSchema> = Omit<
  AgentTool<S, InferArguments<S>, AgentToolResult | string>,
  keyof Shown
> &
  Pick<GuardedTool, "access" | "check" | "rehearse">;

/**
 * The tool of an entry. As `defineTool`, it works out the type of `args` from `parameters`; it
 * loads no package, so that a small tool can stand in one file with its entry.
 */
export function defineEntryTool<const S extends ToolSchema>(
  shown: Shown,
  tool: Rest<S>,
): GuardedTool;
export function defineEntryTool(shown: Shown, tool: Rest<ToolSchema>): GuardedTool {
  return { ...tool, name: shown.name, presentation: shown.presentation };
}
