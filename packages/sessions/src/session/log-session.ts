import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { type Clock, errorMessage, type FileStore, type ToolResultMessage } from "@gyre/ai";
import {
  encodeBody,
  isBeside,
  MAX_ENTRY_ID,
  isReadable,
  parseEntry,
  readReference,
  resultMessage,
} from "../format/body.ts";
import type { Entry, EntryBody, EntryType, SessionHeader } from "../format/entry.ts";
import type { EntryRow } from "../format/row.ts";
import { isSame } from "../format/same.ts";
import type { ContextOptions, EntryInfo, Session, SessionContext } from "../format/types.ts";
import { buildContext } from "./context.ts";
import { copyBranch } from "./copy-branch.ts";
import type { SessionLog } from "./log.ts";
import type { ResultEntry } from "./open-calls.ts";
import { hasLargeFiles, loadContext, storeBody } from "./stored-files.ts";

/** Entries that wait are written together, up to this much. */
const MAX_GROUP_CHARS = 16 * 1024 * 1024;

/** An entry that waits to be written. */
interface Waiting {
  body: EntryBody;
  /** As JSON; of a tool's result, and of what has large files, only when it is written. */
  data: string | undefined;
  /** Its large files are being stored: they have to be there before it. */
  storing?: Promise<EntryBody> | undefined;
  timestamp: number;
  /** For a leaf; else the entry follows the one before it. */
  parentId?: number | null;
  resolve(entry: Entry): void;
  reject(error: unknown): void;
}

/** One that is being written. */
interface Encoded {
  waiting: Waiting;
  row: EntryRow;
  entry: Entry;
}

/** What an open session is made from. */
export interface LogSessionParts {
  header: SessionHeader;
  log: SessionLog;
  readOnly: boolean;
  clock: Clock;
  /** Where the contents of large files go. Absent: into the entries. */
  files?: FileStore | undefined;
}

