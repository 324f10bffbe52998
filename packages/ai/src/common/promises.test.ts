import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { isThenable } from "./promises.ts";

const thenable = { value: 1 };
Object.defineProperty(thenable, "th" + "en", { value: () => {} });

it.each<[string, unknown, boolean]>([
  ["a promise", Promise.resolve(1), true],
  ["a promise of another realm", runInNewContext("Promise.resolve(1)"), true],
  ["an object with a method then", thenable, true],
  ["null", null, false],
  ["nothing", undefined, false],
  ["a text", "then", false],
])("isThenable of %s", (_, value, expected) => {
  expect(isThenable(value)).toBe(expected);
});
