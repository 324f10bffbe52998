import type { ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import type {
  CacheBreakpoint,
  GroqOptions,
  OpenAIOptions,
} from "../../client/generation-options.ts";
import { locateMessage } from "../options/breakpoints.ts";
import { toStrictToolSchema } from "../options/strict-tools.ts";
import type { Model } from "../../messages/messages.ts";
import type { CommonName, Draft, FormatOptions, OutputSupport } from "../options/table.ts";
import { hasFeature } from "../services/claude-models.ts";
import { hasStructuredOutput } from "../services/openai-models.ts";
import { chatDialect } from "../services/chat-quirks.ts";
import { type ChatMessage, toParts } from "./chat-messages.ts";
import { writeTools } from "./service-tools.ts";

/** What OpenAI documents, and what services with the same format have beside it. */
type Body = Omit<ChatCompletionCreateParamsStreaming, "service_tier" | "logprobs"> & {
  top_k?: number;
  min_p?: number;
  top_a?: number;
  repetition_penalty?: number;
  random_seed?: number;
  safe_prompt?: boolean;
  user_id?: string;
  models?: string[];
  provider?: OpenRouterProvider;
  service_tier?: ChatCompletionCreateParamsStreaming["service_tier"] | GroqOptions["serviceTier"];
  /** A number at Together. */
  logprobs?: ChatCompletionCreateParamsStreaming["logprobs"] | number;
};

interface OpenRouterProvider {
  order?: readonly string[] | undefined;
  only?: readonly string[] | undefined;
  ignore?: readonly string[] | undefined;
  allow_fallbacks?: boolean | undefined;
  require_parameters?: boolean | undefined;
  data_collection?: "allow" | "deny" | undefined;
  sort?: "price" | "throughput" | "latency" | undefined;
}

const OPEN_MODEL: readonly CommonName[] = [
  "topP",
  "topK",
  "minP",
  "seed",
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
];
const OPENAI: readonly CommonName[] = [
  "topP",
  "seed",
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
  "parallelToolCalls",
  "strictTools",
  "verbosity",
  "userId",
  "logprobs",
];

/** Names of the end user: OpenAI has one of its own, and Z.ai. */
const USER_FIELDS: Readonly<Record<string, "safety_identifier" | "user_id">> = {
  openai: "safety_identifier",
  "azure-openai": "safety_identifier",
  zai: "user_id",
};

const ofOpenAI: FormatOptions<Body>["services"]["openai"] = {
  serviceTier: (service_tier) => ({ service_tier }),
  logitBias: (logit_bias: NonNullable<OpenAIOptions["logitBias"]>) => ({ logit_bias }),
};
const ofOpenModels = {
  repetitionPenalty: (repetition_penalty: number) => ({ repetition_penalty }),
};

const ofOpenAIModel = ({ id }: Model): OutputSupport => hasStructuredOutput(id);
const alone = (): OutputSupport => "alone";

/**
 * The services whose documentation has `json_schema` for streams, and beside tools where it says so.
 * Groq has it without streams alone, and others for models that no id shows.
 */
const OUTPUT: Readonly<Record<string, (model: Model) => OutputSupport>> = {
  openai: ofOpenAIModel,
  "azure-openai": ofOpenAIModel,
  "github-models": (model) => model.id.startsWith("openai/") && ofOpenAIModel(model),
  openrouter: (model) => {
    const { id } = model;
    if (id.startsWith("openai/gpt-oss")) return false;
    if (id.startsWith("openai/")) return ofOpenAIModel(model);
    return id.startsWith("anthropic/") && hasFeature(model, "eagerInput");
  },
  xai: ({ id }) => /grok-[4-9]/.test(id) || "alone",
  mistral: alone,
  fireworks: alone,
  // It has no tools at all.
  perplexity: () => true,
  lmstudio: alone,
  llamacpp: alone,
  vllm: alone,
};

/** The options of chat completions: as the reference page of each service lists them. */
export const OPTIONS: FormatOptions<Body> = {
  common: {
    topP: (top_p) => ({ top_p }),
    topK: (top_k) => ({ top_k }),
    minP: (min_p) => ({ min_p }),
    seed: (seed, { request }) =>
      request.service.id === "mistral" ? { random_seed: seed } : { seed },
    stopSequences: (texts) => ({ stop: [...texts] }),
    presencePenalty: (presence_penalty) => ({ presence_penalty }),
    frequencyPenalty: (frequency_penalty) => ({ frequency_penalty }),
    // Without tools the service refuses to hear of their calls.
    parallelToolCalls: (value, { body }) => (body["tools"] ? { parallel_tool_calls: value } : {}),
    strictTools: (strict, { body }) => {
      if (!strict || !Array.isArray(body["tools"])) return {};
      const tools = body["tools"].map((tool) =>
        // Tools of the service have no schema.
        tool.function === undefined
          ? tool
          : {
              ...tool,
              function: {
                ...tool.function,
                parameters: toStrictToolSchema(
                  tool.function.name,
                  tool.function.parameters,
                  "openai",
                ),
                strict: true,
              },
            },
      );
      return { tools };
    },
    verbosity: (verbosity) => ({ verbosity }),
    userId: (id, { request }) => ({ [USER_FIELDS[request.service.id] ?? "user"]: id }),
    logprobs: (top_logprobs, { request }) =>
      request.service.id === "together"
        ? { logprobs: Math.max(1, top_logprobs) }
        : { logprobs: true, ...(top_logprobs > 0 && { top_logprobs }) },
    cacheBreakpoints: writeBreakpoints,
    serviceTools: writeTools,
  },
  output: {
    dialect: "openai",
    supports: ({ model, service }) => OUTPUT[service.id]?.(model) ?? false,
    write: ({ name, schema }) => ({
      response_format: {
        type: "json_schema",
        json_schema: { name, schema: { ...schema }, strict: true },
      },
    }),
  },
  services: {
    openai: ofOpenAI,
    "azure-openai": ofOpenAI,
    openrouter: {
      ...ofOpenModels,
      routing: ({ allowFallbacks, requireParameters, dataCollection, ...rest }) => ({
        provider: {
          ...rest,
          allow_fallbacks: allowFallbacks,
          require_parameters: requireParameters,
          data_collection: dataCollection,
        },
      }),
      models: (models) => ({ models: [...models] }),
      topA: (top_a) => ({ top_a }),
    },
    groq: { serviceTier: (service_tier) => ({ service_tier }) },
    mistral: { safePrompt: (safe_prompt) => ({ safe_prompt }) },
    together: ofOpenModels,
    fireworks: ofOpenModels,
    vllm: ofOpenModels,
  },
  elsewhere: {
    xai: { serviceTools: 'Use api: "openai-responses" for the model: xAI has its tools there.' },
  },
  taken: {
    openai: OPENAI,
    "azure-openai": OPENAI,
    "github-models": OPENAI.slice(0, OPENAI.indexOf("parallelToolCalls")),
    openrouter: [...OPENAI, "topK", "minP", "cacheBreakpoints", "serviceTools"],
    groq: ["topP", "seed", "stopSequences", "parallelToolCalls", "userId", "serviceTools"],
    xai: OPENAI.filter((name) => name !== "verbosity" && name !== "strictTools"),
    deepseek: ["topP", "stopSequences", "presencePenalty", "frequencyPenalty", "logprobs"],
    mistral: [
      "topP",
      "seed",
      "stopSequences",
      "presencePenalty",
      "frequencyPenalty",
      "parallelToolCalls",
      "strictTools",
    ],
    together: [...OPEN_MODEL, "logprobs"],
    fireworks: [...OPEN_MODEL, "parallelToolCalls", "userId", "logprobs"],
    cerebras: [
      "topP",
      "seed",
      "stopSequences",
      "parallelToolCalls",
      "strictTools",
      "userId",
      "logprobs",
    ],
    huggingface: [
      "topP",
      "seed",
      "stopSequences",
      "presencePenalty",
      "frequencyPenalty",
      "logprobs",
    ],
    moonshot: ["topP", "stopSequences", "presencePenalty", "frequencyPenalty"],
    zai: ["topP", "stopSequences", "userId"],
    perplexity: ["topP", "stopSequences"],
    lmstudio: OPEN_MODEL.filter((name) => name !== "minP"),
    llamacpp: [...OPEN_MODEL, "parallelToolCalls", "logprobs"],
    vllm: [...OPEN_MODEL, "parallelToolCalls", "userId", "logprobs"],
  },
  refuse(name, { model, service }) {
    const dialect = chatDialect(model, service);
    if (!dialect.temperature && SAMPLING.has(name))
      return "it has no settings for sampling. Leave it out.";
    if (service.id === "xai" && model.reasoning && NOT_WHILE_THINKING.has(name))
      return "models of xAI that think do not take it. Leave it out.";
    if (name === "cacheBreakpoints" && !dialect.cacheControl)
      return "its cache has no breakpoints. Leave it out, or use cacheRetention.";
    return undefined;
  },
};

const SAMPLING: ReadonlySet<string> = new Set([
  "topP",
  "topK",
  "minP",
  "presencePenalty",
  "frequencyPenalty",
  "logprobs",
  "logitBias",
]);
const NOT_WHILE_THINKING: ReadonlySet<string> = new Set([
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
]);

function writeBreakpoints(points: readonly CacheBreakpoint[], draft: Draft): Partial<Body> {
  const messages = (draft.body["messages"] as ChatMessage[]).map(withoutMark);
  const before = messages[0]?.role === "system" || messages[0]?.role === "developer" ? 1 : 0;
  for (const { after, ttl } of points) {
    if (after === "tools") throw new TypeError('there is no breakpoint after "tools" here.');
    const index = after === "system" ? before - 1 : before + locateMessage(after, draft).message;
    const message = messages[index];
    const parts = toParts(message?.content ?? null);
    const last = parts.at(-1);
    if (!message || !last) throw new TypeError(`there is nothing to cache after ${after}.`);
    last.cache_control = { type: "ephemeral", ...(ttl === "1h" && { ttl }) };
    message.content = parts;
  }
  return { messages: messages as unknown as Body["messages"] };
}

function withoutMark(message: ChatMessage): ChatMessage {
  const { content } = message;
  if (!Array.isArray(content)) return { ...message };
  const parts = content.map((part) => {
    const copy = { ...part };
    delete copy.cache_control;
    return copy;
  });
  return { ...message, content: parts };
}
