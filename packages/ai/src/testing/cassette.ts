import { Accumulator, emptyAssistantMessage } from "../stream/accumulate.ts";
import { AssistantMessageEventStream, isTerminal } from "../stream/assistant-stream.ts";
import type { ProtocolClient, StreamOptions } from "../client/client.ts";
import { systemClock } from "../common/clock.ts";
import { errorMessage } from "../common/errors.ts";
import { isRecord } from "../common/records.ts";
import { IncompleteStreamError } from "../stream/event-stream.ts";
import { type CompactEvent, EVENT_TYPES, toCompactEvent } from "../stream/compact-event.ts";
import { CompactEventReader } from "../stream/compact-event-reader.ts";
import type { AssistantMessageEvent, DoneReason } from "../stream/events.ts";
import type { AssistantMessage, Context, Message, Model } from "../messages/messages.ts";
import { redact, listSecrets } from "../common/redact.ts";
import { toJsonSchema } from "../schema/schema.ts";

/** The format of the lines. A reader takes its own version only. */
export const CASSETTE_VERSION = 1;

/** How much of a value is shown where two differ. */
const SHOWN_CHARS = 120;
/** How much of what is the same is shown before the difference. */
const LEAD_CHARS = 40;

/** A cassette that cannot be read. `line` counts from 1. */
export class CassetteError extends Error {
  readonly code = "cassette";
  readonly line: number;
  constructor(line: number, problem: string) {
    super(`Line ${line} of the cassette ${problem}`);
    this.name = "CassetteError";
    this.line = line;
  }
}

interface RecordedResponse {
  /** Requests are counted in the order in which they were made; lines are in that of the ends. */
  number: number;
  request: unknown;
  events: CompactEvent[];
  /** The final message; absent where the stream came to none. */
  message?: AssistantMessage;
  /** The error that the stream failed with. */
  failed?: string;
  /** The error that `stream()` threw or rejected with. */
  thrown?: string;
}

/**
 * A client that passes everything on as it comes and keeps what passed: `write` gets
 * one line at once, which names the format, and one more whenever a response has
 * ended, however it ended. A line has no line break. Keys, headers and metadata are
 * never in it, also where an error repeats them; what was said to the model and by it
 * is, in full.
 *
 * An error thrown by `write` fails the response.
 */
export function record(client: ProtocolClient, write: (line: string) => void): ProtocolClient {
  let requests = 0;
  write(JSON.stringify({ cassette: CASSETTE_VERSION }));
  return {
    async stream(model, context, options) {
      const request = canonicalRequest(model, context, options);
      const response: RecordedResponse = { number: ++requests, request, events: [] };
      const hide = (text: string): string => redact(text, listSecrets(model, options));
      const finish = (how: Ending): void =>
        write(JSON.stringify({ ...response, ...withoutSecrets(how, hide) }));
      try {
        const source = await client.stream(model, context, options);
        return passOn(source, response.events, finish);
      } catch (error) {
        finish({ thrown: recordedMessage(error) });
        throw error;
      }
    },
  };
}

type Ending = Pick<RecordedResponse, "message" | "failed" | "thrown">;

/** A service may repeat a key in the words of its error. */
function withoutSecrets(how: Ending, hide: (text: string) => string): Ending {
  const { message, failed, thrown } = how;
  const { errorMessage } = message ?? {};
  return {
    ...how,
    ...(message && errorMessage && { message: { ...message, errorMessage: hide(errorMessage) } }),
    ...(failed !== undefined && { failed: hide(failed) }),
    ...(thrown !== undefined && { thrown: hide(thrown) }),
  };
}

function passOn(
  source: AssistantMessageEventStream,
  events: CompactEvent[],
  finish: (how: Ending) => void,
): AssistantMessageEventStream {
  const target = new AssistantMessageEventStream();
  // The line comes first: who has the result can count on it.
  const close = (how: Ending, pass: () => void): void => {
    try {
      finish(how);
    } catch (error) {
      return target.fail(error);
    }
    pass();
  };
  const pump = (): void => {
    for (let event = source.take(); event; event = source.take()) {
      const passed = event;
      events.push(toRecordedEvent(passed));
      if (isTerminal(passed)) {
        const message = passed.type === "done" ? passed.message : passed.error;
        return close({ message }, () => target.push(passed));
      }
      target.push(passed);
    }
    if (!source.closed) return source.whenReadable(pump);
    source.result().then(
      (message) => close({ message }, () => target.end(message)),
      (error: unknown) => {
        if (error instanceof IncompleteStreamError) close({}, () => target.end());
        else close({ failed: recordedMessage(error) }, () => target.fail(error));
      },
    );
  };
  pump();
  return target;
}

