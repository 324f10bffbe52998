import type { AgentEvent, AgentMessage, AgentOptions, AgentTool } from "@gyre/agent";
import { isRecord, textOf } from "@gyre/ai";
import { call, callAll, type ScriptStep } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { RemoteAgent } from "../client/remote-agent.ts";
import {
  createDurableWorld,
  officeAgent,
  followScript,
  textTool,
} from "../testing/durable-world.ts";
import { createRemoteWorld, createTestTool } from "../testing/remote-world.ts";

// The same client against a server of its own and against servers that share a store: what a
// client gets is the same.

/** What a scenario works with. */
interface Scene {
  /** At one server. */
  readonly agent: RemoteAgent;
  /** At another server, where there is one. */
  readonly other: RemoteAgent;
  /** Settles when the tool "wait" has begun. */
  readonly begun: Promise<void>;
  /** Lets it end. */
  readonly goOn: () => void;
}

interface Scenario {
  readonly answers: readonly ScriptStep[];
  readonly context?: AgentOptions["context"];
  /** Its result is compared, too. */
  readonly play: (scene: Scene) => Promise<unknown>;
}

interface Outcome {
  readonly result: unknown;
  readonly events: unknown;
  readonly state: unknown;
}

interface Gates {
  readonly tools: readonly AgentTool[];
  readonly begun: Promise<void>;
  readonly goOn: () => void;
}

function createGates(): Gates {
  let [begin, goOn] = [(): void => {}, (): void => {}];
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const waited = new Promise<void>((resolve) => (goOn = resolve));
  const wait = textTool("wait", async () => {
    begin();
    await waited;
    return "waited";
  });
  const pay = textTool("pay", () => "paid", { needsApproval: true });
  const fail = textTool("fail", () => {
    throw new Error("It failed.");
  });
  const long = textTool("long", (text) => `${text} ${"word ".repeat(100)}`);
  return { tools: [wait, pay, fail, long], begun, goOn: () => goOn() };
}

async function playOrdinary({ answers, context, play }: Scenario): Promise<Outcome> {
  const { tools, ...gates } = createGates();
  const world = createRemoteWorld({
    script: Array.from({ length: 100 }, () => followScript(answers)),
    tools,
    agent: { instructions: "Be brief.", ...(context && { context }) },
  });
  const clients = [world.client().client, world.client().client] as const;
  const agent = await RemoteAgent.create(clients[0]);
  const other = await RemoteAgent.attach(clients[1], agent.sessionId);
  const outcome = await observe({ agent, other, ...gates }, play);
  await Promise.all(clients.map((client) => client.close()));
  await world.server.close();
  return outcome;
}

async function playShared({ answers, context, play }: Scenario): Promise<Outcome> {
  const { tools, ...gates } = createGates();
  const world = createDurableWorld();
  const office = officeAgent(answers, tools, context && { context });
  const [one, two] = [await world.open([]), await world.open([office])];
  const agent = await RemoteAgent.create(world.client(one));
  const other = await RemoteAgent.attach(world.client(two), agent.sessionId);
  const outcome = await observe({ agent, other, ...gates }, play);
  await world.close();
  return outcome;
}

async function observe(scene: Scene, play: Scenario["play"]): Promise<Outcome> {
  const { agent, other } = scene;
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(event));
  const result = await play(scene);
  for (const client of [agent, other]) {
    // Its server has all that there is by then.
    await client.queued("steering");
    await client.waitForIdle();
  }
  const queued = [await other.queued("steering"), await other.queued("followUp")];
  const names = new Map<string, string>();
  return {
    result: simplify(result, names),
    // How many deltas there are depends on how fast they are sent.
    events: simplify(
      events.filter(({ type }) => type !== "message_update").map(withoutPartial),
      names,
    ),
    state: simplify([describeState(agent), describeState(other), queued], names),
  };
}

/** A message that begins may have some of its content already. */
function withoutPartial(event: AgentEvent): unknown {
  if (event.type !== "message_start") return event;
  return { type: event.type, role: event.message.role };
}

function describeState({ state, isRunning }: RemoteAgent): unknown {
  const { messages, pending, error, thinkingLevel, systemPrompt, tools } = state;
  return { isRunning, messages, pending, error, thinkingLevel, systemPrompt, tools };
}

const VOLATILE = new Set(["timestamp", "durationMs", "usage", "responseId"]);
const IDS = new Set(["id", "toolCallId", "queued"]);

