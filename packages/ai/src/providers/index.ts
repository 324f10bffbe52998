import { ApiRegistry } from "../client/registry.ts";
import type { ApiProvider } from "../client/registry.ts";
import type { ProviderConfig } from "./http/wire.ts";

export { calledTools, handOver, type HandoverRules } from "./http/transform-messages.ts";
export {
  type Framing,
  FramingError,
  type OnPayload,
  type Payload,
  SseDecoder,
} from "../stream/sse.ts";
export { LineDecoder } from "../stream/ndjson.ts";
export { findService, serviceOf, type ServicePreset, SERVICES } from "./services/presets.ts";
export {
  authHeaders,
  createProvider,
  type Fetch,
  type FetchedResponse,
  type FetchRequest,
  joinUrl,
  parseObject,
  type ProviderConfig,
  ProviderError,
  type ResponseHeaders,
  ServiceFault,
  type Wire,
  type WireJob,
  type WireReader,
  type WireRequest,
} from "./http/wire.ts";

type Make = (config: ProviderConfig) => ApiProvider;

/** The wires that come with this package; each is loaded when a model first needs it. */
const WIRES: Readonly<Record<string, () => Promise<Make>>> = {
  "anthropic-messages": async () =>
    (await import("./anthropic-messages/index.ts")).anthropicMessages,
  "bedrock-converse-stream": async () =>
    (await import("./bedrock-converse-stream/index.ts")).bedrockConverseStream,
  "bedrock-invoke-stream": async () =>
    (await import("./bedrock-invoke-stream/index.ts")).bedrockInvokeStream,
  "google-generative-ai": async () =>
    (await import("./google-generative-ai/index.ts")).googleGenerativeAi,
  ollama: async () => (await import("./ollama/index.ts")).ollama,
  "openai-completions": async () =>
    (await import("./openai-completions/index.ts")).openaiCompletions,
  "openai-responses": async () => (await import("./openai-responses/index.ts")).openaiResponses,
};

/**
 * A registry with every wire of this package in it. Wires of your own are added with
 * its `register`; of ours, only those that are used get loaded.
 */
export function createProviders(config: ProviderConfig = {}): ApiRegistry {
  const registry = new ApiRegistry();
  for (const [api, load] of Object.entries(WIRES)) registry.register(lazily(api, load, config));
  return registry;
}

function lazily(api: string, load: () => Promise<Make>, config: ProviderConfig): ApiProvider {
  let provider: ApiProvider | undefined;
  return {
    api,
    stream(model, context, options) {
      if (provider) return provider.stream(model, context, options);
      return load().then((make) => (provider ??= make(config)).stream(model, context, options));
    },
  };
}
