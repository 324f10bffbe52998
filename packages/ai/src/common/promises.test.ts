import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { isThenable } from "./promises.ts";

it.each<[string, unknown, boolean]>([
  ["a promise", Promise.resolve(1), true],
  ["a promise of another realm", runInNewContext("Promise.resolve(1)"), true],
  ["another library's promise", runInNewContext("({ then() {} })"), true],
  ["an object with a field then", runInNewContext("({ then: 1 })"), false],
  ["null", null, false],
  ["nothing", undefined, false],
  ["a text", "then", false],
])("isThenable of %s", (_, value, expected) => {
  expect(isThenable(value)).toBe(expected);
});
