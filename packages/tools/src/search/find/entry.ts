import type { ToolEntry } from "../../contract/entry.ts";
import { looseNumber, looseRecord } from "../../contract/loose.ts";
import { takeLines } from "../../contract/result-lines.ts";
import { locatePath, titleSearch } from "../../files/locations.ts";
import { countShown } from "../../text/text.ts";

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
      const shown = looseNumber(search, "shown");
      const all = takeLines({ content }, shown ?? 0);
      return {
        summary: countShown(shown ?? found, found, "match", "matches"),
        isPartial: shown !== undefined && shown < found,
        ...(found > 0 && { lines: { all, keep: "list" } }),
      };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).findTool(env),
};
