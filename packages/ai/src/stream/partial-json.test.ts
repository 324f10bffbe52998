import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FLAT_CHUNK_CHARS } from "./growing-text.ts";
import { MAX_JSON_DEPTH, PartialJsonParser, type PartialJsonResult } from "./partial-json.ts";

/** What shows after `text`, fed in one piece. */
function partial(text: string): unknown {
  const parser = new PartialJsonParser();
  parser.feed(text);
  expect(parser.error).toBeUndefined();
  return parser.value;
}

/** The parser after `text`, cut into pieces of the given lengths, over and over. */
function fed(text: string, lengths: readonly number[] = [text.length]): PartialJsonParser {
  const parser = new PartialJsonParser();
  for (const piece of pieces(text, lengths)) parser.feed(piece);
  return parser;
}

function parse(text: string, lengths?: readonly number[]): PartialJsonResult {
  return fed(text, lengths).end();
}

function pieces(text: string, lengths: readonly number[]): string[] {
  const cut: string[] = [];
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    cut.push(text.slice(at, at + length));
    at += length;
  }
  return cut;
}

function reference(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** The same in everything a program can see: signs of zero, own keys and their order, prototypes. */
function identical(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const keys = Reflect.ownKeys(a);
  const others = Reflect.ownKeys(b);
  return (
    keys.length === others.length &&
    keys.every((key, index) => key === others[index] && identicalProperty(a, b, key))
  );
}

function identicalProperty(a: object, b: object, key: PropertyKey): boolean {
  const one = Object.getOwnPropertyDescriptor(a, key);
  const other = Object.getOwnPropertyDescriptor(b, key);
  return (
    one?.writable === other?.writable &&
    one?.enumerable === other?.enumerable &&
    one?.configurable === other?.configurable &&
    identical(one?.value, other?.value)
  );
}

/** Whether `part` is what may show of `whole` while it arrives. */
function isWithin(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  if (Array.isArray(part)) {
    return (
      Array.isArray(whole) &&
      part.length <= whole.length &&
      part.every((item, index) => isWithin(item, whole[index]))
    );
  }
  if (typeof part === "object" && part !== null) {
    if (typeof whole !== "object" || whole === null) return false;
    const final = new Map<string, unknown>(Object.entries(whole));
    return Object.entries(part).every(
      ([key, value]) => final.has(key) && isWithin(value, final.get(key)),
    );
  }
  return Object.is(part, whole);
}

const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 2 });
const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 4 });
const numberText = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.constant("0"), fc.integer({ min: 1 }).map(String)),
    fc.option(digits, { nil: "" }),
    fc.constantFrom("", "e", "E+", "e-"),
    digits,
  )
  .map(
    ([sign, integer, fraction, exponent, power]) =>
      sign + integer + (fraction && `.${fraction}`) + (exponent && exponent + power),
  );
const hex = (min: number, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min, max }), fc.boolean())
    .map(([code, upper]) =>
      code.toString(16).padStart(4, "0")[upper ? "toUpperCase" : "toLowerCase"](),
    )
    .map((code) => `\\u${code}`);
const stringPart = fc.oneof(
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom("\\n", '\\"', "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "é", "\u2028", "\x7f"),
  hex(0, 0xffff),
  hex(0xd800, 0xdfff),
  fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => String.fromCharCode(code)),
);
const stringText = fc.array(stringPart, { maxLength: 5 }).map((parts) => `"${parts.join("")}"`);
const keyText = fc.oneof(
  stringText,
  fc.constantFrom('"a"', '"b"', '"0"', '"1"', '""', '"__proto__"', '"constructor"', '"toString"'),
  fc.constant('"\\u005f_proto__"'),
);
/** JSON as no serializer writes it: any spacing, escapes, forms of numbers and repeated keys. */
const { jsonText } = fc.letrec<{ jsonText: string }>((tie) => ({
  jsonText: fc
    .tuple(
      space,
      fc.oneof(
        { maxDepth: 5, depthIdentifier: "json" },
        numberText,
        stringText,
        fc.constantFrom("true", "false", "null"),
        fc
          .array(tie("jsonText"), { maxLength: 4, depthIdentifier: "json" })
          .map((items) => `[${items.join(",")}]`),
        fc
          .array(fc.tuple(space, keyText, space, tie("jsonText")), {
            maxLength: 4,
            depthIdentifier: "json",
          })
          .map((fields) =>
            fields.map(([before, key, after, value]) => `${before}${key}${after}:${value}`),
          )
          .map((fields) => `{${fields.join(",")}}`),
      ),
      space,
    )
    .map((parts) => parts.join("")),
}));
const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 });
const runs = { numRuns: 1000 };

