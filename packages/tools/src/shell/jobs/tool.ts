import type { TextContent } from "@gyre/ai";
import type { Access, GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import { lastBytes } from "@gyre/ai/programs";
import { howEnded } from "../../process/program-end.ts";
import { cutText, fromSource, sanitize } from "@gyre/ai/text";
import { isInterruption } from "../../terminal/keys.ts";
import { counted, textResult } from "../../text/text.ts";
import { jobsEntry } from "./entry.ts";
import type { JobInfo, JobTable } from "./job-table.ts";

/** Shown to the model in one read. */
export const JOB_MAX_READ_BYTES: number = 30 * 1024;
/** A read may wait this long for something to read. */
export const JOB_MAX_WAIT_MS = 60_000;
/** Of what is typed, in the line for the person who is asked. */
const MAX_SUMMARY_CHARS = 300;
/** What was typed has an effect by then, or is waited for with `read`. */
const TYPE_MS = 2_000;
const MS_PER_SECOND = 1_000;

/** Reads, stops and lists jobs, and types in their terminals. They are started by `shell`, which is asked about. */
export function jobsTool(jobs: JobTable): GuardedTool {
  return defineEntryTool(jobsEntry, {
    label: "Jobs",
    description: "Background jobs. read: what is new.",
    parameters: {
      type: "object",
      properties: {
        action: { type: "string", enum: ["read", "type", "stop", "list"] },
        id: { type: "string" },
        input: {
          type: "string",
          description: "e.g. y<enter>, <ctrl+c>, <up>",
        },
        waitMs: { type: "integer" },
      },
      required: ["action"],
    } as const,
    timeoutMs: 2 * JOB_MAX_WAIT_MS,
    async execute({ action, id, waitMs, input = "" }, { signal }) {
      if (action === "list") {
        const list = jobs.list();
        return textResult(list.map(jobLine).join("\n") || "There are no jobs.", { jobs: list });
      }
      if (id === undefined) {
        throw new Error(`${action} needs the id of a job. Use list to see them.`);
      }
      const limit = (ms: number): number => Math.min(ms, JOB_MAX_WAIT_MS);
      if (action === "stop") await jobs.stop(id);
      else if (action === "type") await jobs.type(id, input, limit(waitMs ?? TYPE_MS), signal);
      else await jobs.wait(id, limit(waitMs ?? 0), signal);
      return jobResult(jobs, id);
    },
    access({ action, id, input }) {
      const target = typeof id === "string" ? id : "";
      if (action === "type")
        return describeTyping(jobs, target, typeof input === "string" ? input : "");
      return {
        // Of what the agent started itself, and was asked about then.
        kind: "none",
        targets: target === "" ? [] : [target],
        summary: `${String(action)} background jobs`,
      };
    },
  });
}

/** What is typed may be a command: it is decided on as one. */
function describeTyping(jobs: JobTable, id: string, input: string): Access {
  const { text, isUnsandboxed, hasGrant } = jobs.describeTyping(id, input);
  const { command } = jobs.info(id);
  const line = sanitize(`Type ${input} in ${id}: ${command}`, { keepNewlines: false, exact: true });
  const summary = cutText(line, MAX_SUMMARY_CHARS);
  if (isInterruption(input)) return { kind: "none", targets: [id], summary };
  return {
    kind: "run",
    targets: [text],
    ...(isUnsandboxed && { unsandboxed: true }),
    ...(hasGrant && { concern: "It is typed in a program that may use the network." }),
    summary,
  };
}

function jobResult(jobs: JobTable, id: string): ReturnType<typeof textResult> {
  const job = jobs.info(id);
  const { text, dropped, paths, screen } = jobs.read(id);
  const clean = sanitize(text);
  const shown = lastBytes(clean, JOB_MAX_READ_BYTES);
  const leftOut = dropped + clean.length - shown.length;
  const parts: (string | TextContent)[] = [jobLine(job)];
  if (leftOut > 0) {
    const where = paths.length > 0 ? ` All of it is in ${paths.join(" and ")}.` : "";
    parts.push(`[${counted(leftOut, "character")} before this left out.${where}]`);
  }
  const source = { kind: "command", name: job.id } as const;
  if (shown !== "") parts.push(fromSource(source, shown));
  else if (!screen) parts.push("Nothing new.");
  if (screen) {
    const { row, column } = screen.cursor;
    const drawn = sanitize(screen.rows.join("\n"));
    parts.push(`Screen, with the cursor in row ${row + 1}, column ${column + 1}:`);
    parts.push(drawn === "" ? "It is blank." : fromSource(source, drawn));
  }
  const output = screen ? [text, ...screen.rows].join("\n") : text;
  return textResult(parts, { job, output });
}

function jobLine({ id, command, durationMs, end }: JobInfo): string {
  const state = end ? howEnded(end) : `running for ${(durationMs / MS_PER_SECOND).toFixed(1)} s`;
  return `${id}: ${state} ${sanitize(command, { keepNewlines: false })}`;
}