/** Without times, and with ids by the order in which they come. */
function simplify(value: unknown, names: Map<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => simplify(each, names));
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).flatMap(([key, each]): [string, unknown][] => {
    if (VOLATILE.has(key) || each === undefined) return [];
    if (!IDS.has(key) || typeof each !== "string") return [[key, simplify(each, names)]];
    const name = names.get(each) ?? `id ${names.size + 1}`;
    names.set(each, name);
    return [[key, name]];
  });
  return Object.fromEntries(fields);
}

/** The text of what waits, and whether ids are those that were given. */
async function listQueue(
  agent: RemoteAgent,
  queue: "steering" | "followUp",
  given: readonly string[],
): Promise<unknown> {
  const queued = await agent.queued(queue);
  return queued.map(({ id, message }) => [
    given.indexOf(id),
    "content" in message && message.content,
  ]);
}

/** Calls a tool until its last result has a number. */
function countTo(last: number): ScriptStep {
  return ({ messages }) => {
    const result = messages.findLast(({ role }) => role === "toolResult");
    const done = result?.role === "toolResult" ? Number.parseInt(textOf(result), 10) : 0;
    return done < last ? [call("long", { text: String(done + 1) })] : "Done.";
  };
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a prompt, and another one": {
    answers: ["First.", "Second."],
    async play({ agent }) {
      return [(await agent.prompt("Go.")).stop, (await agent.prompt("Again.")).text];
    },
  },
  "messages that are queued while no run goes on are delivered with the next prompt": {
    answers: ["First.", "Second.", "Third."],
    async play({ agent, other }) {
      const ids = [await agent.steer("Left."), await other.followUp("Right.")];
      const before = [
        await listQueue(other, "steering", ids),
        await listQueue(agent, "followUp", ids),
      ];
      const { stop } = await agent.prompt("Go.");
      return [before, stop, await agent.hasQueuedMessages()];
    },
  },
  "a queue is edited while no run goes on": {
    answers: ["First."],
    async play({ agent, other }) {
      await agent.prompt("Go.");
      const ids = [
        await agent.steer("One."),
        await agent.steer("Two."),
        await other.steer("Three."),
        await agent.followUp("Later."),
      ];
      const [one = "", two = "", three = "", later = ""] = ids;
      return [
        await agent.editQueued("steering", two, "Deux."),
        await other.moveQueued("steering", three, 0),
        await agent.takeQueued("steering", one),
        await agent.takeQueued("steering", one),
        await agent.editQueued("steering", one, "Un."),
        await agent.editQueued("followUp", three, "No."),
        await listQueue(other, "steering", ids),
        await other.clearFollowUpQueue(),
        await agent.takeQueued("followUp", later),
      ];
    },
  },
  "a queue is edited while a run goes on": {
    answers: [callAll([["wait", {}]]), "Second.", "Third.", "Fourth.", "Fifth."],
    async play({ agent, other, begun, goOn }) {
      const end = agent.prompt("Go.");
      await begun;
      const ids = [
        await agent.steer("One."),
        await other.steer("Two."),
        await agent.followUp("Three."),
        await other.followUp("Four."),
        await agent.followUp("Five."),
      ];
      const [one = "", two = "", three = "", four = "", five = ""] = ids;
      const edits = [
        await other.editQueued("steering", two, "Deux."),
        await agent.takeQueued("steering", one),
        await other.takeQueued("steering", one),
        await other.moveQueued("followUp", five, 0),
        await agent.takeQueued("followUp", four),
        await agent.editQueued("steering", three, "No."),
        await listQueue(agent, "steering", ids),
        await listQueue(other, "followUp", ids),
      ];
      goOn();
      return [edits, (await end).stop, await other.hasQueuedMessages()];
    },
  },
  "what waits as a run is aborted waits for the next one": {
    answers: [callAll([["wait", {}]]), "Second.", "Third.", "Fourth."],
    async play({ agent, other, begun }) {
      const end = agent.prompt("Go.");
      await begun;
      const ids = [await agent.followUp("Later.")];
      await other.abort();
      const { stop } = await end;
      const left = await listQueue(other, "followUp", ids);
      return [stop, left, (await agent.prompt("Again.")).stop];
    },
  },
  "a message is steered while a call waits for a person, and is delivered after the decision": {
    answers: [callAll([["pay", {}]]), "Second.", "Third."],
    async play({ agent, other }) {
      const { stop, pending } = await agent.prompt("Pay.");
      const ids = [await other.steer("Thanks.")];
      const waiting = await listQueue(agent, "steering", ids);
      const [first] = pending;
      const end = await agent.approve({ [first?.toolCall.id ?? ""]: { type: "approve" } });
      return [stop, waiting, end.stop];
    },
  },
  "a call is approved, and another one of the next answer is denied": {
    answers: [callAll([["pay", {}]]), callAll([["pay", { text: "again" }]]), "Third."],
    async play({ agent, other }) {
      const { pending } = await agent.prompt("Pay.");
      const approved = await other.approve({
        [pending[0]?.toolCall.id ?? ""]: { type: "approve" },
      });
      const denied = await agent.approve({
        [approved.pending[0]?.toolCall.id ?? ""]: { type: "deny", reason: "no" },
      });
      return [approved.stop, denied.stop];
    },
  },
  "two calls of an answer are decided on one after the other": {
    answers: [
      callAll([
        ["pay", { text: "a" }],
        ["pay", { text: "b" }],
      ]),
      "Second.",
    ],
    async play({ agent }) {
      const { pending } = await agent.prompt("Pay.");
      const stops: string[] = [];
      for (const { toolCall } of pending) {
        stops.push((await agent.approve({ [toolCall.id]: { type: "approve" } })).stop);
      }
      return stops;
    },
  },
  "a prompt in place of a decision": {
    answers: [callAll([["pay", {}]]), "Second."],
    async play({ agent, other }) {
      const { stop } = await agent.prompt("Pay.");
      return [stop, (await other.prompt("No, wait.")).stop];
    },
  },
  "calls that fail, and one of a tool that is not there": {
    answers: [
      callAll([
        ["fail", {}],
        ["none", {}],
        ["wait", { text: 1 }],
      ]),
      "Second.",
    ],
    async play({ agent, goOn }) {
      goOn();
      return (await agent.prompt("Go.")).stop;
    },
  },
  "an abort while a tool runs": {
    answers: [
      callAll([
        ["wait", {}],
        ["pay", {}],
      ]),
      "Second.",
    ],
    async play({ agent, other, begun }) {
      const end = agent.prompt("Go.");
      await begun;
      await other.abort();
      return (await end).stop;
    },
  },
  "settings are changed while a run goes on": {
    answers: [callAll([["wait", {}]]), "Second."],
    async play({ agent, other, begun, goOn }) {
      const end = agent.prompt("Go.");
      await begun;
      await other.setThinkingLevel("high");
      await agent.setSystemPrompt("Be long.");
      goOn();
      return (await end).stop;
    },
  },
  "the transcript is replaced, and what waits stays": {
    answers: ["First.", "Second.", "Third.", "Fourth."],
    async play({ agent, other }) {
      await agent.prompt("Go.");
      const ids = [await agent.followUp("Later.")];
      await other.replaceMessages([
        { role: "user", content: "Earlier.", timestamp: 1 },
        { ...agent.state.messages.slice(-1)[0], role: "assistant" } as AgentMessage,
      ]);
      await agent.hasQueuedMessages();
      const replaced = [describeState(agent), await listQueue(agent, "followUp", ids)];
      return [replaced, (await agent.prompt("Again.")).stop];
    },
  },
  "a reset forgets messages and queues, and keeps the settings": {
    answers: ["First.", "Second."],
    async play({ agent, other }) {
      await agent.prompt("Go.");
      await agent.setThinkingLevel("high");
      await agent.steer("Left.");
      await other.reset();
      await agent.hasQueuedMessages();
      const reset = [describeState(agent), agent.state.usage, await agent.queued("steering")];
      return [reset, (await other.prompt("Again.")).stop];
    },
  },
  "no transcript is replaced while a run goes on": {
    answers: [callAll([["wait", {}]]), "Second."],
    async play({ agent, other, begun, goOn }) {
      const end = agent.prompt("Go.");
      await begun;
      const refused = await Promise.allSettled([other.reset(), other.replaceMessages([])]);
      goOn();
      const codes = refused.map((each) => each.status === "rejected" && each.reason.code);
      return [codes, (await end).stop];
    },
  },
  "a conversation that is compacted": {
    answers: Array.from({ length: 50 }, () => countTo(8)),
    context: { triggerTokens: 500, targetTokens: 250, keepTurns: 1 },
    async play({ agent }) {
      let compactions = 0;
      agent.subscribe(({ type }) => {
        if (type === "compaction") compactions++;
      });
      const { stop } = await agent.prompt("Go.");
      return [stop, compactions > 0];
    },
  },
  "client tools": {
    answers: [[call("look", { path: "a" })], "Second."],
    async play({ agent, other }) {
      await other.registerTools([createTestTool("look", () => "seen")]);
      return (await agent.prompt("Go.")).stop;
    },
  },
};

describe("a session that servers share behaves like one of a single server", () => {
  it.each(Object.entries(SCENARIOS))("%s", async (_name, scenario) => {
    const ordinary = await playOrdinary(scenario);
    const shared = await playShared(scenario);
    expect(shared).toEqual(ordinary);
  });
});
