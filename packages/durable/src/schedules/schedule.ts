import type { PromptInput } from "@gyre/agent";
import { errorMessage } from "@gyre/ai";
import { DurableError } from "../contract/errors.ts";
import { toNewRun } from "../contract/new-run.ts";
import type { NewSchedule, ScheduleRow } from "../contract/schedules.ts";
import type { NewRun } from "../contract/store.ts";
import type { ScheduleInfo, ScheduleOptions, StartOptions } from "../contract/types.ts";
import { parseCron } from "./cron.ts";
import { findNextTime } from "./next-time.ts";
import { Zone } from "./zone.ts";

const MIN_EVERY_MS = 1_000;

/** When a schedule is due. */
type Times = { cron: string; timeZone: string } | { everyMs: number };

/** What its runs are started with. */
interface Start {
  input: PromptInput;
  options: StartOptions;
}

/** What is stored of a schedule at the time `now`. Throws on what no run could be started with. */
export function toNewSchedule(
  input: PromptInput,
  given: ScheduleOptions,
  now: number,
): NewSchedule {
  const { id, cron, timeZone, everyMs, ...options } = given ?? {};
  if (typeof id !== "string" || id === "") {
    throw new DurableError("invalid", "A schedule needs a name: give it as `id`.");
  }
  const times = toTimes(id, { cron, timeZone, everyMs });
  const start: Start = { input, options };
  const nextAt = planNext(times, now);
  toRun(id, nextAt, start);
  return { id, spec: JSON.stringify(times), start: JSON.stringify(start), nextAt };
}

function toTimes(
  id: string,
  given: { [Name in "cron" | "timeZone" | "everyMs"]: ScheduleOptions[Name] | undefined },
): Times {
  const { cron, timeZone, everyMs } = given;
  if ((cron === undefined) === (everyMs === undefined)) {
    throw new DurableError(
      "invalid",
      `Schedule "${id}" needs one of \`cron\`, such as "0 8 * * 1-5", and \`everyMs\`.`,
    );
  }
  if (cron !== undefined) return { cron, timeZone: timeZone ?? "UTC" };
  if (timeZone !== undefined) {
    throw new DurableError("invalid", `Schedule "${id}" has a \`timeZone\` and no \`cron\`.`);
  }
  if (everyMs === undefined || !Number.isSafeInteger(everyMs) || everyMs < MIN_EVERY_MS) {
    throw new DurableError(
      "invalid",
      `\`everyMs\` is a whole number of at least ${MIN_EVERY_MS}: got ${everyMs}.`,
    );
  }
  return { everyMs };
}

/** The first time after `now`: what was missed meanwhile is made up for by one run. */
function planNext(times: Times, now: number, due = now): number {
  if ("everyMs" in times) {
    const { everyMs } = times;
    return due + Math.max(1, Math.floor((now - due) / everyMs) + 1) * everyMs;
  }
  const next = findNextTime(parseCron(times.cron), new Zone(times.timeZone), now);
  if (next === undefined) {
    throw new DurableError("invalid", `There is no time of ${JSON.stringify(times.cron)}.`);
  }
  return next;
}

/** When a schedule is due next, at the time `now`. */
export function planNextTime({ spec, nextAt }: ScheduleRow, now: number): number {
  return planNext(JSON.parse(spec), now, Math.min(nextAt, now));
}

/** The run of the time that has come. */
export function toScheduledRun({ id, start, nextAt }: ScheduleRow): NewRun {
  return toRun(id, nextAt, JSON.parse(start));
}

/** Two workers that start it start one run. */
function toRun(schedule: string, due: number, { input, options }: Start): NewRun {
  return toNewRun(input, { ...options, id: `${schedule}/${new Date(due).toISOString()}` });
}

/** One that cannot be read is listed all the same: its error says so. */
function readDefinition({ spec, start }: ScheduleRow): Pick<ScheduleInfo, "agent" | "error"> {
  try {
    const { options }: Start = JSON.parse(start);
    return { agent: options.agent, ...JSON.parse(spec) };
  } catch (error) {
    return { agent: "", error: explainUnreadable(error) };
  }
}

/** Why a schedule that was changed by hand starts nothing. */
export function explainUnreadable(error: unknown): string {
  return `The schedule cannot be read: ${errorMessage(error)} Set it again.`;
}

export function toScheduleInfo(row: ScheduleRow): ScheduleInfo {
  const { id, isPaused, nextAt, lastAt, lastRun, error } = row;
  return {
    ...{ id, ...readDefinition(row), isPaused },
    nextAt: new Date(nextAt),
    ...(lastAt !== undefined && { lastAt: new Date(lastAt) }),
    ...(lastRun !== undefined && { lastRun }),
    ...(error !== undefined && { error }),
  };
}
