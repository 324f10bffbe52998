import type { ToolEntry } from "../contract/entry.ts";
import { looseRecord, looseText } from "../contract/loose.ts";
import { locatePath } from "../files/locations.ts";
import { readFileChange } from "./changes.ts";

export const editEntry: ToolEntry = {
  name: "edit",
  aliases: ["Edit", "MultiEdit"],
  presentation: {
    kind: "edit",
    verb: "Edit",
    title: (args, quote) => quote(looseText(args, "path")),
    locations: locatePath,
    effects: (args) => ({ changes: locatePath(args).map(({ path }) => path) }),
    proposal(args) {
      const path = looseText(args, "path");
      const { edits } = args;
      if (path === "" || !Array.isArray(edits)) return undefined;
      const texts = edits.flatMap((edit: unknown) => {
        const { oldText, newText } = looseRecord(edit);
        return typeof oldText === "string" && typeof newText === "string"
          ? [{ oldText, newText }]
          : [];
      });
      return { type: "edit", path, edits: texts };
    },
    summarize: ({ details }) => ({ changes: readFileChange(looseRecord(details)) }),
  },
  make: async ({ env }) => (await import("./tool.ts")).editTool(env),
};
