import type { AppendOutcome, Change, Fence, Finish, NewItem, RunEnd } from "../contract/store.ts";
import {
  entryValues,
  isChild,
  refuseChild,
  type RunRecord,
  type SessionRecord,
} from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";
import { INSERT_ITEM, sendItem } from "./inbox.ts";
import { INSERT_ENTRY } from "./log.ts";
import { startRun } from "./start.ts";

/** The next run of a session says which workers may have it, and how soon. */
const TAKE_PLACE = `update gyre_session as s set pool = next.pool, priority = next.priority from (
    select r.pool, r.priority from gyre_inbox i join gyre_run r on r.id = i.run
    where i.session = ? and i.taken is null and i.kind = 'prompt' and i.run <> ?
    order by i.due is not null and i.due > ?, i.id limit 1) next where s.id = ?`;
const OWN = "id = ? and token = ? and claim = ? and owner = ? and status = 'running' and seq = ?";

export function appendChange(db: Statements, fence: Fence, change: Change): AppendOutcome {
  const { session, token, claim, worker } = fence;
  const { seq, entries, leaf } = change;
  const changed = db.run(
    `update gyre_session set seq = ?, leaf = ?, deaths = 0, updated_at = ? where ${OWN}`,
    ...[seq + entries.length, leaf, Date.now()],
    ...[session, token, claim, worker, seq],
  );
  if (changed === 0) return explainMiss(db, fence, change, "running");
  addEntries(db, fence, change);
  return "done";
}

/** Why a change met no row. With `status`: the claim is held still. */
function explainMiss(
  db: Statements,
  { session, token, claim, worker }: Fence,
  { seq, entries }: Change,
  status?: "running",
): "repeated" | "fenced" {
  const row = db.first<SessionRecord>("select * from gyre_session where id = ?", session);
  const isHeld = row?.status === "running" && row.owner === worker;
  const isOurs = row?.token === token && row.claim === claim && (isHeld || !status);
  return isOurs && entries.length > 0 && row.seq === seq + entries.length ? "repeated" : "fenced";
}

function addEntries(db: Statements, { session, token }: Fence, change: Change): void {
  const { entries, taken = [], opens, progress, seq } = change;
  for (const row of entries) db.run(INSERT_ENTRY, ...entryValues(session, token, row));
  for (const id of taken) db.run("update gyre_inbox set taken = ? where id = ?", token, id);
  if (opens) {
    db.run(
      "update gyre_session set run = ?, version = ? where id = ?",
      opens.run,
      opens.version,
      session,
    );
    db.run(
      `update gyre_run set first_seq = coalesce(first_seq, ?), version = ?,
        activations = max(activations, 1) where id = ?`,
      seq + 1,
      opens.version,
      opens.run,
    );
  }
  if (progress) {
    db.run(
      `update gyre_run set turns = ?, usage = ?, active_ms = ?, pending = null, span = coalesce(?, span)
        where id = (select run from gyre_session where id = ?)`,
      ...[progress.turns, progress.usage, progress.activeMs, progress.span ?? null, session],
    );
  }
}

export function finishClaim(
  db: Statements,
  fence: Fence,
  change: Change,
  finish: Finish,
  woken: Set<string>,
): AppendOutcome | "woken" {
  const { session, token, claim, worker } = fence;
  const { seen, status, end, timers = [], children = [] } = finish;
  const row = db.first<SessionRecord>(
    `select * from gyre_session where ${OWN}`,
    ...[session, token, claim, worker, change.seq],
  );
  if (!row) return explainMiss(db, fence, change);
  if (seen !== undefined && row.wakes !== seen) return "woken";
  addEntries(db, fence, change);
  const run = change.opens?.run ?? row.run;
  const now = Date.now();
  const dues = timers.map(({ key, data, due }) => {
    const at = "at" in due ? due.at : now + due.inMs;
    db.run(INSERT_ITEM, session, run ?? "", "decision", data, key, at, now);
    return at;
  });
  if (finish.readyInMs !== undefined) dues.push(now + finish.readyInMs);
  const seq = change.seq + change.entries.length;
  db.run(
    `update gyre_session set status = ?, owner = null, seq = ?, leaf = ?, due = ?, ready_at = ?,
      run = case when ? then null else run end,
      version = case when ? then '' else version end,
      deaths = case when ? then 0 else deaths end, updated_at = ? where id = ?`,
    ...[status, seq, change.leaf, dues.length > 0 ? Math.min(...dues) : null, now],
    ...[end ? 1 : 0, end ? 1 : 0, change.entries.length > 0 ? 1 : 0, now, session],
  );
  if (end || run === null) db.run(TAKE_PLACE, session, end?.run ?? "", now, session);
  if (run !== null && !end && finish.pending !== undefined) {
    db.run("update gyre_run set pending = ? where id = ?", finish.pending, run);
  }
  if (status !== "idle") woken.add(session);
  for (const child of children) {
    const outcome = startRun(db, child);
    if (outcome === "started") woken.add(child.session);
    if (outcome === "started" || outcome === "queued" || run === null) continue;
    const found = db.first<RunRecord>("select * from gyre_run where id = ?", child.id);
    if (!isChild(child, found)) sendItem(db, { run, ...refuseChild(child) });
  }
  if (end) endRun(db, end, seq, now, woken);
  return "done";
}

function endRun(
  db: Statements,
  { run, stop, error, answer, report, abortsChildren }: RunEnd,
  seq: number,
  now: number,
  woken: Set<string>,
): void {
  db.run(
    `update gyre_run set stop = ?, error = ?, answer = ?, pending = null, last_seq = ?, ended_at = ?
      where id = ?`,
    ...[stop, error ?? null, answer ?? null, seq, now, run],
  );
  // Messages wait: the run may be retried.
  db.run(
    `update gyre_inbox set taken = 0 where run = ? and taken is null
      and session = (select session from gyre_run where id = ?) and kind in ('decision', 'abort', 'answer')`,
    ...[run, run],
  );
  const send = (item: NewItem): void => {
    const { outcome, session } = sendItem(db, item);
    if (outcome === "sent" && session !== undefined) woken.add(session);
  };
  if (report) send({ kind: "decision", ...report });
  if (!abortsChildren) return;
  const children = db.all<{ id: string }>(
    "select id from gyre_run where parent = ? and ended_at is null",
    run,
  );
  for (const { id } of children) send({ run: id, kind: "abort", data: "{}", key: `abort:${run}` });
}
