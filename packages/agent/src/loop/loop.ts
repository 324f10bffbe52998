import {
  type AssistantMessage,
  EventStream,
  isThenable,
  joinDeltas,
  type StreamFn,
  loadPart,
} from "@gyre/ai";
import { SinkError } from "../run/emitter.ts";
import { Canceled } from "../run/hooks.ts";
import type { Injected } from "../run/inbox.ts";
import { Run, type RunSetup } from "../run/run.ts";
import { isAssistant, isBrokenOffText, listCalls } from "../transcript/history.ts";
import { failedMessage } from "./failed-message.ts";
import { respond } from "./model-call.ts";
import { answerCalls, type CallResults, NO_RESULTS } from "./tool-calls.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentEventStream,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentStop,
  TurnSummary,
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
  return startStream(prompts, { context, config, signal, streamFn });
}

/** Runs the loop on the context as it is. Throws where there is nothing to answer (R19). */
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentEventStream {
  assertContinuable(context.messages);
  return startStream([], { context, config, signal, streamFn });
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
  const run = new Run({ context, config, sink, signal, streamFn });
  return (await drive(run, toPrompts(prompts))).messages;
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
 * of the loop, for applications that build their own around it.
 */
export async function streamAssistantResponse(
  context: AgentContext,
  config: AgentLoopConfig,
  stream: AgentEventStream,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AssistantMessage> {
  const sink: AgentSink = (event) => stream.push(event);
  const run = new Run({ context, config, sink, signal, streamFn });
  try {
    return await respond(run);
  } catch (error) {
    if (error instanceof SinkError) throw error;
    return await publishFailure(run, error);
  } finally {
    run.close();
  }
}

/** Runs to the end. Rejects with `SinkError` alone. */
export async function drive(run: Run, injected: readonly Injected[]): Promise<AgentEndEvent> {
  let taken: AgentEndEvent | undefined;
  const notifyEnd = run.open();
  try {
    run.inbox.add(injected);
    await run.emit({ type: "agent_start" });
    let next: AgentStop | "continue" = "continue";
    while (next === "continue") {
      next = await takeTurn(run);
      const yielded = run.eventLoop.maybeYield();
      if (yielded) await yielded;
    }
    const end = makeEnd(run, next);
    const reached = next === "limit" ? run.limitReached() : undefined;
    if (reached) {
      end.limit = reached.limit;
      await run.emit({ type: "limit", ...reached });
    }
    await run.emit(end);
    taken = end;
    return end;
  } finally {
    run.inbox.returnToQueues();
    run.close();
    notifyEnd(taken);
  }
}

/**
 * One turn: a response, the results of its calls, and the decision what follows. An error of a
 * callback is a message, too.
 */
async function takeTurn(run: Run): Promise<AgentStop | "continue"> {
  const isFirst = !run.hasBegun;
  run.hasBegun = true;
  run.turns++;
  // On the path of every turn the loop waits only where there is something to wait for: ten
  // awaits that have nothing cost a turn a tenth of its time.
  const begun = run.emit({ type: "turn_start" });
  if (begun) await begun;
  let message: AssistantMessage;
  let answered: CallResults | undefined;
  try {
    const open = isFirst ? run.history.unanswered() : [];
    const repaired =
      open.length > 0
        ? await (await loadPart(import("./repair.ts"))).repairTranscript(run, open)
        : isFirst && { waiting: undefined, answered: NO_RESULTS };
    const mayEnd =
      repaired && (repaired.waiting || repaired.answered.terminate || run.config.interrupted);
    const earlier =
      mayEnd && (await loadPart(import("./earlier-turn.ts"))).findEarlierTurn(run, repaired);
    if (earlier) {
      await inject(run, "prompt");
      ({ message, answered } = earlier);
    } else {
      const isSteered =
        (repaired && repaired.answered.steered) || run.config.skipInitialSteeringPoll;
      if (isFirst && !isSteered) await run.poll("steering");
      if (!run.inbox.isEmpty) await inject(run);
      message = await respond(run);
    }
  } catch (error) {
    if (error instanceof SinkError) throw error;
    await inject(run, "prompt");
    message = await publishFailure(run, error);
    answered = NO_RESULTS;
  }
  if (!answered) {
    const answering = answerCalls(run, message);
    answered = isThenable(answering) ? await answering : answering;
  }
  const ended = run.emit({ type: "turn_end", message, toolResults: answered.results });
  if (ended) await ended;
  if (answered.thrown) return takeFailedTurn(run, answered.thrown.error);
  try {
    return await decideNext(run, message, answered);
  } catch (error) {
    if (error instanceof SinkError) throw error;
    return takeFailedTurn(run, error);
  }
}

/** Delivers the inbox to the transcript. What comes from a queue is not delivered after an abort. */
async function inject(run: Run, only?: "prompt"): Promise<void> {
  for (let next = run.inbox.first; next; next = run.inbox.first) {
    if (next.source !== "prompt" && (only || run.canceled)) return;
    await run.publish(next.message);
    run.inbox.remove();
  }
}

/** What follows a turn, in the order of R28. */
async function decideNext(
  run: Run,
  message: AssistantMessage,
  { results, steered: alreadySteered, terminate }: CallResults,
): Promise<AgentStop | "continue"> {
  const { config } = run;
  const { continueAfterError, prepareTurn, shouldStopAfterTurn } = config;
  const { history, turns, usage } = run;
  const { messages } = history;
  const summary: TurnSummary = { message, toolResults: results, messages, turns, usage };
  if (run.canceled) return run.canceled;
  if (run.pending.length > 0) return "suspended";
  if (message.stopReason === "aborted") return "aborted";
  if (message.stopReason === "error") {
    const goesOn =
      continueAfterError &&
      !run.limitReached() &&
      (await run.hooks.call("continueAfterError", () => continueAfterError(summary)));
    if (!goesOn) return "error";
  }
  if (terminate) return "terminated";
  if (
    shouldStopAfterTurn &&
    (await run.hooks.call("shouldStopAfterTurn", () => shouldStopAfterTurn(summary)))
  ) {
    return "stopped";
  }
  const mustContinue =
    results.length > 0 ||
    !run.inbox.isEmpty ||
    message.stopReason === "error" ||
    message.stopReason === "toolUse" ||
    message.stopReason === "pause" ||
    message.stopReason === "redirected";
  // Before any queue is drained (R23), so that nothing is taken that cannot be delivered.
  if (run.limitReached()) return mustContinue || config.hasQueuedMessages?.() ? "limit" : "done";
  const steered = alreadySteered || (await run.poll("steering"));
  const followed = !mustContinue && !steered && (await run.poll("followUp"));
  if (run.canceled) return run.canceled;
  if (!mustContinue && !steered && !followed) return "done";
  if (prepareTurn)
    run.applyChanges(await run.hooks.call("prepareTurn", () => prepareTurn(summary)));
  return "continue";
}

async function publishFailure(run: Run, error: unknown): Promise<AssistantMessage> {
  const message = failedMessage(run, error);
  await run.emitMessage(message);
  run.addAnswer(message);
  return message;
}

/** A turn whose only content is what went wrong after the last one had its answer (R5). */
async function takeFailedTurn(run: Run, error: unknown): Promise<AgentStop> {
  if (run.canceled && error instanceof Canceled) return run.canceled;
  run.turns++;
  await run.emit({ type: "turn_start" });
  const message = await publishFailure(run, error);
  await run.emit({ type: "turn_end", message, toolResults: [] });
  return run.canceled ?? "error";
}

/** The last event. What is still in the inbox returns to its queue before it. */
export function makeEnd(run: Run, stop: AgentStop): AgentEndEvent {
  run.hasEnded = true;
  return {
    type: "agent_end",
    messages: run.produced,
    stop,
    turns: run.turns,
    usage: run.usage,
    ...(run.finalMessage && { finalMessage: run.finalMessage }),
    undelivered: run.inbox.returnToQueues(),
    pending: run.pending,
  };
}

/** Throws where `continue` has nothing to answer (R19). */
export function assertContinuable(messages: readonly AgentMessage[]): void {
  const last = messages.findLast((message): boolean => !isBrokenOffText(message));
  if (!last) throw new Error("Cannot continue: no messages in context");
  if (!isAssistant(last) || last.stopReason === "pause" || listCalls(last).length > 0) return;
  throw new Error("Cannot continue from message role: assistant");
}

function startStream(
  prompts: readonly AgentMessage[],
  setup: Omit<RunSetup, "sink">,
): AgentEventStream {
  const stream = createAgentStream();
  const run = new Run({ ...setup, sink: (event) => stream.push(event) });
  // A stream's push does not fail; if anything else does, the stream is not left open.
  drive(run, toPrompts(prompts)).catch((error: unknown) => stream.fail(error));
  return stream;
}

export function toPrompts(messages: readonly AgentMessage[]): Injected[] {
  return messages.map((message) => ({ source: "prompt", message }));
}

/** Joins two neighbors in a queue: deltas of a block, or progress of a call, where the newest stays. */
export function joinUpdates(last: AgentEvent, next: AgentEvent): AgentEvent | undefined {
  if (last.type === "tool_execution_update" && next.type === "tool_execution_update") {
    return last.toolCallId === next.toolCallId ? next : undefined;
  }
  if (last.type !== "message_update" || next.type !== "message_update") return undefined;
  const joined = joinDeltas(last.assistantMessageEvent, next.assistantMessageEvent);
  return joined && { ...next, assistantMessageEvent: joined };
}
