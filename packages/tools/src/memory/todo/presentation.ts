import type { ToolPresentation } from "@gyre/agent";
import { counted } from "../../text/text.ts";

export const todoPresentation: ToolPresentation = {
  kind: "think",
  verb: "Update the plan:",
  title: ({ todos }) => (Array.isArray(todos) ? counted(todos.length, "step") : ""),
};
