import { type Clock, errorMessage, isRecord } from "@gyre/ai";
import {
  encode,
  type Envelope,
  type Payload,
  PROTOCOL_VERSION,
  PROTOCOL_VERSIONS,
  versionMismatchError,
} from "../frames/envelope.ts";
import { type Limits, LIMITS } from "../frames/limits.ts";
import type { OutgoingRequest } from "./pending-requests.ts";
import { invalidRequest, isErrorCode, ProtocolError } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";
import type { Connect } from "./client-api.ts";

/** The timeout of connecting, and of closing. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** Gets what happens on a connection. None of these may throw. */
export interface ClientConnectionHandler {
  onReady(server: Payload, limits: Limits): void;
  /** `ack`, `nack` or `error`, with `re`. */
  onAnswer(frame: Envelope): void;
  /** A frame of a stream that is no answer. */
  onEvent(frame: Envelope): void;
  /** The connection is over, or never was; called once. */
  onEnd(error: Error): void;
  /** An error that does not end the connection. */
  onError(error: unknown, where: string): void;
}

export interface ClientConnectionOptions {
  connect: Connect;
  client: { name: string; version: string } | undefined;
  clock: Clock;
  pingMs: number;
  handler: ClientConnectionHandler;
}

/** The numbers of what is sent on one stream. */
interface Numbering {
  readonly key: number;
  last: number;
}

