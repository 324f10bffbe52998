import type { ToolEntry } from "../../contract/entry.ts";
import { looseText } from "../../contract/loose.ts";
import type { JobTable } from "./job-table.ts";

export const jobsEntry: ToolEntry<{ jobs: JobTable }> = {
  name: "jobs",
  presentation: {
    kind: "execute",
    verb: "Job",
    literal: true,
    title(args, quote) {
      const action = `${looseText(args, "action")} ${looseText(args, "id")}`.trim();
      const input = looseText(args, "input");
      return input === "" ? action : `${action} ${quote(input)}`;
    },
  },
  make: async ({ jobs }) => (await import("./tool.ts")).jobsTool(jobs),
};
