import type { AssistantMessage } from "@gyre/ai";
import { call, fail, say, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent } from "./agent.ts";
import type { AgentState } from "./options.ts";
import { EventState } from "./state.ts";
import { Suspend } from "../contract/middleware.ts";
import type { AgentMessage } from "../contract/types.ts";
import { asked, makeResult } from "../testing/messages.ts";
import { tool, user } from "../testing/play.ts";

/** The part of a state that events say. */
function pickEventState(state: AgentState | EventState): Record<string, unknown> {
  const { messages, isStreaming, streamMessage, pendingToolCalls, ...rest } = state;
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

/** A message with so many calls, which counts how often its content is read. */
function manyCalls(count: number): { message: AssistantMessage; reads: () => number } {
  let reads = 0;
  const ids = Array.from({ length: count }, (_, index) => `c${index}`);
  const { content, ...message } = asked(...ids);
  return {
    message: {
      ...message,
      get content() {
        reads++;
        return content;
      },
    },
    reads: () => reads,
  };
}

describe("EventState", () => {
  it("follows an agent by its events alone, whatever they are", async () => {
    const script = scriptedModel([
      say("On it."),
      call("ok", {}),
      call("ask", {}),
      fail("The service is down.", { kind: "bad_request" }),
    ]);
    const agent = new Agent({
      protocol: script,
      model: script.model,
      tools: [tool("ok"), tool("ask")],
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
    const state = new EventState();
    const differing: string[] = [];
    agent.subscribe((event) => {
      state.apply(event);
      // The agent itself is idle only when the listeners of the last event are done.
      const isStreaming = event.type !== "agent_end";
      try {
        expect(pickEventState(state)).toEqual({ ...pickEventState(agent.state), isStreaming });
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
    expect(pickEventState(state)).toEqual(pickEventState(agent.state));
  });

  it("puts each result in its place: behind its call, in call order", () => {
    const { message } = manyCalls(3);
    const state = new EventState([message]);
    const end = (message: AgentMessage): void => state.apply({ type: "message_end", message });
    const places = (): string[] =>
      state.messages.map((each) => (each.role === "toolResult" ? each.toolCallId : each.role));
    end(makeResult("c1"));
    end(makeResult("c2"));
    expect(places()).toEqual(["assistant", "c1", "c2"]);
    end(makeResult("c0"));
    expect(places()).toEqual(["assistant", "c0", "c1", "c2"]);
  });

  it("puts a result behind its call where a message was added meanwhile by hand", () => {
    const { message } = manyCalls(2);
    const state = new EventState();
    state.apply({ type: "message_end", message });
    state.apply({ type: "message_end", message: makeResult("c0") });
    state.messages.push(user("And?"));
    state.apply({ type: "message_end", message: makeResult("c1") });
    expect(state.messages.map(({ role }) => role)).toEqual([
      "assistant",
      "toolResult",
      "toolResult",
      "user",
    ]);
  });

  it("copies nothing and searches no place for calls that run together, however many", () => {
    const { message, reads } = manyCalls(1_000);
    const state = new EventState();
    const { messages, pendingToolCalls } = state;
    state.apply({ type: "message_end", message });
    const ids = Array.from({ length: 1_000 }, (_, index) => `c${index}`);
    for (const toolCallId of ids) {
      state.apply({ type: "tool_execution_start", toolCallId, toolName: "ok", args: {} });
    }
    expect(state.pendingToolCalls.size).toBe(1_000);
    for (const toolCallId of ids) {
      const result = { content: [] };
      const ended = { toolCallId, toolName: "ok", isError: false, durationMs: 0 } as const;
      state.apply({ type: "tool_execution_end", ...ended, result, outcome: "ok" });
    }
    for (const id of ids) state.apply({ type: "message_end", message: makeResult(id) });
    expect(state.pendingToolCalls.size).toBe(0);
    expect(state.messages.length).toBe(1_001);
    expect(state.messages).toBe(messages);
    expect(state.pendingToolCalls).toBe(pendingToolCalls);
    expect(reads()).toBe(1);
  });
});

describe("the state of an agent", () => {
  it("is the same object until something changes, and what was read stays as it was", async () => {
    const script = scriptedModel([call("x"), "Done"]);
    const x = tool("x");
    const agent = new Agent({ model: script.model, protocol: script, tools: [x] });
    const before = agent.state;
    expect(agent.state).toBe(before);
    const seen: AgentState[] = [];
    agent.subscribe(() => {
      expect(agent.state).toBe(agent.state);
      seen.push(agent.state);
    });
    await agent.prompt("Hi");
    expect(before).toMatchObject({ messages: [], isStreaming: false });
    expect(agent.state).toBe(agent.state);
    expect(agent.state.messages).toHaveLength(4);
    agent.setThinkingLevel("high");
    expect(agent.state).not.toBe(seen.at(-1));
    // A list is another one only where a message was added.
    const lists = new Set(seen.map(({ messages }) => messages));
    expect([...lists].map((list) => list.length)).toEqual([0, 1, 2, 3, 4]);
  });

  it("has a version of the streamed message, which grows in place", async () => {
    const script = scriptedModel([[say("one "), say("two "), say("three")]]);
    const agent = new Agent({ model: script.model, protocol: script });
    const versions: number[] = [];
    agent.subscribe((event) => {
      if (event.type === "message_update") versions.push(agent.state.streamVersion);
    });
    await agent.prompt("Hi");
    expect(new Set(versions).size).toBe(versions.length);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
  });

  it("is read after each of 100,000 deltas without a copy of the messages", () => {
    const state = new EventState(Array.from({ length: 1_000 }, () => user("Hi")));
    const message = asked();
    const { messages } = state.view();
    for (let delta = 0; delta < 100_000; delta++) {
      state.apply({
        type: "message_update",
        message,
        assistantMessageEvent: {
          type: "text_delta",
          contentIndex: 0,
          delta: "x",
          partial: message,
        },
      });
      if (state.view().messages !== messages) expect.unreachable();
    }
    expect(state.view().streamVersion).toBe(100_000);
  });
});
