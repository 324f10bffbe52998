import { isRecord } from "@gyre/ai";
import { SseDecoder } from "@gyre/ai/stream";
import { encode, type Envelope, measureUtf8 } from "../frames/envelope.ts";
import { Backpressure } from "./base/backpressure.ts";
import { Inbox } from "./base/inbox.ts";
import { MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../frames/limits.ts";
import { createStatusError, parseErrorBody, ProtocolError } from "../frames/protocol-error.ts";
import type { Transport, TransportHandler } from "./base/transport.ts";

/** Waiting frames are sent together, up to about this many bytes a request. */
const MAX_REQUEST_BYTES: number = 1024 * 1024;

/** How often a broken event stream is resumed without a new event. */
const MAX_FRUITLESS = 3;

export interface HttpTransportOptions {
  /** Sent as `Authorization: Bearer`. */
  token?: string;
  /** Default: the global one. */
  fetch?: typeof globalThis.fetch;
  /** Aborts opening; an open connection ignores it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
}

/**
 * A connection over plain HTTP: the client sends frames in requests, one after the other, and
 * receives server-sent events. `url` is the part before `/api`. An event stream that breaks off is
 * resumed; if that fails, the connection ends. Rejects with the `ProtocolError` of a server that
 * refuses.
 */
export async function openHttp(
  url: string,
  options: HttpTransportOptions = {},
): Promise<Transport> {
  const { signal } = options;
  signal?.throwIfAborted();
  const calls = new HttpCalls(url, options);
  const onAbort = (): void => calls.cut(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const answer: unknown = await (await calls.call("POST", "/api/connect")).json();
    const id = isRecord(answer) ? answer["connection"] : undefined;
    if (typeof id !== "string") throw new Error(`${url} is not a server of Gyre.`);
    const transport = new HttpTransport(calls, id, options.maxFrameBytes ?? MAX_FRAME_BYTES);
    await transport.open();
    return transport;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

interface HttpCall {
  headers?: Readonly<Record<string, string>>;
  body?: string;
  signal?: null;
}

/** Requests to one server, which can be aborted together. */
class HttpCalls {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof globalThis.fetch;
  readonly #controller = new AbortController();

  constructor(url: string, { token, fetch = globalThis.fetch }: HttpTransportOptions) {
    this.#url = url.replace(/\/+$/, "");
    this.#fetch = fetch;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  cut(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** Rejects where the status is an error. `signal` is null for a request that `cut` does not abort. */
  async call(
    method: string,
    path: string,
    { headers = {}, ...init }: HttpCall = {},
  ): Promise<Response> {
    // Called without an object: the `fetch` of browsers accepts no foreign `this`.
    const fetch = this.#fetch;
    const response = await fetch(this.#url + path, {
      signal: this.#controller.signal,
      ...init,
      method,
      headers: { ...this.#headers, ...headers },
    });
    if (!response.ok) throw await readRefusal(response);
    return response;
  }
}

class HttpTransport implements Transport {
  readonly #calls: HttpCalls;
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #inbox = new Inbox();
  /** Lines for the next request. */
  #waiting: string[] = [];
  #waitingBytes = 0;
  #posting: Promise<void> | undefined;
  readonly #backpressure = new Backpressure();
  #isClosing = false;
  /** How many events arrived; the server counts them too. */
  #seen = 0;

  constructor(calls: HttpCalls, id: string, maxBytes: number) {
    this.#calls = calls;
    this.#path = `/api/connections/${encodeURIComponent(id)}`;
    this.#maxBytes = maxBytes;
  }

  /** Settles when the event stream is open. */
  async open(): Promise<void> {
    const body = await this.#openEvents();
    void this.#listen(body);
  }

  send(envelope: Envelope): void | Promise<void> {
    const line = `${encode(envelope, this.#maxBytes)}\n`;
    if (this.#isClosing || this.#inbox.isClosed) return undefined;
    this.#waiting.push(line);
    this.#waitingBytes += measureUtf8(line);
    this.#posting ??= this.#post();
    if (this.#waitingBytes <= MAX_BUFFERED_BYTES) return undefined;
    return this.#backpressure.wait();
  }

  receive(handler: TransportHandler): void {
    this.#inbox.open(handler);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#posting;
    this.#end();
  }

  /** Sends waiting lines, one request after the other: parallel ones could overtake each other. */
  async #post(): Promise<void> {
    // Frames of this turn are sent together.
    await Promise.resolve();
    while (this.#waiting.length > 0 && !this.#inbox.isClosed) {
      const body = this.#takeBody();
      try {
        const headers = { "content-type": "application/x-ndjson" };
        await this.#calls.call("POST", `${this.#path}/frames`, { body, headers });
      } catch (error) {
        // The server may have read a part of it, so it is not sent again.
        this.#end(toError(error));
      }
      if (this.#waitingBytes <= MAX_BUFFERED_BYTES) this.#backpressure.release();
    }
    this.#posting = undefined;
  }

  #takeBody(): string {
    let count = 0;
    let bytes = 0;
    for (const line of this.#waiting) {
      const length = measureUtf8(line);
      if (count > 0 && bytes + length > MAX_REQUEST_BYTES) break;
      bytes += length;
      count++;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count).join("");
  }

  async #openEvents(): Promise<ReadableStream<Uint8Array>> {
    const headers = { accept: "text/event-stream", "last-event-id": String(this.#seen) };
    const { body } = await this.#calls.call("GET", `${this.#path}/events`, { headers });
    if (!body) throw new Error("The server sent no events.");
    return body;
  }

  /** Reads one event stream after the other, until none brings new events. */
  async #listen(first: ReadableStream<Uint8Array>): Promise<void> {
    let body: ReadableStream<Uint8Array> | undefined = first;
    let fruitless = 0;
    while (!this.#inbox.isClosed) {
      const seen = this.#seen;
      const error = await this.#read(body);
      body = undefined;
      fruitless = this.#seen > seen ? 0 : fruitless + 1;
      // A server that refuses with a code will refuse again.
      if (error instanceof ProtocolError || fruitless > MAX_FRUITLESS) return this.#end(error);
    }
  }

  /** Reads one event stream to its end, and returns the error that ended it. Opens it if needed. */
  async #read(given: ReadableStream<Uint8Array> | undefined): Promise<Error> {
    const decoder = new SseDecoder((data, event) => {
      if (event === "close") return this.#end();
      this.#seen++;
      this.#inbox.read(data, this.#maxBytes);
    });
    try {
      const reader = (given ?? (await this.#openEvents())).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return new Error("The event stream broke off.");
        decoder.feed(value);
      }
    } catch (error) {
      return toError(error);
    }
  }

  #end(error?: Error): void {
    if (this.#inbox.isClosed) return;
    this.#inbox.onClose(error);
    this.#waiting = [];
    this.#backpressure.release();
    this.#calls.cut();
    void this.#leave();
  }

  async #leave(): Promise<void> {
    try {
      await this.#calls.call("DELETE", this.#path, { signal: null });
    } catch {
      // The server closes the connection by itself, later.
    }
  }
}

async function readRefusal(response: Response): Promise<Error> {
  const { status } = response;
  try {
    return parseErrorBody(await response.json()) ?? createStatusError(status);
  } catch (cause) {
    return createStatusError(status, cause);
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
