import type { Runs } from "@gyre/durable";

/** How often the clients of a server are renewed within their grace. */
const RENEWALS = 3;

/** Keeps the tools of clients that are connected to this server: all of them in one statement. */
export class ToolLeases {
  /** How long the tools of a client stay that is away. */
  readonly graceMs: number;
  readonly #runs: Runs;
  readonly #onError: (error: unknown, where: string) => void;
  readonly #holders = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(runs: Runs, graceMs: number, onError: (error: unknown, where: string) => void) {
    this.#runs = runs;
    this.graceMs = graceMs;
    this.#onError = onError;
  }

  add(holder: string): void {
    this.#holders.add(holder);
    this.#timer ??= setInterval(() => this.#renew(), this.graceMs / RENEWALS).unref();
  }

  remove(holder: string): void {
    this.#holders.delete(holder);
    if (this.#holders.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #renew(): void {
    this.#runs.store.toolClients
      .renew([...this.#holders], this.graceMs)
      .catch((error: unknown) => this.#onError(error, "keeping client tools"));
  }
}
