import { type Clock, isRecord, PartialJsonParser, systemClock } from "@gyre/ai";
import {
  addToSummary,
  chooseSession,
  createFilter,
  createHeader,
  type EntryLogSession,
  type EntryRow,
  type ForkOptions,
  isBeside,
  listStoredHashes,
  type NewSession,
  openEntryLog,
  searchSessions,
  type OpenOptions,
  type Session,
  SESSION_VERSION,
  SessionError,
  type SessionHeader,
  type SessionListOptions,
  type SessionPage,
  type SessionPageOptions,
  type SessionSearchOptions,
  type SessionSearchPage,
  type SessionStorage,
  type SessionSummary,
  summarizeHeader,
} from "@gyre/sessions";
import { assertName } from "../contract/messages.ts";
import type {
  NewStoredSession,
  SessionFilter,
  SessionPlace,
  Store,
  StoredHeader,
  StoredSession,
} from "../contract/store.ts";
import { HeldLog } from "./held-log.ts";
import { Holder } from "./holder.ts";
import { StoreFiles } from "./store-files.ts";

const DEFAULT_LEASE_MS = 5_000;
/** Ids that are looked at for those that are near to a wrong one. */
const MAX_IDS = 1_000;
const MAX_LISTED = 1_000_000;
/** Sessions that are looked through at most for a page with some words. */
const MAX_SEARCHED = 5_000;
/** How many at first, for words that many have. */
const FIRST_SEARCHED = 500;

/** How sessions of a store are made and opened. */
export interface SessionsOptions {
  /**
   * What the sessions that are made here are bound to: runs in them are worked on by workers of this
   * pool alone, and only programs that name it open them to write. Default "": any.
   */
  pool?: string;
  /** Whose sessions are seen. Default "". */
  tenant?: string;
  /** How long others wait for a program that gives no sign of life. Default 5,000. */
  leaseMs?: number;
  clock?: Clock;
}

/**
 * The sessions of a store, for programs that write to them themselves; `createCodingAgent` takes
 * it as `session: { storage }`. One writer at a time, on all machines; a run that is started in a
 * session which is open waits until that is closed.
 */
export class StoreSessions implements SessionStorage {
  readonly #store: Store;
  readonly #pool: string;
  readonly #tenant: string;
  readonly #clock: Clock;
  readonly #holder: Holder;

  constructor(
    store: Store,
    options: SessionsOptions,
    report: (error: unknown, where: string) => void,
  ) {
    const { pool = "", tenant = "", leaseMs = DEFAULT_LEASE_MS, clock = systemClock } = options;
    for (const [name, value] of Object.entries({ pool, tenant })) assertName(`\`${name}\``, value);
    this.#store = store;
    this.#pool = pool;
    this.#tenant = tenant;
    this.#clock = clock;
    this.#holder = new Holder(store, leaseMs, report);
  }

  async create(session: NewSession): Promise<Session> {
    return this.#add(createHeader(session, this.#clock.now()), []);
  }

  async open(
    id: string,
    { readOnly = false }: Pick<OpenOptions, "readOnly"> = {},
  ): Promise<Session> {
    const found = await this.#find(id);
    if (readOnly) return this.#read(found);
    if (found.pool !== this.#pool) {
      const message = `The session ${found.id} is bound to the pool "${found.pool}", and this is ${this.#pool === "" ? "none" : `"${this.#pool}"`}: open it there, or continue in a fork of it.`;
      throw new SessionError("locked", message);
    }
    return this.#hold(found.id);
  }

