import type { RunRow, WorkerRow } from "../contract/store.ts";

/** Whether a worker works on runs: a program that has sessions open is one without agents. */
export function isWorking({ agents }: WorkerRow): boolean {
  return agents.length > 0;
}

/** Why no worker will claim a run as things are, and what to do; nothing where one will. */
export function explainStuck(run: RunRow, all: readonly WorkerRow[]): string | undefined {
  const workers = all.filter(isWorking);
  const { id, agent, pool, version, status } = run;
  if (status === "aside") {
    return `${run.error ?? "It was set aside."} Fix what ends them, then call retry() of run "${id}".`;
  }
  if (status !== "ready" || run.readyAt !== undefined) return undefined;
  if (workers.length === 0) return "There is no worker: start one.";
  const knowing = workers.filter(({ agents }) => agents.some(({ name }) => name === agent));
  if (knowing.length === 0) {
    const names = [...new Set(workers.flatMap(({ agents }) => agents.map(({ name }) => name)))];
    return `No worker knows the agent "${agent}": start one that has it. Workers know ${names.join(", ")}.`;
  }
  if (!knowing.some(({ pools }) => pools.includes(pool))) {
    return `No worker of pool "${pool}" knows the agent "${agent}": start one with { pools: [${JSON.stringify(pool)}] }.`;
  }
  const isAccepted = knowing.some(({ agents }) =>
    agents.some(({ name, refuses = [] }) => name === agent && !refuses.includes(version)),
  );
  if (isAccepted) return undefined;
  return `No worker accepts version ${version} of the agent "${agent}": start one of that version.`;
}
