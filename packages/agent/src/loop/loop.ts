import { EventStream, joinDeltas, type AssistantMessage, type StreamFn } from "@gyre/ai";
import {
  type Answers,
  answerCalls,
  answerWith,
  mayRun,
  neverRunResult,
  noAnswers,
} from "./tool-calls.ts";
import { SinkError } from "../run/emitter.ts";
import { callsOf, endedInTrouble, isLlmMessage } from "../transcript/history.ts";
import { repair } from "./repair.ts";
import { failedMessage, respond } from "./model-call.ts";
import { Cancelled, type Injected, Run } from "../run/run.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentEventStream,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentStop,
} from "../contract/types.ts";

/**
 * Runs the loop on new prompts: the model answers, its calls are run, the results
 * go back, until there is nothing left to do. Stateless: `context` is not changed.
 * Throws at once on a configuration that cannot work; whatever happens later is in
 * the stream, which always ends with `agent_end`.
 */
export function agentLoop(
  prompts: readonly AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentEventStream {
  return streamOf((sink) => new Run(context, config, sink, signal, streamFn), prompts);
}

/** Runs the loop on the context as it is. Throws where there is nothing to answer (R19). */
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentEventStream {
  assertContinuable(context.messages);
  return streamOf((sink) => new Run(context, config, sink, signal, streamFn), []);
}

/**
 * The same, with a sink that takes each event before the loop goes on (R25). With
 * no prompts it continues. Rejects only with `SinkError`, and with what the other
 * entry points throw at the call.
 */
export async function runAgentLoop(
  prompts: readonly AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  sink: AgentSink,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AgentMessage[]> {
  if (prompts.length === 0) assertContinuable(context.messages);
  const run = new Run(context, config, sink, signal, streamFn);
  return (await drive(run, asPrompts(prompts))).messages;
}

/** A stream of agent events whose result is the run's messages. */
export function createAgentStream(): AgentEventStream {
  return new EventStream<AgentEvent, AgentMessage[]>(
    (event) => event.type === "agent_end",
    (event) => (event.type === "agent_end" ? event.messages : []),
    joinUpdates,
  );
}

/**
 * One response of the model with its message events put into `stream`: the middle
 * of the loop, for those who build their own around it.
 */
export async function streamAssistantResponse(
  context: AgentContext,
  config: AgentLoopConfig,
  stream: AgentEventStream,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AssistantMessage> {
  const run = new Run(context, config, (event) => stream.push(event), signal, streamFn);
  try {
    return await respondOrFail(run);
  } finally {
    run.close();
  }
}

/** Runs to the end. Rejects with `SinkError` alone. */
export async function drive(run: Run, injected: Injected[]): Promise<AgentEndEvent> {
  let taken: AgentEndEvent | undefined;
  const ended = run.open();
  try {
    run.inFlight = injected;
    await run.emit({ type: "agent_start" });
    let next: AgentStop | "go on" = "go on";
    while (next === "go on") {
      next = await turn(run);
      const breath = run.breath.look();
      if (breath) await breath;
    }
    const end = endOf(run, next);
    const reached = next === "limit" ? run.limitReached() : undefined;
    if (reached) {
      end.limit = reached.limit;
      await run.emit({ type: "limit", ...reached });
    }
    await run.emit(end);
    taken = end;
    return end;
  } finally {
    run.returnInFlight();
    run.close();
    ended(taken);
  }
}

/** One turn, and what comes of it. */
async function turn(run: Run): Promise<AgentStop | "go on"> {
  let answers = noAnswers();
  const first = run.turns === 0;
  let message: AssistantMessage | undefined;
  let trouble: { error: unknown } | undefined;
  run.turns++;
  // An await that has nothing to wait for costs as much as one that has: on the way of
  // every turn it is done without.
  const begun = run.emit({ type: "turn_start" });
  if (begun) await begun;
  try {
    const repaired = first ? await repair(run) : undefined;
    if (repaired?.waiting) {
      message = repaired.waiting;
      answers = repaired.answers;
      await inject(run, "prompt");
    } else {
      if (first && !run.config.skipInitialSteeringPoll) await run.poll("steering");
      if (run.inFlight.length > 0) await inject(run);
      message = await respond(run);
      const answered = answer(run, message, answers);
      if (answered) await answered;
    }
  } catch (error) {
    if (error instanceof SinkError) throw error;
    if (message) trouble = { error };
    else {
      await inject(run, "prompt");
      message = await publishFailure(run, error);
    }
  }
  const ended = run.emit({ type: "turn_end", message, toolResults: answers.results });
  if (ended) await ended;
  if (!trouble) {
    try {
      return await afterTurn(run, message, answers);
    } catch (error) {
      if (error instanceof SinkError) throw error;
      trouble = { error };
    }
  }
  return failureTurn(run, trouble.error);
}

/** Puts what is in flight into the transcript. What comes from a queue waits out an abort. */
async function inject(run: Run, only?: "prompt"): Promise<void> {
  for (let next = run.inFlight[0]; next; next = run.inFlight[0]) {
    if (next.source !== "prompt" && (only || run.cancelled)) return;
    await run.publish(next.message);
    run.inFlight.shift();
  }
}

/** Answers the calls of a message, whatever it ended with. */
function answer(run: Run, message: AssistantMessage, answers: Answers): void | Promise<void> {
  const calls = callsOf(message);
  run.gauge.count(message, calls.length);
  if (calls.length === 0) return undefined;
  if (mayRun(message)) return answerCalls(run, calls, answers);
  return (async () => {
    for (const call of calls) {
      await answerWith(run, call, neverRunResult(run, message, call), answers);
    }
  })();
}

/** What follows a turn, in the order of R28. */
async function afterTurn(
  run: Run,
  message: AssistantMessage,
  answers: Answers,
): Promise<AgentStop | "go on"> {
  const { config } = run;
  const summary = run.summary(message, answers.results);
  if (run.cancelled) return run.cancelled;
  if (run.pending.length > 0) return "suspended";
  if (message.stopReason === "error" || message.stopReason === "aborted") return message.stopReason;
  const called = answers.results.length > 0;
  if (called && answers.terminating === answers.results.length) return "terminated";
  const { shouldStopAfterTurn, prepareTurn } = config;
  if (
    shouldStopAfterTurn &&
    (await run.hook("shouldStopAfterTurn", () => shouldStopAfterTurn(summary)))
  ) {
    return "stopped";
  }
  const mustGoOn =
    called ||
    run.inFlight.length > 0 ||
    message.stopReason === "pause" ||
    message.stopReason === "redirected";
  // Before any queue is drained (R23), so that nothing is taken that cannot be given.
  if (run.limitReached() && (mustGoOn || config.hasQueuedMessages?.())) return "limit";
  if (run.limitReached()) return "done";
  const steered = answers.steered || (await run.poll("steering"));
  const followed = !mustGoOn && !steered && (await run.poll("followUp"));
  if (run.cancelled) return run.cancelled;
  if (!mustGoOn && !steered && !followed) return "done";
  if (prepareTurn) run.change(await run.hook("prepareTurn", () => prepareTurn(summary)));
  return "go on";
}

async function respondOrFail(run: Run): Promise<AssistantMessage> {
  try {
    return await respond(run);
  } catch (error) {
    if (error instanceof SinkError) throw error;
    return publishFailure(run, error);
  }
}

async function publishFailure(run: Run, error: unknown): Promise<AssistantMessage> {
  const message = failedMessage(run, error);
  await run.emit({ type: "message_start", message });
  await run.emit({ type: "message_end", message });
  run.accept(message);
  return message;
}

/** A turn whose only content is what went wrong after the last one had its answer (R5). */
async function failureTurn(run: Run, error: unknown): Promise<AgentStop> {
  if (run.cancelled && error instanceof Cancelled) return run.cancelled;
  run.turns++;
  await run.emit({ type: "turn_start" });
  const message = await publishFailure(run, error);
  await run.emit({ type: "turn_end", message, toolResults: [] });
  return run.cancelled ?? "error";
}

/** The last event. What is still in flight is handed back before it. */
export function endOf(run: Run, stop: AgentStop): AgentEndEvent {
  return {
    type: "agent_end",
    messages: run.produced,
    stop,
    turns: run.turns,
    usage: run.usage,
    ...(run.finalMessage && { finalMessage: run.finalMessage }),
    undelivered: run.returnInFlight(),
    pending: run.pending,
  };
}

/** Throws where `continue` has nothing to answer (R19). */
export function assertContinuable(messages: readonly AgentMessage[]): void {
  if (messages.length === 0) throw new Error("Cannot continue: no messages in context");
  const last = messages.findLast((message) => !isLookedPast(message));
  if (!last) throw new Error("Cannot continue: no messages in context");
  if (!isLlmMessage(last) || last.role !== "assistant") return;
  if (callsOf(last).length > 0) return;
  throw new Error("Cannot continue from message role: assistant");
}

function isLookedPast(message: AgentMessage): boolean {
  if (!isLlmMessage(message) || message.role !== "assistant") return false;
  return endedInTrouble(message) && callsOf(message).length === 0;
}

function streamOf(
  open: (sink: AgentSink) => Run,
  prompts: readonly AgentMessage[],
): AgentEventStream {
  const stream = createAgentStream();
  const run = open((event) => stream.push(event));
  // A stream's push does not fail; whatever else might, no stream is left open.
  drive(run, asPrompts(prompts)).catch((error: unknown) => stream.fail(error));
  return stream;
}

export function asPrompts(messages: readonly AgentMessage[]): Injected[] {
  return messages.map((message) => ({ source: "prompt", message }));
}

/** One event of two neighbours that wait: deltas of a block, or progress of a call, the newest. */
export function joinUpdates(last: AgentEvent, next: AgentEvent): AgentEvent | undefined {
  if (last.type === "tool_execution_update" && next.type === "tool_execution_update") {
    return last.toolCallId === next.toolCallId ? next : undefined;
  }
  if (last.type !== "message_update" || next.type !== "message_update") return undefined;
  const joined = joinDeltas(last.assistantMessageEvent, next.assistantMessageEvent);
  return joined && { ...next, assistantMessageEvent: joined };
}
