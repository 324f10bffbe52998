import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inPieces, utf8 } from "../testing/fake-service.ts";
import { FramingError, MAX_EVENT_CHARS, type Payload } from "./sse.ts";
import { JsonArrayDecoder } from "./json-array.ts";

interface Decoded {
  elements: string[];
  rest: Payload | undefined;
  complete: boolean;
}

function decode(text: string, lengths?: readonly number[]): Decoded {
  const elements: string[] = [];
  const decoder = new JsonArrayDecoder((data) => elements.push(data));
  for (const piece of inPieces(utf8(text), lengths)) decoder.feed(piece);
  return { elements, rest: decoder.end(), complete: decoder.complete };
}

describe("a JSON array that comes bit by bit", () => {
  test("gives each element, however it is cut", () => {
    const elements = [
      '{"a": [1, {"b": "]}"}]}',
      "{}",
      '{"quote": "\\"}", "backslash": "\\\\", "é": "😀"}',
    ];
    const text = `\n[${elements.join("\n,\r\n\t")}\n]\n`;
    expect(decode(text)).toEqual({ elements, rest: undefined, complete: true });
    expect(decode(text, [1]).elements).toEqual(elements);
    for (let at = 1; at < utf8(text).length; at++) {
      expect(decode(text, [at, 1000]).elements, `cut at ${at}`).toEqual(elements);
    }
  });

  test("gives an element with its closing brace, and not before", () => {
    const elements: string[] = [];
    const decoder = new JsonArrayDecoder((data) => elements.push(data));
    decoder.feed(utf8('[{"a":{}'));
    expect(elements).toEqual([]);
    decoder.feed(utf8("}"));
    expect(elements).toEqual(['{"a":{}}']);
    expect(decoder.complete).toBe(false);
    decoder.feed(utf8("]"));
    expect(decoder.complete).toBe(true);
  });

  test("may be empty", () => {
    expect(decode("[ ]")).toEqual({ elements: [], rest: undefined, complete: true });
  });

  test("may be one object instead", () => {
    const body = '{\n  "error": {"code": 400}\n}';
    expect(decode(`${body}\n`)).toEqual({ elements: [body], rest: undefined, complete: true });
    expect(decode('{"error": {').complete).toBe(false);
  });

  test("gives what any list of objects was written from", () => {
    const list = fc.array(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), {
      maxLength: 6,
    });
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(list, lengths, fc.constantFrom(0, 2), (values, cuts, indent) => {
        const { elements, complete } = decode(JSON.stringify(values, null, indent), cuts);
        expect(elements.map((text): unknown => JSON.parse(text))).toEqual(
          JSON.parse(JSON.stringify(values)),
        );
        expect(complete).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("the end", () => {
  test("answers with an element that was cut off", () => {
    expect(decode('[{"a":1},{"b":"x')).toEqual({
      elements: ['{"a":1}'],
      rest: { data: '{"b":"x' },
      complete: false,
    });
  });

  test("answers with nothing between elements, which is not complete", () => {
    for (const text of ["", " ", "[", '[{"a":1}', '[{"a":1},']) {
      expect(decode(text), text).toMatchObject({ rest: undefined, complete: false });
    }
  });
});

describe("what is no such array", () => {
  for (const text of [
    "<html>",
    "data: {}",
    '"text"',
    "[1]",
    "[,{}]",
    "[{}{}]",
    "[{},]",
    "[{},,{}]",
    "[[{}]]",
    "[{}]]",
    "[{}] {}",
    "{} {}",
    "]",
    "}",
  ]) {
    test(`${text} is refused`, () => {
      expect(() => decode(text)).toThrow(FramingError);
      expect(() => decode(text, [1])).toThrow(FramingError);
    });
  }

  test("the error says what stood there instead of what", () => {
    expect(() => decode("😀")).toThrow('Expected an array or an object of a JSON body, got "😀"');
  });

  test("an element without end is refused at the limit", () => {
    const decoder = new JsonArrayDecoder(() => {});
    decoder.feed(utf8('[{"a":"'));
    const chunk = new Uint8Array(4 * 1024 * 1024).fill(0x78);
    for (let fed = chunk.length; fed < MAX_EVENT_CHARS; fed += chunk.length) decoder.feed(chunk);
    expect(() => decoder.feed(chunk)).toThrow(FramingError);
  });
});
