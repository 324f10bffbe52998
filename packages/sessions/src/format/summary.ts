import type { Stats } from "node:fs";
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { isRecord, PartialJsonParser } from "@gyre/ai";
import { type Fields, parseFields } from "./body.ts";
import { LF } from "./line.ts";
import { formatPrompt } from "./prompt.ts";
import { readBytes, readTitle, type SearchedTitles, searchTitles } from "./title-search.ts";
import type { SessionFileSummary } from "./types.ts";

/** So much is read of each end of a file, however long it is; what stands between is searched for a title once. */
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
  return (await summarizeFile(path)).summary;
}

/** A summary with what a later look at the same file begins with. */
export interface FileLook {
  summary: SessionFileSummary;
  /** The state of the file that was read. */
  stats: Stats;
  /** Where the last title did not stand in the last lines. */
  titles?: SearchedTitles;
}

/** The same, with the state of the file. `known`: of an earlier look at it, if it had any. */
export async function summarizeFile(path: string, known?: SearchedTitles): Promise<FileLook> {
  const file = await open(path, "r");
  try {
    const stats = await file.stat();
    const { size, mtimeMs } = stats;
    const first = await readBytes(file, 0, Math.min(size, SUMMARY_BYTES));
    const isLong = size > SUMMARY_BYTES;
    const last = isLong ? await readBytes(file, size - SUMMARY_BYTES, size) : first;
    const head = first.toString();
    const tail = isLong ? last.toString() : head;
    const titleAtEnd = titleIn(tail);
    const titles =
      isLong && titleAtEnd === undefined
        ? await searchTitles(file, size - SUMMARY_BYTES + last.lastIndexOf(LF) + 1, known)
        : known;
    const { cwd, createdAt, headless } = fields(lineAt(head, 0));
    const modified = Math.round(mtimeMs);
    const title = titleAtEnd ?? titles?.title ?? titleIn(head);
    const firstPrompt = firstPromptIn(head);
    const summary: SessionFileSummary = {
      id: parseFileName(path),
      path,
      cwd: typeof cwd === "string" ? cwd : "",
      createdAt: typeof createdAt === "number" ? createdAt : (timeIn(path) ?? modified),
      updatedAt: lastTimeIn(tail) ?? modified,
      bytes: size,
      ...(title !== undefined && { title }),
      ...(firstPrompt !== undefined && { firstPrompt }),
      ...(isArchivedBy(tail) && { archived: true }),
      ...(headless === true && { headless }),
    };
    return { summary, stats, ...(titles && isLong && { titles }) };
  } finally {
    await file.close();
  }
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
    const title = readTitle(fields(lineAt(text, at)));
    if (title !== undefined) return title;
    const start = lineStart(text, at);
    at = start === 0 ? -1 : text.lastIndexOf(OF_TITLE, start - 1);
  }
  return undefined;
}

const OF_ARCHIVE = '"type":"archive"';
const OF_MESSAGE = '"type":"message"';

/** Whether the last lines put the session away, and say nothing after that. */
function isArchivedBy(text: string): boolean {
  for (let at = text.lastIndexOf(OF_ARCHIVE); at >= 0;) {
    const { archived, type } = fields(lineAt(text, at));
    if (type === "archive") return archived === true && !hasMessage(text, at);
    const start = lineStart(text, at);
    at = start === 0 ? -1 : text.lastIndexOf(OF_ARCHIVE, start - 1);
  }
  return false;
}

function hasMessage(text: string, from: number): boolean {
  for (let at = text.indexOf(OF_MESSAGE, from); at >= 0;) {
    if (fields(lineAt(text, at))["type"] === "message") return true;
    const end = text.indexOf("\n", at);
    at = end < 0 ? -1 : text.indexOf(OF_MESSAGE, end);
  }
  return false;
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
