import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage } from "../../common/errors.ts";
import { humanSize } from "../text/human-size.ts";

/** Kept in memory of the beginning of a stream. */
export const HEAD_BYTES: number = 16 * 1024;
/** Kept in memory of the end of a stream. */
export const TAIL_BYTES: number = 48 * 1024;
const KEPT_BYTES = HEAD_BYTES + TAIL_BYTES;

const SPOOL_PREFIX = "output-";
const NEWLINE = 0x0a;
/** A UTF-8 character has at most this many bytes after its first. */
const MAX_CONTINUATION_BYTES = 3;

/** Output: its beginning and end in memory, all of it in a file once that is too little. */
export interface CapturedOutput {
  /** All of it, as long as that is at most `HEAD_BYTES + TAIL_BYTES`. */
  head: string;
  tail: string;
  bytes: number;
  lines: number;
  /** Where all of it is, if head and tail are not all. */
  path?: string;
  /** Why the file is not whole, or not there, where it should be. */
  lost?: string;
}

/** Where output goes that is too long for memory. */
export interface Spool {
  path: string;
  write(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** What files of output may hold. */
export interface SpoolLimits {
  streamBytes: number;
  /** All of them in one folder. */
  folderBytes: number;
  /** After so many bytes the folder is measured again: others write to it at the same time. */
  checkBytes: number;
}

const MEGABYTE = 1024 * 1024;
export const SPOOL_LIMITS: SpoolLimits = {
  streamBytes: 256 * MEGABYTE,
  folderBytes: 2048 * MEGABYTE,
  checkBytes: 16 * MEGABYTE,
};

/**
 * A new file in `folder`, readable by its owner alone, under a name that cannot be guessed. A
 * write past the limits fails: what fits of it is kept.
 */
export async function openSpool(
  folder: string,
  limits: SpoolLimits = SPOOL_LIMITS,
): Promise<Spool> {
  const path = join(folder, `${SPOOL_PREFIX}${randomUUID()}.txt`);
  const { O_WRONLY, O_CREAT, O_EXCL } = constants;
  const handle: FileHandle = await open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600);
  let written = 0;
  let checked = Number.NEGATIVE_INFINITY;
  return {
    path,
    async write(bytes) {
      if (written - checked >= limits.checkBytes) {
        checked = written;
        if ((await measureSpools(folder)) >= limits.folderBytes) {
          const size = humanSize(limits.folderBytes);
          throw new Error(`the output that is kept of this session has reached ${size}`);
        }
      }
      const fitting = bytes.subarray(0, limits.streamBytes - written);
      await handle.writeFile(fitting);
      written += fitting.length;
      if (fitting.length < bytes.length) {
        throw new Error(`only the first ${humanSize(limits.streamBytes)} of a stream are kept`);
      }
    },
    close: () => handle.close(),
  };
}

async function measureSpools(folder: string): Promise<number> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(SPOOL_PREFIX));
  const sizes = names.map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/**
 * Takes the bytes of a stream. Memory is bounded: the first and the last of them stay
 * here; once there are more, all go to a file as well. A file that cannot be written
 * is abandoned and reported in `lost`: it must not hold up the program that writes.
 */
export class OutputCapture {
  readonly #open: () => Promise<Spool>;
  /** The head, then the tail as a ring. */
  #memory: Buffer | undefined;
  #headBytes = 0;
  #tailBytes = 0;
  #newlines = 0;
  #endsInNewline = true;
  #isSpooling = false;
  #spool: Spool | undefined;
  #lost: string | undefined;
  #work: Promise<void> = Promise.resolve();

  constructor(open: () => Promise<Spool>) {
    this.#open = open;
  }

