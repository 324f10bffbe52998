import { randomBytes } from "node:crypto";
import { type BigIntStats, lstatSync, statSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { errnoOf, nearNames } from "@gyre/ai";
import { isWithin, realPlace } from "../sandbox/places.ts";
import { type FolderSpot, findKind, ReplacedError } from "./folder.ts";
import {
  type Base,
  type Ground,
  isHiddenAt,
  shown,
  walk,
  type Walked,
  type WalkOptions,
} from "./resolve.ts";
import {
  type Entry,
  FolderError,
  type FileIdentity,
  type FileInfo,
  type OpenedFile,
  PathError,
  type PathFault,
  type ReadFile,
  type ResolvedPath,
  type ResolveOptions,
  type Workspace,
  type WriteOptions,
} from "./types.ts";

/** What `read` takes where it gets no limit. */
export const MAX_READ_BYTES: number = 64 * 1024 * 1024;
const READ_PIECE_BYTES = 64 * 1024;
/** How often a file is read that changes while it is read. */
const MAX_READS = 3;
const NEW_FILE_MODE = 0o644;
const PRIVATE_MODE = 0o600;
/** Without set-user-id and its kind: a kernel takes them from a file that is written to. */
const KEPT_MODE = 0o777;
const TEMP_NAME_BYTES = 12;
/** Names of a folder that are compared with one that is not there. */
const MAX_NEAR_CANDIDATES = 2_000;

/** What a workspace needs for folders beside its own. */
export interface BaseOpener {
  /** Opens a folder that belongs to the workspace from now on. `given` is as it was named, absolute. */
  folder(real: string, given: string): Base;
  /** Opens a place outside, for reading: a folder, or the file `only` in it. */
  outside(real: string, only: string | undefined): Base;
  /** Whether no tool may see a place outside: keys, and what is no file. */
  isSecret(real: string): boolean;
}

/** Paths that were given for places outside, remembered to find these again. */
const MAX_GIVEN = 1000;

/** A workspace on opened folders. `bases` are closed with it. */
export class FolderWorkspace implements Workspace {
  readonly root: string;
  readonly #open: BaseOpener;
  #ground: Ground;
  readonly #folders: string[] = [];
  readonly #readable: string[] = [];
  /** Of these, those that no call is asked about. */
  readonly #unasked: string[] = [];
  /** By the path as it was given: where it leads outside. */
  readonly #given = new Map<string, string>();
  #closed = false;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(root: string, ground: Ground, open: BaseOpener) {
    this.root = root;
    this.#ground = ground;
    this.#open = open;
  }

  get folders(): readonly string[] {
    return this.#folders;
  }

  get readable(): readonly string[] {
    return this.#readable;
  }

  addFolder(path: string): string | undefined {
    const given = resolve(this.root, path);
    const real = realPlace(given);
    const stats = statSync(real, { throwIfNoEntry: false });
    const wrong = (why: string): Error => new FolderError(`${given} cannot be added: ${why}`);
    if (!stats) throw wrong("there is no such folder.");
    if (!stats.isDirectory()) throw wrong("it is not a folder. Add the folder that it is in.");
    if ([this.root, ...this.#folders].some((folder) => isWithin(real, folder))) return undefined;
    this.#addBase(this.#open.folder(real, given));
    // What was added before and is inside of it stays a base: paths through it are the same.
    this.#folders.splice(
      0,
      Infinity,
      ...this.#folders.filter((folder) => !isWithin(folder, real)),
      real,
    );
    return real;
  }

  allowReading(absolute: string, { unasked = false }: { unasked?: boolean } = {}): void {
    const real = realPlace(absolute);
    if (real !== absolute || this.#open.isSecret(real)) {
      throw pathError("outside", absolute, "is not the place that was asked about.");
    }
    if (unasked) this.#unasked.push(real);
    if (this.#readable.some((place) => isWithin(real, place))) return;
    const isFolder = lstatSync(real).isDirectory();
    const folder = isFolder ? real : dirname(real);
    this.#addBase(this.#open.outside(folder, isFolder ? undefined : basename(real)));
    this.#readable.push(real);
  }

  #addBase(base: Base): void {
    const { bases } = this.#ground;
    this.#ground = { ...this.#ground, bases: [bases[0], ...bases.slice(1), base] };
  }

  async resolve(path: string, options: ResolveOptions = {}): Promise<ResolvedPath> {
    const { keepLink = false, outside = false } = options;
    try {
      return await this.#at(path, { keepLink }, async (walked) => ({
        path: this.#findPath(walked.absolute),
        absolute: toAbsolute(walked.absolute, this.#ground.isWindows),
        exists: walked.missing === 0,
        readOnly: walked.isProtected,
      }));
    } catch (error) {
      if (!outside || !(error instanceof PathError) || error.fault !== "outside") throw error;
      return this.#resolveOutside(path, options);
    }
  }

  /** Where a path outside leads. What is in the workspace after all is resolved as that. */
  #resolveOutside(path: string, options: ResolveOptions): Promise<ResolvedPath> | ResolvedPath {
    const given = path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
    const real = realPlace(resolve(this.root, given));
    if ([this.root, ...this.#folders].some((folder) => isWithin(real, folder))) {
      return this.resolve(real, { ...options, outside: false });
    }
    if (this.#open.isSecret(real)) {
      throw pathError(
        "denied",
        path,
        "is not for tools: keys, tokens and sessions are kept there.",
      );
    }
    this.#given.delete(path);
    this.#given.set(path, real);
    for (const [oldest] of this.#given) {
      if (this.#given.size <= MAX_GIVEN) break;
      this.#given.delete(oldest);
    }
    const exists = lstatSync(real, { throwIfNoEntry: false }) !== undefined;
    return {
      path: relative(this.root, real).replaceAll(sep, "/"),
      absolute: real,
      exists,
      readOnly: true,
      ...(!this.#unasked.some((place) => isWithin(real, place)) && { outside: true }),
    };
  }

  isHidden(path: string): boolean {
    const { bases } = this.#ground;
    if (bases.every(({ isHidden }) => isHidden === undefined)) return false;
    const names = [...bases[0].rootNames[0]];
    for (const name of path === "" ? [] : path.split("/")) {
      if (name === "..") names.pop();
      else names.push(name);
    }
    return isHiddenAt(this.#ground, names);
  }

  stat(path: string): Promise<FileInfo> {
    return this.#at(path, READS, async (walked) => {
      await this.#throwIfMissing(path, walked);
      return this.#info(walked, (walked.leaf ?? walked.folder).stats);
    });
  }

  open(path: string): Promise<OpenedFile> {
    return this.#at(path, READS, (walked) => this.#openAt(path, walked));
  }

  read(path: string, maxBytes: number = MAX_READ_BYTES): Promise<ReadFile> {
    return this.#at(path, READS, async (walked) => {
      const { handle, info } = await this.#openAt(path, walked);
      try {
        return await readSettled(path, handle, info, maxBytes);
      } finally {
        await handle.close();
      }
    });
  }

  list(path: string): Promise<Entry[]> {
    return this.#at(path, READS, async (walked) => {
      await this.#throwIfMissing(path, walked);
      if (walked.leaf) throw pathError("not_a_folder", path, "is not a folder. Read it instead.");
      const entries = await walked.folder.list();
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    });
  }

  write(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<FileInfo> {
    return this.#at(path, {}, async (walked) => {
      throwIfProtected(path, walked);
      const name = walked.names.at(-1);
      const isFolder = !walked.leaf && walked.missing === 0;
      if (
        name === undefined ||
        isFolder ||
        walked.saysFolder ||
        (walked.leaf && walked.leaf.kind !== "file")
      )
        throw notAFile(path, walked);
      throwIfChanged(path, walked.leaf?.stats, options.expected);
      if (walked.leaf?.kind === "file") await walked.leaf.checkWritable();
      const made = makeFolders(walked);
      try {
        const folder = made.at(-1) ?? walked.folder;
        const stats = await replace({ path, folder, name, data, options, old: walked.leaf?.stats });
        for (const parent of [walked.folder, ...made]) await parent.sync();
        return this.#info(walked, stats);
      } finally {
        for (const folder of made) folder.close();
      }
    });
  }

  remove(path: string): Promise<void> {
    return this.#at(path, { keepLink: true }, async (walked) => {
      await this.#throwIfMissing(path, walked);
      throwIfProtected(path, walked);
      const name = walked.names.at(-1);
      if (!walked.leaf || name === undefined) throw notAFile(path, walked);
      walked.folder.unlink(name);
      await walked.folder.sync();
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // A descriptor that is closed under a call could become another folder's.
    await Promise.allSettled(this.#underWay);
    for (const { root } of this.#ground.bases) root.close();
  }

  /** Walks to `path`, uses what is there, and lets go of it. */
  async #at<T>(
    path: string,
    options: WalkOptions,
    use: (walked: Walked) => Promise<T>,
  ): Promise<T> {
    if (this.#closed) throw new Error("The workspace is closed.");
    const work = this.#walked(path, options, use);
    this.#underWay.add(work);
    try {
      return await work;
    } catch (error) {
      throw forPeople(error, path);
    } finally {
      this.#underWay.delete(work);
    }
  }

  async #walked<T>(
    path: string,
    options: WalkOptions,
    use: (walked: Walked) => Promise<T>,
  ): Promise<T> {
    const walked = this.#walk(path, options);
    try {
      return await use(walked);
    } finally {
      walked.close();
    }
  }

  #walk(path: string, options: WalkOptions): Walked {
    try {
      return walk(this.#ground, path, options);
    } catch (error) {
      const real = options.reads ? this.#given.get(path) : undefined;
      const isOutside = error instanceof PathError && error.fault === "outside";
      if (real === undefined || !isOutside) throw error;
      return walk(this.#ground, real, options);
    }
  }

  /** From the workspace; what is in another folder begins with `../`. */
  #findPath(absolute: readonly string[]): string {
    const root = this.#ground.bases[0].rootNames[0];
    const isBelow = root.every((name, index) => name === absolute[index]);
    if (isBelow) return absolute.slice(root.length).join("/");
    const common = root.findIndex((name, index) => name !== absolute[index]);
    return [...root.slice(common).map(() => ".."), ...absolute.slice(common)].join("/");
  }

  #info({ absolute }: Walked, stats: BigIntStats): FileInfo {
    return {
      ...toIdentity(stats),
      path: this.#findPath(absolute),
      kind: findKind(stats),
      mode: Number(stats.mode) & 0o7777,
    };
  }

  async #openAt(path: string, walked: Walked): Promise<OpenedFile> {
    await this.#throwIfMissing(path, walked);
    if (walked.leaf?.kind !== "file") throw notAFile(path, walked);
    const handle = await walked.leaf.open();
    try {
      return { handle, info: this.#info(walked, await handle.stat({ bigint: true })) };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #throwIfMissing(path: string, walked: Walked): Promise<void> {
    if (walked.missing === 0) return;
    const first = walked.absolute.length - walked.missing;
    const parent = walked.absolute.slice(0, first);
    const name = walked.absolute[first] ?? "";
    const show = (last: string): string => shown(this.#findPath([...parent, last]));
    const entries = await listIfAllowed(walked.folder);
    const near = nearNames(
      name,
      entries.slice(0, MAX_NEAR_CANDIDATES).map((entry) => entry.name),
    ).map(show);
    const what = walked.missing > 1 ? `the folder ${show(name)} is not there` : "nothing is there";
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw pathError("missing", path, `was not found: ${what}.${hint}`);
  }
}

const READS: WalkOptions = { reads: true };

function toAbsolute(names: readonly string[], isWindows: boolean): string {
  return isWindows ? names.join("\\") : `/${names.join("/")}`;
}

/** All of a file, of one moment: read again if it changed meanwhile. */
async function readSettled(
  path: string,
  handle: FileHandle,
  info: FileInfo,
  maxBytes: number,
): Promise<ReadFile> {
  let before = info;
  for (let reads = 0; reads < MAX_READS; reads++) {
    const bytes = await readAll(handle, before.size, maxBytes);
    if (!bytes)
      throw pathError(
        "too_large",
        path,
        `has more than the ${maxBytes} bytes that are read at once. Read a part of it.`,
      );
    const after: FileInfo = { ...toIdentity(await handle.stat({ bigint: true })), ...named(info) };
    if (isIdentical(before, after)) return { bytes, info: after };
    before = after;
  }
  throw pathError("changed", path, "keeps changing while it is read. Try again later.");
}

function named(info: FileInfo): Pick<FileInfo, "path" | "kind" | "mode"> {
  return { path: info.path, kind: info.kind, mode: info.mode };
}

/** From the start to the end; undefined where that is more than `maxBytes`. */
async function readAll(
  handle: FileHandle,
  size: number,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (size > maxBytes) return undefined;
  // With one byte more than there should be, the same call finds the end.
  let buffer = Buffer.alloc(size + 1);
  let length = 0;
  for (;;) {
    if (length === buffer.length)
      buffer = Buffer.concat([buffer, Buffer.alloc(Math.max(length, READ_PIECE_BYTES))]);
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) return new Uint8Array(buffer.buffer, buffer.byteOffset, length);
    length += bytesRead;
    if (length > maxBytes) return undefined;
  }
}

