import type { AssistantMessage, ToolCall } from "@gyre/ai";
import type { AgentToolResult, Decision } from "../contract/types.ts";
import { SinkError } from "../run/emitter.ts";
import type { Run } from "../run/run.ts";
import {
  type CallResults,
  mayRun,
  neverRunResult,
  ResultPublisher,
  startCall,
} from "./tool-calls.ts";
import { errorResult, notStartedResult, toResult } from "./tool-execution.ts";

/**
 * Answers calls that have no result: a crash cut the run off (R19), or it waited for a person
 * (R27). Each result goes to its place behind its call. `waiting` is the message whose calls
 * still wait. Throws what a callback threw, after every call is answered.
 */
export async function repairTranscript(
  run: Run,
): Promise<{ waiting: AssistantMessage | undefined; answered: CallResults }> {
  const publisher = new ResultPublisher(run, true);
  let waiting: AssistantMessage | undefined;
  let thrown: { error: unknown } | undefined;
  for (const { message, calls } of run.history.unanswered()) {
    for (const call of calls) {
      try {
        const isPending = await answerCall(run, message, call, publisher);
        if (isPending) waiting = message;
      } catch (error) {
        if (error instanceof SinkError) throw error;
        thrown ??= { error };
        await publisher.answer(call, interruptedResult(call));
      }
    }
  }
  if (thrown) throw thrown.error;
  return { waiting, answered: publisher.toResults(false) };
}

/** Resolves to true where the call waits for a person. */
async function answerCall(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
  publisher: ResultPublisher,
): Promise<boolean> {
  const decision = run.config.decisions?.[call.id];
  if (decision?.type === "wait") {
    run.pending.push({ toolCall: call, reason: decision.reason ?? "Not decided yet." });
    return true;
  }
  const result = resultWithoutRunning(run, message, call, decision);
  if (!result) return publisher.publishAll([await startCall(run, call, decision)]);
  await publisher.answer(call, result);
  return false;
}

/** The result that takes the place of running the tool; nothing where the tool is run. */
function resultWithoutRunning(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
  decision: Decision | undefined,
): AgentToolResult | undefined {
  if (decision?.type === "result") return toResult(call.name, decision.result);
  if (decision?.type === "deny") {
    const why = decision.reason ? `: ${decision.reason}` : ".";
    return errorResult(`Tool "${call.name}" was denied${why}`, "denied", decision.reason);
  }
  const recorded = run.config.recordedResult?.(call.id);
  if (recorded) return toResult(call.name, recorded);
  if (!mayRun(message)) return neverRunResult(run, message, call);
  if (run.canceled) return notStartedResult(run, call);
  if (decision?.type === "approve" || run.findTool(call.name)?.idempotent) return undefined;
  return interruptedResult(call);
}

function interruptedResult(call: ToolCall): AgentToolResult {
  return errorResult(
    `Interrupted: the run ended before tool "${call.name}" gave its result. Whether it had effects is not known; look before you call it again.`,
    "interrupted",
    "the run ended before it gave its result; its effects are unknown",
  );
}
