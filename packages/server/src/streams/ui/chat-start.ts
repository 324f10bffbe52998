import type { AgentMessage, Decision, PendingCall } from "@gyre/agent";
import type { ToolCall } from "@gyre/ai";
import type { ApprovalSigner } from "../common/approvals.ts";
import { RequestError } from "../common/http.ts";
import { INTERRUPTED, listOpenCalls } from "../common/open-calls.ts";
import { fromUIMessages, type UIConversation, type UIQuestion } from "./ui-messages.ts";

/** What a run of a chat begins with. */
export interface ChatStart {
  messages: AgentMessage[];
  /** On every call without a result. */
  decisions: Record<string, Decision>;
}

/** A conversation as a store keeps it. Plain data. */
export interface StoredChat {
  messages: readonly AgentMessage[];
  pending: readonly PendingCall[];
}

const WENT_ON = "the user went on without deciding";

/**
 * The start of a run on the transcript that a client sent. It may be invented, so no call of it is
 * run but those whose question is signed. Throws `RequestError`.
 */
export async function startFromClient(
  chat: string,
  given: readonly unknown[],
  signer: ApprovalSigner | undefined,
): Promise<ChatStart> {
  const { messages, questions } = readMessages(given);
  const isPrompt = messages.at(-1)?.role === "user";
  const decisions: Record<string, Decision> = {};
  for (const call of listOpenCalls(messages)) {
    const question = questions.find((one) => one.call.id === call.id);
    if (question?.approved) await assertSigned(chat, question, signer);
    decisions[call.id] = decide(question, isPrompt);
  }
  return { messages, decisions };
}

/**
 * The start of a run on a stored conversation. Of what the client sent only the new message of the user
 * counts, the answers to questions that wait, and the results of the client's own tools.
 */
export function startFromStore(
  { messages, pending }: StoredChat,
  given: readonly unknown[],
  { clientTools, trigger }: { clientTools: readonly string[]; trigger: unknown },
): ChatStart {
  const claim = readMessages(given);
  const last = claim.messages.at(-1);
  const isAgain = trigger === "regenerate-message";
  const kept = isAgain ? withoutLastAnswer(messages) : [...messages];
  const isPrompt = last?.role === "user" && !isAgain;
  if (isPrompt) kept.push({ ...last, timestamp: Date.now() });
  const decisions: Record<string, Decision> = {};
  for (const call of listOpenCalls(kept)) {
    const question = claim.questions.find((one) => one.call.id === call.id);
    const waits = pending.find(({ toolCall }) => toolCall.id === call.id);
    if (!waits) decisions[call.id] = INTERRUPTED;
    else if (clientTools.includes(call.name)) decisions[call.id] = findResult(claim, call);
    else {
      const { toolCall: _, ...asked } = waits;
      const decision = decide(question ?? { call, approvalId: "" }, isPrompt);
      decisions[call.id] = decision.type === "wait" ? { ...asked, ...decision } : decision;
    }
  }
  return { messages: kept, decisions };
}

function readMessages(given: readonly unknown[]): UIConversation {
  const read = fromUIMessages(given);
  if (read.hasSystemMessage) {
    const text = "A message of a client has the role user or assistant.";
    throw new RequestError(400, "invalid_request", text);
  }
  if (read.messages.length === 0) {
    const text =
      'No message has anything in it: what each says is in its "parts", as `useChat` sends it.';
    throw new RequestError(400, "invalid_request", text);
  }
  return read;
}

async function assertSigned(
  chat: string,
  { call, approvalId }: UIQuestion,
  signer: ApprovalSigner | undefined,
): Promise<void> {
  if (!signer) {
    throw new RequestError(
      403,
      "unsigned_approval",
      "This route accepts no approvals: it needs a `secret` to sign questions with, or a `store`.",
    );
  }
  const { id, name, arguments: input } = call;
  if (await signer.verify({ chat, id, name, input }, approvalId)) return;
  const text = `The approval of the call "${id}" is not of a question that this server asked.`;
  throw new RequestError(403, "forged_approval", text);
}

function decide(question: UIQuestion | undefined, isPrompt: boolean): Decision {
  if (!question) return INTERRUPTED;
  const { approved, reason } = question;
  if (approved) return { type: "approve" };
  if (approved === false) return { type: "deny", ...(reason !== undefined && { reason }) };
  return isPrompt ? { type: "deny", reason: WENT_ON } : { type: "wait" };
}

function findResult({ messages }: UIConversation, call: ToolCall): Decision {
  for (const message of messages) {
    if (message.role !== "toolResult" || message.toolCallId !== call.id) continue;
    const { content, details, isError } = message;
    return {
      type: "result",
      result: { content, isError, ...(details !== undefined && { details }) },
    };
  }
  return { type: "wait" };
}

function withoutLastAnswer(messages: readonly AgentMessage[]): AgentMessage[] {
  return messages.slice(0, messages.findLastIndex(({ role }) => role === "user") + 1);
}
