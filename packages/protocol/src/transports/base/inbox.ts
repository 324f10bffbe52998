import { decode, type Envelope } from "../../frames/envelope.ts";
import { invalidRequest, ProtocolError } from "../../frames/protocol-error.ts";
import type { TransportHandler } from "./transport.ts";

/**
 * The receiving side of a transport: what arrives before `receive` waits here, in order. The end is
 * reported once, and nothing after it.
 */
export class Inbox implements TransportHandler {
  #handler: TransportHandler | undefined;
  #early: ((handler: TransportHandler) => void)[] = [];
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Passes waiting frames to the handler, and from then on those that arrive. */
  open(handler: TransportHandler): void {
    // Frames that arrive meanwhile stay behind those that wait.
    for (let next = this.#early.shift(); next; next = this.#early.shift()) next(handler);
    this.#handler = handler;
  }

  onFrame(envelope: Envelope): void {
    if (this.#isClosed) return;
    if (this.#handler) this.#handler.onFrame(envelope);
    else this.#early.push((handler) => handler.onFrame(envelope));
  }

  onFault(error: ProtocolError): void {
    if (!this.#isClosed) this.#deliver((handler) => handler.onFault(error));
  }

  onClose(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#deliver((handler) => handler.onClose(error));
  }

  /** Decodes a frame, or reports a fault. */
  read(text: string, maxBytes: number): void {
    let envelope: Envelope;
    try {
      envelope = decode(text, maxBytes);
    } catch (error) {
      this.onFault(
        error instanceof ProtocolError
          ? error
          : invalidRequest("The frame cannot be read.", { cause: error }),
      );
      return;
    }
    this.onFrame(envelope);
  }

  #deliver(what: (handler: TransportHandler) => void): void {
    if (this.#handler) what(this.#handler);
    else this.#early.push(what);
  }
}
