import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantMessageEventStream,
  type Context,
  computeCost,
  emptyAssistantMessage,
  errorMessage,
  type Failure,
  IncompleteStreamError,
  isDelta,
  isLocalModel,
  isThenable,
  isSameBlock,
  type StopReason,
  type StreamOptions,
  toAssistantStream,
} from "@gyre/ai";
import { contain } from "../contract/contain.ts";
import { withFallback } from "../run/fallback.ts";
import { callsOf, endedInTrouble } from "../transcript/history.ts";
import { compose, type ModelAnswer, type ModelInvocation } from "../contract/middleware.ts";
import { Redirect } from "../run/redirect.ts";
import { buildContext, buildOptions } from "./request.ts";
import { type Attempt, withRetry } from "./retry.ts";
import type { Run } from "../run/run.ts";
import type { AgentEvent } from "../contract/types.ts";

export const DEFAULT_FIRST_EVENT_MS = 300_000;
export const DEFAULT_BETWEEN_EVENTS_MS = 120_000;
/** A `generateId` that gives ids in use more often than this in a row is not asked again. */
const MAX_ID_TRIES = 100;

/** Why the loop stopped reading a response before its end. */
type Interruption = "cancelled" | "stalled" | "redirected";

/**
 * One assistant message with all of its events, in the transcript when this
 * returns. Throws only what a callback threw, before the message had begun.
 */
export async function respond(run: Run): Promise<AssistantMessage> {
  const redirect = (run.redirect ??= new Redirect(run));
  try {
    const outcome = await withFallback<Outcome>(run, async (orNext) => {
      const first = await request(run, redirect, orNext);
      return isOverflow(run, first) ? orSmaller(run, redirect, orNext, first) : first;
    });
    // It has had its way, also where nobody will poll for the message.
    if (outcome.message.stopReason === "redirected") redirect.arrived = false;
    return await settle(run, outcome);
  } finally {
    redirect.onArrival = undefined;
  }
}

/** The service would not take so much, and there is something to be done about it. */
function isOverflow(run: Run, { message, shown }: Outcome): boolean {
  if (shown || run.cancelled || !run.config.context) return false;
  return message.failure?.kind === "overflow";
}

/** Asks once more with a smaller context (R24), or says why there is none. */
async function orSmaller(
  run: Run,
  redirect: Redirect,
  orNext: (outcome: Outcome) => Outcome,
  first: Outcome,
): Promise<Outcome> {
  const { errorMessage = "" } = first.message;
  const obstacle = await run.compactor.compactAfterOverflow();
  if (obstacle) {
    const message = { ...first.message, errorMessage: `${errorMessage} ${obstacle}`.trim() };
    return { ...first, message };
  }
  await run.emit({ type: "retry", attempt: 1, delayMs: 0, kind: "overflow", errorMessage });
  return request(run, redirect, orNext);
}

/** Asks the model in use, with its retries. */
async function request(
  run: Run,
  redirect: Redirect,
  orNext: (outcome: Outcome) => Outcome,
): Promise<Outcome> {
  if (run.cancelled) return abortedBeforeRequest(run);
  const objection = run.gauge.objectionTo(run.model);
  if (objection) return failedBeforeRequest(run, new Error(objection));
  const built = buildContext(run);
  const context = isThenable(built) ? await built : built;
  const options = buildOptions(run);
  try {
    const given = keyOf(run);
    const key = isThenable(given) ? await given : given;
    if (key !== undefined) options.apiKey = key;
  } catch (error) {
    return orNext(failedBeforeRequest(run, error));
  }
  if (run.cancelled) return abortedBeforeRequest(run);
  const { retry, maxRetryDelayMs, random = Math.random } = run.config;
  const ask = async (): Promise<Outcome> => orNext(await attempt(run, context, options, redirect));
  const outcome = await withRetry(ask, {
    ...retry,
    maxRetryDelayMs,
    random,
    wait: (ms) => redirect.orWait(ms),
    onRetry: (event) => run.emit({ type: "retry", ...event }),
  });
  const failed = outcome.message.failure && outcome.message.failure.kind !== "aborted";
  if (outcome.shown || !failed) return outcome;
  if (run.cancelled) return abortedBeforeRequest(run);
  return redirect.arrived ? redirectedBeforeRequest(run) : outcome;
}

