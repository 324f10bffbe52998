import { type Clock, systemClock } from "@gyre/ai";
import { Backoff, type ReconnectOptions } from "./backoff.ts";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { FollowedStream } from "./stream-subscription.ts";
import { type Limits, REQUEST_TIMEOUT_MS } from "../frames/limits.ts";
import { type PendingRequest, PendingRequests, type WireRequest } from "./pending-requests.ts";
import { messageOf, ProtocolError } from "../frames/protocol-error.ts";
import { errorIn, WireLink } from "./client-connection.ts";
import type { Connect, RequestOptions, StreamListener, WirePeer, WireState } from "./client-api.ts";

/** A connection on which nothing is heard for so long is asked for a sign of life. */
export const PING_MS = 30_000;
/** How long after the server's own time-out an answer may still come. */
export const ANSWER_GRACE_MS = 5_000;
/** A request whose number is refused more often than this on one connection fails. */
const MAX_RENUMBERINGS = 3;
const ID_BYTES = 12;

export interface WireClientOptions {
  connect: Connect;
  /** Told to the server in `hello`. */
  client?: { name: string; version: string };
  clock?: Clock;
  /** From 0 to 1, for the delays. Default `Math.random`. */
  random?: () => number;
  reconnect?: ReconnectOptions;
  /**
   * A request that is not answered by then is rejected with `timeout`. Time without a
   * connection does not count. Default: the server's own time-out, and a little more.
   */
  requestTimeoutMs?: number;
  /** Default `PING_MS`. */
  pingMs?: number;
  onState?: (state: WireState) => void;
  /** Trouble that no promise tells of. */
  onError?: (error: unknown, where: string) => void;
}

interface Waiter {
  resolve(): void;
  reject(error: ProtocolError): void;
}

/**
 * The asking end of the wire. It connects when it is first used, and stays connected until
 * `close`: a connection that breaks is opened anew, streams are taken up, and then requests
 * that were not answered are sent again. A server that speaks no common version, or does not
 * let us in, is not tried again.
 */
