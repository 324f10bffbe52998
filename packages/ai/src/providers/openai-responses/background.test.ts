import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import type { StreamOptions } from "../../client/client.ts";
import { type Clock, systemClock } from "../../common/clock.ts";
import type { AssistantMessage } from "../../messages/messages.ts";
import { httpFetch } from "../../node/http/http-fetch.ts";
import type { AssistantMessageEvent } from "../../stream/events.ts";
import { MAX_EVENT_CHARS } from "../../stream/sse.ts";
import { createPrompt } from "../../testing/fake-service.ts";
import type { Fetch } from "../http/fetch.ts";
import { createModel } from "../testing/format-fixture.ts";
import { SILENCE_MS } from "./background.ts";
import { openaiResponses } from "./index.ts";

/*
 * A service on a socket that works on responses in the background, and whose connections break. What is read must be
 * what is read without a break, event for event. `GYRE_CUTS=1000 GYRE_SEED=1` chooses how many and which.
 */

type Random = () => number;

/** Numbers from 0 to 1 that a seed repeats. */
function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Short waits are over at once, and long ones never. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, run) => (ms < SILENCE_MS ? systemClock.after(0, run) : () => {}),
};
/** Nothing waits for these. */
const watchdog = { firstByteMs: 0, betweenBytesMs: 0 };

/**
 * How the service treats one connection: cut after this many bytes, silent after some, an error in its place,
 * or whole.
 */
type Fate = number | "reset" | "silent" | "whole" | { status: number };

const SOME_BYTES = 600;

interface World {
  url: string;
  /** Method, path and query of every request. */
  requests: string[];
  canceled: Promise<void>;
}

