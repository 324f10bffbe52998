import type { Clock } from "../../common/clock.ts";
import { toRecord } from "../../common/records.ts";
import { MAX_EVENT_CHARS, SseDecoder } from "../../stream/sse.ts";
import { ProviderError } from "../errors/provider-error.ts";
import type { Fetch, FetchedResponse, FetchRequest } from "../http/fetch.ts";
import { parseJsonOr } from "../http/json.ts";

/** How often in a row a response is asked for again without anything new. */
const MAX_ATTEMPTS = 8;
/** After so many of them the response is polled. */
const MAX_STREAMS = 3;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 16_000;
/** Between two looks at a response that is not finished. */
export const POLL_MS = 2_000;
/** A connection that is silent for so long counts as cut. */
export const SILENCE_MS = 60_000;
const CANCEL_TIMEOUT_MS = 5_000;

const ENDS = ["completed", "incomplete", "failed", "cancelled"];
const ENDED: ReadonlySet<unknown> = new Set(ENDS);
const LAST_EVENTS = new Set([
  "error",
  ...[...ENDS, "done", "error"].map((end) => `response.${end}`),
]);
/** Counts as a sign of life, and says nothing. */
const COMMENT = ": waiting\n\n";

/**
 * A `fetch` for responses that the service works on in the background. The body that it gives is one
 * stream, whatever happens to connections: after a cut it goes on behind the last event, or polls
 * the response until it is whole. Aborting the request cancels the response.
 */
export function fetchInBackground(fetch: Fetch, clock: Clock): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    const isStream = /event-stream/.test(response.headers.get("content-type") ?? "");
    if (init.method !== "POST" || !response.ok || !response.body || !isStream) return response;
    const { headers, ok, status } = response;
    const events = new BackgroundResponse(fetch, clock, url, init).follow(response);
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await events.return();
      },
    });
    return { headers, ok, status, body };
  };
}

class BackgroundResponse {
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  readonly #url: string;
  readonly #init: FetchRequest;
  readonly #encoder = new TextEncoder();
  #id: string | undefined;
  /** The number of the last event that was passed on. */
  #last = -1;
  /** Whether every event had a number. */
  #isNumbered = true;
  #ended = false;

  constructor(fetch: Fetch, clock: Clock, url: string, init: FetchRequest) {
    this.#fetch = fetch;
    this.#clock = clock;
    this.#url = url;
    this.#init = init;
  }

