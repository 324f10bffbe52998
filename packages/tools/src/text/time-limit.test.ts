import { expect, it } from "vitest";
import { PatternTooSlowError, withTimeLimit } from "./time-limit.ts";

it("gives what the job gives, and throws what it throws", () => {
  expect(withTimeLimit("It", () => 42)).toBe(42);
  expect(() =>
    withTimeLimit("It", () => {
      throw new RangeError("no");
    }),
  ).toThrow(RangeError);
});

it("stops a pattern that would never end, and works after that", () => {
  const endless = (): boolean => /^(?:a+)+$/.test(`${"a".repeat(60)}b`);
  expect(() => withTimeLimit("The pattern", endless)).toThrow(PatternTooSlowError);
  expect(withTimeLimit("It", () => "again")).toBe("again");
});
