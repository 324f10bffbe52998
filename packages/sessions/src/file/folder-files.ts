import { randomBytes } from "node:crypto";
import { copyFile, link, mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf, type FileStore, MAX_STORED_BYTES, StoredFileError } from "@gyre/ai";
import { SessionError } from "../format/types.ts";
import { isHash } from "../session/stored-files.ts";
import { FOLDER_MODE, hasNoLinks, putInPlace, syncFolder, writeAll } from "./files.ts";

/** Beside a session file: a folder with the contents of its large files, each named by its hash. */
export class FolderFiles implements FileStore {
  readonly folder: string;
  #isMade = false;

  /** `path`: of the session file. */
  constructor(path: string) {
    this.folder = `${path}.files`;
  }

  async write(sha256: string, bytes: Uint8Array): Promise<void> {
    const path = this.#findPath(sha256);
    if (!this.#isMade) await this.#make();
    const there = await this.read(sha256);
    if (there && Buffer.from(there).equals(bytes)) return;
    // What is there is damaged.
    if (there) await rm(path);
    try {
      await putInPlace(path, (handle) => writeAll(handle, Buffer.from(bytes)));
    } catch (error) {
      // Another writer was first: of the same contents, by their name.
      if (!(error instanceof SessionError) || error.code !== "exists") throw error;
    }
  }

  async read(sha256: string): Promise<Uint8Array | undefined> {
    if (!isHash(sha256)) return undefined;
    const path = this.#findPath(sha256);
    try {
      const { size } = await stat(path);
      if (size <= MAX_STORED_BYTES) return await readFile(path);
      throw new StoredFileError("damaged_file", `${path} has ${size} bytes: no stored file has.`);
    } catch (error) {
      if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
      throw error;
    }
  }

  /** Takes the contents of another folder: shared, where the file system can. What is missing there stays so. */
  async take(hashes: Iterable<string>, source: FolderFiles): Promise<void> {
    for (const sha256 of hashes) {
      if (!isHash(sha256)) continue;
      if (!this.#isMade) await this.#make();
      const path = this.#findPath(sha256);
      try {
        await link(source.#findPath(sha256), path);
      } catch (error) {
        if (errnoOf(error) === "ENOENT" || errnoOf(error) === "EEXIST") continue;
        if (!hasNoLinks(error) && errnoOf(error) !== "EXDEV") throw error;
        const draft = `${path}.${randomBytes(DRAFT_BYTES).toString("hex")}.new`;
        await copyFile(source.#findPath(sha256), draft);
        await rename(draft, path);
      }
    }
    if (this.#isMade) await syncFolder(this.folder);
  }

  /** Deletes all of it. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #make(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: FOLDER_MODE });
    await syncFolder(dirname(this.folder));
    this.#isMade = true;
  }

  #findPath(sha256: string): string {
    const isSafe: boolean = isHash(sha256);
    if (!isSafe) throw new TypeError(`"${sha256}" is no SHA-256 in hexadecimal.`);
    return join(this.folder, sha256);
  }
}

const DRAFT_BYTES = 8;
