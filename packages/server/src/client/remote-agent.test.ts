import { PassThrough } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import {
  type Agent,
  type AgentEvent,
  type AgentMessage,
  type AgentTool,
  userMessage,
} from "@gyre/agent";
import { call, say, type ScriptStep, stall, think } from "@gyre/ai/testing";
import { type Connect, createTransportPair, type WireServer } from "@gyre/protocol";
import { connectTcp } from "@gyre/protocol/node";
import { openStdio } from "@gyre/protocol/stdio";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createServedWorld } from "../testing/served-world.ts";
import { toComparable, createRemoteWorld, createTestTool } from "../testing/remote-world.ts";
import { RemoteAgent } from "./remote-agent.ts";
import type { RemoteState } from "./remote-state.ts";
import { countCases } from "../../../../tests/support/cases.ts";

const chatty: AgentTool = createTestTool("chatty", (_args, { update: onUpdate }) => {
  for (const text of ["a", "ab"]) onUpdate({ content: [{ type: "text", text }] });
  return { content: [{ type: "text", text: "abc" }], details: { n: 3 } };
});

const SCRIPT: ScriptStep[] = [
  [think("Hm", { signature: "x" }), say("I look"), call("chatty", { path: "a" }), call("look")],
  [say("Then"), call("asks")],
  [say("Done: \u2028 ä😀")],
];

const TOOLS = [chatty, createTestTool("look"), createTestTool("asks")];

/** Collects what a listener gets, as it is when it comes. */
function heardBy(agent: RemoteAgent): AgentEvent[] {
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(structuredClone(event)));
  return events;
}

/** What an agent and its mirror have to agree on. */
function readState(state: Agent["state"] | RemoteState): unknown {
  const { systemPrompt, model, thinkingLevel, messages, isStreaming, pending, error } = state;
  const { pendingToolCalls, usage, streamMessage, tools } = state;
  const plain = {
    ...{ systemPrompt, thinkingLevel, messages, isStreaming, pending, error, usage },
    model: model && { provider: model.provider, id: model.id },
    tools: tools.map(({ name, description }) => ({ name, description })),
    pendingToolCalls: [...pendingToolCalls].toSorted(),
    streamMessage,
  };
  return JSON.parse(JSON.stringify(plain)) as unknown;
}

function decide(agent: RemoteAgent): Parameters<RemoteAgent["approve"]>[0] {
  const ids = agent.state.pending.map(({ toolCall }) => toolCall.id);
  return Object.fromEntries(ids.map((id) => [id, { type: "approve" } as const]));
}

/** Settles when a listener has heard an event of this type. */
function next(agent: RemoteAgent, type: AgentEvent["type"]): Promise<void> {
  return new Promise((resolve) => {
    const stop = agent.subscribe((event) => {
      if (event.type !== type) return;
      stop();
      resolve();
    });
  });
}

function overPair(server: WireServer): Connect {
  return async () => {
    const [near, far] = createTransportPair();
    server.serve(far);
    return near;
  };
}

function overStdio(server: WireServer): Connect {
  return async () => {
    const [there, back] = [new PassThrough(), new PassThrough()];
    server.serve(openStdio({ input: there, output: back }));
    return openStdio({ input: back, output: there });
  };
}

function readContent(message: AgentMessage | undefined): unknown {
  return message && "content" in message ? message.content : undefined;
}

describe("run() of a RemoteAgent", () => {
  it("iterates over the events of its run, and its text, as that of an agent in process", async () => {
    const { host, server } = createRemoteWorld({ script: [[say("Green")], [say("Black")]] });
    const agent = await RemoteAgent.create({ connect: overPair(server) });
    const run = agent.run("Which tea?");
    const events: AgentEvent[] = [];
    for await (const event of run) events.push(structuredClone(event));
    expect(toComparable(events)).toEqual(toComparable(host.events[0] ?? []));
    expect((await run.result()).text).toBe("Green");
    let streamed = "";
    for await (const text of agent.run("And in winter?").textStream) streamed += text;
    expect(streamed).toBe("Black");
    await agent.close();
    await server.close();
  });

  it("has nothing of a run that another client started, and fails while that goes on", async () => {
    const { server } = createRemoteWorld({ script: [[say("Wait"), stall()]] });
    const agent = await RemoteAgent.create({ connect: overPair(server) });
    const other = await RemoteAgent.attach({ connect: overPair(server) }, agent.sessionId);
    const isShown = next(agent, "message_update");
    const first = agent.prompt("Go");
    await isShown;
    const events: AgentEvent[] = [];
    const read = async (): Promise<void> => {
      for await (const event of other.run("Me too")) events.push(event);
    };
    await expect(read()).rejects.toMatchObject({ code: "session_busy" });
    expect(events).toEqual([]);
    await agent.abort();
    expect((await first).stop).toBe("aborted");
    await Promise.all([agent.close(), other.close()]);
    await server.close();
  });
});

