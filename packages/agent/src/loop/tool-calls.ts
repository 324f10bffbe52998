import {
  type AssistantMessage,
  errorMessage,
  isThenable,
  outcomeOf,
  type ToolCall,
  type ToolResultMessage,
} from "@gyre/ai";
import { SinkError } from "../run/emitter.ts";
import { endedInTrouble } from "../transcript/history.ts";
import { capResult } from "../context/long-results.ts";
import type { Run } from "../run/run.ts";
import {
  abortedResult,
  type CallOutcome,
  errorResult,
  executeCall,
  notStartedResult,
} from "./tools.ts";
import type { AgentToolResult, Decision } from "../contract/types.ts";

export const DEFAULT_MAX_TOOL_CONCURRENCY = 10;
/** The result of a call that a steering message skipped. */
export const SKIPPED_TEXT = "Skipped due to queued user message.";

/** The results of a message's calls so far, in call order. */
export interface Answers {
  results: ToolResultMessage[];
  /** How many of the results ask for the run to end. */
  terminating: number;
  /** A poll among the calls gave steering messages. */
  steered: boolean;
  /** The results belong to an earlier message, and go to their place behind it. */
  inPlace: boolean;
}

export function noAnswers(inPlace = false): Answers {
  return { results: [], terminating: 0, steered: false, inPlace };
}

/**
 * Runs the calls of a message, alone or together, and publishes one result for
 * each, in call order, on every path. Throws what a queue callback threw, after
 * the calls are answered, and a sink's failure at once.
 */
export async function answerCalls(
  run: Run,
  calls: readonly ToolCall[],
  answers: Answers,
): Promise<void> {
  const policy = run.config.steering ?? "skip-remaining";
  let started = 0;
  let refuse: ((call: ToolCall) => AgentToolResult) | undefined;
  let trouble: { error: unknown } | undefined;
  try {
    for (const batch of batches(run, calls)) {
      const running: Running[] = [];
      const slots = new Slots(run.config.maxToolConcurrency);
      try {
        for (const call of batch) {
          if (slots.full) await slots.free();
          // As many as may run at once start together, with no turn of the event loop between.
          const breath = running.length % slots.most === 0 ? run.breath.look() : undefined;
          if (breath) await breath;
          const mayPoll = started > 0 && policy !== "after-batch" && !run.cancelled;
          const polled = mayPoll && run.poll("steering");
          if (isThenable(polled) ? await polled : polled) {
            answers.steered = true;
            refuse = () => errorResult(SKIPPED_TEXT, "skipped");
          }
          if (run.cancelled) refuse = (left) => notStartedResult(run, left);
          if (refuse) break;
          running.push(await start(run, call, undefined, slots));
          started++;
        }
      } finally {
        await publishAll(run, running, answers);
      }
      if (refuse) break;
    }
    if (!answers.steered && (await run.poll("steering"))) answers.steered = true;
  } catch (error) {
    if (error instanceof SinkError) throw error;
    trouble = { error };
    refuse = run.cancelled
      ? (left) => notStartedResult(run, left)
      : (left) => errorResult(`Tool "${left.name}" was not run: ${errorMessage(error)}`);
  }
  for (const call of calls.slice(started)) {
    await answerWith(run, call, refuse?.(call) ?? abortedResult(run, call), answers);
  }
  if (trouble && !run.cancelled) throw trouble.error;
}

/** Whether the calls of a message are run at all: not after trouble, nor where one may be cut off. */
export function mayRun(message: AssistantMessage): boolean {
  return !endedInTrouble(message) && message.stopReason !== "length";
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
  if (run.cancelled) return notStartedResult(run, call);
  return errorResult(`${what} ended with an error.`);
}

/** Answers a call that is not run, with all of its events. */
export async function answerWith(
  run: Run,
  call: ToolCall,
  result: AgentToolResult,
  answers: Answers,
): Promise<void> {
  const { id, name } = call;
  const capped = await capResult(run, call, result);
  await run.emit({
    type: "tool_execution_start",
    toolCallId: id,
    toolName: name,
    args: call.arguments,
  });
  await emitEnd(run, call, capped, 0);
  await publishResult(run, call, capped, answers);
}

