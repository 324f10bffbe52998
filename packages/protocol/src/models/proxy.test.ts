import { type Context, type Model } from "@gyre/ai";
import {
  call,
  fail,
  manualClock,
  say,
  type ScriptAnswer,
  type ScriptedModel,
  scriptedModel,
  scriptedModelInfo,
  serviceTool,
  stall,
  think,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ModelService } from "./models-service.ts";
import { listenHttp } from "../node/http/server.ts";
import { createStreamRoutes } from "../http/stream-route.ts";
import { createProxyClient, streamProxy, type StreamProxyOptions } from "./proxy.ts";
import { type Heard, heard, joined, listenRoutes } from "../testing/http-streams.ts";

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const context: Context = { messages: [{ role: "user", content: "Go", timestamp: 0 }] };

const PARTS = [
  think("Hm, well", { signature: "sig" }),
  say("Hello 😀\r\n\u2028 there", { signature: "said" }),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a", deep: [{ n: 1 }] }, "c1"),
  call("read", '{"broken', "c2"),
];

async function served(answer: ScriptAnswer): Promise<{ url: string; model: ScriptedModel }> {
  const usage = { input: 3, output: 4 };
  const model = scriptedModel(() => answer, { chunkSize: 3, usage, clock: manualClock(7) });
  const source = new ModelService({ client: model, models: () => [model.model] });
  const server = await listenRoutes(createStreamRoutes(source));
  open.push(server, source);
  return { model, url: server.url };
}

function ask(
  url: string,
  options: Partial<StreamProxyOptions> = {},
  model: Model = scriptedModelInfo,
): Promise<Heard> {
  return heard(streamProxy(model, context, { url, token: "t-secret", ...options }));
}

async function inProcess(answer: ScriptAnswer): Promise<Heard> {
  const usage = { input: 3, output: 4 };
  const model = scriptedModel([answer], { chunkSize: 3, usage, clock: manualClock(7) });
  return heard(await model.stream(model.model, context, {}));
}

const script: fc.Arbitrary<ScriptAnswer> = fc
  .record({
    parts: fc.array(
      fc.oneof(
        fc.string({ unit: "grapheme" }).map((text) => say(text)),
        fc.string().map((text) => think(text, { signature: "s" })),
        fc.json().map((json) => call("tool", json)),
        fc.string().map((text) => call("tool", { text })),
        fc.string().map((output) => serviceTool("search", { output })),
      ),
      { maxLength: 5 },
    ),
    fails: fc.boolean(),
  })
  .map(({ fails, parts }) => (fails ? [...parts, fail("No.", { kind: "overloaded" })] : parts));

describe("streamProxy", () => {
  it("gives the events and the message that the model gives in process", async () => {
    const { url } = await served(PARTS);
    const [far, near] = [await ask(url), await inProcess(PARTS)];
    expect(joined(far.events)).toEqual(joined(near.events));
    expect(far.message).toEqual(JSON.parse(JSON.stringify(near.message)));
  });

  it("does so for any script", async () => {
    await fc.assert(
      fc.asyncProperty(script, async (answer) => {
        const { url } = await served(answer);
        const [far, near] = [await ask(url), await inProcess(answer)];
        expect(joined(far.events)).toEqual(joined(near.events));
        expect(far.message).toEqual(JSON.parse(JSON.stringify(near.message)));
      }),
      { numRuns: 40 },
    );
  });

  it("has one live partial in all events", async () => {
    const { url } = await served(PARTS);
    const { events } = await ask(url);
    const partials = new Set(
      events.flatMap((event) => ("partial" in event ? [event.partial] : [])),
    );
    expect(partials.size).toBe(1);
  });

  it("sends the model by its name, the context, and the options that travel", async () => {
    const { url } = await served("Hey");
    const bodies: (string | undefined)[] = [];
    await ask(
      url,
      {
        ...{ temperature: 0.5, maxTokens: 9, sessionId: "s", toolChoice: "auto" },
        fetch: (address, init) => {
          bodies.push(init.body);
          return fetch(address, init);
        },
      },
      { ...scriptedModelInfo, baseUrl: "http://else", headers: { "x-key": "k-secret" } },
    );
    expect(bodies.map((body) => JSON.parse(body ?? ""))).toEqual([
      {
        model: { provider: "scripted", id: "scripted" },
        context: { messages: context.messages },
        options: { temperature: 0.5, maxTokens: 9, sessionId: "s", toolChoice: "auto" },
      },
    ]);
  });

  it("credentials of the services stay: no key and no header is sent", async () => {
    const { url } = await served("Hey");
    const sent: string[] = [];
    await ask(url, {
      ...{ apiKey: "k-secret", headers: { authorization: "Bearer k-secret" } },
      fetch: (address, init) => {
        sent.push(JSON.stringify([address, init]));
        return fetch(address, init);
      },
    });
    expect(sent).toHaveLength(1);
    expect(sent[0]).not.toContain("k-secret");
  });

  it.each([
    ["http://host/base/", "http://host/base/api/stream"],
    ["http://host?key=a?b", "http://host/api/stream?key=a?b"],
    ["", "/api/stream"],
  ])("asks %j at %s", async (url, address) => {
    const asked: string[] = [];
    await ask(url, {
      fetch: (at) => {
        asked.push(at);
        return Promise.reject(new Error("no network"));
      },
    });
    expect(asked).toEqual([address]);
  });

  it("is a client for the loop through createProxyClient", async () => {
    const { url } = await served("Hey");
    const client = createProxyClient({ url, token: "t" });
    const { message } = await heard(await client.stream(scriptedModelInfo, context, {}));
    expect(message.content).toEqual([{ type: "text", text: "Hey" }]);
  });

  it("reports the service's failure: kind, retryable, retryAfterMs", async () => {
    const failure = { kind: "rate_limit", retryable: true, retryAfterMs: 1500 } as const;
    const { url } = await served([say("He"), fail("Too fast.", failure)]);
    const { message } = await ask(url);
    expect(message).toMatchObject({ stopReason: "error", errorMessage: "Too fast.", failure });
    expect(message.content).toEqual([{ type: "text", text: "He" }]);
  });

  it("refuses a context that is no JSON before anything is sent", async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const { model, url } = await served("Hey");
    const { message } = await ask(url, { metadata: cyclic });
    expect(message.failure).toMatchObject({ kind: "bad_request", retryable: false });
    expect(model.requests).toBe(0);
  });
});

