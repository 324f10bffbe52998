import type { NewRun, StartOutcome } from "../contract/store.ts";
import { entryValues, marks, type SessionRecord } from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";
import { INSERT_ITEM, WAKE } from "./inbox.ts";
import { INSERT_ENTRY } from "./log.ts";
import { countSessions } from "./tenants.ts";

export function startRun(db: Statements, run: NewRun): StartOutcome {
  const known = db.first<{ digest: string }>("select digest from gyre_run where id = ?", run.id);
  if (known) return known.digest === run.digest ? "known" : "other";
  // A run waits for its child, which so is never refused.
  if (!run.parent && isFull(db, run.tenant)) return "full";
  const now = Date.now();
  const session = db.first<SessionRecord>("select * from gyre_session where id = ?", run.session);
  // One that a program has made belongs to the first agent that is asked in it.
  if (session && session.agent !== run.agent && session.agent !== "") return "agent";
  if (session && session.tenant !== run.tenant) return "tenant";
  const { pool = session?.pool ?? "" } = run;
  if (session && pool !== session.pool && isBound(db, run.session)) return "pool";
  const isOpen = !session || session.status === "idle";
  if (!isOpen && run.ifIdle) return "busy";
  insertRun(db, { ...run, pool }, isOpen ? (session?.seq ?? 0) + 1 : null, now);
  if (!isOpen) {
    const data = JSON.stringify(run.prompt);
    const due = run.at ?? null;
    db.run(INSERT_ITEM, run.session, run.id, "prompt", data, `prompt:${run.id}`, due, now);
    db.run(WAKE, 0, 0, now, run.session);
    db.run("update gyre_session set agent = ? where id = ?", run.agent, run.session);
    return "queued";
  }
  let { seq, leaf } = session ?? { seq: 0, leaf: null };
  for (const data of run.prompt) {
    const row = { id: ++seq, parentId: leaf, type: "message" as const, timestamp: now, data };
    db.run(INSERT_ENTRY, ...entryValues(run.session, session?.token ?? 0, row));
    leaf = seq;
  }
  const due = run.at ?? null;
  if (session) {
    db.run(
      `update gyre_session set status = 'ready', run = ?, version = '', agent = ?, seq = ?, leaf = ?,
        pool = ?, priority = ?, ready_at = ?, due = ?, deaths = 0, wakes = wakes + 1, updated_at = ? where id = ?`,
      ...[run.id, run.agent, seq, leaf, pool, run.priority, now, due, now, run.session],
    );
  } else {
    db.run(
      `insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, wakes, ready_at, due,
        priority, run, created_at, updated_at) values (?, ?, ?, ?, 'ready', ?, ?, 1, ?, ?, ?, ?, ?, ?)`,
      ...[run.session, run.tenant, pool, run.agent, seq, leaf],
      ...[now, due, run.priority, run.id, now, now],
    );
  }
  return "started";
}

/** Whether a session stays with its pool, and outlives its runs: a program has made it. */
export function isBound(db: Statements, session: string): boolean {
  return db.first("select 1 from gyre_header where session = ?", session) !== undefined;
}

function insertRun(
  db: Statements,
  run: NewRun & { pool: string },
  firstSeq: number | null,
  now: number,
): void {
  db.run(
    `insert into gyre_run (id, session, digest, agent, tenant, pool, first_seq, parent, parent_call,
      traceparent, limits, output, meta, priority, budget, started_at) values (${marks(16)})`,
    ...[run.id, run.session, run.digest, run.agent, run.tenant, run.pool, firstSeq],
    ...[run.parent?.run ?? null, run.parent?.call ?? null, run.traceparent ?? null],
    ...[run.limits ?? null, run.output ?? null, run.meta ?? null],
    ...[run.priority, run.budget ?? null, now],
  );
}

function isFull(db: Statements, tenant: string): boolean {
  const limits = db.first<{ max_ready: number | null }>(
    "select max_ready from gyre_tenant where id = ?",
    tenant,
  );
  const most = limits?.max_ready ?? Infinity;
  return most < Infinity && countSessions(db, tenant, "ready") >= most;
}
