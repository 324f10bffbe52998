import type { StreamOptions } from "../../client/client.ts";
import type { Fetch } from "../../client/fetch.ts";
import type {
  GenerationOptions,
  OpenAIOptions,
  ProviderOptions,
} from "../../client/generation-options.ts";
import { isRecord, toRecord } from "../../common/records.ts";
import type { Context, Message, Model } from "../../messages/messages.ts";
import type { JsonSchema } from "../../schema/schema.ts";
import type { SchemaDialect } from "../../schema/strict-schema.ts";
import type { ServicePreset } from "../services/preset.ts";

/** The options that may be given for any service; see `GenerationOptions`. */
export type CommonOptions = Required<Omit<GenerationOptions, "providerOptions">>;
export type CommonName = keyof CommonOptions;
/** A service with options of its own. */
export type OptionService = keyof ProviderOptions;

/** What is known of a request before it is written. */
export interface OptionTarget {
  readonly model: Model;
  readonly options: StreamOptions;
  readonly service: ServicePreset;
}

/** A request that has been written, to which options are added. */
export interface Draft {
  readonly request: OptionTarget & { readonly context: Context };
  /** The messages as the format writes them. */
  readonly formatMessages: (messages: readonly Message[], model: Model) => object[];
  readonly body: Readonly<Record<string, unknown>>;
  /** May be added to. */
  readonly headers: Record<string, string>;
  /** Puts a function around the one that sends the request. */
  readonly wrapFetch: (wrap: (fetch: Fetch) => Fetch) => void;
}

/** Writes an option: what it returns is merged into the body. Throws what is wrong with the value. */
type Writer<Value, Body> = (value: Value, draft: Draft) => Partial<Body>;
type Writers<Options, Body> = {
  readonly [Name in keyof Options]?: Writer<NonNullable<Options[Name]>, Body>;
};

/**
 * The options of an API format, one row of the table service × option: `options.ts` in its folder
 * exports it. An option without a writer is one that the format does not have. `Body` is the type
 * that the official SDK of the service has for a request.
 */
export interface FormatOptions<Body = object> {
  readonly common: Writers<CommonOptions, Body>;
  readonly services: {
    readonly [Service in OptionService]?: Writers<Required<ProviderOptions>[Service], Body>;
  };
  /** The common options that the services of the format have. One that is absent here has all. */
  readonly taken?: Readonly<Record<string, readonly CommonName[]>>;
  /** Of options that a service has in another format alone: what to write for it. */
  readonly elsewhere?: Readonly<Record<string, Readonly<Partial<Record<CommonName, string>>>>>;
  /** Structured output; absent where the format has none. */
  readonly output?: FormatOutput<Body>;
  /** Why a model rejects an option that its service has; nothing if it takes it. */
  refuse?(name: string, target: OptionTarget): string | undefined;
}

/** How a model is asked for text that fits a schema: with or without tools beside it, or not at all. */
export type OutputSupport = boolean | "alone";

/** Structured output of a format: the option `outputFormat`. */
export interface FormatOutput<Body = object> {
  /** The part of JSON Schema that is enforced. */
  readonly dialect: SchemaDialect;
  /** What is documented of a model; the quirk `structuredOutput` takes precedence over it. */
  readonly supports: (target: OptionTarget) => OutputSupport;
  readonly write: (format: { name: string; schema: JsonSchema }, draft: Draft) => Partial<Body>;
}

/** What a common option has to be; the compiler finds one that is missing here. */
export const COMMON: Readonly<
  Record<CommonName, { what: string; is: (value: unknown) => boolean }>
> = {
  topP: { what: "a number from 0 to 1", is: isShare },
  topK: { what: "a whole number above 0", is: isCount },
  minP: { what: "a number from 0 to 1", is: isShare },
  seed: { what: "a whole number", is: Number.isSafeInteger },
  stopSequences: { what: "a list of strings that are not empty", is: isTexts },
  presencePenalty: { what: "a number", is: Number.isFinite },
  frequencyPenalty: { what: "a number", is: Number.isFinite },
  parallelToolCalls: { what: "true or false", is: isBoolean },
  strictTools: { what: "true or false", is: isBoolean },
  verbosity: { what: "low, medium or high", is: isVerbosity },
  userId: { what: "a string that is not empty", is: isText },
  logprobs: { what: "a whole number from 0 to 20", is: isLogprobs },
  cacheBreakpoints: { what: "a list of at most 4 { after, ttl }", is: isBreakpoints },
  outputFormat: { what: "{ schema, name, tool } with the JSON Schema of an object", is: isOutput },
  serviceTools: { what: "a list of tools, each with its type, such as webSearch", is: isTyped },
};

const OF_OPENAI: Readonly<Record<keyof OpenAIOptions, true>> = {
  serviceTier: true,
  reasoningSummary: true,
  truncation: true,
  store: true,
  previousResponseId: true,
  conversation: true,
  background: true,
  serviceTools: true,
  logitBias: true,
};

/** The options of single services; the compiler finds one that is missing here. */
export const SERVICE_OPTIONS: {
  readonly [Service in OptionService]-?: Readonly<
    Record<keyof NonNullable<ProviderOptions[Service]>, true>
  >;
} = {
  anthropic: { serviceTier: true, speed: true, inferenceGeo: true, serviceTools: true },
  openai: OF_OPENAI,
  "azure-openai": OF_OPENAI,
  "azure-openai-responses": OF_OPENAI,
  google: { safetySettings: true, cachedContent: true, serviceTools: true },
  "google-vertex": {
    safetySettings: true,
    cachedContent: true,
    serviceTools: true,
    labels: true,
  },
  "amazon-bedrock": { guardrail: true, serviceTier: true, latency: true, requestMetadata: true },
  openrouter: { routing: true, models: true, topA: true, repetitionPenalty: true },
  groq: { serviceTier: true },
  xai: { serviceTools: true },
  mistral: { safePrompt: true },
  together: { repetitionPenalty: true },
  fireworks: { repetitionPenalty: true },
  vllm: { repetitionPenalty: true },
  ollama: { repetitionPenalty: true, keepAlive: true },
};

const MAX_LOGPROBS = 20;
const MAX_BREAKPOINTS = 4;
const OUTPUT_NAME = /^[\w-]{1,64}$/;
const VERBOSITIES: readonly unknown[] = ["low", "medium", "high"];
const LIFETIMES: readonly unknown[] = [undefined, "5m", "1h"];

function isShare(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= 1;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function isBoolean(value: unknown): boolean {
  return typeof value === "boolean";
}

function isVerbosity(value: unknown): boolean {
  return VERBOSITIES.includes(value);
}

function isLogprobs(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LOGPROBS;
}

function isOutput(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { schema, name, tool } = value;
  const isName = name === undefined || (isText(name) && OUTPUT_NAME.test(name));
  return isRecord(schema) && isName && (tool === undefined || isText(tool));
}

function isTyped(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => isText(toRecord(one)["type"]));
}

function isBreakpoints(value: unknown): boolean {
  if (!Array.isArray(value) || value.length > MAX_BREAKPOINTS) return false;
  return value.every(
    (one: unknown) =>
      typeof one === "object" &&
      one !== null &&
      "after" in one &&
      (one.after === "tools" || one.after === "system" || Number.isSafeInteger(one.after)) &&
      LIFETIMES.includes("ttl" in one ? one.ttl : undefined),
  );
}
