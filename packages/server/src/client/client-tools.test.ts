import { Agent, type AgentEvent, type AgentTool } from "@gyre/agent";
import { call, manualClock, type ScriptStep } from "@gyre/ai/testing";
import { type Payload, createTransportPair } from "@gyre/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SessionHost } from "../sessions/session-host.ts";
import { serveSessions } from "../sessions/session-service.ts";
import { createRemoteWorld, createTestTool } from "../testing/remote-world.ts";
import { CheckingClient } from "../testing/checking-client.ts";
import { RemoteAgent } from "./remote-agent.ts";

const look: ScriptStep[] = [[call("look", { path: "a" })], "Done"];

/** The results that the model was given. */
function listResults(agent: RemoteAgent): unknown[] {
  return agent.state.messages.filter(({ role }) => role === "toolResult");
}

function textResult(text: string, isError = false): object {
  return { role: "toolResult", content: [{ type: "text", text }], isError };
}

/** Something that happens once, and can be waited for. */
function signal(): { happened: Promise<void>; now: () => void } {
  let now: () => void = () => {};
  const happened = new Promise<void>((resolve) => (now = resolve));
  return { happened, now: () => now() };
}

describe("a client can register tools with a session", () => {
  it("tool_register, tool_execute, tool_result: they run in the client's process", async () => {
    const { client } = createRemoteWorld({ script: look, tools: [createTestTool("own")] });
    const agent = await RemoteAgent.create(client().client);
    const calls: unknown[] = [];
    await agent.registerTools([
      createTestTool("look", (args, { id }) => {
        calls.push([id, args]);
        return { content: [{ type: "text", text: "seen" }], details: { n: 1 } };
      }),
    ]);
    expect(agent.state.tools).toEqual([
      { name: "own", description: "It is own." },
      { name: "look", description: "It is look." },
    ]);
    expect(await agent.prompt("Go")).toMatchObject({ stop: "done", turns: 2 });
    expect(calls).toEqual([[expect.any(String), { path: "a" }]]);
    expect(listResults(agent)).toMatchObject([{ ...textResult("seen"), details: { n: 1 } }]);
  });

  it("tool_update: what a client tool reports on the way comes as events, the newest at last", async () => {
    const { client } = createRemoteWorld({ script: look });
    const agent = await RemoteAgent.create(client().client);
    const partial: unknown[] = [];
    const saw = signal();
    agent.subscribe((event: AgentEvent) => {
      if (event.type !== "tool_execution_update") return;
      const [block] = event.partialResult.content;
      if (block?.type === "text") partial.push(block.text);
      if (block?.type === "text" && block.text === "99") saw.now();
    });
    await agent.registerTools([
      createTestTool("look", async (_args, { update: onUpdate }) => {
        for (let n = 0; n < 100; n++) onUpdate({ content: [{ type: "text", text: `${n}` }] });
        await saw.happened;
        return "seen";
      }),
    ]);
    await agent.prompt("Go");
    expect(partial).toEqual(["0", "99"]);
  });

  it("what a client tool throws is an error result, and what is no result too", async () => {
    const { client } = createRemoteWorld({
      script: [[call("throws"), call("odd"), call("big")], "Done"],
    });
    const agent = await RemoteAgent.create(client().client);
    const odd: unknown = { content: "text" };
    const throws = (): never => {
      throw new Error("boom");
    };
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    await agent.registerTools([
      createTestTool("throws", throws),
      createTestTool("odd", () => odd as ReturnType<AgentTool["execute"]>),
      createTestTool("big", () => ({ content: [], details: circle })),
    ]);
    expect(await agent.prompt("Go")).toMatchObject({ stop: "done" });
    expect(listResults(agent)).toMatchObject([
      textResult('Tool "throws" failed: boom', true),
      textResult('Tool "odd" failed: The client of this tool sent an invalid result.', true),
      { isError: true, toolName: "big" },
    ]);
  });

  it("a name that is taken is refused, and what was registered before stays", async () => {
    const { client } = createRemoteWorld({ script: look, tools: [createTestTool("own")] });
    const one = await RemoteAgent.create(client().client);
    const two = await RemoteAgent.attach(client().client, one.sessionId);
    await one.registerTools([createTestTool("look")]);
    for (const names of [["own"], ["look"], ["x", "x"]]) {
      const refused = two.registerTools(names.map((name) => createTestTool(name)));
      await expect(refused).rejects.toMatchObject({ code: "invalid_request" });
    }
    await one.prompt("Go");
    expect(listResults(one)).toMatchObject([textResult("look")]);
  });

  it("registering again replaces, keeps what stays in its place and adds at the end", async () => {
    const { client, host } = createRemoteWorld({ tools: [createTestTool("own")] });
    const agent = await RemoteAgent.create(client().client);
    const names = (): unknown => host.agents[0]?.state.tools.map(({ name }) => name);
    await agent.registerTools(["a", "b", "c"].map((name) => createTestTool(name)));
    const before = host.agents[0]?.state.tools;
    await agent.registerTools(["d", "c", "b"].map((name) => createTestTool(name)));
    expect(names()).toEqual(["own", "b", "c", "d"]);
    expect(host.agents[0]?.state.tools[1]).toBe(before?.[2]);
    await agent.registerTools([]);
    expect(names()).toEqual(["own"]);
  });

  it("two clients register tools, and each runs its own", async () => {
    const { client } = createRemoteWorld({ script: [[call("one"), call("two")], "Done"] });
    const one = await RemoteAgent.create(client().client);
    const two = await RemoteAgent.attach(client().client, one.sessionId);
    await one.registerTools([createTestTool("one", () => "by one")]);
    await two.registerTools([createTestTool("two", () => "by two")]);
    await one.prompt("Go");
    expect(listResults(one)).toMatchObject([textResult("by one"), textResult("by two")]);
  });

  it("the loop has checked the arguments before the client sees them", async () => {
    const { client } = createRemoteWorld({ script: [[call("look", { path: 1 })], "Done"] });
    const agent = await RemoteAgent.create(client().client);
    let ran = 0;
    const path = { type: "object", properties: { path: { enum: ["b"] } }, required: ["path"] };
    await agent.registerTools([{ ...createTestTool("look", () => `${++ran}`), parameters: path }]);
    await agent.prompt("Go");
    expect(ran).toBe(0);
    expect(listResults(agent)).toMatchObject([{ isError: true }]);
  });

  it("time limits are those of other tools", async () => {
    const clock = manualClock();
    const { client } = createRemoteWorld({ script: look, agent: { clock } });
    const agent = await RemoteAgent.create(client().client);
    const [started, stopped] = [signal(), signal()];
    await agent.registerTools([
      {
        ...createTestTool("look", (_args, { signal: own }) => {
          started.now();
          return new Promise((resolve) => {
            own.addEventListener("abort", () => {
              stopped.now();
              resolve("too late");
            });
          });
        }),
        timeoutMs: 50,
      },
    ]);
    const end = agent.prompt("Go");
    await started.happened;
    await clock.advance(50);
    await stopped.happened;
    await end;
    expect(JSON.stringify(listResults(agent))).toContain("timed out after 50 ms");
  });
});

