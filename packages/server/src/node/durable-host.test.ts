import type { AgentEvent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { callAll, type ScriptStep } from "@gyre/ai/testing";
import { defineAgent } from "@gyre/durable";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Payload } from "@gyre/protocol";
import { RemoteAgent, type RemotePageOptions } from "../client/remote-agent.ts";
import { CheckingClient } from "../testing/checking-client.ts";
import {
  createDurableWorld,
  type DurableServer,
  type DurableWorld,
  officeAgent,
  textTool,
} from "../testing/durable-world.ts";

let world: DurableWorld;
afterEach(() => world.close());

/** Settles with the next event of a type. */
function waitFor(agent: RemoteAgent, wanted: AgentEvent["type"]): Promise<void> {
  return new Promise((resolve) => {
    const stop = agent.subscribe(({ type }) => {
      if (type !== wanted) return;
      stop();
      resolve();
    });
  });
}

function waitForCall(agent: RemoteAgent): Promise<void> {
  return waitFor(agent, "tool_execution_start");
}

/** Sends a request with an id of its own, on a connection of its own. */
async function requestAt(
  server: DurableServer,
  type: string,
  payload: Payload,
  id: string,
  stream?: string,
): Promise<Payload> {
  const client = new CheckingClient(server.connect());
  await client.ask("hello", { versions: [1] });
  if (stream !== undefined) await client.ask("session_attach", {}, stream);
  client.send({ type, payload, id, ...(stream !== undefined && { stream, seq: 2 }) });
  const answer = await client.next((frame) => frame.re === id);
  await client.close();
  if (answer.type !== "ack") throw new Error(`${type}: ${JSON.stringify(answer.payload)}`);
  return answer.payload;
}

/** Roles and texts. */
function listTexts(agent: RemoteAgent): string[] {
  return agent.state.messages.map((message) => {
    const text = "content" in message ? textOf(message) : "";
    return `${message.role}: ${text}`;
  });
}

