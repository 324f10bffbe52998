import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  anthropicError,
  anthropicFrames,
  chatError,
  chatFrames,
  type Frame,
} from "./wire-frames.ts";

/** A part of an answer, sent in deltas. */
export type AnswerPart =
  /** Citations as Anthropic sends them. */
  | { text: string; citations?: readonly object[] }
  /** The signature is made up where none is given. */
  | { thinking: string; signature?: string }
  /** The id is made up where none is given, and never twice by one service. */
  | { call: string; arguments?: Record<string, unknown>; id?: string };

/** What the answer is said to have cost. */
export interface AnswerUsage {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
}

/** How an answer comes to a bad end, and after how much of it. */
export interface Fault {
  /** The connection is cut, stays open without a word, or an error comes in the stream. */
  how: "cut" | "silence" | "error";
  /** Counted over all parts; 0 is after the opening. */
  afterDeltas?: number;
  /** Of the body; 0 is after the headers. */
  afterBytes?: number;
}

export interface WholeAnswer {
  say: string | readonly AnswerPart[];
  usage?: AnswerUsage;
  /** By default: calls if there are any, else the end. */
  stop?: "end" | "calls" | "length";
  /** How long a delta is. */
  deltaChars?: number;
  /** A pause before each frame. */
  paceMs?: number;
  /** After so many deltas, the rest waits for this. */
  gate?: { afterDeltas: number; until: Promise<void> };
  fault?: Fault;
}

/** A status with an error, in the words of the service unless a body is given. */
export interface Refusal {
  status: number;
  message?: string;
  headers?: Record<string, string>;
  body?: string;
}

export type Answer =
  | WholeAnswer
  | Refusal
  /** The request is taken, and nothing comes back. */
  | { silent: true };

export type Wire = "anthropic-messages" | "openai-completions";

/** A request as it came. */
export interface ServiceRequest {
  /** From 0. */
  nth: number;
  wire: Wire;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** The body, byte for byte, and what it says. */
  text: string;
  body: Readonly<Record<string, unknown>>;
  /** As `performance.now` has it. */
  at: number;
}

/** One answer a request, in order; or a function that answers them all. */
export type Script =
  | readonly (Answer | ((request: ServiceRequest) => Answer))[]
  | ((request: ServiceRequest) => Answer | Promise<Answer>);

export interface ScriptedService {
  /** `http://127.0.0.1:PORT`, with no path. */
  readonly url: string;
  readonly requests: readonly ServiceRequest[];
  /** What the script did not foresee, or `check` found. */
  readonly problems: readonly string[];
  /** Puts another script in place, from its beginning. Requests are kept. */
  play(script: Script): void;
  /** Settles with the request of that number, from 0, once it is there. */
  asked(nth: number): Promise<ServiceRequest>;
  close(): Promise<void>;
}

export interface ServiceOptions {
  /** Looks at each request; what it finds is kept, and refused with 400 as the services do. */
  check?: (request: ServiceRequest) => readonly string[];
}

const DELTA_CHARS = 12;
const USAGE: Required<AnswerUsage> = { input: 100, output: 20, cacheRead: 0, cacheWrite: 0 };

/**
 * A service on a free port of loopback that speaks Anthropic's Messages API and OpenAI's
 * chat completions, by a script. It is one process's own: closing it cuts what is open.
 */
