import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantMessageEventStream,
  type Clock,
  type Context,
  isDelta,
  type Model,
  isSameBlock,
  systemClock,
} from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import type { Case } from "./manifest.ts";

/** The API format of a recording. */
const APIS: Readonly<Record<string, string>> = {
  "anthropic-messages": "anthropic-messages",
  "openai-chat": "openai-completions",
  "openai-completions-legacy": "openai-completions",
  "openai-responses": "openai-responses",
  "google-generative": "google-generative-ai",
  "bedrock-converse": "bedrock-converse-stream",
  "bedrock-invoke": "bedrock-invoke-stream",
  "ollama-native": "ollama",
};

/** The API format of a recorded error, which only the address shows. */
const API_BY_PATH: readonly [RegExp, string][] = [
  [/\/messages$/, "anthropic-messages"],
  [/\/responses/, "openai-responses"],
  [/\/api\/chat/, "ollama"],
  [/bedrock-runtime/, "bedrock-converse-stream"],
  [/:\w*(generate|embed)\w*/i, "google-generative-ai"],
];

export function findApi(one: Case): string {
  if (one.api !== "http-error") return APIS[one.api] ?? one.api;
  const url = one.source.url ?? "";
  return API_BY_PATH.find(([pattern]) => pattern.test(url))?.[1] ?? "openai-completions";
}

/** Folders are named after the service; those of no service of ours are any other server. */
const PROVIDERS: readonly [RegExp, string][] = [
  [/^anthropic/, "anthropic"],
  [/^bedrock/, "amazon-bedrock"],
  [/^google/, "google"],
  [/^azure-responses/, "azure-openai-responses"],
  [/^openai/, "openai"],
  [/^(openrouter|groq|xai|deepseek|mistral|llamacpp|ollama)/, "$1"],
];

export function createModel(one: Case, baseUrl: string): Model {
  const found = PROVIDERS.find(([pattern]) => pattern.test(one.dir));
  const provider = found?.[1] === "$1" ? one.dir.replace(/-.*/, "") : (found?.[1] ?? "recorded");
  const id = one.expected.model ?? "recorded-model";
  return { id, name: id, api: findApi(one), provider, baseUrl };
}

const CONTEXT: Context = {
  systemPrompt: "A recording is played.",
  messages: [{ role: "user", content: "Go on.", timestamp: 0 }],
};

export interface Played {
  message: AssistantMessage;
  /** The events but for their live message, adjacent deltas joined. */
  events: object[];
}

/** Asks for one recording through the real client. */
export async function play(
  one: Case,
  baseUrl: string,
  fetch?: typeof globalThis.fetch,
  clock: Clock = systemClock,
): Promise<Played> {
  const registry = createProviders(fetch ? { fetch } : {});
  const model = createModel(one, baseUrl);
  const provider = registry.get(model.api);
  if (!provider) throw new Error(`No provider for the api "${one.api}" of ${one.id}.`);
  const options = { apiKey: "test-key-of-the-replay", clock };
  const stream = await provider.stream(model, CONTEXT, options);
  const message = await stream.result();
  return { message, events: joined(stream) };
}

/** All that waits in a stream, without the live message, and with adjacent deltas joined. */
function joined(stream: AssistantMessageEventStream): object[] {
  const events: AssistantMessageEvent[] = [];
  for (let event = stream.take(); event; event = stream.take()) {
    const last = events.at(-1);
    if (last && isDelta(last) && isDelta(event) && isSameBlock(last, event)) {
      events[events.length - 1] = { ...event, delta: last.delta + event.delta };
    } else events.push(event);
  }
  return events.map(bare);
}

/** An event as it was, without the message that goes on changing. */
function bare(event: AssistantMessageEvent): object {
  if (!("partial" in event)) return { type: event.type };
  const { partial: _, ...rest } = event;
  return rest;
}
