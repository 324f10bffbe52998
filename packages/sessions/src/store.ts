import { createHash } from "node:crypto";
import type { Dirent } from "node:fs";
import { chmod, constants, copyFile, mkdir, readdir, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { type Clock, errnoOf, systemClock } from "@gyre/ai";
import { FILE_MODE, FOLDER_MODE, removeDrafts } from "./file/files.ts";
import { FolderFiles } from "./file/folder-files.ts";
import { FileLock, type LockHints } from "./file/lock.ts";
import { createSession, openSession } from "./file/session-file.ts";
import { chooseSession, createSessionId } from "./format/id.ts";
import { cutPage, type SessionListOptions, type SessionPageOptions } from "./format/page.ts";
import type { ForkOptions, SessionStorage } from "./format/storage.ts";
import {
  formatFileName,
  parseFileName,
  SESSION_SUFFIX,
  summarize,
  timeIn,
} from "./format/summary.ts";
import {
  type NewSession,
  type OpenOptions,
  SessionError,
  type SessionFile,
  type SessionFileSummary,
  type SessionPage,
  type SessionSearchOptions,
  type SessionSearchPage,
} from "./format/types.ts";
import { type LockHolder, removeLock } from "./file/unlock.ts";
import { INDEX_FOLDER } from "./file/written-names.ts";
import { MAX_OPEN_FILES, SETTLE_MS } from "./listing/folder-rows.ts";
import { searchSessions } from "./search.ts";
import { SessionIndex } from "./listing/session-index.ts";

const MAX_NAME_CHARS = 40;
const HASH_CHARS = 10;

/** `gyre/sessions` in `XDG_STATE_HOME`, or in `~/.local/state`. */
export function defaultSessionFolder(env: Readonly<Record<string, string | undefined>>): string {
  const state = env["XDG_STATE_HOME"];
  // One that is not absolute is to be ignored, says the specification of these folders.
  const base =
    state !== undefined && isAbsolute(state)
      ? state
      : join(env["HOME"] || homedir(), ".local", "state");
  return join(base, "gyre", "sessions");
}

/** `unlockHint` and `forkHint`: for the session with this id, as in `OpenOptions`. */
export interface StoreOptions {
  clock?: Clock;
  unlockHint?: (id: string) => string;
  forkHint?: (id: string) => string;
}

/**
 * The sessions of a user: a folder with one sub-folder for each folder that was worked in.
 * The files are all there is; what is listed is read from them, and from an index of them that can
 * be deleted at any time.
 */
export class SessionStore implements SessionStorage {
  readonly folder: string;
  readonly #clock: Clock;
  readonly #hints: Pick<StoreOptions, "forkHint" | "unlockHint">;
  /** The names that were read of each folder. */
  readonly #known = new Map<string, KnownFolder>();
  readonly #index: SessionIndex;
  /** The files that were there once, by the ids of their sessions. */
  readonly #pathsById = new Map<string, string>();

  constructor(folder: string, options: StoreOptions = {}) {
    this.folder = resolve(folder);
    this.#clock = options.clock ?? systemClock;
    this.#hints = options;
    this.#index = new SessionIndex(this.folder, () => this.#listFolders());
  }

  /** A new session, open for writing. Throws `SessionError`: `exists`, `write_failed`. */
  async create(header: NewSession): Promise<SessionFile> {
    const { id = createSessionId(), ...rest } = header;
    if (header.id !== undefined) await this.#assertFree(id);
    const cwd = resolve(rest.cwd);
    const path = this.#newPath(cwd, id, rest.createdAt);
    const session = await createSession(path, { ...rest, id, cwd }, { clock: this.#clock });
    this.#pathsById.set(id, path);
    return session;
  }

  /** The sessions of one folder or of all, those that were last written to first. */
  list({ cwd, ...options }: SessionListOptions & { limit?: number } = {}): Promise<
    SessionFileSummary[]
  > {
    return this.#index.list(cwd === undefined ? undefined : folderName(cwd), options);
  }

  /** A part of the sessions, as `SessionStorage` says. */
  async listPage(options: SessionPageOptions): Promise<SessionPage<SessionFileSummary>> {
    const { archived, cwd, order = "created", query = "" } = options;
    // The names of files say this order: no other file is read, however many there are.
    const isByName = order === "created" && archived === undefined && query.trim() === "";
    if (isByName && cwd !== undefined) return this.#listByName(cwd, options);
    return this.#index.listPage(cwd === undefined ? undefined : folderName(cwd), options);
  }

  async #listByName(
    cwd: string,
    options: Pick<SessionPageOptions, "limit" | "after">,
  ): Promise<SessionPage<SessionFileSummary>> {
    const paths = await sessionFiles(join(this.folder, folderName(cwd)));
    const keyed = paths.map((path) => ({ path, key: pageKey(path) }));
    keyed.sort((a, b) => (a.key < b.key ? 1 : -1));
    const cut = cutPage(
      keyed,
      options,
      ({ key }) => key,
      () => true,
    );
    const { page, ...more } = cut;
    const order = new Map(page.map(({ path }, at) => [path, at]));
    const sessions = await summarizeAll([...order.keys()]);
    sessions.sort((a, b) => (order.get(a.path) ?? 0) - (order.get(b.path) ?? 0));
    return { sessions, ...more };
  }

  /** Looks for a text in messages, as `SessionStorage` says. */
  search(options: SessionSearchOptions): Promise<SessionSearchPage> {
    return searchSessions(this, options);
  }

  /**
   * The session of a folder to go on with: the newest in which something was asked, if any. With `isAttended`, one that
   * was begun where no person is at it counts only where there is no other.
   */
  async latest(
    cwd: string,
    { isAttended = false }: { isAttended?: boolean } = {},
  ): Promise<SessionFileSummary | undefined> {
    const all = await this.list({ cwd, archived: false });
    const asked = all.filter(({ firstPrompt }) => firstPrompt !== undefined);
    const attended = isAttended ? asked.find(({ headless }) => !headless) : undefined;
    return attended ?? asked[0] ?? all[0];
  }

  /**
   * The session that an id, or the beginning of one, means. Throws `SessionError`:
   * `not_found`, or `ambiguous`.
   */
  async find(idOrPrefix: string): Promise<SessionFileSummary> {
    const paths = await this.#paths();
    const named = paths.map((path) => ({ id: parseFileName(path), path }));
    const { path } = chooseSession(idOrPrefix, named);
    return summarize(path);
  }

  /**
   * The file of the session with exactly this id; undefined where there is none. Asks for one file
   * where the id is known, however many sessions there are; else the names of folders that have
   * changed are read again. Reads no file. Throws `SessionError`: `ambiguous`.
   */
  async locate(id: string): Promise<string | undefined> {
    const known = this.#pathsById.get(id);
    if (known !== undefined && (await isFile(known))) return known;
    this.#pathsById.delete(id);
    const found = (await this.#readFolders()).flatMap((folder) => findPaths(folder, id));
    const [path, ...others] = found;
    if (others.length > 0) {
      const what = `"${id}" can mean ${found.length} sessions: ${found.join(", ")}.`;
      throw new SessionError("ambiguous", what);
    }
    if (path === undefined || !(await isFile(path))) return undefined;
    this.#pathsById.set(id, path);
    return path;
  }

  /** Reads the names of all files, so that the first `locate` has them. */
  async prepare(): Promise<void> {
    const ambiguous = new Set<string>();
    for (const { folder, names } of await this.#readFolders()) {
      for (const name of names) {
        if (!name.endsWith(SESSION_SUFFIX)) continue;
        const id = parseFileName(name);
        const path = join(folder, name);
        if ((this.#pathsById.get(id) ?? path) !== path) ambiguous.add(id);
        this.#pathsById.set(id, path);
      }
    }
    // These are looked for by their names, and reported with them.
    for (const id of ambiguous) this.#pathsById.delete(id);
  }

  async #readFolders(): Promise<KnownFolder[]> {
    const folders = await this.#listFolders();
    return Promise.all(folders.map((name) => this.#readFolder(name)));
  }

  /** The names in a folder, as they are now. */
  async #readFolder(name: string): Promise<KnownFolder> {
    const folder = join(this.folder, name);
    const known = this.#known.get(name);
    const changedAt = (await stat(folder).catch(ignoreMissing))?.mtimeMs ?? 0;
    if (known?.changedAt === changedAt && known.isSettled) return known;
    const isSettled = Date.now() - changedAt > SETTLE_MS;
    const now = { folder, changedAt, isSettled, names: await readNames(folder) };
    this.#known.set(name, now);
    return now;
  }

  /** Opens a session by its id, the beginning of one, or the path of its file. */
  async open(idOrPath: string, options: OpenOptions = {}): Promise<SessionFile> {
    const path = await this.#resolvePath(idOrPath);
    return openSession(path, { clock: this.#clock, ...this.#hintsFor(path), ...options });
  }

  /**
   * A new session with one branch of another one: up to `entry`, by default up to its leaf; null:
   * without any entry of it. With `newId` as its id, if that is free.
   */
  async fork(idOrPath: string, options: ForkOptions = {}): Promise<SessionFile> {
    const { newId: id = createSessionId() } = options;
    if (options.newId !== undefined) await this.#assertFree(id);
    const source = await this.open(idOrPath, { readOnly: true });
    try {
      const cwd = resolve(options.cwd ?? source.header.cwd);
      const path = this.#newPath(cwd, id);
      const { entry } = options;
      return await source.fork(path, { newId: id, cwd, ...(entry !== undefined && { id: entry }) });
    } finally {
      await source.close();
    }
  }

  /**
   * Takes a copy of a session file, as it is, under its own id. Throws `SessionError`:
   * `exists`, or what opening it throws.
   */
  async add(file: string, options: { cwd?: string } = {}): Promise<SessionFileSummary> {
    const source = await openSession(file, { readOnly: true });
    await source.close();
    const { createdAt, cwd, id: own } = source.header;
    const id = SAFE_ID.test(own) ? own : createSessionId();
    await this.#assertFree(id);
    const path = this.#newPath(resolve(cwd || (options.cwd ?? "")), id, createdAt);
    await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
    // Contents first: an entry is never there without them.
    await copyFiles(file, path);
    await copyFile(file, path, constants.COPYFILE_EXCL);
    await chmod(path, FILE_MODE);
    return summarize(path);
  }

  /** Deletes a session. Throws `SessionError`: `locked` while a process writes to it, `not_found`. */
  async remove(idOrPrefix: string): Promise<void> {
    const { path } = await this.find(idOrPrefix);
    const { unlockHint } = this.#hintsFor(path);
    const hints = unlockHint === undefined ? {} : { unlockHint };
    const lock = new FileLock(path, this.#clock.now(), hints);
    try {
      await rm(path);
      await new FolderFiles(path).remove();
      await removeDrafts(path);
    } finally {
      lock.release();
    }
  }

  /** Removes the lock of a session, as `removeLock` does. */
  async unlock(idOrPrefix: string): Promise<LockHolder | "unknown" | undefined> {
    const { path } = await this.find(idOrPrefix);
    return removeLock(path, this.#clock.now());
  }

  async #assertFree(id: string): Promise<void> {
    const path = (await this.#paths()).find((each) => parseFileName(each) === id);
    if (path === undefined) return;
    throw new SessionError("exists", `The session ${id} is here already.`, { path });
  }

  /** Nothing for a file that is elsewhere: it has no id here. */
  #hintsFor(path: string): LockHints {
    if (dirname(dirname(path)) !== this.folder) return {};
    const { forkHint, unlockHint } = this.#hints;
    const id = parseFileName(path);
    return {
      ...(unlockHint && { unlockHint: unlockHint(id) }),
      ...(forkHint && { forkHint: forkHint(id) }),
    };
  }

  #newPath(cwd: string, id: string, createdAt = this.#clock.now()): string {
    return join(this.folder, folderName(cwd), formatFileName(createdAt, id));
  }

  async #resolvePath(idOrPath: string): Promise<string> {
    const isPath = idOrPath.endsWith(SESSION_SUFFIX) || /[/\\]/.test(idOrPath);
    return isPath ? resolve(idOrPath) : (await this.find(idOrPath)).path;
  }

  #listFolders(): Promise<string[]> {
    return namesIn(this.folder, (entry) => entry.isDirectory() && entry.name !== INDEX_FOLDER);
  }

  async #paths(): Promise<string[]> {
    const folders = await this.#listFolders();
    const lists = await Promise.all(folders.map((name) => readableFiles(join(this.folder, name))));
    return lists.flat();
  }
}

/** Takes all that is in the folder with the contents of another session file. */
async function copyFiles(from: string, to: string): Promise<void> {
  const source = new FolderFiles(from);
  await new FolderFiles(to).take(await readNames(source.folder), source);
}

/** What the order of pages goes by: the name of a file begins with the time. */
function pageKey(path: string): string {
  return basename(path, SESSION_SUFFIX);
}

/** What a folder had when its names were read. */
interface KnownFolder {
  changedAt: number;
  /** It had not changed for a while: a later change has another time, however coarse clocks are. */
  isSettled: boolean;
  folder: string;
  names: readonly string[];
}

/** The names in a folder. One that another user made, as with `sudo`, has none for us. */
async function readNames(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "EACCES") return [];
    throw error;
  }
}

/** The files of the sessions with exactly this id. Nothing is made of the other names: they are many. */
function findPaths({ folder, names }: KnownFolder, id: string): string[] {
  const end = id + SESSION_SUFFIX;
  const found = names.filter((name) => name.endsWith(end) && parseFileName(name) === id);
  return found.map((name) => join(folder, name));
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(ignoreMissing))?.isFile() ?? false;
}

function ignoreMissing(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}

/** An id that is safe in a file name and in a shell. */
const SAFE_ID = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/;

/** Readable by its beginning, unique by its end. */
function folderName(cwd: string): string {
  const whole = resolve(cwd);
  const name = basename(whole)
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME_CHARS);
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, HASH_CHARS);
  return `${name || "folder"}-${hash}`;
}

