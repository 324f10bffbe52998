/** How a broken connection is tried again. */
export interface ReconnectOptions {
  /** The most that is waited before the first attempt; it doubles with each. Default 250. */
  baseMs?: number;
  /** The most that is waited before any attempt. Default 10,000. */
  maxMs?: number;
  /** Attempts in a row after which it is given up. Default: none is the last. */
  maxAttempts?: number;
  /** The same where there never was a connection: the address may be wrong. Default 5. */
  firstAttempts?: number;
}

/** The most that is waited before the first attempt to connect again, unless told otherwise. */
export const RECONNECT_BASE_MS = 250;
/** The most that is waited before any attempt to connect again, unless told otherwise. */
export const RECONNECT_MAX_MS = 10_000;
/** Attempts to connect where there never was a connection, unless told otherwise. */
export const FIRST_ATTEMPTS = 5;

/**
 * Delays between attempts: each is anything up to a ceiling that doubles, so that clients
 * that lost one server do not all come back at once.
 */
export class Backoff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #maxAttempts: number;
  readonly #firstAttempts: number;
  readonly #random: () => number;
  #attempt = 0;
  #wasReady = false;

  constructor(options: ReconnectOptions = {}, random: () => number = Math.random) {
    this.#baseMs = options.baseMs ?? RECONNECT_BASE_MS;
    this.#maxMs = options.maxMs ?? RECONNECT_MAX_MS;
    this.#maxAttempts = options.maxAttempts ?? Infinity;
    this.#firstAttempts = options.firstAttempts ?? Math.min(FIRST_ATTEMPTS, this.#maxAttempts);
    this.#random = random;
  }

  /**
   * The next attempt, after a connection that was ready for `livedMs`, or never was. Nothing
   * where it was the last.
   */
  next(livedMs?: number): { attempt: number; delayMs: number } | undefined {
    this.#wasReady ||= livedMs !== undefined;
    // A server that lets everybody in and falls over at once is not to be hurried.
    if (livedMs !== undefined && livedMs >= this.#ceiling(this.#attempt)) this.#attempt = 0;
    if (this.#attempt >= (this.#wasReady ? this.#maxAttempts : this.#firstAttempts))
      return undefined;
    const attempt = ++this.#attempt;
    return { attempt, delayMs: Math.floor(this.#random() * this.#ceiling(attempt)) };
  }

  #ceiling(attempt: number): number {
    return Math.min(this.#maxMs, this.#baseMs * 2 ** Math.max(0, attempt - 1));
  }
}
