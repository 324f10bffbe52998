import { connect } from "node:net";
import {
  type ManualClock,
  manualClock,
  say,
  type ScriptedModel,
  scriptedModel,
  type ScriptStep,
  stall,
} from "@gyre/ai/testing";
import { SseDecoder } from "@gyre/ai/stream";
import { afterEach, describe, expect, it } from "vitest";
import type { Payload } from "../frames/envelope.ts";
import { KEEP_ALIVE_MS } from "../frames/limits.ts";
import { ModelService } from "../models/models-service.ts";
import { listenRoutes } from "../testing/http-streams.ts";
import { type StreamRouteOptions, createStreamRoutes } from "./stream-route.ts";

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

interface Served {
  url: string;
  port: number;
  model: ScriptedModel;
  /** Of the routes alone: a timer for each connection. */
  clock: ManualClock;
}

async function served(
  script: readonly ScriptStep[],
  options: StreamRouteOptions & { tailEvents?: number } = {},
): Promise<Served> {
  const { tailEvents, ...limits } = options;
  const model = scriptedModel(script, { chunkSize: 2 });
  const source = new ModelService({
    client: model,
    models: () => [model.model],
    ...(tailEvents !== undefined && { limits: { tailEvents } }),
  });
  const clock = manualClock();
  const server = await listenRoutes(createStreamRoutes(source, { clock, ...limits }));
  open.push(server, source);
  return { model, clock, url: server.url, port: server.port };
}

/** Where a stream is resumed and aborted. */
function streamUrl(url: string, response: Response): string {
  return `${url}/api/streams/${response.headers.get("gyre-stream")}`;
}

const question = {
  model: { provider: "scripted", id: "scripted" },
  context: { messages: [{ role: "user", content: "Go", timestamp: 0 }] },
  options: {},
};

function ask(url: string, body: unknown = question): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(`${url}/api/stream`, { method: "POST", body: text });
}

interface Heard {
  event: string | undefined;
  data: Payload;
}

async function heard(response: Response): Promise<Heard[]> {
  const events: Heard[] = [];
  const decoder = new SseDecoder((data, event) => events.push({ event, data: JSON.parse(data) }));
  decoder.feed(new Uint8Array(await response.arrayBuffer()));
  return events;
}

function errorCode(body: unknown): unknown {
  return (body as { error?: { code?: unknown } }).error?.code;
}

