import type { ToolPresentation } from "@gyre/agent";
import { looseText } from "../../contract/loose.ts";

export const oraclePresentation: ToolPresentation = {
  kind: "think",
  verb: "Ask:",
  title: (args) => looseText(args, "question"),
  delegates: true,
};