  async locate(id: string): Promise<string | undefined> {
    return (await this.#readRow(id))?.id;
  }

  async find(idOrPrefix: string): Promise<SessionSummary> {
    return toSummary(await this.#find(idOrPrefix));
  }

  async list({
    limit = MAX_LISTED,
    ...options
  }: SessionListOptions & { limit?: number } = {}): Promise<SessionSummary[]> {
    const isListed = createFilter(options);
    const rows = await this.#store.sessions.list({
      ...{ ...this.#filter(options), order: "updated" },
      limit: hasWords(options) ? MAX_LISTED : limit,
    });
    return rows
      .map(toSummary)
      .filter((each) => isListed(each))
      .slice(0, limit);
  }

  async listPage(options: SessionPageOptions): Promise<SessionPage> {
    const { limit, order = "created" } = options;
    const filter = { ...this.#filter(options), order };
    const after = parsePlace(options.after ?? "");
    if (hasWords(options)) return this.#search(filter, after, options);
    const rows = await this.#store.sessions.list({
      ...{ ...filter, limit: limit + 1 },
      ...(after && { after }),
    });
    const shown = rows.slice(0, limit);
    const last = rows.length > shown.length ? shown.at(-1) : undefined;
    return { sessions: shown.map(toSummary), ...(last && { next: formatPlace(last) }) };
  }

