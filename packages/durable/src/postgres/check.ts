import type { StoreCheck } from "../contract/types.ts";
import type { Database } from "./driver/database.ts";
import type { Notifier } from "./notifier.ts";

const PROBE_MS = 3_000;
/** Clocks further apart than this make times of two machines hard to compare. */
const MAX_SKEW_MS = 2_000;
/** Below this, dead rows cost nothing. */
const MANY_DEAD_ROWS = 10_000;

/** Looks at a database: its version, its clock, notifications, replicas and dead rows. */
export async function checkPostgres(database: Database, notifier: Notifier): Promise<StoreCheck[]> {
  return [
    await checkVersion(database),
    await checkClock(database),
    checkNotifications(await notifier.probe(PROBE_MS)),
    await checkReplicas(database),
    await checkDeadRows(database),
  ];
}

async function checkVersion(database: Database): Promise<StoreCheck> {
  const row = await database.first<{ version: string; schema: string }>(
    `select current_setting('server_version') as version,
      (select value from gyre_meta where key = 'schema') as schema`,
  );
  const message = `PostgreSQL ${row?.version ?? "?"} at ${database.place}, tables of version ${row?.schema ?? "?"}`;
  return { name: "store", status: "ok", message };
}

async function checkClock(database: Database): Promise<StoreCheck> {
  const before = Date.now();
  const row = await database.first<{ now: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::bigint as now",
  );
  const skew = Math.round((row?.now ?? 0) - (before + Date.now()) / 2);
  const message = `the database's is ${Math.abs(skew)} ms ${skew < 0 ? "behind" : "ahead of"} this machine's`;
  return Math.abs(skew) < MAX_SKEW_MS
    ? { name: "clock", status: "ok", message }
    : {
        name: "clock",
        status: "warning",
        message: `${message}. Leases go by the database's alone and are safe; set the clocks so that times can be compared.`,
      };
}

function checkNotifications(hasArrived: boolean): StoreCheck {
  return hasArrived
    ? { name: "notifications", status: "ok", message: "arrive" }
    : {
        name: "notifications",
        status: "warning",
        message: `none arrived within ${PROBE_MS / 1_000} s, as behind a pooler of transactions: workers look once a second instead. Give them a direct address as listenUrl.`,
      };
}

async function checkReplicas(database: Database): Promise<StoreCheck> {
  const name = "replicas";
  const row = await database.first<{ async: number; all: number }>(
    `select count(*) filter (where sync_state = 'async') as async, count(*) as all
      from pg_stat_replication`,
  );
  const { async: behind = 0, all = 0 } = row ?? {};
  if (all === 0) return { name, status: "ok", message: "none that this user can see" };
  if (behind === 0) return { name, status: "ok", message: `${all}, synchronous` };
  return {
    name,
    status: "warning",
    message: `${behind} of ${all} are asynchronous: a fail-over to one loses the steps that it has not received. Set synchronous_standby_names where that matters.`,
  };
}

async function checkDeadRows(database: Database): Promise<StoreCheck> {
  const name = "tables";
  const rows = await database.all<{ relname: string; dead: number; live: number; bytes: number }>(
    `select relname, n_dead_tup as dead, n_live_tup as live, pg_total_relation_size(relid) as bytes
      from pg_stat_user_tables where relname like 'gyre\\_%' order by relname`,
  );
  const megabytes = Math.ceil(rows.reduce((sum, { bytes }) => sum + bytes, 0) / 1_000_000);
  const full = rows.filter(({ dead, live }) => dead > MANY_DEAD_ROWS && dead > live);
  if (full.length === 0) return { name, status: "ok", message: `${megabytes} MB with indexes` };
  const names = full.map(({ relname, dead }) => `${relname} (${dead})`).join(", ");
  return {
    name,
    status: "warning",
    message: `More rows are dead than alive in ${names}: check that autovacuum runs, and that no transaction has been open for long.`,
  };
}
