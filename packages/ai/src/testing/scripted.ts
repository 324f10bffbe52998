import { Accumulator } from "../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import type { ProtocolClient, StreamFn, StreamOptions } from "../client/client.ts";
import { type Clock, systemClock } from "../common/clock.ts";
import type { DoneReason } from "../stream/events.ts";
import type {
  Citation,
  Context,
  Failure,
  Message,
  Model,
  ServiceToolContent,
  Tool,
  Usage,
} from "../messages/messages.ts";
import { TranscriptValidator } from "../messages/transcript.ts";

/** A block of a scripted response. `open`: its end never comes, as when a response is cut off. */
export type ScriptPart =
  | { type: "text"; text: string; signature?: string; citations?: Citation[]; open?: boolean }
  | { type: "thinking"; thinking: string; signature?: string; redacted?: boolean; open?: boolean }
  | {
      type: "toolCall";
      name: string;
      /** A value, or the very JSON to send: that may be broken. */
      arguments: Readonly<Record<string, unknown>> | string;
      /** Made up when absent: `call_1`, `call_2`, ... */
      id?: string;
      signature?: string;
      open?: boolean;
    }
  | (Omit<ServiceToolContent, "id"> & { id?: string });

/**
 * One response, in full. The parts come first; then at most one of `error`, `refuse`,
 * `stall`, `end` and `breaks`; with none of them the response is done. `throws` and
 * `rejects` come instead of a response.
 */
export interface ScriptedResponse {
  parts?: readonly (ScriptPart | string)[];
  usage?: Usage;
  /** `toolUse` if there are calls, else `stop`. */
  stopReason?: DoneReason;
  error?: { message: string; failure?: Partial<Failure> };
  /** The service declines to answer: an error of kind `refused`, with these words. */
  refuse?: string;
  /** Nothing more comes until the request is aborted. */
  stall?: boolean;
  /** The stream ends with no terminal event. */
  end?: boolean;
  /** The stream fails with this error: its reader throws. */
  breaks?: unknown;
  /** `stream()` throws this. */
  throws?: unknown;
  /** `stream()` answers with a promise that rejects with this. */
  rejects?: unknown;
  /** UTF-16 code units in a delta; a pair of surrogates is not parted. Absent: a block is one delta. */
  chunkSize?: number;
  /** Before the first event. */
  delayMs?: number;
  /** Between two deltas. */
  betweenMs?: number;
  responseId?: string;
  servedModel?: string;
}

type ScriptItem = string | ScriptPart | ScriptedResponse;

/**
 * One response: a string is a text; a list is its parts in order, and what `fail`,
 * `stall` or a `ScriptedResponse` in it says holds for the whole.
 */
export type ScriptAnswer = ScriptItem | readonly (ScriptItem | readonly ScriptItem[])[];

/**
 * Decides on a response when the request is there. `callIndex` counts requests from 0.
 * What it throws, `stream()` throws; what its promise rejects with, the stream fails with.
 */
export type ScriptFunction = (
  context: Context,
  options: StreamOptions,
  callIndex: number,
) => ScriptAnswer | Promise<ScriptAnswer>;

/** What a scripted model does for one request: an answer, or a function that makes one. */
export type ScriptStep = ScriptAnswer | ScriptFunction;

/** One request as a scripted model saw it. */
export interface ScriptedCall {
  model: Model;
  systemPrompt: string | undefined;
  /** A copy of the list; the messages are those that were sent. */
  messages: Message[];
  tools: readonly Tool[] | undefined;
  options: StreamOptions;
}

/** Defaults for the steps, which may each say otherwise, and what to keep. */
export interface ScriptedModelOptions extends Pick<
  ScriptedResponse,
  "chunkSize" | "delayMs" | "betweenMs" | "usage"
> {
  /** For the delays and timestamps. Absent: that of the request, else the system's. */
  clock?: Clock;
  /** Whether `calls` is kept; default true. A long benchmark does not want that. */
  keepCalls?: boolean;
}

/** A model that follows a script. Its `stream` may be passed on without it. */
export interface ScriptedModel extends ProtocolClient {
  /** A model to ask it with; it answers to any other as well. */
  readonly model: Model;
  /** Every request so far, also one that was refused or aborted. */
  readonly calls: readonly ScriptedCall[];
  /** How many requests there were. */
  readonly requests: number;
  /** Throws if a step was not used or a request was refused, and says which. */
  assertComplete(): void;
}

