import { createHash, randomBytes } from "node:crypto";
import {
  appendFile,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { constants, deflateRaw, inflateRaw } from "node:zlib";
import { errnoOf } from "@gyre/ai";
import { type HistoryLine, parseLine } from "./line.ts";

/** All that a history may take, packed. Beyond that what changes is left out. */
export const MAX_STORE_BYTES: number = 500 * 1024 * 1024;
/** Less than this takes a block of the disk either way. */
const MIN_PACKED_BYTES = 4096;
const PACKED_SUFFIX = ".z";
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const TEMP_NAME_BYTES = 6;

const pack = promisify(deflateRaw);
const PACKING = { level: constants.Z_BEST_SPEED };
const unpack = promisify(inflateRaw);

/** How the store writes. A test gives one that fails. */
export interface StoreWriter {
  write(path: string, bytes: Uint8Array): Promise<void>;
  append(path: string, text: string): Promise<void>;
}

const DISK: StoreWriter = {
  write: (path, bytes) => writeFile(path, bytes, { mode: FILE_MODE, flag: "wx" }),
  append: (path, text) => appendFile(path, text, { mode: FILE_MODE }),
};

/**
 * What files were, by the hash of their content, and a list of what was changed, to which
 * lines are only added. One process at a time writes to it: the one that has the session.
 */
export class HistoryStore {
  readonly #folder: string;
  readonly #writer: StoreWriter;
  readonly #lines: HistoryLine[];
  /** The names of contents that are there. */
  readonly #names: Set<string>;
  #bytes: number;
  /** What was written last is half a line: a process was killed there. */
  #isTorn: boolean;
  #isMade: boolean;

  private constructor(folder: string, writer: StoreWriter, found: Found) {
    this.#folder = folder;
    this.#writer = writer;
    this.#lines = found.lines;
    this.#names = found.names;
    this.#bytes = found.bytes;
    this.#isTorn = found.isTorn;
    this.#isMade = found.isMade;
  }

  /** Opens the one in a folder, which is made when there is something to keep. */
  static async open(folder: string, writer: StoreWriter = DISK): Promise<HistoryStore> {
    return new HistoryStore(folder, writer, await find(folder));
  }

  /** What was changed, the oldest first. A line that cannot be read is not among them. */
  get lines(): readonly HistoryLine[] {
    return this.#lines;
  }

  /** Keeps a content, once; gives its hash. Throws where it cannot be kept. */
  async put(bytes: Uint8Array): Promise<string> {
    const hash = computeHash(bytes);
    if (this.#has(hash)) return hash;
    const packed = bytes.length < MIN_PACKED_BYTES ? bytes : await pack(bytes, PACKING);
    const isPacked = packed.length < bytes.length;
    this.#assertRoom(packed.length);
    const name = isPacked ? hash + PACKED_SUFFIX : hash;
    await this.#make();
    await this.#write(this.#contentAt(name), packed);
    this.#names.add(name);
    this.#bytes += packed.length;
    return hash;
  }

  /** Keeps a content of another history, if that has it still. Throws where it cannot be kept. */
  async copyFrom(other: HistoryStore, hash: string): Promise<void> {
    const name = [hash, hash + PACKED_SUFFIX].find((each) => other.#names.has(each));
    if (name === undefined || this.#has(hash)) return;
    await this.#make();
    const { size } = await stat(other.#contentAt(name));
    this.#assertRoom(size);
    try {
      // Contents are never changed.
      await link(other.#contentAt(name), this.#contentAt(name));
    } catch (error) {
      // The file system may have no links, or as many as it can.
      if (errnoOf(error) === "ENOENT") throw error;
      await copyFile(other.#contentAt(name), this.#contentAt(name));
    }
    this.#names.add(name);
    this.#bytes += size;
  }

  /** A content that was kept. Throws where it is gone or damaged. */
  async get(hash: string): Promise<Uint8Array> {
    const isPacked = this.#names.has(hash + PACKED_SUFFIX);
    const stored = await readFile(this.#contentAt(isPacked ? hash + PACKED_SUFFIX : hash));
    const bytes = isPacked ? await unpack(stored) : stored;
    if (computeHash(bytes) !== hash) throw new Error("what was kept of it is damaged");
    return bytes;
  }

  /** Adds a line. It counts from now on, also where the disk does not take it: that throws. */
  async append(line: HistoryLine): Promise<void> {
    this.#lines.push(line);
    await this.#make();
    const start = this.#isTorn ? "\n" : "";
    // Until it is written, as much of it as one likes may be there.
    this.#isTorn = true;
    await this.#writer.append(listIn(this.#folder), `${start}${JSON.stringify(line)}\n`);
    this.#isTorn = false;
  }

  #has(hash: string): boolean {
    return this.#names.has(hash) || this.#names.has(hash + PACKED_SUFFIX);
  }

  #assertRoom(bytes: number): void {
    if (this.#bytes + bytes <= MAX_STORE_BYTES) return;
    throw new Error(`the history has the ${MAX_STORE_BYTES / (1024 * 1024)} MB that it may have`);
  }

  async #make(): Promise<void> {
    if (this.#isMade) return;
    await mkdir(contentsIn(this.#folder), { recursive: true, mode: FOLDER_MODE });
    this.#isMade = true;
  }

  /** A name is only ever that of a whole content. */
  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${randomBytes(TEMP_NAME_BYTES).toString("hex")}.tmp`;
    try {
      await this.#writer.write(temporary, bytes);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  #contentAt(name: string): string {
    return join(contentsIn(this.#folder), name);
  }
}

interface Found {
  lines: HistoryLine[];
  names: Set<string>;
  bytes: number;
  isTorn: boolean;
  isMade: boolean;
}

async function find(folder: string): Promise<Found> {
  let names: string[];
  try {
    names = await readdir(contentsIn(folder));
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { lines: [], names: new Set(), bytes: 0, isTorn: false, isMade: false };
  }
  const kept = names.filter((name) => !name.endsWith(".tmp"));
  const sizes = await Promise.all(
    kept.map(async (name) => (await stat(join(contentsIn(folder), name))).size),
  );
  const text = await readFile(listIn(folder), "utf8").catch((error: unknown) => {
    if (isMissing(error)) return "";
    throw error;
  });
  return {
    lines: text.split("\n").flatMap((line) => parseLine(line) ?? []),
    names: new Set(kept),
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    isTorn: text !== "" && !text.endsWith("\n"),
    isMade: true,
  };
}

export function computeHash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whether a system error says that nothing is there. */
export function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "");
}

function contentsIn(folder: string): string {
  return join(folder, "contents");
}

function listIn(folder: string): string {
  return join(folder, "changes.jsonl");
}
