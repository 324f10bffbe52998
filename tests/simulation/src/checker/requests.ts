import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessage, Failure } from "@gyre/ai";
import type { Driver } from "../world/driver.ts";
import {
  type Attempt,
  fallsBackAtOnce,
  mayBeRetried,
  mayFallBack,
  type ModelWatch,
} from "../world/model.ts";
import type { RunRecord } from "../world/run-record.ts";
import type { Fail, World } from "../world/world.ts";
import type { Calls } from "./calls.ts";
import { Choice } from "./choice.ts";
import type { Queues } from "./queues.ts";
import { listCalls, isIncomplete, findRequestFault, type Transcript } from "./transcript.ts";

const DEFAULT_MAX_RETRIES = 4;
const MAX_RETRIES_BEFORE_FALLBACK = 2;
const MAX_ELAPSED_BEFORE_FALLBACK_MS = 10_000;
const DEFAULT_MAX_PASSING_RETRIES = 9;
const DEFAULT_MAX_ELAPSED_MS = 300_000;
/** Failures that pass, and may take minutes to. */
const PASSING: ReadonlySet<string> = new Set(["overloaded", "rate_limit", "network", "incomplete"]);
const DEFAULT_BASE_MS = 1_000;
const DEFAULT_CAP_MS = 30_000;
const DEFAULT_LONGEST_MS = 60_000;
const MOST_PAUSES = 10;
const MOST_CUT_OFF = 3;

/** What is asked of the model, and what is made of its answers: R4, R7, R21-R23, R26, R28. */
export class Requests implements ModelWatch {
  readonly #world: World;
  readonly #calls: Calls;
  readonly #queues: Queues;
  readonly #transcript: Transcript;
  #driver: Driver | undefined;
  #run: RunRecord | undefined;
  /** The requests of the turn that goes on, to the model in use. */
  #attempts: Attempt[] = [];
  readonly #all: Attempt[] = [];
  #retry: { at: number; delayMs: number } | undefined;
  /** When the first attempt of the turn at the model in use has failed. */
  #failedAt = 0;
  /** When the model in use was first asked for the answer. */
  #askedAt = 0;
  #responses = 0;
  #tokens = 0;
  #cost = 0;
  #pauses = 0;
  #cutOff = 0;
  readonly #choice: Choice;
  #isKeyMissing = false;
  #applied: { id: string } | undefined;
  #changesAtTurnEnd: number | undefined;
  #isPreparing = false;
  #prepared: { model?: { id: string }; thinkingLevel?: string } | undefined;

  constructor(world: World, calls: Calls, queues: Queues, transcript: Transcript) {
    this.#world = world;
    this.#calls = calls;
    this.#queues = queues;
    this.#transcript = transcript;
    this.#choice = new Choice(world);
  }

  attach(driver: Driver): void {
    this.#driver = driver;
  }

  begun(run: RunRecord): void {
    this.#run = run;
    this.#attempts = [];
    this.#retry = undefined;
    this.#responses = 0;
    this.#tokens = 0;
    this.#cost = 0;
    this.#pauses = 0;
    this.#cutOff = 0;
    this.#applied = this.#driver?.model;
    this.#choice.set(this.#applied);
    this.#isKeyMissing = false;
    this.#changesAtTurnEnd = this.#driver?.modelChanges;
    this.#prepared = undefined;
    this.#isPreparing = false;
  }

  /** The newest request of this turn, if it was made. */
  get last(): Attempt | undefined {
    return this.#attempts.at(-1);
  }

