import {
  type CacheBreakpoint,
  type CacheRetention,
  type Context,
  type GenerationOptions,
  type OutputFormat,
  isRecord,
  type Message,
  type Model,
  type ServiceTool,
  type StreamOptions,
  type ThinkingBudgets,
  THINKING_LEVELS,
  toJsonSchema,
  type Tool,
  type ToolChoice,
} from "@gyre/ai";
import { type Payload } from "../frames/envelope.ts";
import {
  type FieldRules,
  isText,
  createChoiceRule,
  parseFields,
} from "../frames/payload-fields.ts";
import { invalidRequest } from "../frames/protocol-error.ts";
import { isMessage } from "../messages/message-checks.ts";

/** Messages of one request. */
export const MAX_CONTEXT_MESSAGES = 100_000;
/** Tools of one request. */
export const MAX_CONTEXT_TOOLS = 1_000;

/** The options that are sent: no secrets, no functions, nothing of this process. */
export type WireStreamOptions = Pick<
  StreamOptions,
  | "temperature"
  | "maxTokens"
  | "sessionId"
  | "thinkingLevel"
  | "thinkingBudgets"
  | "cacheRetention"
  | "toolChoice"
  | "maxRetryDelayMs"
  | "timeoutMs"
  | "metadata"
  | keyof GenerationOptions
>;

/** A request as the server reads it. */
export interface ModelRequest {
  model: { provider: string; id: string };
  context: Context;
  options: WireStreamOptions;
  /** A key of the client. */
  apiKey?: string;
}

/**
 * A request as it is sent: the model by its name, the context without the notes of the
 * application, and the options of `WireStreamOptions`. Headers and addresses are not sent; `apiKey`
 * is sent with `clientKeys` alone, in a field of its own.
 */
export function toRequestPayload(
  { provider, id }: Pick<Model, "provider" | "id">,
  { systemPrompt, messages, tools }: Context,
  options: StreamOptions = {},
  { clientKeys = false }: { clientKeys?: boolean } = {},
): Payload {
  const { apiKey } = options;
  return {
    model: { provider, id },
    context: {
      ...(systemPrompt !== undefined && { systemPrompt }),
      messages: messages.map(stripNotes),
      ...(tools && { tools: tools.map(toWireTool) }),
    },
    options: pickWireOptions(options),
    ...(clientKeys && apiKey !== undefined && { credentials: { apiKey } }),
  };
}

/** Reads `{model, context, options?, credentials?}`, strictly. Throws `invalid_request` with the reason. */
export function parseRequest({ model, context, options = {}, credentials }: Payload): ModelRequest {
  if (!isRecord(model) || !isText(model["provider"]) || !isText(model["id"])) {
    throw invalidRequest('"model" is {provider, id}, both strings.');
  }
  if (!isRecord(context)) throw invalidRequest('"context" is an object.');
  if (!isRecord(options)) throw invalidRequest('"options" is an object.');
  const { provider, id } = model;
  return {
    model: { provider, id },
    context: parseContext(context),
    // Ignores unknown options, and with them keys and headers.
    options: parseFields(options, OPTIONS, "options."),
    ...(credentials !== undefined && { apiKey: parseKey(credentials) }),
  };
}

/** No message of an error repeats what it gets: it may be a key. */
function parseKey(credentials: unknown): string {
  const apiKey = isRecord(credentials) ? credentials["apiKey"] : undefined;
  if (isText(apiKey) && apiKey !== "") return apiKey;
  throw invalidRequest('"credentials" is {apiKey}, a string that is not empty.');
}

/** Removes the notes of the application from a message: no model sees them, and they may not be JSON. */
function stripNotes(message: Message): Message {
  if (message.role === "toolResult" && message.details !== undefined) {
    const { details: _, ...seen } = message;
    return seen;
  }
  if (message.role === "assistant" && message.report) {
    const { report: _, ...seen } = message;
    return seen;
  }
  return message;
}

function toWireTool({ name, description, parameters }: Tool): Tool {
  return { name, description, parameters: toJsonSchema(parameters) };
}

