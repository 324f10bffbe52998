import { runInNewContext } from "node:vm";
import { type } from "arktype";
import fc from "fast-check";
import { Type } from "typebox";
import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { z } from "zod";
import { type ArgumentsResult, validateToolArguments } from "./arguments.ts";
import type { AnySchema, JsonSchema, StandardSchema } from "../schema/schema.ts";

function check(parameters: AnySchema, args: unknown): ArgumentsResult {
  const result = validateToolArguments({ name: "edit", parameters }, args);
  if (result instanceof Promise) throw new Error("expected an answer at once");
  return result;
}

/** What the arguments became; the error text if they were refused. */
function coerced(parameters: AnySchema, args: unknown): unknown {
  const before = structuredClone(args);
  const result = check(parameters, deepFreeze(args));
  expect(args).toEqual(before);
  return result.ok ? result.value : result.error;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}

const object = (properties: JsonSchema, rest: JsonSchema = {}): JsonSchema => ({
  type: "object",
  properties,
  ...rest,
});

/** One property `x` of this schema: what `x` becomes, or the error. */
function x(schema: JsonSchema, value: unknown): unknown {
  const result = coerced(object({ x: schema }, { required: ["x"] }), { x: value });
  return typeof result === "string" ? result : (result as { x: unknown }).x;
}

const refused = (text: string): string => `Invalid arguments for tool "edit":\n- /x: ${text}`;

describe("validateToolArguments", () => {
  it("R12: gives what fits back as it is", () => {
    const args = deepFreeze({ path: "a", edits: [{ line: 1 }] });
    const schema = object({ path: { type: "string" }, edits: { type: "array" } });
    expect(check(schema, args)).toEqual({ ok: true, value: args });
    expect(coerced(schema, args)).toBe(args);
  });

  it("takes no arguments for an empty object", () => {
    expect(coerced(object({}), null)).toEqual({});
    expect(coerced(object({}), undefined)).toEqual({});
  });

  it("types its result by the schema", () => {
    const parameters = Type.Object({ path: Type.String() });
    const result = validateToolArguments({ name: "read", parameters }, { path: "a" });
    expectTypeOf<Awaited<typeof result>>().toEqualTypeOf<ArgumentsResult<{ path: string }>>();
  });
});

