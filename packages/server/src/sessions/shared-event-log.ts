import { type LoggedEvent, measureUtf8, type Payload } from "@gyre/protocol";
import type { SessionLog } from "./live-session.ts";

/** An event that spans the numbers from `from` on: those between were used on other servers. */
export interface SharedEvent extends LoggedEvent {
  readonly from?: number;
}

/** Keeps the newest events of a session whose numbers are given to it, with gaps. */
export class SharedEventLog implements SessionLog {
  readonly #takeNumber: () => number;
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #next: number | undefined;
  #events: SharedEvent[] = [];
  #bytes = 0;
  /** The number before the first event that is kept. */
  #before: number;

  constructor(
    numbers: { readonly first: number; take(): number },
    limits: { readonly tailEvents: number; readonly tailBytes: number },
  ) {
    this.#takeNumber = () => numbers.take();
    this.#before = numbers.first;
    this.#maxEvents = limits.tailEvents;
    this.#maxBytes = limits.tailBytes;
  }

  get last(): number {
    return this.#events.at(-1)?.seq ?? this.#before;
  }

  /** The number of the next event. */
  get next(): number {
    return (this.#next ??= this.#takeNumber());
  }

  append(type: string, payload: Payload): SharedEvent {
    const from = this.last + 1;
    const seq = this.next;
    this.#next = undefined;
    if (seq < from) throw new Error(`Event ${seq} comes after event ${from - 1}.`);
    const bytes = measureUtf8(JSON.stringify(payload));
    const event = { seq, ...(from < seq && { from }), type, payload, bytes };
    this.#events.push(event);
    this.#bytes += bytes;
    this.#forget();
    return event;
  }

  readAfter(seq: number): readonly SharedEvent[] | undefined {
    if (seq === this.#before) return [...this.#events];
    const at = this.#findIndex(seq);
    return at === undefined ? undefined : this.#events.slice(at + 1);
  }

  #findIndex(seq: number): number | undefined {
    let [low, high] = [0, this.#events.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#events[middle]?.seq ?? Infinity;
      if (found === seq) return middle;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }

  /** A tenth at once, so that forgetting one event costs the same however many there are. */
  #forget(): void {
    if (this.#events.length <= this.#maxEvents && this.#bytes <= this.#maxBytes) return;
    const least = Math.ceil(this.#events.length / 10);
    let count = 0;
    let bytes = this.#bytes;
    while (count < this.#events.length && (count < least || bytes > this.#maxBytes)) {
      bytes -= this.#events[count]?.bytes ?? 0;
      count++;
    }
    this.#before = this.#events[count - 1]?.seq ?? this.#before;
    this.#events = this.#events.slice(count);
    this.#bytes = bytes;
  }
}