/** The model that a script answers for, if the test does not care. */
export const scriptedModelInfo: Model = {
  id: "scripted",
  name: "Scripted",
  api: "scripted",
  provider: "scripted",
  reasoning: true,
  input: ["text", "image"],
};

/** A text. */
export function say(
  text: string,
  more: { signature?: string; citations?: Citation[] } = {},
): ScriptPart {
  return { type: "text", text, ...more };
}

/** A thought. */
export function think(
  thinking: string,
  more: { signature?: string; redacted?: boolean } = {},
): ScriptPart {
  return { type: "thinking", thinking, ...more };
}

/** A tool call. A string is sent as it is, in place of the arguments' JSON. */
export function call(
  name: string,
  args: Readonly<Record<string, unknown>> | string = {},
  id?: string,
): ScriptPart {
  return { type: "toolCall", name, arguments: args, ...(id !== undefined && { id }) };
}

/** Several tool calls: each a name, or what `call` takes. */
export function callAll(calls: readonly (string | Parameters<typeof call>)[]): ScriptPart[] {
  return calls.map((each) => (typeof each === "string" ? call(each) : call(...each)));
}

/** A tool that the service ran itself. */
export function serviceTool(
  name: string,
  more: { id?: string; input?: unknown; output?: unknown; raw?: unknown } = {},
): ScriptPart {
  return { type: "serviceTool", name, ...more };
}

/** The same block, without its end: cut off in the middle. */
export function unfinished(part: ScriptPart): ScriptPart {
  return part.type === "serviceTool" ? part : { ...part, open: true };
}

/** The response fails, after the parts before it. */
export function fail(message: string, failure: Partial<Failure> = {}): ScriptedResponse {
  return { error: { message, failure } };
}

/** Nothing more comes, until the request is aborted. */
export function stall(): ScriptedResponse {
  return { stall: true };
}

/** The stream ends without saying how. */
export function cutOff(): ScriptedResponse {
  return { end: true };
}

/**
 * A model for tests and demonstrations: each request gets the next step of `script`
 * as its response; a function in place of the list answers them all. It refuses what
 * every real service refuses (see `validateTranscript`), and honors `options.signal`
 * at any moment. A request that is refused, or aborted beforehand, uses up no step.
 *
 * Without delays a response is in the stream, whole, when `stream()` returns.
 *
 * @example
 * const model = scriptedModel(["Hello", [say("I look"), call("read", { path: "a" })], "Done"]);
 */
export function scriptedModel(
  script: readonly ScriptStep[] | ScriptFunction,
  options: ScriptedModelOptions = {},
): ScriptedModel {
  const { clock: ownClock, keepCalls = true, ...defaults } = options;
  const calls: ScriptedCall[] = [];
  const faults: string[] = [];
  const gate = new RequestGate();
  const ids = new CallIds();
  let requests = 0;
  let used = 0;

  const stream: StreamFn = (model, context, request) => {
    const callIndex = requests++;
    if (keepCalls) calls.push(toCall(model, context, request));
    const clock = ownClock ?? request.clock ?? systemClock;
    const events = new AssistantMessageEventStream();
    const out = new Accumulator(events, model, clock.now());
    const refuse = (reason: string): AssistantMessageEventStream => {
      faults.push(`Request ${callIndex + 1}: ${reason}`);
      out.fail(reason, { kind: "bad_request", retryable: false });
      return events;
    };

    if (request.signal?.aborted) {
      abort(out);
      return events;
    }
    const problems = gate.check(context.messages);
    if (problems) return refuse(`The request was refused: ${problems}`);
    const step = typeof script === "function" ? script : script[used];
    if (step === undefined) return refuse(`The script has no step for request ${callIndex + 1}`);
    used++;

    const play = (answer: ScriptAnswer): void | Promise<never> => {
      const response = { ...defaults, ...toResponse(answer) };
      if ("throws" in response) throw response.throws;
      if ("rejects" in response) return Promise.reject(response.rejects);
      const parts = ids.identify(response.parts ?? [], gate);
      perform({ ...response, parts }, { events, out, clock, signal: request.signal });
    };
    const answer = typeof step === "function" ? step(context, request, callIndex) : step;
    if (answer instanceof Promise) {
      const forget = onAbort(request.signal, () => abort(out));
      answer
        .finally(forget)
        .then(play)
        .catch((error: unknown) => events.fail(error));
      return events;
    }
    return play(answer) ?? events;
  };

  return {
    model: scriptedModelInfo,
    stream,
    calls,
    get requests() {
      return requests;
    },
    assertComplete() {
      const steps = typeof script === "function" ? used : script.length;
      const unused = used < steps ? [`${steps - used} of ${steps} steps were not used.`] : [];
      const wrong = [...unused, ...faults];
      if (wrong.length > 0) throw new Error(`The script was not followed. ${wrong.join(" ")}`);
    },
  };
}

