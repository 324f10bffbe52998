import type { ToolOutcome, ToolResultMessage } from "@gyre/ai";
import { call, callAll, type ScriptStep } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { approval } from "../contract/middleware.ts";
import type { AgentEvent, AgentMessage } from "../contract/types.ts";
import { play, type Setup, tool, user } from "../testing/play.ts";

/** How each call ended, from the events, after a look that the messages say the same. */
async function listEnds(
  setup: Setup,
  ms = 0,
): Promise<{ outcome: ToolOutcome; reason: string | undefined }[]> {
  const { events, end } = await play(setup, ms);
  const ends = events.filter(
    (event): event is Extract<AgentEvent, { type: "tool_execution_end" }> =>
      event.type === "tool_execution_end",
  );
  const results = end.messages.filter(
    (message: AgentMessage): message is ToolResultMessage => message.role === "toolResult",
  );
  expect(results.map(pick)).toEqual(ends.map(pick));
  for (const { outcome, isError } of [...ends, ...results]) expect(isError).toBe(outcome !== "ok");
  return ends.map(pick);
}

function pick({ outcome, reason }: Pick<ToolResultMessage, "outcome" | "reason">): {
  outcome: ToolOutcome;
  reason: string | undefined;
} {
  if (outcome === undefined) throw new Error("A result without an outcome.");
  return { outcome, reason };
}

const calling = (...names: string[]): ScriptStep[] => [callAll(names), "Done."];

describe("R9: every result says how its call ended", () => {
  it("ok, without a reason", async () => {
    const ends = await listEnds({ script: calling("x"), tools: [tool("x")] });
    expect(ends).toEqual([{ outcome: "ok", reason: undefined }]);
  });

  it("error, with the message that was thrown", async () => {
    const broken = tool("x", () => {
      throw new Error("The disk is full.");
    });
    const ends = await listEnds({ script: calling("x"), tools: [broken] });
    expect(ends).toEqual([{ outcome: "error", reason: "The disk is full." }]);
  });

  it("error where the tool says so, and what else it says", async () => {
    const failing = tool("x", () => ({ content: [], isError: true }));
    const late = tool("y", () => ({ content: [], outcome: "timeout", reason: "It took 3 s." }));
    const ends = await listEnds({ script: calling("x", "y"), tools: [failing, late] });
    expect(ends).toEqual([
      { outcome: "error", reason: undefined },
      { outcome: "timeout", reason: "It took 3 s." },
    ]);
  });

  it("denied, with the reason alone", async () => {
    const ends = await listEnds({
      script: calling("x"),
      tools: [tool("x")],
      config: { middleware: [approval(() => ({ deny: "Not on a Friday." }))] },
    });
    expect(ends).toEqual([{ outcome: "denied", reason: "Not on a Friday." }]);
  });

  it("invalid, unknown_tool", async () => {
    const typed = tool("x", () => "x", {
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    const ends = await listEnds({ script: calling("x", "nothing"), tools: [typed] });
    expect(ends.map(({ outcome }) => outcome)).toEqual(["invalid", "unknown_tool"]);
  });

  it("timeout", async () => {
    const script = calling("x");
    const slow = tool("x", () => new Promise(() => {}), { timeoutMs: 5 });
    expect((await listEnds({ script, tools: [slow] }, 5)).map(({ outcome }) => outcome)).toEqual([
      "timeout",
    ]);
  });

  it("skipped by a steering message", async () => {
    const queue = [[], [user("Stop that.")], []];
    const ends = await listEnds({
      script: calling("x", "x"),
      tools: [tool("x")],
      config: { getSteeringMessages: () => queue.shift() },
    });
    expect(ends.map(({ outcome }) => outcome)).toEqual(["ok", "skipped"]);
  });

  it("aborted where the user stops the run, running or not begun", async () => {
    const controller = new AbortController();
    const stopping = tool("x", (_args, { signal }) => {
      controller.abort();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
        if (signal.aborted) reject(new Error("stopped"));
      });
    });
    const ends = await listEnds(
      {
        script: calling("x", "x"),
        tools: [stopping],
        signal: controller.signal,
      },
      1_000,
    );
    expect(ends).toEqual([
      { outcome: "aborted", reason: "the user stopped the run while it was running" },
      { outcome: "aborted", reason: "the user stopped the run before it was started" },
    ]);
  });

  it("limit where the same call gave the same result too often", async () => {
    const script = [call("x"), call("x"), call("x"), call("x"), "Done."];
    const ends = await listEnds({
      script,
      tools: [tool("x")],
      config: { limits: { maxIdenticalCalls: 3 } },
    });
    expect(ends.map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok", "limit"]);
  });

  it("truncated where the response was cut off at its length limit", async () => {
    const script: ScriptStep[] = [[{ parts: [call("x")], stopReason: "length" }], "Done."];
    const ends = await listEnds({ script, tools: [tool("x")] });
    expect(ends.map(({ outcome }) => outcome)).toEqual(["truncated"]);
  });

  it("interrupted where the process ended while it ran", async () => {
    const { end } = await play({ script: calling("x"), tools: [tool("x")] });
    const messages = end.messages.slice(0, 2);
    const ends = await listEnds({
      messages,
      prompts: [user("Go on.")],
      script: ["Done."],
      tools: [tool("x")],
    });
    expect(ends.map(({ outcome }) => outcome)).toEqual(["interrupted"]);
  });
});
