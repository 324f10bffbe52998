import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { validateTranscript } from "@gyre/ai";
import { openRuns, type Run, type Runs, Worker } from "@gyre/durable";
import { Random } from "@gyre/durable/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../support/cases.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres.ts";
import {
  createWorld,
  LINES,
  scriptedCodingAgent,
  type ScriptName,
  SCRIPTS,
  type World,
} from "./world.ts";

const WORKER = fileURLToPath(new URL("../../dist/durable/src/coding/worker.js", import.meta.url));
const POOL = "host:here";
const SESSION = "7k2m";

let world: World;
let runs: Runs;
let children: ChildProcess[] = [];
let workers: Worker[] = [];

beforeEach(() => {
  world = createWorld();
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const worker of workers) await worker.stop({ drainMs: 0 });
  [children, workers] = [[], []];
  await runs.close();
  world.remove();
});

/** Starts a worker process, and waits until it works. */
async function startProcess(url: string, script: ScriptName): Promise<ChildProcess> {
  const options = JSON.stringify({ home: world.home, url, pool: POOL, script });
  const child = fork(WORKER, [options], { execArgv: ["--no-warnings"] });
  children.push(child);
  const [outcome] = await Promise.race([once(child, "message"), once(child, "exit")]);
  expect(outcome).toBe("ready");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function startHere(script: ScriptName, pool: string): Promise<Worker> {
  const agents = [scriptedCodingAgent(world, SCRIPTS[script])];
  const worker = new Worker(runs, { agents, pools: [pool] });
  workers.push(worker);
  await worker.start();
  return worker;
}

async function startRun(url: string): Promise<Run> {
  runs = await openRuns(url);
  await (await runs.sessions({ pool: POOL }).create({ cwd: world.cwd, id: SESSION })).close();
  return runs.start("Work.", { agent: "coding", session: SESSION });
}

function readText(name: string): string {
  return readFileSync(join(world.cwd, name), "utf8");
}

async function readResults(run: Run): Promise<Map<string, string>> {
  const messages = await run.messages();
  const llm = messages.flatMap((message) =>
    message.role === "user" || message.role === "assistant" || message.role === "toolResult"
      ? [message]
      : [],
  );
  expect(validateTranscript(llm)).toEqual([]);
  return new Map(
    llm.flatMap((message) =>
      message.role === "toolResult"
        ? [[message.toolCallId, JSON.stringify(message.content)] as const]
        : [],
    ),
  );
}

/** A worker is killed in the midst of a command; the next one of the pool goes on. */
async function checkKill(url: string): Promise<void> {
  const run = await startRun(url);
  const elsewhere = await startHere("long", "host:there");
  const first = await startProcess(url, "long");
  await expect.poll(() => existsSync(join(world.cwd, "begun"))).toBe(true);
  await kill(first);
  await startHere("long", POOL);
  expect((await run.result()).text).toBe("Done.");
  expect(elsewhere.stats.claims).toBe(0);
  expect((await run.info()).activations).toBe(2);
  const results = await readResults(run);
  expect(results.get("begun")).toContain("Interrupted");
  expect(results.get("look")).toMatch(/Job \\"job-[\w-]+\\" is gone/);
  // Each command has begun once, and what was written is as it was.
  expect(readText("log").split("\n").sort()).toEqual(["", "one", "two"]);
  expect(readText("kept.txt")).toBe("As it was.\n");
}

/** Workers are killed at random moments: no command runs twice, and the model knows of each. */
async function checkKills(url: string, seed: number, kills: number): Promise<void> {
  const random = new Random(seed);
  const run = await startRun(url);
  for (let count = 0; count < kills; count++) {
    const child = await startProcess(url, "lines");
    const lines = (): number =>
      existsSync(join(world.cwd, "lines")) ? readText("lines").split("\n").length - 1 : 0;
    // A line whose worker was killed before it wrote it is never written.
    const until = Math.min(lines() + random.between(0, 2), LINES - count);
    await expect.poll(() => lines() >= until, { interval: random.between(1, 9) }).toBe(true);
    await kill(child);
    if ((await run.info()).status === "ended") break;
  }
  await startHere("lines", POOL);
  expect((await run.result()).text, `seed ${seed}`).toBe("Done.");
  const written = readText("lines").trim().split("\n").map(Number);
  expect(new Set(written).size, `seed ${seed}: ${written.join(" ")}`).toBe(written.length);
  const results = await readResults(run);
  expect(results.size).toBe(LINES);
  const finished = [...results].flatMap(([id, text]) =>
    text.includes("Interrupted") ? [] : [Number(id.replace("line-", ""))],
  );
  expect(written, `seed ${seed}`).toEqual(expect.arrayContaining(finished));
}

describe("a worker with the coding agent that is killed", () => {
  it("D5, D6, D12: the next of its pool goes on, and nothing runs twice", () =>
    checkKill(world.url));

  it("at random moments: no command runs twice, and none is lost", { tags: "long" }, async () => {
    const seed = pickSeed();
    console.log(`kills of coding workers: GYRE_SEED=${seed}`);
    await checkKills(world.url, seed, countCases(2, 8));
  });
});

describe("the same on Postgres", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let count = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());

  async function createUrl(): Promise<string> {
    const name = `coding_${++count}`;
    await server.run(`create database ${name}`);
    return server.url(name);
  }

  it("D5, D6, D12: the next of its pool goes on, and nothing runs twice", async () =>
    checkKill(await createUrl()));

  it("at random moments: no command runs twice, and none is lost", { tags: "long" }, async () => {
    const seed = pickSeed();
    console.log(`kills of coding workers on Postgres: GYRE_SEED=${seed}`);
    await checkKills(await createUrl(), seed, countCases(1, 8));
  });
});
