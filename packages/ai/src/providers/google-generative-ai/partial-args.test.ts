import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArgumentsWriter, type PartialArg } from "./partial-args.ts";

function written(...args: PartialArg[]): string {
  const writer = new ArgumentsWriter();
  return args.map((arg) => writer.add(arg)).join("") + writer.close();
}

type Leaf = string | number | boolean | null;
type Tree = Leaf | Tree[] | { [key: string]: Tree };

/** The pieces of a value as the service sends them: strings in two, all else whole. */
function splitIntoPieces(value: Tree, jsonPath = "$"): PartialArg[] {
  if (typeof value === "string") {
    const half = Math.floor(value.length / 2);
    return [
      { jsonPath, stringValue: value.slice(0, half), willContinue: true },
      { jsonPath, stringValue: value.slice(half), willContinue: true },
      { jsonPath, stringValue: "" },
    ];
  }
  if (typeof value === "number") return [{ jsonPath, numberValue: value }];
  if (typeof value === "boolean") return [{ jsonPath, boolValue: value }];
  if (value === null) return [{ jsonPath, nullValue: "NULL_VALUE" }];
  if (Array.isArray(value)) {
    return value.flatMap((child, index) => splitIntoPieces(child, `${jsonPath}[${index}]`));
  }
  return Object.entries(value).flatMap(([key, child]) =>
    splitIntoPieces(child, jsonPath + stepTo(key)),
  );
}

function stepTo(key: string): string {
  return /^\w+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

const leaf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
  fc.boolean(),
  fc.constant(null),
);
// There is no piece that says that an array or an object has nothing in it.
const { object } = fc.letrec<{ tree: Tree; object: { [key: string]: Tree } }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, leaf, tie("object"), fc.array(tie("tree"), { minLength: 1 })),
  object: fc.dictionary(fc.string({ unit: "binary" }), tie("tree"), { minKeys: 1, maxKeys: 5 }),
}));

describe("ArgumentsWriter", () => {
  it("writes the JSON of the arguments that the pieces are of", () => {
    fc.assert(
      fc.property(object, (value) => {
        expect(JSON.parse(written(...splitIntoPieces(value)))).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }),
    );
  });

  it("lets the text grow with each piece", () => {
    const writer = new ArgumentsWriter();
    const texts = [
      writer.add({ jsonPath: "$.city", stringValue: "Ber", willContinue: true }),
      writer.add({ jsonPath: "$.city", stringValue: 'lin "', willContinue: true }),
      writer.add({ jsonPath: "$.city" }),
      writer.add({ jsonPath: "$.days[0].n", numberValue: 1 }),
      writer.add({ jsonPath: "$.days[1].n", numberValue: 2 }),
      writer.add({ jsonPath: "$.exact", boolValue: true }),
      writer.close(),
    ];
    expect(texts).toEqual([
      '{"city":"Ber',
      'lin \\"',
      "",
      '","days":[{"n":1',
      '},{"n":2',
      '}],"exact":true',
      "}",
    ]);
  });

  it("goes on with a string that was not said to go on", () => {
    const pieces = ["a", "b"].map((stringValue) => ({ jsonPath: "$.x", stringValue }));
    expect(written(...pieces)).toBe('{"x":"ab"}');
  });

  it("writes nothing for no piece", () => {
    expect(written()).toBe("");
  });

  it("reads names in quotes, with escapes", () => {
    const path = "$['it\\'s']['a.b'][\"\\u0041\\n\"]";
    expect(JSON.parse(written({ jsonPath: path, numberValue: 1 }))).toEqual({
      "it's": { "a.b": { "A\n": 1 } },
    });
  });

  it.each<[string, PartialArg[]]>([
    [
      "a string whose end does not come",
      [{ jsonPath: "$.a", stringValue: "x", willContinue: true }],
    ],
    ["a string that is only announced", [{ jsonPath: "$.a", willContinue: true }]],
    ["a value that is not one", [{ jsonPath: "$.a" }]],
    ["a path that is not one", [{ jsonPath: "a", numberValue: 1 }]],
    ["a path with a filter", [{ jsonPath: "$.a[?x]", numberValue: 1 }]],
    ["no path", [{ numberValue: 1 }]],
    ["arguments that are an array", [{ jsonPath: "$[0]", numberValue: 1 }]],
    ["an array that begins in the middle", [{ jsonPath: "$.a[1]", numberValue: 1 }]],
    ["an array with a gap", numbers("$.a[0]", "$.a[2]")],
    ["a value twice", numbers("$.a", "$.a")],
    ["a name that was left", numbers("$.a.x", "$.b", "$.a.y")],
    ["a value inside of a number", numbers("$.a", "$.a.b")],
    ["a value around another", numbers("$.a.b", "$.a")],
    ["an array that turns out to be an object", numbers("$.a[0]", "$.a.b")],
  ])("never closes the text after %s", (_, pieces) => {
    const text = written(...pieces);
    expect(text).not.toBe("");
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
  });
});

function numbers(...paths: string[]): PartialArg[] {
  return paths.map((jsonPath) => ({ jsonPath, numberValue: 1 }));
}
