import { estimateTokens, type ToolCall } from "@gyre/ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolEffects, ToolPresentation } from "../contract/presentation.ts";
import { classifyCall, collectFacts, formatFacts, fitFacts } from "./facts.ts";
import { tool, user } from "../testing/play.ts";
import type { AgentMessage, AgentTool } from "../contract/types.ts";

let made = 0;
const toolCall = (name: string, args: Record<string, unknown>): ToolCall => ({
  type: "toolCall",
  id: `c${++made}`,
  name,
  arguments: args,
});

function turn(text: string, calls: readonly ToolCall[] = [], isError = false): AgentMessage[] {
  return [
    {
      role: "assistant",
      api: "a",
      provider: "p",
      model: "m",
      usage: {},
      timestamp: 0,
      stopReason: calls.length > 0 ? "toolUse" : "stop",
      content: [{ type: "text", text }, ...calls],
    },
    ...calls.map((call): AgentMessage => ({
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: "text", text: "ok" }],
      isError,
      timestamp: 0,
    })),
  ];
}

const TOOLS: Readonly<Record<string, ToolPresentation>> = {
  edit: { kind: "edit", effects: ({ path }) => ({ changes: [String(path)] }) },
  write: { kind: "edit", effects: ({ path }) => ({ changes: [String(path)] }) },
  shell: { kind: "execute", effects: ({ command }) => ({ command: String(command) }) },
  read: { kind: "read", effects: () => ({ reads: true }) },
  broken: {
    kind: "other",
    effects() {
      throw new Error("no");
    },
  },
};

const findTool = (name: string): AgentTool | undefined => {
  const presentation = TOOLS[name];
  return presentation && tool(name, () => "", { presentation });
};
const classify = (call: ToolCall): ToolEffects => classifyCall(call, findTool);

describe("what a call does", () => {
  it.each([
    ["read", { path: "a.ts" }, { reads: true }],
    ["edit", { path: "a.ts" }, { changes: ["a.ts"] }],
    ["shell", { command: "npm test" }, { command: "npm test" }],
    ["broken", {}, {}],
    ["write_file_of_others", { path: "x" }, {}],
  ])("is what the tool says: %s %j", (name, args, expected) => {
    expect(classify(toolCall(name, args))).toEqual(expected);
  });
});

describe("facts", () => {
  it("are requests, files changed, decisions, commands and steps, behind those known before", () => {
    const first = collectFacts(
      [
        user("Now\nthe other"),
        ...turn("I look.\nDecision: two spaces.", [toolCall("edit", { path: "a.ts" })]),
        ...turn("It failed.", [toolCall("write", { path: "no.ts" })], true),
      ],
      undefined,
      classify,
    );
    expect(first).toEqual({
      requests: ["Now the other"],
      changed: ["a.ts"],
      decisions: ["Decision: two spaces."],
      commands: [],
      steps: ["It failed."],
    });
    const second = collectFacts(
      [
        ...turn("We decided to stop.", [toolCall("shell", { command: "ls" })]),
        user("x".repeat(900)),
      ],
      first,
      classify,
    );
    expect(second.decisions).toEqual(["Decision: two spaces.", "We decided to stop."]);
    expect(second.commands).toEqual(["ls"]);
    expect(second.requests[1]).toHaveLength(900);
    expect(collectFacts([user("Next")], second, classify).requests[1]).toHaveLength(600);
    expect(formatFacts(first)).toBe(
      "Files changed:\n- a.ts\n\nDecisions:\n- Decision: two spaces.\n\nRequests of the user:\n- Now the other\n\nSteps:\n- It failed.",
    );
  });

  it("fit where they are put: the oldest go first", () => {
    const list = fc.array(fc.string({ maxLength: 80 }), { maxLength: 40 });
    const facts = fc.record({
      requests: list,
      changed: list,
      decisions: list,
      commands: list,
      steps: list,
    });
    fc.assert(
      fc.property(facts, fc.nat(600), (all, tokens) => {
        const fitted = fitFacts(all, tokens);
        expect(estimateTokens(formatFacts(fitted))).toBeLessThanOrEqual(tokens + 1);
        for (const name of ["requests", "changed", "decisions", "commands", "steps"] as const) {
          const { length } = fitted[name];
          expect(fitted[name]).toEqual(length === 0 ? [] : all[name].slice(-length));
        }
        expect(fitFacts(fitted, Number.POSITIVE_INFINITY)).toEqual(fitted);
      }),
    );
  });
});
