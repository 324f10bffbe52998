import type { BigIntStats } from "node:fs";

/** What git noted of a file when it was last known to be as it was committed or staged. */
export interface IndexEntry {
  path: string;
  /** Names the content. */
  oid: string;
  mtimeNs: bigint;
  ctimeNs: bigint;
  /** The lower half, as git has it. */
  ino: bigint;
  size: bigint;
}

const HEADER_BYTES = 12;
const SHORT_OID_BYTES = 20;
/** Before the name of the content: times, device, inode, mode, owner, size. */
const STAT_BYTES = 40;
const ASSUMED_VALID = 0x8000;
const EXTENDED = 0x4000;
const STAGE_BITS = 0x3000;
/** Not checked out, or added without a content. */
const NOT_THERE = 0x6000;
const KIND_BITS = 0xf000;
const REGULAR = 0x8000;
const NS_PER_SECOND = 1_000_000_000n;
const LOWER_HALF = 0xffff_ffffn;
const ALIGNMENT = 8;

/**
 * The regular files of an index of git, by path. Undefined where it is of a kind that is
 * not known here: then the files are as if git did not know them.
 */
export function parseIndex(
  data: Buffer,
  oidBytes: number = SHORT_OID_BYTES,
): Map<string, IndexEntry> | undefined {
  if (data.length < HEADER_BYTES || data.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const version = data.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  try {
    return parseEntries(data, version, oidBytes);
  } catch (error) {
    // A read behind the end: it is cut off.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function parseEntries(data: Buffer, version: number, oidBytes: number): Map<string, IndexEntry> {
  const entries = new Map<string, IndexEntry>();
  let name = Buffer.alloc(0);
  let at = HEADER_BYTES;
  for (let left = data.readUInt32BE(8); left > 0; left--) {
    const start = at;
    const oidAt = start + STAT_BYTES;
    const flags = data.readUInt16BE(oidAt + oidBytes);
    at = oidAt + oidBytes + 2;
    let more = 0;
    if ((flags & EXTENDED) !== 0) {
      more = data.readUInt16BE(at);
      at += 2;
    }
    let kept = 0;
    if (version === 4) {
      const dropped = readCount(data, at);
      at = dropped.next;
      kept = name.length - dropped.count;
    }
    const end = data.indexOf(0, at);
    if (end < 0 || kept < 0) throw new RangeError("An entry has no end.");
    name = Buffer.concat([name.subarray(0, kept), data.subarray(at, end)]);
    at = version === 4 ? end + 1 : start + aligned(end + 1 - start);
    const isPlain = (flags & (ASSUMED_VALID | STAGE_BITS)) === 0 && (more & NOT_THERE) === 0;
    if (!isPlain || (data.readUInt32BE(start + 24) & KIND_BITS) !== REGULAR) continue;
    const path = name.toString("utf8");
    entries.set(path, {
      path,
      oid: data.toString("hex", oidAt, oidAt + oidBytes),
      ctimeNs: timeAt(data, start),
      mtimeNs: timeAt(data, start + 8),
      ino: BigInt(data.readUInt32BE(start + 20)),
      size: BigInt(data.readUInt32BE(start + 36)),
    });
  }
  return entries;
}

/** Whether a file still is what git noted. `indexNs`: when the index was written. */
export function isClean(entry: IndexEntry, stats: BigIntStats, indexNs: bigint): boolean {
  return (
    entry.size === stats.size &&
    entry.mtimeNs === stats.mtimeNs &&
    entry.ctimeNs === stats.ctimeNs &&
    entry.ino === (stats.ino & LOWER_HALF) &&
    // What changed in the tick in which the index was written looks the same.
    entry.mtimeNs < indexNs &&
    entry.ctimeNs < indexNs
  );
}

function timeAt(data: Buffer, at: number): bigint {
  return BigInt(data.readUInt32BE(at)) * NS_PER_SECOND + BigInt(data.readUInt32BE(at + 4));
}

/** Entries are filled up with zeros; at least the one that ends the name is there. */
function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** A number of seven bits a byte, as git has it: each further byte adds one. */
function readCount(data: Buffer, from: number): { count: number; next: number } {
  let at = from;
  let byte = data.readUInt8(at++);
  let count = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = data.readUInt8(at++);
    count = (count + 1) * 128 + (byte & 0x7f);
  }
  return { count, next: at };
}