describe("a RemoteAgent gives the events of the agent in process", () => {
  it.each([
    ["in process", overPair],
    ["on stdio", overStdio],
  ])("%s", async (_, transport) => {
    const { host, server } = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
    const agent = await RemoteAgent.create({ connect: transport(server) });
    const events = heardBy(agent);
    const first = await agent.prompt("Go");
    expect(first).toMatchObject({ stop: "suspended", pending: [{ toolCall: { name: "asks" } }] });
    const second = await agent.continue({ decisions: decide(agent) });
    expect(second).toMatchObject({ stop: "done", finalMessage: { stopReason: "stop" } });
    expect(toComparable(events)).toEqual(toComparable(host.events[0] ?? []));
    expect(readState(agent.state)).toEqual(readState(host.agents[0]?.state ?? agent.state));
    await agent.close();
    expect(host.closed).toEqual([]);
    await server.close();
  });

  it("the message on its way is built here, and live", async () => {
    const { client } = createRemoteWorld({ script: [[say("Hello there")]] });
    const agent = await RemoteAgent.create(client().client);
    const texts: unknown[] = [];
    agent.subscribe(({ type }) => {
      const { streamMessage } = agent.state;
      if (type === "message_update") texts.push(structuredClone(readContent(streamMessage)));
    });
    await agent.prompt("Go");
    expect(texts.at(-1)).toEqual([{ type: "text", text: "Hello there" }]);
    expect(agent.state.streamMessage).toBeUndefined();
  });
});

describe("any number of clients may watch one session", () => {
  it("two watchers get the same events, and one that comes late the state", async () => {
    const { client, host } = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
    const one = await RemoteAgent.create(client().client);
    const two = await RemoteAgent.attach(client().client, one.sessionId);
    const heard = [heardBy(one), heardBy(two)];
    await Promise.all([one.prompt("Go"), next(two, "agent_end")]);
    expect(toComparable(heard[0] ?? [])).toEqual(toComparable(heard[1] ?? []));
    const three = await RemoteAgent.attach(client().client, one.sessionId);
    for (const each of [one, two, three]) {
      expect(readState(each.state)).toEqual(readState(host.agents[0]?.state ?? each.state));
    }
  });

  it("what one client sets, all see", async () => {
    const { client } = createRemoteWorld({ tools: TOOLS });
    const one = await RemoteAgent.create(client().client);
    const two = await RemoteAgent.attach(client().client, one.sessionId);
    await one.setSystemPrompt("Be kind");
    await one.setThinkingLevel("high");
    await one.setTools(["look"]);
    await one.setSteeringMode("all");
    await one.setFollowUpMode("all");
    // Their answers follow the events that were published before.
    await two.queued("steering");
    for (const { state } of [one, two]) {
      expect(state).toMatchObject({
        systemPrompt: "Be kind",
        thinkingLevel: "high",
        tools: [{ name: "look", description: "It is look." }],
        steeringMode: "all",
        followUpMode: "all",
      });
    }
  });

  it("a disconnect is not a cancel", async () => {
    let go: () => void = () => {};
    const waits = createTestTool(
      "waits",
      () => new Promise((resolve) => (go = () => resolve("went"))),
    );
    const { client, host } = createRemoteWorld({
      script: [[call("waits")], "Done"],
      tools: [waits],
    });
    const one = await RemoteAgent.create(client().client);
    const end = one.prompt("Go");
    await next(one, "tool_execution_start");
    await one.close();
    await expect(end).rejects.toThrow("closed");
    go();
    const two = await RemoteAgent.attach(client().client, one.sessionId);
    await two.waitForIdle();
    expect(two.state.messages).toHaveLength(4);
    expect(host.closed).toEqual([]);
  });
});

