import { defineTool } from "@gyre/agent";
import { callAll, scriptedModel } from "@gyre/ai/testing";
import { afterAll, describe, expect, it } from "vitest";
import { defineAgent } from "../contract/agent.ts";
import { openRuns } from "../runs/open.ts";
import { Worker } from "./worker.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";

const folder = mkdtempSync(join(tmpdir(), "durable-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a run", () => {
  it("goes through model and tools to its end", async () => {
    const runs = await openRuns(`file:${join(folder, "a.db")}`);
    const model = scriptedModel([callAll([["pay", { to: "a" }]]), "Done."]);
    const pay = defineTool({
      name: "pay",
      description: "Pays",
      parameters: { type: "object", properties: { to: { type: "string" } } },
      execute: ({ to }) => `paid ${to}`,
    });
    const agent = defineAgent({
      name: "payer",
      version: "1",
      open: () => ({ model: model.model, protocol: model, tools: [pay], instructions: "Pay." }),
    });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Pay a.", { agent: "payer", id: "r1" });
    const seen: string[] = [];
    for await (const { seq, event } of run.watch({ deltas: false })) {
      seen.push(`${seq} ${event.type}`);
    }
    expect(seen).toEqual([
      "1 message_end",
      "5 message_end",
      "6 tool_execution_start",
      "7 tool_execution_end",
      "8 message_end",
      "9 message_end",
      "10 agent_end",
    ]);
    const result = await run.result();
    expect(result.text).toBe("Done.");
    expect(result.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "assistant",
    ]);
    expect(await run.info()).toMatchObject({
      status: "ended",
      stop: "done",
      version: "1",
      turns: 2,
      activations: 1,
    });
    await worker.stop();
    await runs.close();
  });
});
