import type { ApiName, ServiceName } from "./names.ts";

/**
 * What a conversation is made of. Plain data: every value here survives
 * `JSON.stringify` and back, and is never changed after it was published.
 */

export interface TextContent {
  type: "text";
  text: string;
  /** Where the text came from, if not from the user or the model. */
  source?: TextSource;
  /** What a model's text is based on, as far as its service says so. */
  citations?: Citation[];
  /** Opaque proof of origin that some services want back, byte for byte. */
  signature?: string;
}

/** A place that a text of a model is based on: a page, or a part of a document. */
export interface Citation {
  /** Of a page. */
  url?: string;
  /** Of the page, the document or the file. */
  title?: string;
  /** What the source says there. */
  text?: string;
  /** The page of a document, from 1. */
  page?: number;
  /** Of a file at the service. */
  fileId?: string;
  /** The characters of the block that it is for, from `start` to before `end`. Absent: all of them. */
  start?: number;
  end?: number;
}

/**
 * Where a text came from: a file, a command, a page. An agent puts such a text between two lines
 * with this on its way to the model, so that the model can distinguish data from instructions.
 */
export interface TextSource {
  kind: string;
  /** The path, address, server and tool, or command line, on one line. */
  name: string;
  /** Made of the text, so that the text cannot hold the line that ends it. */
  mark: string;
}

/** What a model thought before it answered. */
export interface ThinkingContent {
  type: "thinking";
  thinking: string;
  /** Opaque proof of origin; sent back only to the model that made it. */
  signature?: string;
  /** The service hid the thought; `signature` holds all there is. */
  redacted?: boolean;
}

/** A picture in a message. */
export interface ImageContent {
  type: "image";
  /** Base64, without a `data:` prefix. */
  data: string;
  mimeType: string;
  /** Opaque proof of origin, on an image that a model made. */
  signature?: string;
}

/**
 * A file in a message: a picture, a document, sound, video. What a service takes of it differs: where
 * a service has no form for it, a request that asks about it fails before it is sent.
 */
export interface FileContent {
  type: "file";
  /** What is in it: `application/pdf`, `text/markdown`, `image/png`, `audio/wav`, `video/mp4`. */
  mediaType: string;
  /** For people, and for models whose service passes it on. */
  name?: string;
  source: FileSource;
  /** Opaque proof of origin, on a file that a model made. */
  signature?: string;
}

/**
 * Where the contents of a file are. `base64`: here, without a `data:` prefix. `url`: at an address that
 * the service loads (`https:`, at some services also `s3:` or `gs:`). `id`: uploaded to one service
 * before, which alone knows it by that id. `stored`: in the store of the session, by the SHA-256 of its
 * bytes in hexadecimal; `withStoredFiles` puts the contents in its place for a request.
 */
export type FileSource =
  | { type: "base64"; data: string }
  | { type: "url"; url: string }
  | { type: "id"; id: string; service: ServiceName }
  | { type: "stored"; sha256: string; size: number };

/** A model asks for a tool to be run. The result goes back with the same `id`. */
export interface ToolCall<Name = string, Arguments = Record<string, unknown>> {
  type: "toolCall";
  id: string;
  name: Name;
  /** What the model sent, parsed. `{}` when it did not parse. */
  arguments: Arguments;
  signature?: string;
  /** The text that did not parse; only there with `argumentsError` or `repaired`. */
  rawArguments?: string;
  /**
   * The text was whole but for escapes that JSON does not have, raw control characters or trailing
   * commas; `arguments` is what it meant.
   */
  repaired?: true;
  /** The parser's message; a call that has this is never run. */
  argumentsError?: string;
}

/** A tool that the service itself ran: shown, sent back, never run here. */
export interface ServiceToolContent {
  type: "serviceTool";
  id: string;
  name: string;
  input?: unknown;
  output?: unknown;
  /** The service's own block, kept whole so that it can be sent back unchanged. */
  raw?: unknown;
}

/** A block of what a model says. */
export type AssistantContent =
  | TextContent
  | ThinkingContent
  | ToolCall
  | ServiceToolContent
  | ImageContent
  | FileContent;

/** A block of what a user says, or of what a tool gives. */
export type UserContent = TextContent | ImageContent | FileContent;

/** Money in US dollars. A price that is not known is absent, never 0. */
export interface Cost {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  webSearches?: number;
  total: number;
  /** Tools of the service that it bills beside this, for a price that is not known here: `codeExecution`. */
  notIncluded?: readonly string[];
}

