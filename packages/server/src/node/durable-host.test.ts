import type { AgentEvent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { callAll } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { RemoteAgent } from "../client/remote-agent.ts";
import {
  createDurableWorld,
  type DurableWorld,
  officeAgent,
  textTool,
} from "../testing/durable-world.ts";

let world: DurableWorld;
afterEach(() => world.close());

/** Settles when a tool runs. */
function waitForCall(agent: RemoteAgent): Promise<void> {
  return new Promise((resolve) => {
    agent.subscribe(({ type }) => {
      if (type === "tool_execution_start") resolve();
    });
  });
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
    expect(events.map(({ type }) => type)).toEqual([
      ...["agent_start", "turn_start", "message_start", "message_end"],
      ...["message_start", "message_end", "tool_execution_start", "tool_execution_end"],
      ...["message_start", "message_end", "turn_end"],
      ...["turn_start", "message_start", "message_end", "turn_end", "agent_end"],
    ]);
    expect(front.errors).toEqual([]);
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
