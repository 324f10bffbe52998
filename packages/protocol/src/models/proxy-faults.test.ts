import { connect } from "node:net";
import { type AssistantMessage, type Context } from "@gyre/ai";
import {
  call,
  manualClock,
  say,
  scriptedModel,
  scriptedModelInfo,
  serviceTool,
  think,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { ModelService } from "./models-service.ts";
import type { Route } from "../http/route.ts";
import { createStreamRoutes } from "../http/stream-route.ts";
import { MAX_RESUMES, SILENCE_MS, streamProxy, type StreamProxyOptions } from "./proxy.ts";
import {
  type AnsweringServer,
  EVENT_STREAM_HEAD as HEAD,
  hastyClock,
  type Heard,
  heard,
  joined,
  listenAnswers,
  type Listening,
  listenRaw,
  listenRoutes,
} from "../testing/http-streams.ts";
import { countCases } from "../../../../tests/support/cases.ts";

const open: Listening[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const context: Context = { messages: [{ role: "user", content: "Go", timestamp: 0 }] };
const PARTS = [
  think("Hm, well", { signature: "sig" }),
  say("Hello 😀\r\n\u2028 there"),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a" }, "c1"),
];

/** Waits of a backoff are over at once; a silent connection stays. */
const HASTY = hastyClock(SILENCE_MS - 1);

function ask(url: string, options: Partial<StreamProxyOptions> = {}): Promise<Heard> {
  const asked = { url, token: "t-secret-1", clock: HASTY, ...options };
  return heard(streamProxy(scriptedModelInfo, context, asked));
}

function newRoutes(tailEvents?: number): Route[] {
  const model = scriptedModel(() => PARTS, { chunkSize: 3, clock: manualClock(7) });
  const limits = tailEvents === undefined ? {} : { limits: { tailEvents } };
  // Its timers stand still, so that none is left when a test is over.
  const clock = manualClock();
  const options = { client: model, models: () => [model.model], clock, ...limits };
  return createStreamRoutes(new ModelService(options));
}

/** The body of the answer as it was recorded, and what comes of it. */
let body = "";
let whole: Heard;

beforeAll(async () => {
  const server = await listenRoutes(newRoutes());
  const question = { model: { provider: "scripted", id: "scripted" }, context, options: {} };
  const init = { method: "POST", body: JSON.stringify(question) };
  body = await (await fetch(`${server.url}/api/stream`, init)).text();
  whole = await ask(server.url);
  await server.close();
  if (whole.message.stopReason !== "toolUse") throw new Error("It was not recorded.");
});

/** Answers requests with these bytes, one after the other. */
async function answering(...answers: readonly string[]): Promise<AnsweringServer> {
  const server = await listenAnswers(answers);
  open.push(server);
  return server;
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Whether one message is what another was on its way. */
function expectBeginning(part: AssistantMessage, all: AssistantMessage): void {
  for (const [index, block] of part.content.entries()) {
    const full = all.content[index];
    if (block.type === "text" && full?.type === "text") {
      expect(full.text.startsWith(block.text)).toBe(true);
    } else if (block.type === "thinking" && full?.type === "thinking") {
      expect(full.thinking.startsWith(block.thinking)).toBe(true);
    } else expect(block.type).toBe(full?.type);
  }
}

/** Connections that are open at the same time. */
const AT_ONCE = 32;
/** Of the places where an answer can be cut, so many are tried; at its end, all of them. */
const EVERY_BYTES = countCases(8, 1);

describe("an end without a terminal event", () => {
  it(
    "at any byte gives the whole message or an error with what had come, never a wrong message",
    { tags: "long" },
    async () => {
      const bytes = encode(body);
      const head = encode(`${HEAD}\r\n`);
      // The path says where the answer is cut.
      const server = await listenRaw((socket) => {
        socket.once("data", (piece) => {
          const cut = Number(/^POST \/(\d+)\//.exec(piece.toString())?.[1]);
          socket.end(Buffer.concat([head, bytes.subarray(0, cut)]));
        });
      });
      open.push(server);
      let wholes = 0;
      for (let from = 0; from <= bytes.length; from += AT_ONCE) {
        const cuts = Array.from({ length: AT_ONCE }, (_, at) => from + at);
        const some = cuts.filter(
          (cut) =>
            cut <= bytes.length && (cut % EVERY_BYTES === 0 || bytes.length - cut < EVERY_BYTES),
        );
        for (const { events, message } of await Promise.all(
          some.map((cut) => ask(`${server.url}/${cut}`)),
        )) {
          expect(events.filter(({ type }) => type === "done" || type === "error")).toHaveLength(1);
          if (message.stopReason === "toolUse") {
            expect(message).toEqual(whole.message);
            wholes++;
          } else {
            expect(message.failure).toEqual({ kind: "network", retryable: true });
            expectBeginning(message, whole.message);
          }
        }
      }
      // With its blank line, without it, and without the end of its last line.
      expect(wholes).toBe(3);
    },
  );

  it("the last line without a newline is read", async () => {
    const { url } = await answering(`${HEAD}\r\n${body.trimEnd()}`);
    expect((await ask(url)).message).toEqual(whole.message);
  });

  it("after the headers, and without a name for the stream, is not resumed", async () => {
    const { requests, url } = await answering(`${HEAD}\r\n`);
    const { message } = await ask(url);
    expect(message).toMatchObject({ stopReason: "error", content: [] });
    expect(requests).toHaveLength(1);
  });
});

/** Between client and server: each connection in turn is cut after so many bytes of the answer. */
async function relay(to: number, cuts: readonly number[]): Promise<Listening> {
  let turn = 0;
  let left = cuts[turn] ?? Infinity;
  const server = await listenRaw((socket) => {
    const upstream = connect(to, "127.0.0.1");
    upstream.on("error", () => socket.destroy());
    upstream.on("close", () => socket.end());
    socket.on("close", () => upstream.destroy());
    socket.on("data", (piece) => upstream.write(piece));
    upstream.on("data", (piece) => {
      const passed = piece.subarray(0, left);
      left -= piece.length;
      if (left > 0) {
        socket.write(passed);
        return;
      }
      left = cuts[++turn] ?? Infinity;
      upstream.destroy();
      socket.write(passed, () => socket.resetAndDestroy());
    });
  });
  open.push(server);
  return server;
}

describe("resume: nothing is lost or doubled, however often the connection breaks", () => {
  /** Longer than the headers of an answer, so that the stream's name has come. */
  const HEADERS_BYTES = 400;
  /** Prime, so that cuts fall on all kinds of places. */
  const STEP_BYTES = 23;

  it.each([
    ["what is missing is sent", undefined],
    ["a snapshot is sent where that is gone", 2],
  ])("%s, for a cut anywhere", async (_, tailEvents) => {
    const server = await listenRoutes(newRoutes(tailEvents));
    open.push(server);
    for (let cut = HEADERS_BYTES; cut < HEADERS_BYTES + body.length; cut += STEP_BYTES) {
      const between = await relay(server.port, [cut]);
      const { events, message } = await ask(between.url);
      expect(message).toEqual(whole.message);
      expect(joined(events)).toEqual(joined(whole.events));
      await between.close();
    }
  });

  it("after any number of cuts that each let something through", async () => {
    const server = await listenRoutes(newRoutes());
    open.push(server);
    const cuts = fc.array(fc.integer({ min: 800, max: 3000 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        const between = await relay(server.port, at);
        const { events, message } = await ask(between.url);
        expect(message).toEqual(whole.message);
        expect(joined(events)).toEqual(joined(whole.events));
        await between.close();
      }),
      { numRuns: 60 },
    );
  });

  it("asks for the rest by the name of the stream and the number of the last event", async () => {
    const at = body.indexOf("id: 4\n");
    const named = `${HEAD}gyre-stream: s/1\r\n\r\n`;
    const { requests, url } = await answering(
      named + body.slice(0, at),
      `${HEAD}\r\n${body.slice(at)}`,
    );
    expect((await ask(url)).message).toEqual(whole.message);
    expect(requests[1]).toMatch(/^GET \/api\/streams\/s%2F1 HTTP/);
    expect(requests[1]).toMatch(/\r\nlast-event-id: 3\r\n/i);
    expect(requests[1]).toMatch(/\r\nauthorization: Bearer t-secret-1\r\n/i);
  });

  it("events that came before change nothing", async () => {
    const at = body.indexOf("id: 4\n");
    const named = `${HEAD}gyre-stream: s_1\r\n\r\n`;
    const { url } = await answering(named + body.slice(0, at), `${HEAD}\r\n${body}`);
    const { events, message } = await ask(url);
    expect(message).toEqual(whole.message);
    expect(joined(events)).toEqual(joined(whole.events));
  });

  it("a gap is not passed over: the stream resumes before it", async () => {
    const [from, to] = [body.indexOf("id: 4\n"), body.indexOf("id: 5\n")];
    const named = `${HEAD}gyre-stream: s_1\r\n\r\n`;
    const { requests, url } = await answering(
      named + body.slice(0, from) + body.slice(to),
      `${HEAD}\r\n${body.slice(from)}`,
    );
    expect((await ask(url)).message).toEqual(whole.message);
    expect(requests[1]).toMatch(/\r\nlast-event-id: 3\r\n/i);
  });

  it("is tried five times in a row, then fails with what had come", async () => {
    const at = body.indexOf("event: text_end");
    const named = `${HEAD}gyre-stream: s_1\r\n\r\n`;
    const { requests, url } = await answering(named + body.slice(0, at), "");
    const { message } = await ask(url);
    expect(message.failure).toEqual({ kind: "network", retryable: true });
    expect(message.content[0]).toMatchObject({ type: "thinking", thinking: "Hm, well" });
    const asked = requests.filter((request) => request.startsWith("GET"));
    expect(asked).toHaveLength(MAX_RESUMES);
  });

  it("goes on through a server that is busy, and waits as long as it says", async () => {
    const clock = manualClock();
    const at = body.indexOf("id: 4\n");
    const { requests, url } = await answering(
      `${HEAD}gyre-stream: s_1\r\n\r\n${body.slice(0, at)}`,
      "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
      `${HEAD}\r\n${body.slice(at)}`,
    );
    const answer = ask(url, { clock });
    await advanceUntil(clock, 50, () => requests.length === 2);
    const asked = clock.now();
    await advanceUntil(clock, 50, () => requests.length === 3);
    expect(clock.now() - asked).toBeGreaterThanOrEqual(6950);
    expect((await answer).message).toEqual(whole.message);
  });

  it("a stream that is gone is a network error with what had come", async () => {
    const at = body.indexOf("event: text_end");
    const gone = JSON.stringify({ error: { code: "stream_not_found", message: "Gone." } });
    const { requests, url } = await answering(
      `${HEAD}gyre-stream: s_1\r\n\r\n${body.slice(0, at)}`,
      `HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n${gone}`,
    );
    const { message } = await ask(url);
    expect(message.failure).toMatchObject({ kind: "network", retryable: true, status: 404 });
    expect(message.content.length).toBeGreaterThan(0);
    expect(requests.filter((request) => request.startsWith("GET"))).toHaveLength(1);
  });

  it("an abort while nothing is connected ends it at once", async () => {
    const control = new AbortController();
    const at = body.indexOf("id: 4\n");
    const { url } = await answering(`${HEAD}gyre-stream: s_1\r\n\r\n${body.slice(0, at)}`, "");
    // The wait before the next attempt never ends by itself.
    const after = (ms: number): (() => void) => {
      if (ms < SILENCE_MS) setImmediate(() => control.abort());
      return () => {};
    };
    const { message } = await ask(url, { clock: { ...HASTY, after }, signal: control.signal });
    expect(message.stopReason).toBe("aborted");
  });
});

describe("a silent connection", () => {
  it("is dead after a minute, and the stream is resumed", async () => {
    const clock = manualClock();
    const at = body.indexOf("id: 4\n");
    let posted = false;
    const server = await listenRaw((socket) => {
      socket.once("data", () => {
        if (posted) return socket.end(`${HEAD}\r\n${body.slice(at)}`);
        posted = true;
        return socket.write(`${HEAD}gyre-stream: s_1\r\n\r\n${body.slice(0, at)}`);
      });
    });
    open.push(server);
    let isOver = false;
    const answer = ask(server.url, { clock }).finally(() => (isOver = true));
    await advanceUntil(clock, 1000, () => isOver);
    expect((await answer).message).toEqual(whole.message);
    expect(clock.now()).toBeGreaterThanOrEqual(SILENCE_MS);
  });

  it("that never answered is a timeout", async () => {
    const clock = manualClock();
    const server = await listenRaw(() => {});
    open.push(server);
    let isOver = false;
    const answer = ask(server.url, { clock }).finally(() => (isOver = true));
    await advanceUntil(clock, 1000, () => isOver);
    expect((await answer).message.failure).toEqual({ kind: "timeout", retryable: true });
  });
});

/** Lets time pass in steps, with a turn for what arrives in between. */
async function advanceUntil(
  clock: ReturnType<typeof manualClock>,
  stepMs: number,
  holds: () => boolean,
): Promise<void> {
  while (!holds()) await clock.advance(stepMs);
}

describe("HTTP: an event stream is read", () => {
  const variants: Readonly<Record<string, (text: string) => string>> = {
    "with CRLF": (text) => text.replaceAll("\n", "\r\n"),
    "with CR alone": (text) => text.replaceAll("\n", "\r"),
    "with a byte order mark": (text) => `\uFEFF${text}`,
    "with comments": (text) => `: hi\n\n${text.replaceAll("\n\n", "\n\n:\n\n")}`,
    "with data on several lines": (text) =>
      text.replaceAll(/^data: ([^\n]*)$/gm, (_, json: string) => {
        const lines = JSON.stringify(JSON.parse(json), undefined, 1).split("\n");
        return lines.map((line) => `data: ${line}`).join("\n");
      }),
    "with events that it does not know": (text) =>
      text.replace(/^id: 1\n[^]*?\n\n/, (start) => `event: news\ndata: {"seq":0}\n\n${start}`),
  };

  it.each(Object.keys(variants))("%s", async (name) => {
    const { url } = await answering(`${HEAD}\r\n${variants[name]?.(body)}`);
    expect((await ask(url)).message).toEqual(whole.message);
  });

  it("in pieces that are cut anywhere", async () => {
    const bytes = encode(body);
    const sizes = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const pieces = function* (): Generator<Uint8Array> {
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const to = at + (lengths[turn % lengths.length] ?? 1);
            yield bytes.subarray(at, to);
            at = to;
          }
        };
        const headers = { "content-type": "text/event-stream" };
        const { message } = await ask("http://localhost", {
          fetch: () => Promise.resolve(new Response(createStream(pieces()), { headers })),
        });
        expect(message).toEqual(whole.message);
      }),
    );
  });
});

