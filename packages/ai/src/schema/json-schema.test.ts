import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, it } from "vitest";
import { checkJson } from "./check-json.ts";
import { compileJsonSchema } from "./json-schema.ts";
import { createRareChecks } from "./rare-keywords.ts";
import type { JsonSchema } from "./schema.ts";

const fits = (schema: JsonSchema, value: unknown): boolean =>
  compileJsonSchema(schema, { createRareChecks }).fits(schema, value);

/** One of the values `yes` fits, none of `no` does. */
function pins(schema: JsonSchema, yes: readonly unknown[], no: readonly unknown[]): void {
  for (const value of yes) expect(fits(schema, value), `yes: ${JSON.stringify(value)}`).toBe(true);
  for (const value of no) expect(fits(schema, value), `no: ${JSON.stringify(value)}`).toBe(false);
}

describe("compileJsonSchema", () => {
  it("knows the types", () => {
    pins({ type: "string" }, ["", "a"], [1, null, [], {}]);
    pins({ type: "number" }, [1, 1.5, -0], ["1", Number.NaN, Number.POSITIVE_INFINITY, null]);
    pins({ type: "integer" }, [1, 2.0], [1.5, "1"]);
    pins({ type: ["string", "null"] }, ["a", null], [1, undefined]);
    pins({ type: "object" }, [{}], [[], null, "a"]);
    pins({ type: "array" }, [[]], [{}, null]);
  });

  it("compares const, enum and items by value", () => {
    pins({ const: { a: [1, { b: 2, c: 3 }] } }, [{ a: [1, { c: 3, b: 2 }] }], [{ a: [1] }, "a"]);
    pins({ enum: ["a", 1, null, [1]] }, ["a", 1, null, [1]], ["1", [], false]);
    pins(
      { uniqueItems: true },
      [
        [1, "1", true],
        [{ a: 1 }, { a: 2 }],
      ],
      [
        [1, 1],
        [{ a: 1 }, { a: 1 }],
      ],
    );
  });

  it("counts characters by code point", () => {
    pins(
      { minLength: 2, maxLength: 3 },
      ["ab", "\u{1F600}\u{1F600}\u{1F600}"],
      ["a", "\u{1F600}", "abcd"],
    );
    pins({ pattern: "^\\p{L}+$" }, ["aé"], ["a1"]);
    pins({ pattern: "^[\\w-.]+$" }, ["a-.b"], ["a b"]);
  });

  it("knows fractions", () => {
    pins({ multipleOf: 0.1 }, [0.3, 1, 0], [0.35]);
    pins({ exclusiveMinimum: 0, maximum: 10 }, [0.1, 10], [0, 10.5]);
  });

  it("follows references by pointer, anchor and id", () => {
    pins({ $defs: { a: { type: "string" } }, $ref: "#/$defs/a" }, ["a"], [1]);
    pins({ $defs: { a: { $anchor: "name", type: "string" } }, $ref: "#name" }, ["a"], [1]);
    pins({ $defs: { "a/b": { type: "string" } }, $ref: "#/$defs/a~1b" }, ["a"], [1]);
    const tree = {
      $defs: { N: { $id: "N", type: "object", properties: { next: { $ref: "N" } } } },
      $ref: "N",
    };
    pins(tree, [{ next: { next: {} } }], [{ next: { next: 1 } }]);
    expect(() => fits({ $ref: "#/$defs/none" }, 1)).toThrow('$ref "#/$defs/none" leads nowhere');
    const nested = { $id: "parts/size.json", type: "number" };
    pins(
      { $id: "https://a.example/tool.json", $defs: { nested }, $ref: "parts/size.json" },
      [1],
      ["a"],
    );
    pins({ $id: "tool.json", $defs: { nested }, $ref: "./parts/size.json#" }, [1], ["a"]);
    const node = { $dynamicAnchor: "node", type: "string" };
    pins({ $defs: { node }, $ref: "#node" }, ["a"], [1]);
  });

  it("names a reference to another document", () => {
    const remote = "https://a.example/size.json#/$defs/n";
    expect(compileJsonSchema({ properties: { n: { $ref: remote } } }).remoteRef).toBe(remote);
    expect(compileJsonSchema({ $ref: "#/$defs/a", $defs: { a: {} } }).remoteRef).toBeUndefined();
  });

  it("ends on a schema that refers to nothing but itself", () => {
    const schema = {
      $defs: { a: { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] } },
      $ref: "#/$defs/a",
    };
    expect(fits(schema, { a: 1 })).toBe(false);
    expect(compileJsonSchema(schema, { createRareChecks }).problems({})[0]?.text).toBe(
      "the schema refers to itself",
    );
  });

  it("ends on values that are nested without end", () => {
    const schema = { type: "array", items: { $ref: "#" } };
    let deep: unknown[] = [];
    for (let depth = 0; depth < 100_000; depth++) deep = [deep];
    expect(fits(schema, deep)).toBe(false);
  });

  it("describes a union of unions in a few words", () => {
    const anyOf = Array.from({ length: 1_000 }, () => ({ $ref: "#/$defs/u" }));
    const schema = {
      type: "object",
      properties: { x: { not: { $ref: "#/$defs/u" } } },
      $defs: { u: { anyOf } },
    };
    expect(compileJsonSchema(schema, { createRareChecks }).problems({})).toEqual([]);
  });

  it("ends on unions that ask for exponentially much", () => {
    const part = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
    const schema = { anyOf: [part, { ...part }, { ...part }] };
    let value: unknown = 1;
    for (let depth = 0; depth < 60; depth++) value = { next: value };
    expect(fits(schema, value)).toBe(false);
  });

  it("does not take what an object inherits for its properties", () => {
    pins({ type: "object", properties: { toString: { type: "string" } } }, [{}], [{ toString: 1 }]);
    pins({ type: "object", required: ["constructor"] }, [{ constructor: 1 }], [{}]);
    pins({ additionalProperties: false }, [{}], [JSON.parse('{"__proto__":1}')]);
  });

  it("looks at what no other keyword has looked at", () => {
    pins(
      {
        allOf: [{ properties: { a: true } }],
        anyOf: [
          { properties: { b: { const: 1 }, c: true }, required: ["b"] },
          { not: { required: ["b"] } },
        ],
        unevaluatedProperties: false,
      },
      [{ a: 1 }, { b: 1, c: 2 }, 3],
      [{ c: 2 }, { d: 1 }, { b: 2 }],
    );
    pins(
      { prefixItems: [true], contains: { type: "string" }, unevaluatedItems: { type: "null" } },
      [[1, "a", null], ["a"]],
      [[1, "a", 2]],
    );
  });

  it("ends where a schema of unevaluated properties refers to itself", () => {
    const schema = {
      anyOf: [{ $ref: "#" }, { properties: { a: true } }],
      unevaluatedProperties: false,
    };
    expect(fits(schema, { a: 1 })).toBe(true);
    const nested = Array.from({ length: 40 }, (_, n) => [
      `d${n}`,
      {
        anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }],
        unevaluatedProperties: false,
      },
    ]);
    const wide = {
      $ref: "#/$defs/d0",
      $defs: { ...Object.fromEntries(nested), d40: { properties: { a: true } } },
    };
    expect(fits(wide, { b: 1 })).toBe(false);
  });

  it("follows a reference to the outermost schema with its anchor", () => {
    const tree = {
      $id: "https://example.com/tree",
      $dynamicAnchor: "node",
      properties: { children: { items: { $dynamicRef: "#node" } }, data: true },
    };
    const strict = {
      $id: "https://example.com/strict",
      $dynamicAnchor: "node",
      $ref: "tree",
      unevaluatedProperties: false,
      $defs: { tree },
    };
    pins(strict, [{ children: [{ data: 1 }] }], [{ children: [{ daat: 1 }] }]);
    pins(tree, [{ children: [{ daat: 1 }] }], []);
  });

  it("reads what stands beside a reference as its draft does", () => {
    const schema = { definitions: { a: { type: "array" } }, $ref: "#/definitions/a", maxItems: 1 };
    pins(schema, [[1, 2]], [3]);
    pins({ ...schema, $schema: "http://json-schema.org/draft-07/schema#" }, [[1, 2]], [3]);
    pins({ ...schema, $schema: "https://json-schema.org/draft/2020-12/schema" }, [[1]], [[1, 2]]);
  });

  it("follows references into documents that it is given, and names one that is not there", () => {
    const schema = { properties: { n: { $ref: "https://example.com/number#/$defs/whole" } } };
    const documents = { "https://example.com/number": { $defs: { whole: { type: "integer" } } } };
    expect(checkJson(schema, { n: 1 }, documents)).toEqual({ problems: [] });
    expect(checkJson(schema, { n: "1" }, documents)).toEqual({
      problems: [{ path: "/n", message: "expected integer" }],
    });
    expect(checkJson(schema, { n: "1" })).toEqual({
      problems: [],
      unchecked: "https://example.com/number#/$defs/whole",
    });
    expect(checkJson(false, 1).problems).toHaveLength(1);
  });

  it("agrees with typebox on random schemas and values", () => {
    fc.assert(
      fc.property(anySchema, anyValue, (schema, value) => {
        expect(fits(schema, value)).toBe(Check(schema, value));
        expect(compileJsonSchema(schema, { createRareChecks }).problems(value).length === 0).toBe(
          fits(schema, value),
        );
      }),
      { numRuns: 2000 },
    );
  });
});

