import type { Limits } from "@gyre/agent";
import { totalTokens, type Usage } from "@gyre/ai";
import type { FamilyRow, RunRow, Store } from "../contract/store.ts";

/** Limits that a run shares with the runs that work for it. Time is not: they work at once. */
export type Budget = Pick<Limits, "maxTotalTokens" | "maxCostUsd">;

/** What runs that work for this one spend from; nothing where it has no such limit. */
export function toBudget({ maxTotalTokens, maxCostUsd }: Limits): Budget | undefined {
  if (maxTotalTokens === undefined && maxCostUsd === undefined) return undefined;
  return {
    ...(maxTotalTokens !== undefined && { maxTotalTokens }),
    ...(maxCostUsd !== undefined && { maxCostUsd }),
  };
}

/**
 * What is left for a run of the limits of the runs that it works for. `usage` is what it has spent
 * itself, which the store may not have yet.
 */
export function computeShared(family: readonly FamilyRow[], run: string, usage: Usage): Budget {
  const left: Budget = {};
  const byId = new Map(family.map((row) => [row.id, row]));
  for (let row = byId.get(run); row?.parent !== undefined; row = byId.get(row.parent)) {
    if (row.budget === undefined) continue;
    const budget: Budget = JSON.parse(row.budget);
    const spent = sumSpent(family, row.parent, run, usage);
    for (const name of ["maxTotalTokens", "maxCostUsd"] as const) {
      const most = budget[name];
      if (most !== undefined) left[name] = Math.min(most - spent[name], left[name] ?? Infinity);
    }
  }
  return left;
}

/** The same, read from the store. Others spend from it meanwhile. */
export async function readShared(store: Store, row: RunRow, usage: Usage): Promise<Budget> {
  if (row.budget === undefined) return {};
  return computeShared(await store.readFamily(row.id), row.id, usage);
}

/** What a run and those that work for it have spent. */
function sumSpent(
  family: readonly FamilyRow[],
  id: string,
  run: string,
  usage: Usage,
): Required<Budget> {
  const total = { maxTotalTokens: 0, maxCostUsd: 0 };
  for (const row of family) {
    const isOwn = row.id === id;
    if (!isOwn && row.parent !== id) continue;
    const own: Usage = row.id === run ? usage : JSON.parse(row.usage);
    const spent = isOwn
      ? { maxTotalTokens: totalTokens(own), maxCostUsd: own.cost?.total ?? 0 }
      : sumSpent(family, row.id, run, usage);
    total.maxTotalTokens += spent.maxTotalTokens;
    total.maxCostUsd += spent.maxCostUsd;
  }
  return total;
}
