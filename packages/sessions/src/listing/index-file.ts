import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import { errnoOf } from "@gyre/ai";
import { FILE_MODE, FOLDER_MODE } from "../file/files.ts";
import type { WrittenPlace } from "../file/written-names.ts";
import { LF } from "../format/line.ts";
import type { IndexLine } from "./row.ts";

/** Up to where the names of written files are in an index. */
type Written = WrittenPlace | undefined;

/** Files of another version are not read: they are made again. */
const VERSION = 3;
const HEX = 16;
const DRAFT_BYTES = 8;
const DRAFT_SUFFIX = ".new";
/** A draft that is older was left by a process that was killed. */
const OLD_DRAFT_MS = 600_000;

/** Reads what `writeIndex` has written. Nothing where the file is absent, damaged or of another version. */
export async function readIndex(path: string): Promise<{ lines: IndexLine[]; written: Written }> {
  const none = { lines: [], written: undefined };
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    // It can be made again: whatever is in the way of this one is no reason to list nothing.
    if (errnoOf(error) !== undefined) return none;
    throw error;
  }
  const end = bytes.indexOf(LF);
  if (bytes.toString("latin1", 0, end) !== formatHead(bytes.subarray(end + 1))) return none;
  const [first, ...lines] = splitLines(bytes, end + 1);
  return { lines, written: first && parsePlace(bytes.toString("latin1", first.start, first.end)) };
}

/** All lines from a place on. No text is made of them: they are many. */
function splitLines(bytes: Buffer, from: number): IndexLine[] {
  const lines: IndexLine[] = [];
  for (let start = from; start <= bytes.length;) {
    const lf = bytes.indexOf(LF, start);
    const end = lf < 0 ? bytes.length : lf;
    lines.push({ bytes, start, end });
    start = end + 1;
  }
  return lines;
}

/**
 * Writes the index of a folder, whole or not at all; of several processes the last one counts. A
 * disk that is full or cannot be written to is no error: the next process reads the files again.
 */
export async function writeIndex(
  path: string,
  lines: readonly string[],
  written: Written,
): Promise<void> {
  const body = Buffer.from([formatPlace(written), ...lines].join("\n"));
  const draft = `${path}.${randomBytes(DRAFT_BYTES).toString("hex")}${DRAFT_SUFFIX}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
    await removeOldDrafts(dirname(path));
    try {
      const whole = Buffer.concat([Buffer.from(`${formatHead(body)}\n`), body]);
      await writeFile(draft, whole, { mode: FILE_MODE });
      await rename(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

async function removeOldDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(DRAFT_SUFFIX)) continue;
    const path = join(folder, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > OLD_DRAFT_MS) await rm(path, { force: true });
  }
}

function formatHead(body: Buffer): string {
  return `gyre session index ${VERSION} ${crc32(body).toString(HEX)}`;
}

function formatPlace(place: WrittenPlace | undefined): string {
  return place ? `${place.ino} ${place.end}` : "";
}

function parsePlace(text: string): WrittenPlace | undefined {
  const [ino, end] = text.split(" ").map(Number);
  return ino !== undefined && end !== undefined ? { ino, end } : undefined;
}
