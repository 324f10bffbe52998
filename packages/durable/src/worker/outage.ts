/** Commits that wait because the store is away: the first one that is made wakes the others. */
export class Outage {
  readonly #waiting = new Set<() => void>();

  /** Resolves to `late` after this time, or to `woken` when a commit was made before. */
  wait(ms: number): Promise<"late" | "woken"> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        resolve("woken");
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(wake);
        resolve("late");
      }, ms);
      this.#waiting.add(wake);
    });
  }

  /** A commit was made: the store is back. */
  end(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