describe("the methods of an agent", () => {
  it("session_create, session_list, session_attach and session_close", async () => {
    const { client, host } = createRemoteWorld();
    const { client: peer } = client();
    const one = await RemoteAgent.create(peer);
    expect(await RemoteAgent.list(client().client)).toMatchObject([
      { id: "kept", isOpen: false },
      { id: one.sessionId, isOpen: true },
    ]);
    const { sessions, next: cursor = "" } = await RemoteAgent.listPage(peer, { limit: 1 });
    expect(sessions).toMatchObject([{ id: "kept" }]);
    const last = await RemoteAgent.listPage(client().client, { limit: 1, cursor });
    const own = { id: one.sessionId, isOpen: true, isRunning: false, state: "idle" };
    expect(last).toEqual({ sessions: [own] });
    const live = await RemoteAgent.listPage(peer, { limit: 9, order: "live", allFolders: true });
    expect(live.sessions).toMatchObject([own, { id: "kept" }]);
    await RemoteAgent.rename(peer, "kept", "Tea");
    await RemoteAgent.archive(client().client, "kept");
    const forked = await RemoteAgent.fork(peer, "kept");
    const away = await RemoteAgent.listPage(peer, { limit: 9, query: "tea", archived: true });
    expect(away.sessions).toMatchObject([{ id: "kept", title: "Tea", archived: true }]);
    const copy = await RemoteAgent.attach(peer, forked);
    await copy.closeSession();
    host.closed.pop();
    const errors: Error[] = [];
    const onClosed = (error: Error): void => void errors.push(error);
    const two = await RemoteAgent.attach(client().client, one.sessionId, { onClosed });
    await one.closeSession();
    await expect(two.prompt("Go")).rejects.toMatchObject({ code: "session_not_found" });
    expect(errors).toMatchObject([{ code: "session_not_found" }]);
    expect(host.closed).toEqual([one.sessionId]);
    await expect(RemoteAgent.attach(peer, "nosuch")).rejects.toMatchObject({
      code: "session_not_found",
    });
  });

  it("a snapshot that fits no frame ends it, and is not asked for again and again", async () => {
    const world = await createServedWorld({ answer: () => "Yes.", limits: { frameBytes: 1000 } });
    const { port } = world.tcp;
    const connect: Connect = (signal) => connectTcp({ port, token: world.token, signal });
    const agent = await RemoteAgent.create({ connect });
    await agent.setSystemPrompt("Tea. ".repeat(110));
    const attached = RemoteAgent.attach({ connect }, agent.sessionId);
    await expect(attached).rejects.toMatchObject({ code: "too_large" });
    await agent.close();
    await world.close();
  });

  it("a second prompt is refused with session_busy, or waits in a queue", async () => {
    const { client } = createRemoteWorld({ script: [[say("Well"), stall()], "Done"] });
    const agent = await RemoteAgent.create(client().client);
    const end = agent.prompt("Go");
    await next(agent, "message_update");
    await expect(agent.prompt("More")).rejects.toMatchObject({ code: "session_busy" });
    expect(await agent.prompt("More", { whileRunning: "followUp" })).toBeUndefined();
    expect(await agent.queued("followUp")).toMatchObject([{ message: { content: "More" } }]);
    await agent.abort();
    expect(await end).toMatchObject({ stop: "aborted" });
  });

  it("steer, follow_up and queue_edit", async () => {
    const { client } = createRemoteWorld();
    const agent = await RemoteAgent.create(client().client);
    const ids = [await agent.followUp("one"), await agent.followUp("two"), await agent.steer("x")];
    const [first = "", second = ""] = ids;
    const texts = async (): Promise<unknown[]> =>
      (await agent.queued("followUp")).map(({ message }) => message).map(readContent);
    expect(await agent.moveQueued("followUp", second, 0)).toBe(true);
    expect(await agent.editQueued("followUp", first, "uno")).toBe(true);
    expect(await texts()).toEqual(["two", "uno"]);
    expect(await agent.takeQueued("followUp", second)).toMatchObject({ content: "two" });
    expect(await agent.takeQueued("followUp", second)).toBeUndefined();
    expect(await agent.editQueued("followUp", second, "x")).toBe(false);
    await agent.clearSteeringQueue();
    expect(await agent.hasQueuedMessages()).toBe(true);
    await agent.clearAllQueues();
    expect(await agent.hasQueuedMessages()).toBe(false);
  });

  it("a steering message is read by the run", async () => {
    const steers: { now: () => Promise<unknown> } = { now: () => Promise.resolve() };
    const { client, host } = createRemoteWorld({
      script: [[call("look")], "Done"],
      tools: [createTestTool("look", () => steers.now().then(() => "seen"))],
    });
    const agent = await RemoteAgent.create(client().client);
    steers.now = () => agent.steer("Wait");
    await agent.prompt("Go");
    expect(host.agents[0]?.state.messages).toMatchObject([
      { content: "Go" },
      { role: "assistant" },
      { role: "toolResult" },
      { content: "Wait" },
      { role: "assistant" },
    ]);
  });

  it("messages_replace and reset rebuild the mirrors of all", async () => {
    const { client, host } = createRemoteWorld({ script: ["Hello"] });
    const one = await RemoteAgent.create(client().client);
    const drawn: number[] = [];
    const onSnapshot = ({ messages }: RemoteState): void => void drawn.push(messages.length);
    const two = await RemoteAgent.attach(client().client, one.sessionId, { onSnapshot });
    await one.replaceMessages([userMessage("Earlier", 1)]);
    expect(await one.continue()).toMatchObject({ stop: "done" });
    await two.queued("steering");
    expect(readState(two.state)).toEqual(readState(host.agents[0]?.state ?? two.state));
    await one.reset();
    await two.queued("steering");
    expect([one.state.messages, two.state.messages]).toEqual([[], []]);
    expect(drawn).toEqual([1, 0]);
  });

  it("a listener that throws, now or later, is reported and harms no other", async () => {
    const { client } = createRemoteWorld({ script: ["Hello"] });
    const errors: unknown[] = [];
    const onError = (...error: unknown[]): void => void errors.push(error);
    const agent = await RemoteAgent.create(client().client, {}, { onError });
    agent.subscribe(({ type }) => {
      if (type === "agent_start") throw new Error("boom");
    });
    agent.subscribe(({ type }) =>
      type === "turn_end" ? Promise.reject(new Error("late")) : undefined,
    );
    const events = heardBy(agent);
    expect(await agent.prompt("Go")).toMatchObject({ stop: "done" });
    expect(events.at(-1)?.type).toBe("agent_end");
    expect(errors).toMatchObject([
      [{ message: "boom" }, 'listener of "agent_start"'],
      [{ message: "late" }, 'listener of "turn_end"'],
    ]);
  });

  it("approve with args: the call runs with them, validated, and the result says so", async () => {
    const ran: unknown[] = [];
    const asks = createTestTool("asks", (args) => `Ran ${ran.push(args)}.`);
    asks.parameters = {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
    };
    const script = [
      [call("asks", { path: "all" }, "c1"), call("asks", { path: "all" }, "c2")],
      "Done",
    ];
    const { client, host } = createRemoteWorld({ script, tools: [asks] });
    const agent = await RemoteAgent.create(client().client);
    await agent.prompt("Go");
    const end = await agent.continue({
      decisions: {
        c1: { type: "approve", args: { path: "one" } },
        c2: { type: "approve", args: { path: ["two"] } },
      },
    });
    expect(ran).toEqual([{ path: "one" }]);
    expect(end.messages.filter(({ role }) => role === "toolResult")).toMatchObject([
      { content: [{ text: expect.stringContaining('{"path":"one"}') }, { text: "Ran 1." }] },
      { isError: true, content: [{}, { text: expect.stringContaining("/path: expected string") }] },
    ]);
    const [, answer] = agent.state.messages;
    expect(answer).toMatchObject({ content: [{ arguments: { path: "all" } }, {}] });
    expect(readState(agent.state)).toEqual(readState(host.agents[0]?.state ?? agent.state));
  });

  it.each([
    [{ type: "approved" }, 'The decision on "c1" is one of approve, deny, result and wait.'],
    [true, 'The decision on "c1" is one of approve, deny, result and wait.'],
    [
      { type: "approve", arguments: { path: "one" } },
      'There is no "arguments" of an approval: write args.',
    ],
  ])("%j is no decision, and the call waits as before", async (decision, message) => {
    const ran: unknown[] = [];
    const asks = createTestTool("asks", (args) => `Ran ${ran.push(args)}.`);
    const script = [[call("asks", { path: "all" }, "c1")], "Done"];
    const { client } = createRemoteWorld({ script, tools: [asks] });
    const agent = await RemoteAgent.create(client().client);
    await agent.prompt("Go");
    const decisions = { c1: decision as never };
    await expect(agent.continue({ decisions })).rejects.toThrow(message);
    expect([ran, agent.state.pending.length]).toEqual([[], 1]);
    expect(await agent.approve(decide(agent))).toMatchObject({ stop: "done" });
    expect(ran).toEqual([{ path: "all" }]);
  });

  it("a prompt that a host does without a run settles", async () => {
    const { client } = createRemoteWorld({ session: { prompt: () => Promise.resolve() } });
    const agent = await RemoteAgent.create(client().client);
    expect(await agent.prompt("/help")).toMatchObject({ turns: 0, messages: [] });
  });
});

