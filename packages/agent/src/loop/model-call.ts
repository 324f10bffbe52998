import {
  type AssistantMessage,
  type Attempt,
  type Context,
  computeCost,
  errorMessage as messageOfError,
  isThenable,
  loadPart,
  type Model,
  type StreamOptions,
  toAssistantStream,
  withRetry,
} from "@gyre/ai";
import { compose, type ModelAnswer, type ModelInvocation } from "../contract/middleware.ts";
import type { AgentEvent } from "../contract/types.ts";
import { isUnavailable } from "../run/fallbacks.ts";
import type { Run } from "../run/run.ts";
import { isIncomplete } from "../transcript/history.ts";
import { withUniqueIds } from "./call-ids.ts";
import {
  abortedMessage,
  emptyMessage,
  explainEmptiness,
  failedMessage,
  redirectedMessage,
  toFailure,
  withAbort,
  withFailure,
} from "./failed-message.ts";
import { Interruption } from "./interruption.ts";
import { copyMessage, MessageReader } from "./message-reader.ts";
import { buildContext, buildOptions } from "./request.ts";
import type { ContentTimeout } from "../run/silence.ts";
import { Watchdog } from "./watchdog.ts";

/** What came of asking a model. */
export interface Outcome extends Attempt {
  /** Indices of the calls whose `toolcall_end` came. */
  finished: readonly number[];
  /** The model to ask in place of the one that failed. */
  fallback?: Model;
}

/**
 * One assistant message with all of its events, in the transcript when this resolves. Throws
 * only what a callback threw, before the message had begun.
 */
export async function respond(run: Run): Promise<AssistantMessage> {
  const { redirect } = run;
  try {
    const outcome = await askModels(run);
    // The redirect is done, even if its message is never polled.
    if (outcome.message.stopReason === "redirected") redirect.arrived = false;
    return await settle(run, outcome);
  } finally {
    redirect.onArrival = undefined;
  }
}

/** Asks the model in use, and the next of `fallbackModels` as long as one fails and may be replaced. */
async function askModels(run: Run): Promise<Outcome> {
  for (;;) {
    const first = await request(run);
    const outcome = isOverflow(run, first) ? await retrySmaller(run, first) : first;
    const { fallback, message } = outcome;
    if (!fallback) return nameTriedModels(run, outcome);
    await run.emit(run.fallbacks.add(run.model, fallback, message));
    run.useModel(fallback);
  }
}

/** Whether the service refused the context as too large, and has shown nothing. */
function isOverflow(run: Run, { message, shown }: Outcome): boolean {
  return message.failure?.kind === "overflow" && !shown && !run.canceled;
}

async function retrySmaller(run: Run, first: Outcome): Promise<Outcome> {
  const { retryWithSmallerContext } = await loadPart(import("./smaller-context.ts"));
  return retryWithSmallerContext(run, first, request, isOverflow);
}

/** Asks the model in use, with its retries. */
async function request(run: Run): Promise<Outcome> {
  if (run.canceled) return unsent(abortedMessage(run));
  const objection = run.gauge.explainUnpriced(run.model);
  if (objection) return unsent(failedMessage(run, new Error(objection)));
  const built = buildContext(run);
  const context = isThenable(built) ? await built : built;
  const options = buildOptions(run);
  try {
    const given = resolveApiKey(run);
    const key = isThenable(given) ? await given : given;
    if (key !== undefined) options.apiKey = key;
  } catch (error) {
    return withFallback(run, unsent(failedMessage(run, error)));
  }
  if (run.canceled) return unsent(abortedMessage(run));
  const { retry, maxRetryDelayMs, random = Math.random } = run.config;
  const ask = async (): Promise<Outcome> => withFallback(run, await attempt(run, context, options));
  const outcome = await withRetry(ask, {
    ...retry,
    maxRetryDelayMs,
    random,
    now: () => run.clock.now(),
    isFinal: ({ fallback, message }) =>
      fallback !== undefined && message.failure !== undefined && isUnavailable(message.failure),
    hasNext: ({ fallback }) => fallback !== undefined,
    wait: (ms) => run.redirect.waitOrRedirect(ms),
    onRetry: (event) => run.emit({ type: "retry", ...event }),
  });
  const { failure } = outcome.message;
  const isFailed = !outcome.shown && failure !== undefined && failure.kind !== "aborted";
  if (!isFailed) return outcome;
  if (run.canceled) return unsent(abortedMessage(run));
  return run.redirect.arrived ? unsent(redirectedMessage(run)) : outcome;
}