describe("tool_cancel", () => {
  it("an abort fires the signal in the client, whose result still counts", async () => {
    const { client } = createRemoteWorld({ script: look });
    const agent = await RemoteAgent.create(client().client);
    const started = signal();
    await agent.registerTools([
      createTestTool("look", (_args, { signal: own }) => {
        started.now();
        return new Promise((resolve) => {
          own.addEventListener("abort", () => resolve("stopped in time"));
        });
      }),
    ]);
    const end = agent.prompt("Go");
    await started.happened;
    await agent.abort();
    expect(await end).toMatchObject({ stop: "aborted" });
    expect(listResults(agent)).toMatchObject([textResult("stopped in time")]);
  });
});

describe("a client that goes away fails its calls at once", () => {
  const never = (started: () => void, canceled: () => void): AgentTool =>
    createTestTool("look", (_args, { signal: own }) => {
      started();
      own.addEventListener("abort", canceled);
      return new Promise(() => {});
    });

  it("and its tools are gone after the run", async () => {
    const { client, host } = createRemoteWorld({
      script: [[call("look")], [call("look")], "Done"],
    });
    const watcher = await RemoteAgent.create(client().client);
    const toolClient = client();
    const agent = await RemoteAgent.attach(toolClient.client, watcher.sessionId);
    const started = signal();
    await agent.registerTools([never(started.now, () => {})]);
    const end = watcher.prompt("Go");
    await started.happened;
    await toolClient.client.close();
    expect(await end).toMatchObject({ stop: "done" });
    expect(listResults(watcher)).toMatchObject([
      textResult(
        'Tool "look" failed: The client of this tool went away; the call may have had effects.',
        true,
      ),
      textResult('Tool "look" failed: The client of this tool is not connected.', true),
    ]);
    await watcher.queued("steering");
    expect(host.agents[0]?.state.tools).toEqual([]);
    expect(watcher.state.tools).toEqual([]);
  });

  it("one that comes back registers again by itself, in the same place", async () => {
    const made: RemoteAgent[] = [];
    // What is asked twice is asked behind all that the first connection left to be done.
    const settles = createTestTool("settles", async () => {
      await made[0]?.queued("steering");
      await made[0]?.queued("steering");
      return "settled";
    });
    const script = [[call("look")], [call("settles")], [call("look")], "Done"];
    const { client, host } = createRemoteWorld({ script, tools: [settles] });
    const { connections, cut, client: peer } = client();
    const agent = await RemoteAgent.create(peer);
    made.push(agent);
    const canceled = signal();
    let calls = 0;
    const cutsFirst = createTestTool("look", (_args, { signal: own }) => {
      if (calls++ > 0) return "seen";
      own.addEventListener("abort", canceled.now);
      queueMicrotask(cut);
      return new Promise(() => {});
    });
    await agent.registerTools([cutsFirst, createTestTool("other")]);
    const before = host.agents[0]?.state.tools;
    expect(await agent.prompt("Go")).toMatchObject({ stop: "done" });
    await canceled.happened;
    expect(connections()).toBe(2);
    const [first, , last] = listResults(agent);
    expect(JSON.stringify(first)).toContain("went away");
    expect(last).toMatchObject(textResult("seen"));
    expect(host.agents[0]?.state.tools).toEqual(before);
  });

  it("one that comes back while its old connection seems to be there takes over", async () => {
    const { host, server } = createRemoteWorld({ script: look });
    const connect = (name: string): CheckingClient => {
      const [near, far] = createTransportPair();
      server.serve(far);
      return new CheckingClient(near, name);
    };
    const tools = [{ name: "look", description: "", parameters: { type: "object" } }];
    const old = connect("old");
    const id = await old.create();
    await old.ask("tool_register", { tools, client: "me-0123456789abcdef" }, id);
    const fresh = connect("fresh");
    await fresh.ask("hello", { versions: [1] });
    await fresh.ask("session_attach", {}, id);
    await fresh.ask("tool_register", { tools, client: "me-0123456789abcdef" }, id);
    await fresh.ask("prompt", { text: "Go" }, id);
    const { payload, seq } = await fresh.next(({ type }) => type === "tool_execute");
    expect(payload).toMatchObject({ name: "look", arguments: { path: "a" } });
    expect(seq).toBeUndefined();
    expect(old.frames.some(({ type }) => type === "tool_execute")).toBe(false);
    const result = { content: [{ type: "text", text: "seen" }] };
    const { call: name } = payload;
    const refused = await old.request("tool_result", { call: name, result }, id);
    expect(refused).toMatchObject({ type: "nack", payload: { code: "tool_not_found" } });
    await fresh.ask("tool_result", { call: name, result }, id);
    await fresh.next(({ type }) => type === "agent_end");
    expect(host.agents[0]?.state.messages[2]).toMatchObject(textResult("seen"));
    expect([old.faults, fresh.faults]).toEqual([[], []]);
  });

  it("no client takes over the tools of another by a name that can be guessed", async () => {
    const { server } = createRemoteWorld({ script: look });
    const [near, far] = createTransportPair();
    server.serve(far);
    const client = new CheckingClient(near, "m");
    const id = await client.create();
    const tools = [{ name: "look", description: "", parameters: { type: "object" } }];
    for (const name of ["", "me", "kitchen", "x".repeat(15), "x".repeat(129)]) {
      const { payload } = await client.request("tool_register", { tools, client: name }, id);
      expect(payload, name).toMatchObject({ code: "invalid_request" });
    }
    await client.ask("tool_register", { tools, client: "x".repeat(16) }, id);
  });

  it("close takes the tools back on a connection that others use", async () => {
    const { client, host } = createRemoteWorld({ script: look });
    const { client: peer } = client();
    const agent = await RemoteAgent.create(peer);
    await agent.registerTools([createTestTool("look")]);
    await agent.close();
    expect(host.agents[0]?.state.tools).toEqual([]);
    expect(peer.state.type).toBe("ready");
  });
});

