import type { Model, ModelPrice } from "../messages/messages.ts";

/** Dollars for a million tokens, of models that the catalog does not have because they write nothing. */
export const EMBEDDING_PRICES: Readonly<Record<string, number>> = {
  "openai/text-embedding-3-small": 0.02,
  "openai/text-embedding-3-large": 0.13,
  "openai/text-embedding-ada-002": 0.1,
  "google/gemini-embedding-001": 0.15,
  "google-vertex/gemini-embedding-001": 0.15,
  "mistral/mistral-embed": 0.1,
  "amazon-bedrock/amazon.titan-embed-text-v1": 0.1,
};

/** What the tokens of a model cost: as the model says, or as is known of it. */
export function findPrice({ id, price, provider }: Model): ModelPrice | undefined {
  const input = EMBEDDING_PRICES[`${provider}/${id.replace(/:\d+$/, "")}`];
  return price ?? (input === undefined ? undefined : { input, output: 0 });
}
