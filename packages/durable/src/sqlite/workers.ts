import { checkProcess, type ProcessIdentity } from "@gyre/sessions";
import type { NewWorker, SweptSession, WorkerRow } from "../contract/store.ts";
import { explainAside, type SessionRecord } from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";
import { hasPrompt } from "./inbox.ts";

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

/** A worker's process, and how long after its lease it may give no sign of life while that runs. */
interface WorkerProcess extends ProcessIdentity {
  graceMs?: number;
  leaseMs?: number;
}

const DEFAULT_GRACE_MS = 10_000;
const DEFAULT_LEASE_MS = 3_000;

function readWorkers(db: Statements): WorkerRecord[] {
  return db.all<WorkerRecord>("select * from gyre_worker");
}

export function removeWorker(
  db: Statements,
  { worker, why }: DeadWorker,
  maxDeaths: number,
): SweptSession[] {
  db.run("delete from gyre_worker where id = ?", worker);
  const sessions = db.all<SessionRecord>(
    "select * from gyre_session where coalesce(owner, '') = ? and status = 'running'",
    worker,
  );
  return removeOwner(db, sessions, maxDeaths, why);
}

/** Makes sessions ready whose worker is dead. */
export function removeOwner(
  db: Statements,
  sessions: readonly SessionRecord[],
  maxDeaths: number,
  why: SweptSession["why"],
): SweptSession[] {
  const now = Date.now();
  return sessions.flatMap(({ id, owner, deaths, run }) => {
    if (run === null && !hasPrompt(db, id)) {
      // A program had it, and nothing waits for it.
      db.run("update gyre_session set status = 'idle', due = null where id = ?", id);
      return [];
    }
    // Once more than it takes to be claimed alone.
    const status = deaths >= maxDeaths ? "aside" : "ready";
    db.run(
      "update gyre_session set status = ?, deaths = deaths + 1, ready_at = ?, due = null where id = ?",
      ...[status, now, id],
    );
    if (status === "aside") {
      db.run("update gyre_run set error = ? where id = ?", explainAside(deaths + 1), run);
    }
    return [{ session: id, worker: owner ?? "", status, why }];
  });
}

export function registerWorker(
  db: Statements,
  own: ProcessIdentity,
  { id, agents, pools, leaseMs, stallMs = leaseMs + DEFAULT_GRACE_MS }: NewWorker,
): void {
  const process: WorkerProcess = { ...own, leaseMs, graceMs: Math.max(0, stallMs - leaseMs) };
  db.run(
    `insert into gyre_worker (id, lease, host, pid, process, agents, pools, started_at)
      values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set lease = excluded.lease,
      agents = excluded.agents, pools = excluded.pools, process = excluded.process`,
    ...[id, readMonotonic() + leaseMs, own.host, own.pid, JSON.stringify(process)],
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

export type DeadWorker = Pick<SweptSession, "worker" | "why">;

/** The leases of workers, and since when each is as it is. */
export type SeenLeases = Map<string, { readonly lease: number; readonly at: number }>;

/** The workers that are dead, seen from a process that is alive and looks again and again. */
export function findDead(
  db: Statements,
  own: ProcessIdentity,
  hasExpired: boolean,
  seen: SeenLeases,
): DeadWorker[] {
  const now = readMonotonic();
  const workers = readWorkers(db);
  const ids = new Set(workers.map(({ id }) => id));
  for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id);
  const dead = workers.flatMap(({ id, lease, process: text }): DeadWorker[] => {
    const process: WorkerProcess = JSON.parse(text);
    const { graceMs = DEFAULT_GRACE_MS, leaseMs = DEFAULT_LEASE_MS } = process;
    const known = seen.get(id);
    const sign = known?.lease === lease ? known : { lease, at: now };
    seen.set(id, sign);
    const state = checkProcess(process, own);
    // The times of another machine, or of one that was started again, mean nothing here.
    const sinceMs = Math.max(now - lease, now - sign.at - Math.max(0, leaseMs));
    // A process that runs may be busy with something that gives no other work a turn.
    const overMs = sinceMs - (state === "running" ? graceMs : 0);
    if (state === "gone") return [{ worker: id, why: "gone" }];
    return hasExpired && overMs > 0 ? [{ worker: id, why: "expired" }] : [];
  });
  return [...dead, ...findUnknown(db)];
}

/** Workers that have something, and are not there: a hand, or a loss of data, has removed them. */
function findUnknown(db: Statements): DeadWorker[] {
  const rows = db.all<{ owner: string | null }>(
    `select distinct owner from gyre_session s where status = 'running'
      and not exists (select 1 from gyre_worker w where w.id = s.owner)`,
  );
  return rows.map(({ owner }) => ({ worker: owner ?? "", why: "gone" }));
}

/** Milliseconds that no change of the clock moves, the same for all processes of a machine. */
function readMonotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
