import type { AssistantMessage } from "@gyre/ai";
import type { Run } from "../run/run.ts";
import { isAssistant, isToolResult, listCalls } from "../transcript/history.ts";
import type { CallResults } from "./tool-calls.ts";

/** A turn of a run before this one, which this run brings to its end. */
export interface EarlierTurn {
  message: AssistantMessage;
  answered: CallResults;
}

/**
 * The turn whose calls still wait for a person, or that a crash cut off behind its answer: what
 * follows it is decided as after any other (R28). Nothing where an answer is to be asked for.
 */
export function findEarlierTurn(
  run: Run,
  repaired: { waiting: AssistantMessage | undefined; answered: CallResults },
): EarlierTurn | undefined {
  const { waiting, answered } = repaired;
  const turn = waiting ? { message: waiting, answered } : findCutOff(run, answered);
  // Its answer is counted already.
  if (turn && run.config.interrupted) run.turns--;
  return turn;
}

function findCutOff(run: Run, repaired: CallResults): EarlierTurn | undefined {
  const { interrupted } = run.config;
  const isPrompted = run.inbox.first?.source === "prompt";
  const { messages } = run.history;
  const at = messages.findLastIndex(isAssistant);
  const message = messages[at];
  if (isPrompted || !message || !isAssistant(message)) return undefined;
  const results = messages.slice(at + 1).filter(isToolResult);
  if (results.length !== messages.length - at - 1) return undefined;
  const calls = listCalls(message);
  const ends = new Set(interrupted?.terminated);
  if (repaired.terminate) for (const { toolCallId } of repaired.results) ends.add(toolCallId);
  const terminate = calls.length > 0 && calls.every(({ id }) => ends.has(id));
  const hasFailed = message.stopReason === "error" || message.stopReason === "aborted";
  if ((!interrupted || hasFailed) && !terminate) return undefined;
  return { message, answered: { ...repaired, results, terminate } };
}
