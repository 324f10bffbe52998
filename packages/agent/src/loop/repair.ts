import type { AssistantMessage, ToolCall } from "@gyre/ai";
import {
  type Answers,
  answerWith,
  mayRun,
  neverRunResult,
  noAnswers,
  publishAll,
  start,
} from "./tool-calls.ts";
import { SinkError } from "../run/emitter.ts";
import type { Run } from "../run/run.ts";
import { errorResult, notStartedResult, toResult } from "./tools.ts";

/**
 * Answers calls that have no result (R19): a crash cut the run off, or it waited for
 * a person (R27). Each result is put in its place. Gives the message whose calls
 * still wait, if any do, and the results that were made. Throws what a callback
 * threw, after every call is answered.
 */
export async function repair(
  run: Run,
): Promise<{ waiting: AssistantMessage | undefined; answers: Answers }> {
  const answers = noAnswers(true);
  let waiting: AssistantMessage | undefined;
  let trouble: { error: unknown } | undefined;
  for (const { message, calls } of run.history.unanswered()) {
    for (const call of calls) {
      try {
        await answer(run, message, call, answers);
      } catch (error) {
        if (error instanceof SinkError) throw error;
        trouble ??= { error };
        await answerWith(run, call, interrupted(call), answers);
      }
      if (run.pending.some(({ toolCall }) => toolCall.id === call.id)) waiting = message;
    }
  }
  if (trouble) throw trouble.error;
  return { waiting, answers };
}

async function answer(
  run: Run,
  message: AssistantMessage,
  call: ToolCall,
  answers: Answers,
): Promise<void> {
  const decision = run.config.decisions?.[call.id];
  if (decision?.type === "wait") {
    run.pending.push({ toolCall: call, reason: decision.reason ?? "Not decided yet." });
    return;
  }
  if (decision?.type === "result") {
    return answerWith(run, call, toResult(call.name, decision.result), answers);
  }
  if (decision?.type === "deny") {
    const why = decision.reason ? `: ${decision.reason}` : ".";
    return answerWith(
      run,
      call,
      errorResult(`Tool "${call.name}" was denied${why}`, "denied", decision.reason),
      answers,
    );
  }
  const recorded = run.config.recordedResult?.(call.id);
  if (recorded) return answerWith(run, call, toResult(call.name, recorded), answers);
  if (!mayRun(message)) {
    return answerWith(run, call, neverRunResult(run, message, call), answers);
  }
  if (run.cancelled) return answerWith(run, call, notStartedResult(run, call), answers);
  if (decision?.type === "approve" || run.tool(call.name)?.idempotent) {
    return publishAll(run, [await start(run, call, decision)], answers);
  }
  return answerWith(run, call, interrupted(call), answers);
}

function interrupted(call: ToolCall): ReturnType<typeof errorResult> {
  return errorResult(
    `Interrupted: the run ended before tool "${call.name}" gave its result. Whether it had effects is not known; look before you call it again.`,
    "interrupted",
    "the run ended before it gave its result; its effects are unknown",
  );
}
