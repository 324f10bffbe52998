import { contain } from "../contract/contain.ts";
import type { Run } from "./run.ts";

/**
 * Whether a steering message came that is to cut off the response (R15). Watches from
 * the first response to the end of the run; a poll for steering, or a response that
 * was cut off, begins it anew.
 */
export class Redirect {
  arrived = false;
  /** Called when one comes. */
  onArrival: (() => void) | undefined;
  readonly #run: Run;
  readonly #undo: (() => void) | undefined;

  constructor(run: Run) {
    this.#run = run;
    if (run.config.steering !== "redirect") return;
    this.#undo = run.config.onSteering?.(() => {
      this.arrived = true;
      this.onArrival?.();
    });
  }

  /** Waits; answers false when the run was cancelled or a message came meanwhile. */
  orWait(ms: number): Promise<boolean> {
    return this.#run.wait(ms, (cut) => {
      this.onArrival = cut;
      if (this.arrived) cut();
    });
  }

  stop(): void {
    contain("What onSteering gave threw", () => this.#undo?.());
  }
}