describe("a complete input", () => {
  test("gives the value that JSON.parse gives, however it is cut", () => {
    fc.assert(
      fc.property(fc.oneof(jsonText, fc.json()), lengths, (text, cuts) => {
        const result = parse(text, cuts);
        expect(result).toMatchObject({ ok: true });
        expect(result.ok && identical(result.value, JSON.parse(text))).toBe(true);
      }),
      runs,
    );
  });

  test("is refused exactly when JSON.parse refuses it", () => {
    const alphabet = fc.constantFrom(..."{}[]:,\"\\/truefalsn0123-+.eE \n\t\u00a0\ufeff\u0000xu'");
    const damaged = fc
      .tuple(jsonText, fc.nat(), fc.nat({ max: 2 }), fc.string({ unit: alphabet, maxLength: 2 }))
      .map(([text, where, removed, added]) => {
        const at = where % (text.length + 1);
        return text.slice(0, at) + added + text.slice(at + removed);
      });
    fc.assert(
      fc.property(
        fc.oneof(damaged, fc.string({ unit: alphabet }), fc.string()),
        lengths,
        (text, cuts) => {
          const expected = reference(text);
          const result = parse(text, cuts);
          expect(result.ok).toBe(expected !== undefined);
          if (result.ok) expect(identical(result.value, expected?.value)).toBe(true);
        },
      ),
      { numRuns: 5000 },
    );
  });

  test.each(
    [
      [
        "0",
        "-0",
        "-",
        "01",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "1E5",
        "1e400",
        "-1e400",
        "1e-400",
        "1.5.5",
      ],
      ["12345678901234567890", "0.1e1", "0e0", "0x10", "1_0", "NaN", "Infinity", "1 2"],
      ["true", "tru", "truee", "True", "null", "nul", "undefined", "falsey"],
      [
        '"',
        '"a',
        '"\t"',
        '"\x1f"',
        '"\x7f"',
        '"\u2028"',
        '"\\x"',
        '"\\u12"',
        '"\\u12g4"',
        '"\\',
        "'a'",
        '"a""b"',
      ],
      [
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ud83d\\n"',
        '"\\uD83Dx"',
        '"\ud83d\\ude00"',
      ],
      ["[", "[]", "[,]", "[1,]", "[1,,2]", "[1 2]", "[1}", "]", "[]]", "[[]"],
      [
        "{",
        "{}",
        "{,}",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{"a":1',
        "{a:1}",
        '{"a" 1}',
        '{"a":1]',
        "{1:1}",
      ],
      ['{"a":1,"b":2,"a":3}', '{"2":0,"b":0,"1":0}', '{"":""}', '{"toString":1,"toString":[]}'],
      ["", " ", "\u00a01", "\ufeff1", "\v1", "1\f", "//", "/**/1", "1//"],
    ].flat(),
  )("agrees with JSON.parse on %j", (text) => {
    const expected = reference(text);
    for (const cuts of [[text.length], [1], [2, 1]]) {
      const result = parse(text, cuts);
      expect(result.ok).toBe(expected !== undefined);
      if (result.ok) expect(identical(result.value, expected?.value)).toBe(true);
    }
  });

  test("with a key __proto__ makes an own property and leaves the prototype alone", () => {
    for (const text of [
      '{"__proto__":{"admin":true}}',
      '{"__proto__":"cut here","__proto__":{"admin":true}}',
    ]) {
      const { value } = fed(text, [5]);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(value).not.toHaveProperty("admin");
      expect(Object.hasOwn(Object(value), "__proto__")).toBe(true);
      expect(identical(value, JSON.parse(text))).toBe(true);
    }
  });

  test("ends once: asking again gives the same answer, and more input is an error", () => {
    const parser = fed("12");
    expect(parser.value).toBeUndefined();
    expect(parser.end()).toEqual({ ok: true, value: 12 });
    expect(parser.end()).toEqual({ ok: true, value: 12 });
    parser.feed("3");
    expect(parser.end()).toMatchObject({ ok: false, position: 2 });
  });
});

describe("a partial value", () => {
  test.each<[string, unknown]>([
    ["", undefined],
    ["  ", undefined],
    ["{", {}],
    ['{"pa', {}],
    ['{"path"', {}],
    ['{"path":', {}],
    ['{"path":"', { path: "" }],
    ['{"path":"a.', { path: "a." }],
    ['{"path":"a.ts"', { path: "a.ts" }],
    ['{"path":"a.ts","n":12', { path: "a.ts" }],
    ['{"path":"a.ts","n":12,', { path: "a.ts", n: 12 }],
    ['{"a":tru', {}],
    ['{"a":true', { a: true }],
    ['{"a":nul', {}],
    ["[", []],
    ['["a', ["a"]],
    ['["a","', ["a", ""]],
    ["[[1,2],[3", [[1, 2], []]],
    ['[{"a":[{"b":"c', [{ a: [{ b: "c" }] }]],
    ['"text', "text"],
  ])("of %j is %j", (text, expected) => {
    expect(partial(text)).toEqual(expected);
  });

  test.each([
    ['"a\\', "a"],
    ['"a\\u', "a"],
    ['"a\\u00e', "a"],
    ['"a\\u00e9', "aé"],
    ['"a\\n', "a\n"],
    ['"a\\ud83d', "a"],
    ['"a\\ud83d\\ude0', "a"],
    ['"a\\ud83d\\ude00', "a\ud83d\ude00"],
    ['"a\\ud83db', "a\ud83db"],
    ['"a\\ud83d"', "a\ud83d"],
    ['"a\\ud83d\\ud83d', "a\ud83d"],
    ['"a\\ude00', "a\ude00"],
    ['"a\ud83d', "a"],
    ['"a\ud83d\ude00', "a\ud83d\ude00"],
  ])("of the string %j shows no half of a character", (text, expected) => {
    expect(partial(text)).toBe(expected);
    expect(fed(text, [1]).value).toBe(expected);
  });

  test("is live: the same objects grow", () => {
    const parser = fed('{"list":["a');
    const { value } = parser;
    parser.feed('b","c"]');
    expect(value).toEqual({ list: ["ab", "c"] });
    expect(parser.value).toBe(value);
  });

  test("is at every cut a part of the final value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), lengths, (final, cuts) => {
        const parser = new PartialJsonParser();
        for (const piece of pieces(JSON.stringify(final), cuts)) {
          parser.feed(piece);
          const { value } = parser;
          expect(value === undefined || isWithin(value, JSON.parse(JSON.stringify(final)))).toBe(
            true,
          );
        }
      }),
      runs,
    );
  });

  test("depends on what came, not on how it was cut", () => {
    fc.assert(
      fc.property(
        jsonText,
        fc.nat(),
        fc.constantFrom("", "\u0000", "}", "\\x"),
        lengths,
        (text, where, added, cuts) => {
          const begun = text.slice(0, where % (text.length + 1)) + added;
          const whole = fed(begun);
          const cut = fed(begun, cuts);
          expect(identical(cut.value, whole.value)).toBe(true);
          expect(cut.error).toEqual(whole.error);
          expect(cut.end()).toEqual(whole.end());
        },
      ),
      runs,
    );
  });
});

