import type { NewRun, StartOutcome } from "./store.ts";

/** What a store keeps of schedules. Part of `Store`. */
export interface ScheduleStore {
  /** The time, by the clock of the store. */
  readTime(): Promise<number>;
  /** Adds a schedule, or replaces the one of its id. With the same definition nothing changes. */
  setSchedule(schedule: NewSchedule): Promise<void>;
  readSchedule(id: string): Promise<ScheduleRow | undefined>;
  /** Schedules by id, behind `after`. */
  listSchedules(page: { after?: string; limit: number }): Promise<ScheduleRow[]>;
  /** Stops a schedule, or has it go on at `nextAt`. False: there is none of this id. */
  pauseSchedule(id: string, isPaused: boolean, nextAt: number): Promise<boolean>;
  /** False: there is none of this id. */
  deleteSchedule(id: string): Promise<boolean>;
  /** The schedules whose time has come, the oldest first, behind one of an earlier answer. */
  readDue(limit: number, after?: DuePlace): Promise<DueSchedules>;
  /** Starts the run of a schedule whose time has come, and sets its next time: both or neither. */
  fire(firing: Firing): Promise<FireOutcome>;
}

export interface NewSchedule {
  readonly id: string;
  /** JSON: when it is due. */
  readonly spec: string;
  /** JSON: the prompt and the options of its runs. */
  readonly start: string;
  readonly nextAt: number;
}

export interface ScheduleRow extends NewSchedule {
  readonly isPaused: boolean;
  /** When its last run was due, and its id. */
  readonly lastAt?: number;
  readonly lastRun?: string;
  /** Why no run was started the last time. */
  readonly error?: string;
}

/** The place of a schedule among those that are due. */
export type DuePlace = Pick<ScheduleRow, "nextAt" | "id">;

export interface DueSchedules {
  /** By the clock of the store. */
  readonly now: number;
  readonly schedules: readonly ScheduleRow[];
  /** In how many milliseconds the next one is due, of those that are not yet. */
  readonly nextInMs?: number;
}

/** A schedule whose time has come, as `readDue` found it. */
export interface Firing {
  readonly schedule: ScheduleRow;
  readonly nextAt: number;
  readonly run: NewRun | { readonly error: string };
}

/**
 * `gone`: another worker was first, or the schedule has changed. `noted`: the error is stored, and
 * the next time. Otherwise as of `start`; of a run that is not started nothing is stored.
 */
export type FireOutcome = StartOutcome | "gone" | "noted";