describe("HTTP: POST /api/stream", () => {
  it("answers with events whose id is seq and whose name is the type", async () => {
    const { url } = await served(["Hey"]);
    const text = await (await ask(url)).text();
    const lines = text.split("\n").filter((line) => /^(?:id|event):/.test(line));
    expect(lines).toEqual([
      ...["id: 1", "event: start", "id: 2", "event: text_start"],
      ...["id: 3", "event: text_delta", "id: 4", "event: text_delta"],
      ...["id: 5", "event: text_end", "id: 6", "event: done"],
    ]);
  });

  it("sends deltas only, with their number", async () => {
    const { url } = await served(["Hey"]);
    const events = await heard(await ask(url));
    expect(events[2]).toEqual({
      event: "text_delta",
      data: { seq: 3, contentIndex: 0, delta: "He" },
    });
  });

  it("names the stream before there is an event", async () => {
    const { url } = await served([stall()]);
    const response = await ask(url);
    expect(response.headers.get("gyre-stream")).toMatch(/^s_[0-9a-f]{32}$/);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await response.body?.cancel();
  });

  it("refuses what the source refuses, with its code", async () => {
    const { url } = await served([]);
    const response = await ask(url, { ...question, model: { provider: "x", id: "y" } });
    expect(response.status).toBe(404);
    expect(errorCode(await response.json())).toBe("model_not_found");
  });

  it.each(["{", "[]", "null", '"text"', ""])("refuses the body %j", async (body) => {
    const { url } = await served([]);
    const response = await ask(url, body);
    expect(response.status).toBe(400);
    expect(errorCode(await response.json())).toBe("invalid_request");
  });

  it("refuses a body that is too large by its announced length", async () => {
    const { model, url } = await served([], { maxBodyBytes: 100 });
    const response = await ask(url, { text: "x".repeat(100) });
    expect(response.status).toBe(413);
    expect(errorCode(await response.json())).toBe("too_large");
    expect(model.requests).toBe(0);
  });

  it("refuses a body that is too large and does not say how long it is", async () => {
    const { port } = await served([], { maxBodyBytes: 100 });
    const answer = await exchange(
      port,
      "POST /api/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
        `78\r\n${"x".repeat(120)}\r\n0\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("cuts off who goes on to send without end", async () => {
    const { port } = await served([], { maxBodyBytes: 100 });
    const answer = await exchange(
      port,
      "POST /api/stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + "x".repeat(300),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 |^$/);
  });
});

describe("resume: GET /api/streams/:id", () => {
  it("sends what is missing after Last-Event-ID", async () => {
    const { url } = await served(["Hey"]);
    const response = await ask(url);
    const address = streamUrl(url, response);
    const whole = await heard(response);
    for (let after = 0; after <= whole.length; after++) {
      const rest = await fetch(address, { headers: { "last-event-id": String(after) } });
      expect(await heard(rest)).toEqual(whole.slice(after));
    }
  });

  it("sends all without Last-Event-ID", async () => {
    const { url } = await served(["Hey"]);
    const response = await ask(url);
    const whole = await heard(response);
    expect(await heard(await fetch(streamUrl(url, response)))).toEqual(whole);
  });

  it("sends a snapshot where what is missing is gone", async () => {
    const { url } = await served([[say("Hello"), stall()]], { tailEvents: 2 });
    const first = await ask(url);
    const address = streamUrl(url, first);
    const resumed = await fetch(address, { headers: { "last-event-id": "1" } });
    await first.body?.cancel();
    await fetch(address, { method: "DELETE" });
    const [snapshot, end] = await heard(resumed);
    expect(snapshot).toMatchObject({
      event: "snapshot",
      data: { seq: 6, message: { role: "assistant" }, events: [{ type: "text_start" }, {}, {}] },
    });
    expect(end).toMatchObject({ event: "error", data: { seq: 7, reason: "aborted" } });
  });

  it("says where there is no such stream", async () => {
    const { url } = await served([]);
    const response = await fetch(`${url}/api/streams/s_9`);
    expect(response.status).toBe(404);
    expect(errorCode(await response.json())).toBe("stream_not_found");
  });

  it.each(["-1", "x", "1.5", "99", "99999999999999999999"])(
    "refuses Last-Event-ID %s",
    async (id) => {
      const { url } = await served(["Hey"]);
      const first = await ask(url);
      await heard(first);
      const response = await fetch(streamUrl(url, first), { headers: { "last-event-id": id } });
      expect(response.status).toBe(400);
      expect(errorCode(await response.json())).toBe("invalid_request");
    },
  );

  it("a disconnect is not a cancel", async () => {
    const { clock, model, url } = await served([[say("Hello"), stall()]]);
    const response = await ask(url);
    await response.body?.cancel();
    await until(() => clock.pending === 0);
    expect(model.calls[0]?.options.signal?.aborted).toBe(false);
  });
});

describe("abort: DELETE /api/streams/:id", () => {
  it("cancels the request to the service, and the stream ends aborted", async () => {
    const { model, url } = await served([[say("Hello"), stall()]]);
    const response = await ask(url);
    const deleted = await fetch(streamUrl(url, response), { method: "DELETE" });
    expect(deleted.status).toBe(204);
    expect(model.calls[0]?.options.signal?.aborted).toBe(true);
    const events = await heard(response);
    expect(events.at(-1)).toMatchObject({ event: "error", data: { reason: "aborted" } });
  });

  it("is idempotent, also for a stream that there is not", async () => {
    const { url } = await served([]);
    for (let time = 0; time < 2; time++) {
      const deleted = await fetch(`${url}/api/streams/s_7`, { method: "DELETE" });
      expect(deleted.status).toBe(204);
    }
  });
});

describe("HTTP: a connection", () => {
  it("without news has a comment every 15 s", async () => {
    const { clock, url } = await served([stall()]);
    const response = await ask(url);
    const reader = response.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    expect(first).toMatch(/^id: 1\n/);
    await clock.advance(KEEP_ALIVE_MS);
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(":\n\n");
    await reader?.cancel();
  });

  it("that is over leaves no timer behind, whichever side ended it", async () => {
    const { clock, url } = await served(["Hey", stall()]);
    await heard(await ask(url));
    const second = await ask(url);
    await second.body?.cancel();
    await until(() => clock.pending === 0);
    expect(clock.pending).toBe(0);
  });
});

const LONG = 4 * 1024 * 1024;

describe("a slow reader is not fed without end", () => {
  it("waiting deltas of one block are joined, from the first to the last", async () => {
    const { url } = await served([{ parts: ["x".repeat(LONG)], chunkSize: 1024 }]);
    const events = await heard(await ask(url));
    const deltas = events.filter(({ event }) => event === "text_delta");
    expect(deltas.length).toBeLessThan(LONG / 1024);
    expect(deltas.map(({ data }) => data["delta"]).join("").length).toBe(LONG);
    let last = 0;
    for (const { data } of events) {
      expect(data["from"] ?? data["seq"]).toBe(last + 1);
      last = Number(data["seq"]);
    }
  });

  it("past a limit the connection is cut; the stream can be resumed", async () => {
    const maxWaitingBytes = 1024 * 1024;
    const { clock, model, port, url } = await served(
      [{ parts: ["x".repeat(16 * LONG)], chunkSize: 65_536 }],
      { maxWaitingBytes },
    );
    const body = JSON.stringify(question);
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `POST /api/stream HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const head = await new Promise<string>((resolve) => {
      socket.once("data", (piece) => resolve((socket.pause(), piece.toString())));
    });
    expect(model.requests).toBe(1);
    await until(() => clock.pending === 0);
    socket.destroy();
    const name = /\r\ngyre-stream: (\S+)\r\n/i.exec(head)?.[1];
    const headers = { "last-event-id": "1" };
    const resumed = await fetch(`${url}/api/streams/${name}`, { headers });
    expect(resumed.status).toBe(200);
    await resumed.body?.cancel();
  });
});

/** Sends bytes and gives all that comes back until the end. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (piece) => (text += piece.toString()));
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
    socket.write(bytes);
  });
}

/** Settles once something holds; each turn of the event loop it is looked at. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
