import type { AgentEvent } from "@gyre/agent";
import {
  type AssistantMessageEvent,
  call,
  type Clock,
  type Context,
  fail,
  type ProtocolClient,
  say,
  type ScriptAnswer,
  type ScriptedResponse,
  scriptedModel,
  stall,
  systemClock,
  think,
} from "@gyre/ai";
import { type Connect, createRemoteClient, WireClient } from "@gyre/protocol";
import { connectTcp, connectWebSocket } from "@gyre/protocol/node";
import { describe, expect, it } from "vitest";
import {
  FaultProxy,
  NO_FAULT,
  type Random,
  randomFault,
  seededRandom,
} from "../../protocol/src/testing/fault-proxy.ts";
import { RemoteAgent } from "./client/index.ts";
import { joinedEvents } from "./testing/joined-events.ts";
import { testTool } from "./testing/remote-world.ts";
import { lastQuestion, type ServedWorld, servedWorld } from "./testing/served-world.ts";

/** On each transport half of them. `GYRE_CUTS=10000` is the full figure. */
const CUTS = Number(process.env["GYRE_CUTS"] ?? 500);
/** `GYRE_SEED` to see one again. */
const SEED = Number(process.env["GYRE_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const MAX_MS = 60_000 + CUTS * 100;

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

function contextOf(question: string): Context {
  return { messages: [{ role: "user", content: question, timestamp: 0 }] };
}

async function streamed(client: ProtocolClient, question: string): Promise<unknown> {
  const events: AssistantMessageEvent[] = [];
  const stream = await client.stream(scriptedModel([]).model, contextOf(question), {});
  for await (const event of stream) events.push(event);
  return joinedEvents(events);
}

/** One that would go on for ever, if nobody aborted it; gives how it ended. */
async function aborted(client: ProtocolClient): Promise<unknown> {
  const control = new AbortController();
  const options = { signal: control.signal };
  const stream = await client.stream(scriptedModel([]).model, contextOf(STALLS), options);
  for await (const { type } of stream) if (type === "text_delta") control.abort();
  return (await stream.result()).stopReason;
}

/** Two prompts, and one that waits behind the first; gives what was heard. */
async function talk(peer: WireClient, prompts: readonly [string, string, string]) {
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
  const { messages } = agent.state;
  return { id: agent.sessionId, events, asked: [...messages, ...queued.map((one) => one.message)] };
}

class Faults {
  readonly world: ServedWorld;
  readonly proxy: FaultProxy;
  readonly random: Random = seededRandom(SEED);
  #rounds = 0;
  #streams = 0;

  constructor(world: ServedWorld, proxy: FaultProxy) {
    this.world = world;
    this.proxy = proxy;
  }

  async round(connect: Connect): Promise<void> {
    const { proxy, random, world } = this;
    const round = ++this.#rounds;
    let left = CUTS_A_ROUND;
    proxy.nextFault = () => (left-- > 0 ? randomFault(random) : NO_FAULT);
    const name = (what: string): string => {
      const made = `${what}_${round}`;
      answers.set(made, randomAnswer(random, made));
      return made;
    };
    const questions = Array.from({ length: STREAMS_A_ROUND }, (_, at) => name(`m${at}`));
    const prompts = [name("s0"), name("s1"), name("s2")] as const;
    const peer = new WireClient({ connect, random: () => 0, clock: hasty });
    const client = createRemoteClient({ peer });
    const [heard, stopReason, talked] = await Promise.all([
      Promise.all(questions.map((question) => streamed(client, question))),
      aborted(client),
      talk(peer, prompts),
    ]);
    await peer.close();
    this.#streams += STREAMS_A_ROUND + 1;

    const inProcess = scriptedModel((context) => answer(lastQuestion(context), context), scripted);
    expect(heard).toEqual(await Promise.all(questions.map((each) => streamed(inProcess, each))));
    expect(stopReason).toBe("aborted");
    expect(world.host.events.length).toBe(round);
    expect(joinedEvents(talked.events)).toEqual(joinedEvents(world.host.events.at(-1) ?? []));
    const asked = talked.asked.flatMap(({ role, content }) => (role === "user" ? [content] : []));
    expect(asked.toSorted()).toEqual([...prompts].toSorted());
  }

  /** What came late or twice was not done twice. */
  async checkAll(): Promise<void> {
    const { calls, requests } = this.world.model;
    expect(requests).toBe(this.#streams);
    const stalled = calls.filter(({ messages }) => messages[0]?.content === STALLS);
    // The service's own request is cancelled, not only what is heard of it.
    expect(stalled.every(({ options }) => options.signal?.aborted)).toBe(true);
    expect(this.world.host.agents.length).toBe(this.#rounds);
    expect(this.world.errors).toEqual([]);
  }
}

describe("resume: nothing is lost or doubled, however often the connection breaks", () => {
  it.each(["TCP", "WebSocket"])("%s", { timeout: MAX_MS }, async (kind) => {
    const proxy = await FaultProxy.open();
    const world = await servedWorld({
      answer,
      scripted,
      host: { tools: [testTool("look")], clock: hasty, agent: { retry: { maxRetries: 0 } } },
      hosts: [`127.0.0.1:${proxy.port}`],
    });
    const { port } = proxy;
    const { token } = world;
    const connect: Connect =
      kind === "TCP"
        ? (signal) => connectTcp({ port, token, signal })
        : (signal) => connectWebSocket(`ws://127.0.0.1:${port}/api/ws`, { token, signal });
    proxy.to(kind === "TCP" ? world.tcp.port : world.http.port);
    const faults = new Faults(world, proxy);
    const began = performance.now();
    try {
      while (proxy.count.cuts < CUTS / 2) await faults.round(connect);
      await faults.checkAll();
    } catch (cause) {
      throw new Error(`With GYRE_SEED=${SEED}, after ${proxy.count.cuts} cuts.`, { cause });
    } finally {
      await proxy.close();
      await world.close();
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${kind}, seed ${SEED}: ${JSON.stringify(proxy.count)} in ${seconds} s`);
  });
});
