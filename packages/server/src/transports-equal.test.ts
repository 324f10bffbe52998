import { PassThrough } from "node:stream";
import type { AgentEvent, AgentListener, AgentOptions } from "@gyre/agent";
import { type Clock, type Context, type ProtocolClient, systemClock } from "@gyre/ai";
import {
  call,
  cutOff,
  fail,
  say,
  type ScriptAnswer,
  type ScriptedResponse,
  type ScriptPart,
  serviceTool,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";
import { type Connect, createRemoteClient, createTransportPair, WireClient } from "@gyre/protocol";
import { openHttp } from "@gyre/protocol/transports/http";
import { connectTcp, connectWebSocket } from "@gyre/protocol/node";
import { createProxyClient } from "@gyre/protocol/proxy";
import { openStdio } from "@gyre/protocol/stdio";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RemoteAgent, type RemotePageOptions } from "./client/index.ts";
import { joinEvents } from "./testing/joined-events.ts";
import { createTestTool } from "./testing/remote-world.ts";
import { ScriptedHost, type ScriptedHostOptions } from "./testing/scripted-host.ts";
import { findLastQuestion, type ServedWorld, createServedWorld } from "./testing/served-world.ts";
import { countCases } from "../../../tests/support/cases.ts";

const RUNS = countCases(10, 40);

/** The time is always the same. Waits of up to a second are over at once, others never. */
const clock: Clock = {
  now: () => 7,
  turn: () => systemClock.turn(),
  after: (ms, run) => (ms > 1000 ? () => {} : systemClock.after(0, run)),
};
/** Where a response says this and stops, it is aborted. */
const ABORT_HERE = "\ue000";

const agent: AgentOptions = {
  random: () => 0.5,
  retry: { maxRetries: 1, baseDelayMs: 10 },
  limits: { maxTurns: 5 },
};
const tools = [
  createTestTool("fast"),
  createTestTool("throws", () => {
    throw new Error("boom");
  }),
];

/** The responses of each run, by the question that it begins with. */
const scripts = new Map<string, readonly ScriptedResponse[]>();

/** How many responses followed the question says which one is next. */
function answer(question: string, { messages }: Context): ScriptAnswer {
  const at = messages.findLastIndex(({ content }) => content === question);
  const before = messages.slice(at).filter(({ role }) => role === "assistant").length;
  return scripts.get(question)?.[before] ?? "Done";
}

const hosting: ScriptedHostOptions = {
  script: (context) => answer(findLastQuestion(context), context),
  tools,
  clock,
  agent,
};

let world: ServedWorld;

beforeAll(async () => {
  world = await createServedWorld({ answer, scripted: { clock }, host: hosting, clock });
});

afterAll(() => world.close());

const WAYS: Record<string, Connect> = {
  "in process": async () => {
    const [near, far] = createTransportPair();
    world.server.serve(far);
    return near;
  },
  stdio: async () => {
    const [there, back] = [new PassThrough(), new PassThrough()];
    world.server.serve(openStdio({ input: there, output: back }));
    return openStdio({ input: back, output: there });
  },
  TCP: (signal) => connectTcp({ port: world.tcp.port, token: world.token, signal }),
  WebSocket: (signal) =>
    connectWebSocket(`ws://127.0.0.1:${world.http.port}/api/ws`, { token: world.token, signal }),
  "HTTP with SSE": (signal) => openHttp(world.http.url, { token: world.token, signal }),
  "WebSocket to a mounted handler": (signal) =>
    connectWebSocket(`${world.mounted.url.replace("http:", "ws:")}/api/ws`, {
      token: world.token,
      signal,
    }),
  "HTTP with SSE to a mounted handler": (signal) =>
    openHttp(world.mounted.url, { token: world.token, signal }),
  "a handler that is called with requests": (signal) =>
    openHttp("https://shop.example/api/gyre", {
      token: world.token,
      fetch: (url, init) => world.mounted.handler(new Request(url, init)),
      signal,
    }),
};

const aText = fc.oneof(
  fc.string({ maxLength: 12, unit: "grapheme" }),
  // LF, CR and U+2028 end no frame; half of a pair is no character.
  fc.constantFrom("a\r\n\u2028\u0000b", "\ud83d", "😀".repeat(9), "data: x\n\n", '"}\n{"v":1}'),
);

const SIGNED = { signature: "c2lnbmVk" };

const aPart: fc.Arbitrary<ScriptPart> = fc.oneof(
  fc.tuple(aText, fc.boolean()).map(([text, isSigned]) => say(text, isSigned ? SIGNED : {})),
  fc
    .tuple(aText, fc.boolean(), fc.boolean())
    .map(([text, isSigned, redacted]) =>
      think(text, { ...(isSigned && SIGNED), ...(redacted && { redacted }) }),
    ),
  fc
    .tuple(fc.constantFrom("fast", "throws", "nosuch"), fc.jsonValue({ maxDepth: 2 }))
    .map(([name, value]) => call(name, { value })),
  fc.constantFrom('{"a', "", "null", '{"__proto__":{"x":1}}').map((json) => call("fast", json)),
  fc.constant(serviceTool("search", { output: ["x"], raw: { a: 1 } })),
);

const someUsage = fc.record({ input: fc.nat(), output: fc.nat() });

