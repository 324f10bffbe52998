import { errorMessage } from "@gyre/ai";
import { type Envelope, type Payload, measureUtf8 } from "../frames/envelope.ts";
import { joinFrames } from "../frames/join-frames.ts";
import { MAX_WAITING_BYTES } from "../frames/limits.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";

/** The approximate length of a frame without its payload, in bytes. */
const FRAME_BYTES = 128;

interface Waiting {
  frame: Envelope;
  bytes: number;
}

/**
 * Frames on their way into a transport. For a slow reader they wait here, with deltas of one block
 * joined; above a limit the connection ends.
 */
export class Outbox {
  readonly #transport: Transport;
  readonly #maxBytes: number;
  readonly #onOverflow: () => void;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #isBlocked = false;
  #isClosed = false;
  #unblocked: Promise<void> = Promise.resolve();

  constructor(transport: Transport, onOverflow: () => void, maxBytes: number = MAX_WAITING_BYTES) {
    this.#transport = transport;
    this.#onOverflow = onOverflow;
    this.#maxBytes = maxBytes;
  }

  /**
   * Sends a frame now, or when its turn comes. `bytes` is the approximate length of its payload, if
   * known.
   */
  push(frame: Envelope, bytes?: number): void {
    if (this.#isClosed) return;
    if (!this.#isBlocked) return this.#send(frame);
    this.#wait({ frame, bytes: (bytes ?? measurePayload(frame.payload)) + FRAME_BYTES });
    if (this.#bytes <= this.#maxBytes) return;
    this.close();
    this.#onOverflow();
  }

  /** Drops waiting frames, and all that follow. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#bytes = 0;
  }

  /** Settles when no frame waits. */
  async flush(): Promise<void> {
    while (this.#isBlocked && !this.#isClosed) await this.#unblocked;
  }

  #wait(next: Waiting): void {
    const last = this.#waiting.at(-1);
    const joined = last && joinFrames(last.frame, next.frame);
    if (!last || !joined) {
      this.#waiting.push(next);
      this.#bytes += next.bytes;
      return;
    }
    const isReplaced = joined.payload === next.frame.payload;
    const bytes = isReplaced ? next.bytes : last.bytes + next.bytes - FRAME_BYTES;
    this.#waiting[this.#waiting.length - 1] = { frame: joined, bytes };
    this.#bytes += bytes - last.bytes;
  }

  #send(frame: Envelope): void {
    const wait = this.#transmit(frame);
    if (!wait) return;
    this.#isBlocked = true;
    this.#unblocked = wait.then(
      () => this.#resume(),
      () => this.close(),
    );
  }

  /** Sends a frame that cannot be encoded as omitted: its number is used, and its answer awaited. */
  #transmit(frame: Envelope): void | Promise<void> {
    try {
      return this.#transport.send(frame);
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : "internal_error";
      const type = frame.type === "ack" ? "nack" : frame.type;
      const position = readPosition(frame.payload);
      const payload = { ...position, code, message: errorMessage(error), omitted: true };
      return this.#transport.send({ ...frame, type, payload });
    }
  }

  #resume(): void {
    this.#isBlocked = false;
    let sent = 0;
    while (sent < this.#waiting.length && !this.#isBlocked) {
      const next = this.#waiting[sent++];
      if (!next) break;
      this.#bytes -= next.bytes;
      this.#send(next.frame);
    }
    this.#waiting = this.#waiting.slice(sent);
  }
}

/** What a snapshot is of, and the number that it stands for. */
function readPosition({ session, epoch, seq }: Payload): Payload {
  return {
    ...(typeof session === "string" && { session }),
    ...(typeof epoch === "string" && { epoch }),
    ...(typeof seq === "number" && { seq }),
  };
}

function measurePayload(payload: Payload): number {
  try {
    return measureUtf8(JSON.stringify(payload));
  } catch {
    // It cannot be encoded; the frame in its place is short.
    return 0;
  }
}