function pickWireOptions(options: StreamOptions): Payload {
  const all: Payload = { ...options };
  const names = Object.keys(OPTIONS).filter((name) => all[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

function parseContext({ systemPrompt, messages, tools }: Payload): Context {
  if (systemPrompt !== undefined && !isText(systemPrompt)) {
    throw invalidRequest('"context.systemPrompt" is a string.');
  }
  if (!Array.isArray(messages)) throw invalidRequest('"context.messages" is a list.');
  if (messages.length > MAX_CONTEXT_MESSAGES) {
    throw invalidRequest(`"context.messages" has at most ${MAX_CONTEXT_MESSAGES} messages.`);
  }
  const at = messages.findIndex((message) => !isMessage(message));
  if (at >= 0) throw invalidRequest(`Message ${at} of "context.messages" is no message.`);
  return {
    ...(systemPrompt !== undefined && { systemPrompt }),
    messages: messages.filter(isMessage),
    ...(tools !== undefined && { tools: parseTools(tools) }),
  };
}

function parseTools(tools: unknown): Tool[] {
  if (!Array.isArray(tools)) throw invalidRequest('"context.tools" is a list.');
  if (tools.length > MAX_CONTEXT_TOOLS) {
    throw invalidRequest(`"context.tools" has at most ${MAX_CONTEXT_TOOLS} tools.`);
  }
  return tools.map((tool: unknown, at) => {
    const { name, description, parameters } = isRecord(tool) ? tool : {};
    if (isText(name) && isText(description) && isRecord(parameters)) {
      return { name, description, parameters };
    }
    throw invalidRequest(`Tool ${at} of "context.tools" is {name, description, parameters}.`);
  });
}

const LEVELS = createChoiceRule(THINKING_LEVELS);
const CHOICES = createChoiceRule<Extract<ToolChoice, string>>(["auto", "none", "required"]);

const OPTIONS: FieldRules<WireStreamOptions> = {
  temperature: { what: "a number", is: isFinite },
  maxTokens: { what: "a whole number above 0", is: isCount },
  sessionId: { what: "a string", is: isText },
  thinkingLevel: LEVELS,
  thinkingBudgets: { what: "an object of whole numbers above 0, by level", is: isBudgets },
  cacheRetention: createChoiceRule<CacheRetention>(["none", "short", "long"]),
  toolChoice: { what: `${CHOICES.what}, or {name}`, is: isToolChoice },
  maxRetryDelayMs: { what: "a number that is not below 0", is: isDuration },
  timeoutMs: { what: "a number that is not below 0", is: isDuration },
  metadata: { what: "an object", is: isRecord },
  topP: { what: "a number", is: isFinite },
  topK: { what: "a number", is: isFinite },
  minP: { what: "a number", is: isFinite },
  seed: { what: "a number", is: isFinite },
  stopSequences: { what: "a list of strings", is: isTexts },
  presencePenalty: { what: "a number", is: isFinite },
  frequencyPenalty: { what: "a number", is: isFinite },
  parallelToolCalls: { what: "true or false", is: isBoolean },
  strictTools: { what: "true or false", is: isBoolean },
  verbosity: createChoiceRule<NonNullable<GenerationOptions["verbosity"]>>([
    "low",
    "medium",
    "high",
  ]),
  userId: { what: "a string", is: isText },
  logprobs: { what: "a number", is: isFinite },
  // The client of the service looks at what is in them.
  cacheBreakpoints: { what: "a list of objects", is: isBreakpoints },
  outputFormat: { what: "{ schema } with a JSON Schema", is: isOutputFormat },
  serviceTools: { what: "a list of objects with a type", is: isServiceTools },
  providerOptions: { what: "an object", is: isRecord },
};

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === "boolean";
}

function isOutputFormat(value: unknown): value is OutputFormat {
  return isRecord(value) && isRecord(value["schema"]);
}

function isBreakpoints(value: unknown): value is CacheBreakpoint[] {
  return Array.isArray(value) && value.every((one) => isRecord(one) && "after" in one);
}

function isServiceTools(value: unknown): value is ServiceTool[] {
  return Array.isArray(value) && value.every((one) => isRecord(one) && isText(one["type"]));
}

function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function isDuration(value: unknown): value is number {
  return isFinite(value) && value >= 0;
}

function isBudgets(value: unknown): value is ThinkingBudgets {
  if (!isRecord(value)) return false;
  return Object.entries(value).every(([level, tokens]) => LEVELS.is(level) && isCount(tokens));
}

function isToolChoice(value: unknown): value is ToolChoice {
  return CHOICES.is(value) || (isRecord(value) && isText(value["name"]));
}
