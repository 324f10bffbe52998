import type { ToolEntry } from "../../contract/entry.ts";
import { looseRecord, looseText } from "../../contract/loose.ts";
import { locatePath } from "../locations.ts";

export const writeEntry: ToolEntry = {
  name: "write",
  aliases: ["Write"],
  presentation: {
    kind: "edit",
    verb: "Write",
    title: (args, quote) => quote(looseText(args, "path")),
    locations: (args) => locatePath({ path: args["path"] }),
    effects: (args) => ({ changes: locatePath(args).map(({ path }) => path) }),
    proposal(args) {
      const path = looseText(args, "path");
      return path === "" ? undefined : { type: "write", path, newText: looseText(args, "content") };
    },
    summarize({ details }) {
      const { path, oldText, newText, created } = looseRecord(details);
      if (typeof path !== "string" || typeof newText !== "string") return {};
      // A replaced file whose old text is unknown must not look like a new one.
      if (typeof oldText !== "string" && created !== true) return {};
      return {
        changes: [{ path, change: { newText, ...(typeof oldText === "string" && { oldText }) } }],
      };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).writeTool(env),
};