/** The compact event without the facts that the final message has too. */
function toRecordedEvent(event: AssistantMessageEvent): CompactEvent {
  switch (event.type) {
    case "start":
      return { type: event.type };
    case "done":
    case "error":
      return { type: event.type, reason: event.reason };
    case "toolcall_end":
      return { type: event.type, contentIndex: event.contentIndex };
    default: {
      const { length: _, ...recorded } = toCompactEvent(event);
      return recorded;
    }
  }
}

/** A client that gives recorded responses, and can check whether all of them were requested. */
export interface ReplayClient extends ProtocolClient {
  /** Throws if a recorded response was not asked for or a request was not as recorded. */
  assertComplete(): void;
}

/**
 * A client that answers each request with the next recorded response, all at once.
 * A request that is not as recorded gets an `error` event that shows where the two
 * differ, and uses up nothing. Throws `CassetteError` for lines that it cannot read.
 *
 * Cassettes may be put one after the other, in one file.
 */
export function replay(lines: string | Iterable<string>): ReplayClient {
  const recorded = readCassette(typeof lines === "string" ? lines.split("\n") : lines);
  const misses: string[] = [];
  let next = 0;
  return {
    async stream(model, context, options) {
      const response = recorded[next];
      const miss = response
        ? difference(response.request, canonicalRequest(model, context, options))
        : `is one too many: the recording has ${recorded.length}.`;
      if (response && miss === undefined) {
        next++;
        if (response.thrown !== undefined) throw new Error(response.thrown);
        return play(response, model, options.signal);
      }
      const text = `Request ${next + 1} ${miss}`;
      misses.push(text);
      const stream = new AssistantMessageEventStream();
      const now = (options.clock ?? systemClock).now();
      new Accumulator(stream, model, now).fail(text, { kind: "bad_request", retryable: false });
      return stream;
    },
    assertComplete() {
      const left = recorded.length - next;
      const unused = left > 0 ? [`${left} of ${recorded.length} responses were not used.`] : [];
      const wrong = [...unused, ...misses];
      if (wrong.length > 0) throw new Error(`The recording was not followed. ${wrong.join(" ")}`);
    },
  };
}

/** Plays the recorded events, through the accumulator that every provider uses. */
function play(
  { events, failed, message }: RecordedResponse,
  model: Model,
  signal: AbortSignal | undefined,
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  const timestamp = message?.timestamp ?? 0;
  if (signal?.aborted) {
    const out = new Accumulator(stream, model, timestamp);
    out.fail("The request was aborted.", { kind: "aborted", retryable: false });
    return stream;
  }
  const reader = new CompactEventReader(emptyAssistantMessage(model, timestamp));
  const { partial } = reader;
  for (const event of events) {
    if (event.type === "start") {
      stream.push({ type: event.type, partial });
      continue;
    }
    // A block without events (an image, in older cassettes) is in the final message alone.
    const { contentIndex } = event;
    const before = typeof contentIndex === "number" ? contentIndex : message?.content.length;
    partial.content.push(...(message?.content.slice(partial.content.length, before) ?? []));
    if (event.type === "done") {
      const reason = event["reason"] as DoneReason;
      stream.push({ type: event.type, reason, message: restore(partial, message) });
    } else if (event.type === "error") {
      const reason = event["reason"] === "aborted" ? "aborted" : "error";
      stream.push({ type: event.type, reason, error: restore(partial, message) });
    } else stream.push(reader.read(event));
  }
  if (failed !== undefined) stream.fail(new Error(failed));
  else if (message) stream.end(message);
  else stream.end();
  return stream;
}

/** The message that was built, with what no event has: usage, ids, stop reason. */
function restore(
  partial: AssistantMessage,
  message: AssistantMessage | undefined,
): AssistantMessage {
  if (!message) return partial;
  const { content: _, ...facts } = message;
  return Object.assign(partial, facts);
}