/** The client's end of one connection: handshake, numbers of requests, `ping`, `goodbye`. */
export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #abort = new AbortController();
  readonly #opened: Promise<void>;
  readonly #numberings = new Map<string, Numbering>();
  #transport: Transport | undefined;
  /** The limits of the server, when it is ready. */
  #limits: Limits | undefined;
  #isEnded = false;
  #shutting: Promise<void> | undefined;
  #made = 0;
  #keys = 0;
  #stopTimer: () => void;
  /** Since the last look. */
  #wasHeard = false;
  #isPinged = false;

  /** Connects at once; the handler is called later, never from in here. */
  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    this.#stopTimer = options.clock.after(CONNECT_TIMEOUT_MS, () => {
      this.drop(timeoutError(`The server was not ready within ${CONNECT_TIMEOUT_MS} ms.`));
    });
    this.#opened = this.#open();
  }

  /**
   * Sends a request with the next number of its stream, and returns the key of that numbering.
   * Throws `ProtocolError` where the request cannot be encoded; then it uses no number.
   */
  ask({ id, type, stream, payload }: OutgoingRequest): number {
    if (stream === undefined) {
      this.#sendChecked({ type, id, payload });
      return 0;
    }
    const numbering = this.#numberings.get(stream) ?? this.#number(stream, 0);
    this.#sendChecked({ type, id, stream, seq: numbering.last + 1, payload });
    numbering.last++;
    return numbering.key;
  }

  /**
   * A request that was sent under the numbering `key` was refused: the server counts on from
   * `expected`. What was sent behind it is refused as well, and changes nothing more here.
   */
  renumber(stream: string, key: number, expected: number): void {
    if (this.#numberings.get(stream)?.key === key) this.#number(stream, expected - 1);
  }

  /** Nothing more is sent on a stream. If something is, the server says where to count on. */
  forget(stream: string): void {
    this.#numberings.delete(stream);
  }

  /** Ends the connection without `goodbye`. */
  drop(error: Error): void {
    if (this.#isEnded) return;
    this.#end(error);
    void this.#shut();
  }

  /** Sends `goodbye` if the server is ready. Settles when the transport is closed. */
  async close(reason: Error): Promise<void> {
    if (this.#isEnded) return;
    if (this.#limits) this.#transmit({ type: "goodbye", payload: {} });
    this.#end(reason);
    let stopTimer = (): void => {};
    const late = new Promise<void>((resolve) => {
      stopTimer = this.#options.clock.after(CONNECT_TIMEOUT_MS, resolve);
    });
    await Promise.race([this.#opened.then(() => this.#shut()), late]);
    stopTimer();
  }

  async #open(): Promise<void> {
    const { client, connect } = this.#options;
    try {
      // In a turn of its own, so that the handler gets no end before the constructor has returned.
      await Promise.resolve();
      const transport = await connect(this.#abort.signal);
      this.#transport = transport;
      if (this.#isEnded) return await this.#shut();
      transport.receive({
        onFrame: (frame) => this.#take(frame),
        onFault: (error) => this.#options.handler.onError(error, "a frame"),
        onClose: (error) => this.drop(error ?? new Error("The connection broke.")),
      });
      const payload = { versions: PROTOCOL_VERSIONS, ...(client && { client }) };
      this.#send(this.#envelope({ type: "hello", payload }));
    } catch (error) {
      this.drop(error instanceof Error ? error : new Error(errorMessage(error), { cause: error }));
    }
  }

  #shut(): Promise<void> {
    // Before there is a transport nothing is closed yet.
    if (this.#transport) this.#shutting ??= this.#closeTransport(this.#transport);
    return this.#shutting ?? Promise.resolve();
  }

  async #closeTransport(transport: Transport): Promise<void> {
    try {
      await transport.close();
    } catch (error) {
      this.#options.handler.onError(error, "closing a connection");
    }
  }

  #end(error: Error): void {
    this.#isEnded = true;
    this.#stopTimer();
    this.#abort.abort(error);
    this.#options.handler.onEnd(error);
  }

  #take(frame: Envelope): void {
    if (this.#isEnded) return;
    this.#wasHeard = true;
    const { type, id, re, seq, stream } = frame;
    const { handler } = this.#options;
    if (type === "goodbye") return this.drop(goodbyeError(frame));
    if (!this.#limits) return this.#beGreeted(frame);
    if (type === "pong" || type === "ready") return;
    if (type === "ping") return this.#transmit({ type: "pong", re: id, payload: {} });
    // With a number it is the end of a stream.
    const isAnswer = type === "ack" || type === "nack" || (type === "error" && seq === undefined);
    if (!isAnswer) return stream === undefined ? undefined : handler.onEvent(frame);
    if (re !== undefined) handler.onAnswer(frame);
    else handler.onError(readError(frame), "what was sent");
  }

  #beGreeted(frame: Envelope): void {
    const { type, payload } = frame;
    if (type === "nack" || type === "error") return this.drop(readError(frame));
    if (type !== "ready") return;
    const { version, server, limits } = payload;
    if (version !== PROTOCOL_VERSION) return this.drop(versionMismatchError(version));
    this.#limits = readLimits(limits);
    this.#stopTimer();
    this.#wasHeard = false;
    this.#keepAwake();
    this.#options.handler.onReady(isRecord(server) ? server : {}, this.#limits);
  }

  /** Any frame shows that the server is there; after silence the client sends a ping. */
  #keepAwake(): void {
    const { clock, pingMs } = this.#options;
    this.#stopTimer = clock.after(pingMs, () => {
      if (this.#isPinged && !this.#wasHeard) {
        return this.drop(timeoutError(`The server did not answer a ping within ${pingMs} ms.`));
      }
      this.#isPinged = !this.#wasHeard;
      this.#wasHeard = false;
      this.#keepAwake();
      if (this.#isPinged) this.#transmit({ type: "ping", payload: {} });
    });
  }

  #number(stream: string, last: number): Numbering {
    const numbering = { key: ++this.#keys, last };
    this.#numberings.set(stream, numbering);
    return numbering;
  }

  #sendChecked(frame: Outgoing): void {
    const envelope = this.#envelope(frame);
    try {
      // On every transport alike, whether it encodes by itself or not at all.
      encode(envelope, (this.#limits ?? LIMITS).frameBytes);
    } catch (cause) {
      if (cause instanceof ProtocolError) throw cause;
      const what = `The payload of "${frame.type}" is not JSON: ${errorMessage(cause)}`;
      throw invalidRequest(what, { cause });
    }
    this.#send(envelope);
  }

  #transmit(frame: Outgoing): void {
    try {
      this.#send(this.#envelope(frame));
    } catch (error) {
      this.#options.handler.onError(error, `sending "${frame.type}"`);
    }
  }

  #send(envelope: Envelope): void {
    const wait = this.#transport?.send(envelope);
    wait?.catch((error: unknown) => this.drop(new Error(errorMessage(error), { cause: error })));
  }

  #envelope({ id = `k_${++this.#made}`, ...frame }: Outgoing): Envelope {
    return { v: PROTOCOL_VERSION, id, ts: this.#options.clock.now(), ...frame };
  }
}

type Outgoing = Pick<Envelope, "type" | "payload"> &
  Partial<Pick<Envelope, "id" | "stream" | "seq" | "re">>;

/** The error that a `nack` or an `error` reports. */
export function readError({ type, re, payload }: Envelope): ProtocolError {
  const { code, message, ...details } = payload;
  return new ProtocolError(
    isErrorCode(code) ? code : "internal_error",
    typeof message === "string" ? message : `The server answered with "${type}".`,
    { details, ...(re !== undefined && { re }) },
  );
}

function goodbyeError({ payload: { reason } }: Envelope): Error {
  return new Error(`The server said goodbye: ${typeof reason === "string" ? reason : "closed"}.`);
}

function timeoutError(what: string): ProtocolError {
  return new ProtocolError("timeout", what);
}

/** The limits that the server reports; the defaults for those that it does not. */
function readLimits(given: unknown): Limits {
  const reported = Object.entries(isRecord(given) ? given : {}).filter(
    ([name, value]) => Object.hasOwn(LIMITS, name) && typeof value === "number" && value > 0,
  );
  return { ...LIMITS, ...Object.fromEntries(reported) };
}
