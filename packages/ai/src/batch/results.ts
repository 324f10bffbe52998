import { Accumulator } from "../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import type { Clock } from "../common/clock.ts";
import type { AssistantMessage, Failure, Model } from "../messages/messages.ts";
import { computeCost } from "../messages/usage.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import type { FetchedResponse } from "../providers/http/fetch.ts";
import { createProviders } from "../providers/index.ts";
import { NO_KEY } from "./requests.ts";
import type { BatchService, RawResult } from "./services.ts";

const OK = 200;
const FIRST_ERROR = 400;
/** The tier of requests in batches, which costs half. */
const BATCH_TIER = "batch";

/**
 * The message that a single call would have come to: the response goes through the reader of its
 * format, an error through the same tables. What it cost is half of what a single call costs.
 */
export async function toMessage(
  config: ProviderConfig,
  model: Model,
  service: BatchService,
  result: RawResult,
  clock: Clock,
): Promise<AssistantMessage> {
  if (result.type === "canceled") {
    return createFailed(model, clock, "The batch was canceled before this request was handled.", {
      kind: "aborted",
      retryable: false,
    });
  }
  if (result.type === "expired") {
    return createFailed(
      model,
      clock,
      "The batch expired before this request was handled. Submit it again.",
      { kind: "timeout", retryable: true },
    );
  }
  const response = writeResponse(service, result);
  const fetch = (): Promise<FetchedResponse> => Promise.resolve(response);
  const providers = createProviders({ ...config, fetch, getApiKey: () => NO_KEY });
  const messages = [{ role: "user", content: "?", timestamp: 0 }] as const;
  const stream = await providers.get(model.api)?.stream(model, { messages }, { clock });
  if (!stream) {
    return createFailed(model, clock, `No api "${model.api}" is known.`, { kind: "bad_request" });
  }
  const message = await stream.result();
  const { usage } = message;
  if (usage.input === undefined && usage.output === undefined) return message;
  usage.serviceTier = BATCH_TIER;
  const cost = computeCost(usage, model.price);
  if (cost) usage.cost = cost;
  else delete usage.cost;
  return message;
}

/** The response as a stream of its format has it; an error with its status as a single call gets it. */
function writeResponse(
  service: BatchService,
  result: Extract<RawResult, { type: "response" | "error" }>,
): FetchedResponse {
  if (result.type === "error") return createResponse(OK, toStream([result.error]));
  const { body, requestId, status = OK } = result;
  if (status >= FIRST_ERROR) return createResponse(status, JSON.stringify(body), requestId);
  return createResponse(OK, toStream(service.toEvents(body)), requestId);
}

function toStream(events: readonly unknown[]): string {
  return events
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    .join("");
}

function createResponse(status: number, body: string, requestId?: string): FetchedResponse {
  const type = status === OK ? "text/event-stream" : "application/json";
  return new Response(body, {
    status,
    headers: {
      "content-type": type,
      ...(requestId !== undefined && { "x-request-id": requestId }),
    },
  });
}

function createFailed(
  model: Model,
  clock: Clock,
  message: string,
  failure: Failure,
): Promise<AssistantMessage> {
  const stream = new AssistantMessageEventStream();
  new Accumulator(stream, model, clock.now()).fail(message, failure);
  return stream.result();
}
