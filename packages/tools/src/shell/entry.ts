import type { ToolEntry } from "../contract/entry.ts";
import type { ToolEnv } from "../contract/env.ts";
import { looseNumber, looseRecord, looseText } from "../contract/loose.ts";
import type { ShellOptions } from "./tool.ts";

export const shellEntry: ToolEntry<{ env: ToolEnv; shell: ShellOptions }> = {
  name: "shell",
  aliases: ["Bash"],
  presentation: {
    kind: "execute",
    verb: "",
    literal: true,
    title: (args, quote) => quote(looseText(args, "command")),
    purpose: (args) => looseText(args, "description"),
    effects(args) {
      const command = looseText(args, "command");
      return command === "" ? {} : { command };
    },
    summarize({ details }) {
      const ended = looseRecord(details);
      if (typeof ended["stdout"] !== "string") return {};
      const { exitCode, timedOut, aborted } = ended;
      const total = looseNumber(ended, "lines");
      const all = `${ended["stdout"]}\n${looseText(ended, "stderr")}`.split("\n");
      return {
        facts: exitCode === 0 ? [] : [formatExit({ exitCode, timedOut, aborted })],
        ...(ended["isCut"] === true && { summary: "the model got the beginning and the end" }),
        lines: { all, keep: "tail", ...(total !== undefined && { total }) },
      };
    },
  },
  make: async ({ env, shell }) => (await import("./tool.ts")).shellTool(env, shell),
};

/** How a command ended. */
function formatExit(ended: { exitCode: unknown; timedOut: unknown; aborted: unknown }): string {
  if (ended.timedOut === true) return "timed out";
  if (ended.aborted === true) return "aborted";
  return typeof ended.exitCode === "number" ? `exit code ${ended.exitCode}` : "ended by a signal";
}
