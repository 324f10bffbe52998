import type { Clock } from "@gyre/ai";
import { encode, type Envelope, measureUtf8 } from "../frames/envelope.ts";
import { Backpressure } from "../transports/base/backpressure.ts";
import { Inbox } from "../transports/base/inbox.ts";
import {
  CLOSE_GRACE_MS,
  EVENTS_AWAY_MS,
  EVENTS_TAIL_BYTES,
  KEEP_ALIVE_MS,
} from "../frames/limits.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import { type Identity, isSameUser } from "../server/identity.ts";
import type { Transport, TransportHandler } from "../transports/base/transport.ts";
import type { HttpReply } from "./exchange.ts";

const OK = 200;

export interface HttpConnectionOptions {
  maxFrameBytes: number;
  clock: Clock;
  /** The client that opened it: requests of others do not find it. */
  identity?: Identity | undefined;
  /** Called when the connection has ended. */
  onEnd: () => void;
}

interface Kept {
  seq: number;
  event: string;
  bytes: number;
}

/**
 * The server's end of a connection over HTTP. Its events are sent on one response after the other:
 * a client whose stream broke off resumes it from a short tail. After `EVENTS_AWAY_MS` without an
 * event stream it is closed.
 */
export class HttpConnection implements Transport {
  readonly inbox: Inbox = new Inbox();
  readonly #options: HttpConnectionOptions;
  readonly #tail: Kept[] = [];
  #tailBytes = 0;
  #sent = 0;
  #reply: HttpReply | undefined;
  #hasRequest = false;
  #needsReader = false;
  #isClosing = false;
  readonly #backpressure = new Backpressure();
  #stopTimer: () => void = () => {};

  constructor(options: HttpConnectionOptions) {
    this.#options = options;
    this.#waitForReader();
  }

  /** Ends it if no client reads its events, now or as soon as that is so. */
  endUnread(): void {
    this.#needsReader = true;
    if (!this.#reply) this.end();
  }

  /** Whether it is one that this client opened. */
  belongsTo(identity: Identity | undefined): boolean {
    return isSameUser(this.#options.identity, identity);
  }

  send(envelope: Envelope): void | Promise<void> {
    const text = encode(envelope, this.#options.maxFrameBytes);
    if (this.inbox.isClosed || this.#isClosing) return undefined;
    const seq = ++this.#sent;
    const event = `id: ${seq}\ndata: ${text}\n\n`;
    this.#keep({ seq, event, bytes: measureUtf8(event) });
    if (this.#reply?.write(event)) return undefined;
    return this.#backpressure.wait();
  }

  receive(handler: TransportHandler): void {
    this.inbox.open(handler);
  }

  /** Sends the end to the client, if it has an event stream. */
  async close(): Promise<void> {
    if (this.inbox.isClosed || this.#isClosing) return;
    this.#isClosing = true;
    const reply = this.#reply;
    if (reply) {
      const stop = this.#options.clock.after(CLOSE_GRACE_MS, () => reply.cut());
      await new Promise<void>((resolve) => {
        reply.onClose(resolve);
        reply.end("event: close\ndata: {}\n\n");
      });
      stop();
    }
    this.end();
  }

  /** Sends the events after `after`, and those that follow. Throws where they are not kept any more. */
  attach(reply: HttpReply, after: number): void {
    const first = this.#tail[0]?.seq ?? this.#sent + 1;
    if (!Number.isSafeInteger(after) || after < first - 1 || after > this.#sent) {
      const what = `The events after ${after} are not kept any more. Connect again.`;
      const error = new ProtocolError("stream_not_found", what);
      this.end(error);
      throw error;
    }
    const before = this.#reply;
    this.#reply = reply;
    // A client that resumes has lost its old stream, also if that seems to be open.
    before?.cut();
    reply.begin(OK, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      connection: "close",
      "x-accel-buffering": "no",
    });
    reply.onDrain(() => this.#backpressure.release());
    reply.onClose(() => {
      if (this.#reply !== reply) return;
      this.#reply = undefined;
      this.#waitForReader();
    });
    const missing = this.#tail.filter(({ seq }) => seq > after).map(({ event }) => event);
    const hasRoom = reply.write(`:\n\n${missing.join("")}`);
    if (hasRoom) this.#backpressure.release();
    this.#keepAlive(reply);
  }

  /** Begins a request with frames, one at a time. The returned function ends it. */
  beginRequest(): () => void {
    if (this.#hasRequest) {
      throw new ProtocolError(
        "invalid_sequence",
        "The request with frames before this one is not done. Send one after the other.",
      );
    }
    this.#hasRequest = true;
    return () => {
      this.#hasRequest = false;
    };
  }

  end(error?: Error): void {
    if (this.inbox.isClosed) return;
    this.#stopTimer();
    this.#options.onEnd();
    this.inbox.onClose(error);
    this.#backpressure.release();
    this.#reply?.end();
  }

  #waitForReader(): void {
    this.#stopTimer();
    if (this.inbox.isClosed) return;
    if (this.#needsReader) return this.end();
    this.#stopTimer = this.#options.clock.after(EVENTS_AWAY_MS, () => {
      this.end(new Error(`The event stream was away for ${EVENTS_AWAY_MS} ms.`));
    });
  }

  #keepAlive(reply: HttpReply): void {
    this.#stopTimer();
    this.#stopTimer = this.#options.clock.after(KEEP_ALIVE_MS, () => {
      if (!reply.isFull) reply.write(":\n\n");
      this.#keepAlive(reply);
    });
  }

  #keep(kept: Kept): void {
    this.#tail.push(kept);
    this.#tailBytes += kept.bytes;
    while (this.#tailBytes > EVENTS_TAIL_BYTES && this.#tail.length > 1) {
      this.#tailBytes -= this.#tail.shift()?.bytes ?? 0;
    }
  }
}
