import type { ToolEntry } from "../../contract/entry.ts";
import { looseText } from "../../contract/loose.ts";
import type { SubAgentParts } from "../sub-agent.ts";
import type { TaskOptions } from "./tool.ts";

export const taskEntry: ToolEntry<
  SubAgentParts<{ task?: Omit<TaskOptions, "tools" | "middleware"> }>
> = {
  name: "task",
  aliases: ["Task", "Agent"],
  presentation: {
    kind: "think",
    verb: "Delegate:",
    title(args) {
      const kind = looseText(args, "agent");
      return `${kind === "" ? "" : `${kind}: `}${looseText(args, "description")}`;
    },
    delegates: true,
  },
  needsOptions: true,
  async make({ env, shared, options: { task, middleware } }) {
    if (!task) throw new Error("Sub-agents need a client for their model.");
    const { taskTool } = await import("./tool.ts");
    const { ToolRegistry } = await import("../../contract/registry.ts");
    const { moreTools = [] } = task;
    return taskTool(env, {
      ...task,
      ...(middleware && { middleware }),
      tools: new ToolRegistry(),
      // Tools that are made later are for sub-agents as well.
      moreTools: () => [
        ...[...shared.values()].filter(({ name }) => name !== taskEntry.name),
        ...(typeof moreTools === "function" ? moreTools() : moreTools),
      ],
    });
  },
};
