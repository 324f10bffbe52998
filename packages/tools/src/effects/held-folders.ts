import {
  type BigIntStats,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
} from "node:fs";
import { errnoOf } from "@gyre/ai";
import { type BytePath, fromBytes, getName, findParent, toBytes } from "./byte-path.ts";

/** Linux's `O_PATH`, which Node does not name: a hold that needs no right to read. */
const O_PATH = 0x200000;
const HOLD = O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY;
const MAX_HELD = 64;

/** On the way to a place there is something else than a folder. */
export class NoFolderError extends Error {}

/**
 * Reaches what is in a folder by descriptors: no link on the way is followed, also one that is put there
 * between a look and an act. A way is good until the next one is asked for.
 */
export class HeldFolders {
  readonly #held = new Map<BytePath, number>();
  readonly #root: number;

  constructor(root: string) {
    this.#root = openSync(root, HOLD);
  }

  /** A way to a place, by the folder that it is in. Throws `NoFolderError` where that is no folder. */
  way(path: BytePath): Buffer {
    const folder = path === "" ? this.#root : this.#hold(findParent(path));
    return toBytes(`/proc/self/fd/${folder}/${path === "" ? "." : getName(path)}`);
  }

  /** What is at a place, itself where it is a link; undefined where nothing is. */
  look(path: BytePath): BigIntStats | undefined {
    try {
      return lstatSync(this.way(path), { bigint: true });
    } catch (error) {
      if (error instanceof NoFolderError || errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  list(path: BytePath): BytePath[] {
    const folder = this.#hold(path);
    return readdirSync(toBytes(`/proc/self/fd/${folder}`), { encoding: "buffer" }).map(fromBytes);
  }

  readLink(path: BytePath): BytePath {
    return fromBytes(readlinkSync(this.way(path), { encoding: "buffer" }));
  }

  /** To be called when a folder is moved or removed. */
  forget(path: BytePath): void {
    for (const [held, handle] of this.#held) {
      if (held !== path && !held.startsWith(`${path}/`)) continue;
      this.#held.delete(held);
      closeSync(handle);
    }
  }

  close(): void {
    for (const handle of this.#held.values()) closeSync(handle);
    this.#held.clear();
    closeSync(this.#root);
  }

  #hold(path: BytePath): number {
    if (path === "") return this.#root;
    const known = this.#held.get(path);
    if (known !== undefined) return known;
    const parent = this.#hold(findParent(path));
    const handle = openFolder(toBytes(`/proc/self/fd/${parent}/${getName(path)}`), path);
    // Those that were held first are the outermost, and quickly held again.
    for (const [oldest, old] of this.#held) {
      if (this.#held.size < MAX_HELD) break;
      this.#held.delete(oldest);
      closeSync(old);
    }
    this.#held.set(path, handle);
    return handle;
  }
}

function openFolder(way: Buffer, path: BytePath): number {
  try {
    return openSync(way, HOLD);
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) throw error;
    throw new NoFolderError(`There is no folder "${path}" any more.`, { cause: error });
  }
}
