import type { TextContent } from "@gyre/ai";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import { lastBytes } from "../../process/output.ts";
import { howEnded } from "../../process/program-end.ts";
import { fromSource } from "../../text/provenance.ts";
import { sanitize } from "../../text/sanitize.ts";
import { counted, textResult } from "../../text/text.ts";
import { jobsEntry } from "./entry.ts";
import type { JobInfo, JobTable } from "./job-table.ts";

/** Shown to the model in one read. */
export const JOB_MAX_READ_BYTES: number = 30 * 1024;
/** A read may wait this long for something to read. */
export const JOB_MAX_WAIT_MS = 60_000;
const MS_PER_SECOND = 1_000;

/** Reads, stops and lists jobs. They are started by `shell`, which is asked about. */
export function jobsTool(jobs: JobTable): GuardedTool {
  return defineEntryTool(jobsEntry, {
    label: "Jobs",
    description: "Background jobs of shell. read: output since the last read.",
    parameters: {
      type: "object",
      properties: {
        action: { type: "string", enum: ["read", "stop", "list"] },
        id: { type: "string" },
        waitMs: {
          type: "integer",
          description: "For read",
        },
      },
      required: ["action"],
    } as const,
    timeoutMs: 2 * JOB_MAX_WAIT_MS,
    async execute({ action, id, waitMs = 0 }, { signal }) {
      if (action === "list") {
        const list = jobs.list();
        return textResult(list.map(jobLine).join("\n") || "There are no jobs.", { jobs: list });
      }
      if (id === undefined) {
        throw new Error(`${action} needs the id of a job. Use list to see them.`);
      }
      if (action === "stop") await jobs.stop(id);
      else await jobs.wait(id, Math.min(waitMs, JOB_MAX_WAIT_MS), signal);
      return jobResult(jobs, id);
    },
    access: ({ action, id }) => ({
      // Of what the agent started itself, and was asked about then.
      kind: "none",
      targets: typeof id === "string" ? [id] : [],
      summary: `${String(action)} background jobs`,
    }),
  });
}

function jobResult(jobs: JobTable, id: string): ReturnType<typeof textResult> {
  const job = jobs.info(id);
  const { text, dropped, paths } = jobs.read(id);
  const clean = sanitize(text);
  const shown = lastBytes(clean, JOB_MAX_READ_BYTES);
  const leftOut = dropped + clean.length - shown.length;
  const parts: (string | TextContent)[] = [jobLine(job)];
  if (leftOut > 0) {
    const where = paths.length > 0 ? ` All of it is in ${paths.join(" and ")}.` : "";
    parts.push(`[${counted(leftOut, "character")} before this left out.${where}]`);
  }
  parts.push(shown === "" ? "Nothing new." : fromSource({ kind: "command", name: job.id }, shown));
  return textResult(parts, { job, output: text });
}

function jobLine({ id, command, durationMs, end }: JobInfo): string {
  const state = end ? howEnded(end) : `running for ${(durationMs / MS_PER_SECOND).toFixed(1)} s`;
  return `${id}: ${state} ${sanitize(command, { keepNewlines: false })}`;
}
