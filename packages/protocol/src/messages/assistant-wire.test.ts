import { type AssistantMessageEvent } from "@gyre/ai";
import {
  call,
  fail,
  say,
  type ScriptAnswer,
  scriptedModel,
  serviceTool,
  think,
  unfinished,
} from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import {
  AssistantReader,
  AssistantWriter,
  type MessageHead,
  type WireAssistantEvent,
  type WireEnd,
} from "./assistant-wire.ts";

async function eventsOf(answer: ScriptAnswer): Promise<AssistantMessageEvent[]> {
  const model = scriptedModel([answer], { chunkSize: 2, usage: { input: 3, output: 4 } });
  const context = { messages: [{ role: "user" as const, content: "Go", timestamp: 0 }] };
  const events: AssistantMessageEvent[] = [];
  for await (const event of await model.stream(model.model, context, {})) events.push(event);
  return events;
}

/** As it travels, from `start` to its end. */
function written(events: readonly AssistantMessageEvent[]): WireAssistantEvent[] {
  const [start] = events;
  if (start?.type !== "start") throw new Error("A response begins with start.");
  const writer = new AssistantWriter(start.partial);
  return JSON.parse(JSON.stringify(events.map((event) => writer.write(event))));
}

function readerOf(start: WireAssistantEvent | undefined): AssistantReader {
  return new AssistantReader(start?.["message"] as MessageHead);
}

const parts = [
  think("Hm, well", { signature: "sig" }),
  say("Hello 😀", { signature: "said" }),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a", deep: [{ n: 1 }] }, "c1"),
  call("read", '{"broken', "c2"),
];

describe("done carries all that is not a delta", () => {
  it("stop reason, usage, ids, signatures, length of each block", async () => {
    const wire = written(await eventsOf({ parts, responseId: "r", servedModel: "m2" }));
    const { type, reason, message, blocks } = wire.at(-1) as WireAssistantEvent & WireEnd;
    expect({ type, reason, blocks }).toEqual({
      type: "done",
      reason: "toolUse",
      blocks: [
        { index: 0, length: 8, signature: "sig" },
        { index: 1, length: 8, signature: "said" },
        { index: 2, length: 0 },
        { index: 3, length: 29, id: "c1", name: "read" },
        {
          index: 4,
          length: 8,
          id: "c2",
          name: "read",
          argumentsError: expect.any(String),
        },
      ],
    });
    expect(message).toMatchObject({
      stopReason: "toolUse",
      usage: { input: 3, output: 4 },
      responseId: "r",
      servedModel: "m2",
    });
    expect(message).not.toHaveProperty("content");
  });

  it("builds the very message at the other end", async () => {
    const events = await eventsOf({ parts, responseId: "r" });
    const [start, ...rest] = written(events);
    const reader = readerOf(start);
    for (const event of rest.slice(0, -1)) reader.read(event);
    const end = events.at(-1);
    const original = end?.type === "done" ? end.message : undefined;
    expect(reader.finish(rest.at(-1) as unknown as WireEnd)).toEqual(original);
  });

  it("error carries kind, retryable, retryAfterMs", async () => {
    const trouble = fail("Busy", { kind: "overloaded", retryable: true, retryAfterMs: 7 });
    const wire = written(await eventsOf([say("Wel"), unfinished(call("read", "{")), trouble]));
    expect(wire.at(-1)).toMatchObject({
      type: "error",
      reason: "error",
      kind: "overloaded",
      retryable: true,
      retryAfterMs: 7,
      message: { errorMessage: "Busy" },
    });
  });

  it("refuses a block that never came", () => {
    const reader = readerOf({ type: "start", message: {} });
    const message = {} as MessageHead;
    expect(() => reader.finish({ message, blocks: [{ index: 0, length: 0 }] })).toThrow(
      expect.objectContaining({ code: "invalid_sequence" }),
    );
    expect(() => reader.finish({ message, blocks: [1] })).toThrow(/"blocks"/);
  });
});

describe("catching up", () => {
  it("builds in one go what the deltas built, at any moment, and goes on from there", async () => {
    const events = await eventsOf({ parts });
    const [first] = events;
    if (first?.type !== "start") throw new Error("A response begins with start.");
    for (let at = 1; at < events.length; at++) {
      const writer = new AssistantWriter(first.partial);
      const before = events.slice(0, at).map((event) => writer.write(event));
      const late = readerOf(before[0]);
      for (const event of JSON.parse(JSON.stringify(writer.catchUp()))) late.read(event);
      const early = readerOf(before[0]);
      for (const event of before.slice(1)) early.read(event);
      expect(late.partial).toEqual(early.partial);
      const rest = events.slice(at).map((event) => writer.write(event));
      for (const event of rest.slice(0, -1)) late.read(event);
      const done = events.at(-1);
      const original = done?.type === "done" ? done.message : undefined;
      expect(late.finish(rest.at(-1) as unknown as WireEnd)).toEqual(original);
    }
  });
});
