import {
  type BigIntStats,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  renameSync,
  unlinkSync,
} from "node:fs";
import { access, type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import {
  findKind,
  type FolderSpot,
  isSame,
  listEntries,
  readLink,
  ReplacedError,
  type Spot,
  syncFolder,
} from "./folder.ts";

// Windows has neither, and no links that an ordinary user could make.
const NO_FOLLOW = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;
const NO_BLOCK = process.platform === "win32" ? 0 : constants.O_NONBLOCK | constants.O_NOCTTY;
const READ = constants.O_RDONLY | NO_FOLLOW | NO_BLOCK;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
const NEW_FOLDER_MODE = 0o777;

/**
 * The folder at `path` (real), held by its identity: device and number. Entries are
 * reached by their path; after a walk, and before and after each use, every folder on the
 * way is compared with what was found first, and so is a file once it is open.
 *
 * A window is left: between two of our calls a program that may write to the workspace can
 * put a link in the place of a folder and the folder back again before it is compared.
 * Then a file outside may be read, or made, or replaced. A swap that is not taken back
 * in time is seen: a read then fails before a byte is handed on.
 */
export function holdByIdentity(path: string): FolderSpot {
  const stats = lstatSync(path, { bigint: true });
  return folderSpot(path, stats, () => compare(path, stats));
}

function compare(path: string, stats: BigIntStats): void {
  const now = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!now || now.isSymbolicLink() || !isSame(now, stats)) throw new ReplacedError();
}

/** `check` compares the folder and all above it. */
function folderSpot(path: string, stats: BigIntStats, check: () => void): FolderSpot {
  const at = (name: string): string => join(path, name);
  const checked = <T>(use: () => T): T => {
    check();
    const result = use();
    check();
    return result;
  };
  const checkedLater = async <T>(use: () => Promise<T>): Promise<T> => {
    check();
    const result = await use();
    check();
    return result;
  };
  return {
    kind: "folder",
    stats,
    close: () => {},
    verify: check,
    // Unchecked: the walk verifies where it has come to, once.
    look: (name) => look(at(name), check),
    readLink: (name) => readLink(at(name)),
    list: () => checkedLater(() => listEntries(path)),
    makeFolder: (name) => checked(() => mkdirSync(at(name), NEW_FOLDER_MODE)),
    create: (name, mode) => openChecked(at(name), MAKE, check, undefined, mode),
    rename: (from, to) => checked(() => renameSync(at(from), at(to))),
    link: (from, to) => checked(() => linkSync(at(from), at(to))),
    unlink: (name) => checked(() => unlinkSync(at(name))),
    sync: async () => {
      // Windows does not open folders, and writes their entries by itself.
      if (process.platform === "win32") return;
      await syncFolder(() => openChecked(path, READ | constants.O_DIRECTORY, check, stats));
    },
  };
}

function look(path: string, checkParent: () => void): Spot | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!stats) return undefined;
  const kind = findKind(stats);
  const close = (): void => {};
  if (kind === "folder")
    return folderSpot(path, stats, () => {
      checkParent();
      compare(path, stats);
    });
  if (kind !== "file") return { kind, stats, close };
  return {
    kind,
    stats,
    close,
    open: () => openChecked(path, READ, checkParent, stats),
    checkWritable: () => access(path, constants.W_OK),
  };
}

async function openChecked(
  path: string,
  flags: number,
  check: () => void,
  stats?: BigIntStats,
  mode?: number,
): Promise<FileHandle> {
  check();
  const handle = await open(path, flags, mode);
  try {
    const opened = await handle.stat({ bigint: true });
    if (stats && !isSame(opened, stats)) throw new ReplacedError();
    // The name between two checks of the way: a swap would have to be made and taken back
    // several times at the right moments.
    check();
    compare(path, opened);
    check();
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
