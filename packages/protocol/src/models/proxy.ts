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
import { type FetchedResponse, joinUrl, parseObject, ProviderError } from "@gyre/ai/providers";
import { SseDecoder } from "@gyre/ai/stream";
import { Backoff, RECONNECT_MAX_MS } from "../client/backoff.ts";
import type { Payload } from "../frames/envelope.ts";
import { ArrivingMessage } from "../messages/arriving-message.ts";
import {
  abortedError,
  toError,
  brokenConnectionError,
  toProviderError,
  explainResponse,
  isTransient,
  silenceError,
  unreachableError,
  unwritableError,
} from "./proxy-failure.ts";
import { toRequestPayload } from "./request-payloads.ts";

/** A broken connection is taken up so often without a new event in between. */
export const MAX_RESUMES = 5;
/** A server sends something every 15 s. Without a byte for so long the connection is dead. */
export const SILENCE_MS = 60_000;
/** An abort is given so long to get through. */
const CANCEL_MS = 10_000;
/** The end of a response follows its last event; for so long it is waited for. */
const DRAIN_MS = 500;
/** Of a body that is no stream, so much is read to say what it was, in characters. */
const MAX_ERROR_BODY_CHARS = 65_536;
const EVENT_STREAM = "text/event-stream";

/** All that is asked of a `fetch`: the global one will do. */
export type ProxyFetch = (url: string, init: ProxyRequest) => Promise<FetchedResponse>;

/** What a `ProxyFetch` is given. */
export interface ProxyRequest {
  method: "POST" | "GET" | "DELETE";
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  redirect: "manual";
}

/** Where the server is that holds the keys. */
export interface ProxyOptions {
  /** What stands before `/api/stream`; in a browser it may be relative, or empty for the page's own server. */
  url: string;
  /** Sent as `Authorization: Bearer`. */
  token: string;
  /** Default: the global `fetch`. */
  fetch?: ProxyFetch;
}

/** What may be said about one request, and where the server is. */
export type StreamProxyOptions = StreamOptions & ProxyOptions;

