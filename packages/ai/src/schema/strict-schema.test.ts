import { describe, expect, it } from "vitest";
import type { JsonSchema } from "./schema.ts";
import { adaptSchema } from "./strict-schema.ts";

const object = (properties: object, required: string[] = [], more: object = {}): JsonSchema => ({
  type: "object",
  properties,
  required,
  ...more,
});

describe("adaptSchema", () => {
  it("closes objects, requires all and describes what OpenAI does not enforce", () => {
    const schema = object(
      {
        name: { type: "string", description: "Of the bird.", minLength: 2, pattern: "^[A-Z]" },
        kind: { enum: ["owl", "crane"] },
        age: { type: ["integer", "null"], minimum: 0, default: 1 },
      },
      ["name"],
      { $schema: "https://json-schema.org/draft/2020-12/schema" },
    );
    expect(adaptSchema(schema, "openai").schema).toEqual({
      type: "object",
      properties: {
        name: { type: "string", pattern: "^[A-Z]", description: "Of the bird. (minLength: 2)" },
        kind: { anyOf: [{ type: "string", enum: ["owl", "crane"] }, { type: "null" }] },
        age: {
          description: "(default: 1)",
          anyOf: [{ type: "integer", minimum: 0 }, { type: "null" }],
        },
      },
      required: ["name", "kind", "age"],
      additionalProperties: false,
    });
  });

  it("keeps optional properties optional for Claude and for Gemini", () => {
    const schema = object({ list: { type: "array", items: { type: "number" }, minItems: 1 } });
    expect(adaptSchema(schema, "claude").schema).toEqual({
      type: "object",
      properties: {
        list: { type: "array", items: { type: "number" }, description: "(minItems: 1)" },
      },
      additionalProperties: false,
    });
    expect(adaptSchema(schema, "gemini").schema).toEqual({
      type: "object",
      properties: { list: { type: "array", items: { type: "number" }, minItems: 1 } },
    });
  });

  it("follows references, and recursion where the service does", () => {
    const tree = object({ children: { type: "array", items: { $ref: "#/$defs/tree" } } }, [
      "children",
    ]);
    const schema = object({ tree: { $ref: "#/$defs/tree" } }, ["tree"], { $defs: { tree } });
    expect(adaptSchema(schema, "openai").schema).toMatchObject({
      properties: { tree: { $ref: "#/$defs/tree" } },
      $defs: { tree: { additionalProperties: false } },
    });
    expect(adaptSchema(schema, "claude").reason).toBe("#/$defs/tree refers to itself");
  });

  it("takes oneOf as anyOf, and allOf of one", () => {
    const schema = object(
      {
        a: { oneOf: [{ type: "string" }, { type: "number" }] },
        b: { allOf: [{ type: "string" }] },
      },
      ["a", "b"],
    );
    expect(adaptSchema(schema, "openai").schema?.["properties"]).toEqual({
      a: { anyOf: [{ type: "string" }, { type: "number" }] },
      b: { type: "string" },
    });
  });

  it.each<[string, JsonSchema, string]>([
    [
      "free names",
      object({ a: { type: "object" } }),
      "/properties/a may have properties of any name",
    ],
    [
      "a map",
      object({ a: { type: "object", additionalProperties: { type: "string" } } }),
      "/properties/a may have properties of any name",
    ],
    ["any value", object({ a: {} }), "/properties/a may be any value"],
    [
      "a tuple",
      object({ a: { type: "array", prefixItems: [] } }),
      "/properties/a has items of no one form",
    ],
    [
      "allOf",
      object({ a: { allOf: [{ type: "string" }, { minLength: 1 }] } }),
      "/properties/a has allOf",
    ],
    [
      "an address",
      object({ a: { $ref: "https://a.example/b" } }),
      "/properties/a refers to https://a.example/b",
    ],
    ["false", object({ a: false }), "/properties/a is false"],
  ])("says why a schema with %s cannot be adapted", (_, schema, reason) => {
    expect(adaptSchema(schema, "openai")).toEqual({ reason });
    expect(adaptSchema(schema, "claude")).toEqual({ reason });
  });

  it("knows how much Claude takes of what makes its grammars large", () => {
    const many = (count: number, schema: object) =>
      Object.fromEntries(Array.from({ length: count }, (_, nth) => [`p${nth}`, schema]));
    const text = { type: "string" };
    const choice = { anyOf: [text, { type: "number" }] };
    const names = Object.keys(many(17, choice));
    expect(adaptSchema(object(many(24, text)), "claude").schema).toBeDefined();
    expect(adaptSchema(object(many(25, text)), "claude").reason).toBe(
      "more than 24 properties are optional",
    );
    expect(
      adaptSchema(object(many(16, choice), names.slice(0, 16)), "claude").schema,
    ).toBeDefined();
    expect(adaptSchema(object(many(17, choice), names), "claude").reason).toBe(
      "more than 16 values are a choice of types",
    );
    expect(adaptSchema(object(many(40, choice)), "openai").schema).toBeDefined();
  });
});
