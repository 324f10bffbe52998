/** A stream came to its end without the event that says how it ended. */
export class IncompleteStreamError extends Error {
  readonly code = "incomplete";
  constructor() {
    super("The stream ended without a terminal event.");
    this.name = "IncompleteStreamError";
  }
}

/** With more events than this waiting, neighbors that can be joined are. */
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
 * `join`, if given, may make one event of two neighbors that are waiting.
 */
export class EventStream<T, R = T> implements AsyncIterable<T> {
  // What waits is at head..tail. The list is kept when it runs empty: making a new
  // one for every event is most of what a stream would cost.
  #queue: (T | undefined)[] = [];
  #head = 0;
  #tail = 0;
  #outcome: Outcome<R> | undefined;
  #reader: Reader<T> | undefined;
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

  /** True while no reader gets the events: after `detach`, until it is iterated again. */
  get detached(): boolean {
    return this.#detached;
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
    if (this.#reader) {
      throw new Error(
        "This stream is being iterated already. A stream has one reader: subscribe, or pass the events on.",
      );
    }
    this.#detached = false;
    const reader = new Reader<T>(this, () => {
      if (this.#reader !== reader) return false;
      this.#reader = undefined;
      return true;
    });
    this.#reader = reader;
    return reader;
  }

  /** What `fail` was given, once closed by it. */
  get failure(): { error: unknown } | undefined {
    if (!this.#outcome || this.#outcome.ok) return undefined;
    return this.#outcome.error instanceof IncompleteStreamError ? undefined : this.#outcome;
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

type Next<T> = IteratorResult<T, undefined>;
type Readable<T> = Pick<
  EventStream<T, never>,
  "closed" | "detach" | "detached" | "failure" | "take" | "whenReadable"
>;

type Resolve<T> = (next: Next<T> | Promise<Next<T>>) => void;

/** The iterator of a stream. Also right for a caller that asks ahead without waiting. */
class Reader<T> implements AsyncIterator<T, undefined> {
  readonly #stream: Readable<T>;
  /** Ends this one's hold on the stream; false if it had none any more. */
  readonly #release: () => boolean;
  #waiting: Resolve<T> | undefined;
  /** Those who asked ahead, behind the one that waits; hardly anybody does. */
  #behind: Resolve<T>[] | undefined;
  #over = false;

  constructor(stream: Readable<T>, release: () => boolean) {
    this.#stream = stream;
    this.#release = release;
  }

  next(): Promise<Next<T>> {
    if (!this.#waiting) {
      if (this.#over) return Promise.resolve({ value: undefined, done: true });
      const event = this.#stream.take();
      if (event !== undefined) return Promise.resolve({ value: event, done: false });
      if (this.#stream.closed || this.#stream.detached) return this.#finish();
    }
    return new Promise(this.#wait);
  }

  return(): Promise<Next<T>> {
    this.#over = true;
    if (this.#release()) this.#stream.detach();
    for (let resolve = this.#shift(); resolve; resolve = this.#shift()) {
      resolve({ value: undefined, done: true });
    }
    return Promise.resolve({ value: undefined, done: true });
  }

  readonly #wait = (resolve: Resolve<T>): void => {
    if (this.#waiting) {
      (this.#behind ??= []).push(resolve);
      return;
    }
    this.#waiting = resolve;
    this.#stream.whenReadable(this.#arrive);
  };

  readonly #arrive = (): void => {
    while (this.#waiting) {
      const event = this.#stream.take();
      if (event === undefined && !this.#stream.closed && !this.#stream.detached) {
        this.#stream.whenReadable(this.#arrive);
        return;
      }
      this.#shift()?.(event === undefined ? this.#finish() : { value: event, done: false });
    }
  };

  #shift(): Resolve<T> | undefined {
    const first = this.#waiting;
    this.#waiting = this.#behind?.shift();
    return first;
  }

  #finish(): Promise<Next<T>> {
    const { failure } = this.#stream;
    const first = !this.#over;
    this.#over = true;
    this.#release();
    if (failure && first) return Promise.reject(failure.error);
    return Promise.resolve({ value: undefined, done: true });
  }
}
