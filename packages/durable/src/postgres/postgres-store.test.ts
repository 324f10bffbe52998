import { defineTool } from "@gyre/agent";
import { callAll, scriptedModel } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from "../../../../tests/support/postgres.ts";
import { defineAgent } from "../contract/agent.ts";
import { openRuns } from "../runs/open.ts";
import { Worker } from "../worker/worker.ts";

describe.runIf(findPostgres() !== undefined)("a run on Postgres", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());

  it("goes through model and tools to its end", async () => {
    const runs = await openRuns(server.url());
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
    expect(seen.at(-1)).toBe("9 agent_end");
    const result = await run.result();
    expect(result.text).toBe("Done.");
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
