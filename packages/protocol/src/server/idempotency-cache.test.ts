import { describe, expect, it } from "vitest";
import { type Answer, IdempotencyCache } from "./idempotency-cache.ts";
import type { Envelope } from "../frames/envelope.ts";

const frame = (id: string): Envelope => ({ v: 1, type: "x", id, payload: {} });
const answer = (chars: number): Answer => ({ type: "ack", payload: { text: "x".repeat(chars) } });

function isKept(memory: IdempotencyCache, id: string): boolean {
  return memory.recall(frame(id), () => {});
}

describe("AnswerMemory forgets the oldest", () => {
  it("beyond so many", () => {
    const memory = new IdempotencyCache(2);
    for (const id of ["a", "b", "c"]) memory.begin(frame(id))(answer(1));
    expect(["a", "b", "c"].map((id) => isKept(memory, id))).toEqual([false, true, true]);
  });

  it("beyond so many characters, but not the newest, however long it is", () => {
    const memory = new IdempotencyCache(10, 100);
    for (const id of ["a", "b", "c"]) memory.begin(frame(id))(answer(40));
    expect(["a", "b", "c"].map((id) => isKept(memory, id))).toEqual([false, false, true]);
    memory.begin(frame("d"))(answer(500));
    expect(["c", "d"].map((id) => isKept(memory, id))).toEqual([false, true]);
    memory.begin(frame("e"))(answer(1));
    expect(["d", "e"].map((id) => isKept(memory, id))).toEqual([false, true]);
  });

  it("but, for the length of its answers, none that is being worked on", () => {
    const memory = new IdempotencyCache(10, 100);
    memory.begin(frame("a"));
    for (const id of ["b", "c"]) memory.begin(frame(id))(answer(80));
    expect(["a", "b", "c"].map((id) => isKept(memory, id))).toEqual([true, false, true]);
  });
});
