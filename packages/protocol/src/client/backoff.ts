/** How a client reconnects. */
export interface ReconnectOptions {
  /** The longest delay before the first attempt; it doubles with each attempt. Default 250. */
  baseMs?: number;
  /** The longest delay before any attempt. Default 10,000. */
  maxMs?: number;
  /** Attempts in a row after which the client stops retrying. Default: no limit. */
  maxAttempts?: number;
  /** The same before the first connection: the address may be wrong. Default 5. */
  firstAttempts?: number;
}

/** The default of `baseMs`. */
export const RECONNECT_BASE_MS = 250;
/** The default of `maxMs`. */
export const RECONNECT_MAX_MS = 10_000;
/** The default of `firstAttempts`. */
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
   * The next attempt, after a connection that was ready for `livedMs`, or never was. Undefined
   * after the last one.
   */
  next(livedMs?: number): { attempt: number; delayMs: number } | undefined {
    this.#wasReady ||= livedMs !== undefined;
    // A server that accepts connections and breaks at once gets no faster retries.
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
