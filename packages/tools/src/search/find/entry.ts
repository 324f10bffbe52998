import type { ToolEntry } from "../../contract/entry.ts";
import { looseNumber, looseRecord } from "../../contract/loose.ts";
import { takeLines } from "../../contract/result-lines.ts";
import { locatePath, titleSearch } from "../../files/locations.ts";
import { counted } from "../../text/text.ts";

export const findEntry: ToolEntry = {
  name: "find",
  aliases: ["Glob"],
  presentation: {
    kind: "search",
    paged: true,
    verb: "Find",
    literal: true,
    title: titleSearch,
    locations: (args) => locatePath({ path: args["path"] }),
    effects: () => ({ reads: true }),
    summarize({ content, details }) {
      const search = looseRecord(details);
      const found = looseNumber(search, "found");
      if (found === undefined) return {};
      const all = takeLines({ content }, looseNumber(search, "shown") ?? 0);
      return {
        summary: counted(found, "match", "matches"),
        ...(found > 0 && { lines: { all, keep: "list" } }),
      };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).findTool(env),
};