function sessionFiles(folder: string): Promise<string[]> {
  return namesIn(folder, (entry) => entry.isFile() && entry.name.endsWith(SESSION_SUFFIX)).then(
    (names) => names.map((name) => join(folder, name)),
  );
}

/** One that another user made, as with `sudo`, does not keep us from the rest. */
async function readableFiles(folder: string): Promise<string[]> {
  try {
    return await sessionFiles(folder);
  } catch (error) {
    if (errnoOf(error) === "EACCES") return [];
    throw error;
  }
}

/** A folder that is not there has nothing in it. */
async function namesIn(folder: string, want: (entry: Dirent) => boolean): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter(want).map(({ name }) => name);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** One that cannot be read is left out only if it is gone; else its name and nothing more is known. */
async function summarizeAll(paths: readonly string[]): Promise<SessionFileSummary[]> {
  const summaries: SessionFileSummary[] = [];
  const waiting = paths.values();
  const work = async (): Promise<void> => {
    for (const path of waiting) {
      try {
        summaries.push(await summarize(path));
      } catch (error) {
        if (errnoOf(error) === "ENOENT") continue;
        const time = timeIn(path) ?? 0;
        const id = parseFileName(path);
        summaries.push({ id, path, cwd: "", createdAt: time, updatedAt: time, bytes: 0 });
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_OPEN_FILES }, work));
  return summaries;
}