describe("resume: nothing is lost or doubled, however often the connection breaks", () => {
  it("at any frame, and of any run of cuts", { tags: "long" }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 45 }), { maxLength: 12 }), async (cuts) => {
        const { client, host, errors } = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
        const { client: peer } = client(cuts);
        const agent = await RemoteAgent.create(peer);
        const events = heardBy(agent);
        expect(await agent.prompt("Go")).toMatchObject({ stop: "suspended" });
        await agent.steer("And");
        expect(await agent.approve(decide(agent))).toMatchObject({ stop: "done" });
        expect(toComparable(events)).toEqual(toComparable(host.events[0] ?? []));
        expect(host.agents).toHaveLength(1);
        expect(readState(agent.state)).toEqual(readState(host.agents[0]?.state ?? agent.state));
        expect(errors).toEqual([]);
        await agent.close();
      }),
      { numRuns: countCases(30, 150) },
    );
  });

  it("at each frame of a run", async () => {
    for (let cut = 0; cut < 60; cut++) {
      const { client, host } = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
      const { connections, client: peer } = client([cut]);
      const agent = await RemoteAgent.create(peer);
      const events = heardBy(agent);
      await agent.prompt("Go");
      expect(toComparable(events)).toEqual(toComparable(host.events[0] ?? []));
      if (cut < 20) expect(connections()).toBe(2);
    }
  });

  it(
    "with a tail that is gone, a snapshot rebuilds the state, and no event comes twice",
    { tags: "long" },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.integer({ min: 6, max: 45 }), { minLength: 1, maxLength: 8 }),
          fc.integer({ min: 1, max: 8 }),
          async (cuts, tailEvents) => {
            const limits = { tailEvents };
            const { client, host } = createRemoteWorld(
              { script: SCRIPT, tools: TOOLS },
              { limits },
            );
            const agent = await RemoteAgent.create(client(cuts).client);
            const events = heardBy(agent);
            const end = await agent.prompt("Go");
            expect(end).toMatchObject({ stop: "suspended" });
            expect(end.messages).toHaveLength(5);
            const original = host.agents[0]?.state ?? agent.state;
            expect(readState(agent.state)).toEqual(readState(original));
            let rest = toComparable(host.events[0] ?? []);
            for (const event of toComparable(events)) {
              const at = rest.findIndex((each) => isDeepStrictEqual(each, event));
              expect(at).toBeGreaterThanOrEqual(0);
              rest = rest.slice(at + 1);
            }
            expect(events.filter(({ type }) => type === "agent_end")).toHaveLength(1);
            await agent.close();
          },
        ),
        { numRuns: countCases(20, 100) },
      );
    },
  );

  it("an event that could not travel is made up for by a snapshot", async () => {
    const { host, server } = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
    const connect: Connect = async (signal) => {
      const near = await overPair(server)(signal);
      let isLeft = true;
      return {
        send: (frame) => near.send(frame),
        close: () => near.close(),
        receive: (handler) =>
          near.receive({
            onFrame: (frame) => {
              const isHit = isLeft && frame.type === "message_end";
              if (isHit) isLeft = false;
              handler.onFrame(isHit ? { ...frame, payload: { omitted: true } } : frame);
            },
            onFault: (error) => handler.onFault(error),
            onClose: (error) => handler.onClose(error),
          }),
      };
    };
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const agent = await RemoteAgent.create({ connect }, {}, { onError });
    expect(await agent.prompt("Go")).toMatchObject({ stop: "suspended" });
    expect(readState(agent.state)).toEqual(readState(host.agents[0]?.state ?? agent.state));
    expect(errors).toMatchObject([{ code: "invalid_request" }]);
    await agent.close();
  });

  it("an abort while disconnected takes effect on reconnect", async () => {
    const { client } = createRemoteWorld({ script: [[say("Well"), stall()], "Done"] });
    const { cut, hold, client: peer, release } = client();
    const agent = await RemoteAgent.create(peer);
    const end = agent.prompt("Go");
    await next(agent, "message_update");
    hold();
    cut();
    const aborted = agent.abort();
    release();
    await aborted;
    expect(await end).toMatchObject({ stop: "aborted" });
    expect(agent.isRunning).toBe(false);
  });

  it("a prompt and what steers it wait for a connection, and are done once", async () => {
    const { client, host } = createRemoteWorld({ script: ["One", "Two"] });
    const { cut, hold, client: peer, release } = client();
    const agent = await RemoteAgent.create(peer);
    hold();
    cut();
    const end = agent.prompt("Go");
    const queued = agent.followUp("More");
    release();
    await Promise.all([end, queued]);
    await agent.waitForIdle();
    const texts = host.agents[0]?.state.messages.filter(({ role }) => role === "user");
    expect(texts).toMatchObject([{ content: "Go" }, { content: "More" }]);
  });

  it("of a session that was opened again, what ran fails and the rest goes on", async () => {
    const first = createRemoteWorld({ script: [[say("Well"), stall()]] });
    const second = createRemoteWorld({ script: ["Again"] });
    let { server } = first;
    let cut: () => void = () => {};
    const agent = await RemoteAgent.attach(
      {
        connect: async (signal) => {
          const near = await overPair(server)(signal);
          cut = () => void near.close();
          return near;
        },
        reconnect: { baseMs: 0 },
      },
      "kept",
    );
    const end = agent.prompt("Go");
    await next(agent, "message_update");
    server = second.server;
    cut();
    await expect(end).rejects.toThrow("opened again");
    expect(agent.state).toMatchObject({ messages: [], isStreaming: false });
    expect(await agent.prompt("Go")).toMatchObject({ stop: "done" });
    await agent.close();
  });
});