describe("servers of one store", () => {
  it("a prompt to one server is worked on by another, and its events are those of an agent", async () => {
    world = createDurableWorld();
    const echo = textTool("echo", (text) => `${text}!`);
    const front = await world.open([]);
    await world.open([officeAgent([callAll([["echo", { text: "hi" }]]), "Done."], [echo])]);
    const agent = await RemoteAgent.create(world.client(front));
    const events: AgentEvent[] = [];
    agent.subscribe((event) => void events.push(event));
    const end = await agent.prompt("Say hi.");
    expect(end.stop).toBe("done");
    expect(end.turns).toBe(2);
    expect(listTexts(agent)).toEqual([
      "user: Say hi.",
      "assistant: ",
      "toolResult: hi!",
      "assistant: Done.",
    ]);
    expect(end.messages).toEqual(agent.state.messages);
    // How many updates come depends on how fast the other server sends them.
    const types = events.map(({ type }) => type).filter((type) => type !== "message_update");
    expect(types).toEqual([
      ...["agent_start", "turn_start", "message_start", "message_end"],
      ...["message_start", "message_end", "tool_execution_start", "tool_execution_end"],
      ...["message_start", "message_end", "turn_end"],
      ...["turn_start", "message_start", "message_end", "turn_end", "agent_end"],
    ]);
    expect(front.errors).toEqual([]);
  });

  it("a session that was made on one server is there on the others, before its first prompt", async () => {
    world = createDurableWorld();
    const one = await world.open([]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one));
    const client = world.client(two);
    const [listed] = await RemoteAgent.list(client);
    expect(listed).toMatchObject({ id: agent.sessionId, isOpen: false, isRunning: false });
    const other = await RemoteAgent.attach(client, agent.sessionId);
    expect(other.state.messages).toEqual([]);
    await expect(RemoteAgent.attach(client, "s-none")).rejects.toMatchObject({
      code: "session_not_found",
    });
    const page = await RemoteAgent.listPage(client, { limit: 1 });
    expect(page).toMatchObject({ sessions: [{ id: agent.sessionId, isOpen: true }] });
  });

  it("sessions are renamed, put away, forked and found at any server; a fork that is sent again is the same", async () => {
    world = createDurableWorld();
    const one = await world.open([officeAgent(["Green."], [])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one));
    await agent.prompt("Which tea?");
    await agent.waitForIdle();
    const client = world.client(two);
    const id = agent.sessionId;
    await vi.waitFor(() => RemoteAgent.rename(client, id, "Tea"), { timeout: 20_000 });
    await vi.waitFor(() => RemoteAgent.archive(client, id), { timeout: 20_000 });
    const fork = { session: id };
    const made = String((await requestAt(one, "session_fork", fork, "f1"))["session"]);
    expect((await requestAt(two, "session_fork", fork, "f1"))["session"]).toBe(made);
    const find = async (page: Omit<RemotePageOptions, "limit">): Promise<string[]> =>
      (await RemoteAgent.listPage(client, { limit: 9, ...page })).sessions.map((each) => each.id);
    expect(await find({ query: "TEA" })).toEqual([made, id]);
    expect(await find({ archived: true })).toEqual([id]);
    expect(await find({ archived: false, order: "updated" })).toEqual([made]);
    const { matches, next } = await RemoteAgent.search(client, { text: "green", limit: 9 });
    expect(matches.map(({ session, excerpt }) => [session.id, excerpt])).toEqual([
      [made, "Green."],
      [id, "Green."],
    ]);
    expect(next).toBeUndefined();
    const copy = await RemoteAgent.attach(client, made);
    expect(listTexts(copy)).toEqual(["user: Which tea?", "assistant: Green."]);
    await expect(RemoteAgent.fork(client, id, { at: 99 })).rejects.toMatchObject({
      code: "invalid_request",
    });
    await expect(RemoteAgent.rename(client, "s-none", "x")).rejects.toMatchObject({
      code: "session_not_found",
    });
    expect([...one.errors, ...two.errors]).toEqual([]);
  });

  it("requests that are sent to one server and again to another are done once, with the first answer", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    const pay = textTool("pay", () => "paid", { needsApproval: true });
    const script = [callAll([["wait", {}]]), callAll([["pay", {}]]), "Done."];
    const one = await world.open([officeAgent(script, [wait, pay])]);
    const two = await world.open([]);
    const session = String((await requestAt(one, "session_create", {}, "c1"))["session"]);
    expect((await requestAt(two, "session_create", {}, "c1"))["session"]).toBe(session);
    const ask = async (type: string, payload: Payload, id: string): Promise<Payload> => {
      const first = await requestAt(one, type, payload, id, session);
      const again = await requestAt(two, type, payload, id, session);
      expect(again).toEqual(first);
      return first;
    };
    const other = await RemoteAgent.attach(world.client(two), session);
    const suspended = waitFor(other, "agent_end");
    const begun = waitForCall(other);
    expect(await ask("prompt", { text: "Go." }, "p1")).toEqual({ seq: 0 });
    await begun;
    await ask("steer", { text: "Left." }, "t1");
    await ask("follow_up", { text: "Right." }, "f1");
    goOn();
    await suspended;
    const [call] = other.state.pending;
    const decisions = { [call?.toolCall.id ?? ""]: { type: "approve" } };
    const ended = waitFor(other, "agent_end");
    await ask("approve", { decisions }, "a1");
    await ended;
    // Again after all is over.
    expect(await ask("approve", { decisions }, "a1")).not.toEqual({ seq: 0 });
    expect(await ask("prompt", { text: "Go." }, "p1")).toEqual({ seq: 0 });
    await ask("steer", { text: "Left." }, "t1");
    await ask("abort", {}, "x1");
    const texts = listTexts(other).filter((text) => !text.startsWith("assistant"));
    expect(texts).toEqual([
      "user: Go.",
      "toolResult: waited",
      "user: Left.",
      "toolResult: paid",
      "user: Right.",
    ]);
  });

  it("an edit of a queue that is sent again to another server gets the first answer, with a run and without", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    const one = await world.open([officeAgent([callAll([["wait", {}]]), "Done."], [wait])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(two));
    const removeTwice = async (nth: number): Promise<void> => {
      const id = await agent.steer("Left.");
      const edit = { queue: "steering", op: "remove", id };
      const first = await requestAt(one, "queue_edit", edit, `q${nth}`, agent.sessionId);
      expect(first).toMatchObject({ isDone: true, queued: [], message: { content: "Left." } });
      const again = await requestAt(two, "queue_edit", edit, `q${nth}`, agent.sessionId);
      expect(again).toEqual(first);
      const other = await requestAt(two, "queue_edit", edit, `r${nth}`, agent.sessionId);
      expect(other).toEqual({ isDone: false, queued: [] });
    };
    await removeTwice(1);
    const begun = waitForCall(agent);
    const end = agent.prompt("Go.");
    await begun;
    await removeTwice(2);
    goOn();
    expect((await end).stop).toBe("done");
    expect(listTexts(agent).filter((text) => text.startsWith("user"))).toEqual(["user: Go."]);
  });

  it("what waits for a run whose worker dies is there for the next one, as it was edited", async () => {
    world = createDurableWorld();
    let calls = 0;
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const slow = textTool(
      "slow",
      () => {
        calls++;
        begin();
        return calls === 1 ? new Promise<string>(() => {}) : "done";
      },
      { idempotent: true },
    );
    const agents = [officeAgent([callAll([["slow", {}]]), "Second.", "Third."], [slow])];
    const front = await world.open([]);
    const one = await world.open(agents);
    const agent = await RemoteAgent.create(world.client(front));
    const ending = agent.prompt("Go.");
    await begun;
    const later = await agent.followUp("Later.");
    const never = await agent.followUp("Never.");
    expect(await agent.editQueued("followUp", later, "Much later.")).toBe(true);
    expect(await agent.takeQueued("followUp", never)).toMatchObject({ content: "Never." });
    await one.kill();
    await world.open(agents);
    expect((await ending).stop).toBe("done");
    const texts = listTexts(agent).filter((text) => text.startsWith("user"));
    expect(texts).toEqual(["user: Go.", "user: Much later."]);
  });

  it("a reset that is sent again to another server, after the next run, is made once; one aborts a call that waits", async () => {
    world = createDurableWorld();
    const pay = textTool("pay", () => "paid", { needsApproval: true });
    const one = await world.open([officeAgent([callAll([["pay", {}]]), "Second."], [pay])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(two));
    expect((await agent.prompt("Pay.")).stop).toBe("suspended");
    const first = await requestAt(one, "reset", {}, "z1", agent.sessionId);
    expect(first).toMatchObject({ seq: expect.any(Number) });
    await agent.queued("steering");
    expect(agent.state).toMatchObject({ messages: [], pending: [], isStreaming: false });
    await requestAt(
      two,
      "messages_replace",
      { messages: [{ role: "user", content: "Earlier.", timestamp: 1 }] },
      "z2",
      agent.sessionId,
    );
    expect((await agent.prompt("Again.")).stop).toBe("suspended");
    await requestAt(two, "reset", {}, "z1", agent.sessionId);
    expect(agent.state.pending).toHaveLength(1);
    const texts = listTexts(agent).filter((text) => text.startsWith("user"));
    expect(texts).toEqual(["user: Earlier.", "user: Again."]);
  });

  it("a run that no worker can open answers edits by its end, and what was steered waits for its continuation", async () => {
    world = createDurableWorld();
    const front = await world.open([]);
    const agent = await RemoteAgent.create(world.client(front));
    const [started, ended] = [waitFor(agent, "agent_start"), waitFor(agent, "agent_end")];
    const ending = agent.prompt("Go.");
    await started;
    const id = await agent.steer("Left.");
    const edited = agent.editQueued("followUp", id, "Right.");
    const office = officeAgent(["First."]);
    let isBroken = true;
    const breaks = defineAgent({
      ...office,
      open: (run) => {
        if (isBroken) throw new Error("Not now.");
        return office.open(run);
      },
    });
    await world.open([breaks]);
    await ended;
    expect((await ending).stop).toBe("error");
    expect(await edited).toBe(false);
    isBroken = false;
    expect((await agent.continue()).stop).toBe("done");
    expect(listTexts(agent)).toEqual(["user: Go.", "user: Left.", "assistant: First."]);
  });

  it("an item of the inbox that cannot be read keeps no client from the session", async () => {
    world = createDurableWorld();
    const front = await world.open([]);
    const agent = await RemoteAgent.create(world.client(front));
    const started = waitFor(agent, "agent_start");
    const ending = agent.prompt("Go.");
    await started;
    await agent.steer("Left.");
    const [run] = await front.runs.store.listRuns({ session: agent.sessionId, limit: 1 });
    const item = { run: run?.id ?? "", kind: "request", data: "{oops", key: "bad" } as const;
    expect(await front.runs.store.send(item)).toBe("sent");
    expect(await agent.queued("steering")).toMatchObject([{ message: { content: "Left." } }]);
    const worker = await world.open([officeAgent(["First."])]);
    expect((await ending).stop).toBe("done");
    expect(listTexts(agent)).toEqual(["user: Go.", "user: Left.", "assistant: First."]);
    expect(worker.errors).toHaveLength(1);
  });

  it("a continuation that is sent again to another server is made once", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    let requests = 0;
    const fail: ScriptStep = () => {
      if (++requests === 1) throw new Error("The model is away.");
      return callAll([["wait", {}]]);
    };
    const one = await world.open([officeAgent([fail, "Done."], [wait])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(two));
    expect((await agent.prompt("Go.")).stop).toBe("error");
    const begun = waitForCall(agent);
    const first = await requestAt(one, "continue", {}, "n1", agent.sessionId);
    await begun;
    expect(await requestAt(two, "continue", {}, "n1", agent.sessionId)).toEqual(first);
    const ended = waitFor(agent, "agent_end");
    goOn();
    await ended;
    expect(await requestAt(two, "continue", {}, "n1", agent.sessionId)).toEqual(first);
    expect(requests).toBe(2);
    expect(agent.isRunning).toBe(false);
  });

  it("a change of settings that is sent again to another server, while a run goes on, is no error", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    const one = await world.open([officeAgent([callAll([["wait", {}]]), "Done."], [wait])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(two));
    const change = { thinkingLevel: "high" };
    const first = await requestAt(one, "session_update", change, "u1", agent.sessionId);
    const begun = waitForCall(agent);
    const end = agent.prompt("Go.");
    await begun;
    expect(await requestAt(two, "session_update", change, "u1", agent.sessionId)).toEqual(first);
    // One that is made while the run goes on is stored by its worker, once.
    const other = { thinkingLevel: "low" };
    const second = await requestAt(two, "session_update", other, "u2", agent.sessionId);
    await requestAt(one, "session_update", { thinkingLevel: "max" }, "u3", agent.sessionId);
    expect(await requestAt(one, "session_update", other, "u2", agent.sessionId)).toEqual(second);
    goOn();
    expect((await end).stop).toBe("done");
    expect(agent.state.thinkingLevel).toBe("max");
  });

  it("a client that comes to another server in the middle of a run gets its end", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    const agents = [officeAgent([callAll([["wait", {}]]), "Done."], [wait])];
    const one = await world.open([]);
    const two = await world.open([]);
    await world.open(agents);
    const agent = await RemoteAgent.create(world.client(one, two));
    const started = waitForCall(agent);
    const ending = agent.prompt("Wait.");
    await started;
    await one.kill();
    goOn();
    const end = await ending;
    expect(end.stop).toBe("done");
    expect(end.messages).toHaveLength(4);
    expect(listTexts(agent)).toEqual([
      "user: Wait.",
      "assistant: ",
      "toolResult: waited",
      "assistant: Done.",
    ]);
    expect((await agent.prompt("Again.")).stop).toBe("done");
    expect(agent.state.messages).toHaveLength(6);
  });

  it("a server that has the run is killed: another goes on, and prompt() settles", async () => {
    world = createDurableWorld();
    let calls = 0;
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const slow = textTool(
      "slow",
      () => {
        calls++;
        begin();
        return calls === 1 ? new Promise<string>(() => {}) : "done";
      },
      { idempotent: true },
    );
    const agents = [officeAgent([callAll([["slow", {}]]), "Done."], [slow])];
    const one = await world.open(agents);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one, two));
    const ending = agent.prompt("Go.");
    await begun;
    await one.kill();
    await world.open(agents);
    const end = await ending;
    expect(end.stop).toBe("done");
    expect(calls).toBe(2);
    expect(end.messages).toHaveLength(4);
  });

  it("a client whose server cannot reach the store asks again, at another one, and loses nothing", async () => {
    world = createDurableWorld();
    const one = await world.open([]);
    const two = await world.open([officeAgent(["First.", "Second."])]);
    const agent = await RemoteAgent.create(world.client(one, two));
    one.isAway = true;
    expect((await agent.prompt("Go.")).stop).toBe("done");
    // Its next connection is to the first server, which does not answer yet.
    two.cut();
    expect((await agent.prompt("Again.")).stop).toBe("done");
    one.isAway = false;
    expect(listTexts(agent)).toEqual([
      "user: Go.",
      "assistant: First.",
      "user: Again.",
      "assistant: Second.",
    ]);
  });

  it("settings that are changed on one server hold on the others, and for the next run", async () => {
    world = createDurableWorld();
    const seen: (string | undefined)[] = [];
    const office = officeAgent(["First.", "Second."]);
    const watched = defineAgent({
      ...office,
      open: (run) => {
        seen.push(run.settings.thinkingLevel);
        return office.open(run);
      },
    });
    const one = await world.open([watched]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one));
    const other = await RemoteAgent.attach(world.client(two), agent.sessionId);
    await agent.prompt("Go.");
    await other.setThinkingLevel("high");
    expect((await agent.prompt("Again.")).stop).toBe("done");
    expect(agent.state.thinkingLevel).toBe("high");
    expect(other.state.thinkingLevel).toBe("high");
    expect(seen).toEqual([undefined, "high"]);
    await expect(other.setModel("another")).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("deltas of a response are shown as they come, and lead to the message that is stored", async () => {
    world = createDurableWorld();
    const text = "Tea is made of leaves and water.";
    const slow = { parts: [text], chunkSize: 4, betweenMs: 5 };
    const one = await world.open([officeAgent([slow])]);
    const agent = await RemoteAgent.create(world.client(one));
    let streamed = "";
    const types: string[] = [];
    agent.subscribe((event) => {
      types.push(event.type);
      if (event.type !== "message_update") return;
      const { assistantMessageEvent: update } = event;
      if (update.type === "text_delta") streamed += update.delta;
    });
    const end = await agent.prompt("How?");
    expect(streamed).toBe(text);
    expect(listTexts(agent)).toEqual(["user: How?", `assistant: ${text}`]);
    expect(end.messages).toEqual(agent.state.messages);
    expect(types.filter((type) => type === "message_start")).toHaveLength(2);
  });

  it("a worker that dies within a response: a snapshot takes back what was shown of it", async () => {
    world = createDurableWorld();
    let asked = 0;
    const text = "Tea is made of leaves and water.";
    const answer: ScriptStep = () =>
      asked++ === 0
        ? { parts: [text], chunkSize: 4, betweenMs: 60_000 }
        : { parts: [text], chunkSize: 4 };
    const agents = [officeAgent([answer])];
    const one = await world.open(agents);
    let snapshots = 0;
    const agent = await RemoteAgent.create(
      world.client(one, await world.open([])),
      {},
      { onSnapshot: () => void snapshots++ },
    );
    const shown = waitFor(agent, "message_update");
    const ending = agent.prompt("How?");
    await shown;
    await one.kill();
    await world.open(agents);
    const end = await ending;
    expect(asked).toBe(2);
    expect(snapshots).toBeGreaterThan(0);
    expect(listTexts(agent)).toEqual(["user: How?", `assistant: ${text}`]);
    expect(end.messages).toEqual(agent.state.messages);
  });

  it("two clients on two servers see the same, and steer and abort the same run", async () => {
    world = createDurableWorld();
    let goOn = (): void => {};
    const waiting = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const wait = textTool("wait", () => waiting);
    const one = await world.open([officeAgent([callAll([["wait", {}]]), "Done."], [wait])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one));
    const started = waitForCall(agent);
    const ending = agent.prompt("Wait.");
    await started;
    const other = await RemoteAgent.attach(world.client(two), agent.sessionId);
    expect(other.isRunning).toBe(true);
    await expect(other.prompt("Me, too.")).rejects.toMatchObject({ code: "session_busy" });
    await other.steer("Hurry.");
    goOn();
    const end = await ending;
    await other.waitForIdle();
    expect(listTexts(agent)).toContain("user: Hurry.");
    expect(other.state.messages).toEqual(agent.state.messages);
    expect(end.messages).toEqual(agent.state.messages);
  });

  it("a call that was left to a person is approved on another server", async () => {
    world = createDurableWorld();
    const pay = textTool("pay", () => "paid", { needsApproval: true });
    const one = await world.open([officeAgent([callAll([["pay", {}]]), "Done."], [pay])]);
    const two = await world.open([]);
    const agent = await RemoteAgent.create(world.client(one));
    const suspended = await agent.prompt("Pay.");
    expect(suspended.stop).toBe("suspended");
    const other = await RemoteAgent.attach(world.client(two), agent.sessionId);
    const [call] = other.state.pending;
    const end = await other.approve({ [call?.toolCall.id ?? ""]: { type: "approve" } });
    expect(end.stop).toBe("done");
    await agent.waitForIdle();
    expect(agent.state.pending).toEqual([]);
    expect(agent.state.messages).toEqual(other.state.messages);
    expect(listTexts(agent).slice(2)).toEqual(["toolResult: paid", "assistant: Done."]);
  });
});
