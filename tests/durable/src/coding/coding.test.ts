import { readFileSync } from "node:fs";
import { join } from "node:path";
import { call } from "@gyre/ai/testing";
import type { DurableCodingAgent } from "@gyre/coding";
import { openRuns, type Runs, Worker, type WorkerOptions } from "@gyre/durable";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, scriptedCodingAgent, type World } from "./world.ts";

let world: World;
let runs: Runs;
let workers: Worker[] = [];

beforeEach(async () => {
  world = createWorld();
  runs = await openRuns(world.url);
});
afterEach(async () => {
  for (const worker of workers) await worker.stop({ drainMs: 0 });
  workers = [];
  await runs.close();
  world.remove();
});

async function startWorker(
  agent: DurableCodingAgent,
  options: Partial<WorkerOptions> = {},
): Promise<Worker> {
  const worker = new Worker(runs, { agents: [agent], ...options });
  workers.push(worker);
  await worker.start();
  return worker;
}

async function createSession(options: { pool?: string; id?: string } = {}): Promise<string> {
  const { pool = "", id = "7k2m" } = options;
  const session = await runs.sessions({ pool }).create({ cwd: world.cwd, id });
  await session.close();
  return id;
}

describe("the coding agent of a worker", () => {
  it("works in the folder of its session", async () => {
    const session = await createSession();
    await startWorker(
      scriptedCodingAgent(world, [
        call("write", { path: "tea.txt", content: "green\n" }),
        call("shell", { command: "cat tea.txt; echo black >> tea.txt" }),
        "Done.",
      ]),
    );
    const run = await runs.start("Make a list of teas.", { agent: "coding", session });
    expect((await run.result()).text).toBe("Done.");
    expect(readFileSync(join(world.cwd, "tea.txt"), "utf8")).toBe("green\nblack\n");
    const messages = JSON.stringify(await run.messages());
    expect(messages).toContain("green");
  });

  it("leaves a call that needs an approval to a person, and goes on with the decision", async () => {
    const session = await createSession();
    await startWorker(
      scriptedCodingAgent(world, [call("shell", { command: "touch made" }, "c1"), "Done."], {
        permissions: { mode: "ask" },
      }),
    );
    const run = await runs.start("Make it.", { agent: "coding", session });
    await expect.poll(async () => (await run.info()).status).toBe("waiting");
    const { pending } = await run.info();
    expect(pending).toMatchObject([{ toolCall: { id: "c1" }, waitsFor: "decision" }]);
    const fingerprint = pending[0]?.fingerprint;
    await run.decide({
      c1: { type: "approve", ...(fingerprint !== undefined && { fingerprint }) },
    });
    expect((await run.result()).text).toBe("Done.");
    expect(readFileSync(join(world.cwd, "made"), "utf8")).toBe("");
  });
});