export async function scriptedService(
  script: Script = [],
  options: ServiceOptions = {},
): Promise<ScriptedService> {
  const requests: ServiceRequest[] = [];
  const problems: string[] = [];
  const waiting = new Map<number, ((request: ServiceRequest) => void)[]>();
  let playing = script;
  let played = 0;
  let calls = 0;

  const answerTo = async (request: ServiceRequest): Promise<Answer> => {
    const found = options.check?.(request) ?? [];
    if (found.length > 0) {
      problems.push(...found.map((problem) => `request ${request.nth}: ${problem}`));
      return { status: 400, message: found.join("; ") };
    }
    if (typeof playing === "function") return playing(request);
    const next = playing[played++];
    if (next !== undefined) return typeof next === "function" ? next(request) : next;
    problems.push(`request ${request.nth}: the script has no answer to it`);
    return { status: 400, message: "The script has come to its end." };
  };

  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await readText(incoming);
    const path = incoming.url ?? "/";
    const wire = findWire(path);
    if (incoming.method !== "POST" || wire === undefined) {
      problems.push(`${incoming.method} ${path}: there is no such thing here`);
      response.writeHead(404).end();
      return;
    }
    const body: Record<string, unknown> = JSON.parse(text);
    const request: ServiceRequest = {
      nth: requests.length,
      wire,
      path,
      headers: readHeaders(incoming),
      text,
      body,
      at: performance.now(),
    };
    requests.push(request);
    for (const settle of waiting.get(request.nth) ?? []) settle(request);
    const answer = await answerTo(request);
    if ("silent" in answer) return;
    if ("status" in answer) return refuse(response, wire, answer);
    const say = typeof answer.say === "string" ? [{ text: answer.say }] : answer.say;
    const frames = (wire === "anthropic-messages" ? anthropicFrames : chatFrames)({
      model: String(body["model"]),
      nth: request.nth,
      parts: say.map((part) =>
        "call" in part ? { id: `toolu_${++calls}`, arguments: {}, ...part } : part,
      ),
      usage: { ...USAGE, ...answer.usage },
      stop: answer.stop ?? (say.some((part) => "call" in part) ? "calls" : "end"),
      deltaChars: answer.deltaChars ?? DELTA_CHARS,
    });
    await send(response, wire, frames, answer);
  };

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      problems.push(`request ${requests.length - 1}: ${String(error)}`);
      response.destroy();
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    problems,
    play(next) {
      playing = next;
      played = 0;
    },
    asked(nth) {
      const there = requests[nth];
      if (there) return Promise.resolve(there);
      return new Promise((settle) => waiting.set(nth, [...(waiting.get(nth) ?? []), settle]));
    },
    close: () =>
      new Promise((settle) => {
        server.close(() => settle());
        server.closeAllConnections();
      }),
  };
}

function findWire(path: string): Wire | undefined {
  if (path.endsWith("/v1/messages")) return "anthropic-messages";
  return path.endsWith("/chat/completions") ? "openai-completions" : undefined;
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function readHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function refuse(response: ServerResponse, wire: Wire, refusal: Refusal): void {
  const format = wire === "anthropic-messages" ? anthropicError : chatError;
  const body = refusal.body ?? JSON.stringify(format(refusal.status, refusal.message));
  response.writeHead(refusal.status, { "content-type": "application/json", ...refusal.headers });
  response.end(body);
}

/** Writes the frames as far as they are to come, one write each, so that they arrive as they are. */
async function send(
  response: ServerResponse,
  wire: Wire,
  frames: readonly Frame[],
  { paceMs, fault, gate }: WholeAnswer,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  let deltas = 0;
  let begun = 0;
  let left = fault?.afterBytes ?? Number.POSITIVE_INFINITY;
  for (const { isDelta, text } of frames) {
    if (gate && isDelta && begun++ === gate.afterDeltas) await gate.until;
    if (fault?.afterDeltas !== undefined && isDelta && deltas++ >= fault.afterDeltas) break;
    if (paceMs !== undefined) await new Promise((settle) => setTimeout(settle, paceMs));
    if (response.destroyed) return;
    const bytes = Buffer.from(text).subarray(0, left);
    if (bytes.length > 0) await written(response, bytes);
    left -= bytes.length;
    if (left <= 0) break;
  }
  if (fault === undefined) response.end();
  else if (fault.how === "cut") response.destroy();
  else if (fault.how === "error") {
    const error = wire === "anthropic-messages" ? anthropicError(OVERLOADED) : chatError(FAILED);
    const name = wire === "anthropic-messages" ? "event: error\n" : "";
    response.end(`${name}data: ${JSON.stringify(error)}\n\n`);
  }
}

const OVERLOADED = 529;
const FAILED = 500;

/** Settles when the bytes are written, also if the client is gone. */
function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((settle) => response.write(bytes, () => settle()));
}
