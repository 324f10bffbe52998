import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createInProcessClient, DEFAULT_MAX_RETRY_DELAY_MS, type Model } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { afterEach, describe, expect, it } from "vitest";
import { type Playing, start } from "../testing/play.ts";
import type { AgentEvent, AgentLoopConfig } from "../contract/types.ts";

// The loop, the wires and a server on a socket, under a clock that stands still: what a
// service says about waiting is what happens.

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  /** The connection is cut instead of, or in the middle of, an answer. */
  cut?: "at once" | "in the body";
}

const HELLO = [
  { type: "message_start", message: { id: "m1", usage: { input_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
];
const WHOLE: Answer = {
  status: 200,
  headers: { "content-type": "text/event-stream" },
  body: HELLO.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""),
};
const BUSY: Answer = {
  status: 529,
  body: JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Busy" } }),
};

function slowDown(headers: Record<string, string>): Answer {
  const error = { type: "rate_limit_error", message: "Slow down" };
  return { status: 429, headers, body: JSON.stringify({ type: "error", error }) };
}

const SERVERS: Server[] = [];
afterEach(async () => {
  for (const server of SERVERS.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A service that gives these answers in order, the last one again and again. */
async function serve(answers: readonly Answer[]): Promise<{ url: string; asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    const {
      body = "",
      cut,
      headers,
      status,
    } = answers[Math.min(asked++, answers.length - 1)] ?? WHOLE;
    request.resume().on("end", () => {
      if (cut === "at once") return request.socket.resetAndDestroy();
      response.writeHead(status, headers);
      if (cut === "in the body") return response.write(body, () => request.socket.end());
      return response.end(body);
    });
  });
  SERVERS.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

interface Run extends Playing {
  asked: () => number;
  /** The next event of this type. */
  next: (type: AgentEvent["type"]) => Promise<void>;
}

async function run(
  answers: readonly Answer[],
  config: Partial<AgentLoopConfig> = {},
): Promise<Run> {
  const { asked, url } = await serve(answers);
  const model: Model = {
    id: "claude-test",
    name: "Test",
    api: "anthropic-messages",
    provider: "anthropic",
    baseUrl: url,
  };
  const protocol = createInProcessClient(createProviders({ getApiKey: () => "test-key" }));
  const seen: AgentEvent["type"][] = [];
  let notify = (): void => {};
  const playing = start({
    config: { model, protocol, ...config },
    onEvent: ({ type }) => {
      seen.push(type);
      notify();
    },
  });
  const next = async (type: AgentEvent["type"]): Promise<void> => {
    for (;;) {
      const at = seen.indexOf(type);
      if (at >= 0) return void seen.splice(0, at + 1);
      await new Promise<void>((resolve) => (notify = resolve));
    }
  };
  return { ...playing, asked, next };
}

describe("a service that asks to wait", () => {
  it.each<[string, Record<string, string>, number]>([
    ["seconds", { "retry-after": "7" }, 7_000],
    ["a fraction of them", { "retry-after": "1.5" }, 1_500],
    ["milliseconds", { "retry-after-ms": "250" }, 250],
    ["both", { "retry-after": "1", "retry-after-ms": "1500" }, 1_500],
    // The clock of these runs begins in 1970.
    ["a date", { "retry-after": "Thu, 01 Jan 1970 00:00:30 GMT" }, 30_000],
    ["no time", { "retry-after": "0" }, 0],
    ["less than none", { "retry-after": "-5" }, 0],
    // What cannot be read is as if it had not been said: then it is what we think right.
    ["something that cannot be read", { "retry-after": "soon" }, 1_000],
  ])("in %s is asked again after just as long", async (_, headers, delayMs) => {
    const { asked, clock, done, next, recorder } = await run([slowDown(headers), WHOLE]);
    await next("retry");
    expect(recorder.events.at(-1)).toMatchObject({ attempt: 1, delayMs, kind: "rate_limit" });
    if (delayMs > 0) {
      await clock.advance(delayMs - 1);
      expect(asked()).toBe(1);
    }
    await clock.advance(1);
    const { end } = await done;
    expect(asked()).toBe(2);
    expect(end.stop).toBe("done");
    expect(clock.pending).toBe(0);
  });

  it("longer than is allowed fails at once, with a sentence", async () => {
    const { asked, clock, done } = await run([slowDown({ "retry-after": "7200" }), WHOLE]);
    const { end, events } = await done;
    expect(asked()).toBe(1);
    expect(clock.now()).toBe(0);
    expect(events.some(({ type }) => type === "retry")).toBe(false);
    expect(end.finalMessage).toMatchObject({
      stopReason: "error",
      failure: { kind: "rate_limit", retryAfterMs: 7_200_000 },
    });
    expect(end.finalMessage?.errorMessage).toMatch(
      /The service asks to wait 7200 s, which is more than the 60 s that maxRetryDelayMs allows\.$/,
    );
  });

  it("as long as is allowed, and a little longer", async () => {
    const longest = await run([
      slowDown({ "retry-after-ms": String(DEFAULT_MAX_RETRY_DELAY_MS) }),
      WHOLE,
    ]);
    await longest.next("retry");
    await longest.clock.advance(DEFAULT_MAX_RETRY_DELAY_MS);
    expect((await longest.done).end.stop).toBe("done");
    const longer = await run([
      slowDown({ "retry-after-ms": String(DEFAULT_MAX_RETRY_DELAY_MS + 1) }),
      WHOLE,
    ]);
    expect((await longer.done).end.stop).toBe("error");
    const own = await run([slowDown({ "retry-after": "2" }), WHOLE], { maxRetryDelayMs: 1_000 });
    expect((await own.done).end.stop).toBe("error");
  });
});

describe("a service that fails", () => {
  it("is asked until it works, less and less often", async () => {
    const { asked, clock, done, next, recorder } = await run([BUSY, BUSY, BUSY, BUSY, WHOLE]);
    for (const delayMs of [1_000, 2_000, 4_000, 8_000]) {
      await next("retry");
      expect(recorder.events.at(-1)).toMatchObject({ delayMs, kind: "overloaded" });
      await clock.advance(delayMs);
    }
    const { end } = await done;
    expect(end.stop).toBe("done");
    expect(end.finalMessage).toMatchObject({ content: [{ type: "text", text: "Hello" }] });
    expect(asked()).toBe(5);
  });

  it.each<[string, Answer, string, number]>([
    ["529", BUSY, "overloaded", 10],
    ["503", { ...BUSY, status: 503 }, "overloaded", 10],
    ["429", slowDown({}), "rate_limit", 10],
    ["a cut connection", { status: 0, cut: "at once" }, "network", 10],
    ["424", { status: 424, body: "{}" }, "unknown", 5],
    ["500", { status: 500, body: "{}" }, "unknown", 5],
  ])("R22: is asked so many times, and no more: %s", async (_, answer, kind, attempts) => {
    const { asked, clock, done, next, recorder } = await run([answer]);
    for (let attempt = 1; attempt < attempts; attempt++) {
      await next("retry");
      const delayMs = Math.min(30_000, 1_000 * 2 ** (attempt - 1));
      const expected = { attempt, maxAttempts: attempts, kind, delayMs };
      expect(recorder.events.at(-1)).toMatchObject(expected);
      await clock.advance(delayMs);
    }
    expect((await done).end.stop).toBe("error");
    expect([asked(), clock.pending]).toEqual([attempts, 0]);
  });

  it("R22: is not asked later than five minutes after it failed first", async () => {
    const { asked, clock, done, next } = await run([slowDown({ "retry-after": "60" })]);
    for (let minute = 1; minute <= 5; minute++) {
      await next("retry");
      await clock.advance(60_000);
    }
    expect((await done).end.finalMessage?.errorMessage).toContain("the 300 s that");
    expect([asked(), clock.now()]).toEqual([6, 300_000]);
  });

  it("fails after so many attempts, with its own message", async () => {
    const { asked, clock, done, next } = await run([BUSY], { retry: { maxRetries: 2 } });
    for (let attempt = 0; attempt < 2; attempt++) {
      await next("retry");
      await clock.advance(8_000);
    }
    const { end } = await done;
    expect(asked()).toBe(3);
    expect(end.finalMessage?.errorMessage).toContain("Anthropic answered 529: Busy.");
  });

  it.each<[string, Answer, string]>([
    ["cuts the connection", { status: 0, cut: "at once" }, "network"],
    [
      "cuts its answer before it says anything",
      { ...WHOLE, body: ":\n\n", cut: "in the body" },
      "incomplete",
    ],
    ["answers with nothing", { ...WHOLE, body: "" }, "incomplete"],
    ["is hidden by a page", { status: 502, body: "<html></html>" }, "unknown"],
  ])("that %s is asked again", async (_, answer, kind) => {
    const { clock, done, next, recorder } = await run([answer, WHOLE]);
    await next("retry");
    expect(recorder.events.at(-1)).toMatchObject({ kind });
    await clock.advance(1_000);
    expect((await done).end.stop).toBe("done");
  });

  it.each([401, 404])("that answers %i is not asked again", async (status) => {
    const { asked, done } = await run([{ status, body: "{}" }, WHOLE]);
    expect((await done).end.stop).toBe("error");
    expect(asked()).toBe(1);
  });

  it("is not asked again after an abort in the wait", async () => {
    const { abort, asked, clock, done, next } = await run([BUSY, WHOLE]);
    await next("retry");
    abort();
    const { end } = await done;
    expect(end.stop).toBe("aborted");
    expect(asked()).toBe(1);
    expect(clock.pending).toBe(0);
  });
});
