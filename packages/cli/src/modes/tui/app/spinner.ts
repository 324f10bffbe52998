import type { Clock } from "@gyre/ai";

/** The time between two turns while nothing else moves. */
const SPIN_MS = 250;
/** The time between two turns while an answer streams in, or the user is asked: each turn costs bytes. */
const CALM_SPIN_MS = 1_000;

export interface SpinnerOptions {
  clock: Pick<Clock, "after">;
  /** Called when the spinner has turned. */
  draw: () => void;
  /** Whether something else moves on the screen, or nothing should. */
  isCalm: () => boolean;
}

/** Turns from `start` to `stop`. */
export class Spinner {
  readonly #options: SpinnerOptions;
  #tick = 0;
  #cancel: (() => void) | undefined;

  constructor(options: SpinnerOptions) {
    this.#options = options;
  }

  /** The frame of the spinner. */
  get tick(): number {
    return this.#tick;
  }

  /** Has no effect on a turning spinner. */
  start(): void {
    if (!this.#cancel) this.#spin();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #spin(): void {
    const { clock, draw, isCalm } = this.#options;
    this.#cancel = clock.after(isCalm() ? CALM_SPIN_MS : SPIN_MS, () => {
      this.#tick++;
      this.#spin();
      draw();
    });
  }
}
