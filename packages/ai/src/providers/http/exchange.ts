import { Accumulator } from "../../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../../stream/assistant-stream.ts";
import {
  type ConnectionWatchdog,
  PLAIN_OPTIONS,
  type ServiceResponse,
  type StreamOptions,
} from "../../client/client.ts";
import { type Clock, systemClock } from "../../common/clock.ts";
import { errorMessage } from "../../common/errors.ts";
import { isRecord } from "../../common/records.ts";
import { isRetryable } from "../../messages/failure.ts";
import { isLocalModel } from "../../messages/local-model.ts";
import type { Context, Failure, Message, Model } from "../../messages/messages.ts";
import { isOwn } from "../../messages/transform-messages.ts";
import type { ApiProvider } from "../../client/registry.ts";
import { FramingError, type OnPayload, SseDecoder } from "../../stream/sse.ts";
import { hasFailure, ProviderError, ServiceFault } from "../errors/provider-error.ts";
import { describeService, type ServicePreset } from "../services/preset.ts";
import type { Fetch, FetchedResponse } from "./fetch.ts";
import type { ApiFormat, ApiRequest, RequestContext } from "./format.ts";
import { mergeHeaders } from "./headers.ts";
import { nearNames } from "../../schema/near-names.ts";
import { writeJson } from "./json.ts";
import type { ApplyOptions } from "../options/apply.ts";

/** A connection that brings no byte for this long is dead: before the response, and within it. */
export const DEFAULT_FIRST_BYTE_MS = 300_000;
export const DEFAULT_BETWEEN_BYTES_MS = 120_000;
/** How long to wait for usage after the model has finished. */
export const AFTER_FINISH_MS = 2_000;
/** Limits for reading an error body: size and time. */
const MAX_ERROR_BODY_CHARS = 262_144;
const ERROR_BODY_MS = 2_000;
const MAX_REDIRECTS = 3;
/** The end of the HTTP message comes with the end of the response, or right after it. */
export const DRAIN_MS = 500;
/** A shorter part of a key is a name or a number rather than a secret. */
const MIN_KEY_PART_CHARS = 16;

/** Settings for all requests of a process. */
export interface ProviderConfig {
  /** Additional services, and changed presets; they take precedence over the built-in ones. */
  services?: readonly ServicePreset[];
  /** Default: the global `fetch`. */
  fetch?: Fetch;
  /**
   * Returns the key for a service; called for each request that has none. What it throws ends
   * the response, with its message shown to the user.
   */
  getApiKey?: (
    service: ServicePreset,
    signal: AbortSignal,
  ) => string | undefined | Promise<string | undefined>;
  /** Returns another address for a service; called where the model has none. */
  getBaseUrl?: (service: ServicePreset) => string | undefined;
  /**
   * Whether errors leave out addresses of services, which may be of a private network: for a
   * process whose users are not those who set them up.
   */
  hidesAddresses?: boolean;
  /** When a connection is dead; what a request says of it takes precedence. */
  watchdog?: ConnectionWatchdog;
}

/** Makes a provider of a format. The streams that it returns always end, also after an error. */
export function createProvider(format: ApiFormat, config: ProviderConfig = {}): ApiProvider {
  return {
    api: format.api,
    stream(model, context, options) {
      const stream = new AssistantMessageEventStream();
      void new Exchange(format, config, stream, model, context, options).run();
      return stream;
    },
  };
}

const MAX_BLANK_CHARS = 8;

/** An event that says nothing, as some services send to keep a connection open. */
function isBlank(data: string): boolean {
  if (data.length > MAX_BLANK_CHARS) return false;
  const text = data.trim();
  return text === "" || text === "null";
}

/** Whether JSON that stands outside of any event reports an error. */
function isErrorObject(value: unknown): boolean {
  const [inner] = Array.isArray(value) ? value : [value];
  return isRecord(inner) && (inner["type"] === "error" || Boolean(inner["error"]));
}

/** 0 means that there is no limit. */
function toLimit(ms: number): number {
  return ms > 0 ? ms : Number.POSITIVE_INFINITY;
}

