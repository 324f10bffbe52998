import type { ToolEntry } from "../../contract/entry.ts";
import { looseNumber, looseRecord, looseText } from "../../contract/loose.ts";
import { takeLines } from "../../contract/result-lines.ts";
import { countShown } from "../../text/text.ts";
import { locatePath } from "../locations.ts";

export const lsEntry: ToolEntry = {
  name: "ls",
  aliases: ["LS"],
  presentation: {
    kind: "read",
    paged: true,
    verb: "List",
    literal: true,
    title: (args, quote) => quote(looseText(args, "path") || "."),
    locations: (args) => locatePath({ path: args["path"] }),
    effects: () => ({ reads: true }),
    summarize({ content, details }) {
      const listing = looseRecord(details);
      const total = looseNumber(listing, "totalEntries");
      if (total === undefined) return {};
      const { names } = listing;
      const shown = looseNumber(listing, "shownEntries");
      const all = takeLines({ content }, shown ?? 0);
      const named = Array.isArray(names) ? names.filter((name) => typeof name === "string") : all;
      return {
        summary: countShown(shown ?? total, total, "entry", "entries"),
        isPartial: shown !== undefined && shown < total,
        ...(total > 0 && { lines: { all, keep: "list", names: named } }),
      };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).lsTool(env),
};