/** A key of the configuration is for the service that it was written down for. */
function keyOf(run: Run): string | undefined | Promise<string | undefined> {
  const { getApiKey, apiKey } = run.config;
  const orOwn = (key: string | undefined): string | undefined =>
    key ?? (run.fallbacks.isElsewhere(run.model) ? undefined : apiKey);
  const given = getApiKey && run.hook("getApiKey", () => getApiKey(run.model.provider));
  return isThenable(given) ? given.then(orOwn) : orOwn(given);
}

interface Outcome extends Attempt {
  /** Indices of the calls whose `toolcall_end` came. */
  finished: readonly number[];
}

/** Asks once, and passes on what comes. Nothing is emitted before there is content. */
async function attempt(
  run: Run,
  context: Context,
  options: StreamOptions,
  redirect: Redirect,
): Promise<Outcome> {
  if (redirect.arrived) return redirectedBeforeRequest(run);
  const request = new RequestSignal();
  let interruption: Interruption | undefined;
  let leave: (() => void) | undefined;
  const interrupt = (why: Interruption): void => {
    if (interruption) return;
    interruption = why;
    request.abort();
    leave?.();
  };
  const watch = new Watchdog(run, () => interrupt("stalled"));
  const unlink = run.cancellation.onCancel(() => interrupt("cancelled"));
  redirect.onArrival = () => interrupt("redirected");
  const reading: Reading = {
    live: undefined,
    final: undefined,
    shown: false,
    held: [],
    finished: [],
    passing: undefined,
  };
  let stream: AssistantMessageEventStream | undefined;
  let thrown: { error: unknown } | undefined;
  try {
    const asked = ask(run, request.invocation(run, context, options), () => !interruption);
    const answer = isThenable(asked)
      ? await new Promise<ModelAnswer | undefined>((resolve, reject) => {
          leave = () => resolve(undefined);
          if (interruption) leave();
          asked.then(resolve, reject);
        })
      : asked;
    // One that comes after all is read by nobody.
    if (!answer && isThenable(asked)) {
      asked.then(
        (late) => late && toAssistantStream(late).detach(),
        () => {},
      );
    }
    if (answer) {
      const source = toAssistantStream(answer);
      stream = source;
      const isOver = (): boolean => interruption !== undefined || reading.final !== undefined;
      await new Promise<void>((resolve, reject) => {
        leave = resolve;
        readAll(run, source, reading, watch, isOver, resolve, reject);
      });
      if (source.failure && !isOver()) throw source.failure.error;
    }
  } catch (error) {
    if (run.cancelled === "sink") throw error;
    thrown = { error };
  } finally {
    watch.stop();
    unlink();
  }
  // What the sink is still taking comes before the rest.
  if (reading.passing) await reading.passing;
  if (stream && interruption) await passRest(run, reading, stream);
  stream?.detach();
  return conclude(run, reading, interruption, thrown);
}

/**
 * Passes on every event as it is pushed, in the call that pushed it: a delta costs
 * no promise unless the sink or the event loop wants one.
 */
function readAll(
  run: Run,
  stream: AssistantMessageEventStream,
  reading: Reading,
  watch: Watchdog,
  isOver: () => boolean,
  done: () => void,
  failed: (error: unknown) => void,
): void {
  const read = (): void => {
    try {
      watch.saw();
      while (!isOver()) {
        const event = stream.take();
        if (event === undefined) {
          if (stream.closed) return done();
          return stream.whenReadable(read);
        }
        const passed = pass(run, reading, event);
        const breath = run.breath.take();
        // A sink that answers with a promise lets nobody else have a turn by that alone.
        const wait = passed && breath ? passed.then(() => breath) : (passed ?? breath);
        if (wait) {
          watch.pause();
          reading.passing = wait;
          return void wait.then(read, failed);
        }
      }
      done();
    } catch (error) {
      failed(error);
    }
  };
  stream.whenReadable(read);
}

