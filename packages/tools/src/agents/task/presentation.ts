import type { ToolPresentation } from "@gyre/agent";
import { looseText } from "../../contract/loose.ts";

export const taskPresentation: ToolPresentation = {
  kind: "think",
  verb: "Delegate:",
  title: (args) => looseText(args, "description"),
  delegates: true,
};
