/** Events that a server may publish between two entries of a log. */
const EVENTS_BETWEEN = 2 ** 17;
/** Servers that may publish events of their own between the same two entries. */
const LANES = 2 ** 14;
const STEP = EVENTS_BETWEEN * LANES;

/** The number of an entry of the log: all that it says, and nothing behind it, is published. */
export function numberEntry(seq: number): number {
  return seq * STEP;
}

/**
 * The numbers of a session's events. That of a stored entry follows from its place in the log, and
 * so is the same on every server, for good. Events between two entries, such as deltas, are in a
 * lane that no other server has: a client that comes from there is recognized by the number.
 */
export class EventNumbers {
  readonly #lane: number;
  #seq = 0;
  #between = 0;

  /** `nth`: how many sessions were opened before, on all servers. */
  constructor(nth: number) {
    this.#lane = (nth % LANES) * EVENTS_BETWEEN;
  }

  /** The last entry that is published. */
  get seq(): number {
    return this.#seq;
  }

  /** Whether another event fits before the next entry. */
  get hasRoom(): boolean {
    // The last ones are for what cannot be left out.
    return this.#between < EVENTS_BETWEEN - 16;
  }

  /** Goes on with an entry. */
  enter(seq: number): void {
    this.#seq = seq;
    this.#between = 0;
  }

  /** The number of the event that ends the current entry. */
  takeEntry(): number {
    return numberEntry(this.#seq);
  }

  takeBetween(): number {
    return numberEntry(this.#seq) + this.#lane + ++this.#between;
  }
}
