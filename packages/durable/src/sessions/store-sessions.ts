import { type Clock, isRecord, PartialJsonParser, systemClock } from "@gyre/ai";
import {
  addToSummary,
  chooseSession,
  createHeader,
  type EntryLogSession,
  type EntryRow,
  isBeside,
  type NewSession,
  openEntryLog,
  type OpenOptions,
  type Session,
  SESSION_VERSION,
  SessionError,
  type SessionHeader,
  type SessionPage,
  type SessionStorage,
  type SessionSummary,
  summarizeHeader,
} from "@gyre/sessions";
import { assertName } from "../contract/messages.ts";
import type { Store, StoredHeader, StoredSession } from "../contract/store.ts";
import { HeldLog } from "./held-log.ts";
import { Holder } from "./holder.ts";

const DEFAULT_LEASE_MS = 5_000;
/** Ids that are looked at for those that are near to a wrong one. */
const MAX_IDS = 1_000;
const MAX_LISTED = 1_000_000;

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

  async list({ cwd, limit = MAX_LISTED }: { cwd?: string; limit?: number } = {}): Promise<
    SessionSummary[]
  > {
    const where = cwd === undefined ? {} : { cwd };
    const rows = await this.#store.sessions.list({
      ...{ tenant: this.#tenant, order: "updated", limit },
      ...where,
    });
    return rows.map(toSummary);
  }

  async listPage(options: { cwd: string; limit: number; after?: string }): Promise<SessionPage> {
    const { cwd, limit, after = "" } = options;
    const [, createdAt = "", id = ""] = /^(-?\d+)_(.+)$/s.exec(after) ?? [];
    const rows = await this.#store.sessions.list({
      ...{ tenant: this.#tenant, cwd, order: "created", limit: limit + 1 },
      ...(id !== "" && { after: { createdAt: Number(createdAt), id } }),
    });
    const shown = rows.slice(0, limit);
    const last = rows.length > shown.length ? shown.at(-1) : undefined;
    return {
      sessions: shown.map(toSummary),
      ...(last && { next: `${last.createdAt}_${last.id}` }),
    };
  }

  async fork(id: string, options: { cwd?: string; entry?: number | null } = {}): Promise<Session> {
    const source = await this.#read(await this.#find(id));
    const { cwd = source.header.cwd, entry = source.leaf } = options;
    const from = { session: source.header.id, ...(entry !== null && { entry }) };
    const rows: EntryRow[] = [];
    await source.copyBranch((row) => void rows.push(row), entry);
    return this.#add(createHeader({ cwd, from }, this.#clock.now()), rows);
  }

  async remove(id: string): Promise<void> {
    const found = await this.#find(id);
    const outcome = await this.#store.sessions.remove(found.id);
    if (outcome !== "held") return;
    const message = `The session ${found.id} is open, or a run works in it: it cannot be removed now.`;
    throw new SessionError("locked", message);
  }

  async #add(header: SessionHeader, entries: readonly EntryRow[]): Promise<Session> {
    const { id, cwd, createdAt, from } = header;
    assertName("The id of a session", id);
    const isAdded = await this.#store.sessions.create({
      ...{ id, cwd, createdAt, entries, tenant: this.#tenant, pool: this.#pool },
      leaf: entries.findLast(({ type }) => !isBeside(type))?.id ?? null,
      ...(from && { source: JSON.stringify(from) }),
    });
    if (!isAdded) throw new SessionError("exists", `The session ${id} is here already.`);
    return this.#hold(id);
  }

  async #hold(id: string): Promise<Session> {
    const claim = await this.#holder.hold(id);
    const log = new HeldLog(this.#store, claim, this.#holder);
    const entries = await this.#store.listEntries(id);
    return openEntryLog({ header: toHeader(id, claim.header), entries, log, clock: this.#clock });
  }

  async #read(row: StoredSession): Promise<EntryLogSession> {
    const { id } = row;
    return openEntryLog({
      header: toHeader(id, row),
      entries: await this.#store.listEntries(id),
      readOnly: true,
      clock: this.#clock,
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
  const { id, updatedAt, bytes, title, prompt } = row;
  const head = { id: 1, parentId: null, timestamp: updatedAt };
  let summary = summarizeHeader(toHeader(id, row));
  if (prompt !== undefined) {
    summary = addToSummary(summary, { ...head, type: "message", data: complete(prompt) });
  }
  if (title !== undefined) summary = addToSummary(summary, { ...head, type: "title", data: title });
  return { ...summary, updatedAt, bytes };
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