export class WireClient implements WirePeer {
  readonly #options: WireClientOptions;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #pending: PendingRequests;
  readonly #streams = new Map<string, FollowedStream>();
  readonly #idPrefix = `c_${randomHex(ID_BYTES)}_`;
  #state: WireState = { type: "connecting" };
  #link: WireLink | undefined;
  /** The link, when requests may go out on it. */
  #readyLink: WireLink | undefined;
  #readyAt: number | undefined;
  #stopWaiting: (() => void) | undefined;
  #waiters: Waiter[] = [];
  #made = 0;
  /** Why nothing can be asked any more. */
  #end: ProtocolError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: WireClientOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#backoff = new Backoff(options.reconnect, options.random);
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS + ANSWER_GRACE_MS } = options;
    this.#pending = new PendingRequests(this.#clock, requestTimeoutMs);
  }

  /** "connecting" before the first use, too. */
  get state(): WireState {
    return this.#state;
  }

  /** Settles when there is a connection; rejects when there will be none any more. */
  connect(): Promise<void> {
    return quiet((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (this.#readyLink) return resolve();
      this.#waiters.push({ resolve, reject });
      this.#start();
    });
  }

  /** Two requests cannot wait under one id. */
  request(type: string, payload: Payload, options: RequestOptions = {}): Promise<Payload> {
    const { stream, signal, id = this.#nextId(), timeoutMs } = options;
    return quiet((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (signal?.aborted) return reject(signal.reason);
      if (this.#pending.get(id)) {
        const what = `A request with the id "${id}" waits for its answer: use another id.`;
        return reject(new ProtocolError("invalid_request", what));
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
          done: (answer) => {
            settled();
            resolve(answer);
          },
          failed,
          expired: () => failed(new ProtocolError("timeout", `"${type}" was not answered.`)),
        },
        timeoutMs === undefined ? {} : { timeoutMs },
      );
      if (this.#readyLink) this.#send(pending, this.#readyLink);
      else this.#start();
    });
  }

  /**
   * A stream has one listener: a second one is refused with `stream_exists`. On the present
   * connection frames are taken as they come; `resume` is asked for on each one after it,
   * and where there is none yet on the first.
   */
  listen(stream: string, listener: StreamListener, last = 0): () => void {
    if (this.#end) throw this.#end;
    if (this.#streams.has(stream)) {
      throw new ProtocolError("stream_exists", `There is a listener on stream "${stream}".`);
    }
    const forget = (): void => {
      if (this.#streams.get(stream) !== followed) return;
      this.#streams.delete(stream);
      this.#link?.forget(stream);
    };
    const followed: FollowedStream = new FollowedStream({
      listener,
      last,
      ask: (request) => this.#takeUp(stream, request, followed),
      onLost: forget,
      report: (error, where) => this.#report(error, `"${where}" of a stream`),
    });
    this.#streams.set(stream, followed);
    this.#start();
    return () => {
      followed.stop();
      forget();
    };
  }

  skipTo(stream: string, last: number): void {
    this.#streams.get(stream)?.skipTo(last);
  }

  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  async #leave(): Promise<void> {
    if (this.#end) return;
    const link = this.#link;
    const error = new ProtocolError("internal_error", "The client was closed.");
    this.#finish(error, { type: "closed" });
    await link?.close(error);
  }

  #start(): void {
    if (!this.#link && !this.#stopWaiting && !this.#end) this.#open();
  }

  #open(): void {
    const { client, connect, pingMs = PING_MS } = this.#options;
    this.#stopWaiting = undefined;
    const link: WireLink = new WireLink({
      connect,
      client,
      clock: this.#clock,
      pingMs,
      handler: {
        ready: (server, limits) => this.#beReady(link, server, limits),
        answer: (frame) => this.#settle(frame),
        event: (frame) => this.#streams.get(frame.stream ?? "")?.take(frame),
        ended: (error) => this.#disconnect(link, error),
        trouble: (error, where) => this.#report(error, where),
      },
    });
    this.#link = link;
    this.#tell({ type: "connecting" });
  }

  #beReady(link: WireLink, server: Payload, limits: Limits): void {
    if (this.#link !== link) return;
    this.#readyAt = this.#clock.now();
    if (this.#options.requestTimeoutMs === undefined) {
      this.#pending.timeoutMs = limits.requestTimeoutMs + ANSWER_GRACE_MS;
    }
    for (const followed of [...this.#streams.values()]) followed.takeUp();
    if (this.#link !== link) return;
    // What listeners asked for by now goes behind what takes their streams up.
    this.#readyLink = link;
    for (const pending of this.#pending.unsent()) this.#send(pending, link);
    // It may break with any frame.
    if (this.#readyLink !== link) return;
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
    this.#tell({ type: "ready", server, limits });
  }

  #send(pending: PendingRequest, link: WireLink): void {
    if (this.#link !== link) return;
    const { id } = pending.request;
    try {
      const numbering = link.ask(pending.request);
      if (this.#link === link) this.#pending.sent(id, numbering);
    } catch (error) {
      this.#pending.take(id)?.failed(asProtocolError(error));
    }
  }

  #settle(frame: Envelope): void {
    const { type, re = "", payload } = frame;
    if (type === "ack") return this.#pending.take(re)?.done(payload);
    const pending = this.#pending.get(re);
    const error = errorIn(frame);
    if (!pending || this.#sendRenumbered(pending, error)) return;
    this.#pending.take(re)?.failed(error);
  }

  /**
   * A number that was refused changes nothing at the server, so the request is sent again
   * with the one that is expected. It was off where the server did not count a request that
   * it refused, or forgot a stream.
   */
  #sendRenumbered(pending: PendingRequest, { code, details }: ProtocolError): boolean {
    const { stream } = pending.request;
    const { expected } = details;
    if (code !== "invalid_sequence" || stream === undefined || !this.#link) return false;
    if (typeof expected !== "number" || pending.numbering === undefined) return false;
    if (pending.renumbered++ >= MAX_RENUMBERINGS) return false;
    this.#link.renumber(stream, pending.numbering, expected);
    this.#send(pending, this.#link);
    return true;
  }

  #takeUp(
    stream: string,
    { type, payload }: Pick<WireRequest, "type" | "payload">,
    followed: FollowedStream,
  ): void {
    const link = this.#link;
    if (!link) return;
    const pending = this.#pending.add(
      { id: this.#nextId(), type, payload, stream },
      {
        done: () => followed.resumed(),
        failed: (error) => followed.lose(error),
        // Every request is answered; a server that does not is not there any more.
        expired: () => link.drop(new ProtocolError("timeout", `"${type}" was not answered.`)),
      },
      { isOfConnection: true },
    );
    this.#send(pending, link);
  }

  #disconnect(link: WireLink, error: Error): void {
    if (this.#link !== link) return;
    const livedMs = this.#readyAt === undefined ? undefined : this.#clock.now() - this.#readyAt;
    this.#link = this.#readyLink = this.#readyAt = undefined;
    this.#pending.disconnect();
    if (isFinal(error)) return this.#finish(error, { type: "closed", error });
    const next = this.#backoff.next(livedMs);
    if (!next) {
      const what = `The server cannot be reached: ${messageOf(error)}`;
      const end = new ProtocolError("timeout", what, { cause: error });
      return this.#finish(end, { type: "closed", error: end });
    }
    this.#stopWaiting = this.#clock.after(next.delayMs, () => this.#open());
    this.#tell({ type: "waiting", ...next, error });
  }

  #finish(error: ProtocolError, state: WireState): void {
    this.#end = error;
    this.#stopWaiting?.();
    this.#link = this.#readyLink = this.#stopWaiting = undefined;
    this.#tell(state);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    for (const pending of this.#pending.takeAll()) {
      if (!pending.isOfConnection) pending.failed(error);
    }
    for (const followed of [...this.#streams.values()]) followed.lose(error);
  }

  #tell(state: WireState): void {
    this.#state = state;
    try {
      this.#options.onState?.(state);
    } catch (error) {
      this.#report(error, "onState");
    }
  }

  #report(error: unknown, where: string): void {
    try {
      this.#options.onError?.(error, where);
    } catch {
      // There is nobody left to tell.
    }
  }

  #nextId(): string {
    return `${this.#idPrefix}${++this.#made}`;
  }
}

/** A promise that nobody has to wait for: what it rejects with is no trouble of the process. */
function quiet<T>(
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

function asProtocolError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return new ProtocolError("internal_error", messageOf(error), { cause: error });
}

function randomHex(bytes: number): string {
  const random = globalThis.crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
