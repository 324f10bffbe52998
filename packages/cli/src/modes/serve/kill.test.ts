import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { QueueName } from "@gyre/agent";
import { RemoteAgent } from "@gyre/server/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { PATIENCE, type ServedProgram, ServeWorld } from "../../testing/served-program.ts";

// kill -9 of the server at each point between a request and what it causes. What a client got an
// `ack` for is there after a restart, and happens once.

let world: ServeWorld;
let server: ServedProgram;
let agent: RemoteAgent;

beforeAll(async () => {
  world = await ServeWorld.open();
});

afterAll(() => world.remove());

beforeEach(() => world.begin());

afterEach(() => world.end());

async function start(...args: string[]): Promise<void> {
  server = await world.serve(args);
  agent = await world.createAgent(server);
}

/** Ends the server, by default without a word, and attaches to the session in a new one. */
async function restart(signal: NodeJS.Signals = "SIGKILL", ...args: string[]): Promise<void> {
  const { sessionId } = agent;
  server.run.kill(signal);
  await server.run.end;
  await agent.close();
  server = await world.serve(args, { home: server.run.home });
  agent = await RemoteAgent.attach({ connect: server.webSocket }, sessionId);
  world.closes(agent);
}

/** A run that the server does not live to see the end of. */
function begin(run: Promise<unknown>): void {
  run.catch(() => {});
}

const path = (name: string): string => join(server.run.cwd, name);

/** What the model reads of the results, by call id. */
async function sentResults(nth: number): Promise<Record<string, string>> {
  const { body } = await world.service.asked(nth);
  const messages = body["messages"] as {
    content: { type: string; tool_use_id?: string; content?: { text?: string }[] }[];
  }[];
  return Object.fromEntries(
    messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .filter(({ type }) => type === "tool_result")
      .map(({ tool_use_id, content }) => [tool_use_id, content?.[0]?.text]),
  );
}

const WRITE = { call: "write", arguments: { path: "a.txt", content: "tea\n" }, id: "c1" } as const;
const SLOW = {
  call: "shell",
  arguments: { command: "echo ran >> ran.txt; sleep 5" },
  id: "slow",
} as const;

describe("a call that waits for a person", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "%s: waits with the same question, and runs once when it is approved",
    async (signal) => {
      world.service.play([{ say: [WRITE] }, { say: "Done." }]);
      await start();
      const { pending } = await agent.prompt("Write it.");
      expect(pending).toMatchObject([{ toolCall: { id: "c1" }, fingerprint: expect.any(String) }]);
      await restart(signal);
      expect(agent.state.pending).toEqual(pending);
      expect(existsSync(path("a.txt"))).toBe(false);
      const fingerprint = String(pending[0]?.fingerprint);
      const end = await agent.approve({ c1: { type: "approve", fingerprint } });
      expect(end.stop).toBe("done");
      expect(readFileSync(path("a.txt"), "utf8")).toBe("tea\n");
      expect(Object.keys(await sentResults(1))).toEqual(["c1"]);
      await restart();
      expect(agent.state.pending).toEqual([]);
      expect(agent.state.messages.filter(({ role }) => role !== "notice")).toHaveLength(4);
    },
  );

  it("is there after the session was closed and opened again", async () => {
    world.service.play([{ say: [WRITE] }]);
    await start();
    const { pending } = await agent.prompt("Write it.");
    const { sessionId } = agent;
    await agent.closeSession();
    agent = await RemoteAgent.attach({ connect: server.webSocket }, sessionId);
    world.closes(agent);
    expect(agent.state.pending).toEqual(pending);
  });

  it("is denied by a prompt after the restart, and does not run", async () => {
    world.service.play([{ say: [WRITE] }, { say: "I see." }]);
    await start();
    await agent.prompt("Write it.");
    await restart();
    expect((await agent.prompt("Never mind.")).stop).toBe("done");
    expect(existsSync(path("a.txt"))).toBe(false);
    expect((await sentResults(1))["c1"]).toContain("the user went on without deciding");
  });

  it("approved, not begun: runs without another question; begun: is not run again", async () => {
    world.service.play([{ say: [SLOW, WRITE] }, { say: "Done." }]);
    await start("--allow-unsandboxed");
    await agent.prompt("Do both.");
    begin(agent.approve({ slow: { type: "approve" }, c1: { type: "approve" } }));
    await vi.waitFor(() => expect(existsSync(path("ran.txt"))).toBe(true), PATIENCE);
    await restart("SIGKILL", "--allow-unsandboxed");
    expect(agent.state.pending).toEqual([]);
    const end = await agent.continue();
    expect(end.stop).toBe("done");
    const results = await sentResults(1);
    expect(results["slow"]).toContain("Whether it had effects is not known");
    expect(readFileSync(path("ran.txt"), "utf8")).toBe("ran\n");
    expect(readFileSync(path("a.txt"), "utf8")).toBe("tea\n");
  });
});

