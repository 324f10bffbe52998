import { appendFileSync, existsSync, renameSync, statSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errnoOf } from "@gyre/ai";
import { FILE_MODE } from "./files.ts";

/** Where the summaries are kept between two processes: a folder whose name no folder of sessions has. */
export const INDEX_FOLDER = ".index";
/** A longer list of names is begun again: those that read it compare all files once. */
const MAX_WRITTEN_BYTES = 1024 * 1024;

/**
 * Adds a session file to the names of those that were written, beside the index of its store, before
 * its lock is removed: a list finds what has changed without asking for each file. Without an index
 * there is no such list. A disk that is full is no error: lists find the change later.
 */
export function noteWritten(path: string): void {
  const folder = dirname(path);
  const index = join(dirname(folder), INDEX_FOLDER);
  const names = formatNamesPath(index, basename(folder));
  try {
    if (!existsSync(index)) return;
    if (measure(names) > MAX_WRITTEN_BYTES) {
      // The old file stays until the next time: a new one that got its number would look the same.
      renameSync(names, `${names}.old`);
    }
    appendFileSync(names, `${basename(path)}\n`, { mode: FILE_MODE });
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

function measure(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function formatNamesPath(index: string, folder: string): string {
  return join(index, `${folder}.written`);
}

/** How far the names have been read: up to a byte of a file. */
export interface WrittenPlace {
  ino: number;
  end: number;
}

/** The session files of a folder that were written since a place. */
export class WrittenNames {
  readonly #index: string;
  readonly #path: string;
  #place: WrittenPlace | undefined;

  /** `root`: of the store; `folder`: a name in it. */
  constructor(root: string, folder: string) {
    this.#index = join(root, INDEX_FOLDER);
    this.#path = formatNamesPath(this.#index, folder);
  }

  /** Absent: writers did not note names, or their notes are gone. All files have to be compared then. */
  get place(): WrittenPlace | undefined {
    return this.#place;
  }

  /** Goes on from a place that another process has read up to. */
  resume(place: WrittenPlace | undefined): void {
    this.#place = place;
  }

  /**
   * The names since the last call, which may repeat. Undefined where they are not known: all that is
   * written from here on is in the next call.
   */
  async take(): Promise<string[] | undefined> {
    const before = this.#place;
    try {
      const file = await open(this.#path, "r");
      try {
        return await this.#read(file, before);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      this.#place = (await isFolder(this.#index)) ? { ino: 0, end: 0 } : undefined;
      return before?.ino === 0 && this.#place ? [] : undefined;
    }
  }

  async #read(file: FileHandle, before: WrittenPlace | undefined): Promise<string[] | undefined> {
    const { ino, size } = await file.stat();
    this.#place = { ino, end: size };
    const isNew = before?.ino === 0;
    if (!before || (!isNew && (before.ino !== ino || before.end > size))) return undefined;
    const start = isNew ? 0 : before.end;
    const bytes = Buffer.alloc(size - start);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
    // What is not read now is read by the next call; a name is whole once its line has ended.
    const end = bytes.subarray(0, bytesRead).lastIndexOf("\n") + 1;
    this.#place = { ino, end: start + end };
    return bytes.toString("utf8", 0, end).split("\n").filter(Boolean);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}
