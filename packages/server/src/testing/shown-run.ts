import { type AgentMessage, type Decision, isLlmMessage } from "@gyre/agent";
import { type AssistantMessage, type Message, type ToolResultMessage, textOf } from "@gyre/ai";

/** A call as a client ends with it, in words of no protocol. */
export interface ShownCall {
  id: string;
  name: string;
  input: unknown;
  state: "open" | "ok" | "error" | "denied";
  /** The output, or the text of the error. */
  output?: unknown;
}

/** An answer as a client ends with it. */
export interface ShownStep {
  text: string;
  thinking: string;
  calls: ShownCall[];
}

/** What a client has to show of a transcript, after its prompt. */
export function showTranscript(messages: readonly AgentMessage[]): ShownStep[] {
  const known = messages.filter(isLlmMessage);
  const results = new Map(
    known.flatMap((message): [string, ToolResultMessage][] =>
      message.role === "toolResult" ? [[message.toolCallId, message]] : [],
    ),
  );
  return known.flatMap((message) =>
    message.role === "assistant" ? [showStep(message, results)] : [],
  );
}

function showStep(
  message: AssistantMessage,
  results: ReadonlyMap<string, ToolResultMessage>,
): ShownStep {
  let thinking = "";
  const calls: ShownCall[] = [];
  for (const block of message.content) {
    if (block.type === "thinking") thinking += block.thinking;
    if (block.type !== "toolCall") continue;
    const { id, name, arguments: args, argumentsError, rawArguments } = block;
    const input = argumentsError === undefined ? args : rawArguments;
    calls.push({ id, name, input, ...showResult(results.get(id)) });
  }
  return { text: textOf(message), thinking, calls };
}

function showResult(result: ToolResultMessage | undefined): Pick<ShownCall, "state" | "output"> {
  if (!result) return { state: "open" };
  if (result.outcome === "denied") return { state: "denied" };
  const [first, ...more] = result.content;
  const texts = result.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (result.isError) return { state: "error", output: texts.join("\n") };
  const isText = first?.type === "text" && more.length === 0;
  return { state: "ok", output: result.details ?? (isText ? first.text : result.content) };
}

/** The transcript as it comes back from a page: what a service wrote of its errors is not in it. */
export function withoutErrors(messages: readonly AgentMessage[]): Message[] {
  const known = messages.filter(isLlmMessage);
  const places = new Map<string, number>();
  for (const message of known) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type === "toolCall") places.set(block.id, places.size);
    }
  }
  const kept = known.map((message) => {
    if (message.role !== "assistant") return message;
    const { errorMessage: _, report: __, failure, ...rest } = message;
    return { ...rest, ...(failure && { failure: { kind: failure.kind } }) };
  });
  // A call that waited for a person has its result behind those of its neighbors.
  return kept
    .map((message, at) => ({ message, at }))
    .toSorted((a, b) => {
      if (a.message.role !== "toolResult" || b.message.role !== "toolResult") return a.at - b.at;
      const [from, to] = [Math.min(a.at, b.at), Math.max(a.at, b.at)];
      if (kept.slice(from, to).some(({ role }) => role !== "toolResult")) return a.at - b.at;
      return (places.get(a.message.toolCallId) ?? 0) - (places.get(b.message.toolCallId) ?? 0);
    })
    .map(({ message }) => message);
}

/** Marks the answers of a person in the parts of a page, as `addToolApprovalResponse` does. */
export function answerQuestions<Part extends object>(
  parts: readonly Part[],
  decisions: Readonly<Record<string, Decision>>,
): Part[] {
  return parts.map((part) => {
    const { toolCallId, state, approval } = part as Record<string, unknown>;
    const decision = typeof toolCallId === "string" ? decisions[toolCallId] : undefined;
    if (state !== "approval-requested" || !decision || typeof approval !== "object") return part;
    const approved = decision.type === "approve";
    const reason = decision.type === "deny" ? decision.reason : undefined;
    return { ...part, state: "approval-responded", approval: { ...approval, approved, reason } };
  });
}