const SERVERS: Server[] = [];
afterEach(async () => {
  for (const server of SERVERS.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** The events of a response, numbered, with the whole of it in the last. */
function createEvents(random: Random): object[] {
  const letters = [...'abc {}[]":,\\\n\r\u2028 äöü漢字🦊'];
  const text = (length: number): string =>
    Array.from({ length }, () => letters[Math.floor(random() * letters.length)]).join("");
  const output: object[] = [];
  const events: object[] = [
    { type: "response.created", response: { id: "resp_1", status: "queued" } },
    { type: "response.in_progress", response: { id: "resp_1", status: "in_progress" } },
  ];
  const count = 1 + Math.floor(random() * 3);
  for (let output_index = 0; output_index < count; output_index++) {
    const deltas = Array.from({ length: 1 + Math.floor(random() * 8) }, () =>
      text(1 + random() * 9),
    );
    const at = { output_index, content_index: 0, summary_index: 0 };
    if (random() < 0.4) {
      const id = `fc_${output_index}`;
      const call = { type: "function_call", id, call_id: `call_${output_index}`, name: "put" };
      const json = JSON.stringify({ text: deltas.join("") });
      events.push({ type: "response.output_item.added", ...at, item: { ...call, arguments: "" } });
      for (let from = 0; from < json.length; from += 7) {
        const delta = json.slice(from, from + 7);
        events.push({ type: "response.function_call_arguments.delta", ...at, item_id: id, delta });
      }
      const item = { ...call, arguments: json };
      output.push(item);
      events.push({ type: "response.output_item.done", ...at, item });
      continue;
    }
    const isThought = random() < 0.3;
    const [added, type, item] = isThought
      ? [
          { type: "reasoning", id: `rs_${output_index}`, summary: [] },
          "response.reasoning_summary_text.delta",
          {
            type: "reasoning",
            id: `rs_${output_index}`,
            summary: [{ type: "summary_text", text: deltas.join("") }],
            encrypted_content: "sealed",
          },
        ]
      : [
          { type: "message", id: `msg_${output_index}`, role: "assistant", content: [] },
          "response.output_text.delta",
          {
            type: "message",
            id: `msg_${output_index}`,
            role: "assistant",
            content: [{ type: "output_text", text: deltas.join(""), annotations: [] }],
          },
        ];
    events.push({ type: "response.output_item.added", ...at, item: added });
    for (const delta of deltas) events.push({ type, ...at, delta });
    output.push(item);
    events.push({ type: "response.output_item.done", ...at, item });
  }
  const usage = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
  events.push({
    type: "response.completed",
    response: { id: "resp_1", status: "completed", store: true, output, usage },
  });
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** The same of one text. */
function createTextEvents(deltas: readonly string[]): object[] {
  const content = [{ type: "output_text", text: deltas.join(""), annotations: [] }];
  const item = { type: "message", id: "msg_0", role: "assistant", content };
  return [
    { type: "response.created", response: { id: "resp_1", status: "queued" } },
    { type: "response.in_progress", response: { id: "resp_1", status: "in_progress" } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    ...deltas.map((delta) => ({
      type: "response.output_text.delta",
      output_index: 0,
      content_index: 0,
      delta,
    })),
    { type: "response.output_item.done", output_index: 0, item },
    {
      type: "response.completed",
      response: { id: "resp_1", status: "completed", store: true, output: [item] },
    },
  ].map((event, sequence_number) => ({ ...event, sequence_number }));
}

interface Play {
  events: readonly object[];
  /** Of the connections that stream, in order; the last one again and again. */
  fates: readonly Fate[];
  /** Of the looks at the response; before the end it is in progress. */
  polls?: readonly Fate[];
  /** From which event on a resumed stream goes, in place of the right one. */
  resumesAt?: (after: number) => number;
}

async function serve({ events, fates, polls = ["whole"], resumesAt }: Play): Promise<World> {
  const requests: string[] = [];
  let streams = 0;
  let looks = 0;
  let onCanceled = (): void => {};
  const canceled = new Promise<void>((resolve) => (onCanceled = resolve));
  const pick = (all: readonly Fate[], nth: number): Fate =>
    all[Math.min(nth, all.length - 1)] ?? "whole";
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? "", "http://service");
    requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (url.pathname.endsWith("/cancel")) {
      response.end("{}");
      onCanceled();
      return;
    }
    const isStream = request.method === "POST" || url.searchParams.get("stream") === "true";
    const fate = isStream ? pick(fates, streams++) : pick(polls, looks++);
    if (fate === "reset") {
      request.socket.resetAndDestroy();
      return;
    }
    if (typeof fate === "object") {
      response.writeHead(fate.status).end("{}");
      return;
    }
    if (!isStream) {
      const last = events.at(-1);
      const whole = last && "response" in last ? last.response : {};
      // A number: the response is not finished yet.
      const body = fate === "whole" ? whole : { id: "resp_1", status: "in_progress" };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
      return;
    }
    const after = Number(url.searchParams.get("starting_after") ?? -1);
    const from = request.method === "POST" ? 0 : (resumesAt?.(after) ?? after + 1);
    const text = events
      .slice(from)
      .map((event) => `event: e\ndata: ${JSON.stringify(event)}\n\n`)
      .join("");
    const bytes = Buffer.from(text);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (fate === "whole") response.end(bytes);
    else if (fate === "silent") response.write(bytes.subarray(0, SOME_BYTES));
    else if (fate >= bytes.length) response.end(bytes);
    else response.write(bytes.subarray(0, fate), () => request.socket.destroy());
  };
  const server = createServer((request, response) => {
    request.resume().on("end", () => answer(request, response));
  });
  SERVERS.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, requests, canceled };
}

interface Read {
  message: AssistantMessage;
  events: string[];
}

async function read({ url }: World, options: StreamOptions = {}, fetch?: Fetch): Promise<Read> {
  const model = createModel("openai-responses", "openai", "gpt-5.1", { baseUrl: url });
  const { stream } = openaiResponses(fetch ? { fetch } : {});
  const answer = await stream(
    model,
    { messages: [createPrompt("Hello")] },
    {
      apiKey: "test-key-0123456789",
      providerOptions: { openai: { background: true } },
      clock: { ...hasty, now: () => 0 },
      watchdog,
      ...options,
    },
  );
  const events: string[] = [];
  for await (const event of answer) events.push(summarize(event));
  return { message: await answer.result(), events };
}

function summarize(event: AssistantMessageEvent): string {
  const at = "contentIndex" in event ? event.contentIndex : "";
  return `${event.type} ${at} ${"delta" in event ? JSON.stringify(event.delta) : ""}`;
}

describe("a response in the background", () => {
  it(
    "is the same however often its connections break",
    { tags: "long", timeout: 600_000 },
    async () => {
      const seed = pickSeed();
      const cases = countCases(40, 1_000, "GYRE_CUTS");
      console.log(`${cases} responses with cuts: GYRE_SEED=${seed}`);
      const count = { cuts: 0, polled: 0 };
      for (let nth = 0; nth < cases; nth++) {
        const random = createRandom(seed + nth);
        const events = createEvents(random);
        const size = Buffer.from(JSON.stringify(events)).length;
        // The first event has the id, without which nothing can be resumed.
        const named = Buffer.from(JSON.stringify(events[0])).length + 32;
        const fates: Fate[] = [named + Math.floor(random() * size)];
        for (let more = Math.floor(random() * 6); more > 0; more--) {
          const kind = random();
          if (kind < 0.6) fates.push(Math.floor((random() * size) / 2));
          else if (kind < 0.75) fates.push("reset");
          else if (kind < 0.9) fates.push({ status: random() < 0.5 ? 503 : 429 });
          else fates.push(0);
        }
        const isGone = random() < 0.2;
        fates.push(isGone ? { status: 404 } : "whole");
        const polls: Fate[] = [1, "reset", { status: 500 }, "whole"];
        const broken = await serve({ events, fates, polls });
        const whole = await serve({ events, fates: ["whole"] });
        const fetch: Fetch | undefined = random() < 0.5 ? httpFetch : undefined;
        const [found, wanted] = [await read(broken, {}, fetch), await read(whole, {}, fetch)];
        const about = `case ${nth} of GYRE_SEED=${seed}: ${JSON.stringify(fates)}\n${broken.requests.join("\n")}`;
        expect(found.message.stopReason, about).toBe(wanted.message.stopReason);
        expect(found.message.content, about).toEqual(wanted.message.content);
        expect(found.message.usage, about).toEqual(wanted.message.usage);
        const isPolled = broken.requests.some((line) =>
          /^GET \/v1\/responses\/resp_1(\?include|$)/.test(line),
        );
        if (isPolled) count.polled++;
        else expect(found.events, about).toEqual(wanted.events);
        count.cuts += broken.requests.length - 1;
      }
      console.log(JSON.stringify(count));
      expect(count.cuts).toBeGreaterThan(0);
    },
  );

  const EVENTS = createTextEvents([..."The quick brown fox jumps."]);

  it("goes on behind the last event that was whole, with what the request asked for", async () => {
    const lines = EVENTS.slice(0, 3).map((event) => `event: e\ndata: ${JSON.stringify(event)}\n\n`);
    const cut = Buffer.from(lines.join("")).length - 5;
    const world = await serve({ events: EVENTS, fates: [cut, "whole"] });
    const { message } = await read(world);
    expect(message.stopReason).not.toBe("error");
    expect(world.requests).toEqual([
      "POST /v1/responses",
      "GET /v1/responses/resp_1?stream=true&starting_after=1&include%5B%5D=reasoning.encrypted_content",
    ]);
  });

  it("takes no event twice where the service repeats some, and polls where some are missing", async () => {
    const whole = await read(await serve({ events: EVENTS, fates: ["whole"] }));
    const again = await serve({ events: EVENTS, fates: [600, "whole"], resumesAt: () => 0 });
    expect(await read(again)).toEqual(whole);
    const gap = await serve({ events: EVENTS, fates: [600, "whole"], resumesAt: (at) => at + 3 });
    const { message } = await read(gap);
    expect(message.content).toEqual(whole.message.content);
    expect(gap.requests.at(-1)).toMatch(/^GET \/v1\/responses\/resp_1\?include/);
  });

  it("goes on where a connection is silent", async () => {
    const world = await serve({ events: EVENTS, fates: ["silent", "silent", "whole"] });
    // An early one cuts a connection that is not silent, which changes nothing.
    const clock: Clock = {
      ...hasty,
      after: (ms, run) => systemClock.after(ms === SILENCE_MS ? 20 : 0, run),
    };
    const { message } = await read(world, { clock });
    expect(message.content).toMatchObject([{ text: "The quick brown fox jumps." }]);
    expect(world.requests.length).toBeGreaterThan(2);
  });

  it("is polled until it ends where it cannot be streamed again", async () => {
    const polls: Fate[] = [1, 1, { status: 500 }, "reset", 1, "whole"];
    const world = await serve({ events: EVENTS, fates: [600, { status: 400 }], polls });
    const { message } = await read(world);
    const whole = await read(await serve({ events: EVENTS, fates: ["whole"] }));
    expect(message.content).toEqual(whole.message.content);
    expect(world.requests).toHaveLength(2 + polls.length);
  });

  it.each([
    ["failed", { error: { code: "server_error", message: "Broken." } }, "Broken."],
    ["incomplete", { incomplete_details: { reason: "max_output_tokens" } }, undefined],
    ["cancelled", {}, "cancelled"],
  ])("that is %s when it is polled ends so", async (status, more, error) => {
    const events = [
      { type: "response.created", response: { id: "resp_1" }, sequence_number: 0 },
      { type: "response.failed", response: { id: "resp_1", status, ...more }, sequence_number: 1 },
    ];
    const world = await serve({ events, fates: [95, { status: 404 }] });
    const { message } = await read(world);
    if (error === undefined) expect(message.stopReason).toBe("length");
    else expect(message).toMatchObject({ stopReason: "error", errorMessage: expect.anything() });
    if (error === "Broken.") expect(message.errorMessage).toContain(error);
  });

  it("is an error that can be retried where it is gone, and where nothing gets through", async () => {
    const gone = await serve({
      events: EVENTS,
      fates: [600, { status: 404 }],
      polls: [{ status: 404 }],
    });
    const lost = await read(gone);
    expect(lost.message).toMatchObject({ stopReason: "error", failure: { retryable: true } });
    expect(lost.message.errorMessage).toContain("resp_1");
    expect(lost.message.content.length).toBeGreaterThan(0);
    const dead = await serve({ events: EVENTS, fates: [600, "reset"], polls: ["reset"] });
    const { message } = await read(dead);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
    // One that has no name yet cannot be asked for.
    const nameless = await serve({ events: EVENTS, fates: [10] });
    expect((await read(nameless)).message.failure?.kind).toBe("incomplete");
    expect(nameless.requests).toEqual(["POST /v1/responses"]);
  });

  it("is an error where what a poll brings does not end, and is read no further", async () => {
    const world = await serve({ events: EVENTS, fates: [600, { status: 400 }] });
    const chunk = new TextEncoder().encode(" ".repeat(1024 * 1024));
    let sent = 0;
    let isCanceled = false;
    const fetch: Fetch = async (url, init) => {
      if (init.method !== "GET" || url.includes("stream=true")) return globalThis.fetch(url, init);
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += chunk.length;
          controller.enqueue(chunk);
        },
        cancel() {
          isCanceled = true;
        },
      });
      return new Response(body);
    };
    const { message } = await read(world, {}, fetch);
    expect(message.errorMessage).toContain(`resp_1 in the background is longer than`);
    expect(message.failure).toMatchObject({ kind: "incomplete", retryable: false });
    expect(isCanceled).toBe(true);
    expect(sent).toBeLessThan(MAX_EVENT_CHARS + 4 * chunk.length);
  });

  it("is canceled where its request is aborted, and not once it has ended", async () => {
    const control = new AbortController();
    const world = await serve({ events: EVENTS, fates: [600, "reset"], polls: [1] });
    const slow: Clock = {
      ...systemClock,
      after: (ms, run) => systemClock.after(ms > 1_500 ? 60_000 : 0, run),
    };
    const model = createModel("openai-responses", "openai", "gpt-5.1", { baseUrl: world.url });
    const answer = await openaiResponses().stream(
      model,
      { messages: [createPrompt("Hello")] },
      {
        apiKey: "test-key-0123456789",
        providerOptions: { openai: { background: true } },
        clock: slow,
        watchdog,
        signal: control.signal,
      },
    );
    for await (const event of answer) if (event.type.endsWith("_delta")) control.abort();
    expect((await answer.result()).stopReason).toBe("aborted");
    await world.canceled;
    expect(world.requests.at(-1)).toBe("POST /v1/responses/resp_1/cancel");
    const ended = await serve({ events: EVENTS, fates: ["whole"] });
    await read(ended);
    expect(ended.requests).toEqual(["POST /v1/responses"]);
  });

  it("keeps the query of an address", async () => {
    const world = await serve({ events: EVENTS, fates: [600, "whole"] });
    await read({ ...world, url: `${world.url}?api-version=preview` });
    expect(world.requests[1]).toMatch(
      /^GET \/v1\/responses\/resp_1\?api-version=preview&stream=true/,
    );
  });
});
