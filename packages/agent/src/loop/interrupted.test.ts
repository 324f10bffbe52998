import type { AssistantMessage, Usage } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import type { AgentLoopConfig, InterruptedRun } from "../contract/types.ts";
import { anAnswer, asked, makeResult } from "../testing/messages.ts";
import { play, tool, user } from "../testing/play.ts";
import { ran } from "../testing/render.ts";

const one: InterruptedRun = { turns: 1, usage: { input: 10, output: 5 }, durationMs: 1_000 };

describe("R23: limits hold over a restart", () => {
  const resumed = (
    interrupted: InterruptedRun,
    limits: AgentLoopConfig["limits"],
    config: Partial<AgentLoopConfig> = {},
    usage: Usage = {},
  ): ReturnType<typeof play> =>
    play({
      messages: [user("A"), asked("x1"), makeResult("x1")],
      prompts: [],
      script: () => ({ parts: ["B"], usage }),
      tools: [tool("x", () => "ok")],
      config: { interrupted, ...(limits && { limits }), ...config },
    });

  it.each<[string, AgentLoopConfig["limits"]]>([
    ["maxTurns", { maxTurns: 1 }],
    ["maxTotalTokens", { maxTotalTokens: 15 }],
    ["maxDurationMs", { maxDurationMs: 1_000 }],
  ])(
    "R23: %s that was reached before a crash ends the run, with no request",
    async (limit, limits) => {
      const { end, model } = await resumed(one, limits);
      expect(end).toMatchObject({ stop: "limit", limit, turns: 1, usage: one.usage });
      expect(model.requests).toBe(0);
    },
  );

  it("R23: maxCostUsd that was reached before a crash ends the run", async () => {
    const usage = { ...one.usage, cost: { total: 2 } };
    const priced = {
      id: "m",
      name: "m",
      api: "scripted",
      provider: "p",
      price: { input: 1, output: 1 },
    };
    const { end, model } = await resumed({ ...one, usage }, { maxCostUsd: 2 }, { model: priced });
    expect(end).toMatchObject({ stop: "limit", limit: "maxCostUsd" });
    expect(model.requests).toBe(0);
  });

  it("R23: what is left is spent, and turns and usage are those of the whole run", async () => {
    const { end, model } = await resumed(one, { maxTurns: 2 }, {}, { input: 3, output: 1 });
    expect(end).toMatchObject({ stop: "done", turns: 2, usage: { input: 13, output: 6 } });
    expect(model.requests).toBe(1);
  });

  it("R23: tokens that were estimated are given as such", async () => {
    const { end } = await resumed({ ...one, usage: {}, tokens: 100 }, { maxTotalTokens: 100 });
    expect(end.limit).toBe("maxTotalTokens");
  });

  it("R23: calls that never began run before the limit ends the run, as in their turn", async () => {
    const { end, lines, model } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      tools: [tool("x", () => "ran")],
      config: { interrupted: one, limits: { maxTurns: 1 }, unfinished: () => "not begun" },
    });
    expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "ran"'));
    expect(end.stop).toBe("limit");
    expect(model.requests).toBe(0);
  });

  it("R23: time goes on where it was", async () => {
    const { end } = await play(
      {
        messages: [user("A"), asked("x1")],
        prompts: [],
        tools: [
          tool(
            "x",
            (_, { signal }) =>
              new Promise((_resolve, reject) =>
                signal.addEventListener("abort", () => reject(new Error("stopped"))),
              ),
          ),
        ],
        config: {
          interrupted: one,
          limits: { maxDurationMs: 1_500 },
          unfinished: () => "not begun",
        },
      },
      500,
    );
    expect(end).toMatchObject({ stop: "limit", limit: "maxDurationMs" });
  });
});

describe("R28: a turn that a crash cut off is brought to its end", () => {
  it("R28: terminate ends the run, whichever results had their message", async () => {
    const { end, model, events } = await play({
      messages: [user("A"), asked("x1", "x2"), makeResult("x1")],
      prompts: [],
      config: {
        interrupted: { ...one, terminated: ["x1"] },
        unfinished: () => ({ content: [{ type: "text", text: "bye" }], terminate: true }),
      },
    });
    expect(end).toMatchObject({ stop: "terminated", turns: 1 });
    expect(model.requests).toBe(0);
    const turn = events.find(({ type }) => type === "turn_end");
    expect(
      turn?.type === "turn_end" && turn.toolResults.map(({ toolCallId }) => toolCallId),
    ).toEqual(["x1", "x2"]);
  });

  it("R28: one result without terminate, and the model is asked", async () => {
    const { end } = await play({
      messages: [user("A"), asked("x1", "x2"), makeResult("x1"), makeResult("x2")],
      prompts: [],
      script: ["B"],
      config: { interrupted: { ...one, terminated: ["x1"] } },
    });
    expect(end).toMatchObject({ stop: "done", turns: 2 });
  });

  it("R28: a prompt is answered, whatever the results before it said", async () => {
    const { end } = await play({
      messages: [user("A"), asked("x1"), makeResult("x1")],
      script: ["B"],
      config: { interrupted: { ...one, terminated: ["x1"] } },
    });
    expect(end.stop).toBe("done");
  });

  it("R28: a call that a person approved ends the run, if its result says so", async () => {
    const { end, model } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      tools: [tool("x", () => ({ content: [{ type: "text", text: "bye" }], terminate: true }))],
      config: { decisions: { x1: { type: "approve" } } },
    });
    expect(end.stop).toBe("terminated");
    expect(model.requests).toBe(0);
  });

  it("R28: shouldStopAfterTurn is asked about it, with all of its results", async () => {
    const seen: unknown[] = [];
    const { end } = await play({
      messages: [user("A"), asked("x1"), makeResult("x1")],
      prompts: [],
      config: {
        interrupted: one,
        shouldStopAfterTurn: ({ turns, toolResults, usage }) => {
          seen.push([turns, toolResults.length, usage]);
          return true;
        },
      },
    });
    expect(end.stop).toBe("stopped");
    expect(seen).toEqual([[1, 1, one.usage]]);
  });

  it("R23: a limit that was reached keeps what waits in its queue from being delivered", async () => {
    const queue = [user("More")];
    const { end, model } = await play({
      messages: [user("A"), asked("x1"), makeResult("x1")],
      prompts: [],
      config: {
        interrupted: one,
        limits: { maxTurns: 1 },
        getFollowUpMessages: () => queue.splice(0),
        hasQueuedMessages: () => queue.length > 0,
      },
    });
    expect(end.stop).toBe("limit");
    expect([queue.length, model.requests]).toEqual([1, 0]);
  });

  it("R7: an answer that paused is continued", async () => {
    const paused: AssistantMessage = { ...anAnswer, stopReason: "pause" };
    const { end } = await play({
      messages: [user("A"), paused],
      prompts: [],
      script: ["B"],
      config: { interrupted: one },
    });
    expect(end).toMatchObject({ stop: "done", turns: 2 });
  });

  it("R19: an answer that was cut off is asked for in the turn that it belongs to", async () => {
    const { end } = await play({
      messages: [user("A")],
      prompts: [],
      script: ["B"],
      config: { interrupted: { turns: 0, usage: {}, durationMs: 0 } },
    });
    expect(end).toMatchObject({ stop: "done", turns: 1 });
  });
});
