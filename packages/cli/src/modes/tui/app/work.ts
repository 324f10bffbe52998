import type { Clock } from "@gyre/ai";

/** How often the spinner turns, while nothing else is drawn. */
const SPIN_MS = 250;
/** How often it does while an answer streams in, or is waited for: each turn costs bytes. */
const CALM_SPIN_MS = 1_000;

/** Something that is being done: a prompt, a command of the user, or one of ours, which has a name. */
export interface Task {
  readonly startedAt: number;
  readonly stop: AbortController;
  readonly name?: string;
}

export interface WorkOptions {
  clock: Pick<Clock, "now" | "after">;
  /** Called when the spinner has turned, and when something begins or ends. */
  draw: () => void;
  /** Whether something else moves on the screen, or nothing should. */
  isCalm: () => boolean;
}

/** What is being done, one thing at a time, and a spinner that turns meanwhile and no longer. */
export class Work {
  readonly #options: WorkOptions;
  #task: Task | undefined;
  #tick = 0;
  #stopSpinner: (() => void) | undefined;

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  get task(): Task | undefined {
    return this.#task;
  }

  /** Which picture of the spinner. */
  get tick(): number {
    return this.#tick;
  }

  /** Does it. What was being done counts no more. */
  async run(work: (signal: AbortSignal) => Promise<void>, name?: string): Promise<void> {
    const { clock, draw } = this.#options;
    const task: Task = {
      startedAt: clock.now(),
      stop: new AbortController(),
      ...(name !== undefined && { name }),
    };
    this.#task = task;
    this.#spin();
    draw();
    try {
      await work(task.stop.signal);
    } finally {
      if (this.#task === task) this.forget();
      draw();
    }
  }

  /** What is being done is over for us, or will be by itself. */
  forget(): void {
    this.#task = undefined;
    this.stopSpinner();
  }

  stopSpinner(): void {
    this.#stopSpinner?.();
    this.#stopSpinner = undefined;
  }

  #spin(): void {
    const { clock, draw, isCalm } = this.#options;
    this.#stopSpinner?.();
    this.#stopSpinner = clock.after(isCalm() ? CALM_SPIN_MS : SPIN_MS, () => {
      this.#tick++;
      this.#spin();
      draw();
    });
  }
}

/** Undefined: it was stopped before that. What becomes of the work then is nobody's business. */
export function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const stopped = new Promise<undefined>((settle) => {
    if (signal.aborted) settle(undefined);
    signal.addEventListener("abort", () => settle(undefined), { once: true });
  });
  return Promise.race([work, stopped]);
}
