import { type AssistantMessageEvent } from "@gyre/ai";
import { call, say, scriptedModel, serviceTool, think } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompactEvent, CompactEventReader, CompactEventWriter } from "@gyre/ai/stream";
import { findMissingEvents } from "./missing-events.ts";

const PARTS = [
  think("Hm, well", { signature: "sig" }),
  say("Hello there"),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a" }, "c1"),
];

/** The events of a response without its start and its end, as they travel. */
async function written(): Promise<{ head: CompactEventReader["partial"]; all: CompactEvent[] }> {
  const model = scriptedModel([PARTS], { chunkSize: 3 });
  const messages = [{ role: "user" as const, content: "Go", timestamp: 0 }];
  const events: AssistantMessageEvent[] = [];
  for await (const event of await model.stream(model.model, { messages }, {})) events.push(event);
  const [start] = events;
  if (start?.type !== "start") throw new Error("A response begins with start.");
  const writer = new CompactEventWriter(start.partial);
  return { head: start.partial, all: events.slice(1, -1).map((event) => writer.write(event)) };
}

describe("snapshot: who has a part of the message", () => {
  it("goes on from any place to any later one", async () => {
    const { all, head } = await written();
    const places = fc.tuple(fc.nat(all.length), fc.nat(all.length));
    fc.assert(
      fc.property(places, ([one, other]) => {
        const [early, late] = [new CompactEventReader(head), new CompactEventReader(head)];
        for (const event of all.slice(0, Math.min(one, other))) early.read(event);
        for (const event of all.slice(0, Math.max(one, other))) late.read(event);
        for (const event of findMissingEvents(early.listEvents(), late.listEvents()))
          early.read(event);
        expect(early.listEvents()).toEqual(late.listEvents());
        expect(early.partial).toEqual(late.partial);
      }),
    );
  });

  it("takes over a text whose end says something else than its deltas did", () => {
    const own: CompactEvent[] = [
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Hallo" },
    ];
    const end: CompactEvent = { type: "text_end", contentIndex: 0, length: 5 };
    const whole: CompactEvent[] = [
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Hello" },
      end,
    ];
    expect(findMissingEvents(own, whole)).toEqual([{ ...end, content: "Hello" }]);
  });

  it("takes over a text that was taken back", () => {
    const own: CompactEvent[] = [
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Hallo" },
    ];
    const end: CompactEvent = { type: "text_end", contentIndex: 0, length: 0 };
    const whole: CompactEvent[] = [{ type: "text_start", contentIndex: 0 }, end];
    expect(findMissingEvents(own, whole)).toEqual([{ ...end, content: "" }]);
  });

  it.each(["text", "toolcall"] as const)("does not mix %s blocks that are not one", (kind) => {
    const start: CompactEvent = { type: `${kind}_start`, contentIndex: 0 };
    const delta = (text: string): CompactEvent => {
      return { type: `${kind}_delta`, contentIndex: 0, delta: text };
    };
    expect(() => findMissingEvents([start, delta("ab")], [start, delta("xyz")])).toThrow(
      expect.objectContaining({ code: "invalid_sequence" }),
    );
  });
});
