import type { AgentMessage } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { createManualFrames } from "../testing/frames.ts";
import { PlayedAgent } from "../testing/played-agent.ts";
import { createAgentStore } from "./agent-store.ts";
import { MessageViews } from "./message-views.ts";

const DELTAS = 50;

function createAnswer(): AssistantMessage & { content: { type: "text"; text: string }[] } {
  const model = { api: "played", provider: "played", model: "played" };
  return {
    ...{ role: "assistant", content: [{ type: "text", text: "" }], ...model, usage: {} },
    ...{ stopReason: "stop", timestamp: 0 },
  };
}

function createTranscript(length: number): AgentMessage[] {
  return Array.from({ length }, (_, at): AgentMessage =>
    at % 2 === 0 ? { role: "user", content: `${at}`, timestamp: 0 } : createAnswer(),
  );
}

/** A list that counts how often it is read. */
function countReads<T extends object>(list: T): { list: T; readonly reads: number } {
  let reads = 0;
  const counted = new Proxy(list, {
    get: (target, name, receiver) => {
      reads++;
      return Reflect.get(target, name, receiver);
    },
  });
  return {
    list: counted,
    get reads() {
      return reads;
    },
  };
}

describe("what a delta costs", () => {
  it.each([100, 10_000])("is one message, and no look at a transcript of %i", (length) => {
    const views = new MessageViews();
    const messages = countReads(createTranscript(length));
    const streamMessage = createAnswer();
    const state = { messages: messages.list, streamMessage };
    const readOpen = () => ({ isRunning: false });
    views.update(state, readOpen);
    const { settled, made } = views;
    const { reads } = messages;
    for (let delta = 0; delta < DELTAS; delta++) {
      const [block] = streamMessage.content;
      if (block) block.text += "tea ";
      views.touch(0);
      views.update(state, readOpen);
    }
    expect(views.made - made).toBe(DELTAS);
    expect(messages.reads).toBe(reads);
    expect(views.settled).toBe(settled);
  });

  it("changes the object of the last message alone, and none where nothing has changed", () => {
    const agent = new PlayedAgent(createTranscript(1_000));
    const frames = createManualFrames();
    let scheduled = 0;
    const store = createAgentStore(agent, {
      schedule: (flush) => {
        scheduled++;
        return frames.schedule(flush);
      },
    });
    let notified = -1;
    store.subscribe(() => notified++);
    const message = createAnswer();
    agent.play({ type: "agent_start" });
    agent.play({ type: "message_start", message });
    frames.draw();
    for (let delta = 0; delta < DELTAS; delta++) {
      const before = store.getSnapshot().messages;
      const [block] = message.content;
      if (block) block.text += "tea ";
      const update = {
        type: "text_delta",
        delta: "tea ",
        contentIndex: 0,
        partial: message,
      } as const;
      agent.play({ type: "message_update", message, assistantMessageEvent: update });
      agent.play({ type: "turn_start" });
      frames.draw();
      const now = store.getSnapshot().messages;
      expect(now.slice(0, -1).every((one, at) => one === before[at])).toBe(true);
      expect(now.at(-1)).not.toBe(before.at(-1));
      expect(now.at(-1)?.id).toBe(before.at(-1)?.id);
    }
    expect(notified).toBe(DELTAS + 1);
    const last = store.getSnapshot();
    agent.play({ type: "turn_start" });
    frames.draw();
    expect(store.getSnapshot()).toBe(last);
    expect(notified).toBe(DELTAS + 1);
    agent.play({ type: "message_end", message });
    frames.draw();
    expect(scheduled).toBe(frames.count);
    const ended = store.getSnapshot().messages;
    expect(ended.slice(0, -1).every((one, at) => one === last.messages[at])).toBe(true);
    expect(ended.at(-1)).toMatchObject({ id: last.messages.at(-1)?.id, state: "done" });
  });
});

it("a listener that throws is reported, and the others are called", () => {
  const agent = new PlayedAgent();
  const frames = createManualFrames();
  const errors: unknown[] = [];
  const store = createAgentStore(agent, { ...frames, onError: (error) => errors.push(error) });
  const seen: string[] = [];
  store.subscribe(() => {
    throw new Error("oops");
  });
  store.subscribe(({ status }) => seen.push(status));
  agent.play({ type: "agent_start" });
  frames.draw();
  expect(seen).toEqual(["idle", "running"]);
  expect(errors).toEqual([new Error("oops"), new Error("oops")]);
});
