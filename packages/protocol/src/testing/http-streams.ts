import { createServer as createHttpServer } from "node:http";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantMessageEventStream,
  type Clock,
  joinDeltas,
  systemClock,
} from "@gyre/ai";
import { NodeReply, NodeRequest } from "../node/http/exchange.ts";
import { closeServer, listenOn, LOOPBACK } from "../node/base/listen.ts";
import { answerError, findRoute, type Route } from "../http/route.ts";

export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Cuts all connections, and accepts no new ones. */
  close(): Promise<void>;
}

/** Routes on a real server of this machine. */
export async function listenRoutes(routes: readonly Route[]): Promise<Listening> {
  const server = createHttpServer((message, response) => {
    const request = new NodeRequest(message);
    const found = findRoute(routes, request.method, request.path);
    if (!found.route) {
      response.writeHead(404).end();
      return;
    }
    const { match, route } = found;
    const reply = new NodeReply(response);
    void Promise.resolve(route.handle(request, reply, match)).catch((error: unknown) => {
      answerError(reply, error);
    });
  });
  return listening(server);
}

/** A server that answers bytes with bytes. */
export async function listenRaw(onConnection: (socket: Socket) => void): Promise<Listening> {
  return listening(
    createTcpServer((socket) => {
      // A cut on one side cuts the other side too.
      socket.on("error", () => socket.destroy());
      onConnection(socket);
    }),
  );
}

/** What stands before events that go on to the end of the connection; an empty line is to follow. */
export const EVENT_STREAM_HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";

export interface AnsweringServer extends Listening {
  /** What was asked: the beginning of each request. */
  readonly requests: readonly string[];
}

/** Answers each request with the next of these texts and ends the connection; the last comes again and again. */
export async function listenAnswers(answers: readonly string[]): Promise<AnsweringServer> {
  const requests: string[] = [];
  const server = await listenRaw((socket) => {
    socket.once("data", (piece) => {
      requests.push(piece.toString());
      // What follows of the request is read, and of no interest.
      socket.resume();
      socket.end(answers[Math.min(requests.length, answers.length) - 1] ?? "");
    });
  });
  return { ...server, requests };
}

/** What came of one response. */
export interface Heard {
  events: AssistantMessageEvent[];
  message: AssistantMessage;
}

export async function heard(stream: AssistantMessageEventStream): Promise<Heard> {
  const events: AssistantMessageEvent[] = [];
  for await (const event of stream) events.push(event);
  return { events, message: await stream.result() };
}

/** Events as plain data: without live messages, and with adjacent deltas joined. */
export function joined(events: readonly AssistantMessageEvent[]): unknown {
  const all: AssistantMessageEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    const one = last && joinDeltas(last, event);
    if (one) all[all.length - 1] = one;
    else all.push(event);
  }
  return JSON.parse(JSON.stringify(all.map((event) => ({ ...event, partial: undefined }))));
}

async function listening(server: Server): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  const port = await listenOn(server, { host: LOOPBACK, port: 0 });
  const url = `http://${LOOPBACK}:${port}`;
  return { port, url, close: () => closeServer(server, sockets, systemClock, 0) };
}

/** A clock on which waits of up to `ms` are over at once, and longer ones never. */
export function hastyClock(ms: number): Clock {
  return {
    ...systemClock,
    after(wait, run) {
      if (wait > ms) return () => {};
      const timer = setImmediate(run);
      return () => clearImmediate(timer);
    },
  };
}
