import { type ChaosReport, type Failure, runChaos } from "@gyre/durable/testing";
import { type BackendName, openBackend } from "./common/backend.ts";

export interface ChaosCommand {
  readonly backend: BackendName;
  readonly runs: number;
  readonly seed: number;
  readonly failures: readonly Failure[];
  readonly workers: number;
  readonly timeoutMs: number;
  readonly isVerbose: boolean;
}

const SHOWN = 20;

/** Runs chaos on an empty store, prints what came of it, and resolves to whether all promises held. */
export async function chaos(command: ChaosCommand): Promise<boolean> {
  const { backend: name, runs, seed, failures, workers, timeoutMs, isVerbose } = command;
  console.log(
    `chaos: ${name}, ${runs} runs, seed ${seed}, ${workers} workers, ${failures.join(",")}`,
  );
  const backend = await openBackend(name);
  try {
    const url = await backend.create();
    const engine = backend.engine(url);
    const report = await runChaos({
      ...{ url, runs, seed, failures, workers, timeoutMs },
      ...(engine && { engine }),
      ...(isVerbose && { onLine: (line: string) => console.log(`  ${line}`) }),
      ...(backend.server && { server: backend.server }),
    });
    print(report);
    return report.findings.length === 0;
  } finally {
    await backend.remove();
  }
}

function print(report: ChaosReport): void {
  const { findings, failures, runs, seed, ms } = report;
  const done = Object.entries(failures).map(([failure, count]) => `${count} ${failure}`);
  console.log(`  failures: ${done.join(", ") || "none"}`);
  console.log(
    `  ${runs} runs in ${(ms / 1000).toFixed(1)} s: ${report.claims} claims, ${report.calls} calls of which ` +
      `${report.interrupted} interrupted, ${report.requests} requests for ${report.answers} answers, ${report.sent} sent`,
  );
  for (const { promise, run, text } of findings.slice(0, SHOWN)) {
    console.log(`  ${promise} ${run}: ${text}`);
  }
  console.log(`  findings: ${findings.length} (seed ${seed})`);
}
