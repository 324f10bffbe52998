import type { StreamOptions } from "../client/client.ts";
import type { AssistantMessageEvent } from "../stream/events.ts";
import type {
  AssistantContent,
  AssistantMessage,
  Context,
  ImageContent,
  Message,
  Model,
  ToolResultMessage,
  UserContent,
} from "../messages/messages.ts";
import type { ApiProvider } from "../client/registry.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";

/** One answer of a fake service: its body in pieces, and what stands before it. */
export interface FakeAnswer {
  body?: string | Uint8Array | readonly (string | Uint8Array)[];
  status?: number;
  headers?: Record<string, string>;
  /** The connection stays open after the last piece. */
  open?: boolean;
  /** The connection breaks with this error after the last piece. */
  breaks?: unknown;
}

/** A request as it was sent. */
export interface SentRequest {
  url: string;
  headers: Record<string, string>;
  // Tests look into it freely.
  body: Record<string, unknown>;
  signal: AbortSignal | undefined;
}

/** A `fetch` that answers with what it is given, in order, the last one again and again. */
export interface FakeService {
  fetch: typeof fetch;
  requests: SentRequest[];
}

export function fakeService(...answers: (FakeAnswer | string)[]): FakeService {
  const requests: SentRequest[] = [];
  const answer = (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const given = answers[Math.min(requests.length, answers.length - 1)] ?? "";
    requests.push({
      url: String(input instanceof Request ? input.url : input),
      headers: Object.fromEntries(new Headers(init.headers)),
      body: JSON.parse(typeof init.body === "string" ? init.body : "{}") as Record<string, unknown>,
      signal: init.signal ?? undefined,
    });
    return Promise.resolve(createResponse(typeof given === "string" ? { body: given } : given));
  };
  return { fetch: answer, requests };
}

function createResponse({ body = "", breaks, headers, open, status = 200 }: FakeAnswer): Response {
  const pieces = typeof body === "string" || body instanceof Uint8Array ? [body] : body;
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) {
        controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      }
      if (breaks !== undefined) controller.error(breaks);
      else if (!open) controller.close();
    },
  });
  return new Response(stream, {
    status,
    headers: { "content-type": "text/event-stream", ...headers },
  });
}

/** What SSE events carry: strings as they are, objects as JSON. */
export type Payloads = readonly (object | string)[];

/** The payloads as an SSE body. */
export function sse(...payloads: Payloads): string {
  return payloads
    .map(
      (payload) => `data: ${typeof payload === "string" ? payload : JSON.stringify(payload)}\n\n`,
    )
    .join("");
}

/** What came of one request: the events in order, and the message that they came to. */
export interface Exchanged {
  message: AssistantMessage;
  events: AssistantMessageEvent[];
  request: SentRequest;
}

/** Sends a request to a fake service, with a key that every format takes. */
export async function sendRequest(
  make: (config: ProviderConfig) => ApiProvider,
  model: Model,
  service: FakeService,
  context: Partial<Context> = {},
  options: StreamOptions = {},
): Promise<Exchanged> {
  const { stream } = make({ fetch: service.fetch });
  const asked = { messages: [createPrompt("Hello")], ...context };
  const answer = await stream(model, asked, { apiKey: "test-key", ...options });
  const events: AssistantMessageEvent[] = [];
  for await (const event of answer) events.push(event);
  const request = service.requests.at(-1);
  if (!request) throw new Error("The service was not asked.");
  return { message: await answer.result(), events, request };
}

/** A request in one format: the answer, the context, the options and the model may be left out. */
export type Ask<Answer> = (
  answer?: Answer,
  context?: Partial<Context>,
  options?: StreamOptions,
  at?: Model,
) => Promise<Exchanged>;

/** Sends a request for `model`, and lets the service answer `whole`, unless the caller says otherwise. */
export function createAsk<Answer>(
  make: (config: ProviderConfig) => ApiProvider,
  model: Model,
  whole: NoInfer<Answer>,
  written: (answer: Answer) => FakeAnswer | string,
): Ask<Answer> {
  return (answer = whole, context = {}, options = {}, at = model) =>
    sendRequest(make, at, fakeService(written(answer)), context, options);
}

/** The types of the events in order, in one line. */
export function listTypes(events: readonly AssistantMessageEvent[]): string {
  return events.map(({ type }) => type).join(" ");
}

export function createPrompt(content: string): Message {
  return { role: "user", content, timestamp: 0 };
}

/** Makes messages that `model` said. */
export function createAnswers(
  model: Model,
): (content: AssistantContent[], more?: Partial<AssistantMessage>) => AssistantMessage {
  const { api, id, provider } = model;
  const by = { api, provider, model: id };
  return (content, more) => ({
    role: "assistant",
    content,
    ...by,
    usage: {},
    stopReason: "stop",
    timestamp: 0,
    ...more,
  });
}

/** What the tool "look" gave for a call. */
export function createResult(
  toolCallId: string,
  content: UserContent[],
  more: Partial<ToolResultMessage> = {},
): ToolResultMessage {
  const fields = { toolCallId, toolName: "look", content, isError: false, timestamp: 0 };
  return { role: "toolResult", ...fields, ...more };
}

export const IMAGE: ImageContent = { type: "image", data: "aGk=", mimeType: "image/png" };
export const TEXT_AND_IMAGE: UserContent[] = [{ type: "text", text: "A dot" }, IMAGE];

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The bytes cut into pieces of these lengths, which come round again; uncut without any. */
export function* inPieces(
  bytes: Uint8Array,
  lengths: readonly number[] = [bytes.length],
): Generator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}
