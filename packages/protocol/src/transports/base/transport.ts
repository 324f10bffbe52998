import type { Envelope } from "../../frames/envelope.ts";
import type { ProtocolError } from "../../frames/protocol-error.ts";

/** Gets what arrives on a transport. None of these may throw. */
export interface TransportHandler {
  onFrame(envelope: Envelope): void;
  /** Something arrived that is not a frame. The transport goes on. */
  onFault(error: ProtocolError): void;
  /** Nothing more arrives, and nothing can be sent. Called once. */
  onClose(error?: Error): void;
}

/** Carries frames to the other end. They arrive whole, in order, and once. */
export interface Transport {
  /**
   * Sends a frame. A promise settles when the other end can take more; callers that do not wait for
   * it fill memory. After the end, frames are dropped. Throws `too_large`.
   */
  send(envelope: Envelope): void | Promise<void>;
  /** Called once, before anything arrives. */
  receive(handler: TransportHandler): void;
  /** Ends the connection after everything that was sent. */
  close(): Promise<void>;
}

/** Two connected transports in one process: frames are passed as they are, each in a turn of its own. */
export function createTransportPair(): [Transport, Transport] {
  const one = new PairEnd();
  const other = new PairEnd();
  one.other = other;
  other.other = one;
  return [one, other];
}

class PairEnd implements Transport {
  other: PairEnd | undefined;
  #handler: TransportHandler | undefined;
  readonly #waiting: Envelope[] = [];
  #isClosing = false;
  #isClosed = false;
  #isScheduled = false;

  send(envelope: Envelope): void {
    if (!this.#isClosing) this.other?.take(envelope);
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#schedule();
  }

  async close(): Promise<void> {
    this.end();
    this.other?.end();
  }

  take(envelope: Envelope): void {
    if (this.#isClosing) return;
    this.#waiting.push(envelope);
    this.#schedule();
  }

  end(): void {
    this.#isClosing = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#handler) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      for (let frame = this.#waiting.shift(); frame; frame = this.#waiting.shift()) {
        this.#handler?.onFrame(frame);
      }
      if (!this.#isClosing || this.#isClosed) return;
      this.#isClosed = true;
      this.#handler?.onClose();
    });
  }
}
