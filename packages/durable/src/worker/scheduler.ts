import type { ScheduleRow } from "../contract/schedules.ts";
import type { Store } from "../contract/store.ts";
import { explainStart } from "../runs/start-error.ts";
import { planNextTime, toScheduledRun } from "../schedules/schedule.ts";

/** Schedules may be added by other processes: they are looked at this often. */
const LOOK_EVERY_MS = 1_000;
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

  /** In how many milliseconds it has to look again. */
  async #look(): Promise<number> {
    const { now, schedules, nextInMs = LOOK_EVERY_MS } = await this.#store.readDue(FIRED_AT_ONCE);
    let isFull = false;
    for (const schedule of schedules) {
      if (this.#isStopped) break;
      const outcome = await this.#fire(schedule, now);
      isFull ||= outcome === "full";
    }
    // Those of a tenant that has too many waiting do not keep this worker busy.
    if (schedules.length === FIRED_AT_ONCE && !isFull) return 0;
    return Math.min(Math.max(nextInMs, 1), LOOK_EVERY_MS);
  }

  async #fire(schedule: ScheduleRow, now: number): Promise<string> {
    try {
      const run = toScheduledRun(schedule);
      const nextAt = planNextTime(schedule, now);
      const outcome = await this.#store.fire({ schedule, nextAt, run });
      const error = explainStart(outcome, run);
      if (!error || outcome === "full") return outcome;
      // It would fail again: it is left out, and the schedule says why.
      return await this.#store.fire({ schedule, nextAt, run: { error: error.message } });
    } catch (error) {
      this.#report(error);
      return "failed";
    }
  }
}
