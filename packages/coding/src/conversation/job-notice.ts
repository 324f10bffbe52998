import { type JobInfo, type ProgramEnd, sanitize } from "@gyre/tools";
import type { NoticeMessage } from "./notice.ts";

/** Of a command, in a notice. */
const MAX_COMMAND_CHARS = 200;
const MS_PER_SECOND = 1_000;

/** What is said of a job, wherever it runs. */
export interface NoticedJob extends Pick<JobInfo, "id" | "command" | "durationMs"> {
  /** Absent as long as it runs. */
  end?: Pick<ProgramEnd, "timedOut" | "aborted" | "exitCode" | "signal">;
}

/** A job has ended by itself. */
export function noticeOfJob(job: NoticedJob): NoticeMessage {
  return {
    role: "notice",
    text: `Background job ${job.id} has ended (${describeEnd(job)}): ${shorten(job.command)}. The tool jobs reads its output.`,
    summary: `${job.id} ended, ${describeEnd(job)}: ${shorten(job.command)}`,
    timestamp: Date.now(),
  };
}

/** "exit code 1 after 12.3 s", of one that runs "running for 4.0 s". */
export function describeEnd({ end, durationMs }: Pick<NoticedJob, "end" | "durationMs">): string {
  const seconds = `${(durationMs / MS_PER_SECOND).toFixed(1)} s`;
  if (!end) return `running for ${seconds}`;
  const how = end.timedOut
    ? "timed out"
    : end.aborted
      ? "stopped"
      : end.exitCode === null
        ? `ended by ${end.signal ?? "a signal"}`
        : `exit code ${end.exitCode}`;
  return `${how} after ${seconds}`;
}

function shorten(command: string): string {
  const line = sanitize(command).replaceAll(/\s+/g, " ");
  return line.length <= MAX_COMMAND_CHARS ? line : `${line.slice(0, MAX_COMMAND_CHARS)}…`;
}
