import {
  AssistantMessageEventStream,
  type Clock,
  type Context,
  type Model,
  type ProtocolClient,
  redact,
  type StreamOptions,
  systemClock,
} from "@gyre/ai";
import { SseDecoder } from "@gyre/ai/stream";
import { Backoff, RECONNECT_MAX_MS } from "../client/backoff.ts";
import { MessageAssembler } from "../messages/message-assembler.ts";
import {
  abortedError,
  brokenConnectionError,
  explainResponse,
  isTransient,
  parseEventData,
  ProxyError,
  type ProxyResponse,
  silenceError,
  toError,
  toProxyError,
  tryParseEventData,
  unreachableError,
  unwritableError,
} from "./proxy-failure.ts";
import { toRequestPayload } from "./request-payloads.ts";

/** A stream is resumed this many times without a new event in between. */
export const MAX_RESUMES = 5;
/** A server sends something every 15 s. Without a byte for so long the connection is dead. */
export const SILENCE_MS = 60_000;
/** The timeout of the request that cancels a stream. */
const CANCEL_MS = 10_000;
/** How long the client waits for the end of a response after its last event. */
const DRAIN_MS = 500;
/** How much of a body that is not a stream of events is read for the error, in characters. */
const MAX_ERROR_BODY_CHARS = 65_536;
const EVENT_STREAM = "text/event-stream";

/** The part of `fetch` that the proxy client uses; the global one fits. */
export type ProxyFetch = (url: string, init: ProxyRequest) => Promise<ProxyResponse>;

/** The second argument of a `ProxyFetch`. */
export interface ProxyRequest {
  method: "POST" | "GET" | "DELETE";
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  redirect: "manual";
}

type ProxyCall = Omit<ProxyRequest, "redirect">;

/** Where the server is that holds the keys. */
export interface ProxyOptions {
  /** The URL before `/api/stream`; in a browser it may be relative, or empty for the page's own server. */
  url: string;
  /** Sent as `Authorization: Bearer`. */
  token: string;
  /** Default: the global `fetch`. */
  fetch?: ProxyFetch;
}

/** The options of one request, and where the server is. */
export type StreamProxyOptions = StreamOptions & ProxyOptions;

/**
 * Asks a model through a server that holds the keys. The stream is like a provider's: an error
 * arrives as an `error` event, with the partial message. A connection that breaks is resumed
 * after its last event, so that no event is lost or doubled. Of the options, `apiKey`, `headers`
 * and functions are not sent; of the model only its provider and id are.
 */
export function streamProxy(
  model: Model,
  context: Context,
  options: StreamProxyOptions,
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  void new Exchange(stream, model, context, options).run();
  return stream;
}

/** A client for the loop whose models are asked through a server. */
export function createProxyClient(options: ProxyOptions): ProtocolClient {
  return {
    stream: (model, context, asked) => streamProxy(model, context, { ...asked, ...options }),
  };
}

type Body = ReadableStreamDefaultReader<Uint8Array>;

/** One request, and its response over as many connections as it takes. */
class Exchange {
  readonly #stream: AssistantMessageEventStream;
  readonly #message: MessageAssembler;
  readonly #model: Model;
  readonly #context: Context;
  readonly #options: StreamProxyOptions;
  readonly #clock: Clock;
  #backoff = new Backoff({ maxAttempts: MAX_RESUMES });
  /** The server's name for the stream, after its answer. */
  #id: string | undefined;
  #connection = new AbortController();
  #isSilent = false;
  #stopWatch = (): void => {};
  #wake = (): void => {};

  constructor(
    stream: AssistantMessageEventStream,
    model: Model,
    context: Context,
    options: StreamProxyOptions,
  ) {
    this.#stream = stream;
    this.#model = model;
    this.#context = context;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#message = new MessageAssembler(stream, model, () => this.#clock.now());
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const abort = (): void => this.#fail(abortedError());
    try {
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
      let response = await this.#ask();
      while (response) {
        const cause = await this.#read(response);
        if (this.#stream.closed) return;
        response = await this.#resume(cause);
      }
    } catch (error) {
      this.#fail(toProxyError(error, this.#options.url));
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#stopWatch();
    }
  }

  /** Asks the model. Undefined if the request was aborted meanwhile. */
  async #ask(): Promise<ProxyResponse | undefined> {
    const { url } = this.#options;
    const body = this.#encodeRequest();
    const headers = { "content-type": "application/json", accept: EVENT_STREAM };
    const asked = this.#send("api/stream", { method: "POST", headers, body });
    const response = await asked.catch((error: unknown) => {
      throw this.#isSilent ? silenceError(url, SILENCE_MS) : unreachableError(url, error);
    });
    this.#id = response.headers.get("gyre-stream") ?? undefined;
    if (this.#stream.closed) {
      // The name of the stream to cancel is known only now.
      this.#cancel();
      return undefined;
    }
    await this.#assertStream(response);
    return response;
  }