  async *follow(first: FetchedResponse): AsyncGenerator<Uint8Array, void, void> {
    const { signal } = this.#init;
    const cancel = (): void => void this.#cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      let next: FetchedResponse | undefined = first;
      let isPolled = false;
      for (let attempts = 0, streams = 0; ; attempts++) {
        if (attempts > MAX_ATTEMPTS) throw this.#createError("could not be resumed");
        const before = this.#last;
        if (next) yield* this.#relay(next);
        if (this.#ended) return;
        signal.throwIfAborted();
        // Nothing can be asked for, and nothing canceled, before the service has named it.
        if (this.#id === undefined) throw this.#createError("ended before it had an id");
        if (this.#last > before || isPolled) attempts = 0;
        if (this.#last > before) streams = 0;
        const delay = Math.min(FIRST_DELAY_MS * 2 ** attempts, MAX_DELAY_MS);
        await this.#wait(isPolled ? POLL_MS : delay);
        const canStream = this.#isNumbered && streams++ < MAX_STREAMS;
        next = canStream ? await this.#openStream() : undefined;
        isPolled = !canStream && (yield* this.#poll());
      }
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  /** Passes on the whole events of a connection that are new. Returns where it ends or breaks. */
  async *#relay({ body }: FetchedResponse): AsyncGenerator<Uint8Array, void, void> {
    if (!body) return;
    const reader = body.getReader();
    let events: string[] = [];
    const decoder = new SseDecoder((data) => events.push(data));
    let isNext = this.#id === undefined;
    if (!isNext) yield this.#encoder.encode(COMMENT);
    try {
      while (!this.#ended) {
        const stopWaiting = this.#clock.after(
          SILENCE_MS,
          () => void reader.cancel().catch(() => {}),
        );
        const { value } = await reader.read().catch(() => ({ value: undefined }));
        stopWaiting();
        if (!value) return;
        decoder.feed(value);
        let text = "";
        for (const data of events) {
          const { id, number, type } = readEvent(data);
          if (number !== undefined && number <= this.#last) continue;
          // Where some of it is missing: the response has all of it in the end.
          if (number === undefined || (!isNext && number !== this.#last + 1)) {
            this.#isNumbered = false;
            if (!isNext) return;
          }
          isNext = true;
          this.#id ??= id;
          this.#last = number ?? this.#last;
          this.#ended ||= LAST_EVENTS.has(type);
          text += `data: ${data.replaceAll("\n", "\ndata: ")}\n\n`;
        }
        events = [];
        yield this.#encoder.encode(text === "" ? COMMENT : text);
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  async #openStream(): Promise<FetchedResponse | undefined> {
    const response = await this.#get({ stream: "true", starting_after: String(this.#last) });
    if (response?.ok) return response;
    // It is not one that can be streamed again. A service that is busy may still do it.
    if (response && !isBusy(response)) this.#isNumbered = false;
    return undefined;
  }

  /** Looks at the response once. Yields its end where it has one; returns whether it was there. */
  async *#poll(): AsyncGenerator<Uint8Array, boolean, void> {
    const response = await this.#get({});
    if (!response) return false;
    if (!response.ok) {
      void response.body?.cancel().catch(() => {});
      if (isBusy(response)) return false;
      throw this.#createError(`is gone (status ${response.status})`);
    }
    const text = await this.#readWhole(response);
    const whole = toRecord(parseJsonOr(text, {}));
    if (ENDED.has(whole["status"])) {
      this.#ended = true;
      const event = { type: "response.done", response: whole };
      yield this.#encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
      return true;
    }
    if (typeof whole["status"] !== "string") return false;
    yield this.#encoder.encode(COMMENT);
    return true;
  }

  /** The body, or nothing where the connection breaks. Throws where it is longer than an event may be. */
  async #readWhole({ body }: FetchedResponse): Promise<string> {
    const reader = body?.getReader();
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    for (let chars = 0; reader;) {
      const read = await reader.read().catch(() => undefined);
      if (!read) return "";
      if (read.done) break;
      const piece = decoder.decode(read.value, { stream: true });
      pieces.push(piece);
      chars += piece.length;
      if (chars <= MAX_EVENT_CHARS) continue;
      void reader.cancel().catch(() => {});
      throw this.#createError(`is longer than ${MAX_EVENT_CHARS} characters`, false);
    }
    return pieces.join("") + decoder.decode();
  }

  /** Nothing where the connection failed. Throws where the request was aborted. */
  async #get(query: Readonly<Record<string, string>>): Promise<FetchedResponse | undefined> {
    const { headers, redirect, signal } = this.#init;
    try {
      return await this.#fetch(this.#locate("", query), {
        method: "GET",
        headers: withoutType(headers),
        redirect,
        signal,
      });
    } catch {
      // The next attempt may get through.
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #cancel(): Promise<void> {
    if (this.#ended || this.#id === undefined) return;
    this.#ended = true;
    const { headers, redirect } = this.#init;
    const timeout = new AbortController();
    const stopWaiting = this.#clock.after(CANCEL_TIMEOUT_MS, () => timeout.abort());
    try {
      const request = { method: "POST", headers, redirect, signal: timeout.signal, body: "{}" };
      const { body } = await this.#fetch(this.#locate("/cancel"), request);
      await body?.cancel();
    } catch {
      // The caller has gone: the response runs to its end at the service, and is not read.
    } finally {
      stopWaiting();
    }
  }

  #locate(path: string, query: Readonly<Record<string, string>> = {}): string {
    const url = new URL(this.#url);
    url.pathname += `/${encodeURIComponent(this.#id ?? "")}${path}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const { include } = toRecord(parseJsonOr(this.#init.body ?? "", {}));
    if (path === "" && Array.isArray(include)) {
      for (const one of include) url.searchParams.append("include[]", String(one));
    }
    return url.href;
  }

  #wait(ms: number): Promise<void> {
    const { signal } = this.#init;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        stop();
        reject(signal.reason as Error);
      };
      const stop = this.#clock.after(ms, () => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }

  #createError(what: string, retryable = true): ProviderError {
    const hint = retryable ? "Try again." : "Ask for less.";
    return new ProviderError(
      `The response ${this.#id ?? ""} in the background ${what}. ${hint}`,
      retryable ? { kind: "incomplete" } : { kind: "incomplete", retryable },
    );
  }
}

/** What an event says of itself and of the response. */
function readEvent(data: string): {
  id: string | undefined;
  number: number | undefined;
  type: string;
} {
  const { response, sequence_number: number, type } = toRecord(parseJsonOr(data, {}));
  const { id } = toRecord(response);
  return {
    id: typeof id === "string" ? id : undefined,
    number: typeof number === "number" ? number : undefined,
    type: String(type),
  };
}

function isBusy({ status }: FetchedResponse): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function withoutType(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "content-type"),
  );
}
