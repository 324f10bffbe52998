import { isRecord } from "@gyre/ai";
import { type Payload, measureUtf8 } from "../frames/envelope.ts";
import { TAIL_BYTES, TAIL_EVENTS } from "../frames/limits.ts";
import { toPlainData } from "../frames/plain-data.ts";

/** An event of a stream, with its number. */
export interface LoggedEvent {
  readonly seq: number;
  readonly type: string;
  readonly payload: Payload;
  /** The length of the payload as JSON. */
  readonly bytes: number;
}

/** The JSON around a delta, about. */
const DELTA_FRAME_BYTES = 64;

/** From `first` on, deltas belong to this block, until the next run of deltas. */
interface DeltaRun {
  readonly first: number;
  readonly type: string;
  readonly contentIndex: number;
}

/** Numbers events from 1 by 1, and keeps the newest for clients that resume. */
export class EventLog {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  /** Of a delta only its text: an object for each would take most of the memory of a stream. */
  #events: (LoggedEvent | string)[] = [];
  #runs: DeltaRun[] = [];
  /** Events before this index are forgotten. */
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

  /** The length of the kept payloads as JSON. */
  get bytes(): number {
    return this.#bytes;
  }

  append(type: string, given: Payload): LoggedEvent {
    const { payload, bytes } = measurePayload(given);
    const event = { seq: ++this.#last, type, payload, bytes };
    this.#keep(event, bytes);
    return event;
  }

  /** The same for a delta of a response, which takes less memory than other events. */
  appendDelta(type: string, contentIndex: number, delta: string): LoggedEvent {
    const seq = ++this.#last;
    const run = this.#runs.at(-1);
    if (run?.type !== type || run.contentIndex !== contentIndex) {
      this.#runs.push({ first: seq, type, contentIndex });
    }
    const bytes = measureDelta(delta);
    this.#keep(delta, bytes);
    return { seq, type, payload: { contentIndex, delta }, bytes };
  }

  /** The events after `seq`; undefined where some are forgotten, or `seq` is not reached yet. */
  readAfter(seq: number): readonly LoggedEvent[] | undefined {
    const gone = this.#last - this.#count;
    if (!Number.isSafeInteger(seq) || seq < gone || seq > this.#last) return undefined;
    let nth = 0;
    return this.#events.slice(this.#first + seq - gone).map((kept, at) => {
      if (typeof kept !== "string") return kept;
      const number = seq + at + 1;
      while ((this.#runs[nth + 1]?.first ?? Infinity) <= number) nth++;
      const { type = "", contentIndex = 0 } = this.#runs[nth] ?? {};
      const payload = { contentIndex, delta: kept };
      return { seq: number, type, payload, bytes: measureDelta(kept) };
    });
  }

  #keep(event: LoggedEvent | string, bytes: number): void {
    this.#events.push(event);
    this.#bytes += bytes;
    while (this.#count > this.#maxEvents || this.#bytes > this.#maxBytes) this.#forgetFirst();
  }

  get #count(): number {
    return this.#events.length - this.#first;
  }

  #forgetFirst(): void {
    const event = this.#events[this.#first] ?? "";
    this.#bytes -= typeof event === "string" ? measureDelta(event) : event.bytes;
    this.#first++;
    // Moved rarely, so that forgetting one event costs the same however many there are.
    if (this.#first * 2 < this.#events.length) return;
    this.#events = this.#events.slice(this.#first);
    this.#first = 0;
    const kept = this.#last - this.#events.length + 1;
    this.#runs = this.#runs.filter((_, nth) => (this.#runs[nth + 1]?.first ?? Infinity) > kept);
  }
}

function measureDelta(delta: string): number {
  return measureUtf8(delta) + DELTA_FRAME_BYTES;
}

/** A payload that is safe to encode, and its length. */
function measurePayload(payload: Payload): { payload: Payload; bytes: number } {
  const { event } = payload;
  const { delta } = isRecord(event) ? event : payload;
  // The fast path: deltas are strings.
  if (typeof delta === "string") {
    return { payload, bytes: measureDelta(delta) };
  }
  try {
    return { payload, bytes: measureUtf8(JSON.stringify(payload)) };
  } catch {
    const plain = toPlainData(payload);
    return { payload: plain, bytes: measureUtf8(JSON.stringify(plain)) };
  }
}