  #encodeRequest(): string {
    try {
      return JSON.stringify(toRequestPayload(this.#model, this.#context, this.#options));
    } catch (error) {
      throw unwritableError(error);
    }
  }

  /** Asks for the missing events until the server answers with them or refuses. */
  async #resume(first: Error): Promise<ProxyResponse | undefined> {
    let cause = first;
    const id = this.#id;
    const headers = { "last-event-id": String(this.#message.last), accept: EVENT_STREAM };
    while (id !== undefined) {
      const next = this.#backoff.next();
      if (!next) break;
      const asked = cause instanceof ProxyError ? (cause.failure.retryAfterMs ?? 0) : 0;
      await this.#wait(Math.max(next.delayMs, Math.min(asked, RECONNECT_MAX_MS)));
      if (this.#stream.closed) return undefined;
      try {
        const path = `api/streams/${encodeURIComponent(id)}`;
        const response = await this.#send(path, { method: "GET", headers });
        await this.#assertStream(response);
        return response;
      } catch (error) {
        if (this.#stream.closed) return undefined;
        if (error instanceof ProxyError && !isTransient(error)) throw error;
        cause = toError(error);
      }
    }
    throw brokenConnectionError(this.#options.url, cause);
  }

  /** Reads to the last event, or returns the error that stopped it. Throws where an event is invalid. */
  async #read(response: ProxyResponse): Promise<Error> {
    const body = response.body?.getReader();
    if (!body) return new Error("the response has no body");
    const before = this.#message.last;
    let isWhole = true;
    const decoder = new SseDecoder((data, event) => {
      if (this.#stream.closed || !isWhole || event === undefined) return;
      isWhole = this.#message.take(event, parseEventData(data));
      if (this.#message.last > before) this.#backoff = new Backoff({ maxAttempts: MAX_RESUMES });
    });
    let cause = new Error("the response ended before its last event");
    for (;;) {
      const piece = await body.read().catch(toError);
      if (piece instanceof Error) {
        cause = this.#isSilent ? silenceError(this.#options.url, SILENCE_MS) : piece;
        break;
      }
      if (piece.done) break;
      this.#watch();
      decoder.feed(piece.value);
      if (this.#stream.closed) void this.#drain(body);
      if (this.#stream.closed) return cause;
      if (isWhole) continue;
      this.#connection.abort();
      return new Error("an event is missing");
    }
    const left = decoder.end();
    // A JSON object that was cut off does not parse: one that parses is whole, also without a line end.
    const data = left && tryParseEventData(left.data);
    if (left?.event !== undefined && data && isWhole) this.#message.take(left.event, data);
    return cause;
  }

  /** Throws if a response is not a stream of events. */
  async #assertStream(response: ProxyResponse): Promise<void> {
    const type = response.headers.get("content-type") ?? "";
    if (response.ok && type.toLowerCase().startsWith(EVENT_STREAM)) return;
    const body = response.body?.getReader();
    const text = body ? await readText(body) : "";
    throw explainResponse(response, text, { url: this.#options.url, now: this.#clock.now() });
  }

  #send(path: string, request: Omit<ProxyCall, "signal">): Promise<ProxyResponse> {
    this.#connection = new AbortController();
    this.#isSilent = false;
    this.#watch();
    return this.#fetch(path, { ...request, signal: this.#connection.signal });
  }

  async #fetch(path: string, request: ProxyCall): Promise<ProxyResponse> {
    const { url, token, fetch = globalThis.fetch } = this.#options;
    return await fetch(joinUrl(url, path), {
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${token}` },
      // The token is for this server alone.
      redirect: "manual",
    });
  }

  /** Restarts the timer after which a silent connection counts as dead. */
  #watch(): void {
    this.#stopWatch();
    this.#stopWatch = this.#clock.after(SILENCE_MS, () => {
      this.#isSilent = true;
      this.#connection.abort();
    });
  }

  #wait(ms: number): Promise<void> {
    this.#stopWatch();
    return new Promise((resolve) => {
      const stop = this.#clock.after(ms, resolve);
      this.#wake = () => {
        stop();
        resolve();
      };
    });
  }

  #fail(error: ProxyError): void {
    if (this.#stream.closed) return;
    const { failure, message } = error;
    this.#message.fail(redact(message, [this.#options.token.trim()]), failure);
    if (this.#id !== undefined) this.#cancel();
    this.#wake();
  }

  /** Cancels the request to the service. If that fails, the server cancels it after its own timeout. */
  #cancel(): void {
    this.#connection.abort();
    const control = new AbortController();
    const stop = this.#clock.after(CANCEL_MS, () => control.abort());
    const path = `api/streams/${encodeURIComponent(this.#id ?? "")}`;
    this.#fetch(path, { method: "DELETE", headers: {}, signal: control.signal })
      .then((response) => response.body?.cancel())
      .catch(() => {})
      .finally(stop);
  }

  /** Reads the rest of a response and drops it, so that the connection can serve the next request. */
  async #drain(body: Body): Promise<void> {
    const connection = this.#connection;
    const stop = this.#clock.after(DRAIN_MS, () => connection.abort());
    try {
      for (let done = false; !done;) ({ done } = await body.read());
    } catch {
      // The connection is gone: there is nothing to keep.
    }
    stop();
  }
}

async function readText(body: Body): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < MAX_ERROR_BODY_CHARS) {
    // If the body breaks off, the part that arrived is used.
    const piece = await body.read().catch(() => undefined);
    if (!piece || piece.done) return text;
    text += decoder.decode(piece.value, { stream: true });
  }
  void body.cancel().catch(() => {});
  return text;
}

/** Adds a path to a URL, before its query. */
function joinUrl(url: string, path: string): string {
  const [base = "", query] = url.split(/\?(.*)/s, 2);
  return `${base.replace(/\/+$/, "")}/${path}${query === undefined ? "" : `?${query}`}`;
}
