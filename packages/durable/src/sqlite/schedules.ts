import type {
  DuePlace,
  DueSchedules,
  FireOutcome,
  Firing,
  NewSchedule,
  ScheduleRow,
} from "../contract/schedules.ts";
import {
  ADVANCE_SCHEDULE,
  advanceValues,
  DELETE_SCHEDULE,
  type DueRecord,
  dueStatement,
  dueValues,
  isFired,
  LIST_SCHEDULES,
  PAUSE_SCHEDULE,
  pauseValues,
  READ_SCHEDULE,
  type ScheduleRecord,
  scheduleValues,
  SET_SCHEDULE,
  toDue,
  toSchedule,
} from "../sql/schedules.ts";
import type { Statements } from "./driver/connection.ts";
import { startRun } from "./start.ts";

export function setSchedule(db: Statements, schedule: NewSchedule): void {
  db.run(SET_SCHEDULE, ...scheduleValues(schedule));
}

export function readSchedule(db: Statements, id: string): ScheduleRow | undefined {
  const record = db.first<ScheduleRecord>(READ_SCHEDULE, id);
  return record && toSchedule(record);
}

export function listSchedules(db: Statements, after: string, limit: number): ScheduleRow[] {
  return db.all<ScheduleRecord>(LIST_SCHEDULES, after, limit).map(toSchedule);
}

export function pauseSchedule(
  db: Statements,
  id: string,
  isPaused: boolean,
  nextAt: number,
): boolean {
  return db.run(PAUSE_SCHEDULE, ...pauseValues(id, isPaused, nextAt)) > 0;
}

export function deleteSchedule(db: Statements, id: string): boolean {
  return db.run(DELETE_SCHEDULE, id) > 0;
}

export function readDue(db: Statements, limit: number, after?: DuePlace): DueSchedules {
  return toDue(db.all<DueRecord>(dueStatement("?"), Date.now(), ...dueValues(limit, after)));
}

/** Where no run is started, nothing is changed: the run is looked at first. */
export function fireSchedule(db: Statements, firing: Firing): FireOutcome {
  const { schedule, run } = firing;
  const { id, nextAt, spec, start } = schedule;
  const isDue = db.first(
    `select 1 from gyre_schedule where id = ? and next_at = ? and spec = ? and start = ?
      and is_paused = 0`,
    ...[id, nextAt, spec, start],
  );
  if (!isDue) return "gone";
  const outcome = "error" in run ? "noted" : startRun(db, run);
  if (isFired(outcome)) db.run(ADVANCE_SCHEDULE, ...advanceValues(firing));
  return outcome;
}
