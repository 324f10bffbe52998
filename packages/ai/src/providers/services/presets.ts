import type { Model } from "../../messages/messages.ts";
import type { ChatQuirks } from "./chat-quirks.ts";

/**
 * A model service as data: its API format, its address, its key, and how it
 * differs from other services with that format. A service that is not here is a
 * model with a `baseUrl` (and `quirks`) of its own.
 */
export interface ServicePreset {
  /** What models carry in `model.provider`. */
  id: string;
  name: string;
  api: string;
  /** Absent where the address depends on an account: then `model.baseUrl` or the environment has it. */
  baseUrl?: string;
  /** Environment variables that may hold the key, the first one first. */
  keyEnv: readonly string[];
  /** Environment variables that may hold another address. */
  urlEnv: readonly string[];
  /** Answers without a key: a server of one's own. */
  keyless?: boolean;
  /** How a key is sent, where that differs from the format's own way. */
  auth?: "bearer" | "api-key" | "x-api-key" | "x-goog-api-key";
  headers?: Readonly<Record<string, string>>;
  /** Named differences from the format; each format documents those that it knows. */
  quirks?: Readonly<Record<string, unknown>>;
}

const CHAT = "openai-completions";
/** Services that know a low, a high and a highest effort. */
const LOW_HIGH_MAX: ChatQuirks["efforts"] = { medium: "high", xhigh: "max" };

