import { Agent, type AgentEvent, defineTool } from "@gyre/agent";
import { call, fail, say, scriptedModel, stall, think } from "@gyre/ai/testing";
import { describe, expect, it, vi } from "vitest";
import { createManualFrames } from "../testing/frames.ts";
import { PlayedAgent } from "../testing/played-agent.ts";
import { createAgentStore } from "./agent-store.ts";

const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
  execute: ({ a = 0, b = 0 }) => a + b,
});

const refund = defineTool({
  name: "refund",
  description: "Refunds.",
  parameters: { type: "object", properties: { euros: { type: "number" } } },
  needsApproval: true,
  execute: ({ euros = 0 }) => ({ refunded: euros }),
});

function createWorld(script: Parameters<typeof scriptedModel>[0]) {
  const model = scriptedModel(script);
  const agent = new Agent({
    model: model.model,
    protocol: model,
    tools: [add, refund],
    retry: { maxRetries: 0 },
  });
  const frames = createManualFrames();
  const store = createAgentStore<typeof add | typeof refund>(agent, { schedule: frames.schedule });
  return { agent, frames, store };
}

describe("a local agent", () => {
  it("shows a prompt at once, and the answer with its calls and their results", async () => {
    const { frames, store } = createWorld([
      [think("Hm."), call("add", { a: 1, b: 2 }, "c1")],
      "It is 3.",
    ]);
    store.subscribe(() => {});
    const sent = store.prompt("1 + 2?");
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({
      status: "running",
      messages: [{ id: "m0", role: "user", state: "pending", parts: [{ text: "1 + 2?" }] }],
    });
    await sent;
    frames.draw();
    const { messages, status, usage } = store.getSnapshot();
    expect(status).toBe("idle");
    expect(usage).toEqual({});
    expect(messages.map(({ id, role, state }) => `${id} ${role} ${state}`)).toEqual([
      "m0 user done",
      "m1 assistant done",
      "m2 assistant done",
    ]);
    expect(messages[1]?.parts).toEqual([
      { type: "reasoning", text: "Hm.", state: "done" },
      {
        ...{ type: "tool", id: "c1", name: "add", input: { a: 1, b: 2 } },
        ...{ state: "output-available", output: 3 },
      },
    ]);
  });

  it("sends answers to calls when all that wait have one", async () => {
    const { frames, store } = createWorld([
      [call("refund", { euros: 5 }, "c1"), call("refund", { euros: 7 }, "c2")],
      "Done.",
    ]);
    store.subscribe(() => {});
    await store.prompt("It came broken.");
    frames.draw();
    expect(store.getSnapshot().status).toBe("waiting");
    expect(store.getSnapshot().approvals.map(({ toolCall }) => toolCall.id)).toEqual(["c1", "c2"]);
    await store.approve("c1", { args: { euros: 6 } });
    frames.draw();
    const states = (): unknown[] =>
      (store.getSnapshot().messages[1]?.parts ?? []).map((part) =>
        part.type === "tool" ? part.state : part.type,
      );
    expect(states()).toEqual(["approval-responded", "approval-requested"]);
    expect(store.getSnapshot().approvals).toHaveLength(1);
    await store.deny("c2", "too much");
    frames.draw();
    expect(states()).toEqual(["output-available", "output-denied"]);
    expect(store.getSnapshot()).toMatchObject({ status: "idle", approvals: [] });
    expect(store.getSnapshot().messages[1]?.parts[0]).toMatchObject({ output: { refunded: 6 } });
    await store.approve("c1");
    frames.draw();
    expect(store.getSnapshot().error).toBe('No call "c1" waits for an answer.');
  });

  it("keeps the text of a prompt that was not sent, and sends it again", async () => {
    const { agent, frames, store } = createWorld(["Green."]);
    store.subscribe(() => {});
    const failing = vi.spyOn(agent, "prompt").mockRejectedValue(new Error("No network."));
    await store.prompt("Which tea?");
    frames.draw();
    const [message] = store.getSnapshot().messages;
    expect(message).toMatchObject({ state: "failed", error: "No network." });
    expect(message?.parts).toEqual([{ type: "text", text: "Which tea?", state: "done" }]);
    failing.mockRestore();
    await store.retry(message?.id);
    frames.draw();
    expect(store.getSnapshot().messages.map(({ state }) => state)).toEqual(["done", "done"]);
  });

  it("queues prompts while it runs, and takes them back", async () => {
    const { frames, store } = createWorld([[say("Well"), stall()], "Later."]);
    store.subscribe(() => {});
    const first = store.prompt("Go.");
    await vi.waitFor(() => {
      frames.draw();
      expect(store.getSnapshot().messages[1]?.state).toBe("streaming");
    });
    await store.prompt("And then?");
    await store.steer("Stop that.");
    frames.draw();
    const { queue } = store.getSnapshot();
    expect(queue.map(({ queue: name, text }) => `${name}: ${text}`)).toEqual([
      "steering: Stop that.",
      "followUp: And then?",
    ]);
    expect(await store.takeBack(queue[0]?.id ?? "")).toBe("Stop that.");
    frames.draw();
    expect(store.getSnapshot().queue).toHaveLength(1);
    await store.abort();
    await first;
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({ status: "idle", error: undefined });
    expect(store.getSnapshot().messages[1]?.state).toBe("aborted");
  });

  it("starts a run on a prompt that comes between the end of a run and an idle agent", async () => {
    const { agent, frames, store } = createWorld(["One.", "Two."]);
    let settle = (): void => {};
    const stop = agent.subscribe(({ type }) => {
      if (type === "agent_end") return new Promise((resolve) => (settle = resolve));
      return undefined;
    });
    store.subscribe(() => {});
    const first = store.prompt("First.");
    await vi.waitFor(() => {
      frames.draw();
      expect(store.getSnapshot().messages.at(-1)?.parts).toMatchObject([{ text: "One." }]);
    });
    expect(store.getSnapshot().status).toBe("running");
    const second = store.prompt("Second.");
    stop();
    settle();
    await Promise.all([first, second]);
    await vi.waitFor(() => {
      frames.draw();
      expect(store.getSnapshot()).toMatchObject({ status: "idle", queue: [], error: undefined });
      expect(store.getSnapshot().messages).toHaveLength(4);
    });
  });

  it("approves what it has shown, and nothing else", async () => {
    const agent = new PlayedAgent();
    const frames = createManualFrames();
    const store = createAgentStore(agent, frames);
    const toolCall = { type: "toolCall", id: "c1", name: "refund", arguments: {} } as const;
    const pending = [{ toolCall, reason: "It costs.", fingerprint: "of 5 euros" }];
    const totals = { messages: [], turns: 1, usage: {}, undelivered: [] };
    store.subscribe(() => {});
    agent.play({ type: "agent_end", stop: "suspended", pending, ...totals });
    frames.draw();
    await store.approve("c1");
    const decisions = { c1: { type: "approve", fingerprint: "of 5 euros" } };
    expect(agent.continued).toEqual([{ decisions }]);
    await store.close();
  });

  it("says why nothing arrives, until something does", () => {
    const agent = new PlayedAgent();
    const frames = createManualFrames();
    const store = createAgentStore(agent, frames);
    store.subscribe(() => {});
    const play = (event: AgentEvent): unknown => {
      agent.play(event);
      frames.draw();
      return store.getSnapshot().notice?.type;
    };
    play({ type: "agent_start" });
    const failure = { kind: "overloaded", errorMessage: "Full." };
    expect(play({ type: "retry", attempt: 1, delayMs: 5, ...failure })).toBe("retry");
    const model = { provider: "played", id: "tea" };
    expect(play({ type: "fallback", from: model, to: model, ...failure })).toBe("fallback");
    expect(play({ type: "waiting", phase: "response", silentMs: 15_000 })).toBe("waiting");
    const totals = { messages: [], turns: 1, usage: {}, undelivered: [], pending: [] };
    expect(play({ type: "agent_end", stop: "done", ...totals })).toBe(undefined);
  });

  it("shows why a run failed", async () => {
    const { frames, store } = createWorld([fail("Full.", { kind: "overloaded" }), "Green."]);
    store.subscribe(() => {});
    await store.prompt("Which tea?");
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({ status: "failed", error: "Full." });
    expect(store.getSnapshot().messages[1]).toMatchObject({
      state: "failed",
      parts: [{ type: "error", text: "Full.", kind: "overloaded" }],
    });
    await store.retry();
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({ status: "idle", error: undefined });
  });
});