/** The configuration's own key is only for the service that it was given for. */
function resolveApiKey(run: Run): string | undefined | Promise<string | undefined> {
  const { getApiKey, apiKey } = run.config;
  const orOwn = (key: string | undefined): string | undefined =>
    key ?? (run.fallbacks.isElsewhere(run.model) ? undefined : apiKey);
  const given = getApiKey && run.hooks.call("getApiKey", () => getApiKey(run.model.provider));
  return isThenable(given) ? given.then(orOwn) : orOwn(given);
}

/** The outcome with the model to ask next, where this one failed so that another may answer. */
function withFallback(run: Run, outcome: Outcome): Outcome {
  const { message, shown } = outcome;
  if (shown || run.canceled || !message.failure) return outcome;
  const fallback = run.fallbacks.findNext(run.model, message.failure);
  return fallback ? { ...outcome, fallback } : outcome;
}

/** Asks once, and emits what comes. Nothing is emitted before there is content. */
async function attempt(run: Run, context: Context, options: StreamOptions): Promise<Outcome> {
  const { redirect } = run;
  if (redirect.arrived) return unsent(redirectedMessage(run));
  const interruption = new Interruption();
  let timeout: ContentTimeout | undefined;
  const watchdog = new Watchdog(run.clock, run.model, run.config.watchdog ?? {}, {
    onSilence: (silence) => run.emitProgress({ type: "waiting", ...silence }),
    onTimeout: (over) => {
      timeout = over;
      interruption.raise("stalled");
    },
  });
  const unlink = run.cancellation.onCancel(() => interruption.raise("canceled"));
  redirect.onArrival = () => interruption.raise("redirected");
  const reader = new MessageReader(run);
  let thrown: { error: unknown } | undefined;
  try {
    const asked = ask(run, context, options, interruption);
    // Nothing reads an answer that comes after the request was cut off.
    const detach = (late?: ModelAnswer): void => late && toAssistantStream(late).detach();
    const answer = isThenable(asked) ? await interruption.race(asked, detach) : asked;
    if (answer) await reader.read(toAssistantStream(answer), watchdog, interruption);
  } catch (error) {
    if (run.canceled === "sink") throw error;
    thrown = { error };
  } finally {
    watchdog.stop();
    unlink();
  }
  const finished = reader.finish(interruption);
  if (finished) await finished;
  const message = conclude(run, reader, interruption, { thrown, timeout });
  return { message, shown: reader.shown, finished: reader.finished };
}

/** Sends the request through the middleware, which may wait until the response is not wanted. */
function ask(
  run: Run,
  context: Context,
  options: StreamOptions,
  interruption: Interruption,
): ModelAnswer | Promise<ModelAnswer> {
  const layers = (run.config.middleware ?? []).flatMap((m) => (m.model ? [m.model.bind(m)] : []));
  const send = (call: ModelInvocation): ModelAnswer | Promise<ModelAnswer> => {
    if (interruption.reason) throw new Error("The request was called off before it was made.");
    return run.streamFn(call.model, call.context, call.options);
  };
  const invocation: ModelInvocation = {
    model: run.model,
    context,
    options: {
      ...options,
      get signal() {
        return interruption.signal;
      },
    },
    run: run.info,
  };
  return layers.length === 0
    ? send(invocation)
    : compose(layers, async (inner) => send(inner))(invocation);
}

