import { describe, expect, expectTypeOf, it } from "vitest";
import { emptyAssistantMessage } from "./accumulate.ts";
import {
  AssistantMessageEventStream,
  isDelta,
  STREAM_UPDATE_EVENTS,
  isTerminal,
  joinDeltas,
  toAssistantStream,
} from "./assistant-stream.ts";
import { JOIN_BEYOND_EVENTS } from "./event-stream.ts";
import type { AssistantMessageEvent, DeltaEvent } from "./events.ts";
import { FLAT_CHUNK_CHARS } from "./growing-text.ts";
import { scriptedModel, scriptedModelInfo } from "../testing/scripted.ts";
import { manualClock } from "../testing/manual-clock.ts";

const partial = emptyAssistantMessage(scriptedModelInfo, 0);
const start: AssistantMessageEvent = { type: "start", partial };
const done: AssistantMessageEvent = { type: "done", reason: "stop", message: partial };
const delta = (
  text: string,
  contentIndex = 0,
  type: DeltaEvent["type"] = "text_delta",
): DeltaEvent => ({
  type,
  contentIndex,
  delta: text,
  partial,
});

describe("AssistantMessageEventStream", () => {
  it("comes to the message of done, and of error as well", async () => {
    const good = new AssistantMessageEventStream();
    const bad = new AssistantMessageEventStream();
    const failed = { ...partial, stopReason: "error" as const };
    good.push(done);
    bad.push({ type: "error", reason: "error", error: failed });
    expect(await good.result()).toBe(partial);
    expect(await bad.result()).toBe(failed);
  });

  it("joins what a lagging reader left waiting, with the text whole and in its blocks", async () => {
    const letters = "abcdefghij";
    const blocks = [0, 1, 2];
    const model = scriptedModel([
      { parts: blocks.map((block) => `${block}${letters.repeat(2000)}`), chunkSize: 1 },
    ]);
    const messages = [{ role: "user" as const, content: "Go", timestamp: 0 }];
    const stream = await model.stream(model.model, { messages }, {});
    const texts = ["", "", ""];
    let events = 0;
    for await (const event of stream) {
      events++;
      if (event.type !== "text_delta") continue;
      texts[event.contentIndex] += event.delta;
      expect(event.delta.length).toBeLessThanOrEqual(FLAT_CHUNK_CHARS);
    }
    expect(texts).toEqual(blocks.map((block) => `${block}${letters.repeat(2000)}`));
    expect(events).toBeLessThan(JOIN_BEYOND_EVENTS + 40);
  });
});

describe("isDelta and isTerminal", () => {
  it("distinguish the kinds of event", () => {
    const types: DeltaEvent["type"][] = ["text_delta", "thinking_delta", "toolcall_delta"];
    for (const type of types) expect(isDelta(delta("x", 0, type))).toBe(true);
    expect([start, done].map(isDelta)).toEqual([false, false]);
    expect([start, delta("x"), done].map(isTerminal)).toEqual([false, false, true]);
    expect(isTerminal({ type: "error", reason: "aborted", error: partial })).toBe(true);
  });
});

it("STREAM_UPDATE_EVENTS are all between the first event and the last", () => {
  const kinds = ["text", "thinking", "toolcall"];
  const expected = kinds.flatMap((kind) => [`${kind}_start`, `${kind}_delta`, `${kind}_end`]);
  expect(STREAM_UPDATE_EVENTS).toEqual([...expected, "service_tool", "image", "file"]);
  expectTypeOf<(typeof STREAM_UPDATE_EVENTS)[number]>().toEqualTypeOf<
    Exclude<AssistantMessageEvent, { type: "start" | "done" | "error" }>["type"]
  >();
});

describe("joinDeltas", () => {
  it("joins two deltas of one block, and changes neither", () => {
    const [one, other] = [delta("a"), delta("b")];
    expect(joinDeltas(one, other)).toEqual(delta("ab"));
    expect([one, other]).toEqual([delta("a"), delta("b")]);
  });

  it("joins nothing else", () => {
    expect(joinDeltas(delta("a", 0), delta("b", 1))).toBeUndefined();
    expect(joinDeltas(delta("a"), delta("b", 0, "thinking_delta"))).toBeUndefined();
    expect(joinDeltas(start, delta("b"))).toBeUndefined();
    expect(joinDeltas(delta("a"), done)).toBeUndefined();
  });

  it("joins no more to a piece that is long enough", () => {
    const long = "x".repeat(FLAT_CHUNK_CHARS - 1);
    expect(joinDeltas(delta(long), delta("y"))?.delta).toBe(`${long}y`);
    expect(joinDeltas(delta(`${long}y`), delta("z"))).toBeUndefined();
  });
});

describe("toAssistantStream", () => {
  async function* from(
    ...events: (AssistantMessageEvent | Error)[]
  ): AsyncGenerator<AssistantMessageEvent> {
    for (const event of events) {
      if (event instanceof Error) throw event;
      yield event;
    }
  }

  it("gives the events of a generator and its result", async () => {
    const stream = toAssistantStream(from(start, delta("a"), done));
    const events: AssistantMessageEvent[] = [];
    for await (const event of stream) events.push(event);
    expect(events).toEqual([start, delta("a"), done]);
    expect(await stream.result()).toBe(partial);
  });

  it("leaves a stream as it is", () => {
    const stream = new AssistantMessageEventStream();
    expect(toAssistantStream(stream)).toBe(stream);
  });

  it("lets go of the generator at the terminal event", async () => {
    let left = false;
    async function* endless(): AsyncGenerator<AssistantMessageEvent> {
      try {
        yield done;
        expect.unreachable();
      } finally {
        left = true;
      }
    }
    await toAssistantStream(endless()).result();
    await manualClock().advance(0);
    expect(left).toBe(true);
  });

  it("one that ends early is incomplete; one that throws fails", async () => {
    await expect(toAssistantStream(from(start)).result()).rejects.toMatchObject({
      code: "incomplete",
    });
    const broken = new Error("broken");
    await expect(toAssistantStream(from(start, broken)).result()).rejects.toBe(broken);
  });
});
