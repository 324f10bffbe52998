import { Accumulator } from "../../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../../stream/assistant-stream.ts";
import type { ServiceResponse, StreamOptions } from "../../client/client.ts";
import { type Clock, systemClock } from "../../common/clock.ts";
import { errorMessage } from "../../common/errors.ts";
import { isRecord } from "../../common/records.ts";
import { isRetryable } from "../../messages/failure.ts";
import type { Context, Failure, FailureKind, Model } from "../../messages/messages.ts";
import type { ApiProvider } from "../../client/registry.ts";
import { type Framing, FramingError, type OnPayload, SseDecoder } from "../../stream/sse.ts";
import { wellFormed } from "./transform-messages.ts";
import { type ServicePreset, serviceOf } from "../services/presets.ts";

/** Bytes that do not come for so long mean that the connection is dead. */
export const DEFAULT_IDLE_MS = 300_000;
/** Once the model has said that it is done, its last figures are waited for so long. */
export const AFTER_FINISH_MS = 2_000;
/** Of a body that is no stream, so much is read to say what it was, and for so long. */
const MAX_ERROR_BODY_CHARS = 262_144;
const ERROR_BODY_MS = 2_000;
const MAX_REDIRECTS = 3;
/** The end of a connection's message comes with the end of the response, or right after it. */
export const DRAIN_MS = 500;
const SHOWN_CHARS = 80;
/** A part of a key that is shorter is a name or a number rather than a secret. */
const MIN_KEY_PART_CHARS = 16;

/** One request, as a wire sees it. */
export interface WireJob {
  model: Model;
  context: Context;
  options: StreamOptions;
  service: ServicePreset;
  /** Without a slash at its end. */
  baseUrl: string;
  apiKey: string | undefined;
  clock: Clock;
}

/** One request as a wire writes it: where it goes, and what it says. */
export interface WireRequest {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON. */
  body: Record<string, unknown>;
  /** For services that want each request signed: the headers that do it. */
  sign?: (sent: {
    url: string;
    headers: Record<string, string>;
    body: string;
  }) => Promise<Record<string, string>>;
}

/**
 * Reads one response into the accumulator. It calls `out.done` when the service has
 * said that the response is whole; a `ProviderError` that it throws ends the
 * response as that trouble. What it does not know it counts and passes over.
 */
export interface WireReader {
  /** One payload, in the order they came. */
  read(data: string, event: string | undefined): void;
  /**
   * The body has ended, or nothing came for a while after `finished`. Either the
   * response is whole (`out.done`), or this throws.
   */
  end(): void;
  /** True once only figures can follow: the driver then waits for them just a little. */
  readonly finished?: boolean;
}

/**
 * One wire: how a request is written and a response is read in one format. All that
 * is the same for every format (keys, fetch, abort, deadlines, errors) is `createProvider`'s.
 */
export interface Wire {
  api: string;
  request(job: WireJob): WireRequest;
  reader(out: Accumulator, job: WireJob): WireReader;
  /** How bodies of this content type are cut into payloads. Default: SSE. */
  framing?(onPayload: OnPayload, contentType: string): Framing;
}

/** What is read of the headers of a response: a `Headers`, or less. */
export interface ResponseHeaders {
  get(name: string): string | null;
  forEach(take: (value: string, name: string) => void): void;
}

/** What is read of a response: a `Response`, or less. */
export interface FetchedResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly type?: string;
  readonly headers: ResponseHeaders;
  readonly body: ReadableStream<Uint8Array> | null;
}

/** All that is asked of a `fetch`: the global one will do, and so will a simpler one. */
export type Fetch = (url: string, init: FetchRequest) => Promise<FetchedResponse>;

/** What a `Fetch` is given. A redirect is for the caller to judge, since the key goes with it. */
export interface FetchRequest {
  method: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  redirect: "manual";
}