describe("a call that needs no approval", () => {
  it("begun: its effects are not known; never begun: it runs", async () => {
    world.service.play([{ say: [SLOW, WRITE] }, { say: "Done." }]);
    await start("--mode", "full", "--allow-unsandboxed");
    begin(agent.prompt("Do both."));
    await vi.waitFor(() => expect(existsSync(path("ran.txt"))).toBe(true), PATIENCE);
    await restart("SIGKILL", "--mode", "full", "--allow-unsandboxed");
    expect((await agent.continue()).stop).toBe("done");
    const results = await sentResults(1);
    expect(results["slow"]).toContain("Whether it had effects is not known");
    expect(results["c1"]).not.toContain("Not started");
    expect(readFileSync(path("a.txt"), "utf8")).toBe("tea\n");
    expect(readFileSync(path("ran.txt"), "utf8")).toBe("ran\n");
  });

  it("never begun: a prompt after the restart is newer, and it does not run", async () => {
    world.service.play([{ say: [SLOW, WRITE] }, { say: "Done." }]);
    await start("--mode", "full", "--allow-unsandboxed");
    begin(agent.prompt("Do both."));
    await vi.waitFor(() => expect(existsSync(path("ran.txt"))).toBe(true), PATIENCE);
    await restart("SIGKILL", "--mode", "full", "--allow-unsandboxed");
    expect((await agent.prompt("Never mind.")).stop).toBe("done");
    const results = await sentResults(1);
    expect(results["slow"]).toContain("Whether it had effects is not known");
    expect(results["c1"]).toContain("Not started");
    expect(existsSync(path("a.txt"))).toBe(false);
  });

  it("never begun: it needs approval now, and waits for it", async () => {
    world.service.play([{ say: [SLOW, WRITE] }, { say: "Done." }]);
    await start("--mode", "full", "--allow-unsandboxed");
    begin(agent.prompt("Do both."));
    await vi.waitFor(() => expect(existsSync(path("ran.txt"))).toBe(true), PATIENCE);
    await restart("SIGKILL", "--mode", "full", "--allow-unsandboxed");
    await agent.setPermissionMode("ask");
    const end = await agent.continue();
    expect(end).toMatchObject({ stop: "suspended", pending: [{ toolCall: { id: "c1" } }] });
    expect(existsSync(path("a.txt"))).toBe(false);
  });
});

describe("messages in the queues", () => {
  const texts = async (queue: QueueName): Promise<unknown[]> =>
    (await agent.queued(queue)).map(({ id, message }) => [
      id,
      (message as { content: unknown }).content,
    ]);

  it("acknowledged: wait under their ids after a restart, and are delivered once", async () => {
    world.service.play([{ silent: true }, { say: "One." }, { say: "Two." }, { say: "Three." }]);
    await start();
    begin(agent.prompt("Begin."));
    await world.service.asked(0);
    const steering = await agent.steer("Rather this.");
    const later = await agent.followUp("Then that.");
    await restart();
    expect(await texts("steering")).toEqual([[steering, "Rather this."]]);
    expect(await texts("followUp")).toEqual([[later, "Then that."]]);
    expect((await agent.continue()).stop).toBe("done");
    const prompts = agent.state.messages.filter(({ role }) => role === "user");
    expect(prompts.map((message) => (message as { content: unknown }).content)).toEqual([
      "Begin.",
      "Rather this.",
      "Then that.",
    ]);
    await restart();
    expect(await texts("steering")).toEqual([]);
    expect(await texts("followUp")).toEqual([]);
    expect(agent.state.messages.filter(({ role }) => role === "user")).toHaveLength(3);
    expect(await agent.steer("New.")).not.toBe(steering);
  });

  it("edited, moved, removed: are as the last ack said", async () => {
    world.service.play([{ silent: true }]);
    await start();
    begin(agent.prompt("Begin."));
    await world.service.asked(0);
    const a = await agent.followUp("A");
    const b = await agent.followUp("B");
    const c = await agent.followUp("C");
    expect(await agent.editQueued("followUp", b, "B2")).toBe(true);
    expect(await agent.moveQueued("followUp", c, 0)).toBe(true);
    await agent.takeQueued("followUp", a);
    await agent.steer("X");
    await agent.clearSteeringQueue();
    await restart();
    expect(await texts("followUp")).toEqual([
      [c, "C"],
      [b, "B2"],
    ]);
    expect(await texts("steering")).toEqual([]);
  });

  it("not acknowledged: wait at most once", async () => {
    world.service.play([{ silent: true }]);
    await start();
    begin(agent.prompt("Begin."));
    await world.service.asked(0);
    const before = await agent.steer("First.");
    begin(agent.steer("Second."));
    await restart();
    const waiting = await texts("steering");
    expect(waiting[0]).toEqual([before, "First."]);
    expect(waiting.length).toBeLessThanOrEqual(2);
  });
});
