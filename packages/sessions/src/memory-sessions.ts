import { type Clock, MemoryFiles, systemClock } from "@gyre/ai";
import type { SessionHeader } from "./format/entry.ts";
import { chooseSession, createHeader } from "./format/id.ts";
import { addToSummary, type EntryRow, summarizeHeader } from "./format/row.ts";
import { pageSessions, type SessionListOptions, type SessionPageOptions } from "./format/page.ts";
import type { ForkOptions, SessionStorage } from "./format/storage.ts";
import {
  type NewSession,
  type OpenOptions,
  type Session,
  SessionError,
  type SessionPage,
  type SessionSearchOptions,
  type SessionSearchPage,
  type SessionSummary,
} from "./format/types.ts";
import { searchSessions } from "./search.ts";
import { type EntryLogSession, openEntryLog } from "./session/entry-log.ts";
import { listStoredHashes } from "./session/stored-files.ts";

/** What is kept of a session. */
interface Kept {
  readonly header: SessionHeader;
  readonly rows: EntryRow[];
  summary: SessionSummary;
  /** A writer has it. */
  isHeld: boolean;
}

/** Sessions in the memory of this program, for tests, for pages and for what need not last. */
export class MemorySessions implements SessionStorage {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, Kept>();
  readonly #files = new MemoryFiles();

  constructor({ clock = systemClock }: { clock?: Clock } = {}) {
    this.#clock = clock;
  }

  async create(session: NewSession): Promise<Session> {
    return this.#open(this.#add(createHeader(session, this.#clock.now())), false);
  }

  async open(
    id: string,
    { readOnly = false }: Pick<OpenOptions, "readOnly"> = {},
  ): Promise<Session> {
    return this.#open(this.#find(id), readOnly);
  }

  async locate(id: string): Promise<string | undefined> {
    return this.#sessions.has(id) ? id : undefined;
  }

  async find(idOrPrefix: string): Promise<SessionSummary> {
    return this.#find(idOrPrefix).summary;
  }

  async list({
    limit = Infinity,
    ...options
  }: SessionListOptions & { limit?: number } = {}): Promise<SessionSummary[]> {
    const page = { ...options, limit, order: "updated" } as const;
    return pageSessions(this.#summaries(), page).sessions;
  }

  async listPage(options: SessionPageOptions): Promise<SessionPage> {
    return pageSessions(this.#summaries(), options);
  }

  search(options: SessionSearchOptions): Promise<SessionSearchPage> {
    return searchSessions(this, options);
  }

  async fork(id: string, options: ForkOptions = {}): Promise<Session> {
    const source = this.#open(this.#find(id), true);
    const { cwd = source.header.cwd, entry = source.leaf, newId } = options;
    const from = { session: source.header.id, ...(entry !== null && { entry }) };
    const rows: EntryRow[] = [];
    await source.copyBranch((row) => void rows.push(row), entry);
    const kept = this.#add(
      createHeader({ cwd, from, ...(newId !== undefined && { id: newId }) }, this.#clock.now()),
    );
    append(kept, rows);
    return this.#open(kept, false);
  }

  async remove(id: string): Promise<void> {
    const kept = this.#find(id);
    assertFree(kept);
    this.#sessions.delete(kept.header.id);
    const used = new Set([...this.#sessions.values()].flatMap(({ rows }) => listHashes(rows)));
    for (const sha256 of listHashes(kept.rows)) if (!used.has(sha256)) this.#files.remove(sha256);
  }

  #add(header: SessionHeader): Kept {
    const { id } = header;
    if (this.#sessions.has(id)) {
      throw new SessionError("exists", `The session ${id} is here already.`);
    }
    const kept = { header, rows: [], summary: summarizeHeader(header), isHeld: false };
    this.#sessions.set(id, kept);
    return kept;
  }

  #find(idOrPrefix: string): Kept {
    const all = [...this.#sessions].map(([id, kept]) => ({ id, kept }));
    return chooseSession(idOrPrefix, all).kept;
  }

  #summaries(): SessionSummary[] {
    return [...this.#sessions.values()].map(({ summary }) => summary);
  }

  #open(kept: Kept, readOnly: boolean): EntryLogSession {
    if (!readOnly) {
      assertFree(kept);
      kept.isHeld = true;
    }
    const { header, rows } = kept;
    return openEntryLog({
      header,
      readOnly,
      clock: this.#clock,
      files: this.#files,
      entries: rows.map(({ data, ...row }) => ({ ...row, bytes: data.length })),
      log: {
        append: async (added) => append(kept, added),
        read: async (ids) => ids.flatMap((id) => rows[id - 1] ?? []),
        close: async () => {
          if (!readOnly) kept.isHeld = false;
        },
      },
    });
  }
}

/** Ids count up from 1 without gaps: an entry stands where its id says. */
function append(kept: Kept, rows: readonly EntryRow[]): void {
  for (const row of rows) {
    kept.rows.push(row);
    kept.summary = addToSummary(kept.summary, row);
  }
}

function listHashes(rows: readonly EntryRow[]): string[] {
  return rows.flatMap(({ data }) => listStoredHashes(data));
}

function assertFree({ header, isHeld }: Kept): void {
  if (!isHeld) return;
  const message = `The session ${header.id} is open already: it has one writer at a time.`;
  throw new SessionError("locked", message);
}
