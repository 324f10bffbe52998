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
import { numberMarks } from "../sql/rows.ts";
import { type Database, NOW, Rollback, type Session } from "./driver/database.ts";
import { startRun } from "./start.ts";

const SET = numberMarks(SET_SCHEDULE);
const READ = numberMarks(READ_SCHEDULE);
const LIST = numberMarks(LIST_SCHEDULES);
const PAUSE = numberMarks(PAUSE_SCHEDULE);
const DELETE = numberMarks(DELETE_SCHEDULE);
const ADVANCE = numberMarks(ADVANCE_SCHEDULE);
const DUE = numberMarks(dueStatement(NOW));

export async function readTime(db: Session): Promise<number> {
  const row = await db.first<{ now: number }>(`select ${NOW} as now`);
  return row?.now ?? 0;
}

export async function setSchedule(db: Session, schedule: NewSchedule): Promise<void> {
  await db.run(SET, ...scheduleValues(schedule));
}

export async function readSchedule(db: Session, id: string): Promise<ScheduleRow | undefined> {
  const record = await db.first<ScheduleRecord>(READ, id);
  return record && toSchedule(record);
}

export async function listSchedules(
  db: Session,
  after: string,
  limit: number,
): Promise<ScheduleRow[]> {
  return (await db.all<ScheduleRecord>(LIST, after, limit)).map(toSchedule);
}

export async function pauseSchedule(
  db: Session,
  id: string,
  isPaused: boolean,
  nextAt: number,
): Promise<boolean> {
  return (await db.run(PAUSE, ...pauseValues(id, isPaused, nextAt))) > 0;
}

export async function deleteSchedule(db: Session, id: string): Promise<boolean> {
  return (await db.run(DELETE, id)) > 0;
}

export async function readDue(db: Session, limit: number, after?: DuePlace): Promise<DueSchedules> {
  return toDue(await db.all<DueRecord>(DUE, ...dueValues(limit, after)));
}

/** The row of the schedule is locked first: other workers find its next time. */
export async function fireSchedule(database: Database, firing: Firing): Promise<FireOutcome> {
  const { run } = firing;
  const fired = await database.transact<FireOutcome | Rollback<FireOutcome>>(async (db) => {
    if ((await db.run(ADVANCE, ...advanceValues(firing))) === 0) return new Rollback("gone");
    const outcome = "error" in run ? "noted" : await startRun(db, run);
    return isFired(outcome) ? outcome : new Rollback(outcome);
  });
  return fired instanceof Rollback ? fired.value : fired;
}
