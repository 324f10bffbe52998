import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import {
  Accumulator,
  AssistantMessageEventStream,
  type Context,
  type Model,
  type ProtocolClient,
} from "@gyre/ai";
import { ModelService, PROTOCOL_VERSION, WireServer } from "@gyre/protocol";
import { listenHttp } from "@gyre/protocol/node";
import { type WebSocket, WebSocketServer } from "ws";
import { collect } from "../measure/measure.ts";
import { type Kind, nowMs, obey, makePiece } from "./load.ts";

/** A process of its own: a server whose model says pieces of text at a given rate. */

const [kind = "gyre", tailEvents = "4096"] = process.argv.slice(2);
const TOKEN = randomUUID();
/** Coprime with every round number of streams: consecutive deltas are on other connections. */
const STRIDE = 37;
const TICK_MS = 1;

/** One stream: what it has to say goes out at once. */
interface Speaker {
  say(piece: string): void;
  /** Says that this was all, and gives the whole text. */
  end(): string;
  sent: number;
}

/** By the number that its client gave it. */
const speakers: Speaker[] = [];

interface Served {
  port: number;
  sockets(): Iterable<Socket>;
}

const model: Model = { id: "load", name: "Load", api: "load", provider: "load" };

/** In the place of a provider; it does what providers do with a delta. */
const client: ProtocolClient = {
  stream(_, context: Context) {
    const events = new AssistantMessageEventStream();
    const out = new Accumulator(events, model, 0);
    out.start();
    const index = out.textStart();
    speakers[Number(context.messages[0]?.content)] = {
      sent: 0,
      say: (piece) => out.text(index, piece),
      end() {
        out.textEnd(index);
        out.done("stop");
        const [block] = out.message.content;
        return block?.type === "text" ? block.text : "";
      },
    };
    return events;
  },
};

async function serveGyre(): Promise<Served> {
  const limits = { tailEvents: Number(tailEvents) };
  const service = new ModelService({ client, models: () => [model], limits });
  const server = new WireServer([service], { limits });
  const serve = (transport: Parameters<WireServer["serve"]>[0]): void => {
    server.serve(transport);
  };
  const listener = await listenHttp({ token: TOKEN, serve });
  return { port: listener.port, sockets: () => listener.metrics.sockets };
}

/** The same frames, and nothing else: no handshake, no numbers to check, nothing kept. */
function speakBare(socket: WebSocket, stream: string): Speaker {
  let text = "";
  const send = (type: string, payload: object): void => {
    const seq = speaker.sent;
    const [v, id, ts] = [PROTOCOL_VERSION, `e_${seq}`, Date.now()];
    socket.send(JSON.stringify({ v, type, id, ts, stream, seq, payload }));
  };
  const speaker: Speaker = {
    sent: 0,
    say(delta) {
      text += delta;
      send("text_delta", { contentIndex: 0, delta });
    },
    end() {
      send("done", {});
      return text;
    },
  };
  return speaker;
}

async function serveBare(): Promise<Served> {
  const sockets = new Set<Socket>();
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
  server.on("connection", (socket, request) => {
    sockets.add(request.socket);
    socket.on("message", (data: Buffer) => {
      const { nth, stream } = JSON.parse(data.toString()) as { nth: number; stream: string };
      speakers[nth] = speakBare(socket, stream);
    });
  });
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return { port, sockets: () => sockets };
}

/**
 * Says `rate` pieces a second on each stream for `ms`, and gives how many those were. Each
 * carries when it was due: what a server that lags says late counts as late.
 */
function pace(rate: number, ms: number): Promise<number> {
  const gapMs = 1_000 / (rate * speakers.length);
  const total = Math.floor(ms / gapMs);
  const startMs = nowMs();
  let sent = 0;
  return new Promise((resolve) => {
    const tick = (): void => {
      const due = Math.min(total, Math.floor((nowMs() - startMs) / gapMs));
      for (; sent < due; sent++) {
        const speaker = speakers[(sent * STRIDE) % speakers.length];
        speaker?.say(makePiece(startMs + sent * gapMs, speaker.sent++));
      }
      if (sent === total) resolve(total);
      else setTimeout(tick, TICK_MS);
    };
    tick();
  });
}

/** Says so many pieces on each stream, with a rest after each of them for the readers. */
async function burst(pieces: number): Promise<number> {
  for (let nth = 0; nth < pieces; nth++) {
    for (const speaker of speakers) speaker.say(makePiece(nowMs(), speaker.sent++));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return pieces * speakers.length;
}

const served = await (kind === ("floor" satisfies Kind) ? serveBare() : serveGyre());

obey({
  place: () => ({ port: served.port, token: TOKEN }),
  speaking: () => speakers.length,
  pace,
  burst,
  cpuMs: () => process.cpuUsage().user / 1_000 + process.cpuUsage().system / 1_000,
  bytesWritten: () =>
    [...served.sockets()].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
  /** What is in use when all that is not has been collected, in bytes. */
  memory() {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  end: () => speakers.map((speaker) => createHash("sha256").update(speaker.end()).digest("base64")),
});
