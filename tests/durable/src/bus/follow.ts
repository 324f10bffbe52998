import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as later } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { openRuns, type Run } from "@gyre/durable";
import { DatabaseProxy, Random } from "@gyre/durable/testing";
import { type Backend, type StoreName, openBackend } from "../common/backend.ts";
import { startChild } from "./load.ts";
import { Rebuilder } from "./rebuilder.ts";

const RUNS = 40;
const WATCHERS_A_RUN = 2;
/** Between two failures. */
const FAILURE_MS = 1_500;
const OPEN = ["ready", "running", "waiting", "aside"] as const;
const TIMEOUT_MS = 120_000;

/**
 * Random runs, over workers that are killed and connections that are cut. Those that watch come and
 * go; what each has rebuilt from deltas has to be the message at its end.
 */
export async function follow(name: StoreName, seed: number): Promise<boolean> {
  const random = new Random(`bus:${seed}`);
  const backend = await openBackend(name);
  const url = await backend.create();
  const proxies = await startProxies(backend);
  const [workerProxy, ownProxy] = proxies;
  const runs = await openRuns(ownProxy?.wrap(url) ?? url, { onError: () => {} });
  const start = (): Promise<ChildProcess> =>
    startChild("worker", workerProxy?.wrap(url) ?? url, String(seed));
  let worker = await start();
  const problems: string[] = [];
  const counts = { deltas: 0, messages: 0, restarts: 0, visits: 0 };
  let isOver = false;
  const fail = async (): Promise<void> => {
    while (!isOver) {
      await later(FAILURE_MS);
      if (isOver) return;
      const kind = random.below(6);
      if (kind === 0) {
        worker.kill("SIGKILL");
        await once(worker, "exit");
        worker = await start();
      } else if (kind < 3) workerProxy?.reset();
      else ownProxy?.reset();
    }
  };
  const failing = fail();
  try {
    const watching: Promise<void>[] = [];
    for (let index = 0; index < RUNS; index++) {
      const run = await insist(() => runs.start("Go.", { agent: "random", id: `run-${index}` }));
      for (let nth = 0; nth < WATCHERS_A_RUN; nth++) {
        const own = new Random(`${seed}:${index}:${nth}`);
        watching.push(watchInParts(run, own, counts, problems));
      }
      await later(random.below(50));
    }
    const timeout = later(TIMEOUT_MS, "late", { ref: false });
    if ((await Promise.race([Promise.all(watching), timeout])) === "late") {
      const { runs: open } = await insist(() => runs.list({ status: OPEN, limit: 3 }));
      const names = open.map(({ id, status }) => `${id} (${status})`).join(", ");
      problems.push(`Not all was seen within ${TIMEOUT_MS / 1_000} s; open: ${names || "none"}.`);
    }
  } finally {
    isOver = true;
    await failing;
    worker.kill("SIGKILL");
    await runs.close();
    for (const proxy of proxies) await proxy.close();
    await backend.remove();
  }
  for (const problem of problems.slice(0, 10)) console.log(`bus: ${problem}`);
  console.log(
    `bus: ${name}, seed ${seed}: ${RUNS} runs watched ${counts.visits} times, ${counts.messages} messages rebuilt of ${counts.deltas} deltas, ${counts.restarts} begun again by another worker; wrong: ${problems.length}`,
  );
  return problems.length === 0 && counts.messages > 0;
}

async function startProxies({ server }: Backend): Promise<DatabaseProxy[]> {
  if (!server) return [];
  return [await DatabaseProxy.start(server.port), await DatabaseProxy.start(server.port)];
}

/** Watches a run, goes away after some events, and continues where it was. */
async function watchInParts(
  run: Run,
  random: Random,
  counts: Record<"deltas" | "messages" | "restarts" | "visits", number>,
  problems: string[],
): Promise<void> {
  const ends: unknown[] = [];
  let after = 0;
  for (let isEnded = false; !isEnded;) {
    const rebuilder = new Rebuilder(run.id, counts, problems);
    let left = random.chance(0.3) ? Infinity : random.between(1, 200);
    counts.visits++;
    try {
      for await (const event of run.watch({ after })) {
        if (event.seq < after) problems.push(`${run.id}: ${event.seq} came after ${after}.`);
        const isEnd = rebuilder.take(event);
        if (isEnd && event.seq <= after) problems.push(`${run.id}: ${event.seq} came twice.`);
        after = Math.max(after, event.seq);
        if (event.event.type === "message_end") ends.push(event.event.message);
        isEnded = event.event.type === "agent_end" && event.event.stop !== "suspended";
        if (--left <= 0) break;
      }
    } catch (error) {
      if (!isAway(error)) throw error;
    }
    await later(random.below(100));
  }
  const messages = await insist(() => run.messages());
  if (!isDeepStrictEqual(ends, messages)) {
    problems.push(
      `${run.id}: ${ends.length} messages were seen to end, ${messages.length} are stored.`,
    );
  }
}

function isAway(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "unavailable";
}

async function insist<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isAway(error)) throw error;
      await later(20);
    }
  }
}
