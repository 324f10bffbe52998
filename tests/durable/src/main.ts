// Tries durable runs on real processes: `npm run durable -- COMMAND`.
import { spawnSync } from "node:child_process";
import { argv, exit } from "node:process";
import { parseArgs } from "node:util";
import { DATABASE_FAILURES, type Failure, FILE_FAILURES } from "@gyre/durable/testing";
import {
  type BackendName,
  ENGINES,
  type StoreName,
  STORES,
  openBackend,
} from "./common/backend.ts";
import { bus } from "./bus/bus.ts";
import { chaos } from "./chaos.ts";
import { conform } from "./conform.ts";
import { findNode } from "./common/engines.ts";
import { failover, measureFailover } from "./failover.ts";
import { faults } from "./faults.ts";
import { growth } from "./growth.ts";
import { idle, measureIdle } from "./idle.ts";
import { outage } from "./outage.ts";
import { serve } from "./serve/serve.ts";
import { measureSignals, signals } from "./signals.ts";
import { measureSpeed, speed } from "./speed.ts";

const HELP = `npm run durable -- COMMAND [--backend ${[...STORES, ...ENGINES].join("|")}] [--seed N]

  conform [--only FILE]
                 the tests of the promises
  chaos [--runs N] [--workers N] [--timeout SECONDS] [--verbose] [--failures ${DATABASE_FAILURES.join(",")}]
                 runs over workers that fail; each run is held to the promises
  faults         takes one guard after the other out of the built worker: chaos has to find each
  failover [--kills N]
                 how long until another worker goes on with the run of one that was killed
  signals        from an approval to the tool, and from an abort to the end, in another process
  speed          a run of 4 model calls and 3 tools, and many at once
  idle           statements of a worker that has nothing to do
  growth [--runs N]
                 what a step takes in a store with many runs (default 100,000)
  serve [--servers N] [--clients N] [--prompts N] [--timeout SECONDS]
                 clients of gyre serve --database; their servers are killed, and their connections cut
  bus            live events between processes: whether they come right over failures, and what they cost
  outage         the database is away for 5 s under 150 runs

  engines [--kills N]
                 the figures of all stores and engines as a table

Without --backend: both stores. With an engine: conform, chaos, failover, signals, speed, idle. Without --seed: a fresh one, which is printed.`;

const { values, positionals } = parseArgs({
  args: argv.slice(2),
  allowPositionals: true,
  options: {
    backend: { type: "string" },
    seed: { type: "string" },
    runs: { type: "string" },
    workers: { type: "string" },
    failures: { type: "string" },
    kills: { type: "string" },
    only: { type: "string" },
    servers: { type: "string" },
    clients: { type: "string" },
    prompts: { type: "string" },
    timeout: { type: "string" },
    verbose: { type: "boolean" },
    help: { type: "boolean" },
  },
});

function parseNumber(name: string, text: string | undefined, otherwise: number): number {
  const value = Number(text ?? otherwise);
  if (Number.isSafeInteger(value) && value > 0) return value;
  return refuse(`--${name} is a number above 0: got "${text}".`);
}

function parseBackends(text: string | undefined): BackendName[] {
  if (text === undefined) return [...STORES];
  const all = [...STORES, ...ENGINES];
  const found = all.find((name) => name === text);
  return found ? [found] : refuse(`--backend is one of ${all.join(", ")}: got "${text}".`);
}

/** What is about a store alone. */
function ofStore(act: (store: StoreName) => Promise<boolean>) {
  return (backend: BackendName): Promise<boolean> => {
    const store = STORES.find((name) => name === backend);
    return store
      ? act(store)
      : refuse(`${positionals[0]} is about stores: give --backend sqlite or postgres.`);
  };
}

function parseFailures(text: string | undefined, backend: BackendName): readonly Failure[] {
  const possible = backend === "sqlite" ? FILE_FAILURES : DATABASE_FAILURES;
  if (text === undefined) return possible;
  return text
    .split(",")
    .map(
      (name) =>
        possible.find((each) => each === name) ??
        refuse(`--failures on ${backend} has ${possible.join(", ")}: got "${name}".`),
    );
}

function refuse(message: string): never {
  console.error(message);
  return exit(2);
}

/** The figures of all stores and engines, as the table of docs/which-engine.md. */
async function printTable(backends: readonly BackendName[], kills: number): Promise<void> {
  console.log("| | run p50 | runs/s | idle statements/s | failover median, longest | approval |");
  console.log("|---|---|---|---|---|---|");
  for (const name of backends) {
    const { p50Ms, aRunMs } = await measureSpeed(name);
    const { alone } = await measureIdle(name);
    const { median, longest } = await measureFailover(name, kills);
    const { approvalMs } = await measureSignals(name);
    const cells = [
      ...[name, `${p50Ms.toFixed(0)} ms`, (1_000 / aRunMs).toFixed(0), alone.toFixed(0)],
      ...[`${median.toFixed(0)}, ${longest.toFixed(0)} ms`, `${approvalMs.toFixed(0)} ms`],
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

const seed = parseNumber("seed", values.seed, 1 + Math.floor(Math.random() * 1_000_000));
const backends = parseBackends(values.backend);

const commands: Record<string, (backend: BackendName) => Promise<boolean>> = {
  chaos: (backend) =>
    chaos({
      ...{ backend, seed, failures: parseFailures(values.failures, backend) },
      runs: parseNumber("runs", values.runs, 300),
      workers: parseNumber("workers", values.workers, 2),
      timeoutMs: parseNumber("timeout", values.timeout, 120) * 1_000,
      isVerbose: values.verbose === true,
    }),
  faults: ofStore((store) => faults(store, seed)),
  failover: (backend) => failover(backend, parseNumber("kills", values.kills, 50)),
  serve: async (backend) =>
    serve({
      ...{ backend: await openBackend(backend), seed },
      servers: parseNumber("servers", values.servers, 3),
      clients: parseNumber("clients", values.clients, 4),
      prompts: parseNumber("prompts", values.prompts, 10),
      timeoutMs: parseNumber("timeout", values.timeout, 300) * 1_000,
    }),
  conform: (backend) => conform(backend, values.only),
  bus: ofStore((store) => bus(store, seed)),
  signals,
  speed,
  idle,
  growth: ofStore((store) => growth(store, parseNumber("runs", values.runs, 100_000))),
  outage: ofStore(async (store) => store === "sqlite" || outage(seed)),
};

const isTable = positionals[0] === "engines";
const command = isTable ? async (): Promise<boolean> => true : commands[positionals[0] ?? ""];
if (values.help || !command) {
  console.log(HELP);
  exit(values.help ? 0 : 2);
}
const measured = values.backend === undefined ? [...STORES, ...ENGINES] : backends;
if ((isTable ? measured : backends).includes("restate") && findNode() !== process.execPath) {
  const { status } = spawnSync(findNode(), argv.slice(1), { stdio: "inherit" });
  exit(status ?? 1);
}
if (isTable) await printTable(measured, parseNumber("kills", values.kills, 10));
let isGood = true;
for (const backend of backends) isGood = (await command(backend)) && isGood;
exit(isGood ? 0 : 1);
