import type { AgentStop } from "@gyre/agent";
import type { RunRow, WorkerRow } from "../contract/store.ts";
import type { RunInfo, RunSummary, WorkerInfo } from "../contract/types.ts";

export function toSummary(row: RunRow): RunSummary {
  const { id, session, agent, tenant, pool, status, stop, error, turns, usage } = row;
  return {
    ...{ id, session, agent, tenant, pool, status, turns },
    usage: JSON.parse(usage),
    ...(stop !== undefined && { stop: stop as AgentStop }),
    ...(error !== undefined && { error }),
    startedAt: new Date(row.startedAt),
    ...(row.endedAt !== undefined && { endedAt: new Date(row.endedAt) }),
  };
}

export function toInfo(row: RunRow, stuck: string | undefined): RunInfo {
  const { version, activations, deaths, pending, parent, meta, worker } = row;
  return {
    ...toSummary(row),
    ...{ version, activations, deaths },
    pending: pending === undefined ? [] : JSON.parse(pending),
    meta: meta === undefined ? {} : JSON.parse(meta),
    ...(worker !== undefined && { worker }),
    ...(parent && { parent }),
    ...(stuck !== undefined && { stuck }),
  };
}

export function toWorkerInfo({ startedAt, ...worker }: WorkerRow): WorkerInfo {
  return { ...worker, startedAt: new Date(startedAt) };
}
