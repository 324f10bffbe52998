import { assertModel } from "../calls/assert-model.ts";
import {
  type CallOptions,
  type CallRequest,
  callService,
  isNotTaken,
  wait,
} from "../calls/call.ts";
import { systemClock } from "../common/clock.ts";
import type { AssistantMessage, Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { downloadResults } from "./download.ts";
import { type BatchRequest, writeRequests } from "./requests.ts";
import { toMessage } from "./results.ts";
import {
  type Batch,
  type BatchService,
  findBatchService,
  type RawResult,
  type SubmitStep,
} from "./services.ts";

/** How often a batch is asked for, unless the caller says otherwise. */
export const DEFAULT_POLL_MS = 60_000;

/** What may be asked of `collectBatch`. */
export interface CollectOptions extends CallOptions {
  /** How long to wait between two questions whether it has ended. Default 60,000. */
  pollMs?: number;
  /** Called with each answer to that question. */
  onStatus?: (batch: Batch) => void;
}

/** What became of one request: the same message that a single call comes to, also of a failure. */
export interface BatchResult {
  /** That of the request. */
  id: string;
  /** `stopReason` `error` with `failure` where it failed or expired, `aborted` where it was canceled. */
  message: AssistantMessage;
}

/**
 * Submits requests that are handled within a day, at half the price. Resolves once the service has
 * taken them: keep `id`, with which any process can go on. `config` says how services are reached:
 * `createProviderConfig()` of `@gyre/ai/node` has the keys and proxies of this machine. Rejects with a
 * `ProviderError`, before anything is sent where a request could not be sent by itself.
 */
export async function submitBatch(
  config: ProviderConfig,
  model: Model,
  requests: readonly BatchRequest[],
  options: CallOptions = {},
): Promise<Batch> {
  const service = requireService(model);
  let step: SubmitStep | Batch = service.submit(
    await writeRequests(config, model, service, requests),
    model,
  );
  while ("write" in step) {
    const { isOnce } = step;
    step = await callService(config, model, step, options).catch((error: unknown) => {
      throw isOnce ? explainDoubt(error) : error;
    });
  }
  return step;
}

/** Where a batch stands. Rejects with a `ProviderError`. */
export async function checkBatch(
  config: ProviderConfig,
  model: Model,
  id: string,
  options: CallOptions = {},
): Promise<Batch> {
  return (await askForBatch(config, model, requireService(model), id, options)).batch;
}

/**
 * Asks the service to handle no more of a batch. What has been handled stays, and is paid for:
 * `collectBatch` has it, and the others as `aborted`. Rejects with a `ProviderError`.
 */
export async function cancelBatch(
  config: ProviderConfig,
  model: Model,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  const service = requireService(model);
  checkId(id);
  const write = (request: RequestContext): CallRequest => service.writeCancel(id, request);
  await callService(config, model, { write, read: () => true }, options);
}

/**
 * Waits for the end of a batch, and gives its results as they arrive, in the order of the service. The
 * model is the one that it was submitted for. A download that breaks off goes on where it was; ending
 * the loop early ends it. Throws a `ProviderError` where the batch failed as a whole, or its results
 * cannot be read to their end: those that were given before are right.
 */
export async function* collectBatch(
  config: ProviderConfig,
  model: Model,
  id: string,
  { onStatus, pollMs = DEFAULT_POLL_MS, ...options }: CollectOptions = {},
): AsyncGenerator<BatchResult, void, undefined> {
  const { clock = systemClock, signal } = options;
  const service = requireService(model);
  for (;;) {
    const { batch, body } = await askForBatch(config, model, service, id, options);
    onStatus?.(batch);
    if (batch.state === "failed") {
      throw badRequest(
        `The batch "${id}" failed: ${batch.problem ?? "its service does not say why."}`,
      );
    }
    if (batch.state === "ended") {
      for await (const result of listResults(
        config,
        model,
        service.listResults(body, id),
        options,
      )) {
        yield { id: result.id, message: await toMessage(config, model, service, result, clock) };
      }
      return;
    }
    if (await wait(clock, pollMs, signal)) continue;
    throw new ProviderError(`Waiting for the batch "${id}" was aborted. It goes on.`, {
      kind: "aborted",
      retryable: false,
    });
  }
}

async function* listResults(
  config: ProviderConfig,
  model: Model,
  lists: ReturnType<BatchService["listResults"]>,
  options: CallOptions,
): AsyncGenerator<RawResult, void, undefined> {
  for (const list of lists) {
    if ("results" in list) yield* list.results;
    else yield* downloadResults(config, model, list, options);
  }
}

function askForBatch(
  config: ProviderConfig,
  model: Model,
  service: BatchService,
  id: string,
  options: CallOptions,
): Promise<{ batch: Batch; body: Record<string, unknown> }> {
  checkId(id);
  return callService(
    config,
    model,
    {
      write: (request) => service.writeCheck(id, request),
      read: (body) => ({ body, batch: service.readBatch(body, id) }),
    },
    options,
  );
}

/** It becomes a part of an address. */
function checkId(id: string): void {
  if (/^[\w./-]+$/.test(id) && !id.includes("..")) return;
  throw badRequest(`"${id}" is no id of a batch: give the id that submitBatch answered with.`);
}

function requireService(model: Model): BatchService {
  assertModel(model);
  const service = findBatchService(model);
  if (service) return service;
  throw badRequest(
    `"${model.provider}" takes no batches here. Use a model of anthropic, openai or google.`,
  );
}

/** A request that may have arrived is not sent again: that would make a second batch. */
function explainDoubt(error: unknown): unknown {
  if (!(error instanceof ProviderError) || isNotTaken(error.status)) return error;
  if (!error.retryable) return error;
  return new ProviderError(
    `${error.message} It is not known whether there is a batch now: look at the list of the service before you submit it again.`,
    { ...error.failure, retryable: false },
    { cause: error },
  );
}

function badRequest(message: string): ProviderError {
  return new ProviderError(message, { kind: "bad_request", retryable: false });
}
