import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Envelope } from "./envelope.ts";
import { joinFrames } from "./join-frames.ts";
import { SequenceCheck } from "./sequence.ts";

describe("seq counts per stream and direction from 1 by 1", () => {
  it("accepts what is next, on each stream by itself", () => {
    const check = new SequenceCheck();
    check.accept("a", 1);
    check.accept("a", 2);
    check.accept("b", 1);
    expect([check.last("a"), check.last("b"), check.last("c")]).toEqual([2, 1, 0]);
  });

  it.each([
    ["zero", 0],
    ["a repeat", 1],
    ["a gap", 3],
    ["none", undefined],
    ["a negative one", -1],
  ])("refuses %s with invalid_sequence, and changes nothing", (_, seq) => {
    const check = new SequenceCheck();
    check.accept("a", 1);
    expect(() => check.accept("a", seq)).toThrow(
      expect.objectContaining({ code: "invalid_sequence", details: { expected: 2 } }),
    );
    expect(check.last("a")).toBe(1);
    check.accept("a", 2);
  });

  it("accepts joined deltas: from = last + 1", () => {
    const check = new SequenceCheck();
    check.accept("a", 4, 1);
    expect(check.last("a")).toBe(4);
    expect(() => check.accept("a", 9, 6)).toThrow(/is 5, got 6 to 9/);
    expect(() => check.accept("a", 4, 5)).toThrow(/is 5/);
  });

  it("has at most so many streams", () => {
    const check = new SequenceCheck(2);
    check.accept("a", 1);
    check.accept("b", 1);
    expect(() => check.accept("c", 1)).toThrow(
      expect.objectContaining({ code: "too_many_streams" }),
    );
    check.forget("a");
    check.accept("c", 1);
  });

  it("goes on after a snapshot", () => {
    const check = new SequenceCheck();
    check.startAfter("a", 10);
    check.accept("a", 11);
    expect(check.last("a")).toBe(11);
  });
});

function delta(seq: number, text: string, more: Partial<Envelope> = {}): Envelope {
  const payload = { event: { type: "text_delta", contentIndex: 0, delta: text } };
  return { v: 1, type: "message_update", stream: "s", id: `e_${seq}`, seq, payload, ...more };
}

describe("deltas that were joined for a slow reader travel as one", () => {
  it("has from (first) and seq (last)", () => {
    const one = joinFrames(delta(3, "a"), delta(4, "b"));
    expect(one && joinFrames(one, delta(5, "c"))).toEqual({ ...delta(5, "abc"), from: 3 });
  });

  it("joins deltas of a model's stream as well", () => {
    const bare = (seq: number, text: string): Envelope =>
      delta(seq, "", { type: "toolcall_delta", payload: { contentIndex: 2, delta: text } });
    expect(joinFrames(bare(1, "{"), bare(2, "}"))).toEqual({ ...bare(2, "{}"), from: 1 });
  });

  it("keeps the newest progress of a call", () => {
    const progress = (seq: number, toolCallId: string): Envelope =>
      delta(seq, "", { type: "tool_execution_update", payload: { toolCallId, n: seq } });
    expect(joinFrames(progress(1, "a"), progress(2, "a"))).toEqual({
      ...progress(2, "a"),
      from: 1,
    });
    expect(joinFrames(progress(1, "a"), progress(2, "b"))).toBeUndefined();
  });

  it.each<[string, Envelope]>([
    ["another stream", delta(2, "b", { stream: "other" })],
    [
      "another block",
      delta(2, "b", { payload: { event: { type: "text_delta", contentIndex: 1, delta: "b" } } }),
    ],
    [
      "another kind",
      delta(2, "b", {
        payload: { event: { type: "thinking_delta", contentIndex: 0, delta: "b" } },
      }),
    ],
    ["no neighbor", delta(3, "b")],
    ["no event", delta(2, "b", { type: "ack" })],
    ["what has no delta", delta(2, "b", { payload: {} })],
  ])("does not join %s", (_, next) => {
    expect(joinFrames(delta(1, "a"), next)).toBeUndefined();
  });

  it("gives a receiver the same count and text, however they are joined", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.boolean())), (pieces) => {
        const sent: Envelope[] = [];
        for (const [index, [text, waits]] of pieces.entries()) {
          const next = delta(index + 1, text);
          const last = waits ? sent.pop() : undefined;
          const joined = last && joinFrames(last, next);
          sent.push(...(joined ? [joined] : last ? [last, next] : [next]));
        }
        const check = new SequenceCheck();
        for (const { seq, from } of sent) check.accept("s", seq, from);
        expect(check.last("s")).toBe(pieces.length);
        const texts = sent.map(({ payload }) => (payload["event"] as { delta: string }).delta);
        expect(texts.join("")).toBe(pieces.map(([text]) => text).join(""));
      }),
    );
  });
});
