import { afterAll, describe, expect, it } from "vitest";
import { startPostgres } from "../../../../tests/support/postgres.ts";
import { scriptedAgent, temporaryUrls, withWorker } from "../worker/harness.ts";
import { formatMetrics } from "./metrics.ts";

const newUrl = temporaryUrls("metrics", afterAll);

async function checkMetrics(url: string): Promise<void> {
  await withWorker(url, { agents: [scriptedAgent(["Done."])] }, async (runs, worker) => {
    await runs.start("Brew.", { agent: "brewer", id: "b1" });
    await runs.start("Brew.", { agent: "brewer", id: "b2" });
    await runs.start("More.", { agent: "brewer", id: "b3", session: "b1" });
    await (await runs.start("Order.", { agent: "office", id: "o1" })).result();
    const text = await runs.metrics();
    expect(text).toContain(
      `# HELP gyre_runs Runs that have not ended.
# TYPE gyre_runs gauge
gyre_runs{status="queued",agent="brewer"} 1
gyre_runs{status="ready",agent="brewer"} 2
`,
    );
    expect(await runs.metrics({ tenants: true })).toContain(
      'gyre_runs{status="queued",agent="brewer",tenant=""} 1\n',
    );
    expect(text).toContain("\ngyre_inbox_age_seconds 0\n");
    expect(text).toMatch(/^gyre_bus_notifications_total \d+$/m);
    expect(text).toMatch(/^gyre_ready_seconds \d+(\.\d+)?$/m);
    expect(text).toContain('gyre_workers{state="alive"} 1\ngyre_workers{state="expired"} 0\n');
    expect(worker.metrics()).toMatch(/^gyre_claims_total 1$/m);
    expect(worker.metrics()).toMatch(/^gyre_activations_total\{outcome="lost"\} 0$/m);
    expect(worker.metrics()).toMatch(/^gyre_heartbeat_age_seconds [\d.e-]+$/m);
  });
}

describe("metrics", () => {
  it("count open runs by status and agent, workers, and what a worker has done", async () => {
    await checkMetrics(newUrl());
  });

  it("are the same on Postgres", { tags: "postgres" }, async () => {
    const server = await startPostgres();
    try {
      await checkMetrics(server.url());
    } finally {
      await server.remove();
    }
  });

  it("have labels that Prometheus can read, whatever an agent is called", () => {
    const samples = [{ labels: { agent: 'a"b\\c\nd' }, value: 1 }];
    const text = formatMetrics([{ name: "m", type: "gauge", help: "H.", samples }]);
    expect(text).toBe('# HELP m H.\n# TYPE m gauge\nm{agent="a\\"b\\\\c\\nd"} 1\n');
  });
});
