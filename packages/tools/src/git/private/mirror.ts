import { constants } from "node:fs";
import { lstat, open, rename, rm, utimes } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { copyPlain, MAX_COPIED_BYTES } from "./held-tree.ts";

const MS_PER_SECOND = 1_000;
/** The user's git may hold a lock for a moment. */
const LOCK_TRIES = 50;
const LOCK_WAIT_MS = 20;

export interface MirrorOptions {
  real: string;
  own: string;
  /** A name that no command can change, on the file system of the real file. */
  besideReal: () => string;
  /** The same for the other one. */
  besideOwn: () => string;
  /** Whether what a command left may be taken over. Default: yes. */
  accepts?: (bytes: Buffer) => boolean;
  /** While a command has its file locked, the real one is, too: the user's git waits or fails as usual. */
  sharesLock?: boolean;
}

/** How the two files stand after they were compared. */
export type MirrorState = "same" | "busy" | "conflict" | "refused";

/**
 * Keeps a file of git and the copy that commands have of it the same. git renames such files across
 * its folder, so a link would not do; the real one is locked as git does while one is copied to the other.
 */
export class Mirror {
  readonly #options: MirrorOptions;
  /** The inode of the real lock, as long as it is ours. */
  #lock: bigint | undefined;
  #real: string | undefined;
  #own: string | undefined;

  constructor(options: MirrorOptions) {
    this.#options = options;
  }

  /** Copies what was changed on one side to the other. `isLast`: locks of commands no longer count. */
  async sync(isLast = false): Promise<MirrorState> {
    const { real, own, sharesLock } = this.#options;
    if (sharesLock && !isLast && (await identify(`${own}.lock`)) !== undefined) {
      this.#lock ??= await tryLock(real, false);
      return "busy";
    }
    try {
      if (await this.#isSame()) return "same";
      this.#lock ??= await tryLock(real, isLast);
      return this.#lock === undefined ? "busy" : await this.#copy(isLast);
    } finally {
      await this.#unlock();
    }
  }

  /** A lock that the user removed may have been followed by one of theirs. */
  async #unlock(): Promise<void> {
    const path = `${this.#options.real}.lock`;
    if (this.#lock !== undefined && (await readInode(path)) === this.#lock) {
      await rm(path, { force: true });
    }
    this.#lock = undefined;
  }

  async #isSame(): Promise<boolean> {
    const { real, own } = this.#options;
    return (await identify(real)) === this.#real && (await identify(own)) === this.#own;
  }

  async #copy(isLast: boolean): Promise<MirrorState> {
    const { real, own, besideReal, besideOwn, accepts } = this.#options;
    // What is noted is what was there before: a command may change its file at any time.
    const [theirs, ours] = [await identify(real), await identify(own)];
    const isTheirs = theirs !== this.#real;
    const isOurs = ours !== this.#own;
    const isConflict = isTheirs && isOurs && !(await hasSameBytes(real, own));
    if (isTheirs === isOurs && !isConflict) {
      this.#real = theirs;
      this.#own = ours;
    } else if (isTheirs) {
      // Its lock is only looked at: git would fail at once where it finds one.
      if (!isLast && (await identify(`${own}.lock`)) !== undefined) return "busy";
      this.#own = await replace(real, own, besideOwn());
      this.#real = theirs;
      // What a command does from here on is based on what the user has.
      if (isConflict) return "conflict";
    } else {
      // A command may be about to put another one in its place.
      if (ours === undefined && !isLast) return "busy";
      const isRefused = accepts && !(await isAccepted(own, accepts));
      if (isRefused) return "refused";
      this.#real = await replace(own, real, besideReal());
      this.#own = ours;
    }
    return "same";
  }
}

/** Makes `to` what `from` is, by way of `made`. Gives what it is then. */
async function replace(from: string, to: string, made: string): Promise<string | undefined> {
  const stats = await lstat(from).catch(() => undefined);
  if (stats === undefined) {
    await rm(to, { force: true });
    return undefined;
  }
  try {
    await copyPlain(from, made);
    // Not later than the original: git looks again at files that are not older than its index.
    const seconds = Math.floor(stats.mtimeMs) / MS_PER_SECOND;
    await utimes(made, seconds, seconds);
    const identity = await identify(made);
    await rename(made, to);
    return identity;
  } finally {
    await rm(made, { force: true });
  }
}

async function isAccepted(path: string, accepts: (bytes: Buffer) => boolean): Promise<boolean> {
  const bytes = await readPlain(path);
  return bytes !== undefined && accepts(bytes);
}

async function hasSameBytes(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map(readPlain));
  return one !== undefined && other !== undefined && one.equals(other);
}

async function readPlain(path: string): Promise<Buffer | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch(() => undefined);
  try {
    const stats = await file?.stat();
    const isPlain = stats !== undefined && stats.isFile() && stats.size <= MAX_COPIED_BYTES;
    return isPlain ? await file?.readFile() : undefined;
  } finally {
    await file?.close();
  }
}

/** Stays the same when a file is renamed, unlike the time of its change. */
async function identify(path: string): Promise<string | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined);
  return stats && `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
}

async function readInode(path: string): Promise<bigint | undefined> {
  return (await lstat(path, { bigint: true }).catch(() => undefined))?.ino;
}

/** The inode of the lock that was made; nothing where there is another one. */
async function tryLock(path: string, canWait: boolean): Promise<bigint | undefined> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  for (let tried = 1; ; tried += 1) {
    const file = await open(`${path}.lock`, flags, 0o644).catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
      throw error;
    });
    if (file) {
      const { ino } = await file.stat({ bigint: true });
      await file.close();
      return ino;
    }
    if (!canWait || tried >= LOCK_TRIES) return undefined;
    await wait(LOCK_WAIT_MS);
  }
}
