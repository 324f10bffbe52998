import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pickSeed } from "../../../../tests/support/cases.ts";
import {
  checkAnswer,
  type McpField,
  type McpFormQuestion,
  parseField,
  toQuestion,
} from "./question.ts";

function form(properties: object, required: string[] = []): McpFormQuestion {
  const question = toQuestion("wiki", {
    message: "Which page?",
    requestedSchema: { type: "object", properties, required },
  });
  if (question?.kind !== "form") throw new Error("It is no form.");
  return question;
}

function field(schema: object): McpField {
  const [one] = form({ value: schema }).fields;
  if (!one) throw new Error("There is no field.");
  return one;
}

describe("a form of a server", () => {
  it("has its fields in all the ways that the protocol writes them", () => {
    const options = [
      { const: "a", title: "An A" },
      { const: "b", title: "A B" },
    ];
    const { fields } = form(
      {
        name: { type: "string", title: "Your name", maxLength: 10, default: "you" },
        age: { type: "integer", minimum: 0 },
        score: { type: "number" },
        sure: { type: "boolean", default: true },
        plain: { type: "string", enum: ["a", "b"] },
        named: { type: "string", enum: ["a", "b"], enumNames: ["An A", "A B"] },
        titled: { type: "string", oneOf: options },
        some: { type: "array", items: { type: "string", enum: ["a", "b"] }, maxItems: 1 },
        several: { type: "array", items: { anyOf: options }, default: ["a"] },
      },
      ["name"],
    );
    expect(fields.map(({ type }) => type)).toEqual([
      ...[
        "text",
        "integer",
        "number",
        "boolean",
        "choice",
        "choice",
        "choice",
        "choices",
        "choices",
      ],
    ]);
    expect(fields[0]).toMatchObject({
      label: "Your name",
      isRequired: true,
      most: 10,
      default: "you",
    });
    expect(fields[5]?.options).toEqual([
      { value: "a", label: "An A" },
      { value: "b", label: "A B" },
    ]);
    expect(fields[8]?.default).toEqual(["a"]);
  });

  it.each([
    ["nothing to fill in", { message: "x" }],
    [
      "an object in it",
      { message: "x", requestedSchema: { properties: { a: { type: "object" } } } },
    ],
    [
      "a choice of nothing",
      { message: "x", requestedSchema: { properties: { a: { type: "array", items: {} } } } },
    ],
    [
      "too many fields",
      {
        message: "x",
        requestedSchema: {
          properties: Object.fromEntries(
            Array.from({ length: 60 }, (_, n) => [`f${n}`, { type: "string" }]),
          ),
        },
      },
    ],
    ["a page that is a script", { message: "x", mode: "url", url: "javascript:alert(1)" }],
    ["a page that is a file", { message: "x", mode: "url", url: "file:///etc/passwd" }],
    ["a page with a password", { message: "x", mode: "url", url: "https://a:b@evil.example" }],
    ["no page", { message: "x", mode: "url" }],
  ])("with %s is not asked", (_what, params) => {
    expect(toQuestion("wiki", params)).toBeUndefined();
  });

  it("cannot write to the terminal, and is not without end", () => {
    const nasty = `\u001b[2J\u202Eevil\nline ${"x".repeat(10_000)}`;
    const question = toQuestion("wiki", {
      message: nasty,
      requestedSchema: { properties: { a: { type: "string", title: nasty, description: nasty } } },
    });
    const text = JSON.stringify(question);
    expect(text).not.toMatch(/\\u001b|\u202E/);
    expect(text.length).toBeLessThan(6_000);
    expect(question?.kind === "form" && question.fields[0]?.label).not.toContain("\n");
  });

  it("has no default that would not do", () => {
    expect(field({ type: "integer", default: "many" }).default).toBeUndefined();
    expect(field({ type: "string", enum: ["a"], default: "b" }).default).toBeUndefined();
  });
});

describe("what a person types", () => {
  it.each([
    [{ type: "boolean" }, "yes", true],
    [{ type: "boolean" }, "N", false],
    [{ type: "integer" }, " 42 ", 42],
    [{ type: "number" }, "1.5", 1.5],
    [{ type: "string", oneOf: [{ const: "a", title: "An A" }] }, "An A", "a"],
    [{ type: "array", items: { enum: ["a", "b"] } }, "a, b", ["a", "b"]],
    [{ type: "string", format: "date" }, "2026-07-28", "2026-07-28"],
    [{ type: "string", format: "email" }, "a@b.c", "a@b.c"],
  ])("for %j: %s", (schema, typed, value) => {
    expect(parseField(field(schema), typed)).toEqual(value);
  });

  it.each([
    [{ type: "boolean" }, "maybe", "has to be yes or no"],
    [{ type: "integer" }, "1.5", "has to be a whole number"],
    [{ type: "number", maximum: 3 }, "4", "at most 3"],
    [{ type: "number" }, "", "has to be a number"],
    [{ type: "string", enum: ["a", "b"] }, "c", "is one of: a, b"],
    [{ type: "array", items: { enum: ["a", "b"] }, maxItems: 1 }, "a,b", "at most 1"],
    [{ type: "string", minLength: 3 }, "ab", "at least 3"],
    [{ type: "string", format: "date" }, "2026-02-30", "has to be a date"],
    [{ type: "string", format: "date-time" }, "tomorrow", "has to be a time"],
    [{ type: "string", format: "uri" }, "here", "has to be an address"],
    [{ type: "string", format: "email" }, "here", "has to be an email address"],
  ])("for %j is refused: %s", (schema, typed, problem) => {
    expect(() => parseField(field(schema), typed)).toThrow(problem);
  });
});

describe("an answer", () => {
  it("has what was asked for, with defaults, and nothing else", () => {
    const question = form(
      { a: { type: "string" }, b: { type: "integer", default: 3 }, c: { type: "string" } },
      ["a"],
    );
    const content = { a: "x", other: "secret" };
    expect(checkAnswer(question, { action: "accept", content })).toEqual({
      action: "accept",
      content: { a: "x", b: 3 },
    });
    expect(() => checkAnswer(question, { action: "accept", content: {} })).toThrow("a is missing");
    expect(checkAnswer(question, { action: "decline" })).toEqual({ action: "decline" });
  });

  it("that passes is one that the schema of the server accepts", () => {
    const text = fc.record({
      type: fc.constant("string" as const),
      minLength: fc.nat({ max: 3 }),
      maxLength: fc.integer({ min: 3, max: 6 }),
    });
    const number = fc.record({
      type: fc.constantFrom("number" as const, "integer" as const),
      minimum: fc.integer({ min: -5, max: 0 }),
      maximum: fc.integer({ min: 0, max: 5 }),
    });
    const value = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.double(),
      fc.integer({ min: -9, max: 9 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(fc.oneof(text, number), value, (schema, given) => {
        const question = form({ value: schema }, ["value"]);
        let passes = true;
        try {
          checkAnswer(question, { action: "accept", content: { value: given } });
        } catch {
          passes = false;
        }
        const isGood =
          schema.type === "string"
            ? typeof given === "string" &&
              [...given].length >= schema.minLength &&
              [...given].length <= schema.maxLength
            : typeof given === "number" &&
              given >= schema.minimum &&
              given <= schema.maximum &&
              (schema.type === "number" || Number.isInteger(given));
        expect(passes).toBe(isGood);
      }),
      { seed: pickSeed() },
    );
  });
});
