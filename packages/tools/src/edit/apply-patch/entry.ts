import type { ToolEntry } from "../../contract/entry.ts";
import { type Loose, looseRecord, looseText } from "../../contract/loose.ts";
import { readFileChange } from "../changes.ts";

/** A longer patch is searched for names of files up to here. */
const MAX_SEARCHED_CHARS = 200_000;

const PATCHED_FILE = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm;

export const applyPatchEntry: ToolEntry = {
  name: "apply_patch",
  aliases: ["Edit", "MultiEdit", "Write"],
  presentation: {
    kind: "edit",
    verb: "Patch",
    title: (args, quote) => listPatched(args).map(quote).join(", "),
    locations: (args) => listPatched(args).map((path) => ({ path })),
    effects: (args) => ({ changes: listPatched(args) }),
    proposal: ({ patch }) =>
      typeof patch === "string" ? { type: "patch", text: patch } : undefined,
    summarize({ details }) {
      const { files } = looseRecord(details);
      if (!Array.isArray(files)) return {};
      return { changes: files.flatMap((file: unknown) => readFileChange(looseRecord(file))) };
    },
  },
  make: async ({ env }) => (await import("./tool.ts")).applyPatchTool(env),
};

/** The files that a patch names, also where it is not complete yet. */
function listPatched(args: Loose): string[] {
  const patch = looseText(args, "patch").slice(0, MAX_SEARCHED_CHARS);
  return [...patch.matchAll(PATCHED_FILE)].flatMap(([, path]) => path?.trim() ?? []);
}