  get bytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  /** What it gives, if anything, is to be waited for before the next piece is read. */
  add(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    this.#count(bytes);
    let first: Buffer | undefined;
    if (!this.#isSpooling && this.bytes + bytes.length > KEPT_BYTES) {
      this.#isSpooling = true;
      first = this.#all();
    }
    this.#keep(bytes);
    if (!this.#isSpooling || this.#lost !== undefined) return undefined;
    this.#work = this.#work.then(() => this.#write(first, bytes));
    return this.#work;
  }

  /** What there is so far. */
  get(): CapturedOutput {
    const bytes = this.bytes;
    const isAll = bytes <= KEPT_BYTES;
    return {
      head: isAll ? this.#all().toString() : withoutCutEnd(this.#head()).toString(),
      tail: isAll ? "" : withoutCutStart(this.#tail()).toString(),
      bytes,
      lines: this.#newlines + (this.#endsInNewline ? 0 : 1),
      ...(this.#spool && { path: this.#spool.path }),
      ...(this.#lost !== undefined && { lost: this.#lost }),
    };
  }

  /** To be called once, after the last piece. */
  async close(): Promise<void> {
    await this.#work;
    try {
      if (this.#lost === undefined) await this.#spool?.close();
    } catch (error) {
      this.#lost = errorMessage(error);
    }
  }

  async #write(first: Buffer | undefined, bytes: Buffer): Promise<void> {
    if (this.#lost !== undefined) return;
    try {
      this.#spool ??= await this.#open();
      if (first) await this.#spool.write(first);
      await this.#spool.write(bytes);
    } catch (error) {
      this.#lost = errorMessage(error);
      await this.#spool?.close().catch(() => {
        // The first error is the one to report.
      });
    }
  }

  #count(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEWLINE) this.#newlines++;
    this.#endsInNewline = bytes.at(-1) === NEWLINE;
  }

  #keep(bytes: Buffer): void {
    this.#memory ??= Buffer.allocUnsafe(KEPT_BYTES);
    const inHead = Math.min(bytes.length, HEAD_BYTES - this.#headBytes);
    bytes.copy(this.#memory, this.#headBytes, 0, inHead);
    this.#headBytes += inHead;

    const from = Math.max(inHead, bytes.length - TAIL_BYTES);
    const at = (this.#tailBytes + from - inHead) % TAIL_BYTES;
    const beforeWrap = Math.min(bytes.length - from, TAIL_BYTES - at);
    bytes.copy(this.#memory, HEAD_BYTES + at, from, from + beforeWrap);
    bytes.copy(this.#memory, HEAD_BYTES, from + beforeWrap);
    this.#tailBytes += bytes.length - inHead;
  }

  #head(): Buffer {
    return this.#memory?.subarray(0, this.#headBytes) ?? Buffer.alloc(0);
  }

  #tail(): Buffer {
    if (!this.#memory) return Buffer.alloc(0);
    const ring = this.#memory.subarray(HEAD_BYTES);
    if (this.#tailBytes <= TAIL_BYTES) return ring.subarray(0, this.#tailBytes);
    const start = this.#tailBytes % TAIL_BYTES;
    return Buffer.concat([ring.subarray(start), ring.subarray(0, start)]);
  }

  /** Copied: the ring turns on. */
  #all(): Buffer {
    return Buffer.concat([this.#head(), this.#tail()]);
  }
}

/** Writes a text that is in memory to a file of its own; gives its path. */
export async function saveOutput(folder: string, text: string): Promise<string> {
  const spool = await openSpool(folder);
  try {
    await spool.write(Buffer.from(text));
  } finally {
    await spool.close();
  }
  return spool.path;
}

/** The beginning of a text, in whole lines unless they are too long, in whole characters always. */
export function firstBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const cut = bytes.subarray(0, maxBytes);
  const lineEnd = cut.lastIndexOf(NEWLINE) + 1;
  return (lineEnd > maxBytes / 2 ? cut.subarray(0, lineEnd) : withoutCutEnd(cut)).toString();
}

/** The end of a text, in the same way. */
export function lastBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const cut = bytes.subarray(bytes.length - maxBytes);
  const lineStart = cut.indexOf(NEWLINE) + 1;
  return (
    lineStart > 0 && lineStart < maxBytes / 2 ? cut.subarray(lineStart) : withoutCutStart(cut)
  ).toString();
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** How many bytes the character has that starts with this one. */
function charBytes(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

/** Without the first bytes of a last character that lacks the others. */
function withoutCutEnd(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  const lowest = start - MAX_CONTINUATION_BYTES;
  while (start > lowest && isContinuation(bytes[start])) start--;
  const first = bytes[start];
  if (first === undefined || start + charBytes(first) <= bytes.length) return bytes;
  return bytes.subarray(0, start);
}

/** Without the last bytes of a first character that lacks its start. */
function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < MAX_CONTINUATION_BYTES && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}