describe("an error", () => {
  test.each([
    ['{"a":1,"path":}', 'Unexpected "}" at position 14: expected a value'],
    ["[}", 'Unexpected "}" at position 1: expected a value or "]"'],
    ["{1", 'Unexpected "1" at position 1: expected a key in double quotes or "}"'],
    ['{"a":1,}', 'Unexpected "}" at position 7: expected a key in double quotes'],
    ['{"a",', 'Unexpected "," at position 4: expected ":" after the key'],
    ['{"a":1]', 'Unexpected "]" at position 6: expected "," or "}"'],
    ["[1;", 'Unexpected ";" at position 2: expected "," or "]"'],
    ["{} x", 'Unexpected "x" at position 3: expected nothing after the value'],
    [
      '"a\nb"',
      "Unexpected U+000A at position 2: expected the rest of the string, with control characters escaped",
    ],
    ['"\\q"', 'Unexpected "q" at position 2: expected one of "\\/bfnrtu after the backslash'],
    ['"\\u12x"', 'Unexpected "x" at position 5: expected four hexadecimal digits after \\u'],
    ["-a", 'Unexpected "a" at position 1: expected a digit'],
    ["trve", 'Unexpected "v" at position 2: expected true'],
    ["\ufeff{}", "Unexpected U+FEFF at position 0: expected a value"],
    ["[😀]", 'Unexpected "😀" at position 1: expected a value or "]"'],
  ])("in %j says where, what was found and what was expected", (text, message) => {
    for (const cuts of [[text.length], [3, 4]])
      expect(fed(text, cuts).error?.message).toBe(message);
  });

  test.each([
    ["", "Unexpected end of input at position 0: expected a value"],
    [
      '{"a":"b',
      "Unexpected end of input at position 7: expected the rest of the string, with control characters escaped",
    ],
    ["[1", 'Unexpected end of input at position 2: expected "," or "]"'],
    ['{"a":1', 'Unexpected end of input at position 6: expected "," or "}"'],
    ["1.", "Unexpected end of input at position 2: expected a digit"],
    ["nul", "Unexpected end of input at position 3: expected null"],
  ])("at the end of %j reports that input is missing", (text, error) => {
    const parser = fed(text, [2]);
    expect(parser.error).toBeUndefined();
    expect(parser.end()).toEqual({ ok: false, error, position: text.length });
    expect(parser.error).toEqual({ message: error, position: text.length });
  });

  test("keeps the value that had been parsed, and the first error, whatever follows", () => {
    const parser = fed('{"a":"b","c":"d\u0001');
    const { error } = parser;
    parser.feed('ef","g":1}');
    expect(parser.value).toEqual({ a: "b", c: "d" });
    expect(parser.error).toBe(error);
    expect(parser.end()).toMatchObject({ ok: false, position: 15 });
  });

  test("does not show a number that the end of input may have cut", () => {
    const parser = fed('{"a":1,"b":12');
    expect(parser.end().ok).toBe(false);
    expect(parser.value).toEqual({ a: 1 });
  });
});

