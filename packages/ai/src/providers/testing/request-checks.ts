import { check as anthropicMessages } from "../anthropic-messages/request-check.ts";
import { check as bedrockConverseStream } from "../bedrock-converse-stream/request-check.ts";
import { check as googleGenerativeAi } from "../google-generative-ai/request-check.ts";
import { check as ollama } from "../ollama/request-check.ts";
import {
  check as openaiCompletions,
  checkDeepSeek,
  checkGroq,
  checkMistral,
  checkOpenRouter,
  checkPerplexity,
} from "../openai-completions/request-check.ts";
import { check as openaiResponses } from "../openai-responses/request-check.ts";
import type { RequestCheck } from "./problems.ts";

export type { RequestCheck } from "./problems.ts";

/** A check of requests for each wire. */
export const REQUEST_CHECKS: Readonly<Record<string, RequestCheck>> = {
  "anthropic-messages": anthropicMessages,
  "bedrock-converse-stream": bedrockConverseStream,
  "google-generative-ai": googleGenerativeAi,
  ollama,
  "openai-completions": openaiCompletions,
  "openai-responses": openaiResponses,
};

/** Services on the chat wire that have rules of their own. */
const CHAT_SERVICES: Readonly<Record<string, RequestCheck>> = {
  deepseek: checkDeepSeek,
  groq: checkGroq,
  mistral: checkMistral,
  openrouter: checkOpenRouter,
  perplexity: checkPerplexity,
};

/** The check for a wire and the service that it goes to. Throws for a wire that has none. */
export function requestCheckFor({
  api,
  provider,
}: {
  api: string;
  provider: string;
}): RequestCheck {
  const check = (api === "openai-completions" && CHAT_SERVICES[provider]) || REQUEST_CHECKS[api];
  if (!check) throw new Error(`There is no check of requests for the wire "${api}".`);
  return check;
}