/** A response whose parts are blocks with ids. */
type ReadyResponse = Omit<ScriptedResponse, "parts"> & { parts: readonly ReadyPart[] };
type ReadyPart = Exclude<ScriptPart, IdentifiedPart> | (IdentifiedPart & { id: string });
type IdentifiedPart = Extract<ScriptPart, { type: "toolCall" | "serviceTool" }>;
type StreamedPart = Exclude<ReadyPart, { type: "serviceTool" }>;

interface Stage {
  events: AssistantMessageEventStream;
  out: Accumulator;
  clock: Clock;
  signal: AbortSignal | undefined;
}

/** Plays a response: in one go where it has no delays, else by the clock. */
function perform(response: ReadyResponse, stage: Stage): void {
  const { clock, events, out, signal } = stage;
  // Deciding on the response may have taken its time.
  if (signal?.aborted) return abort(out);
  const { betweenMs = 0, delayMs = 0 } = response;
  const acts = listActs(response, stage);
  let cancelTimer: (() => void) | undefined;
  let forget: (() => void) | undefined;

  const goOn = (): void => {
    for (let act = acts.next(); !act.done; act = acts.next()) {
      if (signal?.aborted) {
        abort(out);
        break;
      }
      if (act.value === "between" && betweenMs > 0) {
        cancelTimer = clock.after(betweenMs, goOn);
        return;
      }
    }
    if (events.closed) forget?.();
  };

  // A listener costs more than all the rest of a short response: only where one can be needed.
  if (delayMs > 0 || betweenMs > 0 || response.stall) {
    forget = onAbort(signal, () => {
      cancelTimer?.();
      abort(out);
    });
  }
  if (delayMs > 0) cancelTimer = clock.after(delayMs, goOn);
  else goOn();
}

/** The acts of a response, pausing where time may pass or an abort may be noticed. */
function* listActs(response: ReadyResponse, stage: Stage): Generator<"between" | "check", void> {
  const { events, out } = stage;
  const { chunkSize = Infinity, error, parts, refuse, responseId, servedModel, usage } = response;
  if (responseId !== undefined) out.message.responseId = responseId;
  if (servedModel !== undefined) out.message.servedModel = servedModel;
  out.start();

  let deltas = 0;
  for (const part of parts) {
    if (part.type === "serviceTool") {
      out.serviceTool({ ...part });
      continue;
    }
    const index = openBlock(out, part);
    const body = readBody(part);
    for (let from = 0, to = 0; from < body.length; from = to) {
      to = cutAt(body, from + Math.max(1, chunkSize));
      yield deltas++ > 0 ? "between" : "check";
      writeBlock(out, part, index, body.slice(from, to));
    }
    if (!part.open) closeBlock(out, part, index);
  }
  if (usage) out.usage(usage);
  yield "check";

  if (error) out.fail(error.message, { kind: "unknown", ...error.failure });
  else if (refuse !== undefined) out.fail(refuse, { kind: "refused", retryable: false });
  else if ("breaks" in response) events.fail(response.breaks);
  else if (response.end) events.end();
  else if (!response.stall) out.done(response.stopReason ?? chooseStopReason(parts));
}

function openBlock(out: Accumulator, part: StreamedPart): number {
  if (part.type === "text") return out.textStart();
  if (part.type === "thinking") return out.thinkingStart();
  return out.toolCallStart(part.id, part.name, part.signature);
}

function writeBlock(out: Accumulator, part: StreamedPart, index: number, delta: string): void {
  if (part.type === "text") out.text(index, delta);
  else if (part.type === "thinking") out.thinking(index, delta);
  else out.toolCall(index, delta);
}

function closeBlock(out: Accumulator, part: StreamedPart, index: number): void {
  if (part.type === "text") out.textEnd(index, part.signature, part.citations);
  else if (part.type === "toolCall") out.toolCallEnd(index);
  else {
    const { signature, redacted } = part;
    out.thinkingEnd(index, {
      ...(signature !== undefined && { signature }),
      ...(redacted !== undefined && { redacted }),
    });
  }
}