const RIGHT = "a-token-of-the-test";

describe("who may come in", () => {
  it("the right token does, a wrong one is an error of kind auth", async () => {
    const model = scriptedModel(() => "Hey");
    const source = new ModelService({ client: model, models: () => [model.model] });
    const server = await listenHttp({
      ...{ token: RIGHT, routes: createStreamRoutes(source), serve: () => {} },
    });
    open.push({ close: () => server.close({ graceMs: 0 }) }, source);
    expect((await ask(server.url, { token: RIGHT })).message.stopReason).toBe("stop");
    const { message } = await ask(server.url, { token: `${RIGHT}x` });
    expect(message.failure).toMatchObject({ kind: "auth", retryable: false, status: 401 });
    expect(model.requests).toBe(1);
  });
});

describe("abort", () => {
  it("cancels the service's request and ends with the partial", async () => {
    const control = new AbortController();
    const { model, url } = await served([say("Hello"), stall()]);
    const stream = streamProxy(scriptedModelInfo, context, {
      ...{ url, token: "t", signal: control.signal },
    });
    for await (const event of stream) if (event.type === "text_end") control.abort();
    const message = await stream.result();
    expect(message).toMatchObject({
      stopReason: "aborted",
      content: [{ type: "text", text: "Hello" }],
      failure: { kind: "aborted", retryable: false },
    });
    await fired(model.calls[0]?.options.signal);
  });

  it("before the server has answered takes effect when it does", async () => {
    const control = new AbortController();
    const { model, url } = await served([stall()]);
    const asked = ask(url, {
      signal: control.signal,
      fetch: async (address, init) => {
        const response = await fetch(address, init);
        if (init.method === "POST") control.abort();
        return response;
      },
    });
    expect((await asked).message.stopReason).toBe("aborted");
    await fired(model.calls[0]?.options.signal);
  });

  it("before the start makes no request", async () => {
    const { model, url } = await served("Hey");
    const { message } = await ask(url, { signal: AbortSignal.abort() });
    expect(message.stopReason).toBe("aborted");
    expect(model.requests).toBe(0);
  });

  it("after the end changes nothing", async () => {
    const control = new AbortController();
    const methods: string[] = [];
    const { url } = await served("Hey");
    const { message } = await ask(url, {
      signal: control.signal,
      fetch: (address, init) => {
        methods.push(init.method);
        return fetch(address, init);
      },
    });
    control.abort();
    expect(message.stopReason).toBe("stop");
    expect(methods).toEqual(["POST"]);
  });

  it("whose DELETE is lost ends all the same", async () => {
    const control = new AbortController();
    const { url } = await served([say("Hello"), stall()]);
    const stream = streamProxy(scriptedModelInfo, context, {
      ...{ url, token: "t", signal: control.signal },
      fetch: (address, init) =>
        init.method === "DELETE" ? Promise.reject(new Error("lost")) : fetch(address, init),
    });
    for await (const event of stream) if (event.type === "text_end") control.abort();
    expect((await stream.result()).stopReason).toBe("aborted");
  });
});

function fired(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!signal) reject(new Error("There is no such stream."));
    else if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
