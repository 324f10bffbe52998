import type { ScheduleInfo } from "@gyre/durable";
import { EXIT, type ExitCode } from "../../core/exit-codes.ts";
import { alignColumns } from "../../text/columns.ts";
import { report } from "./act.ts";
import type { Job } from "./runs.ts";
import { shown } from "./run-text.ts";

const INDENT = 2;
const SECOND_MS = 1_000;

export async function listSchedules({ runs, io, values }: Job): Promise<ExitCode> {
  const found: ScheduleInfo[] = [];
  let after: string | undefined;
  do {
    const page = await runs.schedules(after === undefined ? {} : { after });
    found.push(...page.schedules);
    after = page.next;
  } while (after !== undefined);
  if (values.json) {
    io.stdout.write(`${JSON.stringify(found, undefined, INDENT)}\n`);
    return EXIT.done;
  }
  if (found.length === 0) io.stderr.write("There are no schedules.\n");
  const rows = found.map((schedule) => [
    shown(schedule.id),
    shown(formatTimes(schedule)),
    shown(schedule.agent),
    schedule.isPaused ? "paused" : `next ${schedule.nextAt.toISOString()}`,
    schedule.lastRun === undefined ? "-" : `last ${shown(schedule.lastRun)}`,
  ]);
  for (const [at, line] of alignColumns(rows).entries()) {
    const error = found[at]?.error;
    io.stdout.write(`${line}\n${error === undefined ? "" : `  ${shown(error)}\n`}`);
  }
  return EXIT.done;
}

function formatTimes({ cron, timeZone = "", everyMs = 0 }: ScheduleInfo): string {
  return cron === undefined ? `every ${everyMs / SECOND_MS} s` : `${cron} ${timeZone}`;
}

export async function pause(job: Job, schedule: string): Promise<ExitCode> {
  await job.runs.pauseSchedule(schedule);
  const hint = `gyre runs resume ${shown(schedule)} has it go on.`;
  return report(job, { schedule }, `Paused: it starts no runs. ${hint}`);
}

export async function resume(job: Job, schedule: string): Promise<ExitCode> {
  await job.runs.resumeSchedule(schedule);
  return report(job, { schedule }, "It goes on with its next time.");
}

export async function unschedule(job: Job, schedule: string): Promise<ExitCode> {
  await job.runs.deleteSchedule(schedule);
  return report(
    job,
    { schedule },
    "Deleted: it starts no more runs. Those that it has started go on.",
  );
}
