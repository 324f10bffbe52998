import type { WorkerLogLine } from "../contract/types.ts";
import { WorkerMeter } from "./meter.ts";

export interface ObserverOptions {
  readonly onLog: ((line: WorkerLogLine) => void) | undefined;
  readonly report: (error: unknown, where: string) => void;
}

/** What others see of a worker: figures, and lines of a log. */
export class Observer {
  readonly meter: WorkerMeter = new WorkerMeter();
  readonly #options: ObserverOptions;
  #awaySince: number | undefined;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  log(line: WorkerLogLine): void {
    try {
      this.#options.onLog?.(line);
    } catch (error) {
      this.#options.report(error, "onLog");
    }
  }

  /** The store does not answer, or answers again. `now`: milliseconds that only go forward. */
  noteStore(isAway: boolean, now: number): void {
    if (isAway === (this.#awaySince !== undefined)) return;
    const durationMs = Math.round(now - (this.#awaySince ?? now));
    this.#awaySince = isAway ? now : undefined;
    this.log({ event: "outage", ...(isAway ? { state: "begun" } : { state: "over", durationMs }) });
  }
}