/** The signal of one request, made only if somebody looks at it. */
class RequestSignal {
  #controller: AbortController | undefined;
  #aborted = false;

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }

  invocation(run: Run, context: Context, options: StreamOptions): ModelInvocation {
    const look = (): AbortSignal => this.#signal();
    return {
      model: run.model,
      context,
      options: {
        ...options,
        get signal() {
          return look();
        },
      },
      run: run.info,
    };
  }

  #signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort();
    return this.#controller.signal;
  }
}

/** Middleware may have waited until nobody wants the answer any more: then nothing is asked. */
function ask(
  run: Run,
  call: ModelInvocation,
  isWanted: () => boolean,
): ModelAnswer | Promise<ModelAnswer> {
  const layers = (run.config.middleware ?? []).flatMap((m) => (m.model ? [m.model.bind(m)] : []));
  const core = ({
    model,
    context,
    options,
  }: ModelInvocation): ModelAnswer | Promise<ModelAnswer> => {
    if (!isWanted()) throw new Error("The request was called off before it was made.");
    return run.streamFn(model, context, options);
  };
  return layers.length === 0 ? core(call) : compose(layers, async (inner) => core(inner))(call);
}

interface Reading {
  live: AssistantMessage | undefined;
  final: AssistantMessage | undefined;
  shown: boolean;
  /** What came before the first content. */
  held: AssistantMessageEvent[];
  finished: number[];
  /** The last event that the sink did not take at once. */
  passing: Promise<void> | undefined;
}

/** Passes one event on. Deltas come here by the hundred thousand. */
function pass(run: Run, reading: Reading, event: AssistantMessageEvent): void | Promise<void> {
  if (event.type === "done") reading.final = endedAs(event.reason, event.message);
  else if (event.type === "error") reading.final = endedAs(event.reason, event.error);
  else if (event.type === "start") reading.live ??= event.partial;
  else if (reading.live) {
    reading.live = event.partial;
    if (event.type === "toolcall_end") reading.finished.push(event.contentIndex);
    if (reading.shown) {
      return run.emit({
        type: "message_update",
        message: event.partial,
        assistantMessageEvent: event,
      });
    }
    reading.held.push(event);
    if (isContent(event)) return show(run, reading);
  }
  return undefined;
}

/** How a response ended is told twice; the event's word holds where the message's differs. */
function endedAs(stopReason: StopReason, message: AssistantMessage): AssistantMessage {
  return message.stopReason === stopReason ? message : { ...message, stopReason };
}

function show(run: Run, reading: Reading): void | Promise<void> {
  const { live, held } = reading;
  if (!live) return undefined;
  reading.shown = true;
  reading.held = [];
  const updates = held.map((event): AgentEvent => ({
    type: "message_update",
    message: live,
    assistantMessageEvent: event,
  }));
  return run.emitEach([{ type: "message_start", message: live }, ...updates]);
}

/** After a cut: what had arrived is passed on in as few events as it takes. */
async function passRest(
  run: Run,
  reading: Reading,
  stream: AssistantMessageEventStream,
): Promise<void> {
  const rest: AssistantMessageEvent[] = [];
  for (let event = stream.take(); event; event = stream.take()) {
    const last = rest.at(-1);
    if (last && isDelta(last) && isDelta(event) && isSameBlock(last, event)) {
      rest[rest.length - 1] = { ...event, delta: last.delta + event.delta };
    } else rest.push(event);
  }
  // A provider that does not listen goes on writing into its message: keep our own.
  const newest = rest.findLast((event) => "partial" in event) ?? { partial: reading.live };
  const kept = newest.partial && snapshot(newest.partial);
  for (const event of rest) await pass(run, reading, event);
  if (kept) reading.live = kept;
}

