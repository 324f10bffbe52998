import type { FileHandle } from "node:fs/promises";
import type { SessionHeader } from "../format/entry.ts";
import { EntryIndex } from "../session/entry-index.ts";
import {
  ENTRY_TYPES,
  type Fields,
  isBeside,
  isEntryType,
  MAX_ENTRY_ID,
  parseFields,
  readBody,
  readReference,
} from "../format/body.ts";
import { checkLine, LF, MAX_LINE_BYTES, parseHeader, withoutCr } from "../format/line.ts";
import type { SessionProblem } from "../format/types.ts";

const CHUNK_BYTES = 4 * 1024 * 1024;
const MIN_CHUNK_BYTES = 4 * 1024;
/** More than this are counted in the last one. */
export const MAX_PROBLEMS = 1_000;
/** How often a checksum is tried on a damaged line in search of whole ones in it. */
const MAX_SALVAGE_TRIES = 256;

const COMMA = 0x2c;
const QUOTE = 0x22;
const ZERO = 0x30;
const NINE = 0x39;
const TEN = 10;
const HEADER_START = Buffer.from('{"type":"session"');
const LINE_START = Buffer.from('{"id":');
const PARENT = Buffer.from(',"parentId":');
const NULL = Buffer.from("null");
const TYPE = Buffer.from(',"type":"');
const EPOCH = Buffer.from('","w":');
const CRC = Buffer.from(',"crc":"');
/** From the start of `CRC` to the end of the line. */
const CRC_TAIL_BYTES = 18;
const TYPE_BYTES: readonly Buffer[] = ENTRY_TYPES.map((type) => Buffer.from(type));
const CUSTOM = ENTRY_TYPES.indexOf("custom");
const LEAF = ENTRY_TYPES.indexOf("leaf");
const IS_BESIDE: readonly boolean[] = ENTRY_TYPES.map(isBeside);

/** The result of one pass over a file. */
export interface Scanned {
  /** Absent where the first line is not a header, or is damaged. */
  header: SessionHeader | undefined;
  index: EntryIndex;
  /** Whether an entry has a checksum that is right: only sessions have those. */
  hasSealed: boolean;
  /** 0: none. */
  leaf: number;
  /** The highest epoch of a writer that was seen. */
  epoch: number;
  problems: SessionProblem[];
  lines: number;
  /** Where the file ends. */
  size: number;
  /** What stands behind the last LF: from where on, and up to where it is whole. */
  tail: { offset: number; end: number } | undefined;
}

/**
 * Looks at a file from its beginning to its end, once, and notes where each entry is.
 * Bodies are checked by their checksum alone; only a line without one is parsed.
 */
export async function scan(handle: FileHandle): Promise<Scanned> {
  const scanner = new Scanner();
  /** The beginning of a line whose end has not come, in pieces that are joined when it has. */
  let held: Buffer[] = [];
  let heldBytes = 0;
  /** Where that line begins. */
  let offset = 0;
  const take = (bytes: Buffer, start: number, end: number): void => {
    const length = heldBytes + end - start;
    if (length > MAX_LINE_BYTES) scanner.tooLong(offset, length);
    else if (heldBytes === 0) scanner.line(bytes, start, end, offset);
    else scanner.line(Buffer.concat([...held, bytes.subarray(start, end)]), 0, length, offset);
    held = [];
    heldBytes = 0;
    offset += length + 1;
  };
  for await (const chunk of readChunks(handle)) {
    let start = 0;
    for (let lf = chunk.indexOf(LF); lf >= 0; lf = chunk.indexOf(LF, start)) {
      take(chunk, start, lf);
      start = lf + 1;
    }
    // The chunk is reused, so the piece is copied; of a line that is too long nothing is kept.
    heldBytes += chunk.length - start;
    if (heldBytes > MAX_LINE_BYTES) held = [];
    else held.push(Buffer.from(chunk.subarray(start)));
  }
  const size = offset + heldBytes;
  let tail: Scanned["tail"];
  if (heldBytes > MAX_LINE_BYTES) tail = scanner.longTail(offset, size);
  else if (heldBytes > 0) tail = scanner.tail(Buffer.concat(held), offset);
  const { index, leaf } = scanner.finish();
  const { header, hasSealed, epoch, problems, lines } = scanner;
  return { header, index, hasSealed, leaf, epoch, problems, lines, size, tail };
}

