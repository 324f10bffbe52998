import { type Clock, errorMessage, systemClock } from "@gyre/ai";
import { Backoff, type ReconnectOptions } from "./backoff.ts";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { StreamSubscription } from "./stream-subscription.ts";
import { type Limits, REQUEST_TIMEOUT_MS } from "../frames/limits.ts";
import { type PendingRequest, PendingRequests, type OutgoingRequest } from "./pending-requests.ts";
import { invalidRequest, ProtocolError } from "../frames/protocol-error.ts";
import { makeRandomHex } from "../frames/stream-name.ts";
import { readError, ClientConnection } from "./client-connection.ts";
import type {
  Connect,
  RequestOptions,
  StreamListener,
  WireClientApi,
  ConnectionState,
} from "./client-api.ts";

/** After this time without a frame the client sends a ping. */
export const PING_MS = 30_000;
/** How long after the timeout of the server its answer may still arrive. */
export const ANSWER_GRACE_MS = 5_000;
/** A request whose number is refused more often than this on one connection fails. */
const MAX_RENUMBERINGS = 3;
const ID_BYTES = 12;

export interface WireClientOptions {
  connect: Connect;
  /** Sent to the server in `hello`. */
  client?: { name: string; version: string };
  clock?: Clock;
  /** From 0 to 1, for the delays. Default `Math.random`. */
  random?: () => number;
  reconnect?: ReconnectOptions;
  /**
   * A request without an answer by then is rejected with `timeout`. Time without a connection
   * does not count. Default: the timeout of the server, and a little more.
   */
  requestTimeoutMs?: number;
  /** Default `PING_MS`. */
  pingMs?: number;
  onState?: (state: ConnectionState) => void;
  /** Errors that no promise reports. */
  onError?: (error: unknown, where: string) => void;
}

interface Waiter {
  resolve(): void;
  reject(error: ProtocolError): void;
}

/**
 * The client's end of the wire. It connects when it is first used, and stays connected until
 * `close`: after a connection breaks it opens another, resumes streams, and then sends requests
 * without an answer again. It does not retry a server that has no common version or rejects the
 * token.
 */