describe("nesting", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  test("is accepted up to the limit", () => {
    expect(parse(nested(MAX_JSON_DEPTH)).ok).toBe(true);
    expect(parse(`[${nested(MAX_JSON_DEPTH - 1)},${nested(MAX_JSON_DEPTH - 1)}]`).ok).toBe(true);
  });

  test("beyond the limit is an error that names the limit", () => {
    expect(parse(nested(MAX_JSON_DEPTH + 1), [7])).toEqual({
      ok: false,
      error: `Nested too deep at position 256: at most ${MAX_JSON_DEPTH} levels may be open`,
      position: MAX_JSON_DEPTH,
    });
    expect(parse('{"a":'.repeat(100_000)).ok).toBe(false);
  });
});

describe("the work for a delta", () => {
  test.each([
    ["a long string", '{"path":"a.ts","content":"', 'x = \\"é\\";\\n\\tgo(1);'],
    ["many items", "[", '{"a":[1,-2.5],"b":null},'],
    ["a long key", '{"', "key and key "],
    ["a long number", "", "1234567890"],
    ["input after an error", "}", "[1,2,3]"],
  ])("of %s does not grow with what came before", (_, start, repeated) => {
    const length = 16;
    const deltas = pieces(start + repeated.repeat(5_000), [length]);
    const parser = new PartialJsonParser();
    const work = deltas.map((delta) => touchedChars(() => parser.feed(delta)));
    const half = Math.floor(work.length / 2);
    const sum = (counts: readonly number[]): number =>
      counts.reduce((total, count) => total + count, 0);
    expect(sum(work.slice(half))).toBeLessThan(
      sum(work.slice(0, half)) * 1.05 + FLAT_CHUNK_CHARS + 1000,
    );
    // At most: each character looked at a few times, each time as part of a delta,
    // and now and then one flat chunk.
    expect(Math.max(...work)).toBeLessThan(FLAT_CHUNK_CHARS + length * length * 8);
  });
});

/**
 * How many characters the string methods that `run` calls may have had to touch: the
 * length of each string that one is called on, since the engine may have to write
 * out the whole of it first.
 */
function touchedChars(run: () => void): number {
  let touched = 0;
  const prototype = String.prototype;
  const original = Object.getOwnPropertyDescriptors(prototype);
  for (const [name, descriptor] of Object.entries(original)) {
    const method: unknown = descriptor.value;
    if (typeof method !== "function" || name === "constructor") continue;
    Object.defineProperty(prototype, name, {
      ...descriptor,
      value(this: string, ...args: unknown[]): unknown {
        touched += this.length;
        return Reflect.apply(method, this, args);
      },
    });
  }
  try {
    run();
  } finally {
    Object.defineProperties(prototype, original);
  }
  return touched;
}
