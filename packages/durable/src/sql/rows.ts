import type { EntryInfo, EntryRow, EntryType } from "@gyre/sessions";
import type {
  Claim,
  FamilyRow,
  InboxItem,
  ItemKind,
  OpenCount,
  NewItem,
  NewRun,
  OnlyWish,
  ReadySession,
  RunRow,
  RunRowFilter,
  RunStatus,
  StoredEntry,
  StoredHeader,
} from "../contract/store.ts";

/** What both databases take. */
export type SqlValue = string | number | null | Uint8Array;

export interface SessionRecord extends Partial<HeaderRecord> {
  id: string;
  tenant: string;
  pool: string;
  agent: string;
  version: string;
  status: string;
  owner: string | null;
  token: number;
  claim: string | null;
  seq: number;
  leaf: number | null;
  wakes: number;
  deaths: number;
  run: string | null;
}

/** What a session was made with, where a program has made it. */
export interface HeaderRecord {
  cwd: string | null;
  source: string | null;
  made_at: number | null;
}

export function toHeader({ cwd, source, made_at: at }: HeaderRecord): StoredHeader | undefined {
  if (cwd === null || at === null) return undefined;
  return { cwd, createdAt: at, ...given("source", source) };
}

export interface ReadyRecord {
  id: string;
  tenant: string;
  pool: string;
  priority: number;
  at: number;
  in_ms: number;
}

export function toReady(record: ReadyRecord): ReadySession {
  const { id, tenant, pool, priority, at, in_ms: inMs } = record;
  return { session: id, tenant, pool, priority, at, inMs };
}

/** What the claims for an activation of an engine begin with. */
export function claimPrefix({ activation }: OnlyWish): string {
  return `${activation.replaceAll(":", "_")}.`;
}

/** A session that was just claimed, with its new token. */
export function toClaim(record: SessionRecord, worker: string): Claim {
  const { cwd = null, source = null, made_at = null } = record;
  const header = toHeader({ cwd, source, made_at });
  const { id, tenant, agent, version, token, claim, seq, leaf, deaths, run } = record;
  return {
    ...{
      session: id,
      worker,
      token,
      claim: claim ?? "",
      tenant,
      agent,
      version,
      seq,
      leaf,
      deaths,
    },
    ...(run !== null && { run }),
    ...(header && { header }),
  };
}

/** Why a run was set aside. */
export function explainAside(deaths: number): string {
  return `It was set aside: ${deaths} workers in a row ended while they worked on it, the last with nothing else to do.`;
}

/** What answers a call whose run could not be started, as its id or session is in use. */
export function refuseChild({ id, parent }: NewRun): Pick<NewItem, "kind" | "key" | "data"> {
  const reason = `The run "${id}" could not be started: its id, or a session of that id, is in use.`;
  const content = [{ type: "text", text: reason }];
  const result = { content, isError: true, outcome: "error", reason };
  const data = JSON.stringify({ [parent?.call ?? ""]: { type: "result", result } });
  return { kind: "decision", key: `child:${id}`, data };
}

/** Whether a run is the one that a call has started. */
export function isChild(
  { parent }: NewRun,
  found: Pick<RunRecord, "parent" | "parent_call"> | undefined,
): boolean {
  return found?.parent === parent?.run && found?.parent_call === parent?.call;
}

export interface EntryRecord {
  seq: number;
  parent: number | null;
  type: EntryType;
  data: string;
  token: number;
  at: number;
}

export function toEntry({ seq, parent, type, data, token, at }: EntryRecord): StoredEntry {
  return { id: seq, parentId: parent, type, timestamp: at, data, token };
}

export function toInfo(record: {
  seq: number;
  parent: number | null;
  type: EntryType;
  bytes: number;
}): EntryInfo {
  return { id: record.seq, parentId: record.parent, type: record.type, bytes: record.bytes };
}

export function entryValues(session: string, token: number, row: EntryRow): SqlValue[] {
  return [session, row.id, row.parentId, row.type, row.data, token, row.timestamp];
}

export interface InboxRecord {
  id: number;
  run: string;
  kind: ItemKind;
  key: string;
  data: string;
  due: number | null;
}

export function toItem({ id, run, kind, key, data, due }: InboxRecord, now: number): InboxItem {
  return { id, run, kind, key, data, dueInMs: due === null ? 0 : due - now };
}

export interface RunRecord {
  id: string;
  session: string;
  agent: string;
  version: string;
  tenant: string;
  pool: string;
  status: RunStatus;
  first_seq: number | null;
  last_seq: number | null;
  pending: string | null;
  parent: string | null;
  parent_call: string | null;
  traceparent: string | null;
  span: string | null;
  limits: string | null;
  output: string | null;
  meta: string | null;
  stop: string | null;
  error: string | null;
  answer: string | null;
  turns: number;
  usage: string;
  active_ms: number;
  activations: number;
  deaths: number | null;
  owner: string | null;
  priority: number;
  budget: string | null;
  started_at: number;
  ended_at: number | null;
  due: number | null;
}

/** A run is what its session is while it is the open one. */
const STATUS = `case when r.ended_at is not null then 'ended'
  when s.run is distinct from r.id then 'queued' when s.status = 'idle' then 'ready' else s.status end`;