/** What is the same for all requests of a process. */
export interface ProviderConfig {
  /** Services of your own, and presets that you want otherwise; they go before ours. */
  services?: readonly ServicePreset[];
  /** Default: the global `fetch`. */
  fetch?: Fetch;
  /** The key for a service, asked for each request that brings none. Throws what to tell the user. */
  getApiKey?: (
    service: ServicePreset,
    signal: AbortSignal,
  ) => string | undefined | Promise<string | undefined>;
  /** Another address for a service, where the model names none. */
  getBaseUrl?: (service: ServicePreset) => string | undefined;
  /** Default 300,000: so long without a byte is a dead connection. 0: never. */
  idleTimeoutMs?: number;
}

/** A wire made ready to ask services. Whatever happens, the stream that it gives ends. */
export function createProvider(wire: Wire, config: ProviderConfig = {}): ApiProvider {
  return {
    api: wire.api,
    stream(model, context, options) {
      const stream = new AssistantMessageEventStream();
      void new Exchange(wire, config, stream, model, context, options).run();
      return stream;
    },
  };
}

/** One request and its response. */
class Exchange {
  readonly #wire: Wire;
  readonly #config: ProviderConfig;
  readonly #out: Accumulator;
  readonly #model: Model;
  readonly #context: Context;
  readonly #options: StreamOptions;
  readonly #service: ServicePreset;
  readonly #clock: Clock;
  readonly #control = new AbortController();
  readonly #undo: (() => void)[] = [];
  #apiKey: string | undefined;
  #url = "";
  #lastByteAt = 0;
  #began = false;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(
    wire: Wire,
    config: ProviderConfig,
    stream: AssistantMessageEventStream,
    model: Model,
    context: Context,
    options: StreamOptions,
  ) {
    this.#wire = wire;
    this.#config = config;
    this.#model = model;
    this.#context = context;
    this.#options = options;
    this.#service = serviceOf(model, config.services);
    this.#clock = options.clock ?? systemClock;
    this.#out = new Accumulator(stream, model, this.#clock.now());
  }

  async run(): Promise<void> {
    const { signal, timeoutMs } = this.#options;
    try {
      if (signal?.aborted) return this.#abort();
      if (signal) {
        const abort = (): void => this.#abort();
        signal.addEventListener("abort", abort, { once: true });
        this.#undo.push(() => signal.removeEventListener("abort", abort));
      }
      if (timeoutMs !== undefined && timeoutMs > 0) {
        this.#undo.push(this.#clock.after(timeoutMs, () => this.#timeout(timeoutMs)));
      }
      this.#watchSilence();
      const job = await this.#job();
      const response = job && (await this.#send(this.#wire.request(job)));
      if (response) await this.#read(response, job);
    } catch (error) {
      if (!this.#out.closed) this.#fail(await this.#told(error));
    } finally {
      this.#stop();
    }
  }

  async #job(): Promise<WireJob | undefined> {
    const { getApiKey, getBaseUrl } = this.#config;
    const service = this.#service;
    // What is empty is not set, for keys and addresses alike.
    const apiKey = this.#options.apiKey || (await getApiKey?.(service, this.#control.signal));
    if (this.#out.closed) return undefined;
    if (!apiKey && !service.keyless) throw missingKey(service);
    this.#apiKey = apiKey || undefined;
    const baseUrl = this.#model.baseUrl || getBaseUrl?.(service) || service.baseUrl;
    if (!baseUrl) throw missingUrl(service, this.#model);
    return {
      model: this.#model,
      context: this.#context,
      options: this.#options,
      service,
      baseUrl: baseUrl.trim().replace(/\/+$/, ""),
      apiKey: this.#apiKey,
      clock: this.#clock,
    };
  }

  async #send({
    url,
    headers: own,
    body,
    sign,
  }: WireRequest): Promise<FetchedResponse | undefined> {
    const { onPayload, onResponse, headers: extra } = this.#options;
    const payload = (await hooked("onPayload", async () => onPayload?.(body, this.#model))) ?? body;
    const text = toJson(payload, this.#service);
    const headers = {
      "content-type": "application/json",
      ...lowerCased(own),
      ...lowerCased(this.#service.headers),
      ...lowerCased(this.#model.headers),
      ...lowerCased(extra),
    };
    const { fetch = globalThis.fetch } = this.#config;
    let address = url;
    for (let redirects = 0; ; redirects++) {
      this.#url = address;
      const signed = sign ? await sign({ url: address, headers, body: text }) : headers;
      if (this.#out.closed) return undefined;
      const response = await fetch(address, {
        method: "POST",
        headers: signed,
        body: text,
        signal: this.#control.signal,
        // Followed by hand: else a key in a header of its own would go wherever the service says.
        redirect: "manual",
      });
      this.#lastByteAt = this.#clock.now();
      this.#reader = response.body?.getReader();
      // An answer that comes after the end is nobody's business any more.
      if (this.#out.closed) return undefined;
      if (onResponse) {
        const shown = await this.#shown(response);
        await hooked("onResponse", async () => onResponse(shown, this.#model));
      }
      if (this.#out.closed) return undefined;
      const next = redirectOf(response, address);
      if (next === undefined) return response;
      void this.#reader?.cancel().catch(() => {});
      if (redirects === MAX_REDIRECTS) throw tooManyRedirects(this.#service, address);
      address = next;
    }
  }

  /** A response as a hook may see it. */
  async #shown({ headers, status }: FetchedResponse): Promise<ServiceResponse> {
    const { redactHeaders } = await import("../../common/redact.ts");
    const redact = await this.#redactor();
    const shown = Object.entries(redactHeaders(headers));
    return {
      status,
      headers: Object.fromEntries(shown.map(([name, value]) => [name, redact(value)])),
      url: redact(this.#url),
    };
  }

  async #read(response: FetchedResponse, job: WireJob): Promise<void> {
    if (!response.ok) throw await this.#errorOf(response, await this.#text());
    const reader = this.#reader;
    if (!reader) throw this.#incomplete("has no body");
    const contentType = response.headers.get("content-type") ?? "";
    if (/^text\/html\b/i.test(contentType)) throw await this.#errorOf(response, await this.#text());
    const reading = this.#wire.reader(this.#out, job);
    let heard = 0;
    const onPayload: OnPayload = (data, event) => {
      if (this.#out.closed) return;
      heard++;
      this.#out.report.events++;
      reading.read(data, event);
    };
    const framing = this.#wire.framing?.(onPayload, contentType) ?? new SseDecoder(onPayload);
    let isStream = !(framing instanceof SseDecoder);
    const letGo = (): void => void reader.cancel().catch(() => {});
    let stopWaiting: (() => void) | undefined;
    this.#undo.push(() => stopWaiting?.());
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        // Whatever becomes of a connection on which all was said, all was said.
        if (reading.finished) return { done: true, value: undefined };
        throw error;
      });
      if (this.#out.closed) return;
      if (done || !value) break;
      this.#lastByteAt = this.#clock.now();
      if (!isStream) {
        const first = value.find(isVisible);
        if (isOpening(first)) throw await this.#errorOf(response, await this.#text(value));
        isStream = first !== undefined;
      }
      this.#began ||= value.length > 0;
      const before = heard;
      framing.feed(value);
      if (this.#out.closed) return;
      // Bytes that are no event (comments that keep a connection open) are not waited for.
      if (heard === before) continue;
      stopWaiting?.();
      stopWaiting = reading.finished ? this.#clock.after(AFTER_FINISH_MS, letGo) : undefined;
    }
    const left = framing.end();
    // What was never ended counts as evidence, not as an event: whatever it says, it cannot
    // make the response whole.
    if (left && !reading.finished) {
      this.#out.cutShort();
      try {
        reading.read(left.data, left.event);
      } catch {
        // Most often it is cut in the middle.
      }
      throw this.#incomplete("ended in the middle of an event");
    }
    reading.end();
    if (!this.#out.closed) throw this.#incomplete("ended early");
  }

  /** The body of what is no stream, up to a limit; `begun` was read of it before. */
  async #text(begun?: Uint8Array): Promise<string> {
    const reader = this.#reader;
    const decoder = new TextDecoder();
    let text = begun ? decoder.decode(begun, { stream: true }) : "";
    if (!reader) return text;
    const giveUp = (): void => void reader.cancel().catch(() => {});
    this.#undo.push(this.#clock.after(ERROR_BODY_MS, giveUp));
    try {
      while (text.length < MAX_ERROR_BODY_CHARS) {
        const { done, value } = await reader.read();
        if (done) break;
        text += decoder.decode(value, { stream: true });
      }
    } catch {
      // The status says enough; what could be read of the body is used.
    }
    return text;
  }

  async #errorOf(response: FetchedResponse, body: string): Promise<ProviderError> {
    const redirect = refusedRedirect(response, this.#url, this.#service);
    if (redirect) return redirect;
    const { errorOfResponse } = await import("./errors.ts");
    return errorOfResponse(
      { status: response.status, headers: response.headers, body, url: this.#url },
      this.#askedOf,
    );
  }

  get #askedOf(): { service: string; model: string; now: number } {
    return { service: this.#service.name, model: this.#model.id, now: this.#clock.now() };
  }

  #watchSilence(): void {
    const { idleTimeoutMs = DEFAULT_IDLE_MS } = this.#config;
    if (idleTimeoutMs <= 0) return;
    this.#lastByteAt = this.#clock.now();
    let stop = (): void => {};
    const arm = (ms: number): void => {
      stop = this.#clock.after(ms, () => {
        const left = this.#lastByteAt + idleTimeoutMs - this.#clock.now();
        if (left > 0) arm(left);
        else this.#silent(idleTimeoutMs);
      });
    };
    arm(idleTimeoutMs);
    this.#undo.push(() => stop());
  }

  #silent(ms: number): void {
    const { name } = this.#service;
    const what = this.#began ? "went silent" : "did not answer";
    this.#fail(
      new ProviderError(
        `${name} ${what} for ${ms / 1000} s. Try again, or look at its status page.`,
        {
          kind: this.#began ? "stalled" : "timeout",
        },
      ),
    );
  }

  #timeout(ms: number): void {
    this.#fail(
      new ProviderError(
        `${this.#service.name} had not finished after ${ms / 1000} s, which is what timeoutMs allows.`,
        { kind: "timeout" },
      ),
    );
  }

  #incomplete(what: string): ProviderError {
    return new ProviderError(`The response of ${this.#service.name} ${what}. Try again.`, {
      kind: "incomplete",
    });
  }

  #abort(): void {
    this.#fail(
      new ProviderError("The request was aborted.", { kind: "aborted", retryable: false }),
    );
  }

  #fail({ failure, message }: Told): void {
    if (this.#out.closed) return;
    this.#out.fail(message, { ...failure, retryable: isRetryable(failure) });
    this.#stop();
  }

  /** What an error means, without secrets. Who knows that is loaded when there is one. */
  async #told(error: unknown): Promise<Told> {
    const { message, failure } = await this.#explained(error);
    const redact = await this.#redactor();
    return { message: redact(message), failure };
  }

  async #redactor(): Promise<(text: string) => string> {
    const { redact, secretsOf } = await import("../../common/redact.ts");
    const apiKey = this.#apiKey;
    const secrets = secretsOf(this.#model, this.#options, apiKey === undefined ? {} : { apiKey });
    // Some keys have parts, each of which is a secret.
    const parts = apiKey?.split(":").filter(({ length }) => length >= MIN_KEY_PART_CHARS) ?? [];
    return (text) => redact(text, [...secrets, ...parts]);
  }

  async #explained(error: unknown): Promise<Told> {
    if (error instanceof FramingError) return this.#incomplete(`cannot be read: ${error.message}`);
    if (isFailed(error)) return error;
    const { errorInStream, errorOfTransport } = await import("./errors.ts");
    if (error instanceof ServiceFault) {
      return errorInStream(error.payload, this.#askedOf, error.fault);
    }
    if (this.#url === "") {
      return { message: errorMessage(error), failure: { kind: "bad_request", retryable: false } };
    }
    const { baseUrl, id } = this.#model;
    const setBy = baseUrl ? `baseUrl of model "${id}"` : this.#service.urlEnv.join(" or ");
    const at = { ...this.#askedOf, url: this.#url, began: this.#began, setBy };
    const told = errorOfTransport(error, at);
    // Who aborts through us gets the end at once: this was somebody else, such as a `fetch` with
    // a deadline of its own.
    return told.kind === "aborted" ? this.#gaveUp() : told;
  }

  #gaveUp(): ProviderError {
    return new ProviderError(
      `The request to ${this.#service.name} was given up on its way, by fetch and not by its caller. Try again.`,
      { kind: this.#began ? "incomplete" : "network", retryable: true },
    );
  }

  /** Lets go of everything: the connection, the timers, the caller's signal. */
  #stop(): void {
    for (const undo of this.#undo.splice(0)) undo();
    const { failure } = this.#out.message;
    if (this.#reader && this.#out.closed && !failure) void this.#drain(this.#reader);
    else this.#letGo();
  }

  #letGo(): void {
    this.#control.abort();
    void this.#reader?.cancel().catch(() => {});
  }

  /** What follows a whole response is read away, so that its connection can serve the next one. */
  async #drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const stopWaiting = this.#clock.after(DRAIN_MS, () => this.#letGo());
    try {
      for (let done = false; !done;) ({ done } = await reader.read());
    } catch {
      // There is no connection to keep, then.
    }
    stopWaiting();
  }
}

/** What went wrong, for people and for programs. */
interface Told {
  message: string;
  failure: Failure;
}

/** Errors that say themselves what they are: ours, and those of whoever was asked for a key. */
function isFailed(error: unknown): error is Error & { failure: Failure } {
  return error instanceof Error && "failure" in error && typeof error.failure === "object";
}

function missingKey(service: ServicePreset): ProviderError {
  const places = service.keyEnv.join(" or ");
  return new ProviderError(
    `There is no key for ${service.name}. Pass options.apiKey or getApiKey${places && `, or set ${places}`}.`,
    { kind: "auth", retryable: false },
  );
}

function missingUrl(service: ServicePreset, model: Model): ProviderError {
  return new ProviderError(
    `Where ${service.name} is to be reached is not known: give model "${model.id}" a baseUrl, or set ${service.urlEnv.join(" or ")}.`,
    { kind: "bad_request", retryable: false },
  );
}

function tooManyRedirects(service: ServicePreset, url: string): ProviderError {
  return new ProviderError(
    `${service.name} redirects again and again (last to ${new URL(url).host}). Check the model's baseUrl.`,
    { kind: "bad_request", retryable: false },
  );
}

/** Runs what the caller gave, so that its trouble is told as its own. */
async function hooked<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (isFailed(error)) throw error;
    throw new ProviderError(
      `${name} threw: ${errorMessage(error)}`,
      { kind: "hook", retryable: false },
      { cause: error },
    );
  }
}

