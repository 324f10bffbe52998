import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { callAll } from "@gyre/ai/testing";
import { openRuns } from "../runs/open.ts";
import { EngineSite } from "../testing/engine.ts";
import { FailoverPair } from "../testing/failover.ts";
import { Journal } from "../testing/journal.ts";
import { createScriptedAgent, SCRIPTED_AGENT } from "../testing/scripted-agent.ts";
import {
  effectTool,
  engineSpec,
  isFile,
  scriptedAgent,
  temporaryUrls,
  withWorker,
} from "./harness.ts";

const newUrl = temporaryUrls("backends", afterAll);
const folder = mkdtempSync(join(tmpdir(), "gyre-journals-"));
afterAll(() => rmSync(folder, { recursive: true }));

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;
const SEEDS = 10;

describe("kill -9", () => {
  it("D12 another worker continues within half a second on a file, within 3 s on a database", async () => {
    const url = newUrl();
    const runs = await openRuns(url);
    const site = await EngineSite.open(engineSpec);
    const options = { url, folder, seed: 1, leaseMs: 2_000 };
    const pair = await FailoverPair.start(runs, options, site);
    try {
      // A busy machine delays some of them; `npm run durable -- failover` prints the longest of 50.
      await vi.waitFor(
        async () => expect(await pair.kill()).toBeLessThanOrEqual(isFile ? 500 : 3_000),
        { timeout: 60_000 },
      );
    } finally {
      await pair.end();
      await site.close();
      await runs.close();
    }
  });
});

describe("clocks", () => {
  it.each([3_600_000, -3_600_000])(
    "D28 a clock that jumps by %i ms takes no run from a worker that lives",
    async (jumpMs) => {
      const url = newUrl();
      const started: string[] = [];
      let release: () => void = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const slow = effectTool("pay", async (to) => {
        started.push(to);
        await held;
        return "paid";
      });
      const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], { tools: [slow] });
      const options = { agents: [agent], leaseMs: 400 };
      await withWorker(url, options, (runs, first) =>
        withWorker(url, options, async (others, second) => {
          const run = await runs.start("Pay.", { agent: "office" });
          await vi.waitFor(() => expect(started).toEqual(["a"]), { timeout: 60_000 });
          const { now } = Date;
          const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + jumpMs);
          try {
            // Each has renewed its lease, and looked for workers that are dead, several times.
            const before = [runs, others].map(({ store }) => store.statements);
            await vi.waitUntil(
              () =>
                [runs, others].every(
                  ({ store }, index) => store.statements > (before[index] ?? 0) + 20,
                ),
              { timeout: 60_000 },
            );
            release();
            expect((await run.result()).text).toBe("Done.");
          } finally {
            clock.mockRestore();
          }
          expect(started).toEqual(["a"]);
          expect(first.stats.lost + second.stats.lost).toBe(0);
        }),
      );
    },
  );
});

describe("all stores", () => {
  /** The transcripts of runs by plan, without what differs from one time to the next. */
  async function runPlans(url: string): Promise<string[]> {
    const transcripts: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const journal = new Journal(join(folder, "plans.jsonl"));
      const agents = [createScriptedAgent(journal, seed)];
      await withWorker(url, { agents }, async (runs) => {
        const run = await runs.start("Go.", { agent: SCRIPTED_AGENT, id: `run-${seed}` });
        for await (const { event } of run.watch({ deltas: false })) {
          if (event.type !== "agent_end") continue;
          const ids = event.pending.map(({ toolCall }) => toolCall.id);
          const decisions = ids.map((id) => [id, { type: "approve" }] as const);
          if (ids.length > 0) await run.decide(Object.fromEntries(decisions));
        }
        const messages = (await run.messages()).map((message) => ({ ...message, timestamp: 0 }));
        transcripts.push(JSON.stringify(messages).replaceAll(UUID, "nonce"));
      });
      journal.close();
    }
    return transcripts;
  }

  it("D30 end with the same transcripts for the same seeds", async () => {
    const inFile = await runPlans(`file:${join(folder, "plans.db")}`);
    expect(inFile.every((transcript) => transcript.includes("Done."))).toBe(true);
    expect(await runPlans(newUrl())).toEqual(inFile);
  });
});