/**
 * Asks a model through a server that holds the keys. The stream is like a provider's: what
 * goes wrong arrives as an `error` event, with what had come. A connection that breaks is
 * taken up where it was, so that nothing is lost or doubled. Of the options, `apiKey`,
 * `headers` and functions stay here; the model travels as its provider and id.
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
  readonly #message: ArrivingMessage;
  readonly #model: Model;
  readonly #context: Context;
  readonly #options: StreamProxyOptions;
  readonly #clock: Clock;
  #backoff = new Backoff({ maxAttempts: MAX_RESUMES });
  /** The stream's name with the server, once it has answered. */
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
    this.#message = new ArrivingMessage(stream, model, () => this.#clock.now());
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const abort = (): void => this.#fail(abortedError());
    try {
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
      let response = await this.#ask();
      while (response) {
        const trouble = await this.#read(response);
        if (this.#stream.closed) return;
        response = await this.#resume(trouble);
      }
    } catch (error) {
      this.#fail(toProviderError(error, this.#options.url));
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#stopWatch();
    }
  }

  /** Asks the model. Nothing where that was aborted meanwhile. */
  async #ask(): Promise<FetchedResponse | undefined> {
    const { url } = this.#options;
    const body = this.#encodeRequest();
    const headers = { "content-type": "application/json", accept: EVENT_STREAM };
    const response = await this.#send("POST", "api/stream", headers, body).catch(
      (error: unknown) => {
        throw this.#isSilent ? silenceError(url, SILENCE_MS) : unreachableError(url, error);
      },
    );
    this.#id = response.headers.get("gyre-stream") ?? undefined;
    if (this.#stream.closed) {
      // Only now is it known what there is to cancel.
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

  /** Asks for what is missing, until there is an answer that settles it. */
  async #resume(first: Error): Promise<FetchedResponse | undefined> {
    let trouble = first;
    const id = this.#id;
    const headers = { "last-event-id": String(this.#message.last), accept: EVENT_STREAM };
    while (id !== undefined) {
      const next = this.#backoff.next();
      if (!next) break;
      const asked = trouble instanceof ProviderError ? (trouble.retryAfterMs ?? 0) : 0;
      await this.#wait(Math.max(next.delayMs, Math.min(asked, RECONNECT_MAX_MS)));
      if (this.#stream.closed) return undefined;
      try {
        const path = `api/streams/${encodeURIComponent(id)}`;
        const response = await this.#send("GET", path, headers);
        await this.#assertStream(response);
        return response;
      } catch (error) {
        if (this.#stream.closed) return undefined;
        if (error instanceof ProviderError && !isTransient(error)) throw error;
        trouble = toError(error);
      }
    }
    throw brokenConnectionError(this.#options.url, trouble);
  }

  /** Reads to the last event, or gives why it could not. Throws where an event makes no sense. */
  async #read(response: FetchedResponse): Promise<Error> {
    const body = response.body?.getReader();
    if (!body) return new Error("the response has no body");
    const before = this.#message.last;
    let isWhole = true;
    const decoder = new SseDecoder((data, event) => {
      if (this.#stream.closed || !isWhole || event === undefined) return;
      isWhole = this.#message.take(event, parseObject(data));
      if (this.#message.last > before) this.#backoff = new Backoff({ maxAttempts: MAX_RESUMES });
    });
    let trouble = new Error("the response ended before its last event");
    for (;;) {
      const piece = await body.read().catch(toError);
      if (piece instanceof Error) {
        trouble = this.#isSilent ? silenceError(this.#options.url, SILENCE_MS) : piece;
        break;
      }
      if (piece.done) break;
      this.#watch();
      decoder.feed(piece.value);
      if (this.#stream.closed) void this.#drain(body);
      if (this.#stream.closed) return trouble;
      if (isWhole) continue;
      this.#connection.abort();
      return new Error("an event is missing");
    }
    const left = decoder.end();
    // A JSON object that was cut is none: one that can be read is whole, also without a line end.
    const data = left && tryParseObject(left.data);
    if (left?.event !== undefined && data && isWhole) this.#message.take(left.event, data);
    return trouble;
  }

  /** Throws what a response tells that is no stream of events. */
  async #assertStream(response: FetchedResponse): Promise<void> {
    const type = response.headers.get("content-type") ?? "";
    if (response.ok && type.toLowerCase().startsWith(EVENT_STREAM)) return;
    const body = response.body?.getReader();
    const text = body ? await readText(body) : "";
    throw explainResponse(response, text, { url: this.#options.url, now: this.#clock.now() });
  }

  #send(
    method: ProxyRequest["method"],
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<FetchedResponse> {
    this.#connection = new AbortController();
    this.#isSilent = false;
    this.#watch();
    return this.#fetch(method, path, this.#connection.signal, headers, body);
  }

  async #fetch(
    method: ProxyRequest["method"],
    path: string,
    signal: AbortSignal,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<FetchedResponse> {
    const { url, token, fetch = globalThis.fetch } = this.#options;
    return await fetch(joinUrl(url, path), {
      method,
      headers: { ...headers, authorization: `Bearer ${token}` },
      ...(body !== undefined && { body }),
      signal,
      // The token is for this server alone.
      redirect: "manual",
    });
  }

  /** From now on, silence means that the connection is dead. */
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

  #fail(error: ProviderError): void {
    if (this.#stream.closed) return;
    const { failure, message, retryable } = error;
    this.#message.fail(redact(message, [this.#options.token.trim()]), { ...failure, retryable });
    if (this.#id !== undefined) this.#cancel();
    this.#wake();
  }

  /** Ends the request to the service. Where that does not get through, the server does so in a while. */
  #cancel(): void {
    this.#connection.abort();
    const control = new AbortController();
    const stop = this.#clock.after(CANCEL_MS, () => control.abort());
    this.#fetch("DELETE", `api/streams/${encodeURIComponent(this.#id ?? "")}`, control.signal)
      .then((response) => response.body?.cancel())
      .catch(() => {})
      .finally(stop);
  }

  /** What follows the last event is read away, so that its connection can serve the next request. */
  async #drain(body: Body): Promise<void> {
    const connection = this.#connection;
    const stop = this.#clock.after(DRAIN_MS, () => connection.abort());
    try {
      for (let done = false; !done;) ({ done } = await body.read());
    } catch {
      // There is no connection to keep, then.
    }
    stop();
  }
}

async function readText(body: Body): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < MAX_ERROR_BODY_CHARS) {
    // The status says enough; what could be read of the body is used.
    const piece = await body.read().catch(() => undefined);
    if (!piece || piece.done) return text;
    text += decoder.decode(piece.value, { stream: true });
  }
  void body.cancel().catch(() => {});
  return text;
}

function tryParseObject(data: string): Payload | undefined {
  try {
    return parseObject(data);
  } catch {
    return undefined;
  }
}