/** One request and its response. */
class Exchange {
  readonly #format: ApiFormat;
  readonly #config: ProviderConfig;
  readonly #out: Accumulator;
  readonly #model: Model;
  #context: Context;
  readonly #options: StreamOptions;
  #service: ServicePreset;
  readonly #clock: Clock;
  readonly #control = new AbortController();
  readonly #cleanups: (() => void)[] = [];
  #apiKey: string | undefined;
  #url = "";
  /** Where the service redirects to, if it does. */
  #location = "";
  #lastByteAt = 0;
  #began = false;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(
    format: ApiFormat,
    config: ProviderConfig,
    stream: AssistantMessageEventStream,
    model: Model,
    context: Context,
    options: StreamOptions,
  ) {
    this.#format = format;
    this.#config = config;
    this.#model = model;
    this.#context = context;
    this.#options = options;
    this.#service = describeService(model);
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
        this.#cleanups.push(() => signal.removeEventListener("abort", abort));
      }
      if (timeoutMs !== undefined && timeoutMs > 0) {
        this.#cleanups.push(this.#clock.after(timeoutMs, () => this.#onTimeout(timeoutMs)));
      }
      this.#watchConnection();
      await this.#findService();
      await this.#checkQuirks();
      const addOptions = await this.#prepareOptions();
      const request = await this.#createRequestContext();
      if (!request) return;
      const written = this.#format.writeRequest(request);
      addOptions?.(
        request,
        written,
        this.#format.formatMessages ?? (() => []),
        (context) => this.#format.writeRequest({ ...request, context }).body,
      );
      if (written.prefix !== undefined) this.#out.message.prefix = written.prefix;
      const response = await this.#send(written);
      if (response) await this.#read(response, request);
    } catch (error) {
      if (!this.#out.closed) this.#fail(await this.#toFailure(error));
    } finally {
      this.#stop();
    }
  }

  async #findService(): Promise<void> {
    const { home } = this.#format;
    const { services: own } = this.#config;
    if (!own && home?.id === this.#model.provider) this.#service = home;
    else this.#service = (await import("../services/presets.ts")).resolveService(this.#model, own);
  }

  async #checkQuirks(): Promise<void> {
    const { id, quirks } = this.#model;
    if (!quirks) return;
    const { explainQuirks } = await import("../../messages/quirk-names.ts");
    const problem = explainQuirks({ ...quirks }, nearNames);
    if (problem !== undefined) throw new TypeError(`${problem} The model "${id}" has it.`);
  }

  /** The table of options is loaded by requests that have some of it. */
  async #prepareOptions(): Promise<ApplyOptions | undefined> {
    const { apiKey: _, signal: __, thinkingLevel: ___, ...more } = this.#options;
    const names = Object.keys(more).filter((name) => !(name in PLAIN_OPTIONS));
    const format = names.length > 0 && (await this.#format.loadOptions?.());
    if (!format) return undefined;
    const { prepareOptions } = await import("../options/apply.ts");
    const target = { model: this.#model, options: this.#options, service: this.#service };
    const prepared = prepareOptions(format, names, target, nearNames, this.#context);
    this.#context = prepared.context;
    return prepared.apply;
  }

  async #createRequestContext(): Promise<RequestContext | undefined> {
    const { getApiKey } = this.#config;
    const service = this.#service;
    const isPlain = !this.#context.messages.some(hasFile);
    const sent = isPlain ? this.#context : await this.#prepareFiles();
    const context = await this.#withServiceTexts(sent);
    // An empty key or address counts as absent.
    const apiKey = this.#options.apiKey || (await getApiKey?.(service, this.#control.signal));
    if (this.#out.closed) return undefined;
    if (!apiKey && !service.keyless) throw createMissingKeyError(service);
    this.#apiKey = apiKey || undefined;
    const baseUrl = this.#findBaseUrl();
    if (!baseUrl) throw createMissingUrlError(service, this.#model);
    return {
      model: this.#model,
      context,
      options: this.#options,
      service,
      baseUrl: baseUrl.trim().replace(/\/+$/, ""),
      apiKey: this.#apiKey,
      clock: this.#clock,
    };
  }

  async #prepareFiles(): Promise<Context> {
    const [{ prepareFiles }, files] = await Promise.all([
      import("../files/prepare.ts"),
      this.#format.loadFiles?.(),
    ]);
    const target = { model: this.#model, service: this.#service };
    return { ...this.#context, messages: prepareFiles(this.#context.messages, target, files) };
  }

  /** What another service ran and cited is text to this one. */
  async #withServiceTexts(context: Context): Promise<Context> {
    const isForeign = (message: Message): boolean =>
      message.role === "assistant" &&
      !isOwn(message, this.#model) &&
      message.content.some((block) => block.type === "serviceTool" || "citations" in block);
    if (!context.messages.some(isForeign)) return context;
    const { withServiceTexts } = await import("../../service-tools/to-text.ts");
    return { ...context, messages: withServiceTexts(context.messages, this.#model) };
  }

  #findBaseUrl(): string | undefined {
    return this.#model.baseUrl || this.#config.getBaseUrl?.(this.#service) || this.#service.baseUrl;
  }

  async #send({
    url,
    headers: own,
    body,
    sign,
    wrapFetch,
  }: ApiRequest): Promise<FetchedResponse | undefined> {
    const { onPayload, onResponse, headers: extra } = this.#options;
    const payload =
      (await runHook("onPayload", async () => onPayload?.(body, this.#model))) ?? body;
    const text = writeJson(payload, this.#service.name);
    const headers = mergeHeaders(
      { "content-type": "application/json" },
      own,
      this.#service.headers,
      this.#model.headers,
      extra,
    );
    const { fetch: plain = globalThis.fetch } = this.#config;
    const fetch = wrapFetch ? wrapFetch(plain) : plain;
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
        // Followed by hand: `fetch` would send a key in a custom header to any host.
        redirect: "manual",
      });
      this.#lastByteAt = this.#clock.now();
      this.#reader = response.body?.getReader();
      // The exchange is over: ignore a late response.
      if (this.#out.closed) return undefined;
      if (onResponse) {
        const redacted = await this.#redactResponse(response);
        await runHook("onResponse", async () => onResponse(redacted, this.#model));
      }
      if (this.#out.closed) return undefined;
      if (!isRedirect(response)) return response;
      const { createRedirectLoopError, findRedirect } = await import("./redirects.ts");
      if (this.#out.closed) return undefined;
      const next = findRedirect(response, address);
      if (next === undefined) return response;
      void this.#reader?.cancel().catch(() => {});
      if (redirects === MAX_REDIRECTS) throw createRedirectLoopError(this.#service.name, address);
      address = next;
    }
  }

  /** The response without secrets, for a hook. */
  async #redactResponse({ headers, status }: FetchedResponse): Promise<ServiceResponse> {
    const { redactHeaders } = await import("../../common/redact.ts");
    const redact = await this.#createRedactor();
    const entries = Object.entries(redactHeaders(headers));
    return {
      status,
      headers: Object.fromEntries(entries.map(([name, value]) => [name, redact(value)])),
      url: redact(this.#url),
    };
  }

  async #read(response: FetchedResponse, request: RequestContext): Promise<void> {
    if (!response.ok) throw await this.#explainResponse(response, await this.#readErrorBody());
    const reader = this.#reader;
    if (!reader) throw this.#incomplete("has no body");
    const contentType = response.headers.get("content-type") ?? "";
    if (/^text\/html\b/i.test(contentType))
      throw await this.#explainResponse(response, await this.#readErrorBody());
    const reading = this.#format.createReader(this.#out, request);
    let payloads = 0;
    const onPayload: OnPayload = (data, event) => {
      if (this.#out.closed || isBlank(data)) return;
      payloads++;
      this.#out.report.events++;
      reading.read(data, event);
    };
    const onStray = (value: unknown): void => {
      if (!this.#out.closed && isErrorObject(value)) throw new ServiceFault(value);
    };
    const decoder =
      this.#format.createDecoder?.(onPayload, contentType) ?? new SseDecoder(onPayload, onStray);
    let isStream = !(decoder instanceof SseDecoder);
    const cancel = (): void => void reader.cancel().catch(() => {});
    let stopWaiting: (() => void) | undefined;
    this.#cleanups.push(() => stopWaiting?.());
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        // After the last event the connection may break: the response is complete.
        if (reading.finished) return { done: true, value: undefined };
        throw error;
      });
      if (this.#out.closed) return;
      if (done || !value) break;
      this.#lastByteAt = this.#clock.now();
      if (!isStream) {
        const first = value.find(isVisible);
        if (isOpening(first))
          throw await this.#explainResponse(response, await this.#readErrorBody(value));
        isStream = first !== undefined;
      }
      this.#began ||= value.length > 0;
      const before = payloads;
      decoder.feed(value);
      if (this.#out.closed) return;
      // Bytes without an event (comments that keep the connection open) do not extend the wait.
      if (payloads === before) continue;
      stopWaiting?.();
      stopWaiting = reading.finished ? this.#clock.after(AFTER_FINISH_MS, cancel) : undefined;
    }
    const left = decoder.end();
    // An event without its end still shows what arrived, but it cannot complete the response.
    if (left && !reading.finished) {
      this.#out.cutShort();
      try {
        reading.read(left.data, left.event);
      } catch {
        // Expected: most often it is cut in the middle.
      }
      throw this.#incomplete("ended in the middle of an event");
    }
    reading.end();
    if (!this.#out.closed) throw this.#incomplete("ended early");
  }

  /** The body of a response that is not a stream, up to a limit. `first`: bytes already read. */
  async #readErrorBody(first?: Uint8Array): Promise<string> {
    const reader = this.#reader;
    const decoder = new TextDecoder();
    let text = first ? decoder.decode(first, { stream: true }) : "";
    if (!reader) return text;
    const cancel = (): void => void reader.cancel().catch(() => {});
    this.#cleanups.push(this.#clock.after(ERROR_BODY_MS, cancel));
    try {
      while (text.length < MAX_ERROR_BODY_CHARS) {
        const { done, value } = await reader.read();
        if (done) break;
        text += decoder.decode(value, { stream: true });
      }
    } catch {
      // The status says enough; the part that was read is used.
    }
    return text;
  }

  async #explainResponse(response: FetchedResponse, body: string): Promise<ProviderError> {
    this.#location = response.headers.get("location") ?? "";
    if (isRedirect(response)) {
      const { explainRedirect } = await import("./redirects.ts");
      const redirect = explainRedirect(response, this.#url, this.#service.name);
      if (redirect) return redirect;
    }
    const { explainErrorResponse } = await import("../errors/response-error.ts");
    return explainErrorResponse(
      { status: response.status, headers: response.headers, body, url: this.#url },
      this.#target,
    );
  }

  get #target(): { service: string; model: string; now: number } {
    return { service: this.#service.name, model: this.#model.id, now: this.#clock.now() };
  }

  /** Uses one timer, set again only when it fires. Whatever comes over the connection counts. */
  #watchConnection(): void {
    const limits = { ...this.#config.watchdog, ...this.#options.watchdog };
    // A service on this machine may load a model, and read a long prompt, before it begins.
    const isLocal = isLocalModel({ baseUrl: this.#findBaseUrl() ?? "" });
    const first = toLimit(limits.firstByteMs ?? (isLocal ? 0 : DEFAULT_FIRST_BYTE_MS));
    const between = toLimit(limits.betweenBytesMs ?? DEFAULT_BETWEEN_BYTES_MS);
    this.#lastByteAt = this.#clock.now();
    let stop = (): void => {};
    const arm = (ms: number): void => {
      if (ms === Number.POSITIVE_INFINITY) return;
      stop = this.#clock.after(ms, () => {
        const limit = this.#began ? between : first;
        const left = this.#lastByteAt + limit - this.#clock.now();
        if (left > 0) arm(Math.min(left, between));
        else this.#onIdleTimeout(limit);
      });
    };
    arm(Math.min(first, between));
    this.#cleanups.push(() => stop());
  }

  #onIdleTimeout(ms: number): void {
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

  #onTimeout(ms: number): void {
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

  #fail({ failure, message }: FailureReport): void {
    if (this.#out.closed) return;
    this.#out.fail(message, { ...failure, retryable: isRetryable(failure) });
    this.#stop();
  }

  /** Explains an error with secrets redacted. The error tables are loaded lazily. */
  async #toFailure(error: unknown): Promise<FailureReport> {
    const { message, failure } = await this.#explain(error);
    const redact = await this.#createRedactor();
    return { message: redact(await this.#hideAddresses(message)), failure };
  }

  async #hideAddresses(message: string): Promise<string> {
    if (!this.#config.hidesAddresses) return message;
    const { hideAddresses } = await import("../../common/hide-addresses.ts");
    return hideAddresses(message, [this.#findBaseUrl() ?? "", this.#url, this.#location]);
  }

  async #createRedactor(): Promise<(text: string) => string> {
    const { redact, listSecrets } = await import("../../common/redact.ts");
    const apiKey = this.#apiKey;
    const secrets = listSecrets(this.#model, this.#options, apiKey === undefined ? {} : { apiKey });
    // Some keys have parts, each of them a secret.
    const parts = apiKey?.split(":").filter(({ length }) => length >= MIN_KEY_PART_CHARS) ?? [];
    return (text) => redact(text, [...secrets, ...parts]);
  }

  async #explain(error: unknown): Promise<FailureReport> {
    if (error instanceof FramingError) return this.#incomplete(`cannot be read: ${error.message}`);
    if (hasFailure(error)) return error;
    if (error instanceof ServiceFault) {
      const { explainErrorEvent } = await import("../errors/response-error.ts");
      return explainErrorEvent(error.payload, this.#target, error.fault);
    }
    if (this.#url === "") {
      return { message: errorMessage(error), failure: { kind: "bad_request", retryable: false } };
    }
    const { baseUrl, id } = this.#model;
    const setBy = baseUrl ? `baseUrl of model "${id}"` : this.#service.urlEnv.join(" or ");
    const at = { ...this.#target, url: this.#url, began: this.#began, setBy };
    const { explainTransportError } = await import("../errors/transport-error.ts");
    const explained = explainTransportError(error, at);
    // An abort by the caller has ended the stream already: this one comes from `fetch` itself,
    // which may have a timeout of its own.
    return explained.kind === "aborted" ? this.#createFetchAbortError() : explained;
  }

  #createFetchAbortError(): ProviderError {
    return new ProviderError(
      `The request to ${this.#service.name} was aborted by fetch, not by its caller. Try again.`,
      { kind: this.#began ? "incomplete" : "network", retryable: true },
    );
  }

  /** Releases everything: the connection, the timers, the caller's signal. */
  #stop(): void {
    for (const undo of this.#cleanups.splice(0)) undo();
    const { failure } = this.#out.message;
    if (this.#reader && this.#out.closed && !failure) void this.#drain(this.#reader);
    else this.#release();
  }

  #release(): void {
    this.#control.abort();
    void this.#reader?.cancel().catch(() => {});
  }

  /** Reads to the end of the HTTP message, so that the connection can serve the next request. */
  async #drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const stopWaiting = this.#clock.after(DRAIN_MS, () => this.#release());
    try {
      for (let done = false; !done;) ({ done } = await reader.read());
    } catch {
      // The connection is gone: there is nothing to keep.
    }
    stopWaiting();
  }
}

/** An error as it is reported: for people and for programs. */
interface FailureReport {
  message: string;
  failure: Failure;
}

function createMissingKeyError(service: ServicePreset): ProviderError {
  const places = service.keyEnv.join(" or ");
  return new ProviderError(
    `There is no key for ${service.name}. Pass options.apiKey or getApiKey${places && `, or set ${places}`}.`,
    { kind: "auth", retryable: false },
  );
}

function createMissingUrlError(service: ServicePreset, model: Model): ProviderError {
  return new ProviderError(
    `The address of ${service.name} is not known: give model "${model.id}" a baseUrl, or set ${service.urlEnv.join(" or ")}.`,
    { kind: "bad_request", retryable: false },
  );
}

function hasFile({ content }: Message): boolean {
  return (
    typeof content === "object" &&
    content.some(({ type }: { type: string }) => type === "image" || type === "file")
  );
}

/** Runs a hook of the caller. What it throws is reported with the name of the hook. */
async function runHook<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (hasFailure(error)) throw error;
    throw new ProviderError(
      `${name} threw: ${errorMessage(error)}`,
      { kind: "hook", retryable: false },
      { cause: error },
    );
  }
}

const SPACE = 0x20;
const FIRST_NOT_ASCII = 0x80;
const OPENINGS: readonly (number | undefined)[] = [0x7b, 0x5b, 0x3c];

/** Spaces and a byte order mark may precede anything. */
function isVisible(byte: number): boolean {
  return byte > SPACE && byte < FIRST_NOT_ASCII;
}

/** Whether JSON or a page begins with this byte; no event of a stream does. */
function isOpening(byte: number | undefined): boolean {
  return OPENINGS.includes(byte);
}

/** Statuses from 300 to 399, and 0 where a browser hides the rest. */
function isRedirect({ status, type }: FetchedResponse): boolean {
  return type === "opaqueredirect" || (status >= 300 && status <= 399);
}
