import { call, fail, say, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent } from "./agent.ts";
import { emptyEventState, type EventState, reduceAgentState } from "./agent-state.ts";
import { Suspend } from "./contract/middleware.ts";
import type { AgentEvent } from "./contract/types.ts";
import { tool } from "./testing/play.ts";

/** The part of an agent's state that its events say. */
function readState(agent: Agent): EventState {
  const { messages, isStreaming, streamMessage, pendingToolCalls, ...rest } = agent.state;
  const { pending, error, usage, compaction } = rest;
  return {
    messages: [...messages],
    isStreaming,
    streamMessage,
    pendingToolCalls: new Set(pendingToolCalls),
    pending,
    error,
    usage,
    compaction,
  };
}

const message = { role: "user", content: "Hi", timestamp: 0 } as const;

describe("reduceAgentState", () => {
  it("follows an agent by its events alone, whatever they are", async () => {
    const script = scriptedModel([
      say("On it."),
      call("ok", {}),
      call("ask", {}),
      fail("The service is down.", { kind: "bad_request" }),
    ]);
    const agent = new Agent({
      protocol: script,
      initialState: { model: script.model, tools: [tool("ok"), tool("ask")] },
      context: {},
      middleware: [
        {
          async tool({ toolCall }, next) {
            if (toolCall.name === "ask") throw new Suspend("May I?");
            return next();
          },
        },
      ],
    });
    let state: EventState = { ...emptyEventState(), messages: [] };
    const differing: string[] = [];
    agent.subscribe((event) => {
      state = reduceAgentState(state, event);
      // The agent itself is idle only when the listeners of the last event are done.
      const expected = { ...readState(agent), isStreaming: event.type !== "agent_end" };
      try {
        expect(state).toEqual(expected);
      } catch {
        differing.push(event.type);
      }
    });
    await agent.prompt("Go");
    await agent.prompt("Again");
    expect(state.pending.map(({ toolCall }) => toolCall.name)).toEqual(["ask"]);
    await agent.compact();
    await agent.prompt("Once more");
    expect(state.error).toContain("The service is down.");
    expect(state.compaction).toBe(agent.state.compaction);
    expect(differing).toEqual([]);
    expect(state).toEqual(readState(agent));
  });

  it("gives the same state for a delta of the message that is being streamed", async () => {
    const script = scriptedModel([say("Some words in several deltas.")]);
    const agent = new Agent({ protocol: script, initialState: { model: script.model } });
    let state = emptyEventState();
    const changed: boolean[] = [];
    agent.subscribe((event) => {
      const next = reduceAgentState(state, event);
      if (event.type === "message_update") changed.push(next !== state);
      state = next;
    });
    await agent.prompt("Go");
    expect(changed.length).toBeGreaterThan(1);
    expect(changed).not.toContain(true);
  });

  it("keeps no messages where the state has no list", () => {
    const state = reduceAgentState(emptyEventState(), { type: "message_end", message });
    expect(state.messages).toBeUndefined();
  });

  it("does not change the state before", () => {
    const before = emptyEventState();
    const kept = structuredClone(before);
    const events: AgentEvent[] = [
      { type: "agent_start" },
      { type: "tool_execution_start", toolCallId: "1", toolName: "ok", args: {} },
    ];
    const after = events.reduce<EventState>(reduceAgentState, before);
    expect(before).toEqual(kept);
    expect([...after.pendingToolCalls]).toEqual(["1"]);
    expect(after.isStreaming).toBe(true);
  });
});