function readBody(part: StreamedPart): string {
  if (part.type === "text") return part.text;
  if (part.type === "thinking") return part.thinking;
  return typeof part.arguments === "string" ? part.arguments : JSON.stringify(part.arguments);
}

/** `end`, or one more where that would part two surrogates. */
function cutAt(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end + 1 : end;
}

function chooseStopReason(parts: readonly ReadyPart[]): DoneReason {
  return parts.some((part) => part.type === "toolCall") ? "toolUse" : "stop";
}

function toResponse(answer: ScriptAnswer): ScriptedResponse {
  if (!isList(answer)) return responseOfItem(answer);
  const response: ScriptedResponse = {};
  const parts: (ScriptPart | string)[] = [];
  for (const item of answer.flat()) {
    const { parts: its = [], ...rest } = responseOfItem(item);
    parts.push(...its);
    Object.assign(response, rest);
  }
  return { ...response, parts };
}

function responseOfItem(item: ScriptItem): ScriptedResponse {
  return typeof item === "string" || "type" in item ? { parts: [item] } : item;
}

function isList<T, U>(value: T | readonly U[]): value is readonly U[] {
  return Array.isArray(value);
}

function toCall(model: Model, context: Context, options: StreamOptions): ScriptedCall {
  return {
    model,
    systemPrompt: context.systemPrompt,
    messages: [...context.messages],
    tools: context.tools,
    options: { ...options },
  };
}

function abort(out: Accumulator): void {
  out.fail("The request was aborted.", { kind: "aborted", retryable: false });
}

/** Calls `run` when `signal` fires; the answer takes that back. */
function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  signal?.addEventListener("abort", run, { once: true });
  return () => signal?.removeEventListener("abort", run);
}

/** Ids for the blocks that were given none: counted, and never one that is in use. */
class CallIds {
  readonly #given = new Set<string>();
  readonly #counts = { toolCall: 0, serviceTool: 0 };

  identify(parts: readonly (ScriptPart | string)[], gate: RequestGate): ReadyPart[] {
    for (const part of parts) {
      if (typeof part !== "string" && "id" in part && part.id !== undefined) {
        this.#given.add(part.id);
      }
    }
    return parts.map((part): ReadyPart => {
      if (typeof part === "string") return { type: "text", text: part };
      if (part.type === "text" || part.type === "thinking") return part;
      return { ...part, id: part.id ?? this.#next(part.type, gate) };
    });
  }

  #next(type: IdentifiedPart["type"], gate: RequestGate): string {
    const prefix = type === "toolCall" ? "call" : "service";
    for (;;) {
      const id = `${prefix}_${++this.#counts[type]}`;
      // The conversation may have begun elsewhere, with another script's ids in it.
      if (!this.#given.has(id) && !gate.hasId(id)) return id;
    }
  }
}

/** In a list that only grew, so many of the known messages are looked at again. */
const RECHECKED_MESSAGES = 64;

/**
 * What a service refuses. A conversation that goes on is not read again: messages
 * are known by identity. In another list every one is compared; in the very list of
 * the last request only its end is, so that a long conversation costs what it is long.
 */
class RequestGate {
  #validator = new TranscriptValidator();
  #known: Message[] = [];
  #list: readonly Message[] | undefined;

  /** Whether the last checked request has a call of this id. */
  hasId(id: string): boolean {
    return this.#validator.hasId(id);
  }

  /** What is wrong with the request, or nothing. */
  check(messages: readonly Message[]): string | undefined {
    const last = messages.at(-1);
    if (!last) return "there are no messages.";
    if (!this.#goesOn(messages)) {
      this.#validator = new TranscriptValidator();
      this.#known = [];
    }
    this.#list = messages;
    for (let index = this.#known.length; index < messages.length; index++) {
      const message = messages[index];
      if (!message) continue;
      this.#validator.append(message);
      this.#known.push(message);
    }
    const problems = this.#validator
      .finish()
      .map(({ index, reason }) => `message ${index}: ${reason}`);
    if (last.role === "assistant" && last.stopReason !== "pause") {
      problems.push(`message ${messages.length - 1}: The last message is the assistant's own.`);
    }
    return problems.length > 0 ? problems.join(" ") : undefined;
  }

  #goesOn(messages: readonly Message[]): boolean {
    const known = this.#known;
    if (known.length > messages.length) return false;
    const from = messages === this.#list ? Math.max(0, known.length - RECHECKED_MESSAGES) : 0;
    for (let index = from; index < known.length; index++) {
      if (known[index] !== messages[index]) return false;
    }
    return true;
  }
}
