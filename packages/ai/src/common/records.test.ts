import { expect, it } from "vitest";
import { isRecord } from "./records.ts";

it.each([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  [undefined, false],
  ["text", false],
  [() => {}, false],
])("isRecord(%j) is %s", (value: unknown, expected) => {
  expect(isRecord(value)).toBe(expected);
});