/** Tokens as the service reported them. What it did not say is absent. */
export interface Usage {
  /** Input tokens that were neither read from nor written to a cache. */
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  /** The part of `cacheWrite` that is kept for an hour, which costs more. */
  longCacheWrite?: number;
  /** The part of `output` that was thinking, if the service reports it. */
  reasoning?: number;
  /** Searches of the web that the service ran and bills. */
  webSearches?: number;
  /** Tools of the service that it ran and bills, without a price that is known: `codeExecution`. */
  unpricedTools?: readonly string[];
  totalTokens?: number;
  /** The tier in which the service handled the request, where that has prices of its own. */
  serviceTier?: string;
  /** Absent when any price that it needs is unknown. */
  cost?: Cost;
}

/**
 * Why a response ended. `redirected`: cut off by a steering message. `pause`:
 * the service wants to be called again with the transcript as it is.
 */
export type StopReason =
  | "stop"
  | "length"
  | "toolUse"
  | "pause"
  | "error"
  | "aborted"
  | "redirected";

/** What a user says. */
export interface UserMessage {
  role: "user";
  content: string | UserContent[];
  timestamp: number;
}

/** A response of a model, whole or cut off; `stopReason` says how it ended. */
export interface AssistantMessage {
  role: "assistant";
  content: AssistantContent[];
  /** The API format, service and model of the request. */
  api: string;
  provider: string;
  model: string;
  /** The model that the service says it used, where that differs. */
  servedModel?: string;
  responseId?: string;
  /** Where the service runs code for this conversation. The next request names it again. */
  container?: { id: string; expiresAt: string };
  /**
   * A hash of what was sent, where thinking in this message may only follow the same again; of a
   * response that its service keeps, with the response, so that a later request can go on from it.
   */
  prefix?: string;
  usage: Usage;
  stopReason: StopReason;
  /** The service's own report on this response. */
  report?: ServiceReport;
  /** For people: what happened and what to do. Set with `error` and `aborted`. */
  errorMessage?: string;
  /** For programs: what kind of error it was. */
  failure?: Failure;
  timestamp: number;
}

/**
 * What a service reported on a response, in its own names, for people who look closely.
 * The loop reads none of it, and none of it is sent back.
 */
export interface ServiceReport {
  /** Events of the service that were read. */
  events: number;
  /** Its own name for why the response ended. */
  stopReason?: string;
  /** Its own count, as it came. */
  usage?: Record<string, unknown>;
  /** Events, blocks and parts that this format does not know, by name, and how often each came. */
  unknown?: Record<string, number>;
  /** What else it reported: a stop sequence, safety ratings, how many choices there were. */
  details?: Record<string, unknown>;
}

/**
 * How a tool call ended. `ok`: it did its work. `error`: it failed. `denied`: a rule, a hook or
 * a person refused it. `aborted`: the run was stopped. `skipped`: a steering message came first.
 * `timeout`: it took too long. `invalid`: its arguments did not fit the schema. `unknown_tool`:
 * there is no tool of that name. `interrupted`: the process ended while it ran, and its effects
 * are unknown. `limit`: a limit of the run was reached. `truncated`: the response was cut off at
 * its length limit, so the call was not run.
 */
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];

export const TOOL_OUTCOMES = [
  "ok",
  "error",
  "denied",
  "aborted",
  "skipped",
  "timeout",
  "invalid",
  "unknown_tool",
  "interrupted",
  "limit",
  "truncated",
] as const;

/** Whether a value from outside is one of `TOOL_OUTCOMES`. */
export function isToolOutcome(value: unknown): value is ToolOutcome {
  return TOOL_OUTCOMES.some((outcome) => outcome === value);
}

/** How the result of a tool was made short enough for a transcript. */
export interface ShortenedResult {
  /** Of what the tool gave, about. */
  tokens: number;
  /** What a model made of it, which is part of the content. Absent: the middle is left out. */
  summary?: string;
}

/** The result of a tool call, for the model and for the application. */
export interface ToolResultMessage {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: UserContent[];
  /** For the application that shows the result; the model never sees it. */
  details?: unknown;
  /** The content is shorter than what the tool gave. */
  shortened?: ShortenedResult;
  isError: boolean;
  /** How the call ended; absent in transcripts that do not record it: see `outcomeOf`. */
  outcome?: ToolOutcome;
  /** Why it is not `ok`, in a sentence for people. */
  reason?: string;
  timestamp: number;
}

/** How a call ended, also where a transcript does not record it. */
export function outcomeOf(result: { outcome?: ToolOutcome; isError?: boolean }): ToolOutcome {
  return result.outcome ?? (result.isError === true ? "error" : "ok");
}

/** What a model reads and writes. */
export type Message = UserMessage | AssistantMessage | ToolResultMessage;

/**
 * What went wrong with a response, for programs. `overflow`: too long for the model's
 * window. `stalled`: the service went silent. `incomplete`: the stream broke off.
 * `hook`: code of the application threw.
 */
export type FailureKind =
  | "auth"
  | "quota"
  | "rate_limit"
  | "overloaded"
  | "overflow"
  | "bad_request"
  | "refused"
  | "network"
  | "timeout"
  | "stalled"
  | "incomplete"
  | "empty"
  | "aborted"
  | "invalid_transcript"
  | "hook"
  | "unknown";

