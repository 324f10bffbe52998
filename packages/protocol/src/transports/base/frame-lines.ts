import { tooLargeError } from "../../frames/envelope.ts";
import type { Inbox } from "./inbox.ts";
import { invalidRequest } from "../../frames/protocol-error.ts";

const LF = 0x0a;
const CR = 0x0d;

const utf8 = new TextDecoder("utf-8", { fatal: true });

export interface FrameLinesOptions {
  maxFrameBytes: number;
  /** The longest first line, which comes before the token is checked. Default: as the others. */
  firstFrameBytes?: number;
}

/**
 * Reads frames from bytes, one a line. LF ends a line, a CR before it is ignored. A line that is too
 * long is reported once and skipped, never kept.
 */
export class FrameLines {
  readonly #inbox: Inbox;
  readonly #maxBytes: number;
  #limit: number;
  // Pieces are joined when the line is whole: a long line in small pieces stays linear.
  #pieces: Uint8Array[] = [];
  #length = 0;
  #isSkipping = false;

  constructor(inbox: Inbox, { maxFrameBytes, firstFrameBytes }: FrameLinesOptions) {
    this.#inbox = inbox;
    this.#maxBytes = maxFrameBytes;
    this.#limit = firstFrameBytes ?? maxFrameBytes;
  }

  feed(chunk: Uint8Array): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#add(chunk.subarray(from, at));
      this.#finish();
      from = at + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  /** Reads the last line, which may have no LF. */
  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #add(piece: Uint8Array): void {
    if (this.#isSkipping) return;
    this.#length += piece.length;
    // A CR may stand before the LF.
    if (this.#length <= this.#limit + 1) {
      this.#pieces.push(piece);
      return;
    }
    this.#isSkipping = true;
    this.#pieces = [];
    this.#length = 0;
    this.#inbox.onFault(tooLargeError(this.#limit));
  }

  #finish(): void {
    const pieces = this.#pieces;
    const length = this.#length;
    const limit = this.#limit;
    const isSkipped = this.#isSkipping;
    this.#pieces = [];
    this.#length = 0;
    this.#isSkipping = false;
    this.#limit = this.#maxBytes;
    if (!isSkipped) this.#read(joinPieces(pieces, length), limit);
  }

  #read(line: Uint8Array, limit: number): void {
    let text: string;
    try {
      text = utf8.decode(line.at(-1) === CR ? line.subarray(0, -1) : line);
    } catch (cause) {
      const what = "The frame is not UTF-8.";
      this.#inbox.onFault(invalidRequest(what, { cause }));
      return;
    }
    this.#inbox.read(text, limit);
  }
}

function joinPieces(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first) return first;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
