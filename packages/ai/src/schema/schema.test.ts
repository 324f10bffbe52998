import { type } from "arktype";
import { type Static, Type } from "typebox";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { Tool } from "../messages/messages.ts";
import { type AnySchema, type InferArguments, isStandardSchema, toJsonSchema } from "./schema.ts";

const plain = {
  type: "object",
  properties: {
    path: { type: "string" },
    limit: { type: "integer" },
    mode: { enum: ["read", "write"] },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["path"],
} as const;

const typebox = Type.Object({ path: Type.String(), limit: Type.Optional(Type.Integer()) });
const zod = z.object({
  path: z.string(),
  limit: z.number().default(5),
  size: z.string().transform(Number),
});
const arktype = type({ path: "string", "limit?": "number" });

describe("toJsonSchema", () => {
  it("gives plain JSON Schema and typebox back as they are", () => {
    expect(toJsonSchema(plain)).toBe(plain);
    expect(toJsonSchema(typebox)).toBe(typebox);
    expect(JSON.parse(JSON.stringify(toJsonSchema(typebox)))).toEqual({
      type: "object",
      required: ["path"],
      properties: { path: { type: "string" }, limit: { type: "integer" } },
    });
  });

  it("asks a Standard Schema for the schema of its input, once", () => {
    const schema = toJsonSchema(zod);
    expect(toJsonSchema(zod)).toBe(schema);
    expect(JSON.parse(JSON.stringify(schema))).toEqual({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        path: { type: "string" },
        limit: { type: "number", default: 5 },
        size: { type: "string" },
      },
      required: ["path", "size"],
    });
    expect(JSON.parse(JSON.stringify(toJsonSchema(arktype)))).toMatchObject({
      type: "object",
      properties: { path: { type: "string" }, limit: { type: "number" } },
      required: ["path"],
    });
  });

  it("names the library that has no JSON Schema, and says what to do", () => {
    const old = { "~standard": { version: 1, vendor: "oldlib", validate: () => ({ value: 1 }) } };
    expect(() => toJsonSchema(old)).toThrow(
      'The oldlib schema has no JSON Schema (no "~standard".jsonSchema). ' +
        "Use a version of oldlib that can, or give the tool a plain JSON Schema.",
    );
    expect(() => toJsonSchema(z.object({ when: z.date() }))).toThrow(
      /^The zod schema has no JSON Schema: Date cannot be represented/,
    );
  });

  const old = (vendor: string): never =>
    ({ "~standard": { version: 1, vendor, validate: () => ({ value: 1 }) } }) as never;

  it.each([
    ["valibot", old("valibot"), "toStandardJsonSchema(schema) of @valibot/to-json-schema"],
    ["zod before 4.2", old("zod"), "zod has it from version 4.2 on"],
    ["zod before 3.24", { _def: { typeName: "ZodObject" } }, "zod has it from version 4.2 on"],
  ])("of %s it says the one way that works", (_, schema, text) => {
    expect(() => toJsonSchema(schema)).toThrow(text);
  });

  it("distinguishes schemas that validate by themselves from data", () => {
    expect([zod, arktype].map((schema) => isStandardSchema(schema))).toEqual([true, true]);
    expect([plain, typebox].map((schema) => isStandardSchema(schema))).toEqual([false, false]);
  });
});

describe("InferArguments", () => {
  it("is the output type of a Standard Schema", () => {
    expectTypeOf<InferArguments<typeof zod>>().toEqualTypeOf<{
      path: string;
      limit: number;
      size: number;
    }>();
    expectTypeOf<InferArguments<typeof arktype>>().toEqualTypeOf<{
      path: string;
      limit?: number;
    }>();
  });

  it("is the static type of a typebox schema", () => {
    expectTypeOf<InferArguments<typeof typebox>>().toEqualTypeOf<{
      path: string;
      limit?: number;
    }>();
  });

  it("is what typebox itself works out", () => {
    const all = Type.Object({
      text: Type.String(),
      count: Type.Integer(),
      size: Type.Number(),
      on: Type.Boolean(),
      nothing: Type.Null(),
      word: Type.Literal("yes"),
      either: Type.Union([Type.Literal("a"), Type.Number(), Type.Null()]),
      mode: Type.Enum(["read", "write"]),
      list: Type.Array(Type.Object({ deep: Type.Optional(Type.String()) })),
      pair: Type.Tuple([Type.String(), Type.Number()]),
      byName: Type.Record(Type.String(), Type.Number()),
      both: Type.Intersect([Type.Object({ x: Type.Number() }), Type.Object({ y: Type.Number() })]),
      own: Type.Unsafe<{ mine: true }>({}),
      some: Type.Partial(Type.Object({ x: Type.Number() })),
      picked: Type.Pick(Type.Object({ x: Type.Number(), y: Type.Number() }), ["x"]),
      missing: Type.Optional(Type.Array(Type.String())),
    });
    expectTypeOf<InferArguments<typeof all>>().toEqualTypeOf<Static<typeof all>>();
  });

  it("is what a nested JSON Schema describes", () => {
    const nested = {
      type: "object",
      properties: {
        place: {
          type: ["object", "null"],
          properties: { city: { const: "Bern" }, zip: { type: "string" } },
          required: ["city"],
        },
        either: { anyOf: [{ type: "string" }, { type: "array", items: { type: "number" } }] },
        one: { oneOf: [{ enum: [1, 2] }, { type: "boolean" }] },
        both: { allOf: [{ properties: { x: { type: "number" } }, required: ["x"] }, {}] },
        pair: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }] },
        byName: { type: "object", additionalProperties: { type: "number" } },
        open: { type: "object" },
        any: {},
      },
      required: ["place", "either", "one", "both", "pair", "byName", "open"],
    } as const;
    expectTypeOf<InferArguments<typeof nested>>().toEqualTypeOf<{
      place: { city: "Bern"; zip?: string } | null;
      either: string | number[];
      one: 1 | 2 | boolean;
      both: { x: number };
      pair: [string, number];
      byName: Record<string, number>;
      open: Record<string, unknown>;
      any?: unknown;
    }>();
  });

  it("is what a JSON Schema written as const describes", () => {
    type Inferred = InferArguments<typeof plain>;
    expectTypeOf<Inferred["path"]>().toEqualTypeOf<string>();
    expectTypeOf<Inferred["limit"]>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Inferred["mode"]>().toEqualTypeOf<"read" | "write" | undefined>();
    expectTypeOf<Inferred["tags"]>().toEqualTypeOf<string[] | undefined>();
  });

  it("is a record of anything where nothing is known", () => {
    expectTypeOf<InferArguments<AnySchema>>().toEqualTypeOf<Record<string, unknown>>();
    expectTypeOf<InferArguments<{ readonly [keyword: string]: unknown }>>().toEqualTypeOf<
      Record<string, unknown>
    >();
  });

  it("lets every kind of schema be the parameters of a tool", () => {
    const tools: Tool[] = [plain, typebox, zod, arktype].map((parameters) => ({
      name: "read",
      description: "",
      parameters,
    }));
    expect(tools).toHaveLength(4);
  });
});
