// A worker with the coding agent, in a process of its own: `worker.js '{"url": ...}'`.
import { argv } from "node:process";
import { openRuns, Worker } from "@gyre/durable";
import { type CodingWorkerOptions, openWorld, scriptedCodingAgent, SCRIPTS } from "./world.ts";

const { home, url, pool, script }: CodingWorkerOptions = JSON.parse(argv[2] ?? "{}");
const runs = await openRuns(url);
const agent = scriptedCodingAgent(openWorld(home), SCRIPTS[script]);
await new Worker(runs, { agents: [agent], pools: [pool] }).start();
process.send?.("ready");
// It ends with the process that started it.
process.on("disconnect", () => process.exit());