/** Where the same request is to be sent instead: only within the same origin. */
function redirectOf(response: FetchedResponse, from: string): string | undefined {
  if (response.status !== 307 && response.status !== 308) return undefined;
  const target = targetOf(response, from);
  return target && target.origin === new URL(from).origin ? target.href : undefined;
}

/** Why a redirect is not followed; nothing where the response is none. */
function refusedRedirect(
  response: FetchedResponse,
  from: string,
  { name }: ServicePreset,
): ProviderError | undefined {
  const { status, type } = response;
  const refused = (message: string): ProviderError =>
    new ProviderError(message, {
      kind: "bad_request",
      retryable: false,
      ...(status > 0 && { status }),
    });
  const todo = "Give the model the baseUrl that is meant.";
  if (type === "opaqueredirect") {
    return refused(`${name} redirects, and a browser does not tell where to. ${todo}`);
  }
  const target = status >= 300 && status <= 399 ? targetOf(response, from) : undefined;
  if (!target) return undefined;
  const { host, origin, pathname } = target;
  return origin === new URL(from).origin
    ? refused(
        `${name} redirects with status ${status} to ${origin}${pathname}, which does not take the request along. ${todo}`,
      )
    : refused(
        `${name} redirects to ${host}, where the key is not sent. If that is right, give the model a baseUrl at ${origin}.`,
      );
}

