import { Agent } from "@gyre/agent";

/** An agent whose `abort()` also ends work that is done for it before and after a run. */
export class AbortableAgent extends Agent {
  readonly #controllers = new Set<AbortController>();

  /** Does some work, whose signal fires on `abort()`. */
  async runAbortable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#controllers.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      this.#controllers.delete(controller);
    }
  }

  override abort(): void {
    for (const controller of this.#controllers) controller.abort();
    super.abort();
  }
}
