import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { join } from "node:path";
import { getSystemErrorMap } from "node:util";
import { errorMessage } from "@gyre/ai";
import { type FileIdentity, PathError, type Workspace } from "@gyre/tools";
import { isMissing } from "./store.ts";

/** A longer file is left out, and listed. */
export const MAX_FILE_BYTES: number = 1024 * 1024;
const MODE_BITS = 0o777n;

/** What is at a path right now. */
export type PathSnapshot =
  | { kind: "nothing" }
  | { kind: "folder" }
  /** A folder on the way is a link: what is there has another path. */
  | { kind: "elsewhere" }
  /** There, and cannot be kept. */
  | { kind: "skipped"; why: string; isChanging?: true }
  | FileSnapshot;

export interface FileSnapshot {
  kind: "file" | "link";
  bytes: Uint8Array;
  mode: number;
  /** Which file it was, and in which state, when it was read. */
  signature: string;
  identity: FileIdentity;
}

/** Changes whenever a file does, but for what happens within one tick of its clock. */
export function computeSignature(stats: BigIntStats): string {
  const { size, mtimeNs, ctimeNs, ino, mode } = stats;
  return `${size} ${mtimeNs} ${ctimeNs} ${ino} ${mode}`;
}

export function readMode(stats: BigIntStats): number {
  return stats.isSymbolicLink() ? 0 : Number(stats.mode & MODE_BITS);
}

/**
 * Looks at a path from the workspace. A link at its end is read and not followed. `known`:
 * what the system has just said of it, which saves asking again.
 */
export async function snapshotPath(
  workspace: Workspace,
  path: string,
  known?: BigIntStats,
): Promise<PathSnapshot> {
  try {
    if (known?.isFile() && known.size <= MAX_FILE_BYTES) {
      return await readFile(workspace, path, known);
    }
    const resolved = await workspace.resolve(`./${path}`, { keepLink: true });
    if (resolved.path !== path) return { kind: "elsewhere" };
    if (!resolved.exists) return { kind: "nothing" };
    const stats = await lstat(resolved.absolute, { bigint: true });
    if (stats.isDirectory()) return { kind: "folder" };
    if (stats.isSymbolicLink()) {
      const target = await readlink(resolved.absolute, { encoding: "buffer" });
      return { kind: "link", bytes: target, ...describeStats(stats) };
    }
    if (!stats.isFile()) return { kind: "skipped", why: "it is no regular file" };
    if (stats.size > MAX_FILE_BYTES) return { kind: "skipped", why: tooLarge(stats.size) };
    return await readFile(workspace, path, stats);
  } catch (error) {
    if (isMissing(error)) return { kind: "nothing" };
    if (error instanceof PathError) return refused(error);
    return { kind: "skipped", why: describeFailure(error) };
  }
}

async function readFile(
  workspace: Workspace,
  path: string,
  stats: BigIntStats,
): Promise<PathSnapshot> {
  const { bytes, info } = await workspace.read(`./${path}`, MAX_FILE_BYTES);
  // A time that was set back shows in that of the last change of any kind.
  const after = lstatSync(join(workspace.root, path), { bigint: true });
  const isSame = info.ino === stats.ino && info.path === path;
  if (!isSame || computeSignature(after) !== computeSignature(stats))
    return { kind: "skipped", why: "it was being changed", isChanging: true };
  return { kind: "file", bytes, ...describeStats(stats) };
}

/** A file that turns out to be a pipe or a terminal neither blocks nor takes us over. */
const READ =
  constants.O_RDONLY |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0) |
  (constants.O_NOCTTY ?? 0);

/**
 * The content of a file that is as `stats` say, before and after it is read; nothing where that
 * is not sure in this quick way: then `snapshotPath` says more. The kernel says where the file is
 * that was opened, so no link on the way leads out of the workspace.
 */
export function readQuickly(
  workspace: Workspace,
  path: string,
  stats: BigIntStats,
): Buffer | undefined {
  if (process.platform !== "linux" || !stats.isFile() || workspace.isHidden(path)) return undefined;
  const absolute = join(workspace.root, path);
  const signature = computeSignature(stats);
  const bytes = Buffer.allocUnsafe(Number(stats.size));
  let fd: number | undefined;
  try {
    fd = openSync(absolute, READ);
    if (readlinkSync(`/proc/self/fd/${fd}`) !== absolute) return undefined;
    if (readSync(fd, bytes, 0, bytes.length, 0) !== bytes.length) return undefined;
    const isSame = computeSignature(fstatSync(fd, { bigint: true })) === signature;
    return isSame ? bytes : undefined;
  } catch {
    // Gone, closed to us, or without /proc.
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function describeStats(stats: BigIntStats): Omit<FileSnapshot, "kind" | "bytes"> {
  const { dev, ino, size, mtimeNs } = stats;
  return {
    mode: readMode(stats),
    signature: computeSignature(stats),
    identity: { dev, ino, size: Number(size), mtimeNs },
  };
}

function refused({ fault, message }: PathError): PathSnapshot {
  switch (fault) {
    case "missing":
    case "not_a_folder":
      return { kind: "nothing" };
    case "outside":
      return { kind: "elsewhere" };
    case "denied":
      return { kind: "skipped", why: "it cannot be read" };
    default:
      return { kind: "skipped", why: message };
  }
}

/** What went wrong, of an error of the system without its path: "EACCES: permission denied". */
export function describeFailure(error: unknown): string {
  const errno = error instanceof Error && "errno" in error ? Number(error.errno) : Number.NaN;
  const known = getSystemErrorMap().get(errno);
  return known ? known.join(": ") : errorMessage(error);
}

export function tooLarge(bytes: bigint | number): string {
  const megabyte = 1024 * 1024;
  return `it has ${(Number(bytes) / megabyte).toFixed(1)} MB; ${MAX_FILE_BYTES / megabyte} MB is kept`;
}
