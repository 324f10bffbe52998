/** A stream came to its end without the event that says how it ended. */
export class IncompleteStreamError extends Error {
  readonly code = "incomplete";
  constructor() {
    super("The stream ended without a terminal event.");
    this.name = "IncompleteStreamError";
  }
}

/** With more events than this waiting, neighbours that can be joined are. */
export const JOIN_BEYOND_EVENTS = 256;

/** Room that an empty queue may keep, and that a full one may waste at its front. */
const SPARE_EVENTS = 1024;

type Outcome<R> = { ok: true; value: R } | { ok: false; error: unknown };

/**
 * Events on their way from one producer to one reader, and the result that they
 * come to. It always settles: a terminal event, `end` or `fail` closes it, and
 * `result()` then resolves or rejects, whether or not anybody iterates. What is
 * pushed after the end is dropped.
 *
 * One reader at a time: a second iterator throws while the first is in use.
 * Leaving a loop detaches it and frees what was waiting; it stops nothing.
 *
 * A reader that lags does not make the queue grow with the number of deltas:
 * `join`, if given, may make one event of two neighbours that are waiting.
 */
export class EventStream<T, R = T> implements AsyncIterable<T> {
  // What waits is at head..tail. The list is kept when it runs empty: making a new
  // one for every event is most of what a stream would cost.
  #queue: (T | undefined)[] = [];
  #head = 0;
  #tail = 0;
  #outcome: Outcome<R> | undefined;
  #iterating = false;
  #detached = false;
  #wake: (() => void) | undefined;
  #result: { promise: Promise<R>; settle: (outcome: Outcome<R>) => void } | undefined;
  readonly #isTerminal: (event: T) => boolean;
  readonly #extractResult: (event: T) => R;
  readonly #join: ((last: T, next: T) => T | undefined) | undefined;

  constructor(
    isTerminal: (event: T) => boolean,
    extractResult: (event: T) => R,
    join?: (last: T, next: T) => T | undefined,
  ) {
    this.#isTerminal = isTerminal;
    this.#extractResult = extractResult;
    this.#join = join;
  }

  push(event: T): void {
    if (this.#outcome) return;
    if (!this.#detached) this.#enqueue(event);
    if (this.#isTerminal(event)) this.#close(this.#attempt(event));
    else this.#notify();
  }

  /** Closes without a terminal event. Without a result, `result()` rejects as incomplete. */
  end(...result: [R?]): void {
    if (result.length === 0) this.#close({ ok: false, error: new IncompleteStreamError() });
    else this.#close({ ok: true, value: result[0] as R });
  }

  /** Closes with an error: `result()` rejects, iteration throws after what is waiting. */
  fail(error: unknown): void {
    this.#close({ ok: false, error });
  }

  result(): Promise<R> {
    if (!this.#result) {
      let settle: (outcome: Outcome<R>) => void = () => {};
      const promise = new Promise<R>((resolve, reject) => {
        settle = (outcome) => (outcome.ok ? resolve(outcome.value) : reject(outcome.error));
      });
      this.#result = { promise, settle };
      if (this.#outcome) settle(this.#outcome);
    }
    return this.#result.promise;
  }

  /** True once closed; events may still be waiting. */
  get closed(): boolean {
    return this.#outcome !== undefined;
  }

  /** The next waiting event, or nothing. For a reader that wants no promise an event. */
  take(): T | undefined {
    if (this.#head === this.#tail) return undefined;
    const event = this.#queue[this.#head];
    this.#queue[this.#head] = undefined;
    this.#head++;
    if (this.#head === this.#tail) {
      if (this.#tail > SPARE_EVENTS) this.#queue = [];
      this.#head = 0;
      this.#tail = 0;
    } else if (this.#head > SPARE_EVENTS && this.#head * 2 > this.#tail) {
      this.#queue = this.#queue.slice(this.#head, this.#tail);
      this.#tail -= this.#head;
      this.#head = 0;
    }
    return event;
  }

  /**
   * Calls `wake` once, when an event waits or the stream is closed: at once if
   * that is so now. For one reader; a second call replaces the first.
   */
  whenReadable(wake: () => void): void {
    if (this.#head < this.#tail || this.#outcome) wake();
    else this.#wake = wake;
  }

  /** Forgets what waits and what comes, and keeps only the result. */
  detach(): void {
    this.#detached = true;
    this.#queue = [];
    this.#head = 0;
    this.#tail = 0;
    this.#notify();
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    if (this.#iterating) {
      throw new Error(
        "This stream is being iterated already. A stream has one reader: subscribe, or pass the events on.",
      );
    }
    this.#iterating = true;
    this.#detached = false;
    const leave = (): void => {
      this.#iterating = false;
      this.detach();
    };
    let resolveNext: (result: IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>>) => void;
    const wait = (resolve: typeof resolveNext): void => {
      resolveNext = resolve;
      this.#wake = arrive;
    };
    const arrive = (): void => {
      const event = this.take();
      resolveNext(event === undefined ? this.#finish() : { value: event, done: false });
    };
    return {
      next: () => {
        const event = this.take();
        if (event !== undefined) return Promise.resolve({ value: event, done: false });
        if (this.#outcome) return this.#finish();
        if (this.#detached) return Promise.resolve({ value: undefined, done: true });
        return new Promise(wait);
      },
      return: () => {
        leave();
        return Promise.resolve({ value: undefined, done: true });
      },
    };
  }

  #finish(): Promise<IteratorReturnResult<undefined>> {
    this.#iterating = false;
    const failed =
      this.#outcome?.ok === false && !(this.#outcome.error instanceof IncompleteStreamError);
    if (failed && this.#outcome?.ok === false) return Promise.reject(this.#outcome.error);
    return Promise.resolve({ value: undefined, done: true });
  }

  #enqueue(event: T): void {
    if (this.#join && this.#tail - this.#head > JOIN_BEYOND_EVENTS) {
      const joined = this.#join(this.#queue[this.#tail - 1] as T, event);
      if (joined !== undefined) {
        this.#queue[this.#tail - 1] = joined;
        return;
      }
    }
    this.#queue[this.#tail++] = event;
  }

  #attempt(event: T): Outcome<R> {
    try {
      return { ok: true, value: this.#extractResult(event) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  #close(outcome: Outcome<R>): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.#result?.settle(outcome);
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    if (!wake) return;
    this.#wake = undefined;
    wake();
  }
}