function targetOf(response: FetchedResponse, from: string): URL | undefined {
  const location = response.headers.get("location");
  return location !== null && URL.canParse(location, from) ? new URL(location, from) : undefined;
}

const SPACE = 0x20;
const FIRST_NOT_ASCII = 0x80;
const OPENINGS: readonly (number | undefined)[] = [0x7b, 0x5b, 0x3c];

/** Spaces and a byte order mark may stand before anything. */
function isVisible(byte: number): boolean {
  return byte > SPACE && byte < FIRST_NOT_ASCII;
}

/** What JSON or a page begins with, and no event of a stream. */
function isOpening(byte: number | undefined): boolean {
  return OPENINGS.includes(byte);
}

/** The key as a header, as the service or else the wire wants it. */
export function authHeaders(
  { apiKey, service }: WireJob,
  wireAuth: NonNullable<ServicePreset["auth"]>,
): Record<string, string> {
  if (apiKey === undefined) return {};
  const auth = service.auth ?? wireAuth;
  return auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { [auth]: apiKey };
}

/** A payload that has to be a JSON object. */
export function parseObject(data: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // Below, with all else that is no object.
  }
  if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  throw new ProviderError(
    `The response has an event that is no JSON object: ${data.slice(0, SHOWN_CHARS)}. Try again.`,
    { kind: "incomplete" },
  );
}

