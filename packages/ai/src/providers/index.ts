import { ApiRegistry } from "../client/registry.ts";
import type { ApiProvider } from "../client/registry.ts";
import type { ProviderConfig } from "./http/exchange.ts";

export { listCalledTools } from "../messages/transform-messages.ts";
export {
  type ImageConstraints as MessageConstraints,
  transformMessages,
} from "../files/transform-images.ts";
export {
  type Framing,
  FramingError,
  type OnPayload,
  type Payload,
  SseDecoder,
} from "../stream/sse.ts";
export { LineDecoder } from "../stream/ndjson.ts";
export { findService, resolveService, type ServicePreset, SERVICES } from "./services/presets.ts";
export { createProvider, type ProviderConfig } from "./http/exchange.ts";
export type { Fetch, FetchedResponse, FetchRequest, ResponseHeaders } from "./http/fetch.ts";
export type { ApiFormat, ApiRequest, RequestContext, ResponseReader } from "./http/format.ts";
export { authHeaders } from "./http/headers.ts";
export { parseObject } from "./http/json.ts";
export { joinUrl } from "./http/url.ts";
export { explainUnsendable } from "./explain-file.ts";
export { FileError } from "./files/prepare.ts";
export type { FileRule, FileTable, FormatFiles } from "./files/table.ts";
export { OptionError } from "./options/apply.ts";
export { ProviderError, ServiceFault } from "./errors/provider-error.ts";

type CreateProvider = (config: ProviderConfig) => ApiProvider;

/** The API formats of this package; each is loaded when a model first needs it. */
const FORMATS: Readonly<Record<string, () => Promise<CreateProvider>>> = {
  "anthropic-messages": async () =>
    (await import("./anthropic-messages/index.ts")).anthropicMessages,
  "anthropic-vertex": async () => (await import("./anthropic-vertex/index.ts")).anthropicVertex,
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
 * A registry with every API format of this package. Add your own with its `register`; of the
 * built-in ones, only those that are used get loaded.
 */
export function createProviders(config: ProviderConfig = {}): ApiRegistry {
  const registry = new ApiRegistry();
  for (const [api, load] of Object.entries(FORMATS))
    registry.register(loadLazily(api, load, config));
  return registry;
}

function loadLazily(
  api: string,
  load: () => Promise<CreateProvider>,
  config: ProviderConfig,
): ApiProvider {
  let provider: ApiProvider | undefined;
  return {
    api,
    stream(model, context, options) {
      if (provider) return provider.stream(model, context, options);
      return load().then((make) => (provider ??= make(config)).stream(model, context, options));
    },
  };
}
