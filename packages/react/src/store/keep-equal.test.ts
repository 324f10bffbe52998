import { expect, it } from "vitest";
import { keepEqual } from "./keep-equal.ts";

it("keeps what has the same fields or items, and nothing else", () => {
  const part = { type: "text", text: "tea" };
  expect(keepEqual(part, { ...part })).toBe(part);
  expect(keepEqual<object>(part, { type: "text" })).not.toBe(part);
  expect(keepEqual<object>(part, { ...part, state: undefined })).not.toBe(part);
  expect(keepEqual<object>({ type: "text", state: undefined }, part)).toBe(part);
  const list = [part, 1];
  expect(keepEqual(list, [part, 1])).toBe(list);
  for (const other of [[{ ...part }, 1], [part, 2], [part], [part, 1, 2]]) {
    expect(keepEqual(list, other)).toBe(other);
  }
  const record: object = { 0: part, 1: 1 };
  expect(keepEqual<object>(list, record)).toBe(record);
  expect(keepEqual(undefined, list)).toBe(list);
});
