import type { AgentEvent } from "@gyre/agent";
import { type AssistantMessage } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ScreenReaderEvents } from "./events.ts";
import { endLines } from "./tool.ts";

function render(...events: readonly AgentEvent[]): string[] {
  const lines: string[] = [];
  const shown = new ScreenReaderEvents((text) => lines.push(text));
  for (const event of events) shown.handle(event);
  return lines;
}

function answer(content: AssistantMessage["content"]): AssistantMessage {
  return {
    role: "assistant",
    content,
    api: "scripted",
    provider: "scripted",
    model: "scripted",
    usage: {},
    stopReason: "stop",
    timestamp: 0,
  };
}

function started(toolCallId: string, path: string): AgentEvent {
  return { type: "tool_execution_start", toolCallId, toolName: "read", args: { path } };
}

function ended(toolCallId: string, text: string, more: { isError?: boolean } = {}): AgentEvent {
  return {
    type: "tool_execution_end",
    toolCallId,
    toolName: "read",
    result: { content: [{ type: "text", text }] },
    outcome: more.isError === true ? "error" : "ok",
    isError: false,
    durationMs: 1_500,
    ...more,
  };
}

describe("what is written of events", () => {
  it("R22: a wait for the next attempt is reported once, and not each second", () => {
    const retry = { type: "retry", delayMs: 12_000, kind: "overloaded" } as const;
    const lines = render({ ...retry, attempt: 2, maxAttempts: 10, errorMessage: "It is busy." });
    expect(lines).toEqual(["Asking again in 12.0 s (3 of 10): It is busy."]);
  });

  it("an error of a service is a sentence", () => {
    const to = { ...scriptedModelInfo, provider: "p", id: "other" };
    expect(
      render(
        {
          type: "retry",
          attempt: 1,
          delayMs: 2_000,
          kind: "overloaded",
          errorMessage: "It is busy.",
        },
        {
          type: "fallback",
          from: scriptedModelInfo,
          to,
          kind: "overloaded",
          errorMessage: "It is busy.",
        },
      ),
    ).toEqual(["Asking again in 2.0 s: It is busy.", "Asking p/other instead: It is busy."]);
  });

  it("a long silence is reported, a short one is not", () => {
    const phase = "thinking";
    expect(
      render(
        { type: "waiting", phase, silentMs: 30_000 },
        { type: "waiting", phase, silentMs: 60_000 },
      ),
    ).toEqual(["The model is thinking, 1 min 0 s"]);
  });

  it("a smaller context and a limit are sentences", () => {
    expect(
      render(
        {
          type: "compaction",
          before: 12_000,
          after: 3_000,
          reason: "budget",
          compaction: { from: 0, to: 0 },
        },
        { type: "limit", limit: "maxTurns", value: 20 },
      ),
    ).toEqual([
      "The context was made smaller: from 12,000 to 3,000 tokens.",
      "It is stopped by a limit: turns, 20.",
    ]);
  });

  it("calls that run at once are distinguished when they end", () => {
    expect(
      render(started("1", "a.ts"), started("2", "b.ts"), ended("2", "x"), ended("1", "y")),
    ).toEqual([
      "Running read: a.ts",
      "Running read: b.ts",
      "Done: read b.ts, 1.5 seconds.",
      "x",
      "Done: read a.ts, 1.5 seconds.",
      "y",
    ]);
  });

  it("the time that a call waits for the user is not its own", () => {
    const lines: string[] = [];
    const shown = new ScreenReaderEvents((text) => lines.push(text));
    shown.handle(started("1", "a.ts"));
    shown.waited("1", 1_000);
    shown.handle(ended("1", ""));
    expect(lines.at(-1)).toBe("Done: read, 0.5 seconds.");
  });

  it("the lines of a result are read as they are", () => {
    const result = { content: [{ type: "text" as const, text: "✔ a (1 ms)\nℹ pass 1" }] };
    const call = { tool: "other", result, outcome: "ok" as const, durationMs: 0 };
    expect(endLines("other", call)).toEqual(["Done: other.", "✔ a (1 ms)", "ℹ pass 1"]);
  });

  it("a call that failed says so, with at most eight lines", () => {
    const text = Array.from({ length: 12 }, (_, index) => `line ${index}`).join("\n");
    const lines = render(started("1", "a.ts"), ended("1", text, { isError: true }));
    expect(lines[1]).toBe("Failed: read, 1.5 seconds.");
    expect(lines.slice(2)).toHaveLength(9);
    expect(lines.at(-1)).toBe("4 more lines.");
  });

  it("an answer that came all at once is written whole", () => {
    const message = answer([{ type: "text", text: "One.\n\nTwo." }]);
    expect(render({ type: "message_start", message }, { type: "message_end", message })).toEqual([
      "Agent: One.",
      "\nTwo.",
    ]);
  });

  it("R22: a turn that follows an answer that broke off says so, once", () => {
    const message = { ...answer([]), stopReason: "error" as const, errorMessage: "It broke." };
    expect(
      render(
        { type: "agent_start" },
        { type: "message_start", message },
        { type: "message_end", message },
        { type: "turn_end", message, toolResults: [] },
        { type: "turn_start" },
        { type: "turn_start" },
      ),
    ).toEqual(["Error: It broke.", "Asking again."]);
  });

  it("of nothing that a model or a tool says, anything is left that a terminal obeys", () => {
    const parts = fc.constantFrom(
      "\x1b[2J",
      "\x1b]0;t\x07",
      "\x9b",
      "\r",
      "a",
      "\n",
      "\x00",
      "\x7f",
    );
    const text = fc.array(parts).map((all) => all.join(""));
    fc.assert(
      fc.property(text, text, (words, gave) => {
        const message = answer([{ type: "text", text: words }]);
        const lines = render(
          { type: "message_start", message },
          { type: "message_end", message },
          started("1", words),
          ended("1", gave),
        );
        // oxlint-disable-next-line no-control-regex
        expect(lines.join("")).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f\x9b]/);
      }),
    );
  });
});
