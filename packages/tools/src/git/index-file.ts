import { isUtf8 } from "node:buffer";

const SIGNATURE = "DIRC";
const HEADER_BYTES = 12;
/** Of an entry: times, device, inode, mode, owner and size, before the id of its content. */
const STAT_BYTES = 40;
const MTIME_AT = 8;
const INODE_AT = 20;
const MODE_AT = 24;
const SIZE_AT = 36;
/** Bytes of an id: SHA-1, SHA-256. The file does not say which. */
const ID_BYTES = [20, 32] as const;
const ASSUMED_VALID = 0x8000;
const EXTENDED = 0x4000;
const STAGE_BITS = 0x3000;
/** Not checked out, or added without a content. */
const NOT_THERE = 0x6000;
const KIND_BITS = 0o170000;
const REGULAR = 0o100000;
/** A commit of another repository. */
const LINK_MODE = 0o160000;
const NS_PER_SECOND = 1_000_000_000n;
const ALIGNMENT = 8;

/** What git noted of a file when it was last known to be as it was committed or staged. */
export interface GitIndexEntry {
  /** Names the content. */
  readonly oid: string;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  /** The lower half, as git has it. */
  readonly ino: bigint;
  readonly size: bigint;
}

/**
 * The regular files of an index of git, by path. Undefined where it is damaged or of a kind that
 * is not known here: then the files are as if git did not know them. `data` stays in use: what
 * was noted of a file is decoded when it is asked for.
 */
export function parseGitIndex(data: Buffer): Map<string, GitIndexEntry> | undefined {
  return parse(data, () => {
    const entries = new Map<string, GitIndexEntry>();
    return {
      result: entries,
      add({ at, idBytes, flags, more, name }) {
        const isPlain = (flags & (ASSUMED_VALID | STAGE_BITS)) === 0 && (more & NOT_THERE) === 0;
        if (!isPlain || readKind(data, at) !== REGULAR) return;
        entries.set(decodeName(name), new Entry(data, at, idBytes));
      },
    };
  });
}

/** The folders that an index of git has as repositories of their own (submodules). */
export interface LinkedFolders {
  names: readonly string[];
  /** Those whose names are no text, byte for byte. */
  nameless: readonly Buffer[];
}

/** Of a file that is damaged git makes nothing, and neither does this. */
export function findLinkedFolders(data: Buffer): LinkedFolders {
  const found = parse(data, () => {
    const names: string[] = [];
    const nameless: Buffer[] = [];
    return {
      result: { names, nameless },
      add({ at, name }) {
        if (readKind(data, at) !== LINK_MODE) return;
        const bytes = Buffer.from(name, "latin1");
        if (isUtf8(bytes)) names.push(bytes.toString("utf8"));
        else nameless.push(bytes);
      },
    };
  });
  return found ?? { names: [], nameless: [] };
}

/** A part of a name that leads out of a working tree, or into its folder of git. */
const ESCAPING_PART = /^(?:\.{0,2}|\.git|git~1)$/i;

/**
 * Whether all names of an index are of files in the working tree. git checks names that it adds, and
 * writes files by whatever names it finds. False also for what cannot be read.
 */
export function hasPlainNames(data: Buffer): boolean {
  const found = parse(data, () => {
    const result = { isPlain: true };
    return {
      result,
      add({ name }) {
        // A folder that is not checked out ends with a slash.
        const parts = name.replace(/\/$/, "").split("/");
        if (parts.some((part) => ESCAPING_PART.test(part))) result.isPlain = false;
      },
    };
  });
  return found?.isPlain ?? false;
}

class Entry implements GitIndexEntry {
  readonly #data: Buffer;
  readonly #at: number;
  readonly #idBytes: number;

  constructor(data: Buffer, at: number, idBytes: number) {
    this.#data = data;
    this.#at = at;
    this.#idBytes = idBytes;
  }

  get oid(): string {
    const start = this.#at + STAT_BYTES;
    return this.#data.toString("hex", start, start + this.#idBytes);
  }

  get ctimeNs(): bigint {
    return readTime(this.#data, this.#at);
  }

  get mtimeNs(): bigint {
    return readTime(this.#data, this.#at + MTIME_AT);
  }

  get ino(): bigint {
    return BigInt(this.#data.readUInt32BE(this.#at + INODE_AT));
  }

  get size(): bigint {
    return BigInt(this.#data.readUInt32BE(this.#at + SIZE_AT));
  }
}

/** An entry as it is in the file. */
interface RawEntry {
  /** Where it begins. */
  at: number;
  idBytes: number;
  flags: number;
  /** Further flags, of version 3 and later. */
  more: number;
  /** A character a byte. */
  name: string;
}

interface Collector<T> {
  result: T;
  add: (entry: RawEntry) => void;
}

/** Reads the versions 2 to 4, with ids of the length with which all entries make sense. */
function parse<T>(data: Buffer, collect: () => Collector<T>): T | undefined {
  if (data.length < HEADER_BYTES || data.toString("latin1", 0, 4) !== SIGNATURE) return undefined;
  const version = data.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  for (const idBytes of ID_BYTES) {
    const collector = collect();
    if (readEntries(data, version, idBytes, collector)) return collector.result;
  }
  return undefined;
}

/** False where the ids cannot have this length. */
function readEntries(
  data: Buffer,
  version: number,
  idBytes: number,
  { add }: Collector<unknown>,
): boolean {
  let at = HEADER_BYTES;
  let last = "";
  for (let left = data.readUInt32BE(8); left > 0; left--) {
    const start = at;
    at += STAT_BYTES + idBytes + 2;
    if (at + 2 > data.length) return false;
    const flags = data.readUInt16BE(at - 2);
    const isExtended = version > 2 && (flags & EXTENDED) !== 0;
    const more = isExtended ? data.readUInt16BE(at) : 0;
    if (isExtended) at += 2;
    let kept = "";
    if (version === 4) {
      const dropped = readOffset(data, at);
      at = dropped.end;
      if (dropped.value > last.length) return false;
      kept = last.slice(0, last.length - dropped.value);
    }
    const end = data.indexOf(0, at);
    if (end < 0) return false;
    const name = kept + data.toString("latin1", at, end);
    // Names are sorted: where they are not, the ids are of another length.
    if (name < last) return false;
    // One without a name changes one of the index that this one adds to.
    if (name !== "") add({ at: start, idBytes, flags, more, name });
    last = name;
    // Filled up to a multiple of eight, with one zero at least.
    const length = end + 1 - start;
    at = version === 4 ? end + 1 : start + Math.ceil(length / ALIGNMENT) * ALIGNMENT;
  }
  return true;
}

function readKind(data: Buffer, at: number): number {
  return data.readUInt32BE(at + MODE_AT) & KIND_BITS;
}

function readTime(data: Buffer, at: number): bigint {
  return BigInt(data.readUInt32BE(at)) * NS_PER_SECOND + BigInt(data.readUInt32BE(at + 4));
}

const ASCII = /^[\0-\x7f]*$/;

function decodeName(name: string): string {
  return ASCII.test(name) ? name : Buffer.from(name, "latin1").toString("utf8");
}

/** A number of git's packs: seven bits a byte, each further byte counts one more. */
function readOffset(index: Buffer, from: number): { value: number; end: number } {
  let at = from;
  let byte = index[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = index[at++] ?? 0;
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, end: at };
}
