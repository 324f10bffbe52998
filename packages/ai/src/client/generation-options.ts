import type { JsonSchema } from "../schema/schema.ts";
import type {
  AnthropicServiceTool,
  GoogleServiceTool,
  OpenAIServiceTool,
  XaiServiceTool,
  ServiceTool,
} from "./service-tools.ts";

/**
 * What a caller may ask of a model beyond the options that every service has. No service has all of
 * these: one that the service or the model does not have ends the response with an error that names
 * it, before the request is sent. The table in docs/providers.md shows which service has which.
 */
export interface GenerationOptions {
  /** Samples from the most likely tokens that together have this probability, from 0 to 1. */
  topP?: number;
  /** Samples from this many of the most likely tokens. */
  topK?: number;
  /** Leaves out tokens that are less likely than this part of the most likely one, from 0 to 1. */
  minP?: number;
  /** Makes sampling repeatable, as far as the service can. */
  seed?: number;
  /** Texts at which the response ends. They are not part of it. */
  stopSequences?: readonly string[];
  /** Makes tokens less likely that came before at all. */
  presencePenalty?: number;
  /** Makes tokens less likely the more often they came before. */
  frequencyPenalty?: number;
  /** False: at most one tool call in a response. */
  parallelToolCalls?: boolean;
  /**
   * True: the service makes the arguments of every call fit the schema of the tool. Schemas are
   * adapted to what it takes; one that cannot be adapted is an error that names the tool.
   */
  strictTools?: boolean;
  /** How long answers are. */
  verbosity?: "low" | "medium" | "high";
  /** A stable id of the end user, without personal data, for the abuse checks of the service. */
  userId?: string;
  /** Reports the probability of each token and of this many others, in `report.details.logprobs`. */
  logprobs?: number;
  /** Where the prompt is cached, in place of where this library would; at most four. */
  cacheBreakpoints?: readonly CacheBreakpoint[];
  /**
   * The text of the response is JSON that fits a schema, as far as the service enforces it: what
   * comes is still to be checked. An agent sets it for a prompt with `output`.
   */
  outputFormat?: OutputFormat;
  /** Tools that the service runs by itself: a search of the web, code. See docs/server-tools.md. */
  serviceTools?: readonly ServiceTool[];
  /** Options that one service has, by its id. Those of other services than the model's are not used. */
  providerOptions?: ProviderOptions;
}

const NAMES: Record<keyof GenerationOptions, true> = {
  topP: true,
  topK: true,
  minP: true,
  seed: true,
  stopSequences: true,
  presencePenalty: true,
  frequencyPenalty: true,
  parallelToolCalls: true,
  strictTools: true,
  verbosity: true,
  userId: true,
  logprobs: true,
  cacheBreakpoints: true,
  outputFormat: true,
  serviceTools: true,
  providerOptions: true,
};

/** The names of `GenerationOptions`. */
export const GENERATION_OPTIONS = Object.keys(NAMES) as (keyof GenerationOptions)[];

/** A place up to which a service caches the prompt. */
export interface CacheBreakpoint {
  /** After the tools, after the system prompt, or after a message: its index, from the end if negative. */
  after: "tools" | "system" | number;
  /** How long it is kept. Default `5m`. */
  ttl?: "5m" | "1h";
}

/** The form of a response, for services with structured output. */
export interface OutputFormat {
  /**
   * Of an object. It is adapted to the part of JSON Schema that the service takes: constraints that
   * it does not enforce become part of the descriptions.
   */
  schema: JsonSchema;
  /** What the form is called: at most 64 letters, digits, `_` and `-`. Default `answer`. */
  name?: string;
  /**
   * The tool of the context whose arguments are the answer where the service, the model or the
   * schema allow no other way. Where they do, it is not sent. Absent: that is an error.
   */
  tool?: string;
}

/** Options of single services, by the id that models have in `provider`. */
export interface ProviderOptions {
  anthropic?: AnthropicOptions;
  openai?: OpenAIOptions;
  "azure-openai"?: OpenAIOptions;
  "azure-openai-responses"?: OpenAIOptions;
  google?: GoogleOptions;
  "google-vertex"?: GoogleVertexOptions;
  "amazon-bedrock"?: BedrockOptions;
  openrouter?: OpenRouterOptions;
  groq?: GroqOptions;
  xai?: XaiOptions;
  mistral?: MistralOptions;
  together?: RepetitionOptions;
  fireworks?: RepetitionOptions;
  vllm?: RepetitionOptions;
  ollama?: OllamaOptions;
}

/** What Anthropic has alone. */
export interface AnthropicOptions {
  /** `auto`: priority capacity where the account has it. */
  serviceTier?: "auto" | "standard_only";
  /** `fast`: more tokens a second for a higher price, on models that have it. */
  speed?: "standard" | "fast";
  /** Where the model runs, such as `us`. */
  inferenceGeo?: string;
  /** Tools that Anthropic alone has. */
  serviceTools?: readonly AnthropicServiceTool[];
}

