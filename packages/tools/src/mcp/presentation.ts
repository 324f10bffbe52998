import type { ToolPresentation } from "@gyre/agent";
import { looseRecord, looseText } from "../contract/loose.ts";

export const toolSearchPresentation: ToolPresentation = {
  kind: "search",
  verb: "Find tools:",
  title: (args) => looseText(args, "query"),
};

export const mcpCallPresentation: ToolPresentation = {
  kind: "other",
  verb: "",
  title: (args) => looseText(args, "tool"),
  unwrap(args) {
    const name = looseText(args, "tool");
    return name === "" ? undefined : { name, args: looseRecord(args["arguments"]) };
  },
};
