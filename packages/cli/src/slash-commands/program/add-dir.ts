import type { Harness } from "@gyre/coding/internal/harness/harness";
import { shownLine } from "@gyre/coding/internal/text/shown-text";

/** Adds a folder to the workspace; without a path, the folders that were added. */
export async function addDir(rest: string, harness: Harness): Promise<string> {
  const { folders, root } = harness.toolset.env.workspace;
  if (rest === "") {
    if (folders.length === 0) return "No folders were added. /add-dir FOLDER adds one.";
    return `The workspace is ${shownLine(root)} and\n${folders.map(shownLine).join("\n")}`;
  }
  if (!harness.addFolder) throw new Error("Folders cannot be added here.");
  const added = await harness.addFolder(rest);
  if (added === undefined) return `${shownLine(rest)} belongs to the workspace already.`;
  return `${shownLine(added)} belongs to the workspace now.`;
}
