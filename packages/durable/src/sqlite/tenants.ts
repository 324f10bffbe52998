import type { TenantRow } from "../contract/store.ts";
import type { Statements } from "./connection.ts";

export function countSessions(db: Statements, tenant: string, status: "ready" | "running"): number {
  const row = db.first<{ n: number }>(
    "select count(*) as n from gyre_session where tenant = ? and status = ?",
    tenant,
    status,
  );
  return row?.n ?? 0;
}

/** How many more each tenant may have running, of those that have a limit. */
export function readLeft(db: Statements): Map<string, number> {
  const limits = db.all<{ id: string; max_running: number }>(
    "select id, max_running from gyre_tenant where max_running is not null",
  );
  return new Map(
    limits.map(({ id, max_running: most }) => [id, most - countSessions(db, id, "running")]),
  );
}

export function setTenant(db: Statements, { id, maxRunning, maxReady }: TenantRow): void {
  db.run(
    "insert or replace into gyre_tenant values (?, ?, ?)",
    ...[id, maxRunning ?? null, maxReady ?? null],
  );
}