  /** Whether the deltas of the answer that is streaming make up its message. */
  get isReplayable(): boolean {
    if (this.#world.plan.entry === "stream") return this.#all.every(({ replayable }) => replayable);
    return this.last?.replayable !== false;
  }

  /** `prepareTurn` was called: what it gives counts, unless the run is over by then. */
  preparing(): void {
    this.#isPreparing = true;
  }

  prepared(changes: { model?: { id: string }; thinkingLevel?: string }): void {
    if (!this.#isPreparing) return;
    this.#isPreparing = false;
    this.#prepared = changes;
  }

  keyMissing(): void {
    this.#isKeyMissing = true;
  }

  requested(attempt: Attempt): void {
    const run = this.#run;
    const stop: Fail = (rule, why) => {
      this.#world.fail(rule, `request ${attempt.number} was made, although ${why}`);
    };
    if (!run || run.over) return stop("R21", "no run goes on");
    if (run.abortedAt !== undefined) stop("R21", "the run was aborted");
    if (run.sinkFailedOn && this.#world.now > this.#calls.sinkDeadAt)
      stop("R25", "the sink has failed");
    const wrong = findRequestFault(attempt.messages);
    if (wrong) stop("strict", wrong);
    this.#checkLimits(attempt, run, stop);
    if (this.#world.plan.entry !== "stream") {
      this.#checkRetry(stop);
      if (this.#queues.overlooked)
        stop("R15", "a steering message had waited since before the run");
      this.#checkModel(attempt, stop);
      this.#checkMessages(attempt, stop);
    }
    if (this.#attempts.length === 0) this.#askedAt = this.#world.now;
    this.#attempts.push(attempt);
    this.#all.push(attempt);
  }

  #checkLimits(attempt: Attempt, run: RunRecord, stop: Fail): void {
    const { maxTurns, maxIterations, maxTotalTokens, maxCostUsd, maxDurationMs } =
      this.#world.plan.config.limits ?? {};
    const most = maxTurns ?? maxIterations ?? Infinity;
    if (this.#responses >= most) stop("R23", `the run has had ${this.#responses} turns`);
    if (this.#tokens >= (maxTotalTokens ?? Infinity))
      stop("R23", `${this.#tokens} tokens were used`);
    if (this.#cost >= (maxCostUsd ?? Infinity)) stop("R23", `${this.#cost} dollars were spent`);
    if (maxCostUsd !== undefined && !attempt.model.price) stop("R23", "its price is not known");
    const over = this.#world.clock.lastRunAt > run.startedAt + (maxDurationMs ?? Infinity);
    if (over) stop("R23", "the time of the run was over");
    if (this.#cutOff >= MOST_CUT_OFF) stop("R10", `${this.#cutOff} answers in a row were cut off`);
    if (this.#pauses > MOST_PAUSES) stop("R7", `there were ${this.#pauses} pauses in a row`);
    if (this.#calls.refusalsBefore > 1) stop("R23", "the same call was refused twice");
  }

  #checkRetry(stop: Fail): void {
    if (this.#attempts.length === 0) return;
    const retry = this.#retry;
    this.#retry = undefined;
    if (!retry) return stop("R22", "there was no retry event");
    const waited = this.#world.now - retry.at;
    if (waited < retry.delayMs) stop("R22", `it waited ${waited} ms of ${retry.delayMs}`);
  }

  #checkModel(attempt: Attempt, stop: Fail): void {
    const { id } = (this.#choice.inUse ??= attempt.model);
    if (attempt.model.id !== id) stop("R28", `it asked ${attempt.model.id}, not ${id}`);
    const level = this.#prepared?.thinkingLevel;
    if (level !== undefined && attempt.thinkingLevel !== level) {
      stop("R28", `prepareTurn said thinking "${level}", it asked with "${attempt.thinkingLevel}"`);
    }
  }

  #checkMessages(attempt: Attempt, stop: Fail): void {
    const sent = new Set<unknown>(attempt.messages);
    const known = new Set<unknown>(this.#transcript.messages);
    for (const message of attempt.messages) {
      if (!known.has(message)) stop("R3", `a message of ${message.role} is not in the transcript`);
    }
    for (const message of this.#transcript.messages) {
      const mayMiss =
        message.role === "note" ||
        (message.role === "assistant" && listCalls(message).length === 0);
      if (!mayMiss && !sent.has(message)) stop("R3", `a message of ${message.role} was not sent`);
    }
  }

  take(event: AgentEvent): void {
    if (event.type === "turn_start") this.#turnStart();
    else if (event.type === "retry") this.#retried(event);
    else if (event.type === "fallback") this.#fellBack(event);
    else if (event.type === "turn_end") this.#changesAtTurnEnd = this.#driver?.modelChanges;
    else if (event.type === "message_update") {
      if (this.last?.early.has(event.assistantMessageEvent)) {
        this.#world.fail("R4", "what came before start was passed on");
      }
    } else if (event.type === "message_end" && event.message.role === "assistant") {
      this.#answered(event.message);
    }
  }

  /** R28: which model is to be asked from here on. */
  #turnStart(): void {
    this.#attempts = [];
    this.#retry = undefined;
    const now = this.#driver?.model;
    // Changed between the two moments that we see: it may hold from this turn, or the next.
    const isChanging = this.#driver?.modelChanges !== this.#changesAtTurnEnd;
    if (isChanging || !this.#applied) this.#choice.set(undefined);
    else if (now !== this.#applied) this.#choice.set(now);
    this.#applied = isChanging ? undefined : now;
    const { model } = this.#prepared ?? {};
    if (model) this.#choice.set(model);
    this.#isKeyMissing = false;
  }

  /** Only before content, only for want of a model, and down the list. */
  #fellBack(event: Extract<AgentEvent, { type: "fallback" }>): void {
    if (this.#world.plan.entry === "stream") return;
    const { from, to, kind } = event;
    const last = this.last;
    const fail = (why: string): void =>
      this.#world.fail("fallback", `from ${from.id} to ${to.id}: ${why}`);
    const isKnown = this.#choice.next !== undefined;
    const wrong = this.#choice.fellBack(event);
    if (wrong) fail(wrong);
    const failure: Failure | undefined = last ? this.#explainFailure(last) : { kind: "auth" };
    if (!last && !this.#isKeyMissing) fail("nothing was asked, and no key is missing");
    if (last?.shown && !last.wentOn) fail("content was passed on");
    if (!failure) fail("the answer did not fail");
    else if (failure.kind !== kind) fail(`the failure was of kind ${failure.kind}, not ${kind}`);
    else if (!mayFallBack(failure)) fail(`a failure of kind ${kind} is no reason`);
    else if (isKnown && this.#isRetryDue(failure)) fail(`it was to be retried (${kind})`);
    this.#attempts = [];
    this.#retry = undefined;
    this.#isKeyMissing = false;
  }

  /** Whether a model that failed is to be asked again before another one is, however long the wait. */
  #isRetryDue(failure: Failure): boolean {
    if (fallsBackAtOnce(failure) || !mayBeRetried(failure)) return false;
    const { maxRetries, maxElapsedMs } = this.#retryLimits(failure.kind, true);
    const { maxRetryDelayMs = DEFAULT_LONGEST_MS, retry } = this.#world.plan.config;
    const { baseDelayMs = DEFAULT_BASE_MS, maxDelayMs = DEFAULT_CAP_MS } = retry ?? {};
    const number = this.#attempts.length;
    const backoff = Math.min(maxRetryDelayMs, maxDelayMs, baseDelayMs * 2 ** (number - 1));
    const delayMs = failure.retryAfterMs ?? backoff;
    if (number > maxRetries || delayMs > maxRetryDelayMs) return false;
    const failedAt = number === 1 ? this.#world.now : this.#failedAt;
    const isShort = retry?.maxRetries === undefined;
    const isLate = this.#world.now + delayMs - this.#askedAt > MAX_ELAPSED_BEFORE_FALLBACK_MS;
    return this.#world.now + delayMs - failedAt <= maxElapsedMs && !(isShort && isLate);
  }

  #retried(event: Extract<AgentEvent, { type: "retry" }>): void {
    const { attempt: number, delayMs, kind } = event;
    const last = this.last;
    const fail = (why: string): void => this.#world.fail("R22", `retry ${number}: ${why}`);
    this.#retry = { at: this.#world.now, delayMs };
    if (this.#world.plan.entry === "stream") return;
    if (!last) return fail("nothing was asked");
    const failure = this.#explainFailure(last);
    const { next } = this.#choice;
    const mayAskNext = next !== undefined && failure !== undefined && mayFallBack(failure);
    const { maxRetries, maxElapsedMs } = this.#retryLimits(kind, mayAskNext);
    if (number === 1) this.#failedAt = this.#world.now;
    if (number !== this.#attempts.length) fail(`there were ${this.#attempts.length} requests`);
    if (this.#world.now + delayMs - this.#failedAt > maxElapsedMs) fail("it is too late");
    if (number > maxRetries) fail(`only ${maxRetries} are allowed`);
    if (last.shown && !last.wentOn) fail("content was passed on");
    if (!failure) return fail("the answer did not fail");
    if (failure.kind !== kind) fail(`the failure was of kind ${failure.kind}, not ${kind}`);
    if (!mayBeRetried(failure)) fail(`a failure of kind ${failure.kind} is final`);
    if (mayAskNext && fallsBackAtOnce(failure)) fail(`${next} was to be asked`);
    const longest = this.#world.plan.config.maxRetryDelayMs ?? DEFAULT_LONGEST_MS;
    if (delayMs > longest) fail(`a wait of ${delayMs} ms is longer than ${longest} ms`);
    if (failure.retryAfterMs !== undefined) {
      if (delayMs !== failure.retryAfterMs)
        fail(`the service asked for ${failure.retryAfterMs} ms`);
      return;
    }
    const { baseDelayMs = DEFAULT_BASE_MS, maxDelayMs = DEFAULT_CAP_MS } =
      this.#world.plan.config.retry ?? {};
    const most = Math.min(maxDelayMs, baseDelayMs * 2 ** (number - 1));
    if (delayMs < 0 || delayMs > most) fail(`${delayMs} ms is not between 0 and ${most} ms`);
  }

  /** How an answer failed, if it did. */
  #explainFailure(attempt: Attempt): Failure | undefined {
    if (attempt.outcome === "open") return { kind: "stalled", retryable: !attempt.begun };
    if (attempt.outcome === "done" && attempt.final && isEmpty(attempt.final))
      return { kind: "empty" };
    return attempt.outcome === "done" ? undefined : attempt.failure;
  }

  #answered(message: AssistantMessage): void {
    const last = this.last;
    const attempts = this.#attempts.length;
    this.#responses++;
    this.#tokens +=
      message.usage.totalTokens ?? (message.usage.input ?? 0) + (message.usage.output ?? 0);
    this.#cost += message.usage.cost?.total ?? 0;
    this.#pauses = message.stopReason === "pause" ? this.#pauses + 1 : 0;
    const isCut = message.stopReason === "length" && listCalls(message).length > 0;
    this.#cutOff = isCut ? this.#cutOff + 1 : 0;
    this.#prepared = undefined;
    if (this.#world.plan.entry === "stream") return;
    if (!last || message.failure?.kind === "hook") return this.#unasked(message);
    this.#checkAnswer(message, last, attempts);
  }

  /** Nothing was asked: something went wrong before, or the run was stopped. */
  #unasked(message: AssistantMessage): void {
    if (!isIncomplete(message)) this.#world.fail("R5", "there is an answer that no model gave");
    const isForWantOfKey = this.#isKeyMissing && message.failure?.kind === "auth";
    if (isForWantOfKey) this.#checkLast(message, { kind: "auth" });
  }

  /** A model that was not to be had ends the run only where there is no other; the rest is reported. */
  #checkLast(message: AssistantMessage, failure: Failure): void {
    const { next, passed } = this.#choice;
    const fail = (why: string): void => this.#world.fail("fallback", why);
    if (next !== undefined && mayFallBack(failure)) fail(`${next} was not asked`);
    const unreported = passed.find((id) => !message.errorMessage?.includes(`/${id} (`));
    if (unreported !== undefined) fail(`the error does not say that ${unreported} was tried`);
  }

  #checkAnswer(message: AssistantMessage, last: Attempt, attempts: number): void {
    const fail: Fail = (rule, why) => {
      this.#world.fail(rule, `the answer to request ${last.number} (${last.kind}): ${why}`);
    };
    const run = this.#run;
    const { stopReason } = message;
    const isStopped = this.#isStopped(run);
    const failure = this.#explainFailure(last);
    if (message.model !== this.#choice.inUse?.id || message.provider !== last.model.provider) {
      fail("fallback", `it is of ${message.model}, ${this.#choice.inUse?.id} is in use`);
    }
    if (stopReason === "aborted") {
      if (!isStopped && failure?.kind !== "aborted")
        fail("R21", "it is aborted, and there was no abort");
      if (last.shown) this.#checkKept(message, last, fail);
      return;
    }
    if (stopReason === "redirected") {
      if (this.#world.plan.config.steering !== "redirect") fail("R15", "no redirect was asked for");
      if (listCalls(message).length > 0) fail("R15", "it was cut off, and has calls");
      if (last.shown) this.#checkKept(message, last, fail);
      return;
    }
    if (isStopped) return;
    if (!failure) return this.#checkWhole(message, last, fail);
    if (stopReason !== "error")
      return fail("R5", `it failed (${failure.kind}), and ended ${stopReason}`);
    if (message.failure?.kind !== failure.kind) {
      fail("R22", `it failed (${failure.kind}), and the message says ${message.failure?.kind}`);
    }
    this.#checkKept(message, last, fail);
    if (!last.shown) this.#checkLast(message, failure);
    const { maxRetries, maxElapsedMs } = this.#retryLimits(failure.kind, false);
    const longest = this.#world.plan.config.maxRetryDelayMs ?? DEFAULT_LONGEST_MS;
    const tooLong = (failure.retryAfterMs ?? 0) > longest;
    if (last.shown || attempts > maxRetries || !mayBeRetried(failure)) return;
    if (attempts > 1 && this.#world.now + longest - this.#failedAt > maxElapsedMs) return;
    if (!tooLong) return fail("R22", `it failed (${failure.kind}), and was not asked again`);
    const seconds = `${Math.ceil((failure.retryAfterMs ?? 0) / 1000)} s`;
    if (!message.errorMessage?.includes(seconds))
      fail("R22", `the error does not say that it takes ${seconds}`);
  }

  #retryLimits(kind: string, mayAskNext: boolean): { maxRetries: number; maxElapsedMs: number } {
    const isPassing = PASSING.has(kind);
    const alone = isPassing ? DEFAULT_MAX_PASSING_RETRIES : DEFAULT_MAX_RETRIES;
    const {
      maxRetries = mayAskNext ? MAX_RETRIES_BEFORE_FALLBACK : alone,
      maxElapsedMs = DEFAULT_MAX_ELAPSED_MS,
    } = this.#world.plan.config.retry ?? {};
    return { maxRetries, maxElapsedMs: isPassing ? maxElapsedMs : Infinity };
  }

  #isStopped(run: RunRecord | undefined): boolean {
    if (!run) return true;
    const { maxDurationMs = Infinity } = this.#world.plan.config.limits ?? {};
    return run.abortedAt !== undefined || this.#world.now >= run.startedAt + maxDurationMs;
  }

  /** A whole answer is in the transcript as it came, but for ids that were used before. */
  #checkWhole(message: AssistantMessage, last: Attempt, fail: Fail): void {
    const { final } = last;
    if (!final) return;
    if (message.stopReason !== final.stopReason) {
      return fail("R4", `it ended ${final.stopReason}, the message ended ${message.stopReason}`);
    }
    const come = JSON.stringify(withoutIds(final));
    const kept = JSON.stringify(withoutIds(message));
    if (come !== kept) fail("R4", `${come} came, ${kept} is kept`);
    const ids = listCalls(message).map(({ id }) => id);
    for (const [index, { id }] of listCalls(final).entries()) {
      if (
        id.startsWith("c") &&
        id !== "call_0" &&
        listCalls(final).filter((c) => c.id === id).length === 1
      ) {
        const isOld = this.#transcript.messages.some(
          (other) => other !== message && listCalls(other).some((call) => call.id === id),
        );
        if (!isOld && ids[index] !== id) fail("R8", `call ${id} has become ${ids[index]}`);
      }
    }
  }

  /** R26: what had arrived is kept; of calls, those that were finished. */
  #checkKept(message: AssistantMessage, last: Attempt, fail: Fail): void {
    if (!last.started || last.wentOn) return;
    const finished = message.stopReason === "redirected" ? 0 : last.finished.size;
    const kept = listCalls(message).length;
    if (kept !== finished) fail("R26", `${finished} calls were finished, ${kept} are kept`);
    const come = last.final ?? last.atAbort;
    if (come && joinTexts(come) !== joinTexts(message)) {
      fail(
        "R26",
        `${JSON.stringify(joinTexts(come))} came, ${JSON.stringify(joinTexts(message))} is kept`,
      );
    }
  }
}

function isEmpty({ content, stopReason }: AssistantMessage): boolean {
  if (stopReason === "pause") return false;
  const has = (type: string): boolean => content.some((block) => block.type === type);
  if (stopReason === "toolUse" && !has("toolCall")) return true;
  return content.every(
    (block) =>
      (block.type === "text" && block.text === "") ||
      (block.type === "thinking" && block.thinking === "" && block.signature === undefined),
  );
}

function withoutIds({ content }: AssistantMessage): unknown[] {
  return content.map((block) => (block.type === "toolCall" ? { ...block, id: "" } : block));
}

function joinTexts({ content }: AssistantMessage): string {
  return content
    .map((block) => {
      if (block.type === "text") return `text ${block.text}`;
      return block.type === "thinking" ? `thinking ${block.thinking}` : "";
    })
    .join("");
}
