import type { WorkerLogLine } from "../contract/types.ts";
import type { Claim, RunRow } from "../contract/store.ts";
import { WorkerMeter } from "./meter.ts";
import { traceActivation, type WorkerTelemetry } from "./span.ts";

export interface ObserverOptions {
  readonly onLog: ((line: WorkerLogLine) => void) | undefined;
  readonly telemetry: WorkerTelemetry | undefined;
  readonly report: (error: unknown, where: string) => void;
}

/** What others see of a worker: figures, lines of a log, and spans. */
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

  /** Works on a run within a span. `act` gets what identifies the span, if there is one. */
  trace<T extends string>(
    of: { claim: Claim; row: RunRow },
    act: (span: string | undefined) => Promise<T>,
  ): Promise<T> {
    const { telemetry, report } = this.#options;
    return telemetry ? traceActivation(telemetry, of, report, act) : act(undefined);
  }

  /** The store does not answer, or answers again. `now`: milliseconds that only go forward. */
  noteStore(isAway: boolean, now: number): void {
    if (isAway === (this.#awaySince !== undefined)) return;
    const durationMs = Math.round(now - (this.#awaySince ?? now));
    this.#awaySince = isAway ? now : undefined;
    this.log({ event: "outage", ...(isAway ? { state: "begun" } : { state: "over", durationMs }) });
  }
}
