import { type Clock, errnoOf, errorMessage, type FileStore, systemClock } from "@gyre/ai";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { SESSION_VERSION, type SessionHeader } from "../format/entry.ts";
import { encodeEntry, encodeHeader, LF } from "../format/line.ts";
import type { EntryRow } from "../format/row.ts";
import { parseFileName } from "../format/summary.ts";
import {
  type NewSession,
  type OpenOptions,
  SessionError,
  type SessionFile,
  type SessionProblem,
} from "../format/types.ts";
import { LogSession } from "../session/log-session.ts";
import { listStoredHashes } from "../session/stored-files.ts";
import { FileLog } from "./file-log.ts";
import { FolderFiles } from "./folder-files.ts";
import { existsError, FOLDER_MODE, placeAt, putInPlace, writeAll } from "./files.ts";
import { FileLock, type LockHints } from "./lock.ts";
import { scan, type Scanned } from "./scan.ts";

const FIRST_EPOCH = 1;
/** Lines of a fork are collected up to this much before they are written. */
const WRITE_BYTES = 1024 * 1024;

/**
 * Makes a session file, and the folders above it. Takes the place of an empty file, such as
 * `mktemp` makes; rejects with `exists` where there is another one.
 */
export async function createSession(
  path: string,
  session: NewSession,
  options: OpenOptions = {},
): Promise<SessionFile> {
  if (typeof path !== "string" || typeof session?.cwd !== "string") {
    throw new TypeError(
      "A session needs a path and a folder: write createSession(path, { cwd: process.cwd() }).",
    );
  }
  const { cwd, id = randomUUID(), from, createdAt, headless } = session;
  const { clock = systemClock } = options;
  const origin = { ...(from && { from }), ...(headless && { headless }) };
  const header = encodeHeader({ id, createdAt: createdAt ?? clock.now(), cwd, ...origin });
  return createFile(path, clock, (handle) => writeAll(handle, header));
}

/**
 * Makes a session file that has these entries, as another store keeps them, and closes it. The contents of
 * large files come from `source`, and stand beside the file before it is there. Rejects with `exists` as
 * `createSession` does; where reading the rows fails no file is left.
 */
export async function writeSession(
  path: string,
  { cwd, id = randomUUID(), from, createdAt, headless }: NewSession,
  rows: AsyncIterable<EntryRow>,
  source?: FileStore,
): Promise<void> {
  const header = encodeHeader({
    id,
    createdAt: createdAt ?? Date.now(),
    cwd,
    ...(from && { from }),
    ...(headless && { headless }),
  });
  const session = await createFile(path, systemClock, async (handle, full) => {
    const lines = new LineCollector(handle, header);
    const target = new FolderFiles(full);
    const taken = new Set<string>();
    for await (const row of rows) {
      await lines.add(row);
      for (const sha256 of source ? listStoredHashes(row.data) : []) {
        if (taken.has(sha256)) continue;
        taken.add(sha256);
        const bytes = await source?.read(sha256);
        if (bytes) await target.write(sha256, bytes);
      }
    }
    await lines.flush();
  });
  await session.close();
}

/** Writes lines to a file, many at once. */
class LineCollector {
  readonly #handle: FileHandle;
  #lines: Buffer[];
  #bytes = 0;

  constructor(handle: FileHandle, header: Buffer) {
    this.#handle = handle;
    this.#lines = [header];
  }

  async add({ data, ...row }: EntryRow): Promise<void> {
    const line = encodeEntry({ ...row, w: FIRST_EPOCH }, data);
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#bytes >= WRITE_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    await writeAll(this.#handle, Buffer.concat(this.#lines));
    this.#lines = [];
    this.#bytes = 0;
  }
}

/**
 * Opens a session file: looks at all of it once, reads none of it. What is wrong with it
 * is in `problems`. To write, it takes the lock, and cuts off a last line that was not
 * written to its end. Rejects with `SessionError`: `not_found`, `locked`, `not_a_session`,
 * `newer_version`, `unreadable`.
 */
export async function openSession(path: string, options: OpenOptions = {}): Promise<SessionFile> {
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
  fill: (handle: FileHandle, path: string) => Promise<void>,
): Promise<SessionFile> {
  let lock: FileLock | undefined;
  let full = resolve(path);
  try {
    await mkdir(dirname(full), { recursive: true, mode: FOLDER_MODE });
    full = join(await realpath(dirname(full)), basename(full));
    if ((await placeAt(full)) === "taken") throw existsError(full);
    lock = new FileLock(full, clock.now());
    if ((await placeAt(full)) === "empty") await rm(full);
    await putInPlace(full, (handle) => fill(handle, full));
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
    const log = new FileLog({ path, scanned, handle, lock, identity: { dev, ino } });
    return new FileSession({ path, header, log, clock, readOnly: lock === undefined });
  } catch (error) {
    await handle?.close();
    lock?.release();
    throw error instanceof SessionError ? error : unreadable(path, error);
  }
}

/** The header, or what can be said in its place. Throws where this is no session of ours. */
function headerFor(path: string, scanned: Scanned, createdAt: number): SessionHeader {
  const { header, index, hasSealed, problems } = scanned;
  if (header) {
    const { version } = header;
    if (version === SESSION_VERSION) return header;
    if (version > SESSION_VERSION && header.createdAt > 0) {
      const message = `${path} was written by a newer version (format ${version}; this one knows ${SESSION_VERSION}). Update to open it.`;
      throw new SessionError("newer_version", message, { path });
    }
  }
  if (header || index.length === 0 || !hasSealed) throw notASession(path);
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
  log: FileLog;
  clock: Clock;
  readOnly: boolean;
}

class FileSession extends LogSession implements SessionFile {
  readonly #folder: FolderFiles;
  readonly path: string;
  readonly problems: readonly SessionProblem[];

  constructor({ path, log, ...parts }: Parts) {
    const files = new FolderFiles(path);
    super({ log, ...parts, files });
    this.#folder = files;
    this.path = path;
    this.problems = log.problems;
  }

  async fork(
    path: string,
    {
      id = this.leaf,
      newId = randomUUID(),
      cwd = this.header.cwd,
    }: { id?: number | null; newId?: string; cwd?: string } = {},
  ): Promise<SessionFile> {
    this.assertHas(id);
    const from = { session: this.header.id, ...(id !== null && { entry: id }) };
    const header = encodeHeader({ id: newId, createdAt: this.clock.now(), cwd, from });
    return createFile(path, this.clock, async (handle, full) => {
      const lines = new LineCollector(handle, header);
      const hashes = new Set<string>();
      await this.copyBranch((row) => {
        for (const sha256 of listStoredHashes(row.data)) hashes.add(sha256);
        return lines.add(row);
      }, id);
      await new FolderFiles(full).take(hashes, this.#folder);
      await lines.flush();
    });
  }
}
