import type { ToolPresentation } from "@gyre/agent";

export const notesPresentation: ToolPresentation = {
  kind: "think",
  verb: "Take notes",
  title: () => "",
};
