import { randomBytes } from "node:crypto";
import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, nearNames } from "@gyre/ai";
import { type FolderSpot, findKind, ReplacedError } from "./folder.ts";
import { type Ground, shown, walk, type Walked } from "./resolve.ts";
import {
  type Entry,
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

/** A workspace on an opened root. `ground.root` is closed with it. */
export class FolderWorkspace implements Workspace {
  readonly root: string;
  readonly #ground: Ground;
  #closed = false;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(root: string, ground: Ground) {
    this.root = root;
    this.#ground = ground;
  }

  resolve(path: string, options: ResolveOptions = {}): Promise<ResolvedPath> {
    return this.#at(path, options.keepLink ?? false, async (walked) => {
      const relative = walked.names.join("/");
      return {
        path: relative,
        absolute: join(this.root, ...walked.names),
        exists: walked.missing === 0,
        readOnly: walked.isProtected,
      };
    });
  }

  isHidden(path: string): boolean {
    return this.#ground.isHidden?.(path === "" ? [] : path.split("/")) ?? false;
  }

  stat(path: string): Promise<FileInfo> {
    return this.#at(path, false, async (walked) => {
      await throwIfMissing(path, walked);
      return toFileInfo(walked.names, (walked.leaf ?? walked.folder).stats);
    });
  }

  open(path: string): Promise<OpenedFile> {
    return this.#at(path, false, (walked) => openAt(path, walked));
  }

  read(path: string, maxBytes: number = MAX_READ_BYTES): Promise<ReadFile> {
    return this.#at(path, false, async (walked) => {
      const { handle, info } = await openAt(path, walked);
      try {
        return await readSettled(path, handle, info, maxBytes);
      } finally {
        await handle.close();
      }
    });
  }

  list(path: string): Promise<Entry[]> {
    return this.#at(path, false, async (walked) => {
      await throwIfMissing(path, walked);
      if (walked.leaf) throw pathError("not_a_folder", path, "is not a folder. Read it instead.");
      const entries = await walked.folder.list();
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    });
  }

  write(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<FileInfo> {
    return this.#at(path, false, async (walked) => {
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
        return toFileInfo(walked.names, stats);
      } finally {
        for (const folder of made) folder.close();
      }
    });
  }

  remove(path: string): Promise<void> {
    return this.#at(path, true, async (walked) => {
      await throwIfMissing(path, walked);
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
    this.#ground.root.close();
  }

  /** Walks to `path`, uses what is there, and lets go of it. */
  async #at<T>(path: string, keepLink: boolean, use: (walked: Walked) => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error("The workspace is closed.");
    const work = this.#walked(path, keepLink, use);
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
    keepLink: boolean,
    use: (walked: Walked) => Promise<T>,
  ): Promise<T> {
    const walked = walk(this.#ground, path, keepLink);
    try {
      return await use(walked);
    } finally {
      walked.close();
    }
  }
}

async function openAt(path: string, walked: Walked): Promise<OpenedFile> {
  await throwIfMissing(path, walked);
  if (walked.leaf?.kind !== "file") throw notAFile(path, walked);
  const handle = await walked.leaf.open();
  try {
    return { handle, info: toFileInfo(walked.names, await handle.stat({ bigint: true })) };
  } catch (error) {
    await handle.close();
    throw error;
  }
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

async function throwIfMissing(path: string, walked: Walked): Promise<void> {
  if (walked.missing === 0) return;
  const first = walked.names.length - walked.missing;
  const parent = walked.names.slice(0, first);
  const name = walked.names[first] ?? "";
  const entries = await listIfAllowed(walked.folder);
  const near = nearNames(
    name,
    entries.slice(0, MAX_NEAR_CANDIDATES).map((entry) => entry.name),
  ).map((near) => shown([...parent, near].join("/")));
  const what =
    walked.missing > 1
      ? `the folder ${shown([...parent, name].join("/"))} is not there`
      : "nothing is there";
  const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
  throw pathError("missing", path, `was not found: ${what}.${hint}`);
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

function toFileInfo(names: readonly string[], stats: BigIntStats): FileInfo {
  return {
    ...toIdentity(stats),
    path: names.join("/"),
    kind: findKind(stats),
    mode: Number(stats.mode) & 0o7777,
  };
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
