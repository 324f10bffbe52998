import { randomUUID } from "node:crypto";
import type { AgentEvent, AgentTool } from "@gyre/agent";
import { call, callAll, type ScriptStep } from "@gyre/ai/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { startPostgres } from "../../../../tests/support/postgres.ts";
import { RemoteAgent } from "../client/remote-agent.ts";
import { CheckingClient } from "../testing/checking-client.ts";
import {
  createDurableWorld,
  type DurableServer,
  type DurableWorld,
  officeAgent,
  textTool,
} from "../testing/durable-world.ts";
import { createTestTool } from "../testing/remote-world.ts";

const look: ScriptStep[] = [[call("look", { path: "a" })], "Done."];
const SPEC = { name: "look", description: "", parameters: { type: "object" } };
const CLIENT = "me-0123456789abcdef";
const AWAY =
  'Tool "look" failed: The client of this tool went away; the call may have had effects.';
/** For what depends on how busy the machine is. */
const PATIENCE = { timeout: 60_000, interval: 20 };

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

/** A tool that waits until it may go on. */
function createSlow(): {
  tool: AgentTool;
  begun: Promise<void>;
  finish: () => void;
  ran: () => number;
} {
  const [begun, finished] = [signal(), signal()];
  let ran = 0;
  const tool = createTestTool("look", async () => {
    ran++;
    begun.now();
    await finished.happened;
    return "seen";
  });
  return { tool, begun: begun.happened, finish: finished.now, ran: () => ran };
}

/** A client that reads frames. Its requests are no others' requests. */
function connectClient(server: DurableServer): CheckingClient {
  return new CheckingClient(server.connect(), randomUUID());
}

async function attachClient(server: DurableServer, session: string): Promise<CheckingClient> {
  const client = connectClient(server);
  await client.ask("hello", { versions: [1] });
  await client.ask("session_attach", {}, session);
  return client;
}

let world: DurableWorld;
afterEach(() => world.close());

describe("client tools of a session that servers share, in a file", () => {
  testSharedTools(() => createDurableWorld());
});

describe("client tools of a session that servers share, in Postgres", { tags: "postgres" }, () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());
  testSharedTools(() => createDurableWorld(server.url()));
});

