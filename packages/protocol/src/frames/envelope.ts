import { isRecord } from "@gyre/ai";
import { hasMoreParts } from "./frame-parts.ts";
import { MAX_FRAME_BYTES, MAX_FRAME_PARTS, MAX_ID_CHARS, MAX_TYPE_CHARS } from "./limits.ts";
import { withoutUndefined } from "./plain-data.ts";
import { invalidRequest, ProtocolError } from "./protocol-error.ts";

/** The version of the protocol in this package. */
export const PROTOCOL_VERSION = 1;

/** All supported versions, newest first. */
export const PROTOCOL_VERSIONS: readonly number[] = [PROTOCOL_VERSION];

/** The fields of a frame that depend on its type. */
export type Payload = Readonly<Record<string, unknown>>;

/** One frame, on any transport. */
export interface Envelope {
  readonly v: number;
  /** A command, an answer, or the name of an event. */
  readonly type: string;
  /** Of a request: its idempotency key. */
  readonly id: string;
  /** Milliseconds since 1970, by the sender's clock. */
  readonly ts?: number;
  /** Comes with `seq`; on an answer, without. */
  readonly stream?: string;
  /** Counts per stream and direction, from 1 by 1. */
  readonly seq?: number;
  /** The first of the deltas that this one was joined from; `seq` is the last. */
  readonly from?: number;
  /** The id of the message that this one answers. */
  readonly re?: string;
  readonly payload: Payload;
}

/** One frame as JSON: one line, without its end. Throws `ProtocolError` where it is too large. */
export function encode(envelope: Envelope, maxBytes: number = MAX_FRAME_BYTES): string {
  const text = JSON.stringify(envelope);
  if (exceeds(text, maxBytes)) throw tooLargeError(maxBytes, envelope.re);
  return text;
}

/**
 * Parses one frame, strictly; unknown fields are left out. Throws
 * `ProtocolError` with the id of the frame, where that could be read.
 */
export function decode(text: string, maxBytes: number = MAX_FRAME_BYTES): Envelope {
  if (exceeds(text, maxBytes)) throw tooLargeError(maxBytes);
  if (hasMoreParts(text, MAX_FRAME_PARTS)) {
    const what = `A frame has at most ${MAX_FRAME_PARTS} objects and lists.`;
    throw new ProtocolError("too_large", what);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidRequest("The frame is not JSON.", { cause });
  }
  return toEnvelope(value);
}

/** Checks a value as a frame, strictly: as `decode` does after parsing. */
export function toEnvelope(value: unknown): Envelope {
  if (!isRecord(value)) throw invalidRequest("A frame is a JSON object.");
  const { v, type, id, ts, stream, seq, from, re, payload = {} } = value;
  const wrong = (what: string): ProtocolError => invalidRequest(what, withReadableId(id));

  if (!isName(type, MAX_TYPE_CHARS)) {
    throw wrong(`"type" is a string of 1 to ${MAX_TYPE_CHARS} characters.`);
  }
  // The sender of `hello` cannot know yet which versions are supported.
  if (type !== "hello" && v !== PROTOCOL_VERSION) throw versionMismatchError(v, withReadableId(id));
  if (!isName(id, MAX_ID_CHARS)) {
    throw wrong(`"id" is a string of 1 to ${MAX_ID_CHARS} characters.`);
  }
  if (ts !== undefined && typeof ts !== "number") throw wrong('"ts" is a number.');
  if (stream !== undefined && !isName(stream, MAX_ID_CHARS)) {
    throw wrong(`"stream" is a string of 1 to ${MAX_ID_CHARS} characters.`);
  }
  if (re !== undefined && !isName(re, MAX_ID_CHARS)) {
    throw wrong(`"re" is a string of 1 to ${MAX_ID_CHARS} characters.`);
  }
  // `SequenceCheck` decides whether it is the next number; zero never is.
  if (seq !== undefined && !isCount(seq)) throw wrong('"seq" is a whole number.');
  if (from !== undefined && !isCount(from)) throw wrong('"from" is a whole number.');
  if (from !== undefined && (seq === undefined || from > seq)) {
    throw wrong('"from" comes with "seq", and is not above it.');
  }
  if (seq !== undefined && stream === undefined) throw wrong('"seq" comes with "stream".');
  if (!isRecord(payload)) throw wrong('"payload" is an object.');
  // The fast path: most frames are events of streams.
  const isEvent = ts !== undefined && stream !== undefined && seq !== undefined;
  if (isEvent && from === undefined && re === undefined) {
    return { v: PROTOCOL_VERSION, type, id, ts, stream, seq, payload };
  }
  return withoutUndefined({ v: PROTOCOL_VERSION, type, id, ts, stream, seq, from, re, payload });
}

function withReadableId(id: unknown): { re?: string } {
  return isName(id, MAX_ID_CHARS) ? { re: id } : {};
}

/** The newest version that both ends support; undefined where there is none. */
export function negotiate(
  offered: readonly unknown[],
  supported: readonly number[] = PROTOCOL_VERSIONS,
): number | undefined {
  const common = supported.filter((version) => offered.includes(version));
  return common.length > 0 ? Math.max(...common) : undefined;
}

/** The answer to a `hello`, or a frame, of another version. */
export function versionMismatchError(
  got: unknown,
  options: { re?: string } = {},
  supported: readonly number[] = PROTOCOL_VERSIONS,
): ProtocolError {
  const shown = typeof got === "number" ? `version ${got}` : "that version";
  return new ProtocolError(
    "version_mismatch",
    `This end does not speak ${shown}; it speaks ${supported.join(", ")}.`,
    { ...options, details: { versions: supported } },
  );
}

export function tooLargeError(maxBytes: number, re?: string): ProtocolError {
  const what = `A frame has at most ${maxBytes} bytes.`;
  return new ProtocolError("too_large", what, re === undefined ? {} : { re });
}

/** The length of a text in UTF-8. Half of a surrogate pair counts as its replacement would. */
export function measureUtf8(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    bytes += code < 0x800 ? 1 : 2;
    // A pair is four bytes for two units, and was counted as six.
    const next = code >= 0xd800 && code <= 0xdbff ? text.charCodeAt(at + 1) : 0;
    if (next >= 0xdc00 && next <= 0xdfff) at++;
  }
  return bytes;
}

/** No unit of UTF-16 takes more bytes than this in UTF-8. */
const MAX_BYTES_A_UNIT = 3;

function exceeds(text: string, maxBytes: number): boolean {
  if (text.length * MAX_BYTES_A_UNIT <= maxBytes) return false;
  return text.length > maxBytes || measureUtf8(text) > maxBytes;
}

function isName(value: unknown, maxChars: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= maxChars;
}

/** Whether a value is a whole number. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