  /** Looks through a part of the sessions: the work for a page has an end, whatever is found. */
  async #search(
    filter: Omit<SessionFilter, "limit">,
    start: SessionPlace | undefined,
    options: SessionPageOptions,
  ): Promise<SessionPage> {
    const { sessions } = this.#store;
    const isListed = createFilter(options);
    const found: StoredSession[] = [];
    let after = start;
    let isEnd = false;
    for (const limit of [FIRST_SEARCHED, MAX_SEARCHED - FIRST_SEARCHED]) {
      const rows = await sessions.list({
        ...{ ...filter, isBrief: true, limit },
        ...(after && { after }),
      });
      isEnd = rows.length < limit;
      for (const row of rows) {
        if (found.length === options.limit) {
          isEnd = false;
          break;
        }
        after = row;
        if (isListed(toSummary(row))) found.push(row);
      }
      if (isEnd || found.length === options.limit) break;
    }
    const whole = await Promise.all(found.map(({ id }) => this.#readRow(id)));
    return {
      sessions: whole.flatMap((row) => (row ? [toSummary(row)] : [])),
      ...(!isEnd && after && { next: formatPlace(after) }),
    };
  }

  #filter({ archived, cwd }: SessionListOptions): Pick<SessionFilter, "tenant" | "cwd"> {
    return {
      tenant: this.#tenant,
      ...(cwd !== undefined && { cwd }),
      ...(archived !== undefined && { isArchived: archived }),
    };
  }

  search(options: SessionSearchOptions): Promise<SessionSearchPage> {
    return searchSessions(this, options);
  }

  async fork(id: string, options: ForkOptions = {}): Promise<Session> {
    const source = await this.#read(await this.#find(id));
    const { cwd = source.header.cwd, entry = source.leaf, newId } = options;
    const from = { session: source.header.id, ...(entry !== null && { entry }) };
    const rows: EntryRow[] = [];
    await source.copyBranch((row) => void rows.push(row), entry);
    const header = { cwd, from, ...(newId !== undefined && { id: newId }) };
    const hashes = new Set(rows.flatMap(({ data }) => listStoredHashes(data)));
    return this.#add(createHeader(header, this.#clock.now()), rows, {
      from: source.header.id,
      hashes: [...hashes],
    });
  }

  async remove(id: string): Promise<void> {
    const found = await this.#find(id);
    const outcome = await this.#store.sessions.remove(found.id);
    if (outcome !== "held") return;
    const message = `The session ${found.id} is open, or a run works in it: it cannot be removed now.`;
    throw new SessionError("locked", message);
  }

  async #add(
    header: SessionHeader,
    entries: readonly EntryRow[],
    files?: NewStoredSession["files"],
  ): Promise<Session> {
    const { id, cwd, createdAt, from } = header;
    assertName("The id of a session", id);
    const isAdded = await this.#store.sessions.create({
      ...{ id, cwd, createdAt, entries, tenant: this.#tenant, pool: this.#pool },
      leaf: entries.findLast(({ type }) => !isBeside(type))?.id ?? null,
      ...(from && { source: JSON.stringify(from) }),
      ...(files && { files }),
    });
    if (!isAdded) throw new SessionError("exists", `The session ${id} is here already.`);
    return this.#hold(id);
  }

  async #hold(id: string): Promise<Session> {
    const claim = await this.#holder.hold(id);
    const log = new HeldLog(this.#store, claim, this.#holder);
    const entries = await this.#store.listEntries(id);
    const files = new StoreFiles(this.#store, id);
    const header = toHeader(id, claim.header);
    return openEntryLog({ header, entries, log, clock: this.#clock, files });
  }

  async #read(row: StoredSession): Promise<EntryLogSession> {
    const { id } = row;
    return openEntryLog({
      header: toHeader(id, row),
      entries: await this.#store.listEntries(id),
      readOnly: true,
      clock: this.#clock,
      files: new StoreFiles(this.#store, id),
      log: {
        append: async () => {},
        read: (ids) => this.#store.readEntries(id, ids),
      },
    });
  }

  async #find(idOrPrefix: string): Promise<StoredSession> {
    const exact = await this.#readRow(idOrPrefix);
    if (exact) return exact;
    const { sessions } = this.#store;
    const isName = idOrPrefix !== "" && !/\0|\p{Cs}/u.test(idOrPrefix);
    const alike = isName ? await sessions.listIds(this.#tenant, idOrPrefix, MAX_IDS) : [];
    const ids = alike.length > 0 ? alike : await sessions.listIds(this.#tenant, "", MAX_IDS);
    const { id } = chooseSession(
      idOrPrefix,
      ids.map((each) => ({ id: each })),
    );
    const found = await this.#readRow(id);
    if (found) return found;
    throw new SessionError("not_found", `There is no session "${id}" any more.`);
  }

  async #readRow(id: string): Promise<StoredSession | undefined> {
    if (id === "" || /\0|\p{Cs}/u.test(id)) return undefined;
    return this.#store.sessions.read(this.#tenant, id);
  }
}

/** The header of a session; one that a run has made has no folder. */
export function toHeader(id: string, made: StoredHeader | undefined): SessionHeader {
  const { cwd = "", createdAt = 0, source } = made ?? {};
  return {
    ...{ type: "session", version: SESSION_VERSION, id, createdAt, cwd },
    ...(source !== undefined && { from: JSON.parse(source) }),
  };
}

function toSummary(row: StoredSession): SessionSummary {
  const { id, updatedAt, bytes, title, prompt, isArchived } = row;
  const head = { id: 1, parentId: null, timestamp: updatedAt };
  let summary = summarizeHeader(toHeader(id, row));
  if (prompt !== undefined) {
    summary = addToSummary(summary, { ...head, type: "message", data: complete(prompt) });
  }
  if (title !== undefined) summary = addToSummary(summary, { ...head, type: "title", data: title });
  return { ...summary, updatedAt, bytes, ...(isArchived && { archived: true }) };
}

function hasWords({ query = "" }: SessionListOptions): boolean {
  return query.trim() !== "";
}

function formatPlace({ createdAt, id, updatedAt }: SessionPlace): string {
  return `${updatedAt}_${createdAt}_${id}`;
}

function parsePlace(after: string): SessionPlace | undefined {
  const [, updatedAt, createdAt, id] = /^(-?\d+)_(-?\d+)_(.+)$/s.exec(after) ?? [];
  if (id === undefined) return undefined;
  return { id, createdAt: Number(createdAt), updatedAt: Number(updatedAt) };
}

/** The JSON of an entry of which only the beginning was read. */
function complete(data: string): string {
  try {
    JSON.parse(data);
    return data;
  } catch {
    const parser = new PartialJsonParser();
    parser.feed(data);
    return JSON.stringify(isRecord(parser.value) ? parser.value : {});
  }
}