function conclude(
  run: Run,
  reading: Reading,
  interruption: Interruption | undefined,
  thrown: { error: unknown } | undefined,
): Outcome {
  const { live, final, shown, finished } = reading;
  const base = final ?? live ?? emptyAssistantMessage(run.model, run.clock.now());
  let message: AssistantMessage;
  if (interruption === "redirected") {
    // Not a failure: the request's own end, "aborted", is only how it was cut off.
    const { errorMessage: _, failure: __, ...kept } = snapshot(base);
    message = { ...kept, stopReason: "redirected" };
  } else if (interruption === "cancelled") {
    message = trouble(snapshot(base), whyCancelled(run), { kind: "aborted" });
  } else if (interruption === "stalled") {
    message = trouble(snapshot(base), "The model's service went silent.", { kind: "stalled" });
  } else if (thrown && !final) {
    message = trouble(snapshot(base), errorMessage(thrown.error), failureOf(thrown.error));
  } else if (final) {
    const what = emptiness(final);
    message = what ? trouble(final, what, { kind: "empty" }) : final;
  } else {
    message = trouble(snapshot(base), "The response ended early.", { kind: "incomplete" });
  }
  return { message, shown, finished };
}

/** Takes out what may not stay (R26), gives every call an id of its own, and publishes. */
async function settle(run: Run, { message, shown, finished }: Outcome): Promise<AssistantMessage> {
  if (run.config.context) run.compactor.calibrate(message);
  const settled = withCost(run, withOwnIds(run, withoutUnfinishedCalls(message, finished)));
  const events: AgentEvent[] = shown ? [] : [{ type: "message_start", message: settled }];
  const emitted = run.emitEach([...events, { type: "message_end", message: settled }]);
  if (emitted) await emitted;
  run.accept(settled);
  return settled;
}

function withoutUnfinishedCalls(
  message: AssistantMessage,
  finished: readonly number[],
): AssistantMessage {
  if (!endedInTrouble(message)) return message;
  const dropAll = message.stopReason === "redirected";
  const content = message.content.filter(
    (block, index) => block.type !== "toolCall" || (!dropAll && finished.includes(index)),
  );
  return content.length === message.content.length ? message : { ...message, content };
}

/** A stream function of the application's own may leave the sums to us. */
function withCost(run: Run, message: AssistantMessage): AssistantMessage {
  const { usage } = message;
  const cost = usage.cost ? undefined : computeCost(usage, run.model.price);
  return cost ? { ...message, usage: { ...usage, cost } } : message;
}

/** Services may use an id twice; a transcript may not. */
function withOwnIds(run: Run, message: AssistantMessage): AssistantMessage {
  const own = new Set<string>();
  let changed = false;
  const content = message.content.map((block) => {
    if (block.type !== "toolCall") return block;
    const isTaken = (id: string): boolean => id === "" || own.has(id) || run.history.hasCallId(id);
    const id = isTaken(block.id) ? newId(run, isTaken) : block.id;
    own.add(id);
    if (id === block.id) return block;
    changed = true;
    return { ...block, id };
  });
  return changed ? { ...message, content } : message;
}

/** One of the application's, where it has a free one to give. */
function newId(run: Run, isTaken: (id: string) => boolean): string {
  const given = contain("generateId threw", () => {
    for (let tries = 0; run.config.generateId && tries < MAX_ID_TRIES; tries++) {
      const id = run.config.generateId();
      if (!isTaken(id)) return id;
    }
    return undefined;
  });
  return given ?? `call_${globalThis.crypto.randomUUID()}`;
}

function redirectedBeforeRequest(run: Run): Outcome {
  const empty = emptyAssistantMessage(run.model, run.clock.now());
  return { message: { ...empty, stopReason: "redirected" }, shown: false, finished: [] };
}

function abortedBeforeRequest(run: Run): Outcome {
  const empty = emptyAssistantMessage(run.model, run.clock.now());
  return {
    message: trouble(empty, whyCancelled(run), { kind: "aborted" }),
    shown: false,
    finished: [],
  };
}

