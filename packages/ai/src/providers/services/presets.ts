import type { Model } from "../../messages/messages.ts";
import type { ChatQuirks } from "../../messages/quirks.ts";
import { ANTHROPIC, defineService, describeService, type ServicePreset } from "./preset.ts";

export type { ServicePreset };

const CHAT = "openai-completions";
/** Services that know a low, a high and a highest effort. */
const LOW_HIGH_MAX: ChatQuirks["efforts"] = {
  medium: "high",
  xhigh: "max",
  max: "max",
};

/** The services that are known by name. */
export const SERVICES: readonly ServicePreset[] = [
  ANTHROPIC,
  defineService("openai", "OpenAI", "openai-responses", {
    baseUrl: "https://api.openai.com/v1",
    quirks: {
      promptCacheKey: true,
      byModel: [
        { ids: "^(o\\d|gpt-[5-9])", quirks: { systemRole: "developer" } },
        { ids: "^gpt-(4\\.1|[5-9])", quirks: { longCache: true } },
      ],
    },
  }),
  defineService("azure-openai-responses", "Azure OpenAI", "openai-responses", {
    keyEnv: ["AZURE_OPENAI_API_KEY"],
    urlEnv: ["AZURE_OPENAI_BASE_URL"],
    auth: "api-key",
  }),
  defineService("azure-openai", "Azure OpenAI", CHAT, { auth: "api-key" }),
  defineService("google", "Google Gemini", "google-generative-ai", {
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    keyEnv: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    urlEnv: ["GEMINI_BASE_URL"],
  }),
  defineService("google-vertex", "Google Vertex AI", "google-generative-ai", {
    baseUrl: "https://aiplatform.googleapis.com/v1/publishers/google",
    keyEnv: ["GOOGLE_VERTEX_TOKEN", "GOOGLE_VERTEX_API_KEY"],
  }),
  defineService("google-vertex-anthropic", "Claude on Vertex AI", "anthropic-vertex", {
    baseUrl: "https://aiplatform.googleapis.com/v1/publishers/anthropic",
    keyEnv: ["GOOGLE_VERTEX_TOKEN"],
    urlEnv: ["GOOGLE_VERTEX_ANTHROPIC_BASE_URL"],
  }),
  defineService("amazon-bedrock", "Amazon Bedrock", "bedrock-converse-stream", {
    baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com",
    keyEnv: ["AWS_BEARER_TOKEN_BEDROCK"],
    urlEnv: ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
  }),
  defineService("openrouter", "OpenRouter", CHAT, {
    baseUrl: "https://openrouter.ai/api/v1",
    quirks: {
      reasoning: "openrouter",
      reasoningBack: "reasoning_details",
      usageCost: true,
      byModel: [{ ids: "claude", quirks: { cacheControl: true } }],
    },
  }),
  defineService("groq", "Groq", CHAT, {
    baseUrl: "https://api.groq.com/openai/v1",
    quirks: {
      maxTokensField: "max_completion_tokens",
      reasoningBack: "reasoning",
      byModel: [{ ids: "qwen", quirks: { extra: { reasoning_format: "parsed" } } }],
    },
  }),
  defineService("xai", "xAI", CHAT, {
    baseUrl: "https://api.x.ai/v1",
    quirks: {
      sessionHeader: "x-grok-conv-id",
      byModel: [
        // These reject a thinking level.
        { ids: "grok-(4(-|$)|4\\.20|build|code)", quirks: { reasoning: "none" } },
      ],
    },
  }),
  defineService("deepseek", "DeepSeek", CHAT, {
    baseUrl: "https://api.deepseek.com/v1",
    quirks: {
      reasoning: "thinking",
      efforts: LOW_HIGH_MAX,
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      reasoningRequired: true,
    },
  }),
  defineService("mistral", "Mistral", CHAT, {
    baseUrl: "https://api.mistral.ai/v1",
    quirks: {
      streamUsage: false,
      efforts: { minimal: "high", low: "high", medium: "high" },
      reasoningBack: "parts",
      callIds: { pattern: "^[a-zA-Z0-9]{9}$", maxLength: 9 },
      resultName: true,
      toolChoices: ["none", "any", "named"],
      emptyContent: "",
      fileParts: "mistral",
      assistantAfterResults: true,
      userLast: true,
    },
  }),
  defineService("together", "Together", CHAT, {
    baseUrl: "https://api.together.xyz/v1",
    quirks: { alwaysLimit: true, reasoning: "switch" },
  }),
  defineService("fireworks", "Fireworks", CHAT, {
    baseUrl: "https://api.fireworks.ai/inference/v1",
    quirks: {
      alwaysLimit: true,
      reasoningBack: "reasoning_content",
      sessionHeader: "x-session-affinity",
    },
  }),
  defineService("cerebras", "Cerebras", CHAT, {
    baseUrl: "https://api.cerebras.ai/v1",
    quirks: { maxTokensField: "max_completion_tokens" },
  }),
  defineService("huggingface", "Hugging Face", CHAT, {
    baseUrl: "https://router.huggingface.co/v1",
    keyEnv: ["HF_TOKEN"],
    urlEnv: ["HF_BASE_URL"],
  }),
  defineService("moonshot", "Moonshot", CHAT, {
    baseUrl: "https://api.moonshot.ai/v1",
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
        { ids: "k2\\.6", quirks: { thinkingExtra: { keep: "all" } } },
        { ids: "k[3-9]", quirks: { reasoning: "effort", efforts: LOW_HIGH_MAX } },
      ],
    },
  }),
  defineService("zai", "Z.ai", CHAT, {
    baseUrl: "https://api.z.ai/api/paas/v4",
    quirks: {
      reasoning: "thinking",
      efforts: LOW_HIGH_MAX,
      thinkingExtra: { clear_thinking: false },
      reasoningBack: "reasoning_content",
      toolChoices: [],
      fileParts: "file_url",
      // Else arguments come only when they are whole, after a long silence.
      extra: { tool_stream: true },
    },
  }),
  defineService("perplexity", "Perplexity", CHAT, {
    baseUrl: "https://api.perplexity.ai",
    quirks: {
      reasoning: "none",
      tools: false,
      fileParts: "file_url",
      alternate: true,
      userLast: true,
    },
  }),
  defineService("github-models", "GitHub Models", CHAT, {
    baseUrl: "https://models.github.ai/inference",
    keyEnv: ["GITHUB_MODELS_TOKEN", "GITHUB_TOKEN"],
  }),
  defineService("ollama", "Ollama", "ollama", {
    baseUrl: "http://127.0.0.1:11434",
    urlEnv: ["OLLAMA_HOST"],
    keyless: true,
  }),
  defineService("lmstudio", "LM Studio", CHAT, {
    baseUrl: "http://127.0.0.1:1234/v1",
    keyless: true,
    quirks: { reasoningBack: "reasoning_content" },
  }),
  defineService("llamacpp", "llama.cpp", CHAT, {
    baseUrl: "http://127.0.0.1:8080/v1",
    keyless: true,
    quirks: {
      reasoning: "template",
      thinkingOff: true,
      reasoningBack: "reasoning_content",
      byModel: [{ ids: "gpt-oss", quirks: { reasoning: "effort", thinkingOff: false } }],
    },
  }),
  defineService("vllm", "vLLM", CHAT, {
    baseUrl: "http://127.0.0.1:8000/v1",
    keyless: true,
    quirks: {
      reasoning: "template",
      thinkingOff: true,
      reasoningBack: "reasoning",
      byModel: [{ ids: "gpt-oss", quirks: { reasoning: "effort", thinkingOff: false } }],
    },
  }),
];

/** The preset of a service by its id; those of one's own go first. */
export function findService(id: string, own?: readonly ServicePreset[]): ServicePreset | undefined {
  const isIt = (service: ServicePreset): boolean => service.id === id;
  return own?.find(isIt) ?? SERVICES.find(isIt);
}

/** The service that a model is at: its preset, or one made of what the model says. */
export function resolveService(model: Model, own?: readonly ServicePreset[]): ServicePreset {
  return findService(model.provider, own) ?? describeService(model);
}