/** What of a request decides on the response, as plain data of its own. */
function canonicalRequest(model: Model, context: Context, options: StreamOptions): unknown {
  const { maxTokens, temperature, thinkingLevel, toolChoice } = options;
  const request = {
    model: { id: model.id, api: model.api, provider: model.provider },
    systemPrompt: context.systemPrompt,
    messages: context.messages.map(canonicalMessage),
    tools: context.tools?.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters: toJsonSchema(parameters),
    })),
    options: { temperature, maxTokens, thinkingLevel, toolChoice },
  };
  return JSON.parse(JSON.stringify(request));
}

function canonicalMessage(message: Message): Partial<Message> {
  switch (message.role) {
    case "user":
      return { role: message.role, content: message.content };
    case "toolResult": {
      const { details: _, timestamp: __, ...sent } = message;
      return sent;
    }
    case "assistant": {
      const { role, content, api, provider, model, stopReason } = message;
      return { role, content, api, provider, model, stopReason };
    }
  }
}

/** Where a request is not as it was recorded, as a sentence; nothing where it is. */
function difference(recorded: unknown, now: unknown): string | undefined {
  const found = firstDifference(recorded, now, "");
  if (!found) return undefined;
  const [before, after] = shown(found.recorded, found.now);
  return `differs from the recording at ${found.path || "its root"}: recorded ${before}, now ${after}.`;
}

interface Difference {
  path: string;
  recorded: unknown;
  now: unknown;
}

function firstDifference(recorded: unknown, now: unknown, path: string): Difference | undefined {
  if (recorded === now) return undefined;
  if (!hasKeys(recorded) || !hasKeys(now) || Array.isArray(recorded) !== Array.isArray(now)) {
    return { path, recorded, now };
  }
  const step = (key: string): string =>
    Array.isArray(recorded) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
    const found = firstDifference(recorded[key], now[key], step(key));
    if (found) return found;
  }
  return undefined;
}

function hasKeys(value: unknown): value is Record<string, unknown> {
  return isRecord(value) || Array.isArray(value);
}

/** Both values, cut so that the place where they part is in sight. */
function shown(recorded: unknown, now: unknown): [string, string] {
  const [one, other] = [written(recorded), written(now)];
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  const from = Math.max(0, same - LEAD_CHARS);
  const cut = (text: string): string => {
    const to = from + SHOWN_CHARS;
    return `${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`;
  };
  return [cut(one), cut(other)];
}

function written(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}

function readCassette(lines: Iterable<string>): RecordedResponse[] {
  const recorded: RecordedResponse[] = [];
  /** Where the responses of the last header begin: each header starts the count of requests again. */
  let part: RecordedResponse[] | undefined;
  const endPart = (): void => {
    if (part) recorded.push(...part.sort((a, b) => a.number - b.number));
  };
  let line = 0;
  for (const text of lines) {
    line++;
    if (text.trim() === "") continue;
    const value = parseLine(line, text);
    if ("cassette" in value) {
      if (value["cassette"] !== CASSETTE_VERSION) {
        throw new CassetteError(
          line,
          `is of version ${written(value["cassette"])}, and this reader takes ${CASSETTE_VERSION}. Record it again.`,
        );
      }
      endPart();
      part = [];
    } else if (!part) {
      throw new CassetteError(line, `is not its header, {"cassette":${CASSETTE_VERSION}}.`);
    } else if (isRecordedResponse(value)) part.push(value);
    else throw new CassetteError(line, "is not a recorded response.");
  }
  if (!part) throw new CassetteError(1, `is not its header, {"cassette":${CASSETTE_VERSION}}.`);
  endPart();
  return recorded;
}

function parseLine(line: number, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CassetteError(line, `is not JSON: ${errorMessage(error)}`);
  }
  if (!isRecord(value)) throw new CassetteError(line, "is not a JSON object.");
  return value;
}

function isRecordedResponse(value: object): value is RecordedResponse {
  return (
    "number" in value &&
    typeof value.number === "number" &&
    "request" in value &&
    isRecord(value.request) &&
    "events" in value &&
    Array.isArray(value.events) &&
    value.events.every((event: unknown) => isRecord(event) && EVENT_TYPES.has(event["type"]))
  );
}

/** The message to replay. An empty one stays empty, unlike with `errorMessage`. */
function recordedMessage(error: unknown): string {
  return error instanceof Error ? error.message : errorMessage(error);
}
