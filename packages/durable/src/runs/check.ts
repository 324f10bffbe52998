import type { RunRow, WorkerRow } from "../contract/store.ts";
import type { StoreCheck } from "../contract/types.ts";
import type { Runs } from "./runs.ts";
import { explainStuck, isWorking } from "./stuck.ts";

/** Runs that are looked at. */
const MOST = 1_000;
/** A run that has waited longer for a worker than this needs more of them. */
const LONG_READY_MS = 60_000;

/** What workers and runs look like from outside. */
export async function checkWork({ store }: Runs): Promise<StoreCheck[]> {
  const workers = (await store.listWorkers()).filter(isWorking);
  const statuses = ["ready", "aside"] as const;
  const open = await store.listRuns({ statuses, limit: MOST });
  return [checkWorkers(workers), checkReady(open, workers), ...checkStuck(open, workers)];
}

function checkWorkers(workers: readonly WorkerRow[]): StoreCheck {
  const dead = workers.filter(({ leaseMs }) => leaseMs < 0);
  const name = "workers";
  if (workers.length === 0) return { name, status: "warning", message: "none: start one." };
  if (dead.length === 0) return { name, status: "ok", message: `${workers.length} alive` };
  const ids = dead.map(({ id }) => id).join(", ");
  return {
    name,
    status: "warning",
    message: `${dead.length} of ${workers.length} gave no sign of life within their lease: ${ids}. Another worker takes over what they had; without one, start it.`,
  };
}

function checkReady(open: readonly RunRow[], workers: readonly WorkerRow[]): StoreCheck {
  const name = "ready";
  const ready = open.filter(
    (run) =>
      run.status === "ready" &&
      run.readyAt === undefined &&
      explainStuck(run, workers) === undefined,
  );
  const oldest = Math.min(...ready.map(({ startedAt }) => startedAt));
  if (ready.length === 0) return { name, status: "ok", message: "no run waits for a worker" };
  const seconds = Math.round((Date.now() - oldest) / 1_000);
  const message = `${ready.length} wait for a worker, the oldest was started ${seconds} s ago`;
  return Date.now() - oldest < LONG_READY_MS
    ? { name, status: "ok", message }
    : { name, status: "warning", message: `${message}: start more workers.` };
}

function checkStuck(open: readonly RunRow[], workers: readonly WorkerRow[]): StoreCheck[] {
  const reasons = new Map<string, string[]>();
  for (const run of open) {
    const stuck = explainStuck(run, workers);
    if (stuck !== undefined) reasons.set(stuck, [...(reasons.get(stuck) ?? []), run.id]);
  }
  return [...reasons].map(([reason, [first = "", ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return { name: "stuck", status: "problem", message: `Run "${first}"${more}: ${reason}` };
  });
}