const keys = fc.constantFrom("a", "b", "c");
const scalar = fc.oneof(
  fc.constantFrom("", "a", "bb", "1"),
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(null, true, 0.5),
);
const { anyValue } = fc.letrec<{ anyValue: unknown }>((tie) => ({
  anyValue: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie("anyValue"), { maxLength: 3 }),
    fc.dictionary(keys, tie("anyValue"), { maxKeys: 3 }),
  ),
}));

const small = fc.integer({ min: 0, max: 2 });
const { anySchema } = fc.letrec<{ anySchema: JsonSchema }>((tie) => {
  const schema = tie("anySchema");
  const orBoolean = fc.oneof(schema, fc.boolean());
  const keyword = (name: string, value: fc.Arbitrary<unknown>): fc.Arbitrary<JsonSchema> =>
    value.map((made) => ({ [name]: made }));
  const type = fc.constantFrom("string", "number", "integer", "boolean", "null", "array", "object");
  const leaf = fc.oneof(
    keyword("type", fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 }))),
    keyword("const", scalar),
    keyword("enum", fc.array(scalar, { minLength: 1, maxLength: 3 })),
    keyword("minimum", small),
    keyword("exclusiveMaximum", small),
    keyword("multipleOf", fc.constantFrom(1, 2, 0.5)),
    keyword("minLength", small),
    keyword("maxLength", small),
    keyword("pattern", fc.constantFrom("^a", "b$", "1")),
    keyword("required", fc.uniqueArray(keys, { maxLength: 2 })),
    keyword("minItems", small),
    keyword("maxItems", small),
    keyword("uniqueItems", fc.boolean()),
    keyword("minProperties", small),
    keyword("maxProperties", small),
    keyword("dependentRequired", fc.dictionary(keys, fc.uniqueArray(keys, { maxLength: 2 }))),
  );
  const parts = fc.array(schema, { minLength: 1, maxLength: 3 });
  const nested = fc.oneof(
    keyword("properties", fc.dictionary(keys, orBoolean, { maxKeys: 3 })),
    keyword(
      "patternProperties",
      fc.dictionary(fc.constantFrom("^a", "b|c"), orBoolean, { maxKeys: 2 }),
    ),
    keyword("additionalProperties", orBoolean),
    keyword("propertyNames", schema),
    keyword("dependentSchemas", fc.dictionary(keys, schema, { maxKeys: 2 })),
    keyword("items", orBoolean),
    keyword("prefixItems", parts),
    keyword("contains", schema),
    keyword("allOf", parts),
    keyword("anyOf", parts),
    keyword("oneOf", parts),
    keyword("not", schema),
    fc
      .tuple(keyword("if", schema), keyword("then", schema), keyword("else", schema))
      .map(([test, yes, no]): JsonSchema => ({ ...test, ...yes, ...no })),
  );
  return {
    anySchema: fc
      .array(fc.oneof({ maxDepth: 3, withCrossShrink: true }, leaf, nested), { maxLength: 3 })
      .map((some) => Object.assign({}, ...some) as JsonSchema),
  };
});
