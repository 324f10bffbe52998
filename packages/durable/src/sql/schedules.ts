import type {
  DuePlace,
  DueSchedules,
  FireOutcome,
  Firing,
  NewSchedule,
  ScheduleRow,
} from "../contract/schedules.ts";
import { given, type SqlValue } from "./rows.ts";

export interface ScheduleRecord {
  id: string;
  spec: string;
  start: string;
  next_at: number;
  is_paused: number;
  last_at: number | null;
  last_run: string | null;
  error: string | null;
}

export const SET_SCHEDULE = `insert into gyre_schedule as s (id, spec, start, next_at) values (?, ?, ?, ?)
  on conflict (id) do update set spec = excluded.spec, start = excluded.start,
    next_at = excluded.next_at, error = null
  where s.spec <> excluded.spec or s.start <> excluded.start`;

export const READ_SCHEDULE = "select * from gyre_schedule where id = ?";

export const LIST_SCHEDULES = "select * from gyre_schedule where id > ? order by id limit ?";

/** Only one that was paused gets another time. */
export const PAUSE_SCHEDULE = `update gyre_schedule set
  next_at = case when is_paused > ? then ? else next_at end, is_paused = ? where id = ?`;

export const DELETE_SCHEDULE = "delete from gyre_schedule where id = ?";

/** Met by one worker alone: the next time is another then. */
export const ADVANCE_SCHEDULE = `update gyre_schedule set next_at = ?, error = ?,
    last_at = coalesce(?, last_at), last_run = coalesce(?, last_run)
  where id = ? and next_at = ? and spec = ? and start = ? and is_paused = 0`;

/** What `readDue` reads, where `now` is the time of the store in SQL. */
export function dueStatement(now: string): string {
  return `select one.now, (select min(next_at) from gyre_schedule
      where is_paused = 0 and next_at > one.now) as soonest, s.*
    from (select ${now} as now) one left join gyre_schedule s on s.is_paused = 0 and s.next_at <= one.now
      and (s.next_at > ? or (s.next_at = ? and s.id > ?))
    order by s.next_at, s.id limit ?`;
}

export function dueValues(limit: number, after: DuePlace | undefined): SqlValue[] {
  const { nextAt, id } = after ?? { nextAt: Number.MIN_SAFE_INTEGER, id: "" };
  return [nextAt, nextAt, id, limit];
}

/** With no id: none is due. */
export type DueRecord = { [Name in keyof ScheduleRecord]: ScheduleRecord[Name] | null } & {
  now: number;
  soonest: number | null;
};

export function toDue(records: readonly DueRecord[]): DueSchedules {
  const { now = 0, soonest = null } = records[0] ?? {};
  const found = records.filter(
    (record): record is DueRecord & ScheduleRecord => record.id !== null,
  );
  return {
    now,
    schedules: found.map(toSchedule),
    ...(soonest !== null && { nextInMs: soonest - now }),
  };
}

export function toSchedule(record: ScheduleRecord): ScheduleRow {
  return {
    ...{ id: record.id, spec: record.spec, start: record.start, nextAt: record.next_at },
    isPaused: record.is_paused === 1,
    ...given("lastAt", record.last_at),
    ...given("lastRun", record.last_run),
    ...given("error", record.error),
  };
}

export function scheduleValues({ id, spec, start, nextAt }: NewSchedule): SqlValue[] {
  return [id, spec, start, nextAt];
}

export function pauseValues(id: string, isPaused: boolean, nextAt: number): SqlValue[] {
  const flag = isPaused ? 1 : 0;
  return [flag, nextAt, flag, id];
}

export function advanceValues({ schedule, nextAt, run }: Firing): SqlValue[] {
  const fired = "error" in run ? [run.error, null, null] : [null, schedule.nextAt, run.id];
  return [nextAt, ...fired, schedule.id, schedule.nextAt, schedule.spec, schedule.start];
}

/** Whether the schedule is done with the time that had come. */
export function isFired(outcome: FireOutcome): boolean {
  return (["started", "queued", "known", "noted"] as FireOutcome[]).includes(outcome);
}
