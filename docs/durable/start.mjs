import { textOf } from "@gyre/ai";
import { openRuns } from "@gyre/durable";

const runs = await openRuns(process.env.GYRE_DATABASE ?? "file:./runs.db");
const id = process.argv[2] ?? "cups-1";
const run = await runs.start("Brew ten cups.", { agent: "tea", id });
let cup = 0;
for await (const { event } of run.watch({ deltas: false })) {
  if (event.type === "tool_execution_end") console.log(`cup ${++cup}: ${textOf(event.result)}`);
}
console.log((await run.result()).text);
await runs.close();
