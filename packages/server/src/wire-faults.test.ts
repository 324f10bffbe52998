import type { AgentEvent } from "@gyre/agent";
import {
  type AssistantMessageEvent,
  type Clock,
  type Context,
  type ProtocolClient,
  systemClock,
} from "@gyre/ai";
import {
  call,
  fail,
  say,
  type ScriptAnswer,
  type ScriptedResponse,
  scriptedModel,
  stall,
  think,
} from "@gyre/ai/testing";
import { type Connect, createRemoteClient, WireClient } from "@gyre/protocol";
import { connectTcp, connectWebSocket } from "@gyre/protocol/node";
import { openHttp } from "@gyre/protocol/transports/http";
import { describe, expect, it } from "vitest";
import {
  FaultProxy,
  NO_FAULT,
  type Random,
  randomFault,
  seededRandom,
} from "../../protocol/src/testing/fault-proxy.ts";
import { RemoteAgent } from "./client/index.ts";
import { joinEvents } from "./testing/joined-events.ts";
import { createTestTool } from "./testing/remote-world.ts";
import { findLastQuestion, type ServedWorld, createServedWorld } from "./testing/served-world.ts";
import { countCases, pickSeed } from "../../../tests/support/cases.ts";

/** On each of the ways half of them. `GYRE_CUTS=10000` is the full figure. */
const CUTS = countCases(30, 500, "GYRE_CUTS");
/** `GYRE_SEED` to see one again. */
const SEED = pickSeed();
const MAX_MS = 120_000 + CUTS * 100;

const CUTS_A_ROUND = 20;
const STREAMS_A_ROUND = 3;

/** Waits of up to this are over in the next turn, and longer ones never. */
const HASTE_MS = 10;
const hasty: Clock = {
  ...systemClock,
  after: (ms, run) => (ms > HASTE_MS ? () => {} : systemClock.after(0, run)),
};

/** A response that goes over many frames, in as many turns. */
function randomAnswer(random: Random, name: string): ScriptedResponse {
  const upTo = (max: number): number => Math.floor(max * random());
  const letter = (): string => ["a", "\n", "😀", "é", "\u2028", '"'][upTo(6)] ?? "";
  const text = (): string => Array.from({ length: 1 + upTo(40) }, letter).join("");
  const parts = Array.from({ length: 1 + upTo(4) }, (_, at) => {
    if (random() < 0.3) return think(text(), { signature: text() });
    return random() < 0.3 ? call("look", { at: text() }, `${name}_${at}`) : say(text());
  });
  return {
    parts,
    usage: { input: upTo(99), output: upTo(99) },
    chunkSize: 1 + upTo(3),
    ...(random() < 0.1 && fail("Bad", { kind: "bad_request" })),
  };
}

const answers = new Map<string, ScriptAnswer>();
const STALLS = "stalls";

/** A question has its answer once, and then there is nothing more to say. */
function answer(question: string, { messages }: Context): ScriptAnswer {
  if (question === STALLS) return [say("Well"), stall()];
  const at = messages.findLastIndex(({ content }) => content === question);
  const isAnswered = messages.slice(at).some(({ role }) => role === "assistant");
  return (isAnswered ? undefined : answers.get(question)) ?? "Done";
}

const scripted = { clock: hasty, betweenMs: 1 };

function readContext(question: string): Context {
  return { messages: [{ role: "user", content: question, timestamp: 0 }] };
}

async function streamed(client: ProtocolClient, question: string): Promise<unknown> {
  const events: AssistantMessageEvent[] = [];
  const stream = await client.stream(scriptedModel([]).model, readContext(question), {});
  for await (const event of stream) events.push(event);
  return joinEvents(events);
}

/** One that would go on for ever without an abort; returns how it ended. */
async function aborted(client: ProtocolClient): Promise<unknown> {
  const control = new AbortController();
  const options = { signal: control.signal };
  const stream = await client.stream(scriptedModel([]).model, readContext(STALLS), options);
  for await (const { type } of stream) if (type === "text_delta") control.abort();
  return (await stream.result()).stopReason;
}

/** Two prompts, and one that waits behind the first; gives what was heard, and what was asked. */
async function runSession(
  peer: WireClient,
  prompts: readonly [string, string, string],
): Promise<object> {
  const [first, between, second] = prompts;
  const agent = await RemoteAgent.create(peer);
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(structuredClone(event)));
  const run = agent.prompt(first);
  await agent.followUp(between);
  await run;
  await agent.prompt(second);
  await agent.waitForIdle();
  const queued = await agent.queued("followUp");
  const messages = [...agent.state.messages, ...queued.map(({ message }) => message)];
  const asked = messages.flatMap((message) => (message.role === "user" ? [message.content] : []));
  return {
    id: agent.sessionId,
    events: joinEvents(events),
    asked: new Set(asked),
    count: asked.length,
  };
}

/** What came of something, and what should have. */
interface Outcome {
  found: unknown;
  wanted: unknown;
}

