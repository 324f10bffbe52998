import { DurableError } from "../contract/errors.ts";
import type { Driver } from "./driver/driver.ts";

/** The version of the tables that this version of the package writes. */
export const SCHEMA_VERSION = 9;

/** Each makes the tables of one version from those of the version before. */
export const MIGRATIONS: readonly string[] = [
  `
create table gyre_meta (key text primary key, value text not null) without rowid;
insert into gyre_meta values ('oldest_schema', '1');
create table gyre_worker (
  id text primary key, lease real not null, host text not null, pid integer not null,
  process text not null, agents text not null, pools text not null,
  started_at integer not null, live integer not null default 0
) without rowid;
create table gyre_session (
  id text primary key, tenant text not null, pool text not null,
  agent text not null, version text not null default '',
  status text not null, owner text, token integer not null default 0, claim text,
  seq integer not null default 0, leaf integer, wakes integer not null default 0,
  ready_at integer not null, due integer, priority integer not null default 0, deaths integer not null default 0,
  run text, created_at integer not null, updated_at integer not null
) without rowid;
create index gyre_session_ready on gyre_session (pool, priority desc, ready_at) where status = 'ready';
create index gyre_session_due on gyre_session (due) where status in ('ready', 'waiting') and due is not null;
create index gyre_session_owner on gyre_session (owner) where status = 'running';
create index gyre_session_tenant on gyre_session (tenant, status) where status in ('ready', 'running');
create table gyre_run (
  id text primary key, session text not null, digest text not null, agent text not null,
  version text not null default '',
  tenant text not null, pool text not null, first_seq integer, last_seq integer, pending text,
  parent text, parent_call text, traceparent text, limits text, output text, meta text,
  stop text, error text, answer text, turns integer not null default 0,
  usage text not null default '{}', active_ms integer not null default 0,
  activations integer not null default 0, started_at integer not null, ended_at integer
) without rowid;
create index gyre_run_session on gyre_run (session, started_at);
create index gyre_run_started on gyre_run (started_at, id);
create index gyre_run_parent on gyre_run (parent) where parent is not null;
create index gyre_run_ended on gyre_run (ended_at) where ended_at is not null;
create table gyre_entry (
  session text not null, seq integer not null, parent integer, type text not null,
  data text not null, token integer not null, at integer not null, primary key (session, seq)
) without rowid;
create table gyre_inbox (
  id integer primary key autoincrement, session text not null, run text not null,
  kind text not null, data text not null, key text not null, due integer, taken integer,
  at integer not null
);
create unique index gyre_inbox_key on gyre_inbox (session, key);
create index gyre_inbox_waiting on gyre_inbox (session, id) where taken is null;
create table gyre_tenant (id text primary key, max_running integer, max_ready integer) without rowid;
`,
  `
create table gyre_header (
  session text primary key, cwd text not null, source text, created_at integer not null
) without rowid;
create index gyre_header_cwd on gyre_header (cwd, created_at, session);
create index gyre_entry_title on gyre_entry (session, seq) where type = 'title';
`,
  `
create table gyre_schedule (
  id text primary key, spec text not null, start text not null, next_at integer not null,
  is_paused integer not null default 0, last_at integer, last_run text, error text
) without rowid;
create index gyre_schedule_next on gyre_schedule (next_at) where is_paused = 0;
alter table gyre_run add column priority integer not null default 0;
alter table gyre_run add column budget text;
`,
  "create table gyre_watch (watcher text primary key, address text not null) without rowid;",
  "alter table gyre_run add column span text",
  `
create table gyre_tool_client (
  session text not null, client text not null, nth integer not null, holder text not null,
  keeps_calls integer not null, tools text not null, until integer not null,
  primary key (session, client)
) without rowid;
create index gyre_tool_client_holder on gyre_tool_client (holder);
alter table gyre_session add column tool_changes integer not null default 0;
`,
  // What lists show, kept by the database: also where a program of an older version writes. The role
  // of a message stands at the beginning of its entry.
  `
create index gyre_header_created on gyre_header (created_at, session);
alter table gyre_header add column title text;
alter table gyre_header add column prompt text;
alter table gyre_header add column archived integer not null default 0;
update gyre_header set
  title = (select e.data from gyre_entry e where e.session = gyre_header.session
    and e.type = 'title' order by e.seq desc limit 1),
  prompt = (select substr(e.data, 1, 65536) from gyre_entry e where e.session = gyre_header.session
    and e.type = 'message' and substr(e.data, 1, 200) like '%"role":"user"%' order by e.seq limit 1);
create trigger gyre_entry_title_new after insert on gyre_entry when new.type = 'title' begin
  update gyre_header set title = new.data where session = new.session;
end;
create trigger gyre_entry_archive after insert on gyre_entry when new.type = 'archive' begin
  update gyre_header set archived = new.data like '%"archived":true%' where session = new.session;
end;
create trigger gyre_entry_said after insert on gyre_entry when new.type = 'message' begin
  update gyre_header set archived = 0 where session = new.session and archived = 1;
  update gyre_header set prompt = substr(new.data, 1, 65536) where session = new.session
    and prompt is null and substr(new.data, 1, 200) like '%"role":"user"%';
end;
`,
  `
create table gyre_file (sha256 text primary key, data blob not null);
create table gyre_session_file (
  session text not null, sha256 text not null, primary key (session, sha256)
) without rowid;
create index gyre_session_file_hash on gyre_session_file (sha256);
`,
  // When a session that lists have was last written to, in their order. The row of the session is
  // written with its entries anyway; that of its header may be long. The indexes of headers have all
  // that sessions are left out by, so that a list reads the headers of those alone that it shows.
  `
alter table gyre_session add column written_at integer;
update gyre_session set written_at = coalesce(
  (select e.at from gyre_entry e where e.session = gyre_session.id and e.seq = gyre_session.seq),
  (select h.created_at from gyre_header h where h.session = gyre_session.id))
  where exists (select 1 from gyre_header h where h.session = gyre_session.id);
create index gyre_session_written on gyre_session (tenant, written_at, id)
  where written_at is not null;
drop index gyre_header_cwd;
drop index gyre_header_created;
create index gyre_header_cwd on gyre_header (cwd, created_at, session, archived);
create index gyre_header_created on gyre_header (created_at, session, archived, cwd);
create index gyre_header_listed on gyre_header (session, created_at, archived, cwd);
create trigger gyre_header_new after insert on gyre_header begin
  update gyre_session set written_at = new.created_at where id = new.session;
end;
create trigger gyre_entry_written after insert on gyre_entry begin
  update gyre_session set written_at = new.at where id = new.session and written_at is not null;
end;
`,
];

