import type { ToolEntry } from "../../contract/entry.ts";
import { type Loose, looseNumber, looseRecord, looseText } from "../../contract/loose.ts";
import { counted, grouped } from "../../text/text.ts";
import { locatePath } from "../locations.ts";

export const readEntry: ToolEntry = {
  name: "read",
  aliases: ["Read"],
  presentation: {
    kind: "read",
    paged: true,
    verb: "Read",
    literal: true,
    title: (args, quote) => quote(looseText(args, "path")) + formatRange(args),
    locations: locatePath,
    effects: () => ({ reads: true }),
    summarize({ details }) {
      const read = looseRecord(details);
      const type = read["mimeType"];
      if (typeof type === "string") {
        return { summary: type.startsWith("image/") ? "an image" : type };
      }
      const total = looseNumber(read, "totalLines");
      if (total === undefined) return {};
      const shown = looseNumber(read, "shownLines");
      const first = looseNumber(read, "firstLine");
      if (shown === undefined || first === undefined || shown >= total) {
        return { summary: counted(total, "line") };
      }
      const summary = `lines ${first}-${first + shown - 1} of ${grouped(total)}`;
      return { summary, isPartial: true };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).readTool(env),
};

function formatRange(args: Loose): string {
  const offset = looseNumber(args, "offset");
  const limit = looseNumber(args, "limit");
  if (offset === undefined) return limit === undefined ? "" : ` (${counted(limit, "line")})`;
  return limit === undefined
    ? ` (from line ${offset})`
    : ` (lines ${offset}-${offset + limit - 1})`;
}
