// A worker in a process of its own: `worker.js URL SEED`.
import { argv } from "node:process";
import { openRuns, Worker } from "@gyre/durable";
import { createAgents } from "../common/agents.ts";
import { createClockAgent, createRandomAgent } from "./agents.ts";

const CONCURRENCY = 300;

const [, , url = "", seed = "1"] = argv;
// The database may be away for a moment.
const runs = await openRuns(url, { synchronous: "normal", onError: () => {} });
await new Worker(runs, {
  agents: [...createAgents(), createClockAgent(), createRandomAgent(Number(seed))],
  concurrency: CONCURRENCY,
  // It is killed more often than a run would kill it.
  maxDeaths: 1_000,
}).start();
process.send?.("ready");
process.on("disconnect", () => process.exit());
