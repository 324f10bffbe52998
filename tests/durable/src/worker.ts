// A worker in a process of its own, which reports when a tool begins: `worker.js URL ENGINE`.
import { argv } from "node:process";
import { openRuns, Worker } from "@gyre/durable";
import { type EngineSpec, openEngine } from "@gyre/durable/testing";
import { createAgents } from "./common/agents.ts";

const spec: EngineSpec | null = JSON.parse(argv[3] ?? "null");
const runs = await openRuns(argv[2] ?? "", spec ? { engine: await openEngine(spec) } : {});
const report = (what: string): void => {
  process.send?.({ what, at: performance.timeOrigin + performance.now() });
};
await new Worker(runs, { agents: createAgents(report) }).start();
report("ready");
// It ends with the process that started it.
process.on("disconnect", () => process.exit());
