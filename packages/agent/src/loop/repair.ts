import { type AssistantMessage, errorMessage, type ToolCall } from "@gyre/ai";
import type { AgentToolResult, Decision, UnfinishedCall } from "../contract/types.ts";
import { SinkError } from "../run/emitter.ts";
import type { Run } from "../run/run.ts";
import {
  type CallResults,
  mayRun,
  neverRunResult,
  ResultPublisher,
  SKIPPED_TEXT,
  startCall,
} from "./tool-calls.ts";
import {
  errorResult,
  interruptedResult,
  notBegunResult,
  notStartedResult,
  toResult,
} from "./tool-execution.ts";

/**
 * Answers calls that have no result: a crash cut the run off (R19), or it waited for a person
 * (R27). Each result goes to its place behind its call. `waiting` is the message whose calls
 * still wait. Throws what a callback threw, after every call is answered.
 */
export async function repairTranscript(
  run: Run,
): Promise<{ waiting: AssistantMessage | undefined; answered: CallResults }> {
  const repair: Repair = { run, publisher: new ResultPublisher(run, true), steered: false };
  let waiting: AssistantMessage | undefined;
  for (const { message, calls } of run.history.unanswered()) {
    for (const call of calls) {
      try {
        const isPending = await answerCall(repair, message, call);
        if (isPending) waiting = message;
      } catch (error) {
        if (error instanceof SinkError) throw error;
        repair.thrown ??= { error };
        await repair.publisher.answer(call, interruptedResult(call));
      }
    }
  }
  if (repair.thrown) throw repair.thrown.error;
  return { waiting, answered: repair.publisher.toResults(repair.steered) };
}

interface Repair {
  run: Run;
  publisher: ResultPublisher;
  /** A poll among the calls brought steering messages. */
  steered: boolean;
  /** What a callback threw. */
  thrown?: { error: unknown };
}

/** Resolves to true where the call waits for a person. */
async function answerCall(
  repair: Repair,
  message: AssistantMessage,
  call: ToolCall,
): Promise<boolean> {
  const { run, publisher } = repair;
  const decided = run.config.decisions?.[call.id];
  const known = run.config.unfinished?.(call.id);
  const decision = decided ?? (isDecision(known) ? known : undefined);
  if (decision?.type === "wait") {
    const { type: _type, reason = "Not decided yet.", ...question } = decision;
    run.pending.push({ toolCall: call, reason, ...question });
    return true;
  }
  const result =
    resultWithoutRunning(run, message, call, decision, known) ??
    // A decision that comes with the run is newer than what waits in the queue.
    (decided ? undefined : await skippedResult(repair, call));
  if (!result) return publisher.publishAll([await startCall(run, call, decision)]);
  await publisher.answer(call, result);
  return false;
}

/** The result of a call that would run while a steering message waits (R15). */
async function skippedResult(repair: Repair, call: ToolCall): Promise<AgentToolResult | undefined> {
  const { run } = repair;
  if (run.config.steering === "after-batch") return undefined;
  try {
    repair.steered ||= await run.poll("steering");
  } catch (error) {
    repair.thrown ??= { error };
    if (run.canceled) return notStartedResult(run, call);
    return errorResult(`Tool "${call.name}" was not run: ${errorMessage(error)}`);
  }
  return repair.steered ? errorResult(SKIPPED_TEXT, "skipped") : undefined;
}

function isDecision(known: UnfinishedCall | undefined): known is Decision {
  return typeof known === "object" && "type" in known;
}

/** The result that takes the place of running the tool; nothing where the tool is run. */
function resultWithoutRunning(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
  decision: Decision | undefined,
  known: UnfinishedCall | undefined,
): AgentToolResult | undefined {
  if (decision?.type === "result") return toResult(call.name, decision.result);
  if (decision?.type === "deny") {
    const why = decision.reason ? `: ${decision.reason}` : ".";
    return errorResult(`Tool "${call.name}" was denied${why}`, "denied", decision.reason);
  }
  if (typeof known === "object" && !isDecision(known)) return toResult(call.name, known);
  if (!mayRun(message)) return neverRunResult(run, message, call);
  if (run.canceled) return notStartedResult(run, call);
  const mayStart = decision?.type === "approve" || known === "run";
  if (mayStart || run.findTool(call.name)?.idempotent) return undefined;
  return known ? notBegunResult(call) : interruptedResult(call);
}