/** Clients one after the other, each with several things to do over connections that break. */
class Rounds {
  readonly #world: ServedWorld;
  readonly #proxy: FaultProxy;
  readonly #connect: Connect;
  readonly #random: Random = seededRandom(SEED);
  #rounds = 0;
  #streams = 0;

  constructor(world: ServedWorld, proxy: FaultProxy, connect: Connect) {
    this.#world = world;
    this.#proxy = proxy;
    this.#connect = connect;
  }

  async next(): Promise<Outcome> {
    const round = ++this.#rounds;
    this.#streams += STREAMS_A_ROUND + 1;
    let left = CUTS_A_ROUND;
    this.#proxy.nextFault = () => (left-- > 0 ? randomFault(this.#random) : NO_FAULT);
    const ask = (what: string): string => {
      const question = `${what}_${round}`;
      answers.set(question, randomAnswer(this.#random, question));
      return question;
    };
    const questions = Array.from({ length: STREAMS_A_ROUND }, (_, at) => ask(`m${at}`));
    const prompts = [ask("s0"), ask("s1"), ask("s2")] as const;
    const reconnect = { firstAttempts: Infinity };
    const peer = new WireClient({
      connect: this.#connect,
      random: () => 0,
      clock: hasty,
      reconnect,
    });
    const client = createRemoteClient({ peer });
    const [streams, aborts, session] = await Promise.all([
      Promise.all(questions.map((question) => streamed(client, question))),
      aborted(client),
      runSession(peer, prompts),
    ]);
    await peer.close();

    const script = (context: Context): ScriptAnswer => answer(findLastQuestion(context), context);
    const inProcess = scriptedModel(script, scripted);
    return {
      found: { streams, aborts, session },
      wanted: {
        streams: await Promise.all(questions.map((question) => streamed(inProcess, question))),
        aborts: "aborted",
        session: {
          id: `s_${round}`,
          events: joinEvents(this.#world.host.events.at(-1) ?? []),
          asked: new Set(prompts),
          count: prompts.length,
        },
      },
    };
  }

  /** What came late or again was done once. */
  total(): Outcome {
    const { errors, host, model } = this.#world;
    const stalled = model.calls.filter(({ messages }) => messages[0]?.content === STALLS);
    // The service's own request is canceled, not only what is heard of it.
    const canceled = stalled.filter(({ options }) => options.signal?.aborted).length;
    return {
      found: { requests: model.requests, canceled, sessions: host.agents.length, errors },
      wanted: {
        requests: this.#streams,
        canceled: this.#rounds,
        sessions: this.#rounds,
        errors: [],
      },
    };
  }
}

interface Way {
  /** Through the proxy. */
  connect(port: number, token: string): Connect;
  /** Where the proxy leads to. */
  findPort(world: ServedWorld): number;
}

const WAYS: Readonly<Record<string, Way>> = {
  TCP: {
    connect: (port, token) => (signal) => connectTcp({ port, token, signal }),
    findPort: ({ tcp }) => tcp.port,
  },
  WebSocket: {
    connect: (port, token) => (signal) =>
      connectWebSocket(`ws://127.0.0.1:${port}/api/ws`, { token, signal }),
    findPort: ({ http }) => http.port,
  },
  "WebSocket to a mounted handler": {
    connect: (port, token) => (signal) =>
      connectWebSocket(`ws://127.0.0.1:${port}/api/gyre/api/ws`, { token, signal }),
    findPort: ({ mounted }) => mounted.port,
  },
  "HTTP with SSE to a mounted handler": {
    connect: (port, token) => (signal) =>
      openHttp(`http://127.0.0.1:${port}/api/gyre`, { token, signal }),
    findPort: ({ mounted }) => mounted.port,
  },
};

describe("resume: nothing is lost or doubled, however often the connection breaks", () => {
  it.each(Object.entries(WAYS))("%s", { tags: "long", timeout: MAX_MS }, async (kind, way) => {
    const proxy = await FaultProxy.open();
    const world = await createServedWorld({
      answer,
      scripted,
      host: { tools: [createTestTool("look")], clock: hasty, agent: { retry: { maxRetries: 0 } } },
      hosts: [`127.0.0.1:${proxy.port}`],
    });
    proxy.to(way.findPort(world));
    const rounds = new Rounds(world, proxy, way.connect(proxy.port, world.token));
    const began = performance.now();
    while (proxy.count.cuts < CUTS / 2) {
      const { found, wanted } = await rounds.next();
      expect(found, `GYRE_SEED=${SEED}, after ${proxy.count.cuts} cuts`).toEqual(wanted);
    }
    const { found, wanted } = rounds.total();
    expect(found, `GYRE_SEED=${SEED}`).toEqual(wanted);
    await proxy.close();
    await world.close();
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${kind}, GYRE_SEED=${SEED}: ${JSON.stringify(proxy.count)} in ${seconds} s`);
  });
});
