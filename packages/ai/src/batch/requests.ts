import type { ContextInput, StreamOptions } from "../client/client.ts";
import { systemClock } from "../common/clock.ts";
import { isRecord } from "../common/records.ts";
import type { Message, Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import type { FetchRequest } from "../providers/http/fetch.ts";
import { createProviders } from "../providers/index.ts";
import type { BatchService, WrittenRequest } from "./services.ts";

/** One request of a batch: what a single call would be asked with, and a name for its result. */
export interface BatchRequest {
  /** Each once in a batch. Anthropic takes at most 64 letters, digits, `_` and `-`. */
  id: string;
  context: ContextInput;
  /** As of a single call; what is about its connection is not used. */
  options?: StreamOptions;
}

/** Stands where a key would: nothing that is written with it is sent. */
export const NO_KEY = "no-key-is-needed-here";

/**
 * Writes the requests as single calls would be written, by the format of the model: with options,
 * files and hooks. Throws a `ProviderError` that names the request where one cannot be sent.
 */
export async function writeRequests(
  config: ProviderConfig,
  model: Model,
  service: BatchService,
  requests: readonly BatchRequest[],
): Promise<WrittenRequest[]> {
  if (requests.length === 0) throw badRequest("A batch needs a request: there is none.");
  if (requests.length > service.maxRequests) {
    throw badRequest(
      `A batch of ${model.provider} has at most ${service.maxRequests} requests, not ${requests.length}. Submit several batches.`,
    );
  }
  checkIds(requests, model, service);
  const written: WrittenRequest[] = [];
  let chars = 0;
  for (const request of requests) {
    const one = await writeOne(config, model, request);
    chars += JSON.stringify(one.body).length;
    if (chars > service.maxChars) {
      throw badRequest(
        `A batch of ${model.provider} has at most ${service.maxChars} characters of requests, and "${request.id}" is beyond that. Submit several batches.`,
      );
    }
    written.push(one);
  }
  return written;
}

function checkIds(requests: readonly BatchRequest[], model: Model, { ids }: BatchService): void {
  const known = new Set<string>();
  for (const { id } of requests) {
    if (typeof id !== "string" || id === "") throw badRequest("A request of the batch has no id.");
    if (known.has(id)) throw badRequest(`Two requests of the batch have the id "${id}".`);
    if (ids && !ids.pattern.test(id)) {
      throw badRequest(`The id "${id}" is not one for ${model.provider}: ${ids.rule}.`);
    }
    known.add(id);
  }
}

async function writeOne(
  config: ProviderConfig,
  model: Model,
  { context, id, options = {} }: BatchRequest,
): Promise<WrittenRequest> {
  let written: WrittenRequest | undefined;
  const fetch = (_: string, { body = "", headers }: FetchRequest): Promise<never> => {
    const parsed: unknown = JSON.parse(body);
    if (isRecord(parsed)) {
      const { stream: _stream, stream_options: _options, ...rest } = parsed;
      written = { id, headers, body: rest };
    }
    return Promise.reject(new Error("The request was written, which is all that was asked for."));
  };
  const provider = createProviders({ ...config, fetch, getApiKey: () => NO_KEY }).get(model.api);
  const now = (options.clock ?? systemClock).now();
  const messages = context.messages.map((message): Message => ({ timestamp: now, ...message }));
  const stream = await provider?.stream(model, { ...context, messages }, options);
  const message = await stream?.result();
  if (written) return written;
  throw new ProviderError(
    `The request "${id}" of the batch cannot be sent: ${message?.errorMessage ?? ""}`,
    message?.failure ?? { kind: "bad_request", retryable: false },
  );
}

function badRequest(message: string): ProviderError {
  return new ProviderError(message, { kind: "bad_request", retryable: false });
}
