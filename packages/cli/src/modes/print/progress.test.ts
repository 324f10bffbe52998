import type { AgentEvent } from "@gyre/agent";
import { describe, expect, it } from "vitest";
import type { DeniedCall } from "@gyre/coding/internal/harness/harness";
import { Progress } from "./progress.ts";

const REASON =
  'it needs an approval, and no person can be asked here. In mode "ask" "write" is asked about.';

function shown(
  work: (progress: Progress, denied: DeniedCall[]) => void,
  { isTTY = false, quiet = false } = {},
): string {
  let out = "";
  const denied: DeniedCall[] = [];
  work(new Progress({ write: (text) => (out += text), isTTY }, { quiet, denied }), denied);
  return out;
}

function denial(tool: string, rule?: string): DeniedCall {
  const about = { toolCallId: "c1", tool, reason: REASON, summary: "Does it" };
  return { ...about, ...(rule !== undefined && { rule }) };
}

/** The event of a call that failed. */
function failedCall(progress: Progress): void {
  const about = { toolCallId: "c1", toolName: "write" };
  progress.take({ type: "tool_execution_start", ...about, args: { path: "x.txt" } });
  progress.take({
    type: "tool_execution_end",
    ...about,
    result: { content: [] },
    outcome: "error",
    isError: true,
    durationMs: 7,
  });
}

describe("a call", () => {
  it("that was denied says so and why, on a terminal", () => {
    const out = shown(
      (progress, denied) => {
        denied.push(denial("write"));
        failedCall(progress);
      },
      { isTTY: true },
    );
    expect(out).toBe(
      "gyre: ✗ write  x.txt  denied: it needs an approval, and no person can be asked here.\n",
    );
  });

  it("that failed otherwise says how long it took", () => {
    expect(shown(failedCall, { isTTY: true })).toBe("gyre: ✗ write  x.txt  7 ms\n");
  });
});

describe("the end", () => {
  function atEnd(calls: readonly DeniedCall[], mode = "ask", options = {}): string {
    return shown((progress, denied) => {
      denied.push(...calls);
      progress.end(mode);
    }, options);
  }

  it("says nothing where nothing was denied, or --quiet is there", () => {
    expect(atEnd([])).toBe("");
    expect(atEnd([denial("write")], "ask", { quiet: true })).toBe("");
  });

  it.each([
    [
      [denial("write", "write(x.txt)")],
      "1 call was denied: write. To allow that: --mode auto-edit.",
    ],
    [
      [denial("write", "write(x)"), denial("shell", "shell(npm test)")],
      "2 calls were denied: write, shell. To allow that: --mode auto-edit --allow 'shell(npm test)'.",
    ],
    [[denial("shell")], "1 call was denied: shell. See --mode and --allow."],
    [
      [denial("shell"), denial("mcp__a__b", "mcp__a__b")],
      "2 calls were denied: shell, mcp__a__b. To allow that: --allow mcp__a__b. See --mode and --allow.",
    ],
    // What is pasted into a shell must not become a command there.
    [
      [denial("fetch", "fetch(http://a';id;'/**)")],
      String.raw`1 call was denied: fetch. To allow that: --allow 'fetch(http://a'\'';id;'\''/**)'.`,
    ],
  ])("names what was denied and what would allow it: %j", (calls, text) => {
    expect(atEnd(calls)).toBe(`gyre: ${text}\n`);
    expect(atEnd(calls, "ask", { isTTY: true })).toBe(`gyre: ${text}\n`);
  });

  it("names neither modes nor rules for what a hook refused", () => {
    const refused = { toolCallId: "c1", tool: "write", reason: "Not today." };
    expect(atEnd([refused])).toBe("gyre: 1 call was denied: write.\n");
  });

  it("names the rule of an edit where the mode would not do", () => {
    expect(atEnd([denial("write", "write(x)")], "auto-edit")).toContain("--allow 'write(x)'");
  });
});

describe("a failure of a service", () => {
  const model = { provider: "there", id: "m" };
  const broken = "The response broke off (ECONNRESET).";
  const events: [AgentEvent, string][] = [
    [
      { type: "waiting", phase: "call", toolName: "write", silentMs: 60_000 },
      "The model is preparing a call of write, 1 min 0 s",
    ],
    [{ type: "waiting", phase: "response", silentMs: 120_000 }, "Waiting for the model, 2 min 0 s"],
    [
      {
        type: "retry",
        attempt: 1,
        delayMs: 500,
        errorMessage: `${broken} Try again.`,
      } as AgentEvent,
      `Asking again at once: ${broken} Try again.`,
    ],
    [
      {
        type: "retry",
        attempt: 1,
        maxAttempts: 10,
        delayMs: 4_000,
        errorMessage: "There is overloaded. Try again in a while, or use another model.",
      } as AgentEvent,
      "Asking again in 4.0 s (2 of 10): There is overloaded. Try again in a while, or use another model.",
    ],
    [
      {
        type: "fallback",
        from: model,
        to: model,
        errorMessage: `${broken} Try again.`,
      } as AgentEvent,
      `Asking there/m instead: ${broken} Try again.`,
    ],
  ];
  it.each(events)("is reported on one line: %j", (event, text) => {
    expect(shown((progress) => progress.take(event))).toBe(`gyre: ${text}\n`);
  });
});
