import { isRecord } from "@gyre/ai";
import type { RunSummary, WaitingCall } from "@gyre/durable";
import { sanitize } from "@gyre/tools";

/** Text of others on one line, safe for a terminal. */
export function shown(text: string): string {
  return sanitize(text, { keepNewlines: false });
}

/** `waiting`, or how it ended. */
export function statusText({ status, stop }: Pick<RunSummary, "status" | "stop">): string {
  return status === "ended" && stop !== undefined ? `ended: ${stop}` : status;
}

/** What a call waits for, and what to do about it. `child`: the run that works for it. */
export function waitingText(run: string, call: WaitingCall, child?: string): string[] {
  const { toolCall, waitsFor, reason } = call;
  const what = `call ${shown(toolCall.id)}: ${shown(toolCall.name)} ${shown(JSON.stringify(toolCall.arguments))}`;
  switch (waitsFor) {
    case "child":
      return [
        `Waits for another run, which works for ${what}`,
        ...(child === undefined ? [] : [`  gyre runs show ${shown(child)}`]),
      ];
    case "timer":
      return [`Waits for a time, by ${what}`];
    case "decision":
      return [
        `Waits for a decision on ${what}`,
        ...(reason === "" ? [] : [`  ${shown(reason)}`]),
        isQuestion(call)
          ? `  gyre runs answer ${shown(run)} ${shown(toolCall.id)} "TEXT"`
          : `  gyre runs approve ${shown(run)} ${shown(toolCall.id)}`,
      ];
  }
}

/** Approved, the tool of a question would ask it again. */
function isQuestion({ access }: WaitingCall): boolean {
  return isRecord(access) && typeof access["question"] === "string";
}