/** Makes the folders on the way that are not there, each in the one before. */
function makeFolders(walked: Walked): FolderSpot[] {
  const made: FolderSpot[] = [];
  const first = walked.names.length - walked.missing;
  try {
    for (const name of walked.names.slice(first, -1)) {
      const parent = made.at(-1) ?? walked.folder;
      try {
        parent.makeFolder(name);
      } catch (error) {
        // Another program made it meanwhile: as good, if it is a folder.
        if (errnoOf(error) !== "EEXIST") throw error;
      }
      const spot = parent.look(name);
      if (spot?.kind !== "folder") {
        spot?.close();
        throw new ReplacedError();
      }
      made.push(spot);
    }
    return made;
  } catch (error) {
    for (const folder of made) folder.close();
    throw error;
  }
}

interface Replacement {
  path: string;
  folder: FolderSpot;
  name: string;
  data: string | Uint8Array;
  options: WriteOptions;
  /** What is replaced. */
  old: BigIntStats | undefined;
}

/**
 * Writes a temporary file beside the old one and gives it the name. Until then the old
 * file is as it was; on any failure the temporary one is gone.
 */
async function replace(what: Replacement): Promise<BigIntStats> {
  const { folder, old, options } = what;
  const temporary = `.gyre-${randomBytes(TEMP_NAME_BYTES).toString("hex")}.tmp`;
  // The mode of a new file goes through the kernel here, which knows the umask.
  const handle = await folder.create(
    temporary,
    old ? PRIVATE_MODE : (options.mode ?? NEW_FILE_MODE) & KEPT_MODE,
  );
  let isThere = true;
  try {
    const stats = await fill(handle, what.data, old);
    isThere = !putInPlace(what, temporary);
    return stats;
  } finally {
    if (isThere) unlinkIfThere(folder, temporary);
  }
}

