import type { AgentEvent } from "@gyre/agent";
import type { ToolResultMessage, UserMessage } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { headerProblems, nestingProblems, transcriptProblems } from "./checks.ts";

const PROMPT: UserMessage = { role: "user", content: "Dig.", timestamp: 0 };
const RESULT: ToolResultMessage = {
  role: "toolResult",
  toolCallId: "c1",
  toolName: "dig",
  content: [{ type: "text", text: "Done." }],
  isError: false,
  timestamp: 0,
};
const END: AgentEvent = {
  type: "agent_end",
  messages: [],
  stop: "done",
  turns: 1,
  usage: {},
  undelivered: [],
  pending: [],
};

describe("nestingProblems", () => {
  it("finds what begins twice, ends twice, or never ends", () => {
    expect(
      nestingProblems([
        { type: "agent_start" },
        { type: "turn_start" },
        { type: "message_start", message: PROMPT },
        { type: "message_start", message: RESULT },
        { type: "message_end", message: RESULT },
        { type: "turn_start" },
        { type: "message_end", message: PROMPT },
      ]),
    ).toEqual([
      "event message_start: outside a turn, or in another message",
      "event message_end: its call has not ended",
      "event turn_start: turns overlap",
      "event message_end: another message is open",
      "the run has no agent_end",
    ]);
  });

  it("finds nothing in a run that is well", () => {
    const events: AgentEvent[] = [
      { type: "agent_start" },
      { type: "turn_start" },
      { type: "tool_execution_start", toolCallId: "c1", toolName: "dig", args: {} },
      {
        type: "tool_execution_end",
        toolCallId: "c1",
        toolName: "dig",
        result: { content: [] },
        outcome: "ok",
        isError: false,
        durationMs: 0,
      },
      { type: "message_start", message: RESULT },
      { type: "message_end", message: RESULT },
    ];
    const answer = { ...PROMPT, role: "assistant" as const, content: [], api: "", provider: "" };
    const message = { ...answer, model: "", usage: {}, stopReason: "stop" as const };
    events.push({ type: "turn_end", message, toolResults: [RESULT] }, END);
    expect(nestingProblems(events)).toEqual([]);
  });
});

describe("transcriptProblems", () => {
  it("reports what services refuse", () => {
    expect(transcriptProblems([PROMPT, RESULT])).toEqual([
      'message 1: No call has the id "c1" of this result.',
    ]);
  });
});

describe("headerProblems", () => {
  it("wants the key in the one place where the service looks for it", () => {
    const type = { "content-type": "application/json" };
    const azure = { api: "openai-completions", provider: "azure-openai" };
    expect(headerProblems({ ...type, "api-key": "k" }, azure, "k")).toEqual([]);
    const headers = { ...type, authorization: "Bearer k" };
    expect(headerProblems(headers, azure, "k")).toEqual([
      "header authorization is Bearer k",
      "header api-key is undefined",
    ]);
    expect(headerProblems(headers, { ...azure, provider: "openai" }, "k")).toEqual([]);
  });
});
