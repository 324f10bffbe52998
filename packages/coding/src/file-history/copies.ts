import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";
import { isMissing } from "./lines/store.ts";

/** All that is copied so that it is there when a command changes it. */
export const MAX_COPIES_BYTES: number = 200 * 1024 * 1024;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const NAME_BYTES = 6;

/** A copy: where it is, and its length. */
export interface Copy {
  name: string;
  /** Where it begins in a file that has many; absent: the file is this copy. */
  at?: number;
  bytes: number;
}

/**
 * Copies of files as they are now, for as long as this process runs. They are kept apart
 * from the history: of what never changes nothing remains.
 */
export class Copies {
  readonly #all: string;
  readonly #folder: string;
  #bytes = 0;
  #count = 0;
  #isMade = false;

  /** `folder` has those of all processes. */
  constructor(folder: string) {
    this.#all = folder;
    this.#folder = join(folder, `${process.pid}-${randomBytes(NAME_BYTES).toString("hex")}`);
  }

  /** Copies a content; undefined where all that may be is taken. Throws what the disk says. */
  async put(content: Uint8Array): Promise<Copy | undefined> {
    const bytes = content.length;
    if (!this.hasRoomFor(bytes)) return undefined;
    await this.#make();
    const name = String(this.#count++);
    this.#bytes += bytes;
    try {
      await writeFile(join(this.#folder, name), content, { mode: FILE_MODE });
    } catch (error) {
      await this.drop({ name, bytes });
      throw error;
    }
    return { name, bytes };
  }

  /** Whether a content of this length would be copied. */
  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= MAX_COPIES_BYTES;
  }

  /**
   * Copies many contents into one file, which takes a fraction of the time; there has to be room
   * for them. What they take stays taken when they are dropped.
   */
  async putAll(contents: readonly Uint8Array[]): Promise<Copy[]> {
    await this.#make();
    const name = String(this.#count++);
    const copies: Copy[] = [];
    let at = 0;
    for (const { length } of contents) {
      copies.push({ name, at, bytes: length });
      at += length;
    }
    this.#bytes += at;
    try {
      await writeFile(join(this.#folder, name), Buffer.concat(contents), { mode: FILE_MODE });
    } catch (error) {
      await this.drop({ name, bytes: at });
      throw error;
    }
    return copies;
  }

  async get({ name, at, bytes }: Copy): Promise<Uint8Array> {
    const path = join(this.#folder, name);
    if (at === undefined) return readFile(path);
    const handle = await open(path);
    try {
      const buffer = Buffer.alloc(bytes);
      const { bytesRead } = await handle.read(buffer, 0, bytes, at);
      if (bytesRead < bytes) throw new Error("the copy is cut off");
      return buffer;
    } finally {
      await handle.close();
    }
  }

  async drop({ name, at, bytes }: Copy): Promise<void> {
    if (at !== undefined) return;
    this.#bytes -= bytes;
    await rm(join(this.#folder, name), { force: true });
  }

  async #make(): Promise<void> {
    if (this.#isMade) return;
    await removeLeft(this.#all);
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE });
    this.#isMade = true;
  }

  /** Removes all of this process. */
  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Removes what processes have left that were killed. */
async function removeLeft(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const name of names) {
    const pid = Number(/^(\d+)-[0-9a-f]+$/.exec(name)?.[1]);
    if (pid > 0 && !isRunning(pid)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Whether there is a process of this number. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user runs, too.
    return errnoOf(error) !== "ESRCH";
  }
}
