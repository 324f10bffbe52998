import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { parseFields } from "./body.ts";
import { LF } from "./line.ts";

/** So much of a long file is searched at once. */
const CHUNK_BYTES = 256 * 1024;
/** A longer line in the middle of a file counts as something else than a title. */
const MAX_TITLE_LINE_BYTES = 16 * 1024;
/** So much before the end of what was searched shows whether a file still begins with it. */
const PROOF_BYTES = 64;
const OF_TITLE = Buffer.from('"type":"title"');

/** What is known of the titles in the beginning of a file. Later looks search only what follows. */
export interface SearchedTitles {
  /** Where the last whole line that was searched ends. */
  end: number;
  /** The checksum of the bytes before `end`: a file that was written again has others there. */
  proof: number;
  /** The newest title before `end`, if any. */
  title?: string;
}

/**
 * Finds the newest title in the lines of a file that end before `end`, from its end on. With what an
 * earlier search found, it reads only what was appended since, however long the file is.
 */
export async function searchTitles(
  file: FileHandle,
  end: number,
  known: SearchedTitles | undefined,
): Promise<SearchedTitles> {
  const valid = known && known.end <= end && (await readProof(file, known.end)) === known.proof;
  const start = valid ? known.end : 0;
  const title = (await searchBackward(file, start, end)) ?? (valid ? known.title : undefined);
  const proof = await readProof(file, end);
  return { end, proof, ...(title !== undefined && { title }) };
}

async function searchBackward(
  file: FileHandle,
  start: number,
  end: number,
): Promise<string | undefined> {
  for (let to = end; to > start;) {
    const from = Math.max(start, to - CHUNK_BYTES);
    // A line that begins in this part may end in the next one, which has been searched.
    const bytes = await readBytes(file, from, Math.min(end, to + MAX_TITLE_LINE_BYTES));
    for (let at = bytes.lastIndexOf(OF_TITLE); at >= 0;) {
      const title = titleAround(bytes, at, from === start);
      if (title !== undefined) return title;
      at = at === 0 ? -1 : bytes.lastIndexOf(OF_TITLE, at - 1);
    }
    to = from;
  }
  return undefined;
}

/** The title of the line that a place is in, if all of that line is here. */
function titleAround(bytes: Buffer, at: number, isStart: boolean): string | undefined {
  const near = Math.max(0, at - MAX_TITLE_LINE_BYTES);
  const before = bytes.subarray(near, at).lastIndexOf(LF);
  if (before < 0 && !(isStart && near === 0)) return undefined;
  const after = bytes.subarray(at, at + MAX_TITLE_LINE_BYTES).indexOf(LF);
  if (after < 0) return undefined;
  const fields = parseFields(bytes.subarray(near + before + 1, at + after));
  return fields && readTitle(fields);
}

/** What a line says the session is called, if it is about that. */
export function readTitle({ title, type }: Readonly<Record<string, unknown>>): string | undefined {
  if (type !== "title" || typeof title !== "string") return undefined;
  return title.trim() || undefined;
}

async function readProof(file: FileHandle, end: number): Promise<number> {
  return crc32(await readBytes(file, Math.max(0, end - PROOF_BYTES), end));
}

/** A part of a file; less where the file has become shorter. */
export async function readBytes(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(end - start);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, start + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}