/** What OpenAI has alone, at its own address and at Azure. */
export interface OpenAIOptions {
  /** How fast the request is served, and for which price. */
  serviceTier?: "auto" | "default" | "flex" | "scale" | "priority";
  /** How much of its reasoning a model sums up; of `openai-responses`. */
  reasoningSummary?: "auto" | "concise" | "detailed";
  /** `auto`: the service leaves out the middle of a prompt that is too long; of `openai-responses`. */
  truncation?: "auto" | "disabled";
  /** Whether the service keeps the response; of `openai-responses`. Default: where an option below needs it. */
  store?: boolean;
  /**
   * Goes on from the last response that the service has kept, and sends only what is new since; of
   * `openai-responses`. The whole transcript is sent where it was edited or compacted, and where the
   * service does not know the response any more. `auto`, or the id of a response that the
   * transcript as a whole follows.
   */
  previousResponseId?: "auto" | (string & {});
  /**
   * The id of a conversation that the service keeps: only what it does not have is sent; of
   * `openai-responses`. A transcript that was edited or compacted since is an error.
   */
  conversation?: string;
  /**
   * The service goes on with the response if the connection is cut, and it is resumed: as a stream, or
   * by polling. Aborting the request cancels it; of `openai-responses`.
   */
  background?: boolean;
  /** Tools that OpenAI alone has; of `openai-responses`. */
  serviceTools?: readonly OpenAIServiceTool[];
  /** Makes tokens more or less likely, by their number, from -100 to 100; of `openai-completions`. */
  logitBias?: Readonly<Record<string, number>>;
}

/** What Gemini has alone. */
export interface GoogleOptions {
  /** From which probability of harm on content is blocked. */
  safetySettings?: readonly SafetySetting[];
  /** The name of content that was cached before, such as `cachedContents/abc`. */
  cachedContent?: string;
  /** Tools that Google alone has. */
  serviceTools?: readonly GoogleServiceTool[];
}

/** What Gemini on Vertex AI has alone. */
export interface GoogleVertexOptions extends GoogleOptions {
  /** Labels of the request in the bill. */
  labels?: Readonly<Record<string, string>>;
}

/** When Gemini blocks content of one category. */
export interface SafetySetting {
  category:
    | "HARM_CATEGORY_HARASSMENT"
    | "HARM_CATEGORY_HATE_SPEECH"
    | "HARM_CATEGORY_SEXUALLY_EXPLICIT"
    | "HARM_CATEGORY_DANGEROUS_CONTENT"
    | "HARM_CATEGORY_CIVIC_INTEGRITY";
  threshold:
    | "BLOCK_NONE"
    | "BLOCK_ONLY_HIGH"
    | "BLOCK_MEDIUM_AND_ABOVE"
    | "BLOCK_LOW_AND_ABOVE"
    | "OFF";
}

/** What Amazon Bedrock has alone. */
export interface BedrockOptions {
  /** The guardrail that checks the prompt and the response. */
  guardrail?: BedrockGuardrail;
  /** How fast the request is served, and for which price. */
  serviceTier?: "default" | "flex" | "priority" | "reserved";
  /** `optimized`: less latency, on models that have it. */
  latency?: "standard" | "optimized";
  /** Names and values that invocation logs have. */
  requestMetadata?: Readonly<Record<string, string>>;
}

/** A guardrail of the account. */
export interface BedrockGuardrail {
  /** Its id or its ARN. */
  id: string;
  version: string;
  /** Whether the report says what it did: `report.details.trace`. */
  trace?: "enabled" | "disabled" | "enabled_full";
  /** `async`: content is shown before it is checked. */
  processing?: "sync" | "async";
}

/** What OpenRouter has alone. */
export interface OpenRouterOptions extends RepetitionOptions {
  /** Which providers serve the model, and which never do. */
  routing?: OpenRouterRouting;
  /** Models that are asked in this order where the first fails. */
  models?: readonly string[];
  /** Leaves out tokens by the square of the highest probability, from 0 to 1. */
  topA?: number;
}

/** Which providers of OpenRouter serve a request. */
export interface OpenRouterRouting {
  /** The providers to ask, in this order. */
  order?: readonly string[];
  only?: readonly string[];
  ignore?: readonly string[];
  /** Whether others may serve it where those of `order` fail. */
  allowFallbacks?: boolean;
  /** Only providers that take every option of the request. */
  requireParameters?: boolean;
  dataCollection?: "allow" | "deny";
  sort?: "price" | "throughput" | "latency";
}

/** What Groq has alone. */
export interface GroqOptions {
  /** How fast the request is served, and with which limits. */
  serviceTier?: "auto" | "on_demand" | "flex" | "performance";
}

/** What xAI has alone. */
export interface XaiOptions {
  /** Tools that xAI alone has; of `openai-responses`. */
  serviceTools?: readonly XaiServiceTool[];
}

/** What Mistral has alone. */
export interface MistralOptions {
  /** Puts a safety prompt before the conversation. */
  safePrompt?: boolean;
}

/** What services have that run open models. */
export interface RepetitionOptions {
  /** Makes tokens less likely that came before, in the prompt too; 1 changes nothing. */
  repetitionPenalty?: number;
}

/** What Ollama has alone. */
export interface OllamaOptions extends RepetitionOptions {
  /** How long the model stays loaded: `10m`, or seconds. */
  keepAlive?: string | number;
}
