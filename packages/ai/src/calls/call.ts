import type { StreamOptions } from "../client/client.ts";
import { type RetryOptions, withRetry } from "../client/retry.ts";
import { type Clock, systemClock } from "../common/clock.ts";
import type { AssistantMessage, Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import { createProvider, type ProviderConfig } from "../providers/http/exchange.ts";
import type { Fetch } from "../providers/http/fetch.ts";
import type { ApiFormat, ApiRequest, RequestContext } from "../providers/http/format.ts";
import { parseObject } from "../providers/http/json.ts";
import type { Framing, OnPayload } from "../stream/sse.ts";
import { BodyDecoder } from "./body-decoder.ts";

/** What a caller may say about a request that is no turn of a conversation. */
export interface CallOptions extends Pick<
  StreamOptions,
  | "apiKey"
  | "signal"
  | "headers"
  | "maxRetryDelayMs"
  | "timeoutMs"
  | "watchdog"
  | "onPayload"
  | "onResponse"
  | "clock"
> {
  /** How often a request that failed is sent again; the defaults are those of the loop. */
  retry?: RetryOptions;
}

/** One request as a service of files, vectors or images takes it. */
export interface CallRequest extends Omit<ApiRequest, "body" | "prefix"> {
  method?: "GET" | "POST" | "DELETE";
  /** An object is sent as JSON, a text as it is. */
  body?: Record<string, unknown> | string;
}

/** A request to a service, and what its answer means. */
export interface ServiceCall<T> {
  /** Called once for each attempt, when the key and the address are known. */
  write(request: RequestContext): CallRequest;
  /** Reads the whole body, a JSON object. A `ProviderError` that it throws is the failure of the attempt. */
  read(body: Record<string, unknown>): T;
  /**
   * True where a second request would do again what the first may have done. It is then sent again
   * only if the service has answered that it did not take the first.
   */
  isOnce?: boolean;
}

/**
 * Sends one request by the driver that conversations have: keys, proxies, abort, timeouts, limits,
 * redirects and retries are the same. Rejects with a `ProviderError`, whose `kind` says what happened.
 */
export async function callService<T>(
  config: ProviderConfig,
  model: Model,
  call: ServiceCall<T>,
  options: CallOptions = {},
): Promise<T> {
  const { clock = systemClock, maxRetryDelayMs, retry, signal } = options;
  let answer: { value: T } | undefined;
  const attempt = async (): Promise<{ message: AssistantMessage; shown: boolean }> => {
    const onPayload = (data: string): void => {
      answer = { value: call.read(parseObject(data)) };
    };
    const message = await sendOnce(config, model, options, {
      write: (request) => call.write(request),
      onPayload,
      createDecoder: (take) => new BodyDecoder(take),
    });
    return { message, shown: false };
  };
  const { message } = await withRetry(attempt, {
    ...retry,
    maxRetryDelayMs,
    random: Math.random,
    now: () => clock.now(),
    isFinal: ({ message: { failure } }) => call.isOnce === true && !isNotTaken(failure?.status),
    wait: (ms) => wait(clock, ms, signal),
    onRetry: () => {},
  });
  if (signal?.aborted) throw createAbortError();
  if (message.failure) throw new ProviderError(message.errorMessage ?? "", message.failure);
  if (!answer) throw new ProviderError("The service answered nothing.", { kind: "incomplete" });
  return answer.value;
}

const FIRST_SERVER_ERROR = 500;
/** Errors of a server that says by them that it has not begun. */
const NOT_BEGUN: ReadonlySet<number> = new Set([503, 529]);

/**
 * Whether a service has answered that it did not take a request. One that failed in the middle of it may have, and a
 * gateway that waited in vain does not know.
 */
export function isNotTaken(status: number | undefined): boolean {
  return status !== undefined && (status < FIRST_SERVER_ERROR || NOT_BEGUN.has(status));
}

/** One attempt: how the request is written, and what is done with each payload of its answer. */
export interface Sending {
  write(request: RequestContext): CallRequest;
  onPayload: OnPayload;
  createDecoder(onPayload: OnPayload): Framing;
}

/** Sends a request once. The message that comes of it has no content: only whether it failed, and how. */
export async function sendOnce(
  config: ProviderConfig,
  model: Model,
  options: CallOptions,
  sending: Sending,
): Promise<AssistantMessage> {
  let written: CallRequest | undefined;
  const { fetch: send = globalThis.fetch } = config;
  const fetch: Fetch = (url, init) => {
    const { body: given, method = "POST" } = written ?? {};
    const { body: json = "", ...rest } = init;
    const body = typeof given === "object" ? json : given;
    return send(url, { ...rest, method, ...(body !== undefined && { body }) });
  };
  const format: ApiFormat = {
    api: model.api,
    writeRequest(request) {
      written = sending.write(request);
      const { body, method: _, ...rest } = written;
      return { ...rest, body: typeof body === "object" ? body : {} };
    },
    createDecoder: (onPayload) => sending.createDecoder(onPayload),
    createReader: (out) => ({ read: sending.onPayload, end: () => out.done("stop") }),
  };
  const { retry: _, ...rest } = options;
  const stream = createProvider(format, { ...config, fetch }).stream(model, { messages: [] }, rest);
  return (await stream).result();
}

function createAbortError(): ProviderError {
  return new ProviderError("The request was aborted.", { kind: "aborted", retryable: false });
}

/** Waits. Resolves to false when the signal has been aborted meanwhile. */
export function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const abort = (): void => {
      stop();
      resolve(false);
    };
    const stop = clock.after(ms, () => {
      signal?.removeEventListener("abort", abort);
      resolve(true);
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