describe("the mirror", () => {
  it("equals the agent's state after whatever was asked for", { tags: "long" }, async () => {
    const step = fc.constantFrom(
      ...(["prompt", "steer", "followUp", "continue", "reset", "level", "tools"] as const),
      ...(["abort", "replace", "approve", "cut", "late"] as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const answers = SCRIPT;
        const { client, host } = createRemoteWorld({
          script: (_context, _options, index) => {
            const answer = answers[index % answers.length] ?? "Done";
            return typeof answer === "function" ? "Done" : answer;
          },
          tools: TOOLS,
        });
        const { cut, client: peer } = client();
        const agent = await RemoteAgent.create(peer);
        let late = agent;
        const acts: Record<(typeof steps)[number], () => Promise<unknown>> = {
          prompt: () => agent.prompt("Go"),
          steer: () => agent.steer("Wait"),
          followUp: () => agent.followUp("More"),
          continue: () => agent.continue(),
          reset: () => agent.reset(),
          level: () => agent.setThinkingLevel("low"),
          tools: () => agent.setTools(["look"]),
          abort: () => agent.abort(),
          replace: () => agent.replaceMessages([userMessage("Earlier", 1)]),
          approve: () => agent.approve(decide(agent)),
          cut: async () => cut(),
          late: async () => (late = await RemoteAgent.attach(client().client, agent.sessionId)),
        };
        await Promise.allSettled(steps.map((each) => acts[each]()));
        await agent.waitForIdle();
        await Promise.all([agent.queued("steering"), late.queued("steering")]);
        const original = host.agents[0]?.state ?? agent.state;
        expect(readState(agent.state)).toEqual(readState(original));
        expect(readState(late.state)).toEqual(readState(original));
        for (const queue of ["steering", "followUp"] as const) {
          expect(await agent.queued(queue)).toEqual(host.agents[0]?.queued(queue));
        }
      }),
      { numRuns: countCases(30, 150) },
    );
  });
});

it.each([
  ["an address and a token", { url: "http://127.0.0.1:9", token: "t".repeat(32) }],
  ["an address", "http://127.0.0.1:9"],
  ["nothing", undefined],
])("a remote agent of %s is answered at once with what to write", async (_what, given) => {
  const words = "write { connect: connectUrl(url, { token }) }";
  await expect(RemoteAgent.create(given as never)).rejects.toThrow(words);
  await expect(RemoteAgent.attach(given as never, "s")).rejects.toThrow(words);
  await expect(RemoteAgent.list(given as never)).rejects.toThrow(words);
});
