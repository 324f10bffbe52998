import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inPieces, utf8 } from "../testing/fake-service.ts";
import { FramingError, MAX_EVENT_CHARS, type Payload, SseDecoder } from "./sse.ts";

type Event = readonly [data: string, event?: string | undefined];

interface Decoded {
  events: Event[];
  rest: Payload | undefined;
}

function decode(input: string | Uint8Array, lengths?: readonly number[]): Decoded {
  const bytes = typeof input === "string" ? utf8(input) : input;
  const events: Event[] = [];
  const decoder = new SseDecoder((data, event) => {
    events.push(event === undefined ? [data] : [data, event]);
  });
  for (const piece of inPieces(bytes, lengths)) decoder.feed(piece);
  return { events, rest: decoder.end() };
}

describe("the format", () => {
  const cases: readonly [what: string, input: string, events: readonly Event[]][] = [
    ["an event of one line", "data: a\n\n", [["a"]]],
    ["no space after the colon", "data:a\n\n", [["a"]]],
    ["only one space is taken", "data:  a \n\n", [[" a "]]],
    ["lines are joined", "data: a\ndata\ndata:b\n\n", [["a\n\nb"]]],
    ["data that is empty", "data\n\ndata:\n\n", [[""], [""]]],
    ["two lines that are empty", "data\ndata\n\n", [["\n"]]],
    ["no data, no event", "event: a\n\nid: 1\n\n\n\n", []],
    ["a name counts for one event", "event: a\ndata: 1\n\ndata: 2\n\n", [["1", "a"], ["2"]]],
    ["a name is forgotten with its event", "event: a\n\ndata: 1\n\n", [["1"]]],
    ["the last name counts", "event: a\ndata: 1\nevent:b\n\n", [["1", "b"]]],
    ["an empty name counts as absent", "event: a\nevent\ndata: 1\n\n", [["1"]]],
    ["a name after CRLF", "event: a\r\ndata: 1\r\n\r\n", [["1", "a"]]],
    ["comments", ": x\ndata: 1\n:\n:data: 2\n\n", [["1"]]],
    ["id and retry", "id: 1\nretry: 5\ndata: 1\n\n", [["1"]]],
    ["unknown fields", "datas: 0\n data: 0\nDATA: 0\nevents: 0\ndat\ndata: 1\n\n", [["1"]]],
    ["a NUL is a character", "data: a\0b\nid: \0\ndata\0: c\n\n", [["a\0b"]]],
    ["all line ends", "data: 1\rdata: 2\ndata: 3\r\n\r\rdata: 4\n\r\n", [["1\n2\n3"], ["4"]]],
    ["CR alone", "data: 1\r\rdata: 2\r\r", [["1"], ["2"]]],
    ["LF then CR are two line ends", "data: 1\n\rdata: 2\n\r", [["1"], ["2"]]],
    ["one byte order mark", "\uFEFFdata: 1\n\n\uFEFFdata: 2\n\ndata: 3\n\n", [["1"], ["3"]]],
    ["two byte order marks", "\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n", [["2"]]],
    ["text of all widths", "event: é\ndata: €😀\n\n", [["€😀", "é"]]],
    ["other line ends of Unicode", "data: a\u2028\u0085\u000bb\n\n", [["a\u2028\u0085\u000bb"]]],
  ];
  for (const [what, input, events] of cases) {
    test(`reads: ${what}`, () => {
      expect(decode(input)).toEqual({ events, rest: undefined });
      const bytes = utf8(input);
      for (const length of [1, 2, 3, 7]) expect(decode(bytes, [length]).events).toEqual(events);
      for (let at = 1; at < bytes.length; at++) {
        expect(decode(bytes, [at, bytes.length]).events, `cut at ${at}`).toEqual(events);
      }
    });
  }

  test("malformed UTF-8 becomes the replacement character", () => {
    const bytes = Uint8Array.from([...utf8("data: a"), 0xff, 0xe2, 0x82, ...utf8("b\n\n")]);
    for (const length of [1, 2, 3, 100]) {
      expect(decode(bytes, [length]).events).toEqual([["a\uFFFD\uFFFDb"]]);
    }
  });

  test("an event is there with the first byte that ends it", () => {
    for (const [before, last] of [
      ["data: 1\n", "\n"],
      ["data: 1\r", "\r"],
      ["data: 1\r\n", "\r"],
    ] as const) {
      const events: string[] = [];
      const decoder = new SseDecoder((data) => events.push(data));
      decoder.feed(utf8(before));
      expect(events).toEqual([]);
      decoder.feed(utf8(last));
      expect(events).toEqual(["1"]);
    }
  });
});

