import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inPieces, utf8 } from "../../testing/fake-service.ts";
import {
  AwsEventStreamDecoder,
  type AwsMessageKind,
  crc32,
  MAX_HEADERS_BYTES,
  MAX_MESSAGE_BYTES,
} from "./event-stream.ts";
import { FramingError } from "../../stream/sse.ts";

function u32(value: number): number[] {
  return [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function u16(value: number): number[] {
  return [value >>> 8, value & 0xff];
}

function header(name: string, type: number, value: ArrayLike<number>): number[] {
  const bytes = utf8(name);
  return [bytes.length, ...bytes, type, ...Array.from(value)];
}

function text(name: string, value: string): number[] {
  const bytes = utf8(value);
  return header(name, 7, [...u16(bytes.length), ...bytes]);
}

/** A message with both its checksums, from headers that are in bytes already. */
function message(headers: readonly number[], payload: string): number[] {
  const body = utf8(payload);
  const lengths = [...u32(16 + headers.length + body.length), ...u32(headers.length)];
  const all = [...lengths, ...u32(crc32(Uint8Array.from(lengths))), ...headers, ...body];
  return [...all, ...u32(crc32(Uint8Array.from(all)))];
}

function event(name: string, payload: string): number[] {
  return message([...text(":event-type", name), ...text(":message-type", "event")], payload);
}

/** A prelude with its right checksum. */
function prelude(total: number, headers: number): Uint8Array {
  const lengths = [...u32(total), ...u32(headers)];
  return Uint8Array.from([...lengths, ...u32(crc32(Uint8Array.from(lengths)))]);
}

type Message = [data: string, event: string | undefined, kind: AwsMessageKind];

function decode(
  bytes: ArrayLike<number>,
  lengths?: readonly number[],
): { messages: Message[]; incomplete: boolean } {
  const messages: Message[] = [];
  const decoder = new AwsEventStreamDecoder((...each) => messages.push(each));
  for (const piece of inPieces(Uint8Array.from(bytes), lengths)) decoder.feed(piece);
  expect(decoder.end()).toBeUndefined();
  return { messages, incomplete: decoder.incomplete };
}

test("the checksum is CRC-32", () => {
  // The check value that every description of CRC-32 gives.
  expect(crc32(utf8("123456789"))).toBe(0xcbf43926);
  expect(crc32(new Uint8Array(0))).toBe(0);
});

describe("messages", () => {
  const two = [...event("contentBlockDelta", '{"text":"é😀"}'), ...event("messageStop", "{}")];
  const expected: Message[] = [
    ['{"text":"é😀"}', "contentBlockDelta", "event"],
    ["{}", "messageStop", "event"],
  ];

  test("are the same however the bytes are cut", () => {
    expect(decode(two)).toEqual({ messages: expected, incomplete: false });
    expect(decode(two, [1]).messages).toEqual(expected);
    for (let at = 1; at < two.length; at++) {
      expect(decode(two, [at, 1000]).messages, `cut at ${at}`).toEqual(expected);
    }
  });

  test("any number of them, cut anywhere, come as they were written", () => {
    const list = fc.array(fc.tuple(fc.string({ maxLength: 20 }), fc.string({ unit: "grapheme" })));
    const lengths = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(list, lengths, (events, cuts) => {
        const bytes = events.flatMap(([name, payload]) => event(name, payload));
        expect(decode(bytes, cuts).messages).toEqual(
          events.map(([name, payload]) => [payload, name, "event"]),
        );
      }),
      { numRuns: 300 },
    );
  });

  test("come with the byte that ends them", () => {
    const bytes = Uint8Array.from(event("a", "{}"));
    const messages: string[] = [];
    const decoder = new AwsEventStreamDecoder((data) => messages.push(data));
    decoder.feed(bytes.subarray(0, -1));
    expect(messages).toEqual([]);
    expect(decoder.incomplete).toBe(true);
    decoder.feed(bytes.subarray(-1));
    expect(messages).toEqual(["{}"]);
    expect(decoder.incomplete).toBe(false);
  });

  test("may have headers of all types", () => {
    const headers = [
      ...header("true", 0, []),
      ...header("false", 1, []),
      ...header("byte", 2, [1]),
      ...header("short", 3, [1, 2]),
      ...header("integer", 4, [1, 2, 3, 4]),
      ...header("long", 5, [1, 2, 3, 4, 5, 6, 7, 8]),
      ...header("bytes", 6, [0, 3, 1, 2, 3]),
      ...text("string", "é"),
      ...header("time", 8, [1, 2, 3, 4, 5, 6, 7, 8]),
      ...header("uuid", 9, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
      ...text(":event-type", "last"),
    ];
    expect(decode(message(headers, "x")).messages).toEqual([["x", "last", "event"]]);
  });

  test("may have no headers and no payload", () => {
    expect(decode(message([], "")).messages).toEqual([["", undefined, "event"]]);
  });

  test("of exceptions and errors are distinguished", () => {
    const exception = message(
      [...text(":message-type", "exception"), ...text(":exception-type", "throttlingException")],
      '{"message":"Too fast"}',
    );
    const error = message(
      [
        ...text(":message-type", "error"),
        ...text(":error-code", "InternalError"),
        ...text(":error-message", "It broke"),
      ],
      "",
    );
    expect(decode([...exception, ...error]).messages).toEqual([
      ['{"message":"Too fast"}', "throttlingException", "exception"],
      ["It broke", "InternalError", "error"],
    ]);
  });
});

describe("what is no message", () => {
  test("a changed byte anywhere is refused", () => {
    const bytes = event("a", '{"b":1}');
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.with(at, (bytes[at] ?? 0) ^ 0x10);
      expect(() => decode(changed), `byte ${at}`).toThrow(FramingError);
    }
  });

  test("the error says at which byte of the body it showed", () => {
    const first = event("a", "{}");
    const second = event("b", "{}");
    const changed = [...first, ...second.slice(0, -1), (second.at(-1) ?? 0) ^ 1];
    expect(() => decode(changed)).toThrow(
      `A message does not match its checksum (at byte ${first.length + second.length} of`,
    );
  });

  test("impossible lengths are refused as soon as they are read", () => {
    for (const [total, headers] of [
      [0, 0],
      [15, 0],
      [MAX_MESSAGE_BYTES + 1, 0],
      [0xffffffff, 0],
      [20, 5],
      [MAX_MESSAGE_BYTES, MAX_HEADERS_BYTES + 1],
    ] as const) {
      expect(() => decode(prelude(total, headers)), `${total} ${headers}`).toThrow(FramingError);
    }
    expect(decode(prelude(MAX_MESSAGE_BYTES, MAX_HEADERS_BYTES)).incomplete).toBe(true);
  });

  test("headers that go beyond their end are refused", () => {
    const whole = text("name", "value");
    for (let length = 1; length < whole.length; length++) {
      expect(() => decode(message(whole.slice(0, length), "xxxxxxxxxxxx")), `${length}`).toThrow(
        /beyond the headers/,
      );
    }
  });

  test("a header of an unknown type is refused", () => {
    expect(() => decode(message(header("a", 10, []), ""))).toThrow(/unknown type 10/);
  });

  test("bytes that are left over make no message", () => {
    const bytes = event("a", "{}");
    for (let length = 1; length < bytes.length; length++) {
      expect(decode(bytes.slice(0, length))).toEqual({ messages: [], incomplete: true });
    }
  });
});