function createStream(pieces: Iterator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      const { done, value } = pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

describe("an event that makes no sense", () => {
  const done = /^id: (\d+)\nevent: done\ndata: (.*)$/m;
  const cases: Readonly<Record<string, (text: string) => string>> = {
    "is no JSON": (text) => text.replace(/^data: .*"delta".*$/m, "data: {oops"),
    "has no number": (text) => text.replace('"seq":4', '"nr":4'),
    "comes before the start": (text) =>
      text.slice(text.indexOf("id: 2\n")).replace(/"seq":2\b/, '"seq":1'),
    "ends a block at another length": (text) =>
      text
        .replace(/"length":8\b(?=[^\n]*$)/m, '"length":7')
        .replace(done, (all) => all.replace('"length":8', '"length":9')),
    "ends for a reason that is not known": (text) =>
      text.replace('"reason":"toolUse"', '"reason":"bored"'),
    "has no message": (text) => text.replace('"message":{', '"letter":{'),
  };

  it.each(Object.keys(cases))("ends it with an error, where it %s", async (name) => {
    const { url } = await answering(`${HEAD}\r\n${cases[name]?.(body)}`);
    const { events, message } = await ask(url);
    expect(message.failure).toEqual({ kind: "incomplete", retryable: true });
    expect(events.filter(({ type }) => type === "done" || type === "error")).toHaveLength(1);
  });
});
