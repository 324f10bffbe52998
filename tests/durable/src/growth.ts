import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { openStore, type Store } from "@gyre/durable";
import { type Backend, openBackend, type StoreName } from "./common/backend.ts";
import { printFigure, takeMedian, takeMs } from "./common/figures.ts";
import { resume } from "./resume.ts";

const ROUNDS = 200;
const WARM_UP = 50;
const ENTRY = JSON.stringify({ message: "x".repeat(1_500) });
const MOST_MS = 2;
/** Of what it takes with no runs. */
const MOST_RATIO = 1.5;
const LEASE_MS = 3_600_000;
const AT_ONCE = 100_000;

type Times = Record<"start" | "claim" | "append" | "finish" | "list", number>;

/** What a step takes in a store with no runs, and in one with many that have ended. */
export async function growth(name: StoreName, runs: number): Promise<boolean> {
  const backend = await openBackend(name);
  try {
    const empty = await measure(await backend.create());
    const url = await backend.create();
    await (await openStore(url)).close();
    const ms = await takeMs(() => fill(backend, url, runs));
    console.log(
      `growth: ${name}, ${runs.toLocaleString("en")} runs of 6 entries stored in ${(ms / 1000).toFixed(0)} s`,
    );
    const full = await measure(url);
    const isShort = await resume(backend);
    const steps = Object.keys(full) as (keyof Times)[];
    return (
      steps
        .map((step) => {
          const ratio = full[step] / empty[step];
          const what = `growth: ${name}, ${step}, p50 (${ratio.toFixed(2)}x of ${empty[step].toFixed(2)} ms with no runs)`;
          return printFigure(what, full[step], MOST_MS) && (step === "list" || ratio <= MOST_RATIO);
        })
        .every(Boolean) && isShort
    );
  } finally {
    await backend.remove();
  }
}

async function measure(url: string): Promise<Times> {
  const store = await openStore(url, { synchronous: "normal" });
  try {
    await store.register({
      id: "w",
      agents: [{ name: "a", version: "1" }],
      pools: [""],
      leaseMs: LEASE_MS,
    });
    const times: Record<keyof Times, number[]> = {
      ...{ start: [], claim: [], append: [], finish: [], list: [] },
    };
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const taken = await takeStep(store);
      if (round < WARM_UP) continue;
      for (const [step, ms] of Object.entries(taken)) times[step as keyof Times].push(ms);
    }
    const medians = Object.entries(times).map(([step, values]) => [step, takeMedian(values)]);
    return Object.fromEntries(medians) as Times;
  } finally {
    await store.close();
  }
}

async function takeStep(store: Store): Promise<Times> {
  const id = randomUUID();
  const start = await takeMs(() =>
    store.start({
      ...{ id, session: id, agent: "a", tenant: "", pool: "", priority: 0, digest: "d" },
      prompt: [ENTRY],
    }),
  );
  const before = performance.now();
  const { claims } = await store.claim({
    ...{ worker: "w", agents: ["a"], refused: [], pools: [""], limit: 20, maxDeaths: 3 },
    alone: false,
  });
  const claim = performance.now() - before;
  const [held] = claims;
  if (!held) throw new Error("The run was not claimed.");
  const row = { id: 2, parentId: 1, type: "message" as const, timestamp: Date.now(), data: ENTRY };
  const append = await takeMs(() =>
    store.append(held, {
      ...{ seq: 1, entries: [row], leaf: 2, opens: { run: id, version: "1" } },
      progress: { turns: 1, usage: "{}", activeMs: 1 },
    }),
  );
  const finish = await takeMs(() =>
    store.finish(
      held,
      { seq: 2, entries: [{ ...row, id: 3, parentId: 2 }], leaf: 3 },
      { status: "idle", seen: 1, end: { run: id, stop: "done", abortsChildren: false } },
    ),
  );
  const list = await takeMs(() => store.listRuns({ limit: 20 }));
  return { start, claim, append, finish, list };
}

/** Runs that have ended, as they are stored. */
async function fill(backend: Backend, url: string, runs: number): Promise<void> {
  for (let from = 0; from < runs; from += AT_ONCE) {
    const to = Math.min(runs, from + AT_ONCE) - 1;
    if (backend.server) {
      const series = `from generate_series(${from}, ${to}) as g(n)`;
      await backend.server.run(
        statements(series, "generate_series(1, 6) as six(s)").join(";"),
        url,
      );
    } else fillFile(url, from, to);
  }
  if (backend.server) await backend.server.run("vacuum analyze", url);
}

function fillFile(url: string, from: number, to: number): void {
  const Database = createRequire(import.meta.url)("libsql") as new (path: string) => {
    exec(sql: string): void;
    close(): void;
  };
  const database = new Database(url.slice("file:".length));
  const series = `from (with recursive g(n) as (select ${from} union all select n + 1 from g where n < ${to}) select n from g) as g`;
  const six =
    "(select 1 as s union select 2 union select 3 union select 4 union select 5 union select 6) as six";
  database.exec(`begin; ${statements(series, six).join(";")}; commit;`);
  database.close();
}

function statements(series: string, six: string): string[] {
  return [
    `insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at, created_at, updated_at)
      select 's' || n, '', '', 'a', 'idle', 6, 6, 1, 1, 1 ${series}`,
    `insert into gyre_run (id, session, digest, agent, tenant, pool, stop, started_at, ended_at)
      select 's' || n, 's' || n, 'd', 'a', '', '', 'done', n, n ${series}`,
    `insert into gyre_entry (session, seq, parent, type, data, token, at)
      select 's' || n, six.s, six.s - 1, 'message', '{"message":"a few words of an answer"}', 1, 1
      ${series}, ${six}`,
  ];
}
