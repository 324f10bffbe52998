import {
  type AssistantMessage,
  errorMessage,
  isThenable,
  outcomeOf,
  type ToolCall,
  type ToolResultMessage,
  loadPart,
} from "@gyre/ai";
import { SinkError } from "../run/emitter.ts";
import { listCalls, isIncomplete } from "../transcript/history.ts";
import { loadContextParts } from "../context/load.ts";
import type { Run } from "../run/run.ts";
import {
  abortedResult,
  type CallOutcome,
  errorResult,
  executeCall,
  notStartedResult,
} from "./tool-execution.ts";
import type { AgentEvent, AgentToolResult, Decision, UnfinishedCall } from "../contract/types.ts";

export const DEFAULT_MAX_TOOL_CONCURRENCY = 10;
/** The result of a call that a steering message skipped. */
export const SKIPPED_TEXT = "Skipped due to queued user message.";

/** What became of the calls of a message. */
export interface CallResults {
  /** In call order. */
  results: readonly ToolResultMessage[];
  /** Every result asks for the run to end. */
  terminate: boolean;
  /** A poll among the calls brought steering messages. */
  steered: boolean;
  /** What a callback threw. The calls are answered nevertheless. */
  thrown?: { error: unknown };
}

export const NO_RESULTS: CallResults = { results: [], terminate: false, steered: false };

/**
 * Publishes one result for each call of a message, in call order, on every path: runs the calls,
 * or answers those that may not run. Throws only where the sink has failed.
 */
export function answerCalls(
  run: Run,
  message: AssistantMessage,
): CallResults | Promise<CallResults> {
  const calls = listCalls(message);
  run.gauge.count(message, calls.length);
  if (calls.length === 0) return NO_RESULTS;
  return mayRun(message) ? runCalls(run, calls) : refuseCalls(run, message, calls);
}

async function refuseCalls(
  run: Run,
  message: AssistantMessage,
  calls: readonly ToolCall[],
): Promise<CallResults> {
  const publisher = new ResultPublisher(run);
  for (const call of calls) await publisher.answer(call, neverRunResult(run, message, call));
  return publisher.toResults(false);
}

/** Runs the calls, alone or together. A steering message keeps the rest from running (R15). */
async function runCalls(run: Run, calls: readonly ToolCall[]): Promise<CallResults> {
  const policy = run.config.steering ?? "skip-remaining";
  const publisher = new ResultPublisher(run);
  let started = 0;
  let steered = false;
  let refuse: ((call: ToolCall) => AgentToolResult) | undefined;
  let thrown: { error: unknown } | undefined;
  try {
    for (const batch of groupCalls(run, calls)) {
      const running: RunningCall[] = [];
      const slots = new Slots(run.config.maxToolConcurrency);
      try {
        for (const call of batch) {
          if (slots.full) await slots.waitForFree();
          // As many as may run at once start together, with no turn of the event loop between.
          const yielded = running.length % slots.max === 0 ? run.eventLoop.maybeYield() : undefined;
          if (yielded) await yielded;
          const mayPoll = started > 0 && policy !== "after-batch" && !run.canceled;
          if (mayPoll && (await run.poll("steering"))) {
            steered = true;
            refuse = () => errorResult(SKIPPED_TEXT, "skipped");
          }
          if (run.canceled) refuse = (left) => notStartedResult(run, left);
          if (refuse) break;
          running.push(await startCall(run, call, undefined, slots));
          started++;
        }
      } finally {
        await publisher.publishAll(running);
      }
      if (refuse) break;
    }
    if (!steered && (await run.poll("steering"))) steered = true;
  } catch (error) {
    if (error instanceof SinkError) throw error;
    thrown = { error };
    refuse = run.canceled
      ? (left) => notStartedResult(run, left)
      : (left) => errorResult(`Tool "${left.name}" was not run: ${errorMessage(error)}`);
  }
  for (const call of calls.slice(started)) {
    await publisher.answer(call, refuse?.(call) ?? abortedResult(run, call));
  }
  return publisher.toResults(steered, run.canceled ? undefined : thrown);
}

export function isDecision(known: UnfinishedCall | undefined): known is Decision {
  return typeof known === "object" && "type" in known;
}

/** Whether the calls of a message are run at all: not if it is incomplete, nor if one may be cut off. */
export function mayRun(message: AssistantMessage): boolean {
  return !isIncomplete(message) && message.stopReason !== "length";
}

export function neverRunResult(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
): AgentToolResult {
  const what = `Tool "${call.name}" was not run: the response`;
  if (message.stopReason === "length") {
    return errorResult(
      `${what} was cut off at its length limit, and the call may be incomplete. Send it again in smaller pieces.`,
      "truncated",
      "the response was cut off at its length limit",
    );
  }
  if (run.canceled) return notStartedResult(run, call);
  return errorResult(`${what} ended with an error.`);
}

/** Puts the results of calls into the transcript, one after the other. */
export class ResultPublisher {
  readonly #run: Run;
  readonly #inPlace: boolean;
  readonly #results: ToolResultMessage[] = [];
  #terminating = 0;

  /** `inPlace`: the calls are of an earlier message, and the results go behind that one. */
  constructor(run: Run, inPlace = false) {
    this.#run = run;
    this.#inPlace = inPlace;
  }

  /** Answers a call that is not run, with all of its events. */
  async answer(call: ToolCall, result: AgentToolResult): Promise<void> {
    const run = this.#run;
    const capped = await capResult(run, call, result);
    await emitStart(run, call);
    await emitEnd(run, call, capped, 0);
    await this.#publish(call, capped);
  }

