import { checkProcess, type ProcessIdentity } from "@gyre/sessions";
import type { NewWorker, SweptSession, WorkerRow } from "../contract/store.ts";
import { explainAside, type SessionRecord } from "../sql/rows.ts";
import type { Statements } from "./connection.ts";

interface WorkerRecord {
  id: string;
  lease: number;
  host: string;
  pid: number;
  process: string;
  agents: string;
  pools: string;
  started_at: number;
  live: number;
}

/** How long after its lease a worker may give no sign of life whose process is there and runs. */
const MAX_STALL_MS = 10_000;

function readWorkers(db: Statements): WorkerRecord[] {
  return db.all<WorkerRecord>("select * from gyre_worker");
}

export function removeWorker(db: Statements, worker: string, maxDeaths: number): SweptSession[] {
  const now = Date.now();
  db.run("delete from gyre_worker where id = ?", worker);
  const sessions = db.all<SessionRecord>(
    "select * from gyre_session where owner = ? and status = 'running'",
    worker,
  );
  return sessions.map(({ id, deaths, run }) => {
    // Once more than it takes to be claimed alone.
    const status = deaths >= maxDeaths ? "aside" : "ready";
    db.run(
      "update gyre_session set status = ?, deaths = deaths + 1, ready_at = ?, due = null where id = ?",
      ...[status, now, id],
    );
    if (status === "aside") {
      db.run("update gyre_run set error = ? where id = ?", explainAside(deaths + 1), run);
    }
    return { session: id, worker, status };
  });
}

export function registerWorker(
  db: Statements,
  own: ProcessIdentity,
  { id, agents, pools, leaseMs }: NewWorker,
): void {
  db.run(
    `insert into gyre_worker (id, lease, host, pid, process, agents, pools, started_at)
      values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set lease = excluded.lease,
      agents = excluded.agents, pools = excluded.pools`,
    ...[id, readMonotonic() + leaseMs, own.host, own.pid, JSON.stringify(own)],
    ...[JSON.stringify(agents), JSON.stringify(pools), Date.now()],
  );
}

export function renewLease(db: Statements, worker: string, leaseMs: number, live: number): boolean {
  const renewed = db.run(
    "update gyre_worker set lease = ?, live = ? where id = ?",
    ...[readMonotonic() + leaseMs, live, worker],
  );
  return renewed > 0;
}

export function unregisterWorker(db: Statements, worker: string): void {
  db.run("delete from gyre_worker where id = ?", worker);
  db.run(
    `update gyre_session set status = 'ready', ready_at = ?, due = null where owner = ? and status = 'running'`,
    ...[Date.now(), worker],
  );
}

export function listWorkers(db: Statements): WorkerRow[] {
  return readWorkers(db).map((record) => ({
    id: record.id,
    host: record.host,
    pid: record.pid,
    agents: JSON.parse(record.agents),
    pools: JSON.parse(record.pools),
    live: record.live,
    startedAt: record.started_at,
    leaseMs: Math.round(record.lease - readMonotonic()),
  }));
}

/** The workers that are dead, seen from a process that is alive. */
export function findDead(db: Statements, own: ProcessIdentity, hasExpired: boolean): string[] {
  const dead = readWorkers(db).filter(({ process, lease }) => {
    const state = checkProcess(JSON.parse(process), own);
    // A process that runs may be busy with something that gives no other work a turn.
    const overMs = readMonotonic() - lease - (state === "running" ? MAX_STALL_MS : 0);
    return state === "gone" || (hasExpired && overMs > 0);
  });
  return dead.map(({ id }) => id);
}

/** Milliseconds that no change of the clock moves, the same for all processes of a machine. */
function readMonotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
