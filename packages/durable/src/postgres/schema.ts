import { DurableError } from "../contract/errors.ts";
import type { Session } from "./driver/database.ts";

/** The version of the tables that this version of the package writes. */
export const SCHEMA_VERSION = 8;

/** Keeps two processes from changing the tables at once. */
const MIGRATION_LOCK = 4_715_020_211;

/** Each makes the tables of one version from those of the version before. Times are milliseconds. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    "insert into gyre_meta values ('oldest_schema', '1')",
    `create table gyre_worker (
      id text primary key, lease bigint not null, host text not null, pid bigint not null,
      agents text not null, pools text not null, started_at bigint not null,
      live bigint not null default 0)`,
    `create table gyre_session (
      id text primary key, tenant text not null, pool text not null,
      agent text not null, version text not null default '',
      status text not null check (status in ('idle', 'ready', 'running', 'waiting', 'aside')),
      owner text, token bigint not null default 0, claim text,
      seq bigint not null default 0, leaf bigint, wakes bigint not null default 0,
      ready_at bigint not null, due bigint, priority bigint not null default 0, deaths bigint not null default 0,
      run text, created_at bigint not null, updated_at bigint not null) with (fillfactor = 80)`,
    "create index on gyre_session (pool, priority desc, ready_at) where status = 'ready'",
    "create index on gyre_session (due) where status in ('ready', 'waiting') and due is not null",
    "create index on gyre_session (owner) where status = 'running'",
    "create index on gyre_session (tenant, status) where status in ('ready', 'running')",
    `create table gyre_run (
      id text primary key, session text not null, digest text not null, agent text not null,
      version text not null default '', tenant text not null, pool text not null,
      first_seq bigint, last_seq bigint, pending text, parent text, parent_call text,
      traceparent text, limits text, output text, meta text, stop text, error text, answer text,
      turns bigint not null default 0, usage text not null default '{}',
      active_ms bigint not null default 0, activations bigint not null default 0,
      started_at bigint not null, ended_at bigint) with (fillfactor = 80)`,
    "create index on gyre_run (session, started_at)",
    "create index on gyre_run (started_at, id)",
    "create index on gyre_run (parent) where parent is not null",
    "create index on gyre_run (ended_at) where ended_at is not null",
    // JSON as it was written: jsonb would change the order of keys and refuse some texts.
    `create table gyre_entry (
      session text not null, seq bigint not null, parent bigint, type text not null,
      data text not null, token bigint not null, at bigint not null, primary key (session, seq))`,
    `create table gyre_inbox (
      id bigint generated always as identity primary key, session text not null, run text not null,
      kind text not null, data text not null, key text not null, due bigint, taken bigint,
      at bigint not null, unique (session, key))`,
    "create index on gyre_inbox (session, id) where taken is null",
    "create index on gyre_inbox (run) where taken is null",
    "create table gyre_tenant (id text primary key, max_running bigint, max_ready bigint)",
  ],
  [
    // Ids are found by how they begin.
    `create table gyre_header (
      session text collate "C" primary key, cwd text not null, source text,
      created_at bigint not null)`,
    "create index on gyre_header (cwd, created_at, session)",
    "create index on gyre_entry (session, seq) where type = 'title'",
  ],
  [
    // What is followed, and what is too large for a notification: both may be lost with the server.
    `create unlogged table gyre_watch (session text not null, watcher text not null,
      until bigint not null, primary key (session, watcher))`,
    "create index on gyre_watch (until)",
    `create unlogged table gyre_live (id bigint generated always as identity primary key,
      session text not null, data text not null, at bigint not null)`,
    "create index on gyre_live (at)",
  ],
  [
    `create table gyre_schedule (
      id text collate "C" primary key, spec text not null, start text not null, next_at bigint not null,
      is_paused bigint not null default 0, last_at bigint, last_run text, error text)`,
    "create index on gyre_schedule (next_at) where is_paused = 0",
    "alter table gyre_run add column priority bigint not null default 0",
    "alter table gyre_run add column budget text",
  ],
  ["alter table gyre_run add column span text"],
  [
    `create table gyre_tool_client (
      session text not null, client text not null, nth bigint not null, holder text not null,
      keeps_calls bigint not null, tools text not null, until bigint not null,
      primary key (session, client))`,
    "create index on gyre_tool_client (holder)",
    "alter table gyre_session add column tool_changes bigint not null default 0",
  ],
  [
    // What lists show, kept by the database: also where a program of an older version writes. The
    // role of a message stands at the beginning of its entry.
    "create index on gyre_header (created_at, session)",
    "alter table gyre_header add column title text",
    "alter table gyre_header add column prompt text",
    "alter table gyre_header add column archived bigint not null default 0",
    `update gyre_header h set
      title = (select e.data from gyre_entry e where e.session = h.session and e.type = 'title'
        order by e.seq desc limit 1),
      prompt = (select substr(e.data, 1, 65536) from gyre_entry e where e.session = h.session
        and e.type = 'message' and substr(e.data, 1, 200) like '%"role":"user"%'
        order by e.seq limit 1)`,
    `create function gyre_entry_added() returns trigger language plpgsql as $body$
    begin
      if new.type = 'title' then
        update gyre_header set title = new.data where session = new.session;
      elsif new.type = 'archive' then
        update gyre_header set archived = (new.data like '%"archived":true%')::int
          where session = new.session;
      else
        update gyre_header set archived = 0 where session = new.session and archived = 1;
        update gyre_header set prompt = substr(new.data, 1, 65536) where session = new.session
          and prompt is null and substr(new.data, 1, 200) like '%"role":"user"%';
      end if;
      return null;
    end $body$`,
    `create trigger entry_added after insert on gyre_entry for each row
      when (new.type in ('title', 'archive', 'message')) execute function gyre_entry_added()`,
  ],
  [
    "create table gyre_file (sha256 text primary key, data bytea not null)",
    `create table gyre_session_file (
      session text not null, sha256 text not null, primary key (session, sha256))`,
    "create index on gyre_session_file (sha256)",
  ],
];

/** Brings the tables up to date. Throws where they are of a version that this one cannot use. */
export async function migrate(session: Session, place: string, isAllowed: boolean): Promise<void> {
  const version = await readVersion(session);
  if (version > SCHEMA_VERSION) return checkNewer(session, version, place);
  if (version === SCHEMA_VERSION) return;
  if (!isAllowed) {
    throw new DurableError(
      "schema_older",
      version === 0
        ? `There are no runs in ${place}: it has no tables of them. To make them: open it once with { migrate: true }.`
        : `The tables of ${place} are of version ${version}, this package needs version ${SCHEMA_VERSION}: open it once with { migrate: true }.`,
    );
  }
  await session.run(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  await session.run(
    "create table if not exists gyre_meta (key text primary key, value text not null)",
  );
  // Another process may have been first.
  for (const statements of MIGRATIONS.slice(await readVersion(session))) {
    for (const statement of statements) await session.run(statement);
  }
  await session.run(
    "insert into gyre_meta values ('schema', $1) on conflict (key) do update set value = excluded.value",
    String(SCHEMA_VERSION),
  );
}

async function checkNewer(session: Session, version: number, place: string): Promise<void> {
  const oldest = await session.first<{ value: string }>(
    "select value from gyre_meta where key = 'oldest_schema'",
  );
  if (Number(oldest?.value ?? version) <= SCHEMA_VERSION) return;
  throw new DurableError(
    "schema_newer",
    `The tables of ${place} are of version ${version}, this package knows version ${SCHEMA_VERSION}: update @gyre/durable.`,
  );
}

async function readVersion(session: Session): Promise<number> {
  const found = await session.first<{ there: boolean }>(
    "select to_regclass('gyre_meta') is not null as there",
  );
  if (!found?.there) return 0;
  const row = await session.first<{ value: string }>(
    "select value from gyre_meta where key = 'schema'",
  );
  return Number(row?.value ?? 0);
}
