import type { MastraDBMessage } from "@mastra/core/agent";
import { once } from "../once.ts";
import type { Plain, Work } from "../peer.ts";

type MessagePart = MastraDBMessage["content"]["parts"][number];
type CallPart = Extract<MessagePart, { type: "tool-invocation" }>;
type Call = NonNullable<Plain["calls"]>[number];

/** The history and the prompt. The library notes a time in the messages it is given, no more. */
export function buildPrompt({ history = [] }: Work): MastraDBMessage[] {
  const prompt = message("prompt", "user", new Date());
  prompt.content.parts.push({ type: "text", text: "go" });
  return [...toMessages(history), prompt];
}

/**
 * A history in the form in which the library hands one back, which also costs it less
 * than a model's messages do: all that the assistant does until the next prompt is one
 * message of several steps, and a call holds its result.
 */
const toMessages = once((history: readonly Plain[]): readonly MastraDBMessage[] => {
  const messages: MastraDBMessage[] = [];
  const calls = new Map<string, CallPart>();
  for (const { role, text, calls: called = [], answers } of history) {
    if (role === "tool") {
      const call = calls.get(answers ?? "");
      if (call) call.toolInvocation = { ...call.toolInvocation, state: "result", result: text };
      continue;
    }
    let last = messages.at(-1);
    if (role === "assistant" && last?.role === role) {
      last.content.parts.push({ type: "step-start" });
    } else {
      // The library sorts by time.
      last = message(`history-${messages.length}`, role, new Date(messages.length));
      messages.push(last);
    }
    if (text !== "") last.content.parts.push({ type: "text", text });
    for (const call of called) {
      const part = callPart(call);
      calls.set(call.id, part);
      last.content.parts.push(part);
    }
  }
  return messages;
});

function message(id: string, role: "user" | "assistant", createdAt: Date): MastraDBMessage {
  return { id, role, createdAt, content: { format: 2, parts: [] } };
}

function callPart({ id, name, input }: Call): CallPart {
  return {
    type: "tool-invocation",
    toolInvocation: { state: "call", toolCallId: id, toolName: name, args: input },
  };
}

/** The steps of a message, each with the results of its calls. */
export function toPlain({ role, content }: MastraDBMessage): Plain[] {
  const plain: Plain[] = [];
  let text = "";
  let calls: Call[] = [];
  let results: Plain[] = [];
  const endStep = (): void => {
    if (text !== "" || calls.length > 0) {
      const message = { role: role === "user" ? role : "assistant", text } as const;
      plain.push(calls.length > 0 ? { ...message, calls } : message);
    }
    plain.push(...results);
    [text, calls, results] = ["", [], []];
  };
  for (const part of content.parts) {
    if (part.type === "step-start") endStep();
    else if (part.type === "text") text += part.text;
    else if (part.type === "tool-invocation") {
      const { toolCallId: id, toolName: name, args: input } = part.toolInvocation;
      calls.push({ id, name, input });
      const result = readResult(part);
      if (result !== undefined) results.push({ role: "tool", text: result, answers: id, name });
    }
  }
  endStep();
  return plain;
}

function readResult({
  toolInvocation: { state, result, errorText },
}: CallPart): string | undefined {
  if (state === "output-error") return errorText ?? "";
  if (state !== "result") return undefined;
  return typeof result === "string" ? result : JSON.stringify(result);
}
