import { errnoOf, errorMessage } from "@gyre/ai";
import { type FileHandle, stat } from "node:fs/promises";
import { ENTRY_TYPES } from "../format/body.ts";
import { encodeEntry, MAX_LINE_BYTES } from "../format/line.ts";
import type { EntryRow } from "../format/row.ts";
import { SessionError, type SessionProblem } from "../format/types.ts";
import type { EntryIndex } from "../session/entry-index.ts";
import type { SessionLog } from "../session/log.ts";
import { writeAll } from "./files.ts";
import { LineReader } from "./line-reader.ts";
import type { FileLock } from "./lock.ts";
import type { Scanned } from "./scan.ts";

/** A UTF-16 code unit has at most so many bytes in UTF-8. */
const MAX_UNIT_BYTES = 3;
/** More than the head and the end of any line. */
const AROUND_BYTES = 1024;

/** What the log of a file is made from. Without a lock it is read only. */
export interface FileLogParts {
  path: string;
  scanned: Scanned;
  handle: FileHandle;
  lock: FileLock | undefined;
  identity: { dev: number; ino: number };
}

/** The entries of an open session file: a line each. */
export class FileLog implements SessionLog {
  readonly index: EntryIndex;
  readonly reader: LineReader;
  readonly problems: SessionProblem[];
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #lock: FileLock | undefined;
  readonly #identity: FileLogParts["identity"];
  /** Of this writer: above all others that the file has seen. */
  readonly #epoch: number;
  #lines: number;
  /** Up to where the file is written and synced. */
  #size: number;
  /** A write failed, and what it left behind could not be cut off yet. */
  #hasLeftovers = false;
  /** Why nothing is written any more. */
  #over: SessionError | undefined;

  constructor({ path, scanned, handle, lock, identity }: FileLogParts) {
    this.#path = path;
    this.problems = scanned.problems;
    this.index = scanned.index;
    this.reader = new LineReader(path, handle, scanned.index);
    this.#handle = handle;
    this.#lock = lock;
    this.#identity = identity;
    this.#epoch = scanned.epoch + 1;
    this.#lines = scanned.lines;
    this.#size = scanned.size;
  }

  assertFits(row: EntryRow): void {
    if (row.data.length * MAX_UNIT_BYTES + AROUND_BYTES <= MAX_LINE_BYTES) return;
    const bytes = this.#encode(row).length;
    if (bytes <= MAX_LINE_BYTES) return;
    const why = `takes no entry of ${bytes} bytes (at most ${MAX_LINE_BYTES})`;
    throw this.error("write_failed", why);
  }

  async prepareWrite(): Promise<void> {
    await this.#assertOurs();
    if (this.#hasLeftovers) await this.#cutLeftovers();
  }

  async write(rows: readonly EntryRow[]): Promise<void> {
    const lines = rows.map((row) => this.#encode(row));
    const [first] = lines;
    const bytes = first && lines.length === 1 ? first : Buffer.concat(lines);
    try {
      await writeAll(this.#handle, bytes);
      await this.#handle.datasync();
    } catch (cause) {
      this.#hasLeftovers = true;
      try {
        await this.#cutLeftovers();
      } catch {
        // Tried again before the next write; until then nothing is written.
      }
      const what = `could not be written to (${errorMessage(cause)})`;
      throw this.error("write_failed", what, cause);
    }
    for (const [at, { id, parentId, type }] of rows.entries()) {
      const length = lines[at]?.length ?? 0;
      const number = ENTRY_TYPES.indexOf(type);
      this.index.add(id, parentId ?? 0, number, this.#size, length - 1, ++this.#lines);
      this.#size += length;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
    this.#lock?.release();
  }

  reportLost(at: number, message: string): void {
    const offset = this.index.offsetAt(at);
    if (this.problems.some((problem) => problem.offset === offset)) return;
    const bytes = this.index.bytesAt(at);
    const line = this.index.lineAt(at);
    this.problems.push({ kind: "damaged", line, offset, bytes, message: `${message}.` });
  }

  error(code: SessionError["code"], what: string, cause?: unknown): SessionError {
    const options = { path: this.#path, ...(cause !== undefined && { cause }) };
    return new SessionError(code, `${this.#path} ${what}.`, options);
  }

  #encode({ data, ...head }: EntryRow): Buffer {
    return encodeEntry({ ...head, w: this.#epoch }, data);
  }

  async #cutLeftovers(): Promise<void> {
    try {
      await this.#handle.truncate(this.#size);
      await this.#handle.datasync();
      this.#hasLeftovers = false;
    } catch (cause) {
      const why = "has half an entry at its end that cannot be cut off";
      throw this.error("write_failed", why, cause);
    }
  }

  /** Throws where another process has taken over. The session stays unusable then. */
  async #assertOurs(): Promise<void> {
    if (this.#over) throw this.#over;
    const change = await this.#whatChanged();
    if (!change) return;
    this.#over = this.error("lock_lost", `${change}. Nothing more is written; open it again`);
    throw this.#over;
  }

  async #whatChanged(): Promise<string | undefined> {
    try {
      const { dev, ino, size } = await stat(this.#path);
      const { dev: ourDev, ino: ourIno } = this.#identity;
      if (dev !== ourDev || ino !== ourIno) return "was replaced by another file";
      if (size !== this.#size && !this.#hasLeftovers) return "was written to by another process";
      return this.#lock?.isHeld() ? undefined : "has been taken over by another process";
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return "was deleted";
      throw this.error("write_failed", "cannot be looked at", error);
    }
  }
}
