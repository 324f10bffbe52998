import type { AgentMessage } from "@gyre/agent";
import { isLlmMessage } from "@gyre/agent";
import { type Clock, errnoOf, errorMessage, systemClock, type ToolResultMessage } from "@gyre/ai";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { buildContext } from "./context.ts";
import {
  type Entry,
  type EntryBody,
  type EntryType,
  SESSION_VERSION,
  type SessionHeader,
} from "../format/entry.ts";
import type { EntryIndex } from "./entry-index.ts";
import { existsError, FOLDER_MODE, placeAt, putInPlace, writeAll } from "./files.ts";
import { writeBranch } from "./fork.ts";
import {
  encodeBody,
  encodeEntry,
  encodeHeader,
  ENTRY_TYPES,
  isBeside,
  parseEntry,
  LF,
  MAX_ENTRY_ID,
  MAX_LINE_BYTES,
  readReference,
  resultMessage,
  unbraced,
} from "../format/line.ts";
import { LineReader } from "./line-reader.ts";
import type { ResultEntry } from "./open-calls.ts";
import { FileLock, type LockHints } from "./lock.ts";
import { scan, type Scanned } from "./scan.ts";
import { parseFileName } from "../format/summary.ts";
import {
  type EntryInfo,
  type NewSession,
  type OpenOptions,
  type Session,
  type SessionContext,
  SessionError,
  type SessionProblem,
} from "../format/types.ts";

/** Entries that wait are written together, up to this much. */
const MAX_GROUP_BYTES = 16 * 1024 * 1024;

/**
 * Makes a session file, and the folders above it. Takes the place of an empty file, such as
 * `mktemp` makes; rejects with `exists` where there is another one.
 */
export async function createSession(
  path: string,
  { cwd, id = randomUUID(), from, createdAt }: NewSession,
  options: OpenOptions = {},
): Promise<Session> {
  const { clock = systemClock } = options;
  const origin = from && { from };
  const header = encodeHeader({ id, createdAt: createdAt ?? clock.now(), cwd, ...origin });
  return createFile(path, clock, (handle) => writeAll(handle, header));
}

/**
 * Opens a session file: looks at all of it once, reads none of it. What is wrong with it
 * is in `problems`. To write, it takes the lock, and cuts off a last line that was not
 * written to its end. Rejects with `SessionError`: `not_found`, `locked`, `not_a_session`,
 * `newer_version`, `unreadable`.
 */
export async function openSession(path: string, options: OpenOptions = {}): Promise<Session> {
  const { readOnly = false, clock = systemClock, ...hints } = options;
  let full: string;
  try {
    full = await realpath(path);
    // A device may have no end, and is no place for a lock.
    if (!(await stat(full)).isFile()) throw notASession(full);
  } catch (error) {
    if (error instanceof SessionError) throw error;
    throw errnoOf(error) === "ENOENT"
      ? new SessionError("not_found", `There is no file ${path}.`, { path, cause: error })
      : unreadable(path, error);
  }
  return openFile(full, clock, readOnly ? undefined : lockFor(full, clock, hints));
}

function lockFor(path: string, clock: Clock, hints: LockHints): FileLock {
  try {
    return new FileLock(path, clock.now(), hints);
  } catch (error) {
    throw error instanceof SessionError ? error : unreadable(path, error);
  }
}

async function createFile(
  path: string,
  clock: Clock,
  fill: (handle: FileHandle) => Promise<void>,
): Promise<Session> {
  let lock: FileLock | undefined;
  let full = resolve(path);
  try {
    await mkdir(dirname(full), { recursive: true, mode: FOLDER_MODE });
    full = join(await realpath(dirname(full)), basename(full));
    if ((await placeAt(full)) === "taken") throw existsError(full);
    lock = new FileLock(full, clock.now());
    if ((await placeAt(full)) === "empty") await rm(full);
    await putInPlace(full, fill);
  } catch (cause) {
    lock?.release();
    if (cause instanceof SessionError) throw cause;
    const message = `${full} cannot be made: ${errorMessage(cause)}`;
    throw new SessionError("write_failed", message, { path: full, cause });
  }
  return openFile(full, clock, lock);
}

/** Releases the lock if the file cannot be opened. */
async function openFile(
  path: string,
  clock: Clock,
  lock: FileLock | undefined,
): Promise<SessionFile> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, lock ? constants.O_RDWR | constants.O_APPEND : constants.O_RDONLY);
    const { dev, ino, birthtimeMs } = await handle.stat();
    const scanned = await scan(handle);
    const header = headerFor(path, scanned, Math.round(birthtimeMs));
    if (lock) await repairTornTail(handle, scanned);
    return new SessionFile({ path, header, scanned, handle, lock, clock, identity: { dev, ino } });
  } catch (error) {
    await handle?.close();
    lock?.release();
    throw error instanceof SessionError ? error : unreadable(path, error);
  }
}

