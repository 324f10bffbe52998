import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as later } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Run, Runs } from "@gyre/durable";
import { type BackendName, openBackend, openBackendRuns } from "./common/backend.ts";
import { printFigure, takeMedian } from "./common/figures.ts";

const ROUNDS = 50;
/** An engine has its own way to a worker. */
const APPROVAL_MS: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 50, postgres: 50, dbos: 150, restate: 100 },
};
const ABORT_MS = 100;
const LOOK_MS = 5;

/** From a decision to the tool, and from an abort to the end of the run, both in another process. */
export async function signals(name: BackendName): Promise<boolean> {
  const { approvalMs, abortMs } = await measureSignals(name);
  const approval = printFigure(
    `signals: ${name}, ${ROUNDS} approvals from another process: p50 to the tool`,
    approvalMs,
    APPROVAL_MS[name],
  );
  return (
    printFigure(
      `signals: ${name}, ${ROUNDS} aborts of an answer from another process: p50 to the end`,
      abortMs,
      ABORT_MS,
    ) && approval
  );
}

export async function measureSignals(
  name: BackendName,
): Promise<{ readonly approvalMs: number; readonly abortMs: number }> {
  const backend = await openBackend(name, { sync: true });
  const url = await backend.create();
  const runs = await openBackendRuns(backend, url);
  const args = [url, JSON.stringify(backend.engine(url) ?? null)];
  const worker = fork(fileURLToPath(new URL("worker.js", import.meta.url)), args);
  try {
    await receive(worker, "ready");
    const approvals: number[] = [];
    const aborts: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      approvals.push(await approve(runs, worker));
      aborts.push(await abort(runs, worker));
    }
    return { approvalMs: takeMedian(approvals), abortMs: takeMedian(aborts) };
  } finally {
    worker.kill("SIGKILL");
    await runs.close();
    await backend.remove();
  }
}

async function approve(runs: Runs, worker: ChildProcess): Promise<number> {
  const run = await runs.start("Sign.", { agent: "signer" });
  await waitFor(run, "waiting");
  const began = receive(worker, "tool");
  const sentAt = now();
  await run.decide({ "sign-1": { type: "approve" } });
  const at = await began;
  await run.result();
  return at - sentAt;
}

async function abort(runs: Runs, worker: ChildProcess): Promise<number> {
  const asked = receive(worker, "model");
  const run = await runs.start("Talk.", { agent: "talker" });
  await asked;
  const sentAt = now();
  await run.abort();
  await run.result();
  return now() - sentAt;
}

async function waitFor(run: Run, status: string): Promise<void> {
  while ((await run.info()).status !== status) await later(LOOK_MS);
}

async function receive(worker: ChildProcess, what: string): Promise<number> {
  for (;;) {
    const [message] = (await once(worker, "message")) as [{ what: string; at: number }];
    if (message.what === what) return message.at;
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
