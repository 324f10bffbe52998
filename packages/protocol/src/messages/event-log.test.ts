import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLog } from "./event-log.ts";

const deltas = fc.record({
  type: fc.constantFrom("text_delta", "thinking_delta"),
  contentIndex: fc.nat(2),
  delta: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
});
const others = fc.record({ type: fc.constant("text_end"), contentIndex: fc.nat(2) });

describe("resume: the tail of a stream", () => {
  it("has the original deltas, kept in less room", () => {
    const limits = fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 64, max: 2_000 }));
    fc.assert(
      fc.property(fc.array(fc.oneof(deltas, others)), limits, (events, [maxEvents, maxBytes]) => {
        const small = new EventLog(maxEvents, maxBytes);
        const plain = new EventLog(maxEvents, maxBytes);
        for (const { type, ...payload } of events) {
          const expected = plain.append(type, payload);
          if (!("delta" in payload)) expect(small.append(type, payload)).toEqual(expected);
          else {
            const { contentIndex, delta } = payload;
            expect(small.appendDelta(type, contentIndex, delta)).toEqual(expected);
          }
          expect(small.bytes).toBe(plain.bytes);
        }
        for (let seq = 0; seq <= events.length; seq++) {
          expect(small.readAfter(seq)).toEqual(plain.readAfter(seq));
        }
      }),
    );
  });

  it("is not longer than so many events, however many blocks they are of", () => {
    const log = new EventLog(4);
    for (let nth = 0; nth < 100; nth++) log.appendDelta("text_delta", nth % 2, `${nth}`);
    expect(log.readAfter(95)).toBeUndefined();
    expect(log.readAfter(96)?.map(({ payload }) => payload)).toEqual([
      { contentIndex: 0, delta: "96" },
      { contentIndex: 1, delta: "97" },
      { contentIndex: 0, delta: "98" },
      { contentIndex: 1, delta: "99" },
    ]);
  });
});
