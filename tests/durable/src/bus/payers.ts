// Starts runs one after the other, some at once, and reports how many have ended: `payers.js URL`.
import { argv } from "node:process";
import { openRuns, Worker } from "@gyre/durable";
import { createAgents } from "../common/agents.ts";

const AT_ONCE = 4;

const runs = await openRuns(argv[2] ?? "");
await new Worker(runs, { agents: createAgents() }).start();
let ended = 0;
process.on("message", () => process.send?.(ended));
process.on("disconnect", () => process.exit());

async function pay(): Promise<never> {
  for (;;) {
    const run = await runs.start("Pay.", { agent: "payer" });
    await run.result();
    ended++;
  }
}

process.send?.("ready");
await Promise.all(Array.from({ length: AT_ONCE }, pay));