/** The header, or what can be said in its place. Throws where this is no session of ours. */
function headerFor(path: string, scanned: Scanned, createdAt: number): SessionHeader {
  const { header, index, problems } = scanned;
  if (header) {
    const { version } = header;
    if (version === SESSION_VERSION) return header;
    if (version > SESSION_VERSION && header.createdAt > 0) {
      const message = `${path} was written by a newer version (format ${version}; this one knows ${SESSION_VERSION}). Update to open it.`;
      throw new SessionError("newer_version", message, { path });
    }
  }
  if (header || index.length === 0) throw notASession(path);
  if (!problems.some(({ kind }) => kind === "header")) {
    const message = "The first line is not a header of a session.";
    problems.unshift({ kind: "header", line: 1, offset: 0, bytes: 0, message });
  }
  return { type: "session", version: SESSION_VERSION, id: parseFileName(path), createdAt, cwd: "" };
}

function notASession(path: string): SessionError {
  const message = `${path} is not a session file, and was left as it is.`;
  return new SessionError("not_a_session", message, { path });
}

/** Gives the last line its LF, or cuts it off where it is not whole. */
async function repairTornTail(handle: FileHandle, scanned: Scanned): Promise<void> {
  const { tail } = scanned;
  if (!tail) return;
  if (tail.end < scanned.size) await handle.truncate(tail.end);
  scanned.size = tail.end;
  if (tail.end > tail.offset) {
    await writeAll(handle, Buffer.of(LF));
    scanned.size++;
  } else scanned.lines--;
  await handle.datasync();
}

function unreadable(path: string, error: unknown): SessionError {
  const message = `${path} cannot be opened: ${errorMessage(error)}`;
  return new SessionError("unreadable", message, { path, cause: error });
}

interface Parts {
  path: string;
  header: SessionHeader;
  scanned: Scanned;
  handle: FileHandle;
  lock: FileLock | undefined;
  clock: Clock;
  identity: { dev: number; ino: number };
}

/** An entry that waits to be written. */
interface Waiting {
  body: EntryBody;
  /** As JSON without braces; of a tool's result only when it is written. */
  rest: string | undefined;
  timestamp: number;
  /** For a leaf; else the entry follows the one before it. */
  parentId?: number | null;
  resolve(entry: Entry): void;
  reject(error: unknown): void;
}

/** One that is being written. */
interface Encoded {
  waiting: Waiting;
  line: Buffer;
  entry: Entry;
}

class SessionFile implements Session {
  readonly path: string;
  readonly header: SessionHeader;
  readonly problems: SessionProblem[];
  readonly #index: EntryIndex;
  readonly #reader: LineReader;
  readonly #handle: FileHandle;
  readonly #lock: FileLock | undefined;
  readonly #clock: Clock;
  readonly #identity: Parts["identity"];
  /** Of this writer: above all others that the file has seen. */
  readonly #epoch: number;
  #leaf: number | null;
  #lines: number;
  /** Up to where the file is written and synced. */
  #size: number;
  /** A write failed, and what it left behind could not be cut off yet. */
  #hasLeftovers = false;
  #infos: EntryInfo[] | undefined;
  /** What calls of this branch gave whose messages are not written yet. */
  #results = new Map<string, ResultEntry>();
  #queue: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Why nothing is written any more. */
  #over: SessionError | undefined;
  #closing: Promise<void> | undefined;

  constructor({ path, header, scanned, handle, lock, clock, identity }: Parts) {
    this.path = path;
    this.header = header;
    this.problems = scanned.problems;
    this.#index = scanned.index;
    this.#reader = new LineReader(path, handle, scanned.index);
    this.#handle = handle;
    this.#lock = lock;
    this.#clock = clock;
    this.#identity = identity;
    this.#epoch = scanned.epoch + 1;
    this.#leaf = scanned.leaf || null;
    this.#lines = scanned.lines;
    this.#size = scanned.size;
    if (!lock) this.#over = this.#error("write_failed", "was opened to be read only");
  }

  get readOnly(): boolean {
    return this.#lock === undefined;
  }

  get leaf(): number | null {
    return this.#leaf;
  }

