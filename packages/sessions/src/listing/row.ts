import { join } from "node:path";
import { formatTimeKey, searchText } from "../format/page.ts";
import { parseFileName, SESSION_SUFFIX } from "../format/summary.ts";
import type { SearchedTitles } from "../format/title-search.ts";
import type { SessionFileSummary } from "../format/types.ts";

/** The state of a file when it was read. */
export interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  /** A later change has other times: files that were just written are read again. */
  readonly isSure: boolean;
  /** What was searched for titles, of a long file. */
  readonly titles?: SearchedTitles | undefined;
}

/** What is known of one file of a folder, as a line of the index has it. */
interface IndexedFile extends Omit<SessionFileSummary, "bytes" | "id" | "path"> {
  name: string;
  size: number;
  mtimeMs: number;
  ctimeMs: number;
  titles?: SearchedTitles;
}

interface Known {
  summary: SessionFileSummary;
  state: FileState;
}

/** The folder that a row is of. */
export interface RowFolder {
  readonly name: string;
  readonly path: string;
  /** Compares these with their files. */
  recheck(names: readonly string[]): Promise<void>;
}

/** A line of the index, as a part of its bytes. */
export interface IndexLine {
  bytes: Buffer;
  start: number;
  end: number;
}

/** The fields that rows are sorted by stand first in a line: the rest is parsed when it is asked for. */
const LINE_START = '{"name":"';
const TIME_START = '","updatedAt":';
const QUOTE = 0x22;
const COMMA = 0x2c;
const PLAIN_NAME = /^[\w.-]+$/;

/** What is known of a session file. */
export class Row {
  readonly folder: RowFolder;
  readonly name: string;
  readonly updatedAt: number;
  readonly #from: Known | IndexLine;
  #known: Known | undefined;
  #text: string | undefined;

  constructor(folder: RowFolder, name: string, updatedAt: number, from: Known | IndexLine) {
    this.folder = folder;
    this.name = name;
    this.updatedAt = updatedAt;
    this.#from = from;
  }

  /** A row of a line that `formatLine` has made. */
  static parse(folder: RowFolder, line: IndexLine): Row {
    const { bytes, start, end } = line;
    const nameAt = start + LINE_START.length;
    const nameEnd = bytes.indexOf(QUOTE, nameAt);
    const name = bytes.toString("latin1", nameAt, nameEnd);
    if (PLAIN_NAME.test(name)) {
      const timeAt = nameEnd + TIME_START.length;
      const time = Number(bytes.toString("latin1", timeAt, bytes.indexOf(COMMA, timeAt)));
      return new Row(folder, name, time, line);
    }
    const fields = parseLine(bytes.toString("utf8", start, end));
    return new Row(folder, fields.name, fields.updatedAt, line);
  }

  /** Descending: the newest first. */
  get createdKey(): string {
    return `${this.name.slice(0, -SESSION_SUFFIX.length)}/${this.folder.name}`;
  }

  get updatedKey(): string {
    return `${formatTimeKey(this.updatedAt)}/${this.createdKey}`;
  }

  get summary(): SessionFileSummary {
    return this.#read().summary;
  }

  get state(): FileState {
    return this.#read().state;
  }

  /** Whether a file that is as it was then needs no look. */
  get isSure(): boolean {
    return "bytes" in this.#from || this.#from.state.isSure;
  }

  /** For words of a query. */
  get text(): string {
    this.#text ??= searchText(this.summary);
    return this.#text;
  }

  /** The line of the index. */
  formatLine(): string {
    const from = this.#from;
    if ("bytes" in from) return from.bytes.toString("utf8", from.start, from.end);
    const { id: _id, path: _path, bytes: _bytes, updatedAt, ...facts } = from.summary;
    const { size, mtimeMs, ctimeMs, titles } = from.state;
    const fields = { name: this.name, updatedAt, size, mtimeMs, ctimeMs, titles, ...facts };
    return JSON.stringify(fields);
  }

  #read(): Known {
    this.#known ??= "bytes" in this.#from ? this.#parse(this.#from) : this.#from;
    return this.#known;
  }

  #parse({ bytes, start, end }: IndexLine): Known {
    const fields = parseLine(bytes.toString("utf8", start, end));
    const { name, size, mtimeMs, ctimeMs, titles, ...facts } = fields;
    const path = join(this.folder.path, name);
    const summary = { id: parseFileName(path), path, ...facts, bytes: size };
    return { summary, state: { size, mtimeMs, ctimeMs, titles, isSure: true } };
  }
}

/** The order of lists by creation: as that of `createdKey`, descending. */
export function compareCreated(a: Row, b: Row): number {
  return a.createdKey < b.createdKey ? 1 : -1;
}

/** The order of lists by the last write: as that of `updatedKey`, descending. */
export function compareUpdated(a: Row, b: Row): number {
  const [one, other] = [Math.max(0, Math.trunc(a.updatedAt)), Math.max(0, Math.trunc(b.updatedAt))];
  return other - one || compareCreated(a, b);
}

/** The checksum of the index says that this is what was written. */
function parseLine(line: string): IndexedFile {
  return JSON.parse(line) as IndexedFile;
}
