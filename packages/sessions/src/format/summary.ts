import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import { isRecord, PartialJsonParser } from "@gyre/ai";
import { type Fields, parseFields } from "./body.ts";
import { formatPrompt } from "./prompt.ts";
import type { SessionFileSummary } from "./types.ts";

/** So much is read of each end of a file, however long it is. */
export const SUMMARY_BYTES: number = 64 * 1024;
export const SESSION_SUFFIX = ".jsonl";

/** The id in the name of a session file: what follows the last underscore. */
export function parseFileName(path: string): string {
  const name = basename(path, SESSION_SUFFIX);
  return name.slice(name.lastIndexOf("_") + 1);
}

/** `2030-01-31T12-30-59-123Z_<id>.jsonl`: sorts by time, and every file system takes it. */
export function formatFileName(createdAt: number, id: string): string {
  const time = new Date(createdAt);
  // What is no time comes from a damaged header.
  const stamp = (Number.isNaN(time.getTime()) ? new Date(0) : time).toISOString();
  return `${stamp.replace(/[:.]/g, "-")}_${id}${SESSION_SUFFIX}`;
}

/**
 * Summarizes a file by its first and last lines. Of a damaged file, the id and the time come from its
 * name, the rest from the file system. Rejects where there is no file to read.
 */
export async function summarize(path: string): Promise<SessionFileSummary> {
  const file = await open(path, "r");
  try {
    const { size, mtimeMs } = await file.stat();
    const head = await readText(file, 0, Math.min(size, SUMMARY_BYTES));
    const tail = size <= SUMMARY_BYTES ? head : await readText(file, size - SUMMARY_BYTES, size);
    const { cwd, createdAt } = fields(lineAt(head, 0));
    const modified = Math.round(mtimeMs);
    const title = titleIn(tail) ?? titleIn(head);
    const firstPrompt = firstPromptIn(head);
    return {
      id: parseFileName(path),
      path,
      cwd: typeof cwd === "string" ? cwd : "",
      createdAt: typeof createdAt === "number" ? createdAt : (timeIn(path) ?? modified),
      updatedAt: lastTimeIn(tail) ?? modified,
      bytes: size,
      ...(title !== undefined && { title }),
      ...(firstPrompt !== undefined && { firstPrompt }),
    };
  } finally {
    await file.close();
  }
}

async function readText(file: FileHandle, start: number, end: number): Promise<string> {
  const buffer = Buffer.allocUnsafe(end - start);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, start + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.toString("utf8", 0, length);
}

/** The line that a place in a text is in, as far as it is there. */
function lineAt(text: string, place: number): string {
  const end = text.indexOf("\n", place);
  return text.slice(lineStart(text, place), end < 0 ? undefined : end);
}

function lineStart(text: string, place: number): number {
  return place === 0 ? 0 : text.lastIndexOf("\n", place - 1) + 1;
}

/** What can be read of a line, also of one whose end is missing. */
function fields(line: string): Fields {
  const whole = parseFields(line);
  if (whole) return whole;
  const parser = new PartialJsonParser();
  parser.feed(line);
  const { value } = parser;
  return isRecord(value) ? value : {};
}

const BY_USER = '"role":"user"';

function firstPromptIn(text: string): string | undefined {
  for (let at = text.indexOf(BY_USER); at >= 0;) {
    const { type, message } = fields(lineAt(text, at));
    if (type === "message" && isRecord(message) && message["role"] === "user") {
      const prompt = formatPrompt(message["content"]);
      if (prompt !== "") return prompt;
    }
    const end = text.indexOf("\n", at);
    at = end < 0 ? -1 : text.indexOf(BY_USER, end);
  }
  return undefined;
}

const OF_TITLE = '"type":"title"';

function titleIn(text: string): string | undefined {
  for (let at = text.lastIndexOf(OF_TITLE); at >= 0;) {
    const { title, type } = fields(lineAt(text, at));
    if (type === "title" && typeof title === "string" && title.trim() !== "") return title.trim();
    const start = lineStart(text, at);
    at = start === 0 ? -1 : text.lastIndexOf(OF_TITLE, start - 1);
  }
  return undefined;
}

/** Where the time of an entry, or of the header, stands: before anything that it says. */
const ENTRY_TIME = /^\{[^{}[\]]{0,160}?"(?:timestamp|createdAt)":(\d{1,15})[,}]/;

function lastTimeIn(text: string): number | undefined {
  const stop = text.lastIndexOf("\n");
  if (stop < 0) return undefined;
  const time = ENTRY_TIME.exec(lineAt(text, Math.max(0, stop - 1)))?.[1];
  return time === undefined ? undefined : Number(time);
}

const FILE_TIME = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z_/;

/** The time in the name of a session file. */
export function timeIn(path: string): number | undefined {
  const found = FILE_TIME.exec(basename(path));
  if (!found) return undefined;
  const [, day = "", hour = "", minute = "", second = "", ms = ""] = found;
  const time = Date.parse(`${day}T${hour}:${minute}:${second}.${ms}Z`);
  return Number.isNaN(time) ? undefined : time;
}