/** A text that may be JSON; where it is none, `otherwise`. */
export function parsedOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/** The fields of an object; of anything else, none. */
export function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** JSON that every service reads: a lone half of a surrogate pair is refused by most. */
function toJson(payload: unknown, { name }: ServicePreset): string {
  let text: string | undefined;
  let why = "it is no data.";
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    why = errorMessage(error);
  }
  if (text === undefined) {
    throw new ProviderError(`The request for ${name} cannot be written as JSON: ${why}`, {
      kind: "bad_request",
      retryable: false,
    });
  }
  // Lone halves are all that is written so.
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(payload, (_, value: unknown) => {
    if (typeof value === "string") return wellFormed(value);
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, of]) => [wellFormed(key), of]));
  });
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** `path` below `baseUrl`. A query that the base has (`?api-version=…`) stays at the end. */
export function joinUrl(baseUrl: string, path: string): string {
  const mark = baseUrl.indexOf("?");
  const base = mark < 0 ? baseUrl : baseUrl.slice(0, mark);
  const query = mark < 0 ? "" : baseUrl.slice(mark);
  return `${base.replace(/\/+$/, "")}/${path.replace(/^\/+/, "")}${query}`;
}

/** What went wrong with a service, for programs (`failure`) and for people (`message`). */
export class ProviderError extends Error {
  readonly failure: Failure;

  constructor(message: string, failure: Failure, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ProviderError";
    this.failure = failure;
  }

  get kind(): FailureKind {
    return this.failure.kind;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return isRetryable(this.failure);
  }

  get retryAfterMs(): number | undefined {
    return this.failure.retryAfterMs;
  }

  get status(): number | undefined {
    return this.failure.status;
  }

  get requestId(): string | undefined {
    return this.failure.requestId;
  }
}

/**
 * What a service sent in place of the rest of its answer: an error object, say. What it
 * means, the driver finds out: that takes more code than a wire should bring along.
 */
export class ServiceFault extends Error {
  readonly payload: unknown;
  /** The name of the trouble, where the framing tells it. */
  readonly fault: string | undefined;

  constructor(payload: unknown, fault?: string) {
    super("The service broke off its answer.");
    this.name = "ServiceFault";
    this.payload = payload;
    this.fault = fault;
  }
}