describe("R12: coercion", () => {
  it("reads numbers", () => {
    expect(x({ type: "number" }, "42")).toBe(42);
    expect(x({ type: "number" }, " -1.5e2 ")).toBe(-150);
    expect(x({ type: "integer" }, "42")).toBe(42);
    expect(x({ type: "integer" }, "42.0")).toBe(42);
    expect(x({ type: ["integer", "null"] }, "7")).toBe(7);
  });

  it("refuses what is not a number exactly", () => {
    for (const text of ["42abc", "", " ", "0x10", "1_000", "1,5", "NaN", "Infinity", "+1", "01"]) {
      const expected = refused(`expected number, got string ${JSON.stringify(text)}`);
      expect(x({ type: "number" }, text)).toBe(expected);
    }
    for (const text of ["12345678901234567890", "1e999", "1e-999", "0.12345678901234567"]) {
      const expected = refused(`expected number, got string ${JSON.stringify(text)}`);
      expect(x({ type: "number" }, text)).toBe(expected);
    }
    expect(x({ type: "integer" }, "4.5")).toBe(refused('expected integer, got string "4.5"'));
    expect(x({ type: "number" }, true)).toBe(refused("expected number, got boolean true"));
    expect(x({ type: "number" }, null)).toBe(refused("expected number, got null"));
  });

  it("reads booleans, and takes no number for one", () => {
    expect(x({ type: "boolean" }, "true")).toBe(true);
    expect(x({ type: "boolean" }, "False")).toBe(false);
    expect(x({ type: "boolean" }, "yes")).toBe(refused('expected boolean, got string "yes"'));
    expect(x({ type: "boolean" }, 1)).toBe(refused("expected boolean, got number 1"));
  });

  it("writes numbers and booleans where only a string fits", () => {
    expect(x({ type: "string" }, 42)).toBe("42");
    expect(x({ type: "string" }, false)).toBe("false");
    expect(x({ type: ["string", "integer"] }, 42)).toBe(42);
    expect(
      x({ anyOf: [{ type: "string" }, { type: "array", items: { type: "number" } }] }, 5),
    ).toEqual([5]);
    expect(x({ anyOf: [{ type: "string" }, { type: "null" }] }, 5)).toBe("5");
    expect(x({ type: "string" }, { a: 1 })).toBe(refused('expected string, got object {"a":1}'));
  });

  it("puts one thing into the list that is asked for", () => {
    expect(x({ type: "array", items: { type: "string" } }, "a")).toEqual(["a"]);
    expect(x({ type: "array", items: { type: "number" } }, "42")).toEqual([42]);
    expect(x({ type: "array", items: object({ a: { type: "string" } }) }, { a: 1 })).toEqual([
      { a: "1" },
    ]);
    expect(x({ type: "array", items: { type: "number" } }, "a")).toBe(
      refused('expected array, got string "a"'),
    );
    expect(x({ type: "array", minItems: 2 }, "a")).toBe(refused('expected array, got string "a"'));
    expect(x({ type: "array" }, null)).toBe(refused("expected array, got null"));
  });

  it("reads JSON in a string, and goes on inside it", () => {
    const edits = { type: "array", items: object({ line: { type: "integer" } }) };
    expect(x(edits, '[{"line":"3"}]')).toEqual([{ line: 3 }]);
    expect(x(edits, '{"line":3}')).toEqual([{ line: 3 }]);
    expect(x(object({}), ' {"a":1} ')).toEqual({ a: 1 });
    expect(x({ type: "array", items: { type: "string" } }, "[draft] a")).toEqual(["[draft] a"]);
    expect(x(object({}), "{oops")).toBe(refused('expected object, got string "{oops"'));
    expect(x(object({}), "[1]")).toBe(refused('expected object, got string "[1]"'));
    expect(x({ type: "string" }, "[1]")).toBe("[1]");
    expect(coerced(object({ a: { type: "string" } }), '{"a":"b"}')).toEqual({ a: "b" });
    expect(coerced({}, '{"a":"b"}')).toEqual({ a: "b" });
  });

  it("leaves out a null where a property is optional", () => {
    const schema = object({ a: { type: "string" }, b: { type: ["string", "null"] } });
    expect(coerced(schema, { a: null, b: null, c: null })).toEqual({ b: null, c: null });
    expect(x({ type: "string" }, null)).toBe(refused("expected string, got null"));
  });

  it("finds the allowed value that reads the same", () => {
    expect(x({ enum: [1, 2] }, "2")).toBe(2);
    expect(x({ enum: ["1", "2"] }, 2)).toBe("2");
    expect(x({ const: true }, "true")).toBe(true);
    expect(x({ enum: [1, "1"] }, true)).toBe(refused('expected one of 1, "1", got boolean true'));
  });

  it("is guided by every keyword that leads to a value", () => {
    const number = { type: "number" };
    expect(
      x({ prefixItems: [{ type: "string" }], items: number, type: "array" }, ["1", "1"]),
    ).toEqual(["1", 1]);
    expect(x({ type: "object", additionalProperties: number }, { a: "1" })).toEqual({ a: 1 });
    expect(x({ type: "object", patternProperties: { "^n": number } }, { n: "1", m: "1" })).toEqual({
      n: 1,
      m: "1",
    });
    expect(
      x({ allOf: [object({ a: number }), object({ b: number })] }, { a: "1", b: "2" }),
    ).toEqual({ a: 1, b: 2 });
    expect(x({ oneOf: [number, { type: "boolean" }] }, "true")).toBe(true);
    const tree = {
      $defs: {
        node: object({ size: number, kids: { type: "array", items: { $ref: "#/$defs/node" } } }),
      },
      $ref: "#/$defs/node",
    };
    expect(coerced(tree, { size: "1", kids: { size: "2" } })).toEqual({
      size: 1,
      kids: [{ size: 2 }],
    });
  });

  it("picks the branch of a union by what it holds", () => {
    const union = {
      anyOf: [
        object({ kind: { const: "a" }, n: { type: "number" } }, { required: ["kind", "n"] }),
        object({ kind: { const: "b" }, n: { type: "string" } }, { required: ["kind", "n"] }),
      ],
    };
    expect(x(union, { kind: "a", n: "1" })).toEqual({ kind: "a", n: 1 });
    expect(x(union, { kind: "b", n: 1 })).toEqual({ kind: "b", n: "1" });
  });

  it("copies the path to a change, and nothing else", () => {
    const schema = object({ a: object({ n: { type: "number" } }), b: object({}) });
    const args = deepFreeze({ a: { n: "1", keep: { deep: [] } }, b: { c: 1 } });
    const value = coerced(schema, args) as { a: { keep: unknown }; b: unknown };
    expect(value).toEqual({ a: { n: 1, keep: { deep: [] } }, b: { c: 1 } });
    expect(value.b).toBe(args.b);
    expect(value.a.keep).toBe(args.a.keep);
  });

  it("keeps a property named __proto__ a property", () => {
    const args: unknown = JSON.parse('{"__proto__":"1","a":"2"}');
    const value = coerced({ type: "object", additionalProperties: { type: "number" } }, args);
    expect(JSON.stringify(value)).toBe('{"__proto__":1,"a":2}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it("ends on nested unions that nothing fits", () => {
    const part = object(
      { next: { $ref: "#/$defs/a" }, n: { type: "number" } },
      { required: ["next", "n"] },
    );
    const schema = { $defs: { a: { anyOf: [part, { ...part }, { ...part }] } }, ...part };
    let args: unknown = { n: "x" };
    for (let depth = 0; depth < 40; depth++) args = { n: "1", next: args };
    expect(check(schema, args).ok).toBe(false);
  });
});

describe("defaults", () => {
  const schema = object({
    limit: { type: "integer", default: 10 },
    tags: { type: "array", default: ["a"] },
    inner: object({ deep: { type: "boolean", default: true } }),
    wrong: { type: "string", default: null },
  });

  it("fill what is absent, on a copy, inside objects that are there", () => {
    const args = deepFreeze({ inner: {} });
    expect(coerced(schema, args)).toEqual({ limit: 10, tags: ["a"], inner: { deep: true } });
    expect(coerced(schema, { limit: "5" })).toEqual({ limit: 5, tags: ["a"] });
    const full = { limit: 1, tags: [], inner: { deep: false } };
    expect(coerced(schema, full)).toBe(full);
  });

  it("are the tool's to change", () => {
    const first = check(schema, {});
    if (first.ok) (first.value["tags"] as string[]).push("b");
    expect(check(schema, {})).toEqual({ ok: true, value: { limit: 10, tags: ["a"] } });
  });

  it("satisfy what is required", () => {
    const required = object(
      { n: { type: "number", default: 1 }, s: { type: "string" } },
      { required: ["n", "s"] },
    );
    expect(coerced(required, { s: "a" })).toEqual({ n: 1, s: "a" });
    expect(coerced(required, {})).toBe(
      'Invalid arguments for tool "edit":\n- /s: required, missing',
    );
  });

  it("do not break what is right without them", () => {
    const one = object({ a: { default: 1 }, b: { default: 2 } }, { maxProperties: 1 });
    expect(coerced(one, { a: 3 })).toEqual({ a: 3 });
  });
});

describe("error text", () => {
  it("R9: names the tool and each failing path, with what was expected and what came", () => {
    const schema = object(
      {
        path: { type: "string" },
        edits: {
          type: "array",
          items: object({ oldText: { type: "string" }, count: { type: "integer", minimum: 1 } }),
        },
        mode: { enum: ["read", "write"] },
      },
      { required: ["path", "mode"] },
    );
    expect(coerced(schema, { edits: [{ oldText: [42] }, { count: "0" }], mode: "raed" })).toBe(
      [
        'Invalid arguments for tool "edit":',
        "- /path: required, missing",
        "- /edits/0/oldText: expected string, got array [42]",
        "- /edits/1/count: expected at least 1, got number 0",
        '- /mode: expected one of "read", "write" (did you mean "read"?), got string "raed"',
      ].join("\n"),
    );
  });

  it("reports arguments that are no object", () => {
    const expected = 'Invalid arguments for tool "edit":\n- arguments: expected object, got ';
    expect(coerced(object({}), [1, 2])).toBe(`${expected}array [1,2]`);
    expect(coerced(object({}), "ls -l")).toBe(`${expected}string "ls -l"`);
    expect(coerced({}, 3)).toBe(`${expected}number 3`);
  });

  it("names the property that may have been meant", () => {
    const strict = object(
      { path: {}, limit: {} },
      { additionalProperties: false, required: ["path"] },
    );
    expect(coerced(strict, { file_path: "a", verbose: 1 })).toBe(
      [
        'Invalid arguments for tool "edit":',
        '- /path: required, missing (is "file_path" meant to be it?)',
        '- /file_path: unknown property (did you mean "path"?)',
        '- /verbose: unknown property (known: "path", "limit")',
      ].join("\n"),
    );
  });

  it("says what a union takes", () => {
    expect(x({ anyOf: [{ type: "number" }, { type: "boolean" }] }, "a")).toBe(
      refused('expected number or boolean, got string "a"'),
    );
    const tagged = {
      anyOf: [
        object({ kind: { const: "a" }, n: { type: "number" } }, { required: ["kind"] }),
        object({ kind: { const: "b" } }, { required: ["kind"] }),
      ],
    };
    const expected = 'Invalid arguments for tool "edit":\n- /x/';
    expect(x(tagged, { kind: "c" })).toBe(`${expected}kind: expected "a" or "b", got string "c"`);
    expect(x(tagged, { kind: "a", n: "b" })).toBe(`${expected}n: expected number, got string "b"`);
  });

  it("shows ten problems, and of a value as much as helps", () => {
    const numbers = { type: "object", additionalProperties: { type: "number" } };
    const args = Object.fromEntries(Array.from({ length: 13 }, (_, index) => [`k${index}`, "a"]));
    const lines = String(coerced(numbers, args)).split("\n");
    expect(lines).toHaveLength(12);
    expect(lines[10]).toBe('- /k9: expected number, got string "a"');
    expect(lines[11]).toBe("and 3 more");
    expect(x({ type: "number" }, "a".repeat(1_000_000))).toBe(
      refused(`expected number, got string "${"a".repeat(79)}…`),
    );
    expect(x({ type: "number" }, `${"a".repeat(78)}\u{1F600}`)).toBe(
      refused(`expected number, got string "${"a".repeat(78)}…`),
    );
  });

  it("reports a schema that is broken instead of throwing", () => {
    const expected = 'Cannot check the arguments of tool "edit": ';
    expect(coerced({ $ref: "#/$defs/none" }, {})).toBe(
      `${expected}$ref "#/$defs/none" leads nowhere in the schema`,
    );
    expect(coerced(object({ a: { pattern: "(" } }), {})).toMatch(
      /^Cannot check .*Invalid regular expression/,
    );
  });
});

describe("other libraries", () => {
  it("zod: coerces by the JSON Schema, and gives zod's output", () => {
    const schema = z.object({
      path: z.string().transform((text) => text.length),
      limit: z.number().int().default(5),
      tags: z.array(z.string()).optional(),
    });
    expect(coerced(schema, { path: "abc" })).toEqual({ path: 3, limit: 5 });
    expect(coerced(schema, { path: "abc", limit: "7", tags: "a" })).toEqual({
      path: 3,
      limit: 7,
      tags: ["a"],
    });
    expect(coerced(schema, { limit: "x" })).toBe(
      [
        'Invalid arguments for tool "edit":',
        "- /path: required, missing",
        '- /limit: expected integer, got string "x"',
      ].join("\n"),
    );
  });

  it("zod: reports its own message where only it sees the error", () => {
    const even = z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") });
    expect(coerced(even, { n: "3" })).toBe(
      'Invalid arguments for tool "edit":\n- /n: must be even, got number 3',
    );
    expect(coerced(z.strictObject({ path: z.string() }), { path: "a", paht: "b" })).toBe(
      'Invalid arguments for tool "edit":\n- /paht: unknown property (did you mean "path"?)',
    );
  });

  it("zod: what it coerces by itself is left to it", () => {
    expect(coerced(z.object({ n: z.coerce.number() }), { n: "0x10" })).toEqual({ n: 16 });
  });

  it("zod: waits where it validates asynchronously", async () => {
    const schema = z.object({ n: z.number().refine(async (n) => n > 1, "too small") });
    const tool = { name: "edit", parameters: schema };
    const result = validateToolArguments(tool, { n: "2" });
    expect(result).toBeInstanceOf(Promise);
    expect(await result).toEqual({ ok: true, value: { n: 2 } });
    expect(await validateToolArguments(tool, { n: 1 })).toEqual({
      ok: false,
      error: 'Invalid arguments for tool "edit":\n- /n: too small, got number 1',
    });
  });

  it("a promise of another realm is waited for like any other", async () => {
    const foreign: unknown = runInNewContext("Promise.resolve({ issues: [{ message: 'no' }] })");
    expect(foreign).not.toBeInstanceOf(Promise);
    const own = z.object({ n: z.number() })["~standard"];
    const parameters = {
      "~standard": { ...own, validate: () => foreign },
    } as unknown as StandardSchema;
    const result = await validateToolArguments({ name: "edit", parameters }, { n: 1 });
    expect(result.ok).toBe(false);
  });

  it("a library that rejects is an error result", async () => {
    const parameters: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "faulty",
        validate: () => Promise.reject(new Error("no network")),
        jsonSchema: { input: () => ({}), output: () => ({}) },
      },
    };
    expect(await validateToolArguments({ name: "edit", parameters }, {})).toEqual({
      ok: false,
      error: 'Cannot check the arguments of tool "edit": no network',
    });
  });

  it("arktype", () => {
    const schema = type({ path: "string", "limit?": "number.integer", mode: "'a' | 'b'" });
    expect(coerced(schema, { path: "a", limit: "3", mode: "a" })).toEqual({
      path: "a",
      limit: 3,
      mode: "a",
    });
    expect(coerced(schema, { path: {}, mode: "c" })).toBe(
      [
        'Invalid arguments for tool "edit":',
        '- /mode: expected one of "a", "b", got string "c"',
        "- /path: expected string, got object {}",
      ].join("\n"),
    );
  });

  it("typebox", () => {
    const schema = Type.Object({
      path: Type.String(),
      mode: Type.Optional(Type.Union([Type.Literal("a"), Type.Literal(3)])),
    });
    expect(coerced(schema, { path: 1, mode: "3" })).toEqual({ path: "1", mode: 3 });
    const tree = Type.Cyclic(
      { Node: Type.Object({ n: Type.Number(), next: Type.Optional(Type.Ref("Node")) }) },
      "Node",
    );
    expect(coerced(tree, { n: "1", next: { n: "2" } })).toEqual({ n: 1, next: { n: 2 } });
  });

  it("rare keywords, and refinements of typebox", async () => {
    const parameters = {
      allOf: [object({ a: { type: "number" } })],
      properties: { b: { type: "number" } },
      unevaluatedProperties: false,
    };
    const tool = { name: "edit", parameters };
    expect(await validateToolArguments(tool, { a: "1", b: 2 })).toEqual({
      ok: true,
      value: { a: 1, b: 2 },
    });
    expect(validateToolArguments(tool, { a: 1, c: 2 })).toEqual({
      ok: false,
      error: 'Invalid arguments for tool "edit":\n- /c: unknown property',
    });
    const refined = Type.Refine(
      Type.Object({ n: Type.Number() }),
      ({ n }) => n > 1,
      () => "too small",
    );
    expect(validateToolArguments({ name: "edit", parameters: refined }, { n: 1 })).toEqual({
      ok: false,
      error: 'Invalid arguments for tool "edit":\n- arguments: too small',
    });
  });
});

