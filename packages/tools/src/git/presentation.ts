import type { ToolPresentation } from "@gyre/agent";
import { looseText } from "../contract/loose.ts";

export const gitPresentation: ToolPresentation = {
  kind: "execute",
  verb: "git",
  literal: true,
  title: (args) => looseText(args, "action"),
};
