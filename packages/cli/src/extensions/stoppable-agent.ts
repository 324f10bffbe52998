import { Agent } from "@gyre/agent";

/** An agent whose `abort()` also ends what is done for it before and after a run. */
export class StoppableAgent extends Agent {
  readonly #besides = new Set<AbortController>();

  /** Does some work, whose signal fires on `abort()`. */
  async beside<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#besides.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      this.#besides.delete(controller);
    }
  }

  override abort(): void {
    for (const controller of this.#besides) controller.abort();
    super.abort();
  }
}
