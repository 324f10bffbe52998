import type { ToolEntry } from "../../contract/entry.ts";
import { looseNumber, looseRecord } from "../../contract/loose.ts";
import { takeLines } from "../../contract/result-lines.ts";
import { locatePath, titleSearch } from "../../files/locations.ts";
import { counted } from "../../text/text.ts";

export const grepEntry: ToolEntry = {
  name: "grep",
  aliases: ["Grep"],
  presentation: {
    kind: "search",
    paged: true,
    verb: "Search",
    literal: true,
    title: titleSearch,
    locations: (args) => locatePath({ path: args["path"] }),
    effects: () => ({ reads: true }),
    summarize({ content, details }) {
      const search = looseRecord(details);
      const matches = looseNumber(search, "matches");
      const files = looseNumber(search, "files");
      if (matches === undefined || files === undefined) return {};
      if (matches === 0) return { summary: "no matches" };
      const isPartial = search["isPartial"] === true;
      return {
        summary: `${counted(matches, "match", "matches")} in ${counted(files, "file")}${isPartial ? ", not all" : ""}`,
        isPartial,
        lines: {
          all: takeLines({ content }, looseNumber(search, "shownLines") ?? matches),
          keep: "head",
        },
      };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).grepTool(env),
};