/** The message as it stays, whatever ended the response. */
function conclude(
  run: Run,
  { final, live }: MessageReader,
  { reason }: Interruption,
  {
    thrown,
    timeout,
  }: { thrown?: { error: unknown } | undefined; timeout?: ContentTimeout | undefined },
): AssistantMessage {
  const base = final ?? live ?? emptyMessage(run);
  if (reason === "redirected") {
    // Not a failure: the request's own end, "aborted", is only how it was cut off.
    const { errorMessage: _, failure: __, ...kept } = copyMessage(base);
    return { ...kept, stopReason: "redirected" };
  }
  if (reason === "canceled") return withAbort(run, copyMessage(base));
  if (reason === "stalled" && timeout) return withTimeout(copyMessage(base), timeout);
  if (final) {
    const emptiness = explainEmptiness(final);
    if (emptiness && fillsWindow(run, final)) {
      const why = "The model's window is full: the request left no room for an answer.";
      return withFailure(final, why, { kind: "overflow", retryable: false });
    }
    return emptiness ? withFailure(final, emptiness, { kind: "empty" }) : final;
  }
  if (thrown) {
    return withFailure(copyMessage(base), messageOfError(thrown.error), toFailure(thrown.error));
  }
  return withFailure(copyMessage(base), "The response ended early.", { kind: "incomplete" });
}

/** A request may be this much below the window, and leave no room all the same. */
const FULL_SHARE = 0.99;

/** Whether a response that says nothing had no room to say it in. */
function fillsWindow(run: Run, { usage }: AssistantMessage): boolean {
  const { input, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  const { contextWindow } = run.model;
  if (contextWindow === undefined || input === undefined || output > 0) return false;
  return input + cacheRead + cacheWrite >= contextWindow * FULL_SHARE;
}

/** The message of a response whose content did not come. */
function withTimeout(
  message: AssistantMessage,
  { silentMs, hasBegun, option }: ContentTimeout,
): AssistantMessage {
  const seconds = `${silentMs / 1000} s (${option})`;
  return hasBegun
    ? withFailure(
        message,
        `The service sent no content for ${seconds}. It may still be at work, so it is not asked again by itself.`,
        { kind: "stalled", retryable: false },
      )
    : withFailure(message, `The service did not answer for ${seconds}.`, { kind: "stalled" });
}

/** Takes out calls that were cut off (R26), makes ids unique, and adds the message. */
async function settle(run: Run, { message, shown, finished }: Outcome): Promise<AssistantMessage> {
  if (run.config.context) run.compactor?.calibrate(message);
  const settled = withCost(run, withUniqueIds(run, withoutUnfinishedCalls(message, finished)));
  const events: AgentEvent[] = shown ? [] : [{ type: "message_start", message: settled }];
  const emitted = run.emitEach([...events, { type: "message_end", message: settled }]);
  if (emitted) await emitted;
  run.addAnswer(settled);
  return settled;
}

function withoutUnfinishedCalls(
  message: AssistantMessage,
  finished: readonly number[],
): AssistantMessage {
  if (!isIncomplete(message)) return message;
  const dropAll = message.stopReason === "redirected";
  const content = message.content.filter(
    (block, index) => block.type !== "toolCall" || (!dropAll && finished.includes(index)),
  );
  return content.length === message.content.length ? message : { ...message, content };
}

/** A stream function of the application may leave the cost out. */
function withCost(run: Run, message: AssistantMessage): AssistantMessage {
  const { usage } = message;
  const cost = usage.cost ? undefined : computeCost(usage, run.model.price);
  return cost ? { ...message, usage: { ...usage, cost } } : message;
}

/** An error with nothing before it says which other models were tried. */
function nameTriedModels(run: Run, outcome: Outcome): Outcome {
  const { events } = run.fallbacks;
  const { message, shown } = outcome;
  if (shown || message.stopReason !== "error" || events.length === 0) return outcome;
  const tried = events.map(({ from, kind }) => `${from.provider}/${from.id} (${kind})`).join(", ");
  const errorMessage = `${message.errorMessage ?? ""} Tried before: ${tried}.`.trim();
  return { ...outcome, message: { ...message, errorMessage } };
}

/** The outcome of a request that was not made, or that leaves nothing of what came. */
function unsent(message: AssistantMessage): Outcome {
  return { message, shown: false, finished: [] };
}
