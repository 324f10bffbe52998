import type { ToolEntry } from "../../contract/entry.ts";
import type { NotePad } from "./tool.ts";

export const notesEntry: ToolEntry<{ notes: NotePad }> = {
  name: "notes",
  presentation: {
    kind: "think",
    verb: "Take notes",
    title: () => "",
  },
  isPersonal: true,
  make: async ({ notes }) => (await import("./tool.ts")).notesTool(notes),
};
