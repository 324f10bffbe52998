import { type ClientRequest, request as httpRequest } from "node:http";
import { type ManualClock, manualClock } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import type { Envelope } from "../frames/envelope.ts";
import { openHttp } from "./http.ts";
import { EVENTS_AWAY_MS, EVENTS_TAIL_BYTES, KEEP_ALIVE_MS } from "../frames/limits.ts";
import { type HttpListener, listenHttp } from "../node/http/server.ts";
import { type SocketRelay, openSocketRelay } from "../testing/socket-relay.ts";
import type { Transport } from "./base/transport.ts";

const TOKEN = "t".repeat(32);
const headers = { authorization: `Bearer ${TOKEN}` };
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const frame = (at: number, text = ""): Envelope => ({
  v: 1,
  type: "x",
  id: `m_${at}`,
  payload: { text },
});

interface Heard {
  ids: string[];
  ends: (Error | undefined)[];
  until: (isSo: () => boolean) => Promise<void>;
}

function hear(transport: Transport): Heard {
  const waiting: (() => void)[] = [];
  const wake = (): void => waiting.splice(0).forEach((resolve) => resolve());
  const heard: Heard = {
    ids: [],
    ends: [],
    until: async (isSo) => {
      while (!isSo()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
  transport.receive({
    onFrame: ({ id }) => (heard.ids.push(id), wake()),
    onFault: ({ code }) => (heard.ids.push(code), wake()),
    onClose: (error) => (heard.ends.push(error), wake()),
  });
  return heard;
}

interface Server {
  url: string;
  listener: HttpListener;
  relay: SocketRelay;
  clock: ManualClock;
  served: Transport[];
}

async function start(): Promise<Server> {
  const clock = manualClock();
  const relay = await openSocketRelay();
  const served: Transport[] = [];
  const listener = await listenHttp({
    token: TOKEN,
    serve: (transport) => void served.push(transport),
    hosts: [`127.0.0.1:${relay.port}`],
    clock,
  });
  relay.to({ port: listener.port });
  ends.push(
    () => listener.close({ graceMs: 0 }),
    () => relay.close(),
  );
  ends.push(() => void clock.advance(0));
  return { url: `http://127.0.0.1:${relay.port}`, listener, relay, clock, served };
}

function first(served: readonly Transport[]): Transport {
  const [transport] = served;
  if (!transport) throw new Error("No client connected.");
  return transport;
}

describe("HTTP with SSE: an event stream that breaks off resumes", () => {
  it("nothing is lost or doubled, however often it breaks", async () => {
    const { url, relay, served } = await start();
    const heard = hear(await openHttp(url, { token: TOKEN }));
    const far = first(served);
    const farHeard = hear(far);
    for (let at = 0; at < 30; at++) {
      await far.send(frame(at, "y".repeat(at * 100)));
      if (at % 3 === 2) {
        await heard.until(() => heard.ids.length >= at);
        relay.cut({ staysOpen: true });
      }
    }
    await heard.until(() => heard.ids.length >= 30);
    expect(heard.ids).toEqual(Array.from({ length: 30 }, (_, at) => `m_${at}`));
    expect([heard.ends, farHeard.ends]).toEqual([[], []]);
  });

  it("ends where more was lost than is kept", async () => {
    const { url, served, clock, relay } = await start();
    const transport = await openHttp(url, { token: TOKEN });
    const heard = hear(transport);
    const far = first(served);
    const farHeard = hear(far);
    relay.stall(true);
    for (let at = 0; at < 4; at++) void far.send(frame(at, "y".repeat(EVENTS_TAIL_BYTES)));
    relay.cut({ staysOpen: true });
    relay.stall(false);
    await heard.until(() => heard.ends.length > 0);
    expect(heard.ends[0]).toMatchObject({ code: "stream_not_found" });
    await farHeard.until(() => farHeard.ends.length > 0);
    expect(clock.pending).toBe(0);
  });

  it("is gone when it stays away for 30 s", async () => {
    const { url, served, clock, relay, listener } = await start();
    const heard = hear(await openHttp(url, { token: TOKEN }));
    const far = hear(first(served));
    relay.cut();
    await heard.until(() => heard.ends.length > 0);
    while (listener.metrics.sockets.size > 0) await clock.turn();
    await clock.advance(EVENTS_AWAY_MS - 1);
    expect(far.ends).toEqual([]);
    await clock.advance(1);
    expect(far.ends).toEqual([expect.objectContaining({ message: expect.stringMatching(/away/) })]);
  });

  it("is gone when it never comes", async () => {
    const { url, served, clock } = await start();
    await fetch(`${url}/api/connect`, { method: "POST", headers });
    const far = hear(first(served));
    await clock.advance(EVENTS_AWAY_MS);
    expect(far.ends).toHaveLength(1);
  });
});

describe("HTTP with SSE: what goes over it", () => {
  async function connect(url: string): Promise<string> {
    const response = await fetch(`${url}/api/connect`, { method: "POST", headers });
    const answer: unknown = await response.json();
    const id = typeof answer === "object" && answer && "connection" in answer && answer.connection;
    return `${url}/api/connections/${String(id)}`;
  }

  /** A request whose body has only begun. */
  function begin(path: string, body: string): ClientRequest {
    const request = httpRequest(path, { method: "POST", headers });
    request.on("error", () => {});
    request.write(body);
    return request;
  }

  it("an event is an envelope with a number, and a comment comes every 15 s", async () => {
    const { url, served, clock } = await start();
    const path = await connect(url);
    const { body } = await fetch(`${path}/events`, { headers });
    if (!body) throw new Error("There is no body.");
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const read = async (chars: number): Promise<string> => {
      while (text.length < chars) text += (await reader.read()).value ?? "";
      return text;
    };
    await read(":\n\n".length);
    await first(served).send(frame(1));
    const event = `id: 1\ndata: ${JSON.stringify(frame(1))}\n\n`;
    const wanted = `:\n\n${event}:\n\n:\n\n`;
    expect(await read(event.length + 3)).toBe(wanted.slice(0, -6));
    await clock.advance(KEEP_ALIVE_MS);
    expect(await read(event.length + 6)).toBe(wanted.slice(0, -3));
    await clock.advance(KEEP_ALIVE_MS);
    expect(await read(event.length + 9)).toBe(wanted);
    await reader.cancel();
  });

  it("frames come as lines, the last one also without its end", async () => {
    const { url, served } = await start();
    const path = await connect(url);
    const far = hear(first(served));
    const body = `${JSON.stringify(frame(1))}\r\n${JSON.stringify(frame(2))}`;
    const { status } = await fetch(`${path}/frames`, { method: "POST", body, headers });
    expect([status, far.ids]).toEqual([204, ["m_1", "m_2"]]);
  });

  it("a request with frames that comes beside another one is refused", async () => {
    const { url, served } = await start();
    const path = await connect(url);
    const far = hear(first(served));
    const slow = begin(`${path}/frames`, `${JSON.stringify(frame(1))}\n`);
    const answered = new Promise<number | undefined>((resolve) =>
      slow.on("response", ({ statusCode }) => resolve(statusCode)),
    );
    await far.until(() => far.ids.length > 0);
    const quick = await fetch(`${path}/frames`, { method: "POST", body: "{}", headers });
    expect(quick.status).toBe(409);
    slow.end();
    expect(await answered).toBe(204);
  });

  it("a request with frames that breaks off ends the connection: a gap would follow", async () => {
    const { url, served } = await start();
    const path = await connect(url);
    const far = hear(first(served));
    const cut = JSON.stringify(frame(2)).slice(0, -1);
    const slow = begin(`${path}/frames`, `${JSON.stringify(frame(1))}\n${cut}`);
    await far.until(() => far.ids.length > 0);
    slow.destroy();
    await far.until(() => far.ends.length > 0);
    expect(far.ids).toEqual(["m_1"]);
  });

  it("DELETE ends it, and once more does no harm", async () => {
    const { url, served } = await start();
    const path = await connect(url);
    const far = hear(first(served));
    for (let i = 0; i < 2; i++) {
      expect((await fetch(path, { method: "DELETE", headers })).status).toBe(204);
    }
    expect(far.ends).toEqual([undefined]);
    expect((await fetch(`${path}/events`, { headers })).status).toBe(404);
  });

  it("opening ends with the signal; a server of another kind is named as such", async () => {
    const { url } = await start();
    const given = AbortSignal.abort(new Error("no more"));
    await expect(openHttp(url, { token: TOKEN, signal: given })).rejects.toThrow("no more");
    const other = async (): Promise<Response> => new Response("{}");
    await expect(openHttp(url, { fetch: other })).rejects.toThrow(/not a server of Gyre/);
    const page = async (): Promise<Response> => new Response("<html>", { status: 502 });
    await expect(openHttp(url, { fetch: page })).rejects.toThrow(/status 502/);
  });
});
