import { isRecord, type Payload, utf8Length } from "./envelope.ts";
import { TAIL_BYTES, TAIL_EVENTS } from "./limits.ts";
import { plainData } from "./plain-data.ts";

/** An event of a stream with its number. */
export interface LoggedEvent {
  readonly seq: number;
  readonly type: string;
  readonly payload: Payload;
  /** The length of the payload as JSON. */
  readonly bytes: number;
}

/** The JSON around a delta, about. */
const DELTA_FRAME_BYTES = 64;

/** Numbers events from 1 by 1, and keeps the newest for those who come back. */
export class EventLog {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #events: LoggedEvent[] = [];
  /** Events before this place are forgotten. */
  #first = 0;
  #bytes = 0;
  #last = 0;

  constructor(maxEvents: number = TAIL_EVENTS, maxBytes: number = TAIL_BYTES) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  /** The number of the newest event; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** How long the payloads are that are kept, as JSON. */
  get bytes(): number {
    return this.#bytes;
  }

  append(type: string, given: Payload): LoggedEvent {
    const { payload, bytes } = measured(given);
    const event = { seq: ++this.#last, type, payload, bytes };
    this.#events.push(event);
    this.#bytes += bytes;
    while (this.#count > this.#maxEvents || this.#bytes > this.#maxBytes) this.#forgetFirst();
    return event;
  }

  /** The events after one; nothing where some of them are gone, or `seq` has not been yet. */
  after(seq: number): readonly LoggedEvent[] | undefined {
    const gone = this.#last - this.#count;
    if (!Number.isSafeInteger(seq) || seq < gone || seq > this.#last) return undefined;
    return this.#events.slice(this.#first + seq - gone);
  }

  get #count(): number {
    return this.#events.length - this.#first;
  }

  #forgetFirst(): void {
    this.#bytes -= this.#events[this.#first]?.bytes ?? 0;
    this.#first++;
    // Moved seldom, so that forgetting one costs the same however many there are.
    if (this.#first * 2 < this.#events.length) return;
    this.#events = this.#events.slice(this.#first);
    this.#first = 0;
  }
}

/** A payload that is sure to travel, and its length. */
function measured(payload: Payload): { payload: Payload; bytes: number } {
  const { event } = payload;
  const { delta } = isRecord(event) ? event : payload;
  // Deltas come by the thousand, and are strings.
  if (typeof delta === "string") {
    return { payload, bytes: utf8Length(delta) + DELTA_FRAME_BYTES };
  }
  try {
    return { payload, bytes: utf8Length(JSON.stringify(payload)) };
  } catch {
    const plain = plainData(payload);
    return { payload: plain, bytes: utf8Length(JSON.stringify(plain)) };
  }
}