export class WireClient implements WireClientApi {
  readonly #options: WireClientOptions;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #pending: PendingRequests;
  readonly #subscriptions = new Map<string, StreamSubscription>();
  readonly #idPrefix = `c_${makeRandomHex(ID_BYTES)}_`;
  #state: ConnectionState = { type: "connecting" };
  #connection: ClientConnection | undefined;
  /** The link, when requests may go out on it. */
  #readyConnection: ClientConnection | undefined;
  #readyAt: number | undefined;
  #stopWaiting: (() => void) | undefined;
  #waiters: Waiter[] = [];
  /** Replaced, never changed, so that a state goes to the listeners of the moment it began. */
  #watchers: readonly ((state: ConnectionState) => void)[];
  #made = 0;
  /** Why the client can send no more requests. */
  #end: ProtocolError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: WireClientOptions) {
    if (typeof options?.connect !== "function") {
      throw invalidRequest(
        'The client has no `connect`: write { connect: connectUrl(url, { token }) }, with connectUrl of "@gyre/protocol".',
      );
    }
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#watchers = options.onState ? [options.onState] : [];
    this.#backoff = new Backoff(options.reconnect, options.random);
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS + ANSWER_GRACE_MS } = options;
    this.#pending = new PendingRequests(this.#clock, requestTimeoutMs);
  }

  /** "connecting" before the first use, too. */
  get state(): ConnectionState {
    return this.#state;
  }

  watch(listener: (state: ConnectionState) => void): () => void {
    const entry = (state: ConnectionState): void => listener(state);
    this.#watchers = [...this.#watchers, entry];
    return () => {
      this.#watchers = this.#watchers.filter((other) => other !== entry);
    };
  }

  /** Settles when there is a connection; rejects when the client stops retrying. */
  connect(): Promise<void> {
    return createQuietPromise((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (this.#readyConnection) return resolve();
      this.#waiters.push({ resolve, reject });
      this.#start();
    });
  }

  /** Two requests cannot wait under one id. */
  request(type: string, payload: Payload, options: RequestOptions = {}): Promise<Payload> {
    const { stream, signal, id = this.#nextId(), timeoutMs } = options;
    return createQuietPromise((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (signal?.aborted) return reject(signal.reason);
      if (this.#pending.get(id)) {
        const what = `A request with the id "${id}" waits for its answer: use another id.`;
        return reject(invalidRequest(what));
      }
      const aborted = (): void => {
        this.#pending.take(id);
        reject(signal?.reason);
      };
      const settled = (): void => signal?.removeEventListener("abort", aborted);
      signal?.addEventListener("abort", aborted, { once: true });
      const failed = (error: ProtocolError): void => {
        settled();
        reject(error);
      };
      const pending = this.#pending.add(
        { id, type, payload, ...(stream !== undefined && { stream }) },
        {
          onDone: (answer) => {
            settled();
            resolve(answer);
          },
          onFailure: failed,
          onTimeout: () => failed(new ProtocolError("timeout", `"${type}" was not answered.`)),
        },
        timeoutMs === undefined ? {} : { timeoutMs },
      );
      if (this.#readyConnection) this.#send(pending, this.#readyConnection);
      else this.#start();
    });
  }

  /**
   * A stream has one listener: a second one is refused with `stream_exists`. On the current
   * connection the listener gets frames as they arrive; `resume` is called on each one after it,
   * and on the first if there is none yet.
   */
  listen(stream: string, listener: StreamListener, last = 0): () => void {
    if (this.#end) throw this.#end;
    if (this.#subscriptions.has(stream)) {
      throw new ProtocolError("stream_exists", `There is a listener on stream "${stream}".`);
    }
    const forget = (): void => {
      if (this.#subscriptions.get(stream) !== followed) return;
      this.#subscriptions.delete(stream);
      this.#connection?.forget(stream);
    };
    const followed: StreamSubscription = new StreamSubscription({
      listener,
      last,
      sendResume: (request) => this.#sendResume(stream, request, followed),
      onLost: forget,
      report: (error, where) => this.#report(error, `"${where}" of a stream`),
    });
    this.#subscriptions.set(stream, followed);
    this.#start();
    return () => {
      followed.stop();
      forget();
    };
  }

  skipTo(stream: string, last: number): void {
    this.#subscriptions.get(stream)?.skipTo(last);
  }

  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  async #leave(): Promise<void> {
    if (this.#end) return;
    const link = this.#connection;
    const error = new ProtocolError("internal_error", "The client was closed.");
    this.#finish(error, { type: "closed" });
    await link?.close(error);
  }

  #start(): void {
    if (!this.#connection && !this.#stopWaiting && !this.#end) this.#open();
  }

  #open(): void {
    const { client, connect, pingMs = PING_MS } = this.#options;
    this.#stopWaiting = undefined;
    const link: ClientConnection = new ClientConnection({
      connect,
      client,
      clock: this.#clock,
      pingMs,
      handler: {
        onReady: (server, limits) => this.#onReady(link, server, limits),
        onAnswer: (frame) => this.#settle(frame),
        onEvent: (frame) => this.#subscriptions.get(frame.stream ?? "")?.take(frame),
        onEnd: (error) => this.#disconnect(link, error),
        onError: (error, where) => this.#report(error, where),
      },
    });
    this.#connection = link;
    this.#setState({ type: "connecting" });
  }

  #onReady(link: ClientConnection, server: Payload, limits: Limits): void {
    if (this.#connection !== link) return;
    this.#readyAt = this.#clock.now();
    if (this.#options.requestTimeoutMs === undefined) {
      this.#pending.timeoutMs = limits.requestTimeoutMs + ANSWER_GRACE_MS;
    }
    for (const followed of [...this.#subscriptions.values()]) followed.onConnect();
    if (this.#connection !== link) return;
    // Requests that listeners sent by now go behind those that resume their streams.
    this.#readyConnection = link;
    for (const pending of this.#pending.listUnsent()) this.#send(pending, link);
    // It may break with any frame.
    if (this.#readyConnection !== link) return;
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
    this.#setState({ type: "ready", server, limits });
  }

  #send(pending: PendingRequest, link: ClientConnection): void {
    if (this.#connection !== link) return;
    const { id } = pending.request;
    try {
      const numbering = link.ask(pending.request);
      if (this.#connection === link) this.#pending.markSent(id, numbering);
    } catch (error) {
      this.#pending.take(id)?.onFailure(toProtocolError(error));
    }
  }

  #settle(frame: Envelope): void {
    const { type, re = "", payload } = frame;
    if (type === "ack") return this.#pending.take(re)?.onDone(payload);
    const pending = this.#pending.get(re);
    const error = readError(frame);
    if (!pending || this.#sendRenumbered(pending, error)) return;
    this.#pending.take(re)?.onFailure(error);
  }

  /**
   * A number that was refused changes nothing at the server, so the request is sent again
   * with the one that is expected. It was off where the server did not count a request that
   * it refused, or forgot a stream.
   */
  #sendRenumbered(pending: PendingRequest, { code, details }: ProtocolError): boolean {
    const { stream } = pending.request;
    const { expected } = details;
    if (code !== "invalid_sequence" || stream === undefined || !this.#connection) return false;
    if (typeof expected !== "number" || pending.numbering === undefined) return false;
    if (pending.renumbered++ >= MAX_RENUMBERINGS) return false;
    this.#connection.renumber(stream, pending.numbering, expected);
    this.#send(pending, this.#connection);
    return true;
  }

  #sendResume(
    stream: string,
    { type, payload }: Pick<OutgoingRequest, "type" | "payload">,
    followed: StreamSubscription,
  ): void {
    const link = this.#connection;
    if (!link) return;
    const pending = this.#pending.add(
      { id: this.#nextId(), type, payload, stream },
      {
        onDone: () => followed.onResumed(),
        onFailure: (error) => followed.end(error),
        // A server answers every request; one that does not is gone.
        onTimeout: () => link.drop(new ProtocolError("timeout", `"${type}" was not answered.`)),
      },
      { isOfConnection: true },
    );
    this.#send(pending, link);
  }

  #disconnect(link: ClientConnection, error: Error): void {
    if (this.#connection !== link) return;
    const livedMs = this.#readyAt === undefined ? undefined : this.#clock.now() - this.#readyAt;
    this.#connection = this.#readyConnection = this.#readyAt = undefined;
    this.#pending.disconnect();
    if (isFinal(error)) return this.#finish(error, { type: "closed", error });
    const next = this.#backoff.next(livedMs);
    if (!next) {
      const what = `The server cannot be reached: ${errorMessage(error)}`;
      const end = new ProtocolError("timeout", what, { cause: error });
      return this.#finish(end, { type: "closed", error: end });
    }
    this.#stopWaiting = this.#clock.after(next.delayMs, () => this.#open());
    this.#setState({ type: "waiting", ...next, error });
  }

  #finish(error: ProtocolError, state: ConnectionState): void {
    this.#end = error;
    this.#stopWaiting?.();
    this.#connection = this.#readyConnection = this.#stopWaiting = undefined;
    this.#setState(state);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    for (const pending of this.#pending.takeAll()) {
      if (!pending.isOfConnection) pending.onFailure(error);
    }
    for (const followed of [...this.#subscriptions.values()]) followed.end(error);
  }

  #setState(state: ConnectionState): void {
    this.#state = state;
    for (const watcher of this.#watchers) {
      try {
        watcher(state);
      } catch (error) {
        this.#report(error, "onState");
      }
    }
  }

  #report(error: unknown, where: string): void {
    try {
      this.#options.onError?.(error, where);
    } catch {
      // The handler of errors failed itself: there is no other to report to.
    }
  }

  #nextId(): string {
    return `${this.#idPrefix}${++this.#made}`;
  }
}

/** A promise that callers may ignore: its rejection does not end the process. */
function createQuietPromise<T>(
  run: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
): Promise<T> {
  const promise = new Promise<T>(run);
  promise.catch(() => {});
  return promise;
}

function isFinal(error: Error): error is ProtocolError {
  if (!(error instanceof ProtocolError)) return false;
  return error.code === "version_mismatch" || error.code === "unauthorized";
}

function toProtocolError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return new ProtocolError("internal_error", errorMessage(error), { cause: error });
}