  get entries(): readonly EntryInfo[] {
    const infos = (this.#infos ??= []);
    while (infos.length < this.#index.length) infos.push(this.#index.infoAt(infos.length));
    return infos;
  }

  findIds(...types: readonly EntryType[]): number[] {
    return this.#index.findIds(types);
  }

  append(body: EntryBody): Promise<Entry> {
    return this.#enqueue(body);
  }

  async read(id: number): Promise<Entry> {
    const at = this.#find(id);
    const fields = await this.#reader.one(at);
    const reference = this.#index.find(readReference(fields) ?? 0);
    const recorded = reference < 0 ? undefined : await this.#reader.one(reference);
    const entry = parseEntry(fields, this.#index.infoAt(at), recorded);
    if (entry) return entry;
    throw this.#error("unreadable", `has no whole entry ${id}: what it is made of is missing`);
  }

  findBranch(id: number | null = this.#leaf): number[] {
    return this.#index.pathTo(this.#find(id)).map((at) => this.#index.idAt(at));
  }

  async branch(id: number | null): Promise<void> {
    this.#find(id);
    await this.#enqueue({ type: "leaf" }, id);
  }

  async context(id: number | null = this.#leaf): Promise<SessionContext> {
    const lost = new Set(this.problems.map(({ offset }) => offset));
    const onLost = (at: number, message: string): void => {
      const offset = this.#index.offsetAt(at);
      if (lost.has(offset)) return;
      const bytes = this.#index.bytesAt(at);
      const line = this.#index.lineAt(at);
      this.problems.push({ kind: "damaged", line, offset, bytes, message: `${message}.` });
    };
    const { context, recorded } = await buildContext(
      this.#index,
      this.#reader,
      this.#find(id),
      id === this.#leaf,
      onLost,
    );
    if (id === this.#leaf) for (const entry of recorded.values()) noteResult(this.#results, entry);
    return context;
  }

  async fork(
    path: string,
    {
      id = this.#leaf,
      newId = randomUUID(),
      cwd = this.header.cwd,
    }: { id?: number | null; newId?: string; cwd?: string } = {},
  ): Promise<Session> {
    const at = this.#find(id);
    const from = { session: this.header.id, ...(id !== null && { entry: id }) };
    const header = encodeHeader({ id: newId, createdAt: this.#clock.now(), cwd, from });
    return createFile(path, this.#clock, async (handle) => {
      await writeAll(handle, header);
      await writeBranch(handle, this.#index, this.#reader, at);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    while (this.#writing) await this.#writing;
    this.#over ??= this.#error("write_failed", "is closed");
    await this.#handle.close();
    this.#lock?.release();
  }

  #enqueue(body: EntryBody, parentId?: number | null): Promise<Entry> {
    return new Promise((resolve, reject) => {
      if (this.#over) throw this.#over;
      if (this.#closing) throw this.#error("write_failed", "is closed");
      const timestamp = this.#clock.now();
      const rest = isResultMessage(body) ? undefined : this.#encode(body);
      const waiting: Waiting = { body, rest, timestamp, resolve, reject };
      if (parentId !== undefined) waiting.parentId = parentId;
      this.#queue.push(waiting);
      this.#writing ??= this.#writeQueue();
    });
  }

  /** Never rejects: each entry's own promise does. */
  async #writeQueue(): Promise<void> {
    // What is appended in the same go is written together.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      try {
        await this.#assertOurs();
        if (this.#hasLeftovers) await this.#cutLeftovers();
      } catch (error) {
        const group = this.#queue.splice(0);
        for (const waiting of group) waiting.reject(error);
        continue;
      }
      await this.#commit(this.#takeGroup());
    }
    this.#writing = undefined;
  }

  /** Encodes what waits, as much as is written at once; numbers are given here. */
  #takeGroup(): Encoded[] {
    const group: Encoded[] = [];
    const results = new Map(this.#results);
    let bytes = 0;
    let id = this.#index.lastId;
    let leaf = this.#leaf;
    while (this.#queue.length > 0 && bytes < MAX_GROUP_BYTES) {
      const waiting = this.#queue.shift();
      if (!waiting) break;
      try {
        const encoded = this.#encodeNext(waiting, id + 1, leaf, results);
        id++;
        bytes += encoded.line.length;
        leaf = leafAfter(encoded.entry, leaf);
        noteResult(results, encoded.entry);
        group.push(encoded);
      } catch (error) {
        waiting.reject(error);
      }
    }
    return group;
  }

  #encodeNext(
    waiting: Waiting,
    id: number,
    leaf: number | null,
    results: ReadonlyMap<string, ResultEntry>,
  ): Encoded {
    const { body, parentId = leaf } = waiting;
    let { rest, timestamp } = waiting;
    if (rest === undefined && isResultMessage(body)) {
      const recorded = results.get(body.message.toolCallId);
      if (recorded && isRecordedMessage(recorded, body.message)) {
        rest = unbraced({ resultOf: recorded.id });
        ({ timestamp } = body.message);
      }
    }
    rest ??= this.#encode(body);
    if (id > MAX_ENTRY_ID) throw this.#error("write_failed", "has no room for more entries");
    const line = encodeEntry({ id, parentId, type: body.type, w: this.#epoch, timestamp }, rest);
    if (line.length > MAX_LINE_BYTES) {
      const why = `takes no entry of ${line.length} bytes (at most ${MAX_LINE_BYTES})`;
      throw this.#error("write_failed", why);
    }
    return { waiting, line, entry: { ...body, id, parentId, timestamp } };
  }

  #encode(body: EntryBody): string {
    try {
      return encodeBody(body);
    } catch (cause) {
      const why = `takes only what JSON can say (${errorMessage(cause)})`;
      throw this.#error("write_failed", why, cause);
    }
  }

  async #commit(group: Encoded[]): Promise<void> {
    if (group.length === 0) return;
    const lines = group.map(({ line }) => line);
    const [first] = lines;
    const bytes = first && lines.length === 1 ? first : Buffer.concat(lines);
    try {
      await writeAll(this.#handle, bytes);
      await this.#handle.datasync();
    } catch (cause) {
      const what = `could not be written to (${errorMessage(cause)})`;
      const error = this.#error("write_failed", what, cause);
      this.#hasLeftovers = true;
      try {
        await this.#cutLeftovers();
      } catch {
        // Tried again before the next write; until then nothing is written.
      }
      for (const { waiting } of group) waiting.reject(error);
      return;
    }
    for (const { line, entry } of group) {
      const type = ENTRY_TYPES.indexOf(entry.type);
      const { id, parentId } = entry;
      this.#index.add(id, parentId ?? 0, type, this.#size, line.length - 1, ++this.#lines);
      this.#size += line.length;
      this.#leaf = leafAfter(entry, this.#leaf);
      noteResult(this.#results, entry);
    }
    for (const { waiting, entry } of group) waiting.resolve(entry);
  }

  async #cutLeftovers(): Promise<void> {
    try {
      await this.#handle.truncate(this.#size);
      await this.#handle.datasync();
      this.#hasLeftovers = false;
    } catch (cause) {
      const why = "has half an entry at its end that cannot be cut off";
      throw this.#error("write_failed", why, cause);
    }
  }

  /** Throws where another process has taken over. The session stays unusable then. */
  async #assertOurs(): Promise<void> {
    if (this.#over) throw this.#over;
    const change = await this.#whatChanged();
    if (!change) return;
    this.#over = this.#error("lock_lost", `${change}. Nothing more is written; open it again`);
    throw this.#over;
  }

  async #whatChanged(): Promise<string | undefined> {
    try {
      const { dev, ino, size } = await stat(this.path);
      const { dev: ourDev, ino: ourIno } = this.#identity;
      if (dev !== ourDev || ino !== ourIno) return "was replaced by another file";
      if (size !== this.#size && !this.#hasLeftovers) return "was written to by another process";
      return this.#lock?.isHeld() ? undefined : "has been taken over by another process";
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return "was deleted";
      throw this.#error("write_failed", `cannot be looked at`, error);
    }
  }

  /** The place of an entry; -1 for none at all. Throws where there is no such entry. */
  #find(id: number | null): number {
    if (id === null) return -1;
    const at = this.#index.find(id);
    if (at < 0) throw this.#error("not_found", `has no entry ${id}`);
    return at;
  }

  #error(code: SessionError["code"], what: string, cause?: unknown): SessionError {
    const options = { path: this.path, ...(cause !== undefined && { cause }) };
    return new SessionError(code, `${this.path} ${what}.`, options);
  }
}

function leafAfter(entry: Entry, leaf: number | null): number | null {
  if (entry.type === "leaf") return entry.parentId;
  return isBeside(entry.type) ? leaf : entry.id;
}

/** Keeps in mind which results have no message yet, on this branch. */
function noteResult(results: Map<string, ResultEntry>, entry: Entry): void {
  if (entry.type === "result") results.set(entry.toolCallId, entry);
  else if (entry.type === "leaf") results.clear();
  else if (isResultMessage(entry)) results.delete(entry.message.toolCallId);
}

function isResultMessage<B extends EntryBody>(
  body: B,
): body is B & { type: "message"; message: ToolResultMessage } {
  return body.type === "message" && isToolResult(body.message);
}

function isToolResult(message: AgentMessage): message is ToolResultMessage {
  return isLlmMessage(message) && message.role === "toolResult";
}

/** Whether a message says what was recorded, and nothing else. */
function isRecordedMessage(entry: ResultEntry, message: ToolResultMessage): boolean {
  return isDeepStrictEqual(message, resultMessage(entry, message.timestamp));
}
