import type { SessionFilter, StoredSession } from "../contract/store.ts";
import { given, type HeaderRecord, type SqlValue, toHeader } from "./rows.ts";

/** So much is read of a prompt for a list, however long it is. */
const PROMPT_CHARS = 65_536;
/** The same for those that are looked through: a list shows less. */
const BRIEF_PROMPT_CHARS = 2_048;

export interface StoredSessionRecord extends HeaderRecord {
  id: string;
  pool: string;
  created_at: number;
  updated_at: number;
  bytes: number;
  title: string | null;
  prompt: string | null;
  archived: number | null;
}

export function toStoredSession(record: StoredSessionRecord): StoredSession {
  const { id, pool, created_at: createdAt, updated_at: updatedAt, bytes, title, prompt } = record;
  return {
    ...{ id, pool, updatedAt, bytes, cwd: "", createdAt, isArchived: record.archived === 1 },
    ...toHeader(record),
    ...given("title", title),
    ...given("prompt", prompt),
  };
}

/** When a session was last written to, of databases that look it up. */
const LAST_ENTRY = `coalesce((select e.at from gyre_entry e where e.session = s.id and e.seq = s.seq),
    h.created_at, s.created_at)`;

/** What is cheap to read of many sessions. */
function selectKeys(updatedAt: string): string {
  return `select s.id, s.pool, s.created_at, h.cwd, h.created_at as made_at,
    h.session as ordered, ${updatedAt} as updated_at`;
}

/** Adds what is read of those that are shown. A session that a run has made has no summary. */
function describe(keys: string, isBrief = false): string {
  const bytes = `(select coalesce(sum(octet_length(e.data)), 0) from gyre_entry e
    where e.session = k.id)`;
  return `select k.*, ${isBrief ? "0" : bytes} as bytes, d.source, d.archived, d.title,
    substr(d.prompt, 1, ${isBrief ? BRIEF_PROMPT_CHARS : PROMPT_CHARS}) as prompt
    from (${keys}) k left join gyre_header d on d.session = k.id`;
}

export const SELECT_SESSION: string = describe(
  `${selectKeys(LAST_ENTRY)} from gyre_session s left join gyre_header h on h.session = s.id
    where s.id = ? and s.tenant = ?`,
);

export const LIST_IDS = `select h.session as id from gyre_header h join gyre_session s on s.id = h.session
  where h.session >= ? and h.session < ? and s.tenant = ? order by h.session limit ?`;

const ORDERS = {
  created: "made_at desc, ordered desc",
  updated: "updated_at desc, made_at desc, ordered desc",
} as const;

/** How a database that keeps the time of the last entry in an index reads all sessions by it. */
export interface ListIndex {
  /** The column, of `s`. */
  writtenAt: string;
  /** The headers `h`, by their sessions, without what is long in them. */
  headers: string;
}

/** The statement of a list, and its values. */
export function listSessions(
  filter: SessionFilter,
  index?: ListIndex,
): { sql: string; values: SqlValue[] } {
  const { tenant, cwd, isArchived, order, after, limit, isBrief } = filter;
  const conditions = ["s.id = h.session", "s.tenant = ?"];
  const values: SqlValue[] = [tenant];
  const add = (condition: string, ...its: SqlValue[]): void => {
    conditions.push(condition);
    values.push(...its);
  };
  // Few are put away: these are found first, and then sorted.
  const isMost = cwd === undefined && isArchived !== true;
  const byTime = order === "updated" && isMost ? index : undefined;
  if (byTime) add(`${byTime.writtenAt} is not null`);
  if (cwd !== undefined) add("h.cwd = ?", cwd);
  if (isArchived !== undefined) add("h.archived = ?", Number(isArchived));
  if (after && order === "created") {
    add("(h.created_at, h.session) < (?, ?)", after.createdAt, after.id);
  }
  if (after && byTime) add(`${byTime.writtenAt} <= ?`, after.updatedAt);
  // SQLite reads the first one in its order, and looks up the other.
  const tables = byTime
    ? `gyre_session s cross join ${byTime.headers}`
    : "gyre_header h cross join gyre_session s";
  const all = `${selectKeys(index?.writtenAt ?? LAST_ENTRY)} from ${tables}
    where ${conditions.join(" and ")}`;
  const isBehind = after && order === "updated";
  if (isBehind) values.push(after.updatedAt, after.createdAt, after.id);
  const behind = "where (updated_at, made_at, ordered) < (?, ?, ?)";
  const left = isBehind ? `select * from (${all}) a ${behind}` : all;
  const keys = `${left} order by ${ORDERS[order]} limit ?`;
  const sql = `${describe(keys, isBrief)} order by ${ORDERS[order]}`;
  return { sql, values: [...values, limit] };
}

/** Behind every id that begins with this text. */
export function limitPrefix(prefix: string): string {
  return `${prefix}\u{10FFFF}`;
}
