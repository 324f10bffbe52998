import { describe, expect, it } from "vitest";
import { errnoOf, errorMessage } from "./errors.ts";

describe("errorMessage", () => {
  it.each([
    ["an error", new TypeError("No such thing."), "No such thing."],
    ["an error without a message", new TypeError(""), "TypeError"],
    ["a string", "No such thing.", "No such thing."],
    ["nothing", undefined, "undefined"],
    ["an object that has no text", Object.create(null), "an error that cannot be shown"],
  ])("is the text of %s", (_, error: unknown, message) => {
    expect(errorMessage(error)).toBe(message);
  });
});

describe("errnoOf", () => {
  it.each([
    ["a system error", Object.assign(new Error("x"), { code: "ENOENT" }), "ENOENT"],
    ["an error with a number", Object.assign(new Error("x"), { code: 2 }), undefined],
    ["an error without a code", new Error("ENOENT"), undefined],
    ["an object that is no error", { code: "ENOENT" }, undefined],
    ["nothing", undefined, undefined],
  ])("of %s", (_, error: unknown, code) => {
    expect(errnoOf(error)).toBe(code);
  });
});