describe("the end", () => {
  test("answers with an event that has no blank line after it", () => {
    expect(decode("data: 1\n\nevent: x\ndata: 2\n").rest).toEqual({ data: "2", event: "x" });
    expect(decode("data: 1\ndata: 2").rest).toEqual({ data: "1\n2" });
    expect(decode("data: 2\r").rest).toEqual({ data: "2" });
    expect(decode(`data: ${"x".repeat(3000)}`, [50]).rest).toEqual({ data: "x".repeat(3000) });
  });

  test("answers with nothing where there is no data", () => {
    for (const input of ["", "\n", "data: 1\n\n", "event: x\n", "data", "dat", ": x", "id: 1"]) {
      expect(decode(input).rest, JSON.stringify(input)).toBeUndefined();
    }
  });

  test("does not take a cut name for the name", () => {
    expect(decode("data: 1\nevent: respon").rest).toEqual({ data: "1" });
  });

  test("answers once", () => {
    const decoder = new SseDecoder(() => {});
    decoder.feed(utf8("data: 1\ndata: 2"));
    expect(decoder.end()).toEqual({ data: "1\n2" });
    expect(decoder.end()).toBeUndefined();
  });
});

describe("against a second opinion", () => {
  const piece = fc.constantFrom(
    ...["data", "event", "id", "retry", "da", "datax", ":", ": ", " ", "\n", "\r", "\r\n", "\n\n"],
    ...["\0", "a", "é", "€", "😀", "data: {}\n\n", "event: e\n", "\r\n\r\n", "\uFEFF", "1"],
    ...["x".repeat(70), "data: ".repeat(200)],
  );
  const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 6 });

  test("any text, cut anywhere, gives the events that eventsource-parser finds", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), lengths, (pieces, cuts) => {
        // The last letters keep a CR at the end from being held back by the other one.
        const text = `${pieces.join("")}\n\nend`;
        const expected: Event[] = [];
        const parser = createParser({
          onEvent: ({ data, event }) => expected.push(event === undefined ? [data] : [data, event]),
        });
        parser.feed(text.startsWith("\uFEFF") ? text.slice(1) : text);
        expect(decode(text).events).toEqual(expected);
        expect(decode(text, cuts).events).toEqual(expected);
      }),
      { numRuns: 3000 },
    );
  });

  test("any text gives the same events and the same rest, however it is cut", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), lengths, (pieces, cuts) => {
        const text = pieces.join("");
        expect(decode(text, cuts)).toEqual(decode(text));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("limits", () => {
  const MEBIBYTE = 1024 * 1024;
  const mebibyte = new Uint8Array(MEBIBYTE).fill(0x78);

  test("a line without end is refused at the limit", () => {
    const decoder = new SseDecoder(() => {});
    decoder.feed(utf8("data:"));
    for (let fed = 0; fed < MAX_EVENT_CHARS - MEBIBYTE; fed += MEBIBYTE) decoder.feed(mebibyte);
    expect(() => decoder.feed(mebibyte)).toThrow(FramingError);
  });

  test("lines without end are refused at the limit", () => {
    const decoder = new SseDecoder(() => {});
    const line = Uint8Array.from([...utf8("data:"), ...mebibyte, ...utf8("\n")]);
    for (let fed = 0; fed < MAX_EVENT_CHARS - MEBIBYTE; fed += MEBIBYTE) decoder.feed(line);
    expect(() => decoder.feed(line)).toThrow(/longer than 67108864 characters/);
  });

  test("a long line comes whole out of many pieces", () => {
    const text = "0123456789abcdef".repeat(40_000);
    expect(decode(`data: ${text}\n\n`, [1024]).events).toEqual([[text]]);
    expect(decode(`data: ${text}\n\n`, [7]).events).toEqual([[text]]);
  });
});
