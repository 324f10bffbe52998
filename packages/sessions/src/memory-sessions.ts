import { type Clock, systemClock } from "@gyre/ai";
import type { SessionHeader } from "./format/entry.ts";
import { chooseSession, createHeader } from "./format/id.ts";
import { addToSummary, type EntryRow, summarizeHeader } from "./format/row.ts";
import type { SessionStorage } from "./format/storage.ts";
import {
  type NewSession,
  type OpenOptions,
  type Session,
  SessionError,
  type SessionPage,
  type SessionSummary,
} from "./format/types.ts";
import { type EntryLogSession, openEntryLog } from "./session/entry-log.ts";

/** Digits of a time in a key, so that keys are in the order of times. */
const TIME_DIGITS = 16;

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

  async list({ cwd, limit }: { cwd?: string; limit?: number } = {}): Promise<SessionSummary[]> {
    return this.#summaries(cwd)
      .sort((a, b) => b.updatedAt - a.updatedAt || compare(pageKey(b), pageKey(a)))
      .slice(0, limit);
  }

  async listPage({
    cwd,
    limit,
    after,
  }: {
    cwd: string;
    limit: number;
    after?: string;
  }): Promise<SessionPage> {
    const left = this.#summaries(cwd)
      .filter((summary) => after === undefined || pageKey(summary) < after)
      .sort((a, b) => compare(pageKey(b), pageKey(a)));
    const sessions = left.slice(0, limit);
    const last = left.length > sessions.length ? sessions.at(-1) : undefined;
    return { sessions, ...(last && { next: pageKey(last) }) };
  }

  async fork(id: string, options: { cwd?: string; entry?: number | null } = {}): Promise<Session> {
    const source = this.#open(this.#find(id), true);
    const { cwd = source.header.cwd, entry = source.leaf } = options;
    const from = { session: source.header.id, ...(entry !== null && { entry }) };
    const rows: EntryRow[] = [];
    await source.copyBranch((row) => void rows.push(row), entry);
    const kept = this.#add(createHeader({ cwd, from }, this.#clock.now()));
    append(kept, rows);
    return this.#open(kept, false);
  }

  async remove(id: string): Promise<void> {
    const kept = this.#find(id);
    assertFree(kept);
    this.#sessions.delete(kept.header.id);
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

  #summaries(cwd: string | undefined): SessionSummary[] {
    const all = [...this.#sessions.values()].map(({ summary }) => summary);
    return all.filter((summary) => cwd === undefined || summary.cwd === cwd);
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

function assertFree({ header, isHeld }: Kept): void {
  if (!isHeld) return;
  const message = `The session ${header.id} is open already: it has one writer at a time.`;
  throw new SessionError("locked", message);
}

/** What the order of pages goes by. */
function pageKey({ createdAt, id }: SessionSummary): string {
  return `${String(createdAt).padStart(TIME_DIGITS, "0")}_${id}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
