import { type Clock, errorMessage, redact, systemClock } from "@gyre/ai";
import { type Answer, IdempotencyCache } from "./idempotency-cache.ts";
import {
  type Envelope,
  negotiate,
  type Payload,
  PROTOCOL_VERSION,
  PROTOCOL_VERSIONS,
  versionMismatchError,
} from "../frames/envelope.ts";
import type { LoggedEvent } from "../messages/event-log.ts";
import { type Limits, LIMITS, MAX_WAITING_BYTES, MAX_WAITING_REQUESTS } from "../frames/limits.ts";
import type { Identity } from "./identity.ts";
import { Outbox } from "./outbox.ts";
import { invalidRequest, ProtocolError } from "../frames/protocol-error.ts";
import { REQUEST_TYPES } from "../frames/request-types.ts";
import { SequenceCheck } from "../frames/sequence.ts";
import type { Transport } from "../transports/base/transport.ts";

/**
 * Handles a request. It may call `ack` itself, to send frames right after it; otherwise its result
 * is the payload of the `ack`. An error that it throws becomes a `nack`: `ProtocolError` with its
 * code, any other as `internal_error`. Requests of one stream are handled one after the other.
 */
export type RequestHandler = (
  frame: Envelope,
  ack: (payload?: Payload) => void,
) => Payload | void | Promise<Payload | void>;

type Outgoing = Pick<Envelope, "type" | "payload"> &
  Partial<Pick<Envelope, "id" | "stream" | "seq" | "from" | "re">>;

/** Frames that are answers. They get no answer themselves. */
const ANSWERS: ReadonlySet<string> = new Set(["ack", "nack", "error", "pong", "ready"]);

export interface ConnectionOptions {
  handlers: ReadonlyMap<string, RequestHandler>;
  /** The identity of the client, where the server knows it. */
  identity?: Identity | undefined;
  /** Sent to the client in `ready`. */
  server?: { name: string; version: string };
  limits?: Partial<Limits>;
  /** The cache for the answer to a request. Default: that of the connection. */
  findCache?: (frame: Envelope) => IdempotencyCache | undefined;
  /** The timeout of a request. Default: `requestTimeoutMs` of the limits. */
  findTimeoutMs?: (frame: Envelope) => number | undefined;
  /** Answers of the client to frames of the server. */
  onAnswer?: (frame: Envelope) => void;
  /** The connection is over; called once. */
  onClose?: (reason: string, error?: Error) => void;
  /** Errors that no answer reports. */
  onError?: (error: unknown, where: string) => void;
  maxWaitingBytes?: number;
  clock?: Clock;
}

/**
 * The server's end of a connection: handshake, `ping`, `goodbye`, sequence numbers, and one answer
 * for every request. No frame of a client ends it, however invalid.
 */
export class Connection {
  readonly #transport: Transport;
  readonly #options: ConnectionOptions;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #outbox: Outbox;
  readonly #sequences: SequenceCheck;
  readonly #memory = new IdempotencyCache();
  /** The last request of each stream, until its answer. */
  readonly #streams = new Map<string, Promise<void>>();
  #isReady = false;
  #isClosed = false;
  #made = 0;
  #waiting = 0;
  /** The id of the client's `goodbye`, while requests before it are answered. */
  #goodbye: string | undefined;

