import { complete, type Model, type ProtocolClient, textOf, type Usage } from "@gyre/ai";
import { modelValue } from "../text/choices.ts";
import { priceUsage } from "./spending.ts";

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
