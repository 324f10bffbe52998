import { isRecord } from "@gyre/ai";
import { SseDecoder } from "@gyre/ai/stream";
import { encode, type Envelope, measureUtf8 } from "../frames/envelope.ts";
import { Inbox } from "./base/inbox.ts";
import { MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../frames/limits.ts";
import { isErrorCode, ProtocolError } from "../frames/protocol-error.ts";
import type { Transport, TransportHandler } from "./base/transport.ts";

/** Frames that wait go together, up to about so many bytes a request. */
const MAX_REQUEST_BYTES: number = 1024 * 1024;

/** A stream that broke off is asked for so often, as long as none brings an event. */
const MAX_FRUITLESS = 3;

export interface HttpTransportOptions {
  /** Travels as `Authorization: Bearer`. */
  token?: string;
  /** Default: the one that is there. */
  fetch?: typeof globalThis.fetch;
  /** Gives up opening; an open connection is not touched by it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
}

/**
 * A connection over plain HTTP: frames go in requests, one after the other, and come as
 * server-sent events. `url` is what stands before `/api`. An event stream that breaks off is
 * taken up where it was; where that brings nothing, the connection is over. Rejects with the
 * `ProtocolError` that the server tells when it refuses.
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
    if (typeof id !== "string") throw new Error(`What is at ${url} is not a server of Gyre.`);
    const transport = new HttpTransport(calls, id, options.maxFrameBytes ?? MAX_FRAME_BYTES);
    await transport.open();
    return transport;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Requests to one server, which can all be given up. */
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

  /** Rejects where the answer is not one of success. */
  call(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    return this.#call(method, path, { ...init, signal: this.#controller.signal });
  }

  /** One that goes out though all were given up. */
  farewell(method: string, path: string): Promise<Response> {
    return this.#call(method, path, {});
  }

  async #call(method: string, path: string, init: RequestInit): Promise<Response> {
    // Called without an object: a browser's wants none of ours.
    const fetch = this.#fetch;
    const headers = { ...this.#headers, ...(isRecord(init.headers) && toStrings(init.headers)) };
    const response = await fetch(this.#url + path, { ...init, method, headers });
    if (!response.ok) throw await readRefusal(response);
    return response;
  }
}

class HttpTransport implements Transport {
  readonly #calls: HttpCalls;
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #inbox = new Inbox();
  /** Lines that wait for their request. */
  #waiting: string[] = [];
  #waitingBytes = 0;
  #posting: Promise<void> | undefined;
  #lag: { promise: Promise<void>; settle: () => void } | undefined;
  #isClosing = false;
  /** Events that came, which the server has counted too. */
  #seen = 0;

  constructor(calls: HttpCalls, id: string, maxBytes: number) {
    this.#calls = calls;
    this.#path = `/api/connections/${encodeURIComponent(id)}`;
    this.#maxBytes = maxBytes;
  }

  /** Settles when the event stream is there. */
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
    if (!this.#lag) {
      let settle = (): void => {};
      const promise = new Promise<void>((resolve) => (settle = resolve));
      this.#lag = { promise, settle };
    }
    return this.#lag.promise;
  }

  receive(handler: TransportHandler): void {
    this.#inbox.open(handler);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#posting;
    this.#end();
  }

  /** Sends what waits, a request after the other: they could overtake each other. */
  async #post(): Promise<void> {
    // What is sent in this turn goes together.
    await Promise.resolve();
    while (this.#waiting.length > 0 && !this.#inbox.isClosed) {
      const body = this.#takeBody();
      try {
        const headers = { "content-type": "application/x-ndjson" };
        await this.#calls.call("POST", `${this.#path}/frames`, { body, headers });
      } catch (error) {
        // Nobody knows what of it arrived: it is not sent again here.
        this.#end(toError(error));
      }
      if (this.#waitingBytes <= MAX_BUFFERED_BYTES) this.#settle();
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

  /** Reads one stream of events after the other, until there is nothing to be had. */
  async #listen(first: ReadableStream<Uint8Array>): Promise<void> {
    let body: ReadableStream<Uint8Array> | undefined = first;
    let fruitless = 0;
    while (!this.#inbox.isClosed) {
      const seen = this.#seen;
      const trouble = await this.#read(body);
      body = undefined;
      fruitless = this.#seen > seen ? 0 : fruitless + 1;
      // A server that tells why does not change its mind.
      if (trouble instanceof ProtocolError || fruitless > MAX_FRUITLESS) return this.#end(trouble);
    }
  }

  /** Reads to the end of one stream, which is asked for if it is not there; gives what ended it. */
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
    this.#settle();
    this.#calls.cut();
    void this.#leave();
  }

  async #leave(): Promise<void> {
    try {
      await this.#calls.farewell("DELETE", this.#path);
    } catch {
      // The server finds out by itself, only later.
    }
  }

  #settle(): void {
    this.#lag?.settle();
    this.#lag = undefined;
  }
}

async function readRefusal(response: Response): Promise<Error> {
  const what = `The server answered with status ${response.status}.`;
  let body: unknown;
  try {
    body = await response.json();
  } catch (cause) {
    return new Error(what, { cause });
  }
  const error = isRecord(body) ? body["error"] : undefined;
  if (!isRecord(error) || !isErrorCode(error["code"])) return new Error(what);
  return new ProtocolError(error["code"], String(error["message"]));
}

function toStrings(record: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, String(value)]));
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