function unlinkIfThere(folder: FolderSpot, name: string): void {
  try {
    folder.unlink(name);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

/** Writes, sets mode and owner, syncs and closes. */
async function fill(
  handle: FileHandle,
  data: string | Uint8Array,
  old: BigIntStats | undefined,
): Promise<BigIntStats> {
  try {
    const made = await handle.stat({ bigint: true });
    await handle.chmod(PRIVATE_MODE);
    await handle.writeFile(data);
    if (old && (old.uid !== made.uid || old.gid !== made.gid)) await keepOwner(handle, old);
    await handle.chmod(Number((old ?? made).mode) & KEPT_MODE);
    await handle.sync();
    return await handle.stat({ bigint: true });
  } finally {
    await handle.close();
  }
}

async function keepOwner(handle: FileHandle, old: BigIntStats): Promise<void> {
  try {
    await handle.chown(Number(old.uid), Number(old.gid));
  } catch (error) {
    // Only root gives files away; the file is then the writer's, as with most editors.
    if (errnoOf(error) !== "EPERM") throw error;
  }
}

/**
 * Gives the temporary file its name. Looking and renaming are one step as far as this
 * process goes. True where the temporary name is gone by that.
 */
function putInPlace({ path, folder, name, options }: Replacement, temporary: string): boolean {
  const spot = folder.look(name);
  spot?.close();
  if (spot && spot.kind !== "file") throw new ReplacedError();
  throwIfChanged(path, spot?.stats, options.expected);
  if (options.expected === null && linkInPlace(path, folder, name, temporary)) return false;
  folder.rename(temporary, name);
  return true;
}

/** Unlike a rename this never replaces. False where the file system has no such links. */
function linkInPlace(path: string, folder: FolderSpot, name: string, temporary: string): boolean {
  try {
    folder.link(temporary, name);
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST") throw changed(path);
    if (code === "EPERM" || code === "ENOTSUP" || code === "ENOSYS" || code === "EMLINK")
      return false;
    throw error;
  }
}

function throwIfProtected(path: string, walked: Walked): void {
  if (!walked.isProtected) return;
  throw pathError(
    "read_only",
    path,
    `is read-only for tools: it steers version control, an agent, an editor or a shell. Ask the person to change it.`,
  );
}

function throwIfChanged(
  path: string,
  stats: BigIntStats | undefined,
  expected: FileIdentity | null | undefined,
): void {
  if (expected === undefined) return;
  const isExpected = stats
    ? expected !== null && isIdentical(toIdentity(stats), expected)
    : expected === null;
  if (!isExpected) throw changed(path);
}

function changed(path: string): PathError {
  return pathError("changed", path, "has changed since it was looked at. Read it again.");
}

async function listIfAllowed(folder: FolderSpot): Promise<Entry[]> {
  try {
    return await folder.list();
  } catch (error) {
    // That the name is missing is known without reading the folder.
    if (errnoOf(error) === "EACCES" || errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

function notAFile(path: string, walked: Walked): PathError {
  const isFolder = !walked.leaf || walked.saysFolder;
  const what = isFolder ? "a folder, not a file" : "not a regular file";
  return pathError("not_a_file", path, `is ${what}. Name a file.`);
}

/** An error whose message begins with the path. */
function pathError(fault: PathFault, path: string, problem: string): PathError {
  return new PathError(fault, path, `${shown(path)} ${problem}`);
}

function toIdentity(stats: BigIntStats): FileIdentity {
  return { dev: stats.dev, ino: stats.ino, size: Number(stats.size), mtimeNs: stats.mtimeNs };
}

function isIdentical(a: FileIdentity, b: FileIdentity): boolean {
  return a.dev === b.dev && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs;
}

/** An error of the system in words of the workspace: its own paths mean nothing to anybody. */
function forPeople(error: unknown, path: string): unknown {
  if (error instanceof PathError) return error;
  if (error instanceof ReplacedError) return changed(path);
  const code = errnoOf(error);
  if (code === undefined) return error;
  const where = shown(path);
  switch (code) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new PathError(
        "denied",
        path,
        `The system does not allow this for ${where} (${code}).`,
      );
    case "ENAMETOOLONG":
      return pathError("invalid", path, "is longer than the file system takes.");
    case "ENOENT":
    case "ENOTDIR":
    case "EEXIST":
    case "EISDIR":
    case "ELOOP":
      // The walk reports all of these earlier, so another program was at work in between.
      return changed(path);
    default:
      return new Error(`${where} could not be used: ${formatReason(error)}.`, { cause: error });
  }
}

/** What the system says, without its own paths: they come after a comma. */
function formatReason(error: unknown): string {
  return error instanceof Error ? (error.message.split(",")[0] ?? "") : String(error);
}
