import { createHash } from "node:crypto";
import type { AssistantMessage } from "@gyre/ai";
import { createRemoteClient, type RemoteClient, WireClient } from "@gyre/protocol";
import { connectWebSocket } from "@gyre/protocol/node";
import { WebSocket } from "ws";
import { Delays, type Kind, nowMs, obey, ReceivedText } from "./load.ts";

/** A process of its own: the clients of a server, with their streams. */

const [kind = "gyre", port = "0", token = ""] = process.argv.slice(2);
const model = { id: "load", name: "Load", api: "load", provider: "load" };

const delays = new Delays();
const streams: ReceivedText[] = [];
/** The texts as they are at the end of each stream. */
const texts: Promise<string>[] = [];

const connect = (signal?: AbortSignal): ReturnType<typeof connectWebSocket> =>
  connectWebSocket(`ws://127.0.0.1:${port}/api/ws`, { token, ...(signal && { signal }) });

/** Settles when the stream has begun. It is read as the loop reads. */
function follow(client: RemoteClient): Promise<void> {
  const nth = streams.length;
  const received = new ReceivedText(delays);
  streams.push(received);
  const messages = [{ role: "user", content: String(nth), timestamp: 0 }] as const;
  const events = client.stream(model, { messages });
  texts.push(events.result().then(readText));
  return new Promise((begun) => {
    const read = (): void => {
      for (let event = events.take(); event; event = events.take()) {
        if (event.type === "text_delta") received.take(event.delta, nowMs());
        else if (event.type === "text_start") begun();
      }
      if (!events.closed) events.whenReadable(read);
    };
    events.whenReadable(read);
  });
}

function readText({ content: [block], errorMessage }: AssistantMessage): string {
  if (errorMessage !== undefined) console.error(`A stream failed: ${errorMessage}`);
  return block?.type === "text" ? block.text : "";
}

async function openGyre(connections: number, each: number): Promise<void> {
  const begun: Promise<void>[] = [];
  for (let nth = 0; nth < connections; nth++) {
    const peer = new WireClient({ connect });
    await peer.connect();
    const client = createRemoteClient({ peer });
    for (let of = 0; of < each; of++) begun.push(follow(client));
  }
  await Promise.all(begun);
}

interface BareFrame {
  type: string;
  stream: string;
  payload: { delta: string };
}

async function openBare(connections: number, each: number): Promise<void> {
  for (let nth = 0; nth < connections; nth++) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
    await new Promise((resolve) => socket.once("open", resolve));
    const own = new Map<string, { received: ReceivedText; text: string; end(): void }>();
    for (let of = 0; of < each; of++) {
      const received = new ReceivedText(delays);
      // As long as those of ours.
      const stream = `s_${String(streams.length).padStart(32, "0")}`;
      socket.send(JSON.stringify({ nth: streams.length, stream }));
      streams.push(received);
      texts.push(
        new Promise((resolve) => {
          const one = { received, text: "", end: () => resolve(one.text) };
          own.set(stream, one);
        }),
      );
    }
    socket.on("message", (data: Buffer) => {
      const { payload, stream, type } = JSON.parse(data.toString()) as BareFrame;
      const one = own.get(stream);
      if (type === "done") return one?.end();
      if (one) one.text += payload.delta;
      one?.received.take(payload.delta, nowMs());
    });
  }
}

const NAMED = "s_named";
const NO_LISTENER = { onFrame: () => {}, resume: () => undefined, onLost: () => {} };

/** Asks for a stream whose name is known, and goes away. */
async function leave(): Promise<void> {
  const peer = new WireClient({ connect });
  await peer.connect();
  peer.listen(NAMED, NO_LISTENER);
  const messages = [{ role: "user", content: "0", timestamp: 0 }];
  const payload = { model: { provider: model.provider, id: model.id }, context: { messages } };
  await peer.request("stream_request", payload, { stream: NAMED });
  await peer.close();
}

/** From no connection at all to the last of so many events of that stream, in milliseconds. */
async function resumeMs(events: number): Promise<number> {
  const startMs = nowMs();
  const peer = new WireClient({ connect });
  await new Promise<void>((resolve, reject) => {
    peer.listen(NAMED, {
      onFrame: ({ seq }) => seq === events && resolve(),
      resume: (after) => ({ type: "resume", payload: { after } }),
      onLost: reject,
    });
  });
  const took = nowMs() - startMs;
  await peer.close();
  return took;
}

const idle: WireClient[] = [];

obey({
  open: kind === ("floor" satisfies Kind) ? openBare : openGyre,
  /** What has come since the last look. */
  look: () => ({
    delays: delays.drain(),
    pieces: streams.reduce((sum, { pieces }) => sum + pieces, 0),
    wrong: streams.reduce((sum, { wrong }) => sum + wrong, 0),
  }),
  cpuMs: () => process.cpuUsage().user / 1_000 + process.cpuUsage().system / 1_000,
  /** Connections on which nothing happens. */
  async idle(connections: number) {
    for (let nth = 0; nth < connections; nth++) {
      const peer = new WireClient({ connect });
      idle.push(peer);
      await peer.connect();
    }
  },
  leave,
  resumeMs,
  texts: async () =>
    (await Promise.all(texts)).map((text) => createHash("sha256").update(text).digest("base64")),
});
