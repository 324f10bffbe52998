import type { Clock } from "../common/clock.ts";
import type { GenerationOptions } from "./generation-options.ts";
import type { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import type {
  AssistantMessage,
  Context,
  Message,
  Model,
  ThinkingLevel,
} from "../messages/messages.ts";

/** Tokens that a model may think for, by level. */
export type ThinkingBudgets = Partial<Record<Exclude<ThinkingLevel, "off">, number>>;
/**
 * How long a service is asked to keep the prompt in its cache: not at all, as it usually
 * does, or for longer where it can.
 */
export type CacheRetention = "none" | "short" | "long";
/** Whether the model may call tools, must call one, or must call the one that is named. */
export type ToolChoice = "auto" | "none" | "required" | { name: string };

/** How long the connection of a request may carry nothing at all. 0: as long as it takes. */
export interface ConnectionWatchdog {
  /** Until the first byte of the response. Default 300,000; 0 for a service on this machine. */
  firstByteMs?: number;
  /** Between two bytes, of whatever kind: pings and comments count. Default 120,000. */
  betweenBytesMs?: number;
}

/**
 * What a caller may say about one request. Where a service has no setting for `thinkingLevel`,
 * `thinkingBudgets`, `cacheRetention`, `sessionId`, `metadata`, or for a temperature beside thinking,
 * the request goes without it. Every other option that it does not have is an error.
 */
export interface StreamOptions extends GenerationOptions {
  temperature?: number;
  maxTokens?: number;
  apiKey?: string;
  signal?: AbortSignal;
  /** Groups requests of one conversation, for caches and logs of the service. */
  sessionId?: string;
  thinkingLevel?: ThinkingLevel;
  /** Tokens for each level, for services that take a number. */
  thinkingBudgets?: ThinkingBudgets;
  cacheRetention?: CacheRetention;
  toolChoice?: ToolChoice;
  headers?: Readonly<Record<string, string>>;
  /** A service that asks for a longer wait than this fails at once. */
  maxRetryDelayMs?: number;
  /** For the whole response. */
  timeoutMs?: number;
  /** For its connection; an agent has a limit for content beside it. */
  watchdog?: ConnectionWatchdog;
  metadata?: Readonly<Record<string, unknown>>;
  /** Sees the body before it is sent, and may answer with another to send instead. */
  onPayload?: (payload: Record<string, unknown>, model: Model) => unknown;
  /** Sees that a service answered, before its body is read. Secrets are left out. */
  onResponse?: (response: ServiceResponse, model: Model) => void | Promise<void>;
  clock?: Clock;
}

/** The options that services without a setting for them ignore, and those that are not for services. */
export const PLAIN_OPTIONS: Readonly<
  Record<
    Exclude<keyof StreamOptions, keyof GenerationOptions | "apiKey" | "signal" | "thinkingLevel">,
    true
  >
> = {
  temperature: true,
  maxTokens: true,
  sessionId: true,
  thinkingBudgets: true,
  cacheRetention: true,
  toolChoice: true,
  headers: true,
  maxRetryDelayMs: true,
  timeoutMs: true,
  watchdog: true,
  metadata: true,
  onPayload: true,
  onResponse: true,
  clock: true,
};

/** The head of a service's answer, without secrets. */
export interface ServiceResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  url: string;
}

/**
 * Asks a model. Never throws for what a service did: that arrives as an `error`
 * event. May throw or reject for what the caller did wrong; the loop contains that.
 */
export type StreamFn = (
  model: Model,
  context: Context,
  options: StreamOptions,
) => AssistantMessageEventStream | Promise<AssistantMessageEventStream>;

/** The one thing that the loop knows of models, near or far. */
export interface ProtocolClient {
  stream: StreamFn;
}

type WithOptionalTime<M> = M extends Message
  ? Omit<M, "timestamp"> & { timestamp?: number }
  : never;

/** What is asked, as a program writes it: a message without a `timestamp` gets the time of the call. */
export interface ContextInput extends Omit<Context, "messages"> {
  messages: readonly WithOptionalTime<Message>[];
}

/** One response, whole. A failed one is a message too: look at `stopReason`. */
export async function complete(
  client: ProtocolClient,
  model: Model,
  context: ContextInput,
  options: StreamOptions = {},
): Promise<AssistantMessage> {
  checkRequest(model, context);
  const now = options.clock?.now() ?? Date.now();
  const messages = context.messages.map((message): Message => ({ timestamp: now, ...message }));
  return (await client.stream(model, { ...context, messages }, options)).result();
}

/** Throws on what programs without types write, and says what to write instead. */
function checkRequest(model: unknown, context: unknown): void {
  const call = "complete(client, model, context)";
  if (typeof model === "string") {
    throw new TypeError(
      `${call} has the name "${model}" where it needs a model: give findModel("${model}") of @gyre/ai/models.`,
    );
  }
  if (typeof model !== "object" || model === null) throw new TypeError(`${call} has no model.`);
  if (typeof context === "object" && context !== null && "messages" in context) return;
  const content = JSON.stringify(typeof context === "string" ? context : "Hi");
  throw new TypeError(
    `The context of ${call} is an object with messages: give { messages: [{ role: "user", content: ${content} }] }.`,
  );
}