  constructor(transport: Transport, options: ConnectionOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#sequences = new SequenceCheck(this.#limits.streams);
    this.#outbox = new Outbox(
      transport,
      () => void this.close("slow_reader"),
      options.maxWaitingBytes ?? MAX_WAITING_BYTES,
    );
    transport.receive({
      onFrame: (envelope) => this.#take(envelope),
      onFault: (error) => this.#refuse(error),
      onClose: (error) => this.#end("closed", error),
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The identity of the client: the same for all of its requests. Undefined: the server does not know it. */
  get identity(): Identity | undefined {
    return this.#options.identity;
  }

  /** Sends a frame. `bytes` is the approximate length of its payload. */
  send(frame: Outgoing, bytes?: number): void {
    this.#outbox.push(this.#createEnvelope(frame), bytes);
  }

  #createEnvelope({ type, payload, id = `r_${++this.#made}`, ...more }: Outgoing): Envelope {
    return { v: PROTOCOL_VERSION, type, id, ts: this.#clock.now(), ...more, payload };
  }

  /** Sends an event of a stream: the fast path. */
  sendEvent(stream: string, { seq, type, payload, bytes }: LoggedEvent): void {
    const [v, id, ts] = [PROTOCOL_VERSION, `e_${seq}`, this.#clock.now()];
    this.#outbox.push({ v, type, id, ts, stream, seq, payload }, bytes);
  }

  /** Forgets an ended stream: a new one of its name counts from 1. */
  forget(stream: string): void {
    this.#sequences.forget(stream);
  }

  /** Sends `goodbye`, in answer to `re` if given, and closes the transport after everything that waits. */
  async close(reason = "closed", re?: string): Promise<void> {
    if (this.#isClosed) return;
    const goodbye = { type: "goodbye", ...(re !== undefined && { re }), payload: { reason } };
    if (reason === "slow_reader") {
      // Waiting frames are dropped; the client gets them when it attaches again. It receives this
      // one behind those that the transport has buffered.
      void this.#transport.send(this.#createEnvelope(goodbye));
    } else {
      this.send(goodbye);
      await this.#outbox.flush();
    }
    this.#end(reason);
    await this.#transport.close();
  }

  #end(reason: string, error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#outbox.close();
    this.#guard("onClose", () => this.#options.onClose?.(reason, error));
  }

  #take(frame: Envelope): void {
    if (this.#isClosed) return;
    try {
      this.#dispatch(frame);
    } catch (error) {
      this.#answer(frame, toNack(error));
    }
  }

  #dispatch(frame: Envelope): void {
    const { type, id } = frame;
    if (ANSWERS.has(type)) return this.#guard("onAnswer", () => this.#options.onAnswer?.(frame));
    if (type === "hello") return this.#greet(frame);
    if (type === "ping") return this.send({ type: "pong", re: id, payload: {} });
    if (type === "goodbye") {
      this.#goodbye = id;
      if (this.#waiting === 0) void this.close("goodbye", id);
      return;
    }
    if (this.#goodbye !== undefined) throw invalidRequest("Nothing comes after goodbye.");
    const handler = this.#options.handlers.get(type);
    if (!handler && !REQUEST_TYPES.has(type)) {
      const what = `There is no frame of type "${type}".`;
      return this.#refuse(invalidRequest(what, { re: id }));
    }
    if (!this.#isReady) throw invalidRequest('The first frame of a client is "hello".');
    if (!handler) {
      throw new ProtocolError("not_implemented", `"${type}" is not served here.`);
    }
    this.#request(frame, handler);
  }

  #greet(frame: Envelope): void {
    const { versions } = frame.payload;
    if (!Array.isArray(versions)) throw invalidRequest('"hello" has a list "versions".');
    if (this.#isReady) throw invalidRequest('"hello" was said before.');
    const version = negotiate(versions);
    if (version === undefined) throw versionMismatchError(versions[0], {}, PROTOCOL_VERSIONS);
    this.#isReady = true;
    const { server = { name: "gyre", version: "" } } = this.#options;
    this.send({ type: "ready", re: frame.id, payload: { version, server, limits: this.#limits } });
  }

  #request(frame: Envelope, handler: RequestHandler): void {
    const { stream, seq, from } = frame;
    const memory = this.#options.findCache?.(frame) ?? this.#memory;
    const isKnown = memory.recall(frame, (answer) => this.#answer(frame, answer));
    if (isKnown) {
      // A request that is repeated on a new connection has the next number there.
      if (stream !== undefined && seq !== undefined && this.#sequences.isNext(stream, seq, from)) {
        this.#sequences.accept(stream, seq, from);
      }
      return;
    }
    if (this.#waiting >= MAX_WAITING_REQUESTS) {
      const what = `At most ${MAX_WAITING_REQUESTS} requests of a connection wait for their answer.`;
      throw new ProtocolError("rate_limited", what);
    }
    if (stream !== undefined) this.#sequences.accept(stream, seq, from);
    const keep = memory.begin(frame);
    const timeoutMs = this.#options.findTimeoutMs?.(frame) ?? this.#limits.requestTimeoutMs;
    const work = new Work(this.#clock, timeoutMs, (answer) => {
      this.#waiting--;
      this.#answer(frame, answer);
      keep(answer);
      // A client that leaves gets the answers to its requests first.
      if (this.#goodbye !== undefined && this.#waiting === 0) {
        void this.close("goodbye", this.#goodbye);
      }
    });
    this.#waiting++;
    const report = (error: unknown): void => this.#options.onError?.(error, `"${frame.type}"`);
    const begin = (): void => work.start(() => handler(frame, work.ack), report);
    if (stream === undefined) return begin();
    const before = this.#streams.get(stream);
    if (before) void before.then(begin);
    else begin();
    if (work.isAnswered) return;
    const answered = work.answered.then(() => {
      if (this.#streams.get(stream) === answered) this.#streams.delete(stream);
    });
    this.#streams.set(stream, answered);
  }

  #answer(frame: Envelope, { type, payload }: Answer): void {
    const { id: re, stream } = frame;
    this.send({ type, re, ...(stream !== undefined && { stream }), payload });
  }

  /** Answers a frame that is not a request with an `error`, or one of a wrong version with a `nack`. */
  #refuse(error: ProtocolError): void {
    const type = error.code === "version_mismatch" ? "nack" : "error";
    const { re } = error;
    this.send({ type, ...(re !== undefined && { re }), payload: toErrorPayload(error) });
  }

  #guard(where: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.onError?.(error, where);
    }
  }
}

/** One request, with exactly one answer before its timeout. */
class Work {
  readonly #send: (answer: Answer) => void;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #answer: Answer | undefined;
  #stopTimer: () => void = () => {};
  #settle: (() => void) | undefined;

  constructor(clock: Clock, timeoutMs: number, send: (answer: Answer) => void) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#send = send;
  }

  get isAnswered(): boolean {
    return this.#answer !== undefined;
  }

  get answered(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#answer) resolve();
      else this.#settle = resolve;
    });
  }

  readonly ack = (payload: Payload = {}): void => this.#finish({ type: "ack", payload });

  start(
    run: () => Payload | void | Promise<Payload | void>,
    report: (error: unknown) => void,
  ): void {
    const failed = (error: unknown): void => {
      if (this.#answer || !(error instanceof ProtocolError)) report(error);
      this.#finish(toNack(error));
    };
    try {
      const given = run();
      if (!(given instanceof Promise)) return this.ack(given ?? {});
      given.then((payload) => this.ack(payload ?? {}), failed);
    } catch (error) {
      return failed(error);
    }
    if (this.#answer || this.#timeoutMs === Infinity) return;
    this.#stopTimer = this.#clock.after(this.#timeoutMs, () => {
      const what = `It was not done within ${this.#timeoutMs} ms.`;
      this.#finish(toNack(new ProtocolError("timeout", what)));
    });
  }

  #finish(answer: Answer): void {
    if (this.#answer) return;
    this.#answer = answer;
    this.#stopTimer();
    this.#send(answer);
    this.#settle?.();
  }
}

function toNack(error: unknown): Answer {
  if (error instanceof ProtocolError) return { type: "nack", payload: toErrorPayload(error) };
  return {
    type: "nack",
    payload: { code: "internal_error", message: redact(errorMessage(error)) },
  };
}

function toErrorPayload({ code, message, details }: ProtocolError): Payload {
  return { ...details, code, message };
}
