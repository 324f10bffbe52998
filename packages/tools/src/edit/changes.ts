import type { FileChange } from "@gyre/agent";
import { type Loose, looseRecord, looseText } from "../contract/loose.ts";

/** What became of one file, from the details of an edit or of a patch. */
export function readFileChange(details: Loose): FileChange[] {
  const { path, diff, edits, movedTo } = details;
  if (typeof path !== "string" || typeof diff !== "string") return [];
  const first = looseRecord(Array.isArray(edits) ? edits[0] : undefined);
  const line = Number.parseInt(looseText(first, "lines"), 10);
  return [
    {
      path,
      change: { diff },
      ...(typeof movedTo === "string" && { movedTo }),
      ...(details["type"] === "delete" && { isDeleted: true }),
      ...(line > 0 && { firstLine: line }),
    },
  ];
}
