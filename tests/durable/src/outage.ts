import { setTimeout as later } from "node:timers/promises";
import { runChaos } from "@gyre/durable/testing";
import { Client } from "pg";
import { openBackend } from "./common/backend.ts";
import { printFigure, takeMedian } from "./common/figures.ts";

const RUNS = 150;
const AWAY_MS = 5_000;
/** From the database's first answer to the first commit. */
const GOING_MS = 1_000;
const LOOK_MS = 10;
/** The database goes away when workers have as many runs. */
const UNDER_WAY = 75;

/** The database is away for 5 s under 150 runs: nothing is interrupted, and all of them continue soon. */
export async function outage(seed: number): Promise<boolean> {
  const backend = await openBackend("postgres");
  const { server } = backend;
  try {
    if (!server) return false;
    const url = await backend.create();
    let going: Promise<number[]> | undefined;
    const stop = async (): Promise<void> => {
      await waitForRunning(url);
      await server.stop("immediate");
    };
    const start = async (): Promise<void> => {
      going = watchRunning(url);
      await server.start();
    };
    const { findings, interrupted, requests, answers, ms } = await runChaos({
      ...{ url, runs: RUNS, atOnce: RUNS, seed, server: { stop, start } },
      ...{ failures: ["crash"], count: 1, minAwayMs: AWAY_MS, maxAwayMs: AWAY_MS },
    });
    const repeated = requests - answers;
    const isRight = findings.length === 0 && interrupted === 0 && repeated <= 0;
    console.log(
      `outage: ${RUNS} runs, ${AWAY_MS} ms away, seed ${seed}: interrupted ${interrupted} (bar 0), requests repeated ${repeated} (bar 0), findings ${findings.length}, ${(ms / 1000).toFixed(1)} s: ${isRight ? "ok" : "FAILED"}`,
    );
    for (const { promise, run, text } of findings.slice(0, 5)) {
      console.log(`  ${promise} ${run}: ${text}`);
    }
    const times = (await going) ?? [];
    console.log(
      `outage: of ${times.length} runs that workers had, half have committed ${takeMedian(times).toFixed(0)} ms after the database is back, all after ${Math.max(...times).toFixed(0)} ms`,
    );
    return printFigure("outage: going again after", Math.min(...times), GOING_MS) && isRight;
  } finally {
    await backend.remove();
  }
}

async function waitForRunning(url: string): Promise<void> {
  const client = await connect(url);
  try {
    while ((await readRunning(client)).size < UNDER_WAY) await later(LOOK_MS);
  } finally {
    await client.end();
  }
}

/** For each run that a worker had when the database came back: the time to its next commit. */
async function watchRunning(url: string): Promise<number[]> {
  const client = await connect(url);
  const from = performance.now();
  const times: number[] = [];
  try {
    const open = await readRunning(client);
    while (open.size > 0) {
      const running = await readRunning(client);
      for (const [id, commit] of open) {
        if (running.get(id) === commit) continue;
        open.delete(id);
        times.push(performance.now() - from);
      }
      await later(LOOK_MS);
    }
    return times;
  } finally {
    await client.end();
  }
}

/** The sessions that workers have, each with what its last commit was. */
async function readRunning(client: Client): Promise<Map<string, string>> {
  const text = "select id, seq || ' ' || token as last from gyre_session where status = 'running'";
  const { rows } = await client.query(text);
  return new Map((rows as { id: string; last: string }[]).map(({ id, last }) => [id, last]));
}

async function connect(url: string): Promise<Client> {
  for (;;) {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      return client;
    } catch {
      await later(LOOK_MS);
    }
  }
}
