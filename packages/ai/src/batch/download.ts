import { type CallOptions, sendOnce, wait } from "../calls/call.ts";
import { withRetry } from "../client/retry.ts";
import { type Clock, systemClock } from "../common/clock.ts";
import { isRecord } from "../common/records.ts";
import { isRetryable } from "../messages/failure.ts";
import type { AssistantMessage, Failure, Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import type { Fetch, FetchedResponse } from "../providers/http/fetch.ts";
import { parseJsonOr, parseObject } from "../providers/http/json.ts";
import { LineDecoder } from "../stream/ndjson.ts";
import type { OnPayload, Payload } from "../stream/sse.ts";
import { LineQueue } from "./line-queue.ts";
import type { RawResult, ResultList } from "./services.ts";

/** Before a download that broke off goes on. */
const RESUME_MS = 1_000;
/** How often a download that waits for its reader shows that it is not the service that is silent. */
const SIGN_OF_LIFE_MS = 10_000;

type RemoteList = Exclude<ResultList, { results: RawResult[] }>;

/**
 * The results at an address, one a line, as they arrive. A download that breaks off is begun again,
 * and goes on behind the lines that came; it ends with a `ProviderError` when retries do not help.
 * No more is read ahead than the queue holds.
 */
export async function* downloadResults(
  config: ProviderConfig,
  model: Model,
  list: RemoteList,
  options: CallOptions,
): AsyncGenerator<RawResult, void, undefined> {
  const control = new AbortController();
  const signal = options.signal
    ? AbortSignal.any([options.signal, control.signal])
    : control.signal;
  const queue = new LineQueue<RawResult>(signal);
  const done = fill(queue, config, model, list, { ...options, signal });
  try {
    yield* queue;
  } finally {
    control.abort();
    await done;
  }
}

/** Fills the queue, and ends it. Never rejects. */
async function fill(
  queue: LineQueue<RawResult>,
  config: ProviderConfig,
  model: Model,
  list: RemoteList,
  options: CallOptions,
): Promise<void> {
  const { clock = systemClock, maxRetryDelayMs, retry, signal } = options;
  const send = config.fetch ?? globalThis.fetch;
  const fetch: Fetch = async (url, init) => holdBack(await send(url, init), queue, clock);
  const attempt = async (): Promise<{ message: AssistantMessage; shown: boolean }> => {
    let line = 0;
    const before = queue.count;
    const onPayload: OnPayload = (data) => {
      // The list does not change: what came is not looked at again.
      if (line++ >= queue.count) queue.push(readLine(data, line, list), data.length);
    };
    const message = await sendOnce({ ...config, fetch }, model, options, {
      write: (request) => list.write(request),
      onPayload,
      createDecoder: (take) => new ResultDecoder(take),
    });
    if (!message.failure && line < (list.expected ?? 0)) {
      const what = `The results of the batch ended after ${line} of ${list.expected}.`;
      setFailure(message, `${what} Try again.`, { kind: "incomplete" });
    }
    // An attempt that brought something counts as the first of its own.
    return { message, shown: queue.count > before };
  };
  for (;;) {
    const { message, shown } = await withRetry(attempt, {
      ...retry,
      maxRetryDelayMs,
      random: Math.random,
      now: () => clock.now(),
      wait: (ms) => wait(clock, ms, signal),
      onRetry: () => {},
    });
    const { errorMessage = "", failure } = message;
    if (!failure) return queue.end();
    const isResumed = shown && isRetryable(failure);
    if (isResumed && (await wait(clock, retry?.baseDelayMs ?? RESUME_MS, signal))) continue;
    return queue.end(new ProviderError(errorMessage, failure));
  }
}

function setFailure(message: AssistantMessage, errorMessage: string, failure: Failure): void {
  Object.assign(message, { stopReason: "error", errorMessage, failure });
}

function readLine(data: string, line: number, list: RemoteList): RawResult {
  const result = list.read(parseObject(data));
  if (result) return result;
  throw new ProviderError(`Line ${line} of the results of the batch is no result. Try again.`, {
    kind: "incomplete",
  });
}

/** Lines of which the last may have no end, if it is whole: the beginning of an object is not JSON. */
class ResultDecoder extends LineDecoder {
  readonly #take: OnPayload;

  constructor(take: OnPayload) {
    super(take);
    this.#take = take;
  }

  override end(): Payload | undefined {
    const left = super.end();
    if (!left || !isRecord(parseJsonOr(left.data, undefined))) return left;
    this.#take(left.data, undefined);
    return undefined;
  }
}

/** The response, of which no more is read while the queue is full. */
function holdBack(
  response: FetchedResponse,
  queue: LineQueue<RawResult>,
  clock: Clock,
): FetchedResponse {
  const { body, headers, ok, status } = response;
  const reader = body?.getReader();
  if (!reader) return response;
  const held = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (queue.isFull && !(await waitForRoom(queue, clock))) {
          return controller.enqueue(new Uint8Array());
        }
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return { ok, status, headers, body: held };
}

/** Resolves to false where there is no room yet after a while. */
async function waitForRoom(queue: LineQueue<RawResult>, clock: Clock): Promise<boolean> {
  let stop = (): void => {};
  const later = new Promise<void>((resolve) => {
    stop = clock.after(SIGN_OF_LIFE_MS, resolve);
  });
  await Promise.race([queue.waitForRoom(), later]);
  stop();
  return !queue.isFull;
}
