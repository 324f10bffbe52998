import { describe, expect, it } from "vitest";
import { toToolSchema } from "./tool-schema.ts";

const text = { type: "string" };
const number = { type: "number" };

describe("toToolSchema", () => {
  it("gives back a schema that services take, the very same", () => {
    const schema = { type: "object", properties: { a: { anyOf: [text, number] } } };
    expect(toToolSchema(schema)).toBe(schema);
  });

  it.each([
    ["nothing at all", {}, { type: "object", properties: {} }],
    ["no properties", { type: "object" }, { type: "object", properties: {} }],
    [
      "properties without a type",
      { properties: { a: text }, additionalProperties: false },
      { type: "object", properties: { a: text }, additionalProperties: false },
    ],
    [
      "a type that is a list",
      { type: ["object", "null"], properties: { a: text } },
      { type: "object", properties: { a: text } },
    ],
    [
      "alternatives",
      {
        type: "object",
        properties: { all: text },
        required: ["all"],
        anyOf: [
          { properties: { a: text, same: text }, required: ["a", "same"] },
          { properties: { a: number, same: text }, required: ["same"] },
        ],
      },
      {
        type: "object",
        properties: { all: text, a: { anyOf: [text, number] }, same: text },
        required: ["all", "same"],
        description: 'Give "a" and "same", or "same".',
      },
    ],
    [
      "a choice of objects",
      {
        description: "Moves.",
        oneOf: [
          { type: "object", properties: { to: text }, required: ["to"] },
          { type: "object", properties: { by: number }, required: ["by"] },
        ],
      },
      {
        type: "object",
        properties: { to: text, by: number },
        description: 'Moves. Give "to", or "by".',
      },
    ],
    [
      "parts that all hold",
      {
        allOf: [
          { properties: { a: text }, required: ["a"] },
          { properties: { b: text }, required: ["b"] },
        ],
      },
      { type: "object", properties: { a: text, b: text }, required: ["a", "b"] },
    ],
    [
      "a reference",
      {
        $ref: "#/$defs/input",
        $defs: { input: { type: "object", properties: { a: text }, required: ["a"] } },
      },
      {
        type: "object",
        properties: { a: text },
        required: ["a"],
        $defs: { input: { type: "object", properties: { a: text }, required: ["a"] } },
      },
    ],
    [
      "a reference to itself",
      { $ref: "#", properties: { a: text } },
      { type: "object", properties: { a: text } },
    ],
    [
      "conditions",
      { type: "object", properties: { a: text }, if: { required: ["a"] }, not: {} },
      { type: "object", properties: { a: text } },
    ],
  ])("adapts a schema with %s", (_, schema, expected) => {
    expect(toToolSchema(schema)).toEqual(expected);
  });

  it("gives the same object each time", () => {
    const schema = { anyOf: [{ properties: { a: text } }] };
    expect(toToolSchema(schema)).toBe(toToolSchema(schema));
  });
});