const anEnd: fc.Arbitrary<ScriptedResponse> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ usage: someUsage }) },
  { weight: 1, arbitrary: fc.record({ usage: someUsage, responseId: aText, servedModel: aText }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<ScriptedResponse>(
      fail("Busy", { kind: "overloaded", retryAfterMs: 5 }),
      fail("Bad", { kind: "bad_request" }),
      { stopReason: "length" },
      { refuse: "No." },
      { breaks: new Error("broken") },
      cutOff(),
      stall(),
    ),
  },
);

const aResponse: fc.Arbitrary<ScriptedResponse> = fc
  .record({
    parts: fc.array(aPart, { maxLength: 5 }),
    isOpen: fc.boolean(),
    chunkSize: fc.constantFrom(1, 3, 100),
    end: anEnd,
  })
  .map(({ parts, isOpen, chunkSize, end }) => {
    const last = parts.at(-1);
    const streamed = isOpen && last ? [...parts.slice(0, -1), unfinished(last)] : parts;
    const paused = end.stall ? [...streamed, unfinished(say(ABORT_HERE))] : streamed;
    return { parts: paused, chunkSize, ...end };
  });

/** Ids are given, as a model makes them up by what it was asked before. */
const aScript = fc.array(aResponse, { maxLength: 3 }).map((responses) =>
  responses.map((response, turn) => ({
    ...response,
    parts: (response.parts ?? []).map((part, at) =>
      typeof part === "string" || !("name" in part) ? part : { ...part, id: `c_${turn}_${at}` },
    ),
  })),
);

/** Aborts where the script says so. */
function aborting(abort: () => unknown): AgentListener {
  return (event) => {
    if (event.type !== "message_update") return;
    const { assistantMessageEvent: news } = event;
    if (news.type === "text_delta" && news.delta.includes(ABORT_HERE)) void abort();
  };
}

const QUESTION = "Go";

/** A run in this process, with a model in this process or elsewhere. */
async function run(script: readonly ScriptedResponse[], protocol?: ProtocolClient) {
  scripts.set(QUESTION, script);
  const host = new ScriptedHost({ ...hosting, agent: { ...agent, ...(protocol && { protocol }) } });
  const { agent: runner } = await host.create();
  runner.subscribe(aborting(() => runner.abort()));
  await runner.prompt(QUESTION);
  return joinEvents(host.events[0] ?? []);
}

/** A run in a session of the server. */
async function runThere(script: readonly ScriptedResponse[], connect: Connect) {
  scripts.set(QUESTION, script);
  const runner = await RemoteAgent.create({ connect, clock });
  const events: AgentEvent[] = [];
  runner.subscribe((event) => void events.push(structuredClone(event)));
  runner.subscribe(aborting(() => runner.abort()));
  await runner.prompt(QUESTION);
  await runner.close();
  return joinEvents(events);
}

async function check(there: (script: readonly ScriptedResponse[]) => Promise<unknown>) {
  await fc.assert(
    fc.asyncProperty(aScript, async (script) => {
      expect(await there(script)).toEqual(await run(script));
    }),
    { numRuns: RUNS },
  );
  expect(world.errors).toEqual([]);
}

describe("models: a run with a model behind the wire has the events of one in process", () => {
  it.each(Object.entries(WAYS))("over %s", { tags: "long" }, async (_, connect) => {
    const client = createRemoteClient({ connect, clock });
    await check((script) => run(script, client));
    await client.close();
  });

  it("over streamProxy", { tags: "long" }, async () => {
    const { url } = world.http;
    const client = createProxyClient({ url, token: world.token });
    await check((script) => run(script, client));
  });
});

describe("sessions: a RemoteAgent has the events of an agent in process", () => {
  it.each(Object.entries(WAYS))("over %s", { tags: "long" }, async (_, connect) => {
    await check((script) => runThere(script, connect));
  });
});

describe("lists of sessions: renamed, put away, forked and searched, with the answers that there are in process", () => {
  it.each(Object.entries(WAYS))("over %s", async (_, connect) => {
    const { stored } = world.host;
    stored.clear();
    stored.set("kept", { id: "kept", title: "An old one" });
    const client = new WireClient({ connect, clock });
    await RemoteAgent.rename(client, "kept", " Green \u2028 tea 😀 ");
    await RemoteAgent.archive(client, "kept");
    expect(await RemoteAgent.fork(client, "kept", { at: 2 })).toBe("f_1");
    const find = async (page: Omit<RemotePageOptions, "limit">): Promise<unknown> =>
      (await RemoteAgent.listPage(client, { limit: 1, ...page })).sessions;
    const kept = { ...stored.get("kept"), isOpen: false, isRunning: false, state: "idle" };
    expect(kept).toMatchObject({ title: "Green \u2028 tea 😀", archived: true });
    expect(await find({ query: "TEA 😀", archived: true, order: "updated" })).toEqual([kept]);
    expect(await find({ query: "coffee" })).toEqual([]);
    expect(stored.get("f_1")).toEqual({ id: "f_1", from: "kept", at: 2 });
    await expect(RemoteAgent.rename(client, "kept", "")).rejects.toMatchObject({
      code: "invalid_request",
    });
    await client.close();
  });
});
