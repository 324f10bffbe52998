import { type Clock, isRecord, systemClock } from "@gyre/ai";
import { type Envelope, type Payload, PROTOCOL_VERSION } from "../frames/envelope.ts";
import { hasMoreParts } from "../frames/frame-parts.ts";
import {
  KEEP_ALIVE_MS,
  MAX_FRAME_BYTES,
  MAX_FRAME_PARTS,
  MAX_WAITING_BYTES,
} from "../frames/limits.ts";
import { Outbox } from "../server/outbox.ts";
import { invalidRequest, ProtocolError } from "../frames/protocol-error.ts";
import { collectBody, type HttpReply, type HttpRequest } from "./exchange.ts";
import { answerError, type Route } from "./route.ts";

const OK = 200;
const NO_CONTENT = 204;

/** An event of a model's response with its number. A `snapshot` stands for all events up to its own. */
export interface NumberedEvent {
  readonly seq: number;
  readonly type: string;
  readonly payload: Payload;
  /** The approximate length of the payload as JSON. */
  readonly bytes?: number;
}

/** One response of a model, which continues while its readers come and go. */
export interface ResumableStream {
  readonly id: string;
  /** Whether its last event has been published. */
  readonly isEnded: boolean;
  /**
   * Passes the events after `after` to `sink`, or a `snapshot` and the events after that: first the
   * kept ones, before this returns, then those that follow, to `done` or `error`. The returned
   * function detaches the sink; the response goes on. Throws `ProtocolError` for a number that there
   * is not.
   */
  attach(after: number, sink: (event: NumberedEvent) => void): () => void;
  /** Cancels the request to the service. Calling it twice does no harm. */
  abort(): void;
}

/** Opens and finds responses. */
export interface StreamSource {
  /** Asks a model. Throws a `ProtocolError` with the reason where it refuses the request. */
  open(request: Payload): ResumableStream | Promise<ResumableStream>;
  /** A response that is streaming, or ended recently. */
  find(id: string): ResumableStream | undefined;
}

export interface StreamRouteOptions {
  /** Default 16 MiB. */
  maxBodyBytes?: number;
  /** Default `MAX_WAITING_BYTES`: past it the response is cut off, and can be resumed. */
  maxWaitingBytes?: number;
  clock?: Clock;
}

/**
 * Models over plain HTTP: `POST /api/stream` asks and answers with server-sent events,
 * `GET /api/streams/:id` resumes after `Last-Event-ID`, `DELETE /api/streams/:id` aborts.
 */
export function createStreamRoutes(
  source: StreamSource,
  options: StreamRouteOptions = {},
): Route[] {
  const { maxBodyBytes = MAX_FRAME_BYTES } = options;
  const path = /^\/api\/streams\/([^/]+)$/;
  return [
    {
      method: "POST",
      path: "/api/stream",
      async handle(request, reply) {
        await answerErrors(reply, async () => {
          const stream = await source.open(await readObject(request, maxBodyBytes));
          sendEvents(reply, stream, 0, options);
        });
      },
    },
    {
      method: "GET",
      path,
      async handle(request, reply, [id = ""]) {
        await answerErrors(reply, async () => {
          const after = parseLastEventId(request);
          const stream = source.find(id);
          if (!stream) throw new ProtocolError("stream_not_found", `There is no stream "${id}".`);
          sendEvents(reply, stream, after, options);
        });
      },
    },
    {
      method: "DELETE",
      path,
      handle(_request, reply, [id = ""]) {
        source.find(id)?.abort();
        reply.begin(NO_CONTENT);
        reply.end();
      },
    },
  ];
}

async function answerErrors(reply: HttpReply, answer: () => Promise<void>): Promise<void> {
  try {
    await answer();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    answerError(reply, error);
  }
}

function sendEvents(
  reply: HttpReply,
  stream: ResumableStream,
  after: number,
  { clock = systemClock, maxWaitingBytes = MAX_WAITING_BYTES }: StreamRouteOptions,
): void {
  // The client has left: the stream has no reader until the client resumes it.
  if (reply.isOver) return;
  let drained = (): void => {};
  reply.onDrain(() => drained());
  const outbox = new Outbox(
    {
      send(frame) {
        if (reply.isOver || reply.write(formatEvent(frame))) return undefined;
        return new Promise<void>((resolve) => (drained = resolve));
      },
      receive() {},
      async close() {},
    },
    () => reply.cut(),
    maxWaitingBytes,
  );
  // Nothing is sent before `attach` has accepted the number: an error then has a status of its own.
  reply.addHeaders({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    // Keeps proxies from buffering events.
    "x-accel-buffering": "no",
    "gyre-stream": stream.id,
  });

  const detach = stream.attach(after, ({ seq, type, payload, bytes }) => {
    const id = `e_${seq}`;
    outbox.push({ v: PROTOCOL_VERSION, type, stream: stream.id, id, seq, payload }, bytes);
    if (type === "done" || type === "error") void outbox.flush().then(() => reply.end());
  });
  // A client that has the last event already gets only the end.
  if (stream.isEnded) void outbox.flush().then(() => reply.end());
  // The client needs the name of the stream before its first event.
  reply.begin(OK);
  reply.flush();

  let stopTimer = (): void => {};
  const keepAlive = (): void => {
    stopTimer = clock.after(KEEP_ALIVE_MS, () => {
      // A slow reader has something to read.
      if (!reply.isFull && !reply.isOver) reply.write(":\n\n");
      keepAlive();
    });
  };
  keepAlive();
  reply.onClose(() => {
    stopTimer();
    detach();
    outbox.close();
    drained();
  });
}

/** A frame as a server-sent event. The data has its number too, for readers that ignore `id`. */
function formatEvent({ type, seq, from, payload }: Envelope): string {
  const data = JSON.stringify({ ...payload, seq, ...(from !== undefined && { from }) });
  return `id: ${seq}\nevent: ${type}\ndata: ${data}\n\n`;
}

function parseLastEventId(request: HttpRequest): number {
  const given = request.header("last-event-id");
  if (given === undefined || given === "") return 0;
  const after = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (Number.isSafeInteger(after)) return after;
  throw invalidRequest('"Last-Event-ID" is the number of an event.');
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

async function readObject(request: HttpRequest, maxBytes: number): Promise<Payload> {
  const body = await collectBody(request, maxBytes);
  let value: unknown;
  let isTooWide = false;
  try {
    const text = utf8.decode(body);
    isTooWide = hasMoreParts(text, MAX_FRAME_PARTS);
    value = isTooWide ? undefined : JSON.parse(text);
  } catch (cause) {
    throw invalidRequest("The body is not JSON.", { cause });
  }
  if (isTooWide) {
    const what = `A request has at most ${MAX_FRAME_PARTS} objects and lists.`;
    throw new ProtocolError("too_large", what);
  }
  if (isRecord(value)) return value;
  throw invalidRequest("The body is a JSON object.");
}
