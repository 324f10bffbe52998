import type { AgentTool } from "@gyre/agent";
import { isGuarded } from "../contract/access.ts";

/** The tool, refusing each call that would do more than read. Undefined where that cannot be known. */
export function readingOnly(tool: AgentTool): AgentTool | undefined {
  if (!isGuarded(tool)) return undefined;
  return {
    ...tool,
    async execute(args, context) {
      const { kind, destructive, summary } = await tool.access(args);
      if ((kind !== "read" && kind !== "none") || destructive) {
        throw new Error(
          `only reading is allowed here, and this would do more (${kind}): ${summary}`,
        );
      }
      return tool.execute(args, context);
    },
  };
}