describe("a host that makes another agent", () => {
  it("gets the tools registered for that one, too", async () => {
    const tools = [createTestTool("own")];
    let agent = new Agent({ tools });
    const hosted = {
      id: "s",
      get agent(): Agent {
        return agent;
      },
      reset: async (): Promise<void> => {
        agent = new Agent({ tools });
      },
      close: (): Promise<void> => Promise.resolve(),
    };
    const host: SessionHost = {
      create: () => Promise.resolve(hosted),
      open: () => Promise.resolve(undefined),
      list: () => Promise.resolve([]),
    };
    const [near, far] = createTransportPair();
    serveSessions(far, host);
    const remote = await RemoteAgent.create({ connect: () => Promise.resolve(near) });
    await remote.registerTools([createTestTool("look")]);
    const first = agent;
    await remote.reset();
    expect(agent).not.toBe(first);
    expect(agent.state.tools.map(({ name }) => name)).toEqual(["own", "look"]);
    await remote.close();
  });
});

describe("hostile tools", () => {
  it("a registration that makes no sense is refused", async () => {
    const { server } = createRemoteWorld();
    const [near, far] = createTransportPair();
    server.serve(far);
    const client = new CheckingClient(near);
    const id = await client.create();
    const fine = { name: "a", description: "", parameters: { type: "object" } };
    const wrong: unknown[] = [
      undefined,
      {},
      [1],
      [{ ...fine, name: "" }],
      [{ ...fine, name: "a b" }],
      [{ ...fine, name: "x".repeat(65) }],
      [{ ...fine, description: 1 }],
      [{ ...fine, parameters: "x" }],
      [{ ...fine, parameters: { type: "string" } }],
      [{ ...fine, timeoutMs: -1 }],
      [fine, fine],
      Array.from({ length: 129 }, (_, n) => ({ ...fine, name: `a${n}` })),
    ];
    for (const tools of wrong) {
      const answer = await client.request("tool_register", { tools }, id);
      expect(answer).toMatchObject({ type: "nack", payload: { code: "invalid_request" } });
    }
    const stranger = await client.request("tool_register", { tools: [fine] }, "s_9");
    expect(stranger.payload["code"]).toBe("session_not_found");
  });

  it("whatever a client answers, the run ends and the server goes on", async () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.record({ content: fc.array(fc.jsonValue({ maxDepth: 2 })) }),
      fc.record({
        content: fc.constant([{ type: "text", text: "x" }]),
        isError: fc.jsonValue({ maxDepth: 1 }),
        terminate: fc.jsonValue({ maxDepth: 1 }),
        usage: fc.jsonValue({ maxDepth: 1 }),
      }),
    );
    const answer = fc.record({
      type: fc.constantFrom("tool_update", "tool_result"),
      isOurs: fc.boolean(),
      payload: fc.record({ result: value, error: fc.jsonValue() }, { requiredKeys: [] }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(answer, { maxLength: 6 }), async (answers) => {
        const { server, errors } = createRemoteWorld({ script: look });
        const [near, far] = createTransportPair();
        server.serve(far);
        const client = new CheckingClient(near);
        const id = await client.create();
        const tools = [{ name: "look", description: "", parameters: { type: "object" } }];
        await client.ask("tool_register", { tools }, id);
        await client.ask("prompt", { text: "Go" }, id);
        const { payload } = await client.next(({ type }) => type === "tool_execute");
        for (const { type, isOurs, payload: given } of answers) {
          const sent: Payload = { ...given, call: isOurs ? payload["call"] : "another" };
          await client.request(type, sent, id);
        }
        await client.request("tool_result", { call: payload["call"], error: "enough" }, id);
        const { payload: end } = await client.next(({ type }) => type === "agent_end");
        expect(["done", "terminated"]).toContain(end["stop"]);
        expect(errors).toEqual([]);
        await server.close();
      }),
      { numRuns: 80 },
    );
  });
});