interface Running {
  call: ToolCall;
  outcome: Promise<CallOutcome>;
}

/** Emits the start and lets the call run; the outcome settles after its end was emitted. */
export async function start(
  run: Run,
  call: ToolCall,
  decision?: Decision,
  slots?: Slots,
): Promise<Running> {
  const started = run.emit({
    type: "tool_execution_start",
    toolCallId: call.id,
    toolName: call.name,
    args: call.arguments,
  });
  if (started) await started;
  slots?.take();
  const outcome = settle(run, call, decision, slots);
  // Awaited later; until then a failure of the sink is not an unhandled one.
  outcome.catch(() => {});
  return { call, outcome };
}

async function settle(
  run: Run,
  call: ToolCall,
  decision: Decision | undefined,
  slots: Slots | undefined,
): Promise<CallOutcome> {
  const startedAt = run.clock.now();
  const outcome = await executeCall(run, call, decision);
  slots?.giveBack();
  if ("result" in outcome) {
    const durationMs = run.clock.now() - startedAt;
    // Before anybody sees it, so that journal, listeners and transcript have the same.
    const capped = capResult(run, call, outcome.result);
    outcome.result = isThenable(capped) ? await capped : capped;
    const ended = emitEnd(run, call, outcome.result, durationMs);
    if (ended) await ended;
  }
  return outcome;
}

export async function publishAll(
  run: Run,
  running: readonly Running[],
  answers: Answers,
): Promise<void> {
  const outcomes: CallOutcome[] = [];
  for (const { outcome } of running) outcomes.push(await outcome);
  for (const [index, { call }] of running.entries()) {
    const outcome = outcomes[index] as CallOutcome;
    if ("suspended" in outcome) run.pending.push({ toolCall: call, reason: outcome.suspended });
    else await publishResult(run, call, outcome.result, answers);
  }
}

function emitEnd(
  run: Run,
  call: ToolCall,
  result: AgentToolResult,
  durationMs: number,
): void | Promise<void> {
  const outcome = outcomeOf(result);
  return run.emit({
    type: "tool_execution_end",
    toolCallId: call.id,
    toolName: call.name,
    result,
    outcome,
    ...(outcome !== "ok" && result.reason !== undefined && { reason: result.reason }),
    isError: outcome !== "ok",
    durationMs,
  });
}

async function publishResult(
  run: Run,
  call: ToolCall,
  result: AgentToolResult,
  answers: Answers,
): Promise<void> {
  const message = resultMessage(run, call, result);
  await run.publishResult(message, answers.inPlace);
  answers.results.push(message);
  if (result.terminate) answers.terminating++;
}

function resultMessage(run: Run, call: ToolCall, result: AgentToolResult): ToolResultMessage {
  const outcome = outcomeOf(result);
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: result.content.length > 0 ? result.content : [{ type: "text", text: "(no output)" }],
    ...(result.details !== undefined && { details: result.details }),
    isError: outcome !== "ok",
    outcome,
    ...(outcome !== "ok" && result.reason !== undefined && { reason: result.reason }),
    timestamp: run.clock.now(),
  };
}

/** Calls that run together: neighbours that may, or all, or each alone. */
function batches(run: Run, calls: readonly ToolCall[]): ToolCall[][] {
  const mode = run.config.toolExecution ?? "auto";
  if (mode === "parallel") return [[...calls]];
  const groups: ToolCall[][] = [];
  let open: ToolCall[] | undefined;
  for (const call of calls) {
    const together = mode === "auto" && run.tool(call.name)?.concurrent === true;
    if (together && open) open.push(call);
    else groups.push([call]);
    open = together ? groups.at(-1) : undefined;
  }
  return groups;
}

/** How many calls may run at once, and who waits for one to end. */
class Slots {
  readonly most: number;
  #left: number;
  #wake: (() => void) | undefined;

  constructor(most: number = DEFAULT_MAX_TOOL_CONCURRENCY) {
    this.most = Math.max(1, most);
    this.#left = this.most;
  }

  get full(): boolean {
    return this.#left < 1;
  }

  take(): void {
    this.#left--;
  }

  giveBack(): void {
    this.#left++;
    this.#wake?.();
  }

  free(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