const SELECT_RUN = `select r.*, ${STATUS} as status, s.deaths,
  case when s.run = r.id and s.status = 'running' then s.owner end as owner,
  case when s.run = r.id and s.status in ('ready', 'waiting') then s.due end as due
  from gyre_run r left join gyre_session s on s.id = r.session`;

export const SELECT_RUN_BY_ID: string = `${SELECT_RUN} where r.id = ?`;

/** How far it is looked up: deeper than runs work for runs. */
const MAX_GENERATIONS = 16;

/** What `readFamily` reads. */
export const SELECT_FAMILY: string = `with recursive
  up (id, parent, depth) as (
    select id, parent, 0 from gyre_run where id = ?
    union all select r.id, r.parent, up.depth + 1 from up join gyre_run r on r.id = up.parent
    where up.depth < ${MAX_GENERATIONS}
  ), down (id, session) as (
    select id, session from gyre_run
    where id = (select id from up order by depth desc limit 1)
    union all select c.id, c.session from down join gyre_run c on c.parent = down.id
    where not exists (select 1 from gyre_inbox i where i.session = down.session
      and i.key = 'child:' || c.id and i.taken is not null)
  ) select r.id, r.parent, r.usage, r.budget from down join gyre_run r on r.id = down.id`;

export type FamilyRecord = Pick<RunRecord, "id" | "parent" | "usage" | "budget">;

export function toFamily({ id, parent, usage, budget }: FamilyRecord): FamilyRow {
  return { id, usage, ...given("parent", parent), ...given("budget", budget) };
}

/** What `countOpen` reads, where `now` is the time of the store in SQL. */
export function countStatement(now: string): string {
  return `select ${STATUS} as status, r.agent as agent, r.tenant as tenant, count(*) as count,
    ${now} - min(case when s.run = r.id and s.status = 'ready' and s.due is null then s.ready_at end) as ready_ms
    from gyre_run r left join gyre_session s on s.id = r.session
    where r.ended_at is null group by 1, 2, 3 order by 1, 2, 3`;
}

/** What `readInboxMs` reads. A prompt waits for the run before it. */
export function inboxStatement(now: string): string {
  return `select ${now} - min(coalesce(due, at)) as ms from gyre_inbox
    where taken is null and kind <> 'prompt' and (due is null or due <= ${now})`;
}

export interface CountRecord {
  status: RunStatus;
  agent: string;
  tenant: string;
  count: number;
  ready_ms: number | null;
}

export function toCount({ ready_ms: readyMs, ...count }: CountRecord): OpenCount {
  return { ...count, ...given("readyMs", readyMs) };
}

/** The statement of a list, and its values. */
export function listStatement(filter: RunRowFilter): { sql: string; values: SqlValue[] } {
  const { statuses, agent, tenant, session, parent, startedSince, after, limit } = filter;
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  const add = (condition: string, ...given: SqlValue[]): void => {
    conditions.push(condition);
    values.push(...given);
  };
  if (statuses) add(`${STATUS} in (${marks(statuses.length)})`, ...statuses);
  if (agent !== undefined) add("r.agent = ?", agent);
  if (tenant !== undefined) add("r.tenant = ?", tenant);
  if (session !== undefined) add("r.session = ?", session);
  if (parent !== undefined) add("r.parent = ?", parent);
  if (startedSince !== undefined) add("r.started_at >= ?", startedSince);
  if (after) add("(r.started_at, r.id) < (?, ?)", after.startedAt, after.id);
  const where = conditions.length > 0 ? `where ${conditions.join(" and ")}` : "";
  const sql = `${SELECT_RUN} ${where} order by r.started_at desc, r.id desc limit ?`;
  return { sql, values: [...values, limit] };
}

/** Postgres numbers what SQLite marks with `?`. */
export function numberMarks(sql: string): string {
  let count = 0;
  return sql.replaceAll("?", () => `$${++count}`);
}

export function marks(count: number): string {
  return Array.from({ length: count }, () => "?").join(", ");
}

export function toRun(record: RunRecord, now: number): RunRow {
  const { parent, parent_call: call, due: readyAt } = record;
  return {
    id: record.id,
    session: record.session,
    agent: record.agent,
    version: record.version,
    tenant: record.tenant,
    pool: record.pool,
    status: record.status,
    turns: record.turns,
    usage: record.usage,
    activeMs: record.active_ms,
    activations: record.activations,
    deaths: record.deaths ?? 0,
    priority: record.priority,
    startedAt: record.started_at,
    ...given("firstSeq", record.first_seq),
    ...given("lastSeq", record.last_seq),
    ...given("pending", record.pending),
    ...given("limits", record.limits),
    ...given("output", record.output),
    ...given("meta", record.meta),
    ...given("traceparent", record.traceparent),
    ...given("budget", record.budget),
    ...given("span", record.span),
    ...given("stop", record.stop),
    ...given("error", record.error),
    ...given("answer", record.answer),
    ...given("worker", record.owner),
    ...given("endedAt", record.ended_at),
    ...(readyAt !== null && readyAt > now && { readyAt }),
    ...(parent !== null && { parent: { run: parent, call: call ?? "" } }),
  };
}

/** A field that is there where its column has a value. */
export function given<Name extends string, T>(
  name: Name,
  value: T | null,
): { readonly [N in Name]?: T } {
  if (value === null) return {};
  return { [name]: value } as { readonly [N in Name]?: T };
}
