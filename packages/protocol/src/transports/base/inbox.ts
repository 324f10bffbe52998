import { decode, type Envelope } from "../../frames/envelope.ts";
import { ProtocolError } from "../../frames/protocol-error.ts";
import type { TransportHandler } from "./transport.ts";

/**
 * The receiving side of a transport: what arrives before somebody receives it waits here,
 * in order. The end is told once, and nothing after it.
 */
export class Inbox implements TransportHandler {
  #handler: TransportHandler | undefined;
  #early: ((handler: TransportHandler) => void)[] = [];
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Hands over what waits, and from then on what comes. */
  open(handler: TransportHandler): void {
    // What a handler causes while it is handed the first stays behind the rest.
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

  /** A frame as text, or the fault that it is. */
  read(text: string, maxBytes: number): void {
    let envelope: Envelope;
    try {
      envelope = decode(text, maxBytes);
    } catch (error) {
      this.onFault(
        error instanceof ProtocolError
          ? error
          : new ProtocolError("invalid_request", "The frame cannot be read.", { cause: error }),
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
