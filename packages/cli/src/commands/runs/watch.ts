import type { AgentEndEvent, AgentEvent } from "@gyre/agent";
import type { RunEvent } from "@gyre/durable";
import { EXIT, type ExitCode, findExitCode, UsageError } from "../../core/exit-codes.ts";
import { messageText } from "../../text/session-text.ts";
import type { Job } from "./runs.ts";
import { shown } from "./run-text.ts";

/** Prints what happens in a run up to its end, whose exit code says how it went. */
export async function watch({ runs, io, values }: Job, id: string): Promise<ExitCode> {
  const after = values.after === undefined ? undefined : readNumber(values.after);
  const options = { deltas: false, signal: io.signal, ...(after !== undefined && { after }) };
  let end: AgentEndEvent | undefined;
  for await (const event of runs.get(id).watch(options)) {
    if (event.event.type === "agent_end") end = event.event;
    const text = values.json ? `${JSON.stringify(event)}\n` : eventText(id, event);
    io.stdout.write(text);
  }
  if (io.signal.aborted) return findExitCode(io.signal);
  return toExit(end?.stop ?? (await runs.get(id).info()).stop);
}

function readNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`--after takes the number of an event, not "${text}".`);
}

function toExit(stop: AgentEndEvent["stop"] | undefined): ExitCode {
  switch (stop) {
    case "error":
    case "sink":
    case "aborted":
      return EXIT.failed;
    case "limit":
      return EXIT.limit;
    default:
      return EXIT.done;
  }
}

function eventText(run: string, { seq, event }: RunEvent): string {
  if (event.type === "message_end") return `${messageText(event.message)}\n`;
  const text = lineText(run, event);
  return text === undefined ? "" : `--- ${seq} ${text}\n\n`;
}

function lineText(run: string, event: AgentEvent): string | undefined {
  switch (event.type) {
    case "tool_execution_start":
      return `${shown(event.toolName)} begins (${shown(event.toolCallId)})`;
    case "tool_execution_end":
      return `${shown(event.toolName)}: ${event.outcome} (${shown(event.toolCallId)})`;
    case "agent_end":
      return endText(run, event);
    default:
      return undefined;
  }
}

function endText(run: string, { stop, errorMessage, pending }: AgentEndEvent): string {
  if (stop !== "suspended") {
    return `ended: ${stop}${errorMessage === undefined ? "" : `: ${shown(errorMessage)}`}`;
  }
  const calls = pending.map(({ toolCall }) => `${shown(toolCall.name)} ${shown(toolCall.id)}`);
  return `waits: ${calls.join(", ")}; see gyre runs show ${shown(run)}`;
}