/** A file in pieces, each valid until the next is asked for, which is being read meanwhile. */
async function* readChunks(handle: FileHandle): AsyncGenerator<Buffer, void> {
  const { size } = await handle.stat();
  const bytes = Math.min(CHUNK_BYTES, Math.max(MIN_CHUNK_BYTES, size + 1));
  let buffer = Buffer.allocUnsafe(bytes);
  let other = Buffer.allocUnsafe(bytes);
  let offset = 0;
  let reading = handle.read(buffer, 0, bytes, offset);
  for (;;) {
    const { bytesRead } = await reading;
    if (bytesRead === 0) return;
    offset += bytesRead;
    reading = handle.read(other, 0, bytes, offset);
    // Awaited in the next round; until then a failure is not an unhandled one.
    reading.catch(() => {});
    yield buffer.subarray(0, bytesRead);
    [buffer, other] = [other, buffer];
  }
}

/** An entry that is looked at again when all are known. */
interface Noted {
  id: number;
  parent: number;
  type: number;
  offset: number;
  bytes: number;
  line: number;
}

class Scanner {
  header: SessionHeader | undefined;
  hasSealed = false;
  readonly problems: SessionProblem[] = [];
  epoch = 0;
  lines = 0;
  #index = new EntryIndex();
  /** So far; for lines that do not say what they follow. */
  #leaf = 0;
  /** Entries that stand behind ones with higher ids, by id. */
  readonly #late = new Map<number, Noted>();
  /** Entries whose parent was not there before them, by id. */
  readonly #orphans = new Map<number, Noted>();
  #unreported = 0;
  // What `#readHead` found.
  #id = 0;
  #parent = 0;
  #type = 0;
  #w = 0;

