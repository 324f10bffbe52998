import type { ToolPresentation } from "@gyre/agent";
import { looseRecord, looseText } from "../contract/loose.ts";

export const shellPresentation: ToolPresentation = {
  kind: "execute",
  verb: "",
  literal: true,
  title: (args, quote) => quote(looseText(args, "command")),
  effects(args) {
    const command = looseText(args, "command");
    return command === "" ? {} : { command };
  },
  summarize({ details }) {
    const ended = looseRecord(details);
    if (typeof ended["stdout"] !== "string") return {};
    const { exitCode, timedOut, aborted } = ended;
    const all = `${ended["stdout"]}\n${looseText(ended, "stderr")}`.split("\n");
    return {
      facts: exitCode === 0 ? [] : [formatExit({ exitCode, timedOut, aborted })],
      lines: { all, keep: "tail" },
    };
  },
};

export const jobsPresentation: ToolPresentation = {
  kind: "execute",
  verb: "Job",
  literal: true,
  title: (args) => `${looseText(args, "action")} ${looseText(args, "id")}`.trim(),
};

/** How a command ended. */
function formatExit(ended: { exitCode: unknown; timedOut: unknown; aborted: unknown }): string {
  if (ended.timedOut === true) return "timed out";
  if (ended.aborted === true) return "aborted";
  return typeof ended.exitCode === "number" ? `exit code ${ended.exitCode}` : "ended by a signal";
}
