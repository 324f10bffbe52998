// A program with durable runs, in a folder where the package was installed.
import { call, scriptedModel } from "@gyre/ai/testing";
import { askTool, defineAgent, openRuns, Worker } from "@gyre/durable";

const model = scriptedModel([call("ask", { question: "Which tea?" }), "Green is ordered."]);
const office = defineAgent({
  name: "office",
  version: "1",
  open: () => ({ model: model.model, protocol: model, tools: [askTool()] }),
});
const runs = await openRuns("file:./runs.db");
const worker = new Worker(runs, { agents: [office] });
await worker.start();
const run = await runs.start("Order tea.", { agent: "office", id: "tea-1" });
for await (const { event } of run.watch()) {
  if (event.type !== "agent_end") continue;
  for (const { toolCall } of event.pending) {
    await run.decide({
      [toolCall.id]: { type: "result", result: { content: [{ type: "text", text: "Green." }] } },
    });
  }
}
const { text, turns } = await run.result();
await worker.stop();
await runs.close();
console.log(`${text} ${turns} turns`);
