import { once } from "node:events";
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { defineTool } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import { defineAgent, openRuns, Worker } from "@gyre/durable";

const brew = defineTool({
  name: "brew",
  description: "Brews a cup of tea.",
  parameters: { type: "object", properties: { cup: { type: "number" } }, required: ["cup"] },
  execute: async () => {
    await wait(500);
    return `brewed by process ${process.pid} on ${hostname()}`;
  },
});
// A model that needs no key: it asks for ten cups, one after the other.
const model = scriptedModel(({ messages }) => {
  const cup = messages.filter(({ role }) => role === "assistant").length + 1;
  return cup <= 10 ? call("brew", { cup }) : "Tea is served.";
});
const open = () => ({ model: model.model, protocol: model, tools: [brew] });

const runs = await openRuns(process.env.GYRE_DATABASE ?? "file:./runs.db");
const worker = new Worker(runs, { agents: [defineAgent({ name: "tea", version: "1", open })] });
await worker.start();
console.log(`process ${process.pid} works`);
await once(process, "SIGTERM");
await worker.stop();
await runs.close();
