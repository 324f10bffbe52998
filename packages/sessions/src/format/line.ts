import { isRecord } from "@gyre/ai";
import { crc32 } from "node:zlib";
import type { Fields } from "./body.ts";
import { type EntryType, SESSION_VERSION, type SessionHeader } from "./entry.ts";

/** A longer line counts as damage, and is not written. */
export const MAX_LINE_BYTES: number = 256 * 1024 * 1024;
export const LF = 0x0a;
const CR = 0x0d;

/** The end of every line, before its LF: `,"crc":"0123abcd"}`. */
const CRC_START = ',"crc":"';
const CRC_DIGITS = 8;
const TAIL_BYTES = CRC_START.length + CRC_DIGITS + 2;
const CRC_START_BYTES = Buffer.from(CRC_START);
const HEX = 16;

/** The fields of a line before its body. */
export interface LineHead {
  id: number;
  parentId: number | null;
  type: EntryType;
  /** The epoch of the writer. */
  w: number;
  timestamp: number;
}

/** The line of an entry. `data` is the JSON object of what follows the head. */
export function encodeEntry({ id, parentId, type, w, timestamp }: LineHead, data: string): Buffer {
  const head = `{"id":${id},"parentId":${parentId},"type":"${type}","w":${w},"timestamp":${timestamp}`;
  return sealed(data === "{}" ? head : `${head},${data.slice(1, -1)}`);
}

export function encodeHeader(header: Omit<SessionHeader, "type" | "version">): Buffer {
  const fields = { type: "session", version: SESSION_VERSION, ...header };
  return sealed(JSON.stringify(fields).slice(0, -1));
}

function sealed(open: string): Buffer {
  const bytes = Buffer.byteLength(open);
  const line = Buffer.allocUnsafe(bytes + TAIL_BYTES + 1);
  line.write(open, 0, "utf8");
  const crc = crc32(line.subarray(0, bytes)).toString(HEX).padStart(CRC_DIGITS, "0");
  line.write(`${CRC_START}${crc}"}\n`, bytes, "latin1");
  return line;
}

/**
 * Looks at the end of a line (without LF). `none`: it has no checksum, as a line written by
 * hand; `right` and `wrong` are what the checksum says.
 */
export function checkLine(bytes: Buffer, start: number, end: number): "right" | "wrong" | "none" {
  const tail = end - TAIL_BYTES;
  if (tail <= start) return "none";
  for (let i = 0; i < CRC_START.length; i++) {
    if (bytes[tail + i] !== CRC_START_BYTES[i]) return "none";
  }
  let stated = 0;
  for (let i = tail + CRC_START.length; i < end - 2; i++) {
    const digit = hexDigit(bytes[i] ?? 0);
    if (digit < 0) return "wrong";
    stated = stated * HEX + digit;
  }
  if (bytes[end - 2] !== 0x22 || bytes[end - 1] !== 0x7d) return "wrong";
  return crc32(bytes.subarray(start, tail)) === stated ? "right" : "wrong";
}

/** Where a line ends that an editor may have given a CR. */
export function withoutCr(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === CR ? end - 1 : end;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  if (byte >= 0x61 && byte <= 0x66) return byte - 0x61 + 10;
  return -1;
}

/** The first line, as far as it is one of ours. `cwd` and `createdAt` may be missing in one written by hand. */
export function parseHeader(fields: Fields): SessionHeader | undefined {
  const { type, version, id, createdAt = 0, cwd = "", from, headless } = fields;
  if (type !== "session" || typeof version !== "number" || typeof id !== "string") return undefined;
  if (typeof createdAt !== "number" || typeof cwd !== "string") return undefined;
  return {
    ...{ type, version, id, createdAt, cwd },
    ...(isRecord(from) && { from: parseOrigin(from) }),
    ...(headless === true && { headless }),
  };
}

function parseOrigin({ session, entry, file }: Fields): NonNullable<SessionHeader["from"]> {
  return {
    ...(typeof session === "string" && { session }),
    ...(typeof entry === "number" && { entry }),
    ...(typeof file === "string" && { file }),
  };
}
