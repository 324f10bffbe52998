import type { SessionFilter, StoredSession } from "../contract/store.ts";
import { given, type HeaderRecord, type SqlValue, toHeader } from "./rows.ts";

/** So much is read of a prompt for a list, however long it is. */
const PROMPT_CHARS = 65_536;
/** The role of a message stands at the beginning of its entry. */
const ROLE_CHARS = 200;

export interface StoredSessionRecord extends HeaderRecord {
  id: string;
  pool: string;
  created_at: number;
  updated_at: number;
  bytes: number;
  title: string | null;
  prompt: string | null;
}

export function toStoredSession(record: StoredSessionRecord): StoredSession {
  const { id, pool, created_at: createdAt, updated_at: updatedAt, bytes, title, prompt } = record;
  return {
    ...{ id, pool, updatedAt, bytes, cwd: "", createdAt },
    ...toHeader(record),
    ...given("title", title),
    ...given("prompt", prompt),
  };
}

/** What is cheap to read of many sessions. */
const KEYS = `select s.id, s.pool, s.created_at, h.cwd, h.source, h.created_at as made_at,
  coalesce((select e.at from gyre_entry e where e.session = s.id and e.seq = s.seq),
    h.created_at, s.created_at) as updated_at`;

/** Adds what is read of those that are shown. */
function describe(keys: string): string {
  return `select k.*,
    (select coalesce(sum(octet_length(e.data)), 0) from gyre_entry e where e.session = k.id) as bytes,
    (select e.data from gyre_entry e where e.session = k.id and e.type = 'title'
      order by e.seq desc limit 1) as title,
    (select substr(e.data, 1, ${PROMPT_CHARS}) from gyre_entry e where e.session = k.id
      and e.type = 'message' and substr(e.data, 1, ${ROLE_CHARS}) like '%"role":"user"%'
      order by e.seq limit 1) as prompt
    from (${keys}) k`;
}

export const SELECT_SESSION: string = describe(
  `${KEYS} from gyre_session s left join gyre_header h on h.session = s.id
    where s.id = ? and s.tenant = ?`,
);

export const LIST_IDS = `select h.session as id from gyre_header h join gyre_session s on s.id = h.session
  where h.session >= ? and h.session < ? and s.tenant = ? order by h.session limit ?`;

/** The statement of a list, and its values. */
export function listSessions(filter: SessionFilter): { sql: string; values: SqlValue[] } {
  const { tenant, cwd, order, after, limit } = filter;
  const conditions = ["s.tenant = ?"];
  const values: SqlValue[] = [tenant];
  if (cwd !== undefined) {
    conditions.push("h.cwd = ?");
    values.push(cwd);
  }
  if (after) {
    conditions.push("(h.created_at, h.session) < (?, ?)");
    values.push(after.createdAt, after.id);
  }
  const first = order === "updated" ? "updated_at desc, " : "";
  const keys = `${KEYS}, h.session as ordered from gyre_header h
    join gyre_session s on s.id = h.session where ${conditions.join(" and ")}
    order by ${first}h.created_at desc, h.session desc limit ?`;
  const sql = `${describe(keys)} order by ${first}k.made_at desc, k.ordered desc`;
  return { sql, values: [...values, limit] };
}

/** Behind every id that begins with this text. */
export function limitPrefix(prefix: string): string {
  return `${prefix}\u{10FFFF}`;
}