describe("without eval", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("works where a page's policy forbids it", () => {
    vi.stubGlobal("Function", () => {
      throw new EvalError("forbidden");
    });
    expect(coerced(object({ n: { type: "number" } }), { n: "1" })).toEqual({ n: 1 });
  });
});

describe("random schemas, and values that fit them", () => {
  interface Sample {
    schema: JsonSchema;
    value: unknown;
    /** The same value as a careless model writes it. */
    careless: unknown;
  }
  const sample = (type: string, value: unknown, careless: unknown): Sample => ({
    schema: { type },
    value,
    careless,
  });
  const { anySample } = fc.letrec<{ anySample: Sample }>((tie) => ({
    anySample: fc.oneof(
      { maxDepth: 3 },
      fc.integer().map((n) => sample("integer", n, String(n))),
      fc.integer().map((n) => sample("number", n / 4, String(n / 4))),
      fc.boolean().map((b) => sample("boolean", b, String(b))),
      fc.integer().map((n) => sample("string", String(n), n)),
      fc.string().map((text) => sample("string", text, text)),
      tie("anySample").map(({ schema, value, careless }) => ({
        schema: { type: "array", items: schema },
        value: [value],
        careless: typeof careless === "object" ? JSON.stringify([careless]) : [careless],
      })),
      tie("anySample")
        .filter(
          ({ value, careless }) => !Array.isArray(value) && !/^[[{]/.test(String(careless).trim()),
        )
        .map(({ schema, value, careless }) => ({
          schema: { type: "array", items: schema },
          value: [value],
          careless,
        })),
      fc
        .tuple(
          fc.dictionary(fc.string({ maxLength: 4 }), tie("anySample"), { maxKeys: 4 }),
          fc.boolean(),
        )
        .map(([parts, isText]) => objectSample(parts, isText)),
    ),
  }));
  function objectSample(parts: Readonly<Record<string, Sample>>, isText: boolean): Sample {
    const each = (pick: (part: Sample) => unknown): Record<string, unknown> =>
      Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, pick(part)]));
    const careless = each((part) => part.careless);
    return {
      schema: {
        type: "object",
        properties: each((part) => part.schema),
        required: Object.keys(parts),
        additionalProperties: false,
      },
      value: each((part) => part.value),
      careless: isText ? JSON.stringify(careless) : careless,
    };
  }
  const wholeSample = fc
    .dictionary(fc.string({ maxLength: 4 }), anySample, { maxKeys: 4 })
    .map((parts) => objectSample(parts, false));

  it("come back as the very same object", () => {
    fc.assert(
      fc.property(wholeSample, ({ schema, value }) => {
        expect(coerced(schema, value)).toBe(value);
      }),
    );
  });

  it("are found again in what a careless model wrote", () => {
    fc.assert(
      fc.property(wholeSample, ({ schema, value, careless }) => {
        expect(coerced(schema, careless)).toEqual(value);
      }),
      { numRuns: 500 },
    );
  });
});

describe("a schema that is made to keep us busy", () => {
  it("ends on defaults behind exponentially many references", () => {
    const $defs: Record<string, object> = { a16: { properties: { d: { default: 1 } } } };
    for (let at = 0; at < 16; at++) {
      $defs[`a${at}`] = {
        allOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/a${at + 1}` })),
      };
    }
    const parameters = {
      type: "object",
      properties: { x: { $ref: "#/$defs/a0" } },
      $defs,
    } as const;
    expect(validateToolArguments({ name: "t", parameters }, { x: {} })).toEqual({
      ok: false,
      error: 'Cannot check the arguments of tool "t": it takes too long',
    });
  });

  it("ends on a long list that many branches refer to", () => {
    const $defs = { long: { enum: Array.from({ length: 100_000 }, (_, at) => `v${at}`) } };
    const anyOf = Array.from({ length: 10_000 }, () => ({ $ref: "#/$defs/long" }));
    const parameters = { type: "object", properties: { x: { anyOf } }, $defs } as const;
    expect(validateToolArguments({ name: "t", parameters }, { x: "w" })).toEqual({
      ok: false,
      error: 'Cannot check the arguments of tool "t": it takes too long',
    });
  });
});