/** What a program needs to know of a failed response in order to act on it. */
export interface Failure {
  kind: FailureKind;
  /** Whether the same request may succeed later. Absent: judged by `kind`. */
  retryable?: boolean;
  /** How long the service asked us to wait. */
  retryAfterMs?: number;
  /** HTTP status, where there was one. */
  status?: number;
  requestId?: string;
}

/** How much a model can be asked to think, from nothing to the most. */
export const THINKING_LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** How much a model is asked to think, as far as its service has a setting for it. */
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

/**
 * What an API expects of requests to a model.
 *
 * - `eagerInput`: streams arguments as they are written; other models withhold each until it is whole.
 * - `interleavedThinking`: thinks between calls, if a beta header asks for it.
 * - `bedrockCache`: has a cache on Amazon Bedrock.
 * - `longBedrockCache`: the cache on Amazon Bedrock can last an hour.
 * - `adaptiveThinking`: takes a thinking level; models without it take a number of tokens.
 * - `userLast`: the last message has to be the user's.
 * - `xhighEffort`: takes the levels `xhigh` and `max`; asked where `thinkingLevels` is absent.
 * - `hiddenThinking`: thinks without showing anything, unless a summary is requested.
 * - `fixedTemperature`: rejects a temperature.
 * - `thinksByDefault`: thinks unless it is switched off.
 * - `noForcedCalls`: rejects a request that forces a call.
 * - `bindsThinking`: rejects its own thinking if something before it has changed since.
 * - `offDisabled`, `offBetweenTools`: how thinking is switched off. Without either, the lowest level is
 *   the least there is.
 */
export const MODEL_FEATURES = [
  "eagerInput",
  "interleavedThinking",
  "bedrockCache",
  "longBedrockCache",
  "adaptiveThinking",
  "userLast",
  "xhighEffort",
  "hiddenThinking",
  "fixedTemperature",
  "thinksByDefault",
  "noForcedCalls",
  "bindsThinking",
  "offDisabled",
  "offBetweenTools",
] as const;

/** One of `MODEL_FEATURES`. */
export type ModelFeature = (typeof MODEL_FEATURES)[number];

/** US dollars for a million tokens. An absent price is unknown. */
export interface TokenPrice {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  /** Written to a cache for an hour. Absent: twice `input`, as services do that have such a cache. */
  longCacheWrite?: number;
}

/** Holds for a whole request whose input, cached or not, has more than `above` tokens. */
export interface PriceTier extends TokenPrice {
  above: number;
}

/** What a model costs, with other prices for long prompts where there are such. */
export interface ModelPrice extends TokenPrice {
  /** US dollars for a search of the web that the service runs. */
  webSearch?: number;
  tiers?: readonly PriceTier[];
}

/** What a model may read. */
export type ModelInput = (typeof MODEL_INPUTS)[number];

export const MODEL_INPUTS = ["text", "image", "pdf", "audio", "video"] as const;

/** A model at a service, and the facts that are known of it. What is absent is not known. */
export interface Model {
  id: string;
  name: string;
  /** The API format: the key under which `ApiRegistry` finds its provider. */
  api: ApiName;
  provider: ServiceName;
  baseUrl?: string;
  reasoning?: boolean;
  /** How much it can be asked to think; a request for another level asks for the next one of these. */
  thinkingLevels?: readonly ThinkingLevel[];
  /**
   * What its service calls a level, where that is another word than the level's own (for `off`: `none`).
   * Empty: the level is switched on without a word for how much.
   */
  efforts?: Readonly<Partial<Record<ThinkingLevel, string>>>;
  /** What requests to it have to respect. Absent: not known, and assumed of what its id names. */
  features?: readonly ModelFeature[];
  /**
   * What it reads beside text. Absent: not known, and images are assumed. The catalog knows of images
   * alone: which models read PDF, audio and video is known of their services, and may be added here.
   */
  input?: readonly ModelInput[];
  price?: ModelPrice;
  contextWindow?: number;
  maxTokens?: number;
  headers?: Readonly<Record<string, string>>;
  /** How its service differs from others with this format; takes precedence over the preset. */
  quirks?: Readonly<import("./quirks.ts").ModelQuirks>;
}

/** What one request to a model holds. Valid for the call: copy what you keep. */
export interface Context {
  systemPrompt?: string;
  messages: readonly Message[];
  tools?: readonly Tool[];
}

/** A tool as a model sees it. */
export interface Tool<S extends ToolSchema = ToolSchema> {
  name: string;
  description: string;
  parameters: S;
}

/** JSON Schema (typebox makes these), or any Standard Schema that has a JSON Schema. */
export type ToolSchema = import("../schema/schema.ts").AnySchema;