/** The services that are known by name. */
export const SERVICES: readonly ServicePreset[] = [
  {
    id: "anthropic",
    name: "Anthropic",
    api: "anthropic-messages",
    baseUrl: "https://api.anthropic.com",
    keyEnv: ["ANTHROPIC_API_KEY"],
    urlEnv: ["ANTHROPIC_BASE_URL"],
  },
  {
    id: "openai",
    name: "OpenAI",
    api: "openai-responses",
    baseUrl: "https://api.openai.com/v1",
    keyEnv: ["OPENAI_API_KEY"],
    urlEnv: ["OPENAI_BASE_URL"],
    quirks: {
      promptCacheKey: true,
      byModel: [
        { ids: "^(o\\d|gpt-[5-9])", quirks: { systemRole: "developer" } },
        { ids: "^gpt-(4\\.1|[5-9])", quirks: { longCache: true } },
        { ids: "^gpt-5(?!\\.)", quirks: { efforts: { minimal: "minimal" } } },
        { ids: "^gpt-(5\\.[2-9]|[6-9])", quirks: { efforts: { xhigh: "xhigh" } } },
      ],
    } satisfies ChatQuirks,
  },
  {
    id: "azure-openai-responses",
    name: "Azure OpenAI",
    api: "openai-responses",
    keyEnv: ["AZURE_OPENAI_API_KEY"],
    urlEnv: ["AZURE_OPENAI_BASE_URL"],
    auth: "api-key",
  },
  {
    id: "azure-openai",
    name: "Azure OpenAI",
    api: CHAT,
    keyEnv: ["AZURE_OPENAI_API_KEY"],
    urlEnv: ["AZURE_OPENAI_BASE_URL"],
    auth: "api-key",
  },
  {
    id: "google",
    name: "Google Gemini",
    api: "google-generative-ai",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    keyEnv: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    urlEnv: ["GEMINI_BASE_URL"],
  },
  {
    id: "google-vertex",
    name: "Google Vertex AI",
    api: "google-generative-ai",
    baseUrl: "https://aiplatform.googleapis.com/v1/publishers/google",
    keyEnv: ["GOOGLE_VERTEX_TOKEN", "GOOGLE_VERTEX_API_KEY"],
    urlEnv: ["GOOGLE_VERTEX_BASE_URL"],
  },
  {
    id: "amazon-bedrock",
    name: "Amazon Bedrock",
    api: "bedrock-converse-stream",
    baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com",
    keyEnv: ["AWS_BEARER_TOKEN_BEDROCK"],
    urlEnv: ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
  },
  {
    id: "openrouter",
    name: "OpenRouter",
    api: CHAT,
    baseUrl: "https://openrouter.ai/api/v1",
    keyEnv: ["OPENROUTER_API_KEY"],
    urlEnv: ["OPENROUTER_BASE_URL"],
    quirks: {
      reasoning: "openrouter",
      reasoningBack: "reasoning_details",
      efforts: { minimal: "minimal", xhigh: "xhigh" },
      usageCost: true,
      byModel: [{ ids: "claude", quirks: { cacheControl: true } }],
    } satisfies ChatQuirks,
  },
  {
    id: "groq",
    name: "Groq",
    api: CHAT,
    baseUrl: "https://api.groq.com/openai/v1",
    keyEnv: ["GROQ_API_KEY"],
    urlEnv: ["GROQ_BASE_URL"],
    quirks: {
      maxTokensField: "max_completion_tokens",
      reasoningBack: "reasoning",
      byModel: [
        {
          ids: "qwen",
          quirks: {
            // These think or do not; how much cannot be said.
            efforts: {
              minimal: "default",
              low: "default",
              medium: "default",
              high: "default",
              xhigh: "default",
            },
            thinkingOff: true,
            extra: { reasoning_format: "parsed" },
          },
        },
      ],
    } satisfies ChatQuirks,
  },
  {
    id: "xai",
    name: "xAI",
    api: CHAT,
    baseUrl: "https://api.x.ai/v1",
    keyEnv: ["XAI_API_KEY"],
    urlEnv: ["XAI_BASE_URL"],
    quirks: {
      sessionHeader: "x-grok-conv-id",
      byModel: [
        { ids: "grok-4\\.3", quirks: { thinkingOff: true } },
        // These reject a thinking level.
        { ids: "grok-(4(-|$)|4\\.20|build|code)", quirks: { reasoning: "none" } },
      ],
    } satisfies ChatQuirks,
  },
  {
    id: "deepseek",
    name: "DeepSeek",
    api: CHAT,
    baseUrl: "https://api.deepseek.com/v1",
    keyEnv: ["DEEPSEEK_API_KEY"],
    urlEnv: ["DEEPSEEK_BASE_URL"],
    quirks: {
      reasoning: "thinking",
      efforts: LOW_HIGH_MAX,
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      reasoningRequired: true,
    } satisfies ChatQuirks,
  },
  {
    id: "mistral",
    name: "Mistral",
    api: CHAT,
    baseUrl: "https://api.mistral.ai/v1",
    keyEnv: ["MISTRAL_API_KEY"],
    urlEnv: ["MISTRAL_BASE_URL"],
    quirks: {
      streamUsage: false,
      efforts: { minimal: "high", low: "high", medium: "high" },
      reasoningBack: "parts",
      callIds: { pattern: "^[a-zA-Z0-9]{9}$", maxLength: 9 },
      resultName: true,
      toolChoices: ["none", "any", "named"],
      emptyContent: "",
      assistantAfterResults: true,
      userLast: true,
      byModel: [{ ids: "magistral", quirks: { reasoning: "none" } }],
    } satisfies ChatQuirks,
  },
  {
    id: "together",
    name: "Together",
    api: CHAT,
    baseUrl: "https://api.together.xyz/v1",
    keyEnv: ["TOGETHER_API_KEY"],
    urlEnv: ["TOGETHER_BASE_URL"],
    quirks: { alwaysLimit: true } satisfies ChatQuirks,
  },
  {
    id: "fireworks",
    name: "Fireworks",
    api: CHAT,
    baseUrl: "https://api.fireworks.ai/inference/v1",
    keyEnv: ["FIREWORKS_API_KEY"],
    urlEnv: ["FIREWORKS_BASE_URL"],
    quirks: {
      alwaysLimit: true,
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      sessionHeader: "x-session-affinity",
      // These always think.
      byModel: [{ ids: "gpt-oss|kimi", quirks: { thinkingOff: false } }],
    } satisfies ChatQuirks,
  },
  {
    id: "cerebras",
    name: "Cerebras",
    api: CHAT,
    baseUrl: "https://api.cerebras.ai/v1",
    keyEnv: ["CEREBRAS_API_KEY"],
    urlEnv: ["CEREBRAS_BASE_URL"],
    quirks: { maxTokensField: "max_completion_tokens" } satisfies ChatQuirks,
  },
  {
    id: "huggingface",
    name: "Hugging Face",
    api: CHAT,
    baseUrl: "https://router.huggingface.co/v1",
    keyEnv: ["HF_TOKEN"],
    urlEnv: ["HF_BASE_URL"],
  },
  {
    id: "moonshot",
    name: "Moonshot",
    api: CHAT,
    baseUrl: "https://api.moonshot.ai/v1",
    keyEnv: ["MOONSHOT_API_KEY"],
    urlEnv: ["MOONSHOT_BASE_URL"],
    quirks: {
      maxTokensField: "max_completion_tokens",
      alwaysLimit: true,
      temperature: false,
      reasoning: "thinking",
      reasoningBack: "reasoning_content",
      reasoningRequired: true,
      resultName: true,
      // It refuses to be made to call a tool while it thinks.
      toolChoices: ["none"],
      promptCacheKey: true,
      byModel: [
        { ids: "k2\\.[56]", quirks: { thinkingOff: true } },
        { ids: "k2\\.6", quirks: { thinkingExtra: { keep: "all" } } },
        { ids: "k[3-9]", quirks: { reasoning: "effort", efforts: LOW_HIGH_MAX } },
      ],
    } satisfies ChatQuirks,
  },
  {
    id: "zai",
    name: "Z.ai",
    api: CHAT,
    baseUrl: "https://api.z.ai/api/paas/v4",
    keyEnv: ["ZAI_API_KEY"],
    urlEnv: ["ZAI_BASE_URL"],
    quirks: {
      reasoning: "thinking",
      efforts: LOW_HIGH_MAX,
      thinkingExtra: { clear_thinking: false },
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      toolChoices: [],
      // Else arguments come only when they are whole, after a long silence.
      extra: { tool_stream: true },
      byModel: [{ ids: "glm-(5\\.[3-9]|[6-9])", quirks: { thinkingOff: false } }],
    } satisfies ChatQuirks,
  },
  {
    id: "perplexity",
    name: "Perplexity",
    api: CHAT,
    baseUrl: "https://api.perplexity.ai",
    keyEnv: ["PERPLEXITY_API_KEY"],
    urlEnv: ["PERPLEXITY_BASE_URL"],
    quirks: {
      reasoning: "none",
      tools: false,
      alternate: true,
      userLast: true,
    } satisfies ChatQuirks,
  },
  {
    id: "github-models",
    name: "GitHub Models",
    api: CHAT,
    baseUrl: "https://models.github.ai/inference",
    keyEnv: ["GITHUB_MODELS_TOKEN", "GITHUB_TOKEN"],
    urlEnv: ["GITHUB_MODELS_BASE_URL"],
  },
  {
    id: "ollama",
    name: "Ollama",
    api: "ollama",
    baseUrl: "http://127.0.0.1:11434",
    keyEnv: ["OLLAMA_API_KEY"],
    urlEnv: ["OLLAMA_HOST"],
    keyless: true,
  },
  {
    id: "lmstudio",
    name: "LM Studio",
    api: CHAT,
    baseUrl: "http://127.0.0.1:1234/v1",
    keyEnv: ["LMSTUDIO_API_KEY"],
    urlEnv: ["LMSTUDIO_BASE_URL"],
    keyless: true,
    quirks: { reasoningBack: "reasoning_content" } satisfies ChatQuirks,
  },
  {
    id: "llamacpp",
    name: "llama.cpp",
    api: CHAT,
    baseUrl: "http://127.0.0.1:8080/v1",
    keyEnv: ["LLAMACPP_API_KEY"],
    urlEnv: ["LLAMACPP_BASE_URL"],
    keyless: true,
    quirks: {
      reasoning: "template",
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      byModel: [{ ids: "gpt-oss", quirks: { reasoning: "effort", thinkingOff: false } }],
    } satisfies ChatQuirks,
  },
  {
    id: "vllm",
    name: "vLLM",
    api: CHAT,
    baseUrl: "http://127.0.0.1:8000/v1",
    keyEnv: ["VLLM_API_KEY"],
    urlEnv: ["VLLM_BASE_URL"],
    keyless: true,
    quirks: {
      reasoning: "template",
      thinkingOff: true,
      reasoningBack: "reasoning",
      byModel: [{ ids: "gpt-oss", quirks: { reasoning: "effort", thinkingOff: false } }],
    } satisfies ChatQuirks,
  },
];

/** The preset of a service by its id; those of one's own go first. */
export function findService(id: string, own?: readonly ServicePreset[]): ServicePreset | undefined {
  const isIt = (service: ServicePreset): boolean => service.id === id;
  return own?.find(isIt) ?? SERVICES.find(isIt);
}

/** The service that a model is at: its preset, or one made of what the model says. */
export function resolveService(model: Model, own?: readonly ServicePreset[]): ServicePreset {
  const known = findService(model.provider, own);
  if (known) return known;
  const name = model.provider;
  const variable = name.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  return {
    id: name,
    name,
    api: model.api,
    keyEnv: [`${variable}_API_KEY`],
    urlEnv: [`${variable}_BASE_URL`],
    // A model with an address of its own may be at a server that wants no key.
    keyless: true,
  };
}
