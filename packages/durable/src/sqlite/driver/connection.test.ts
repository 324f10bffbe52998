import { afterAll, describe, expect, it } from "vitest";
import { openRuns } from "../../runs/open.ts";
import { isFile, scriptedAgent, temporaryUrls, withWorker } from "../../worker/harness.ts";

const newUrl = temporaryUrls("connection", afterAll);

describe.runIf(isFile)("reads of a file", () => {
  it("let others have a turn: a loop that waits for a run does not keep its worker from it", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      let reads = 0;
      while ((await run.info()).status !== "ended" && reads < 20_000) reads++;
      expect(reads).toBeLessThan(20_000);
    });
  });

  it("many at once are all answered", async () => {
    const runs = await openRuns(newUrl());
    const { id } = await runs.start("Go.", { agent: "office" });
    const infos = await Promise.all(Array.from({ length: 100 }, () => runs.get(id).info()));
    expect(new Set(infos.map((info) => info.id))).toEqual(new Set([id]));
    await runs.close();
  });
});