/** Brings the tables up to date. Throws where they are of a version that this one cannot use. */
export function migrate(driver: Driver, path: string, isAllowed: boolean): void {
  const version = readVersion(driver);
  if (version > SCHEMA_VERSION) {
    const [oldest] = driver
      .prepare("select value from gyre_meta where key = 'oldest_schema'")
      .all() as { value: string }[];
    if (Number(oldest?.value ?? version) <= SCHEMA_VERSION) return;
    throw new DurableError(
      "schema_newer",
      `The tables of ${path} are of version ${version}, this package knows version ${SCHEMA_VERSION}: update @gyre/durable.`,
    );
  }
  if (version === SCHEMA_VERSION) return;
  if (!isAllowed) {
    throw new DurableError(
      "schema_older",
      version === 0
        ? `There are no runs in ${path}: it has no tables of them. To make them: open it once with { migrate: true }.`
        : `The tables of ${path} are of version ${version}, this package needs version ${SCHEMA_VERSION}: open it once with { migrate: true }.`,
    );
  }
  driver.exec("begin immediate");
  try {
    // Another process may have been first.
    for (const sql of MIGRATIONS.slice(readVersion(driver))) driver.exec(sql);
    driver.exec(`pragma user_version = ${SCHEMA_VERSION}`);
    driver.exec("commit");
  } catch (error) {
    driver.exec("rollback");
    throw error;
  }
}

function readVersion(driver: Driver): number {
  const [row] = driver.prepare("pragma user_version").all() as { user_version: number }[];
  return row?.user_version ?? 0;
}
