import {
  call,
  fail,
  say,
  type ScriptAnswer,
  scriptedModel,
  serviceTool,
  think,
  unfinished,
} from "../testing/scripted.ts";
import { describe, expect, it } from "vitest";
import {
  BLOCK_EVENT_TYPES,
  type CompactEvent,
  type MessageHead,
  toCompactEvent,
} from "./compact-event.ts";
import { type CompactEnd, CompactEventReader } from "./compact-event-reader.ts";
import { CompactEventWriter } from "./compact-event-writer.ts";
import type { AssistantMessageEvent } from "./events.ts";

async function listEvents(answer: ScriptAnswer): Promise<AssistantMessageEvent[]> {
  const model = scriptedModel([answer], { chunkSize: 2, usage: { input: 3, output: 4 } });
  const context = { messages: [{ role: "user" as const, content: "Go", timestamp: 0 }] };
  const events: AssistantMessageEvent[] = [];
  for await (const event of await model.stream(model.model, context, {})) events.push(event);
  return events;
}

/** The compact events of a response, as JSON gives them back. */
function writeAll(events: readonly AssistantMessageEvent[]): CompactEvent[] {
  const [start] = events;
  if (start?.type !== "start") throw new Error("A response begins with start.");
  const writer = new CompactEventWriter(start.partial);
  return JSON.parse(JSON.stringify(events.map((event) => writer.write(event))));
}

function createReader(start: CompactEvent | undefined): CompactEventReader {
  return new CompactEventReader(start?.["message"] as MessageHead);
}

const parts = [
  think("Hm, well", { signature: "sig" }),
  say("Hello 😀", { signature: "said" }),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a", deep: [{ n: 1 }] }, "c1"),
  call("read", '{"broken', "c2"),
];

describe("done has everything that is not a delta", () => {
  it("stop reason, usage, ids, signatures, length of each block", async () => {
    const compact = writeAll(await listEvents({ parts, responseId: "r", servedModel: "m2" }));
    const { type, reason, message, blocks } = compact.at(-1) as CompactEvent & CompactEnd;
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

  it("builds the same message from compact events", async () => {
    const events = await listEvents({ parts, responseId: "r" });
    const [start, ...rest] = writeAll(events);
    const reader = createReader(start);
    for (const event of rest.slice(0, -1)) reader.read(event);
    const end = events.at(-1);
    const original = end?.type === "done" ? end.message : undefined;
    expect(reader.finish(rest.at(-1) as unknown as CompactEnd)).toEqual(original);
  });

  it("error has kind, retryable, retryAfterMs", async () => {
    const failure = fail("Busy", { kind: "overloaded", retryable: true, retryAfterMs: 7 });
    const compact = writeAll(
      await listEvents([say("Wel"), unfinished(call("read", "{")), failure]),
    );
    expect(compact.at(-1)).toMatchObject({
      type: "error",
      reason: "error",
      kind: "overloaded",
      retryable: true,
      retryAfterMs: 7,
      message: { errorMessage: "Busy" },
    });
  });

  it("rejects a block that never came", () => {
    const reader = createReader({ type: "start", message: {} });
    const message = {} as MessageHead;
    expect(() => reader.finish({ message, blocks: [{ index: 0, length: 0 }] })).toThrow(
      expect.objectContaining({ code: "invalid_sequence" }),
    );
    expect(() => reader.finish({ message, blocks: [1] })).toThrow(/"blocks"/);
  });
});

describe("listEvents", () => {
  it("builds in one go what the deltas built, at any moment, and goes on from there", async () => {
    const events = await listEvents({ parts });
    const [first] = events;
    if (first?.type !== "start") throw new Error("A response begins with start.");
    for (let at = 1; at < events.length; at++) {
      const writer = new CompactEventWriter(first.partial);
      const before = events.slice(0, at).map((event) => writer.write(event));
      const late = createReader(before[0]);
      for (const event of JSON.parse(JSON.stringify(writer.listEvents()))) late.read(event);
      const early = createReader(before[0]);
      for (const event of before.slice(1)) early.read(event);
      expect(late.partial).toEqual(early.partial);
      const rest = events.slice(at).map((event) => writer.write(event));
      for (const event of rest.slice(0, -1)) late.read(event);
      const done = events.at(-1);
      const original = done?.type === "done" ? done.message : undefined;
      expect(late.finish(rest.at(-1) as unknown as CompactEnd)).toEqual(original);
    }
  });
});

describe("toCompactEvent", () => {
  it("leaves out the live message and the text that the deltas had", async () => {
    const events = (await listEvents([say("Hi")])).map(toCompactEvent);
    expect(events.slice(1, -1)).toEqual([
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Hi" },
      { type: "text_end", contentIndex: 0, length: 2 },
    ]);
    expect(events[0]).not.toHaveProperty("message.content");
    expect(events.at(-1)).toMatchObject({ type: "done", message: { stopReason: "stop" } });
  });

  it("makes only events that BLOCK_EVENT_TYPES names between the first and the last", async () => {
    const types = (await listEvents({ parts })).slice(1, -1).map(({ type }) => type);
    for (const type of types) expect(BLOCK_EVENT_TYPES).toContain(type);
  });
});
