import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { repairJson } from "./repair-json.ts";

function parsed(text: string): unknown {
  const repaired = repairJson(text);
  return repaired === undefined ? undefined : JSON.parse(repaired);
}

describe("repairJson", () => {
  it.each([
    [
      "an escape that JSON does not have",
      String.raw`{"re":"\d+\.\w"}`,
      { re: String.raw`\d+\.\w` },
    ],
    ["a path of Windows", String.raw`{"at":"C:\Users\x"}`, { at: String.raw`C:\Users\x` }],
    ["half a Unicode escape", String.raw`{"a":"\u12"}`, { a: String.raw`\u12` }],
    ["an escaped quote of another kind", String.raw`{"a":"it\'s"}`, { a: String.raw`it\'s` }],
    ["escapes that are right beside it", String.raw`{"a":"\n\\d\d\""}`, { a: '\n\\d\\d"' }],
    ["raw newlines and tabs", '{"a":"one\n\ttwo\r\n"}', { a: "one\n\ttwo\r\n" }],
    ["other control characters", '{"a":"\u0001"}', { a: "\u0001" }],
    ["a backslash before a newline", '{"a":"x\\\ny"}', { a: "x\\\ny" }],
    ["trailing commas", '{"a":[1,2,],"b":{"c":1 , } ,\n}', { a: [1, 2], b: { c: 1 } }],
    ["a comma in a string", '{"a":",}",}', { a: ",}" }],
  ])("repairs %s", (_, text, value) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    expect(parsed(text)).toEqual(value);
  });

  it.each([
    ["a text that was cut", '{"a":1,'],
    ["a text that was cut in a string", String.raw`{"a":"\d`],
    ["a text that was cut after an escape", String.raw`{"a":"\d\"`],
    ["a bracket that is missing", '{"a":[1,}'],
    ["a quote that is missing", '{"a":"\n}'],
    ["two commas", '{"a":1,,}'],
    ["a comma alone", "{,}"],
    ["keys without quotes", "{a:1,}"],
    ["single quotes", "{'a':1,}"],
    ["a comment", '{"a":1, // one\n}'],
    ["something after the end", '{"a":1,} x'],
    ["nothing", ""],
  ])("does not repair %s", (_, text) => {
    expect(parsed(text)).toBeUndefined();
  });

  it("leaves what is JSON as it is", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(repairJson(text)).toBe(text);
      }),
    );
  });

  it("never makes a whole of a text that was cut", () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(object, fc.nat(), (value, cut) => {
        const text = JSON.stringify(value);
        expect(repairJson(text.slice(0, cut % text.length))).toBeUndefined();
      }),
    );
  });
});