/** The rules of an open session, the same for every store: numbers, branches, context. */
export class LogSession implements Session {
  readonly header: SessionHeader;
  readonly readOnly: boolean;
  readonly files?: FileStore;
  protected readonly log: SessionLog;
  protected readonly clock: Clock;
  #leaf: number | null;
  #infos: EntryInfo[] | undefined;
  /** What calls of this branch gave whose messages are not written yet. */
  readonly #results = new Map<string, ResultEntry>();
  #queue: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor({ header, log, readOnly, clock, files }: LogSessionParts) {
    this.header = header;
    if (files) this.files = files;
    this.log = log;
    this.readOnly = readOnly;
    this.clock = clock;
    this.#leaf = log.index.leafAt(log.index.length - 1) || null;
  }

  get leaf(): number | null {
    return this.#leaf;
  }

  get entries(): readonly EntryInfo[] {
    const { index } = this.log;
    const infos = (this.#infos ??= []);
    while (infos.length < index.length) infos.push(index.infoAt(infos.length));
    return infos;
  }

  findIds(...types: readonly EntryType[]): number[] {
    return this.log.index.findIds(types);
  }

  append(body: EntryBody): Promise<Entry> {
    return this.#enqueue(body);
  }

  async read(id: number): Promise<Entry> {
    const { index, reader } = this.log;
    const at = this.#find(id);
    const fields = await reader.one(at);
    const reference = index.find(readReference(fields) ?? 0);
    const recorded = reference < 0 ? undefined : await reader.one(reference);
    const entry = parseEntry(fields, index.infoAt(at), recorded);
    if (entry) return entry;
    throw this.log.error("unreadable", `has no whole entry ${id}: what it is made of is missing`);
  }

  findBranch(id: number | null = this.#leaf): number[] {
    const { index } = this.log;
    return index.pathTo(this.#find(id)).map((at) => index.idAt(at));
  }

  async branch(id: number | null): Promise<void> {
    this.#find(id);
    await this.#enqueue({ type: "leaf" }, id);
  }

  async context(
    id: number | null = this.#leaf,
    { files }: ContextOptions = {},
  ): Promise<SessionContext> {
    const { index, reader } = this.log;
    const isLeaf = id === this.#leaf;
    const { context, recorded } = await buildContext(
      index,
      reader,
      this.#find(id),
      isLeaf,
      (at, message) => this.log.reportLost(at, message),
    );
    if (isLeaf) for (const entry of recorded.values()) noteResult(this.#results, entry);
    return this.files && files !== "stored" ? loadContext(context, recorded, this.files) : context;
  }

  /** Gives the entries of a branch to `take`, numbered from 1: what a fork begins with. */
  async copyBranch(
    take: (row: EntryRow) => void | Promise<void>,
    id: number | null = this.#leaf,
  ): Promise<void> {
    await copyBranch(this.log.index, this.log.reader, this.#find(id), take);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.log.close();
  }

  /** Throws where there is no such entry. */
  protected assertHas(id: number | null): void {
    this.#find(id);
  }

  /** The place of an entry; -1 for none at all. Throws where there is no such entry. */
  #find(id: number | null): number {
    if (id === null) return -1;
    const at = this.log.index.find(id);
    if (at < 0) throw this.log.error("not_found", `has no entry ${id}`);
    return at;
  }

  #enqueue(body: EntryBody, parentId?: number | null): Promise<Entry> {
    return new Promise((resolve, reject) => {
      if (this.readOnly) throw this.log.error("write_failed", "was opened to be read only");
      if (this.#closing) throw this.log.error("write_failed", "is closed");
      if (!isReadable(body)) {
        throw this.log.error("write_failed", `takes no such entry of type "${body.type}"`);
      }
      const timestamp = this.clock.now();
      const isLarge = this.files !== undefined && hasLargeFiles(body);
      const storing = isLarge && storeBody(this.#copy(body), this.files);
      const data = storing || isResultMessage(body) ? undefined : this.#encode(body);
      const waiting: Waiting = { body, data, timestamp, resolve, reject };
      if (storing) waiting.storing = storing;
      // Reported when it is the turn of the entry.
      if (storing) storing.catch(() => {});
      if (parentId !== undefined) waiting.parentId = parentId;
      this.#queue.push(waiting);
      this.#writing ??= this.#writeQueue();
    });
  }

  /** Never rejects: each entry's own promise does. */
  async #writeQueue(): Promise<void> {
    // What is appended in the same go is written together.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      try {
        await this.log.prepareWrite();
        await this.#awaitFiles();
      } catch (error) {
        for (const waiting of this.#queue.splice(0)) waiting.reject(error);
        continue;
      }
      await this.#commit(this.#takeGroup());
    }
    this.#writing = undefined;
  }

  /** Files of what waits are stored when it settles; what has files that cannot be stored is rejected. */
  async #awaitFiles(): Promise<void> {
    for (;;) {
      const waiting = this.#queue.find(({ storing }) => storing !== undefined);
      if (!waiting) return;
      try {
        waiting.body = (await waiting.storing) ?? waiting.body;
      } catch (cause) {
        this.#queue = this.#queue.filter((each) => each !== waiting);
        const why = `has no room for a file (${errorMessage(cause)})`;
        waiting.reject(this.log.error("write_failed", why, cause));
      }
      waiting.storing = undefined;
    }
  }

  /** Encodes what waits, as much as is written at once; numbers are given here. */
  #takeGroup(): Encoded[] {
    const group: Encoded[] = [];
    const results = new Map(this.#results);
    let chars = 0;
    let id = this.log.index.lastId;
    let leaf = this.#leaf;
    while (this.#queue.length > 0 && chars < MAX_GROUP_CHARS) {
      const waiting = this.#queue.shift();
      if (!waiting) break;
      try {
        const encoded = this.#encodeNext(waiting, id + 1, leaf, results);
        id++;
        chars += encoded.row.data.length;
        leaf = leafAfter(encoded.entry, leaf);
        noteResult(results, encoded.entry);
        group.push(encoded);
      } catch (error) {
        waiting.reject(error);
      }
    }
    return group;
  }

  #encodeNext(
    waiting: Waiting,
    id: number,
    leaf: number | null,
    results: ReadonlyMap<string, ResultEntry>,
  ): Encoded {
    const { body, parentId = leaf } = waiting;
    let { data, timestamp } = waiting;
    if (data === undefined && isResultMessage(body)) {
      const recorded = results.get(body.message.toolCallId);
      if (recorded && isRecordedMessage(recorded, body.message)) {
        data = JSON.stringify({ resultOf: recorded.id });
        ({ timestamp } = body.message);
      }
    }
    data ??= this.#encode(body);
    if (id > MAX_ENTRY_ID) throw this.log.error("write_failed", "has no room for more entries");
    const row = { id, parentId, type: body.type, timestamp, data };
    this.log.assertFits(row);
    return { waiting, row, entry: { ...body, id, parentId, timestamp } };
  }

  /** As JSON has it: the caller may change what it gave. */
  #copy(body: EntryBody): EntryBody {
    return { ...JSON.parse(this.#encode(body)), type: body.type };
  }

  #encode(body: EntryBody): string {
    try {
      return encodeBody(body);
    } catch (cause) {
      const why = `takes only what JSON can say (${errorMessage(cause)})`;
      throw this.log.error("write_failed", why, cause);
    }
  }

  async #commit(group: readonly Encoded[]): Promise<void> {
    if (group.length === 0) return;
    try {
      await this.log.write(group.map(({ row }) => row));
    } catch (error) {
      for (const { waiting } of group) waiting.reject(error);
      return;
    }
    for (const { entry } of group) {
      this.#leaf = leafAfter(entry, this.#leaf);
      noteResult(this.#results, entry);
    }
    for (const { waiting, entry } of group) waiting.resolve(entry);
  }
}

function leafAfter(entry: Entry, leaf: number | null): number | null {
  if (entry.type === "leaf") return entry.parentId;
  return isBeside(entry.type) ? leaf : entry.id;
}

/** Keeps in mind which results have no message yet, on this branch. */
function noteResult(results: Map<string, ResultEntry>, entry: Entry): void {
  if (entry.type === "result") results.set(entry.toolCallId, entry);
  else if (entry.type === "leaf") results.clear();
  else if (isResultMessage(entry)) results.delete(entry.message.toolCallId);
}

function isResultMessage<B extends EntryBody>(
  body: B,
): body is B & { type: "message"; message: ToolResultMessage } {
  return body.type === "message" && isToolResult(body.message);
}

function isToolResult(message: AgentMessage): message is ToolResultMessage {
  return isLlmMessage(message) && message.role === "toolResult";
}

/** Whether a message says what was recorded, and nothing else. */
function isRecordedMessage(entry: ResultEntry, message: ToolResultMessage): boolean {
  return isSame(message, resultMessage(entry, message.timestamp));
}
