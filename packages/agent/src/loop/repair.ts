import { type AssistantMessage, errorMessage, type ToolCall } from "@gyre/ai";
import type { AgentToolResult, Decision, UnfinishedCall } from "../contract/types.ts";
import { SinkError } from "../run/emitter.ts";
import type { Run } from "../run/run.ts";
import {
  type CallResults,
  isDecision,
  mayRun,
  neverRunResult,
  ResultPublisher,
  SKIPPED_TEXT,
  startCall,
  startRecovery,
} from "./tool-calls.ts";
import {
  deniedResult,
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
  open: ReturnType<Run["history"]["unanswered"]>,
): Promise<{ waiting: AssistantMessage | undefined; answered: CallResults }> {
  const repair: Repair = { run, publisher: new ResultPublisher(run, true), steered: false };
  let waiting: AssistantMessage | undefined;
  for (const { message, calls } of open) {
    for (const call of calls) {
      try {
        if (await answerCall(repair, message, call)) waiting = message;
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
  const skip = (): Promise<AgentToolResult | undefined> => skippedResult(repair, call);
  const without = resultWithoutRunning(run, message, call, decision, known);
  if (without === "recover") return publisher.publishAll([await startRecovery(run, call, skip)]);
  // A decision that comes with the run is newer than what waits in the queue.
  const result = without ?? (decided ? undefined : await skip());
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

/**
 * The result that takes the place of running the tool; nothing where the tool is run, and
 * `"recover"` where it knows what became of the call.
 */
function resultWithoutRunning(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
  decision: Decision | undefined,
  known: UnfinishedCall | undefined,
): AgentToolResult | "recover" | undefined {
  if (decision?.type === "result") return toResult(call.name, decision.result);
  if (decision?.type === "deny") return deniedResult(call, decision.reason);
  if (typeof known === "object" && !isDecision(known)) return toResult(call.name, known);
  if (!mayRun(message)) return neverRunResult(run, message, call);
  if (run.canceled) return notStartedResult(run, call);
  const mayStart = decision?.type === "approve" || known === "run";
  const tool = run.findTool(call.name);
  if (mayStart || tool?.idempotent) return undefined;
  if (known !== "not begun") return tool?.recover ? "recover" : interruptedResult(call);
  // A prompt is newer than the call, as steering is.
  return run.inbox.first?.source === "prompt" ? notBegunResult(call) : undefined;
}