  /** Waits for all the calls, then publishes their results. True if one waits for a person. */
  async publishAll(running: readonly RunningCall[]): Promise<boolean> {
    let isPending = false;
    const settled: { call: ToolCall; outcome: CallOutcome }[] = [];
    for (const { call, outcome } of running) settled.push({ call, outcome: await outcome });
    for (const { call, outcome } of settled) {
      if ("suspended" in outcome) {
        const { message: reason, question } = outcome.suspended;
        this.#run.pending.push({ toolCall: call, reason, ...question });
        isPending = true;
      } else await this.#publish(call, outcome.result);
    }
    return isPending;
  }

  toResults(steered: boolean, thrown?: { error: unknown }): CallResults {
    const results = this.#results;
    const terminate = results.length > 0 && this.#terminating === results.length;
    return { results, terminate, steered, ...(thrown && { thrown }) };
  }

  async #publish(call: ToolCall, result: AgentToolResult): Promise<void> {
    const message = toResultMessage(this.#run, call, result);
    await this.#run.publishResult(message, this.#inPlace);
    this.#results.push(message);
    if (result.terminate) this.#terminating++;
  }
}

/** A call whose start was emitted. */
export interface RunningCall {
  call: ToolCall;
  outcome: Promise<CallOutcome>;
}

/** Emits the start of a call and lets it run. `outcome` settles after the end was emitted. */
export async function startCall(
  run: Run,
  call: ToolCall,
  decision?: Decision,
  slots?: Slots,
  execute: typeof executeCall = executeCall,
): Promise<RunningCall> {
  const begun = emitStart(run, call);
  if (begun) await begun;
  slots?.take();
  const outcome = runCall(run, call, decision, slots, execute);
  // It is awaited later; until then a failure of the sink is not an unhandled rejection.
  outcome.catch(() => {});
  return { call, outcome };
}

/** Asks the tool what became of a call that a crash cut off. `skip`: see `recoverCall`. */
export async function startRecovery(
  run: Run,
  call: ToolCall,
  skip: () => Promise<AgentToolResult | undefined>,
): Promise<RunningCall> {
  const { recoverCall } = await loadPart(import("./recover.ts"));
  return startCall(run, call, undefined, undefined, () => recoverCall(run, call, skip));
}

async function runCall(
  run: Run,
  call: ToolCall,
  decision: Decision | undefined,
  slots: Slots | undefined,
  execute: typeof executeCall,
): Promise<CallOutcome> {
  const startedAt = run.clock.now();
  const outcome = await execute(run, call, decision);
  slots?.release();
  if ("result" in outcome) {
    const durationMs = run.clock.now() - startedAt;
    // Before its end is emitted, so that journal, listeners and transcript have the same.
    const capped = capResult(run, call, outcome.result);
    outcome.result = isThenable(capped) ? await capped : capped;
    const ended = emitEnd(run, call, outcome.result, durationMs);
    if (ended) await ended;
  }
  return outcome;
}

function emitStart(run: Run, { id, name, arguments: args }: ToolCall): void | Promise<void> {
  return run.emit({ type: "tool_execution_start", toolCallId: id, toolName: name, args });
}

function emitEnd(
  run: Run,
  call: ToolCall,
  result: AgentToolResult,
  durationMs: number,
): void | Promise<void> {
  const outcome = outcomeOf(result);
  const event: Extract<AgentEvent, { type: "tool_execution_end" }> = {
    type: "tool_execution_end",
    toolCallId: call.id,
    toolName: call.name,
    result,
    outcome,
    isError: outcome !== "ok",
    durationMs,
  };
  if (event.isError && result.reason !== undefined) event.reason = result.reason;
  return run.emit(event);
}

/** Its fields are in the order in which a session file gives them back: a prefix that is cached stays. */
function toResultMessage(run: Run, call: ToolCall, result: AgentToolResult): ToolResultMessage {
  const { details, reason, shortened } = result;
  const outcome = outcomeOf(result);
  const isError = outcome !== "ok";
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: result.content.length > 0 ? result.content : [{ type: "text", text: "(no output)" }],
    ...(details !== undefined && { details }),
    ...(shortened && { shortened }),
    isError,
    outcome,
    ...(isError && reason !== undefined && { reason }),
    timestamp: run.clock.now(),
  };
}

/** Groups of calls that run together: neighbors that may, or all, or each alone. */
function groupCalls(run: Run, calls: readonly ToolCall[]): ToolCall[][] {
  const mode = run.config.toolExecution ?? "auto";
  if (mode === "parallel") return [[...calls]];
  const groups: ToolCall[][] = [];
  let open: ToolCall[] | undefined;
  for (const call of calls) {
    const together = mode === "auto" && run.findTool(call.name)?.concurrent === true;
    if (together && open) open.push(call);
    else groups.push([call]);
    open = together ? groups.at(-1) : undefined;
  }
  return groups;
}

/** Limits how many calls run at once. */
class Slots {
  readonly max: number;
  #left: number;
  #wake: (() => void) | undefined;

  constructor(max: number = DEFAULT_MAX_TOOL_CONCURRENCY) {
    this.max = Math.max(1, max);
    this.#left = this.max;
  }

  get full(): boolean {
    return this.#left < 1;
  }

  take(): void {
    this.#left--;
  }

  release(): void {
    this.#left++;
    this.#wake?.();
  }

  waitForFree(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** A result that is not too long for the transcript (R24). */
function capResult(
  run: Run,
  call: ToolCall,
  result: AgentToolResult,
): AgentToolResult | Promise<AgentToolResult> {
  if (!run.config.context) return result;
  const parts = loadContextParts();
  return isThenable(parts)
    ? parts.then((loaded) => loaded.capResult(run, call, result))
    : parts.capResult(run, call, result);
}