function testSharedTools(create: () => DurableWorld): void {
  it("run at the client of one server, for a run that another one executes", async () => {
    world = create();
    const front = await world.open([]);
    await world.open([officeAgent(look, [textTool("own", () => "own")])]);
    const agent = await RemoteAgent.create(world.client(front));
    const calls: unknown[] = [];
    await agent.registerTools([
      createTestTool("look", (args, { id }) => {
        calls.push([id, args]);
        return { content: [{ type: "text", text: "seen" }], details: { n: 1 } };
      }),
    ]);
    expect(agent.state.tools).toEqual([{ name: "look", description: "It is look." }]);
    expect(await agent.prompt("Go.")).toMatchObject({ stop: "done", turns: 2 });
    expect(calls).toEqual([[expect.any(String), { path: "a" }]]);
    expect(listResults(agent)).toMatchObject([{ ...textResult("seen"), details: { n: 1 } }]);
    expect(agent.state.tools.map(({ name }) => name)).toEqual(["own", "look"]);
    expect(front.errors).toEqual([]);
  });

  it("a client that comes back at another server answers the call that it was given, once", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const agent = await RemoteAgent.create(world.client(one, two));
    const slow = createSlow();
    await agent.registerTools([slow.tool]);
    const ending = agent.prompt("Go.");
    await slow.begun;
    await one.kill();
    // It is back when another request is answered.
    await agent.queued("steering").catch(() => {});
    slow.finish();
    expect((await ending).stop).toBe("done");
    expect(listResults(agent)).toMatchObject([textResult("seen")]);
    expect(slow.ran()).toBe(1);
  });

  it("an answer that is ready while the client is away arrives when it is back", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const agent = await RemoteAgent.create(world.client(one, two));
    let ran = 0;
    const cuts = createTestTool("look", async () => {
      ran++;
      await one.kill();
      return "seen";
    });
    await agent.registerTools([cuts]);
    expect((await agent.prompt("Go.")).stop).toBe("done");
    expect(listResults(agent)).toMatchObject([textResult("seen")]);
    expect(ran).toBe(1);
  });

  it("a worker that dies while the client works: the next one waits for the same answer", async () => {
    world = create();
    const agents = [officeAgent(look)];
    const front = await world.open([]);
    const one = await world.open(agents);
    const agent = await RemoteAgent.create(world.client(front));
    const slow = createSlow();
    await agent.registerTools([slow.tool]);
    const ending = agent.prompt("Go.");
    await slow.begun;
    await one.kill();
    await world.open(agents);
    slow.finish();
    expect((await ending).stop).toBe("done");
    expect(listResults(agent)).toMatchObject([textResult("seen")]);
    expect(slow.ran()).toBe(1);
  });

  it("an answer that came while no worker was there is used by the next one", async () => {
    world = create();
    const agents = [officeAgent(look)];
    const front = await world.open([]);
    const one = await world.open(agents);
    const agent = await RemoteAgent.create(world.client(front));
    const slow = createSlow();
    await agent.registerTools([slow.tool]);
    const ending = agent.prompt("Go.");
    await slow.begun;
    await one.kill();
    slow.finish();
    const [run] = await front.runs.store.listRuns({ session: agent.sessionId, limit: 1 });
    await vi.waitFor(async () => {
      const { items } = await front.runs.store.readInbox(agent.sessionId);
      expect(items).toMatchObject([{ kind: "answer", run: run?.id }]);
    }, PATIENCE);
    await world.open(agents);
    expect((await ending).stop).toBe("done");
    expect(listResults(agent)).toMatchObject([textResult("seen")]);
    expect(slow.ran()).toBe(1);
    const { items } = await front.runs.store.readInbox(agent.sessionId);
    expect(items).toEqual([]);
  });

  it("a client that never comes back: the model reads so, and its tools are gone after the run", async () => {
    world = create();
    const options = { toolGraceMs: 300 };
    const [one, two] = [await world.open([], options), await world.open([], options)];
    await world.open([officeAgent([[call("look")], [call("look")], "Done."])]);
    const watcher = await RemoteAgent.create(world.client(two));
    const client = await attachClient(one, watcher.sessionId);
    await client.ask(
      "tool_register",
      { tools: [SPEC], client: CLIENT, calls: [] },
      watcher.sessionId,
    );
    const ending = watcher.prompt("Go.");
    await client.next(({ type }) => type === "tool_execute");
    await client.close();
    expect((await ending).stop).toBe("done");
    expect(listResults(watcher)).toMatchObject([
      textResult(AWAY, true),
      textResult('Tool "look" failed: The client of this tool is not connected.', true),
    ]);
    await vi.waitFor(() => expect(watcher.state.tools).toEqual([]), PATIENCE);
  });

  it("one that says not that it keeps calls is gone with its connection, at once", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const watcher = await RemoteAgent.create(world.client(two));
    const client = await attachClient(one, watcher.sessionId);
    await client.ask("tool_register", { tools: [SPEC], client: CLIENT }, watcher.sessionId);
    const ending = watcher.prompt("Go.");
    await client.next(({ type }) => type === "tool_execute");
    await client.close();
    expect((await ending).stop).toBe("done");
    expect(listResults(watcher)).toMatchObject([textResult(AWAY, true)]);
  });

  it("one that comes back without its calls, while its old server still has it, fails them", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent([[call("look")], [call("look")], "Done."])]);
    const old = connectClient(one);
    const session = await old.create();
    await old.ask("tool_register", { tools: [SPEC], client: CLIENT }, session);
    await old.ask("prompt", { text: "Go." }, session);
    await old.next(({ type }) => type === "tool_execute");
    const fresh = await attachClient(two, session);
    await fresh.ask("tool_register", { tools: [SPEC], client: CLIENT }, session);
    const { payload } = await fresh.next(({ type }) => type === "tool_execute");
    const result = { content: [{ type: "text", text: "seen" }] };
    await fresh.ask("tool_result", { call: payload["call"], result }, session);
    await fresh.next(({ type }) => type === "agent_end");
    expect(old.frames.filter(({ type }) => type === "tool_execute")).toHaveLength(1);
    const agent = await RemoteAgent.attach(world.client(one), session);
    expect(listResults(agent)).toMatchObject([textResult(AWAY, true), textResult("seen")]);
    await Promise.all([old.close(), fresh.close()]);
  });

  it("the first answer counts, at whichever server, and the same one again is no error", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const client = connectClient(one);
    const session = await client.create();
    await client.ask("tool_register", { tools: [SPEC] }, session);
    await client.ask("prompt", { text: "Go." }, session);
    const { payload } = await client.next(({ type }) => type === "tool_execute");
    const answer = (text: string): object => ({ content: [{ type: "text", text }] });
    const other = await attachClient(two, session);
    await other.ask("tool_result", { call: payload["call"], result: answer("one") }, session);
    await client.ask("tool_result", { call: payload["call"], result: answer("two") }, session);
    await client.next(({ type }) => type === "agent_end");
    const unknown = await client.request("tool_result", { call: "x", error: "no" }, session);
    expect(unknown).toMatchObject({ type: "nack", payload: { code: "tool_not_found" } });
    const agent = await RemoteAgent.attach(world.client(two), session);
    expect(listResults(agent)).toMatchObject([textResult("one")]);
    await Promise.all([client.close(), other.close()]);
  });

  it("an abort from another server fires the signal in the client", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const agent = await RemoteAgent.create(world.client(one));
    const other = await RemoteAgent.attach(world.client(two), agent.sessionId);
    const [started, stopped] = [signal(), signal()];
    await agent.registerTools([
      createTestTool("look", (_args, { signal: own }) => {
        started.now();
        return new Promise((resolve) => {
          own.addEventListener("abort", () => {
            stopped.now();
            resolve("stopped");
          });
        });
      }),
    ]);
    const ending = agent.prompt("Go.");
    await started.happened;
    await other.abort();
    expect((await ending).stop).toBe("aborted");
    await stopped.happened;
  });

  it("two clients at two servers register tools, each runs its own, and a name is taken for both", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([
      officeAgent(
        [
          callAll([
            ["one", {}],
            ["two", {}],
          ]),
          "Done.",
        ],
        [textTool("own", () => "")],
      ),
    ]);
    const first = await RemoteAgent.create(world.client(one));
    const second = await RemoteAgent.attach(world.client(two), first.sessionId);
    await first.registerTools([createTestTool("one", () => "by one")]);
    await second.registerTools([createTestTool("two", () => "by two")]);
    await first.prompt("Go.");
    expect(listResults(first)).toMatchObject([textResult("by one"), textResult("by two")]);
    await second.waitForIdle();
    expect(second.state.tools).toEqual(first.state.tools);
    for (const names of [["own"], ["one"], ["x", "x"]]) {
      const refused = second.registerTools(names.map((name) => createTestTool(name)));
      await expect(refused).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(second.state.tools.map(({ name }) => name)).toEqual(["own", "one", "two"]);
  });

  it("a client that closes takes its tools with it, and its calls fail at once", async () => {
    world = create();
    const [one, two] = [await world.open([]), await world.open([])];
    await world.open([officeAgent(look)]);
    const watcher = await RemoteAgent.create(world.client(two));
    const agent = await RemoteAgent.attach(world.client(one), watcher.sessionId);
    const slow = createSlow();
    await agent.registerTools([slow.tool]);
    const ending = watcher.prompt("Go.");
    await slow.begun;
    await agent.close();
    expect((await ending).stop).toBe("done");
    expect(listResults(watcher)).toMatchObject([textResult(AWAY, true)]);
    await vi.waitFor(() => expect(watcher.state.tools).toEqual([]), PATIENCE);
  });

  it("tools that are registered while a run goes on are there for one of its next turns", async () => {
    world = create();
    const front = await world.open([]);
    const [started, registered] = [signal(), signal()];
    const wait = textTool("wait", async () => {
      started.now();
      await registered.happened;
      await new Promise((resolve) => setTimeout(resolve, 10));
      return "waited";
    });
    let looks = 0;
    const step: ScriptStep = ({ tools = [] }) => {
      if (!tools.some(({ name }) => name === "look")) return [call("wait")];
      return looks++ === 0 ? [call("look", { path: "a" })] : "Done.";
    };
    const office = officeAgent(
      Array.from({ length: 90 }, () => step),
      [wait],
    );
    await world.open([office]);
    const agent = await RemoteAgent.create(world.client(front));
    const ending = agent.prompt("Go.");
    await started.happened;
    await agent.registerTools([createTestTool("look", () => "seen")]);
    registered.now();
    expect((await ending).stop).toBe("done");
    expect(listResults(agent).at(-1)).toMatchObject(textResult("seen"));
    expect(agent.state.tools.map(({ name }) => name)).toEqual(["wait", "look"]);
  });

  it("what a client tool reports on the way is shown to the clients of its server", async () => {
    world = create();
    const front = await world.open([]);
    await world.open([officeAgent(look)]);
    const agent = await RemoteAgent.create(world.client(front));
    const shown = signal();
    const partial: unknown[] = [];
    agent.subscribe((event: AgentEvent) => {
      if (event.type !== "tool_execution_update") return;
      partial.push(event.partialResult.content);
      shown.now();
    });
    await agent.registerTools([
      createTestTool("look", async (_args, { update }) => {
        update({ content: [{ type: "text", text: "half" }] });
        await shown.happened;
        return "seen";
      }),
    ]);
    expect((await agent.prompt("Go.")).stop).toBe("done");
    expect(partial).toEqual([[{ type: "text", text: "half" }]]);
  });

  it("what a client tool throws is an error result, and what is no result too", async () => {
    world = create();
    const front = await world.open([]);
    await world.open([
      officeAgent([
        callAll([
          ["throws", {}],
          ["odd", {}],
        ]),
        "Done.",
      ]),
    ]);
    const agent = await RemoteAgent.create(world.client(front));
    const odd: unknown = { content: "text" };
    await agent.registerTools([
      createTestTool("throws", () => {
        throw new Error("boom");
      }),
      createTestTool("odd", () => odd as ReturnType<AgentTool["execute"]>),
    ]);
    expect(await agent.prompt("Go.")).toMatchObject({ stop: "done" });
    expect(listResults(agent)).toMatchObject([
      textResult('Tool "throws" failed: boom', true),
      textResult('Tool "odd" failed: The client of this tool sent an invalid result.', true),
    ]);
  });
}