  /** Takes one line, without its LF. */
  line(bytes: Buffer, start: number, lf: number, offset: number): void {
    this.lines++;
    const end = withoutCr(bytes, start, lf);
    if (end === start) return;
    if (this.#take(bytes, start, end, offset)) return;
    this.#salvage(bytes, start, end, offset);
  }

  tooLong(offset: number, bytes: number): void {
    this.lines++;
    this.#report("damaged", offset, bytes, `The line has more than ${MAX_LINE_BYTES} bytes`);
  }

  /** Takes what has no LF behind it. Answers with how much of it is whole. */
  tail(bytes: Buffer, offset: number): { offset: number; end: number } {
    this.lines++;
    const end = withoutCr(bytes, 0, bytes.length);
    if (this.#take(bytes, 0, end, offset)) return { offset, end: offset + end };
    let whole = 0;
    for (const [from, to] of findWholeLines(bytes, 0, end)) {
      if (this.#take(bytes, from, to, offset + from)) whole = to;
    }
    return this.#torn(offset, offset + whole, offset + bytes.length);
  }

  longTail(offset: number, end: number): { offset: number; end: number } {
    this.lines++;
    return this.#torn(offset, offset, end);
  }

  #torn(offset: number, whole: number, end: number): { offset: number; end: number } {
    this.#report("torn", whole, end - whole, "The last line was not written to its end");
    return { offset, end: whole };
  }

  /** Answers whether the line is whole, whether or not it counts. */
  #take(bytes: Buffer, start: number, end: number, offset: number): boolean {
    const check = checkLine(bytes, start, end);
    if (check === "wrong") return false;
    if (check === "right" && this.#readHead(bytes, start, end)) {
      this.#place(true, offset, end - start);
      return true;
    }
    const fields = parseFields(bytes.subarray(start, end));
    if (!fields) return false;
    if (!this.header && this.#index.length === 0) {
      this.header = parseHeader(fields);
      if (this.header) return true;
    }
    if (!this.#readFields(fields)) return false;
    this.#place(check === "right", offset, end - start);
    return true;
  }

  /** Reads the first fields of a line as we write them. */
  #readHead(bytes: Buffer, start: number, end: number): boolean {
    let at = start;
    const skip = (expected: Buffer): boolean => {
      if (!standsAt(bytes, at, expected)) return false;
      at += expected.length;
      return true;
    };
    const number = (): number => {
      let value = 0;
      const from = at;
      for (; at < end; at++) {
        const byte = bytes[at] ?? 0;
        if (byte < ZERO || byte > NINE) break;
        value = value * TEN + byte - ZERO;
      }
      return at > from ? value : Number.NaN;
    };
    if (!skip(LINE_START)) return false;
    this.#id = number();
    if (!skip(PARENT)) return false;
    this.#parent = skip(NULL) ? 0 : number();
    if (!skip(TYPE)) return false;
    const quote = bytes.indexOf(QUOTE, at);
    this.#type = TYPE_BYTES.findIndex(
      (type) => type.length === quote - at && standsAt(bytes, at, type),
    );
    if (this.#type < 0) return false;
    at = quote;
    if (!skip(EPOCH)) return false;
    this.#w = number();
    return bytes[at] === COMMA && isId(this.#id) && !Number.isNaN(this.#parent + this.#w);
  }

  /** The same, of a line that another program has written. */
  #readFields(fields: Fields): boolean {
    const {
      id = this.#index.lastId + 1,
      parentId = this.#leaf || null,
      type,
      w = this.epoch,
    } = fields;
    if (!isId(id) || !Number.isSafeInteger(w)) return false;
    if (parentId !== null && !isId(parentId)) return false;
    if (readReference(fields) === undefined && !readBody(fields)) return false;
    this.#id = id;
    this.#parent = parentId ?? 0;
    this.#type = isEntryType(type) ? ENTRY_TYPES.indexOf(type) : CUSTOM;
    this.#w = Number(w);
    return true;
  }

  #place(isSealed: boolean, offset: number, bytes: number): void {
    if (isSealed) this.hasSealed = true;
    const id = this.#id;
    const w = this.#w;
    if (w < this.epoch) {
      const why = `Entry ${id} is of a writer (${w}) whose lock another one (${this.epoch}) had taken over`;
      this.#report("fenced", offset, bytes, why);
      return;
    }
    if (w > this.epoch) {
      if (isSealed && id <= this.#index.lastId) this.#fenceFrom(id, w);
      this.epoch = w;
    }
    const noted = { id, parent: this.#parent, type: this.#type, offset, bytes, line: this.lines };
    if (id <= this.#index.lastId) {
      if (this.#has(id)) this.#report("damaged", offset, bytes, `The id ${id} was given before`);
      else this.#late.set(id, noted);
      return;
    }
    if (!this.#isParent(this.#parent, id)) this.#orphans.set(id, noted);
    this.#index.add(id, this.#parent, this.#type, offset, bytes, this.lines);
    if (this.#type === LEAF) this.#leaf = this.#parent;
    else if (!IS_BESIDE[this.#type]) this.#leaf = id;
  }

  #has(id: number): boolean {
    return this.#index.find(id) >= 0 || this.#late.has(id);
  }

  #isParent(parent: number, id: number): boolean {
    return parent === 0 || parent === this.#index.lastId || (parent < id && this.#has(parent));
  }

  /** A writer began where another one, whose lock it had taken over, went on writing. */
  #fenceFrom(id: number, w: number): void {
    const index = this.#index;
    const from = index.floor(id - 1) + 1;
    const report = ({ id: fenced, offset, bytes, line }: Omit<Noted, "parent" | "type">): void => {
      const why = `Entry ${fenced} is of a writer whose lock another one (${w}) had taken over`;
      this.#report("fenced", offset, bytes, why, line);
      this.#orphans.delete(fenced);
    };
    for (let at = from; at < index.length; at++) {
      const [offset, bytes, line] = [index.offsetAt(at), index.bytesAt(at), index.lineAt(at)];
      report({ id: index.idAt(at), offset, bytes, line });
    }
    index.truncate(from);
    for (const late of this.#late.values()) {
      if (late.id < id) continue;
      report(late);
      this.#late.delete(late.id);
    }
  }

  /** Puts all in order, and gives a parent to those that have lost theirs. */
  finish(): { index: EntryIndex; leaf: number } {
    if (this.#late.size > 0) this.#sortIn([...this.#late.values()]);
    const unsure = [...this.#orphans.values(), ...this.#late.values()];
    for (const noted of unsure.sort((a, b) => a.id - b.id)) this.#adopt(noted);
    const index = this.#index;
    // The newest entry has the highest id.
    return { index, leaf: index.leafAt(index.length - 1) };
  }

  #sortIn(late: Noted[]): void {
    const old = this.#index;
    const index = new EntryIndex();
    const add = ({ id, parent, type, offset, bytes, line }: Noted): void =>
      index.add(id, parent, type, offset, bytes, line);
    late.sort((a, b) => a.id - b.id);
    let next = 0;
    for (let at = 0; at < old.length; at++) {
      for (let noted = late[next]; noted && noted.id < old.idAt(at); noted = late[++next])
        add(noted);
      old.copyTo(index, at);
    }
    this.#index = index;
  }

  #adopt({ id, parent: stated, offset, bytes, line }: Noted): void {
    const index = this.#index;
    if (stated < id && (stated === 0 || index.find(stated) >= 0)) return;
    const parent = index.leafAt(index.floor(Math.min(stated, id) - 1));
    index.setParent(index.find(id), parent);
    const where = parent === 0 ? "begins a tree of its own" : `follows entry ${parent}`;
    const why = `Entry ${id} followed entry ${stated}, which is missing, and now ${where}`;
    this.#report("orphan", offset, bytes, why, line);
  }

  /** Finds whole lines in a damaged one: a LF may be what was lost. */
  #salvage(bytes: Buffer, start: number, end: number, offset: number): void {
    const lost = (from: number, to: number): void => {
      if (to <= from) return;
      const isHeader = this.lines === 1 && from === start && !this.header;
      this.#report(
        isHeader ? "header" : "damaged",
        offset + from - start,
        to - from,
        isHeader ? "The first line is not a header of a session" : "The line is damaged",
      );
    };
    let at = start;
    for (const [from, to] of findWholeLines(bytes, start, end)) {
      lost(at, from);
      if (this.#take(bytes, from, to, offset + from - start)) at = to;
      else at = from;
    }
    lost(at, end);
  }

  #report(
    kind: SessionProblem["kind"],
    offset: number,
    bytes: number,
    message: string,
    line: number = this.lines,
  ): void {
    const { problems } = this;
    if (problems.length < MAX_PROBLEMS) {
      problems.push({ kind, line, offset, bytes, message: `${message}.` });
      return;
    }
    this.#unreported++;
    const last = problems.at(-1);
    if (last) last.message = `There are ${this.#unreported + 1} more problems from here on.`;
  }
}

/** The parts of a damaged line that are whole lines, with a checksum that is right. */
function findWholeLines(bytes: Buffer, start: number, end: number): [from: number, to: number][] {
  const pieces: [number, number][] = [];
  const seen = bytes.subarray(0, end);
  let tries = 0;
  let first = nextStart(seen, start);
  for (let crc = seen.indexOf(CRC, start); crc >= 0; crc = seen.indexOf(CRC, crc + 1)) {
    const to = crc + CRC_TAIL_BYTES;
    if (to > end || first < 0) break;
    for (let at = first; at >= 0 && at < crc; at = nextStart(seen, at + 1)) {
      if (tries++ >= MAX_SALVAGE_TRIES) return pieces;
      if (checkLine(bytes, at, to) === "right") {
        pieces.push([at, to]);
        first = nextStart(seen, to);
        break;
      }
    }
  }
  return pieces;
}

/** Where the next line may begin, or -1. */
function nextStart(bytes: Buffer, from: number): number {
  const header = bytes.indexOf(HEADER_START, from);
  const entry = bytes.indexOf(LINE_START, from);
  return header < 0 || (entry >= 0 && entry < header) ? entry : header;
}

function standsAt(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

function isId(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= MAX_ENTRY_ID;
}
