import type { ToolEntry } from "../../contract/entry.ts";
import { counted } from "../../text/text.ts";
import type { TodoList } from "./tool.ts";

export const todoEntry: ToolEntry<{ todos: TodoList }> = {
  name: "todo",
  aliases: ["TodoWrite"],
  presentation: {
    kind: "think",
    verb: "Update the plan:",
    title: ({ todos }) => (Array.isArray(todos) ? counted(todos.length, "step") : ""),
  },
  make: async ({ todos }) => (await import("./tool.ts")).todoTool(todos),
};
