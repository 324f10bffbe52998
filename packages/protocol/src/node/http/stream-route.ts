import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, isRecord, systemClock } from "@gyre/ai";
import { type Envelope, type Payload, PROTOCOL_VERSION } from "../../frames/envelope.ts";
import { hasMoreParts } from "../../frames/frame-parts.ts";
import {
  KEEP_ALIVE_MS,
  MAX_FRAME_BYTES,
  MAX_FRAME_PARTS,
  MAX_WAITING_BYTES,
} from "../../frames/limits.ts";
import { Outbox } from "../../server/outbox.ts";
import { invalidRequest, ProtocolError } from "../../frames/protocol-error.ts";
import { answerError, type Route } from "./route.ts";

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
      async handle(request, response) {
        await answerErrors(response, async () => {
          const stream = await source.open(await readObject(request, maxBodyBytes));
          sendEvents(response, stream, 0, options);
        });
      },
    },
    {
      method: "GET",
      path,
      async handle(request, response, [id = ""]) {
        await answerErrors(response, async () => {
          const after = parseLastEventId(request);
          const stream = source.find(id);
          if (!stream) throw new ProtocolError("stream_not_found", `There is no stream "${id}".`);
          sendEvents(response, stream, after, options);
        });
      },
    },
    {
      method: "DELETE",
      path,
      handle(_request, response, [id = ""]) {
        source.find(id)?.abort();
        response.writeHead(204).end();
      },
    },
  ];
}

async function answerErrors(response: ServerResponse, answer: () => Promise<void>): Promise<void> {
  try {
    await answer();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    answerError(response, error);
  }
}

function sendEvents(
  response: ServerResponse,
  stream: ResumableStream,
  after: number,
  { clock = systemClock, maxWaitingBytes = MAX_WAITING_BYTES }: StreamRouteOptions,
): void {
  // The client has left: the stream has no reader until the client resumes it.
  if (response.destroyed) return;
  response.setHeader("content-type", "text/event-stream; charset=utf-8");
  response.setHeader("cache-control", "no-store");
  // Keeps proxies from buffering events.
  response.setHeader("x-accel-buffering", "no");
  response.setHeader("gyre-stream", stream.id);

  let drained = (): void => {};
  response.on("drain", () => drained());
  const outbox = new Outbox(
    {
      send(frame) {
        if (response.destroyed || response.write(formatEvent(frame))) return undefined;
        return new Promise<void>((resolve) => (drained = resolve));
      },
      receive() {},
      async close() {},
    },
    () => response.destroy(),
    maxWaitingBytes,
  );

  const detach = stream.attach(after, ({ seq, type, payload, bytes }) => {
    const id = `e_${seq}`;
    outbox.push({ v: PROTOCOL_VERSION, type, stream: stream.id, id, seq, payload }, bytes);
    if (type === "done" || type === "error") void outbox.flush().then(() => response.end());
  });
  // A client that has the last event already gets only the end.
  if (stream.isEnded) void outbox.flush().then(() => response.end());
  // The client needs the name of the stream before its first event.
  response.flushHeaders();

  let stopTimer = (): void => {};
  const keepAlive = (): void => {
    stopTimer = clock.after(KEEP_ALIVE_MS, () => {
      // A slow reader has something to read.
      if (!response.writableNeedDrain && !response.writableEnded) response.write(":\n\n");
      keepAlive();
    });
  };
  keepAlive();
  response.on("close", () => {
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

function parseLastEventId({ headers }: IncomingMessage): number {
  const given = headers["last-event-id"];
  if (given === undefined || given === "") return 0;
  const after = typeof given === "string" && /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (Number.isSafeInteger(after)) return after;
  throw invalidRequest('"Last-Event-ID" is the number of an event.');
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

async function readObject(request: IncomingMessage, maxBytes: number): Promise<Payload> {
  const body = await readBody(request, maxBytes);
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

function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const refuse = (): void => {
      pieces.length = 0;
      reject(new ProtocolError("too_large", `A request has at most ${maxBytes} bytes.`));
    };
    request.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= maxBytes) pieces.push(piece);
      else refuse();
      // Reads on and drops the rest, up to a limit, so that a reset does not lose the answer.
      if (bytes > 2 * maxBytes) request.destroy();
    });
    request.on("end", () => resolve(Buffer.concat(pieces)));
    const breakOff = (cause?: Error): void =>
      reject(invalidRequest("The body broke off.", { cause }));
    request.on("error", breakOff);
    request.on("close", () => breakOff());
    if (Number(request.headers["content-length"]) > maxBytes) refuse();
  });
}
