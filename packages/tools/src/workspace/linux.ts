import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { access, open } from "node:fs/promises";
import { errnoOf } from "@gyre/ai";
import {
  findKind,
  type FolderSpot,
  isSame,
  listEntries,
  readLink,
  type Spot,
  syncFolder,
} from "./folder.ts";

/** Linux's `O_PATH`, which Node does not name: a hold on a file without opening it. */
const O_PATH = 0x200000;
const HOLD = O_PATH | constants.O_NOFOLLOW;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** A file that turns out to be a pipe or a terminal neither blocks nor takes us over. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const NEW_FOLDER_MODE = 0o777;

/**
 * The folder at `path`, held by a descriptor; undefined where `/proc` does not lead back
 * to it. Each entry is reached as `/proc/self/fd/N/name`: the kernel starts at the
 * descriptor, so a folder that is renamed or replaced by a link changes nothing.
 */
export function holdByDescriptor(path: string): FolderSpot | undefined {
  const fd = openSync(path, HOLD | constants.O_DIRECTORY);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (isSame(stats, statSync(wayTo(fd), { bigint: true }))) return folderSpot(fd, stats);
  } catch (error) {
    closeSync(fd);
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
  closeSync(fd);
  return undefined;
}

function wayTo(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

function folderSpot(fd: number, stats: BigIntStats): FolderSpot {
  const way = wayTo(fd);
  const at = (name: string): string => `${way}/${name}`;
  return {
    kind: "folder",
    stats,
    close: () => closeSync(fd),
    // What is reached by the descriptor is in this folder.
    verify: () => {},
    look: (name) => look(at(name)),
    readLink: (name) => readLink(at(name)),
    list: () => listEntries(way),
    makeFolder: (name) => mkdirSync(at(name), NEW_FOLDER_MODE),
    create: (name, mode) => open(at(name), MAKE, mode),
    rename: (from, to) => renameSync(at(from), at(to)),
    link: (from, to) => linkSync(at(from), at(to)),
    unlink: (name) => unlinkSync(at(name)),
    sync: () => syncFolder(() => open(way, constants.O_RDONLY | constants.O_DIRECTORY)),
  };
}

function look(path: string): Spot | undefined {
  let fd: number;
  try {
    fd = openSync(path, HOLD);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const stats = fstatSync(fd, { bigint: true });
  const close = (): void => closeSync(fd);
  const kind = findKind(stats);
  if (kind === "folder") return folderSpot(fd, stats);
  if (kind !== "file") return { kind, stats, close };
  return {
    kind,
    stats,
    close,
    // The descriptor's own entry leads to the file that is held and to no other.
    open: () => open(wayTo(fd), READ),
    checkWritable: () => access(wayTo(fd), constants.W_OK),
  };
}
