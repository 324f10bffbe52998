import { MAX_STREAMS } from "./limits.ts";
import { ProtocolError } from "./protocol-error.ts";

/**
 * The count of what arrives on streams, in one direction: from 1 by 1. What is not
 * next is refused and changes nothing.
 */
export class SequenceCheck {
  readonly #last = new Map<string, number>();
  readonly #maxStreams: number;

  constructor(maxStreams: number = MAX_STREAMS) {
    this.#maxStreams = maxStreams;
  }

  /** The number of the last frame that was accepted; 0 before the first. */
  last(stream: string): number {
    return this.#last.get(stream) ?? 0;
  }

  /** Whether `from` is the next number, or the first of a joined row that begins there. */
  isNext(stream: string, seq: number, from: number = seq): boolean {
    return from === this.last(stream) + 1 && seq >= from;
  }

  /** Counts a frame; throws `invalid_sequence` or `too_many_streams`, and then counts nothing. */
  accept(stream: string, seq: number | undefined, from: number | undefined = seq): void {
    const last = this.last(stream);
    if (seq === undefined || from === undefined || !this.isNext(stream, seq, from)) {
      const got = seq === undefined ? "none" : from === seq ? `${seq}` : `${from} to ${seq}`;
      const what = `The next "seq" on this stream is ${last + 1}, got ${got}.`;
      throw new ProtocolError("invalid_sequence", what, { details: { expected: last + 1 } });
    }
    if (!this.#last.has(stream) && this.#last.size >= this.#maxStreams) {
      const what = `A connection has at most ${this.#maxStreams} streams.`;
      throw new ProtocolError("too_many_streams", what);
    }
    this.#last.set(stream, seq);
  }

  /** Goes on after `last`: a snapshot stands for all up to there. */
  startAfter(stream: string, last: number): void {
    this.#last.set(stream, last);
  }

  /** The stream is over; one of its name would count from 1. */
  forget(stream: string): void {
    this.#last.delete(stream);
  }
}
