import { openBackend } from "./backend.ts";
import { runChaos } from "@gyre/durable/testing";

const RUNS = 150;
const AWAY_MS = 5_000;

/** The database is away for 5 s under 150 runs: nothing is interrupted, and all of them end. */
export async function outage(seed: number): Promise<boolean> {
  const backend = await openBackend("postgres");
  try {
    if (!backend.server) return false;
    const { findings, interrupted, requests, answers, ms } = await runChaos({
      ...{ url: await backend.create(), runs: RUNS, atOnce: RUNS, seed, server: backend.server },
      ...{ failures: ["crash"], count: 1, minAwayMs: AWAY_MS, maxAwayMs: AWAY_MS },
    });
    const repeated = requests - answers;
    const isGood = findings.length === 0 && interrupted === 0 && repeated <= 0;
    console.log(
      `outage: ${RUNS} runs, ${AWAY_MS} ms away, seed ${seed}: interrupted ${interrupted} (bar 0), requests repeated ${repeated} (bar 0), findings ${findings.length}, ${(ms / 1000).toFixed(1)} s: ${isGood ? "ok" : "FAILED"}`,
    );
    for (const { promise, run, text } of findings.slice(0, 5))
      console.log(`  ${promise} ${run}: ${text}`);
    return isGood;
  } finally {
    await backend.remove();
  }
}
