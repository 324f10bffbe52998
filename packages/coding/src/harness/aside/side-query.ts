import { Agent, type AgentMessage, type AgentState } from "@gyre/agent";
import {
  complete,
  type Model,
  type ProtocolClient,
  textOf,
  type Usage,
  validateTranscript,
} from "@gyre/ai";
import { toLlmMessage, toLlmMessages } from "../../conversation/user-command.ts";
import { modelValue } from "../../text/choices.ts";
import { priceUsage } from "../session/spending.ts";

const MAX_ANSWER_TOKENS = 4_000;

export interface SideQueryOptions {
  client: ProtocolClient;
  model: Model;
  signal: AbortSignal;
  /** Called with what the answer has used, also where it is of no use. */
  spent: (model: string, usage: Usage) => void;
}

/** One answer to one prompt, outside of the conversation. Rejects where there is no complete one. */
export async function sideQuery(
  prompt: string,
  { client, model, signal, spent }: SideQueryOptions,
): Promise<string> {
  const message = await complete(
    client,
    model,
    { messages: [{ role: "user", content: prompt, timestamp: Date.now() }] },
    { signal, maxTokens: MAX_ANSWER_TOKENS, thinkingLevel: "off", cacheRetention: "none" },
  );
  spent(modelValue(model), priceUsage(message.usage, model));
  const answer = textOf(message).trim();
  if (message.stopReason === "stop" && answer !== "") return answer;
  throw new Error(message.errorMessage ?? `The answer ended early: ${message.stopReason}.`);
}

/** The conversation that a side question is about. */
export type AskedState = Pick<AgentState, "systemPrompt" | "tools" | "messages" | "thinkingLevel"> &
  Partial<Pick<AgentState, "compaction">>;

const ASIDE =
  "This is a question beside the conversation: what was going on goes on without it. Answer it from what you know by now. No tool can be called.";

/**
 * One answer that knows the conversation so far, which stays as it is. The request begins as the
 * next one of the conversation does, so that the service has that in its cache. Rejects where there is
 * no complete answer.
 */
export async function sideQuestion(
  question: string,
  state: AskedState,
  { client, model, signal, spent }: SideQueryOptions,
): Promise<string> {
  const { systemPrompt, tools, compaction, thinkingLevel } = state;
  const agent = new Agent({
    protocol: client,
    model,
    convertToLlm: toLlmMessages,
    instructions: systemPrompt,
    thinkingLevel,
    // Not every service can be kept from calling them.
    tools: tools.map((tool) => ({ ...tool, execute: () => "Not in a side question." })),
    toolChoice: "none",
    messages: findSettled(state.messages),
    limits: { maxTurns: 1 },
    ...(compaction && { compaction }),
  });
  const end = await agent.prompt(`${ASIDE}\n\n${question}`, { signal });
  spent(modelValue(model), priceUsage(end.usage, model));
  const answer = end.text.trim();
  if (end.finalMessage?.stopReason === "stop" && answer !== "") return answer;
  throw new Error(end.finalMessage?.errorMessage ?? `The answer ended early: ${end.stop}.`);
}

/** The messages up to the first call without a result: it is under way. */
function findSettled(messages: readonly AgentMessage[]): AgentMessage[] {
  const sent = messages.flatMap((message, index) => {
    const converted = toLlmMessage(message);
    return converted ? [{ message: converted, index }] : [];
  });
  const problem = validateTranscript(sent.map(({ message }) => message)).find(
    ({ fault }) => fault === "call-without-result",
  );
  const end = problem && sent[problem.index]?.index;
  return messages.slice(0, end);
}
