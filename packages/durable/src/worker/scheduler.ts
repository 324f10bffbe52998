import type { DuePlace, Firing, ScheduleRow } from "../contract/schedules.ts";
import type { Store } from "../contract/store.ts";
import { explainStart } from "../runs/start-error.ts";
import { explainUnreadable, planNextTime, toScheduledRun } from "../schedules/schedule.ts";

/** Schedules may be added by other processes: they are looked at this often. */
const LOOK_EVERY_MS = 1_000;
/** How long one that cannot be read is left alone. */
const READ_AGAIN_MS = 3_600_000;
/** Schedules that are looked at together. */
const FIRED_AT_ONCE = 100;

/**
 * Starts the runs of schedules. Every worker has one: whichever comes first starts a run, and the
 * clock of the store says when.
 */
export class Scheduler {
  readonly #store: Store;
  readonly #report: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isStopped = false;

  constructor(store: Store, report: (error: unknown) => void) {
    this.#store = store;
    this.#report = report;
  }

  start(): void {
    this.#lookIn(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #lookIn(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#look()
        .catch((error: unknown) => {
          this.#report(error);
          return LOOK_EVERY_MS;
        })
        .then((nextInMs) => this.#lookIn(nextInMs));
    }, ms);
  }

  /** Looks at all that are due, each once. In how many milliseconds it has to look again. */
  async #look(): Promise<number> {
    for (let after: DuePlace | undefined; ;) {
      const due = await this.#store.readDue(FIRED_AT_ONCE, after);
      const { now, schedules, nextInMs = LOOK_EVERY_MS } = due;
      for (const schedule of schedules) if (!this.#isStopped) await this.#fire(schedule, now);
      after = schedules.at(-1);
      if (this.#isStopped || schedules.length < FIRED_AT_ONCE) {
        return Math.min(Math.max(nextInMs, 1), LOOK_EVERY_MS);
      }
    }
  }

  async #fire(schedule: ScheduleRow, now: number): Promise<void> {
    try {
      const { run, nextAt } = this.#plan(schedule, now);
      const outcome = await this.#store.fire({ schedule, nextAt, run });
      const error = "error" in run ? undefined : explainStart(outcome, run);
      if (!error || outcome === "full") return;
      // It would fail again: it is left out, and the schedule says why.
      await this.#store.fire({ schedule, nextAt, run: { error: error.message } });
    } catch (error) {
      this.#report(error);
    }
  }

  /** The run, and the time after it; where the schedule cannot be read, why. */
  #plan(schedule: ScheduleRow, now: number): Pick<Firing, "run" | "nextAt"> {
    try {
      return { run: toScheduledRun(schedule), nextAt: planNextTime(schedule, now) };
    } catch (error) {
      this.#report(error);
      return { run: { error: explainUnreadable(error) }, nextAt: now + READ_AGAIN_MS };
    }
  }
}