function failedBeforeRequest(run: Run, error: unknown): Outcome {
  return { message: failedMessage(run, error), shown: false, finished: [] };
}

/** An empty message that says what went wrong. */
export function failedMessage(run: Run, error: unknown): AssistantMessage {
  const empty = emptyAssistantMessage(run.model, run.clock.now());
  if (run.cancelled) return trouble(empty, whyCancelled(run), { kind: "aborted" });
  return trouble(empty, errorMessage(error), failureOf(error));
}

function whyCancelled(run: Run): string {
  return run.cancelled === "limit" ? "The time limit of the run was reached." : "Aborted.";
}

function trouble(
  message: AssistantMessage,
  errorMessage: string,
  failure: Failure,
): AssistantMessage {
  const stopReason = failure.kind === "aborted" ? "aborted" : "error";
  return { ...message, stopReason, errorMessage, failure };
}

function failureOf(error: unknown): Failure {
  const { failure } = (error ?? {}) as { failure?: Failure };
  if (typeof failure?.kind === "string") return failure;
  if (error instanceof IncompleteStreamError) return { kind: "incomplete" };
  return { kind: "hook", retryable: false };
}

function snapshot(message: AssistantMessage): AssistantMessage {
  const { content, usage } = message;
  return { ...message, usage: { ...usage }, content: content.map((block) => ({ ...block })) };
}

function isContent(event: AssistantMessageEvent): boolean {
  switch (event.type) {
    case "text_start":
    case "thinking_start":
      return false;
    case "text_end":
      return event.content !== "";
    case "thinking_end": {
      const block = event.partial.content[event.contentIndex];
      return event.content !== "" || (block?.type === "thinking" && block.signature !== undefined);
    }
    default:
      return true;
  }
}

/** What an answer lacks that says nothing, or that promises a call and makes none (R7). */
function emptiness(message: AssistantMessage): string | undefined {
  if (message.stopReason === "pause" || endedInTrouble(message)) return undefined;
  const says = message.content.some((block) => {
    if (block.type === "text") return block.text !== "";
    if (block.type === "thinking") return block.thinking !== "" || block.signature !== undefined;
    return true;
  });
  if (!says) return "The model's answer was empty: neither text, thinking nor a tool call.";
  if (message.stopReason !== "toolUse" || callsOf(message).length > 0) return undefined;
  return "The model stopped to call a tool, but its answer has no call in it.";
}

/** Ends a response that has gone silent. One timer, set anew only when it fires. */
class Watchdog {
  readonly #run: Run;
  readonly #bark: () => void;
  readonly #firstMs: number;
  readonly #betweenMs: number;
  #heard = false;
  #lastAt: number;
  #stop: () => void = () => {};

  constructor(run: Run, bark: () => void) {
    const { firstEventMs, betweenEventsMs } = run.config.watchdog ?? {};
    this.#run = run;
    this.#bark = bark;
    const first = firstEventMs ?? (isLocalModel(run.model) ? 0 : DEFAULT_FIRST_EVENT_MS);
    this.#firstMs = first > 0 ? first : Number.POSITIVE_INFINITY;
    const between = betweenEventsMs ?? DEFAULT_BETWEEN_EVENTS_MS;
    this.#betweenMs = between > 0 ? between : Number.POSITIVE_INFINITY;
    this.#lastAt = run.clock.now();
    this.#arm(Math.min(this.#firstMs, this.#betweenMs));
  }

  saw(): void {
    this.#heard = true;
    this.#lastAt = this.#run.clock.now();
  }

  /** Time that a sink takes is not the service's silence. */
  pause(): void {
    this.#heard = true;
    this.#lastAt = Number.POSITIVE_INFINITY;
  }

  stop(): void {
    this.#stop();
  }

  #arm(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#stop = this.#run.clock.after(ms, () => {
      const allowed = this.#heard ? this.#betweenMs : this.#firstMs;
      const left = this.#lastAt + allowed - this.#run.clock.now();
      if (left > 0) this.#arm(Math.min(left, this.#betweenMs));
      else this.#bark();
    });
  }
}
