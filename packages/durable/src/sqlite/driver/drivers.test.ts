import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openRuns } from "../../runs/open.ts";
import { Runs } from "../../runs/runs.ts";
import { effectTool, scriptedAgent, temporaryUrls } from "../../worker/harness.ts";
import { Worker } from "../../worker/worker.ts";
import { SqliteStore } from "../sqlite-store.ts";
import { type DriverName, explainError, openDriver } from "./driver.ts";

const newUrl = temporaryUrls("drivers", afterAll);
const newPath = (): string => newUrl().slice("file:".length);
/** Node 20 has none: there the package `libsql` is used. */
const hasOwn = process.getBuiltinModule("node:sqlite") !== undefined;
const isRoot = process.getuid?.() === 0;

describe("a file of one driver, in the other", () => {
  const agents = [
    scriptedAgent([callAll([["pay", { to: "Zoë 🍵" }]]), "Done."], {
      tools: [effectTool("pay", (to) => `${to} has it.`, { needsApproval: true })],
    }),
  ];
  const open = async (path: string, driver: DriverName): Promise<Runs> =>
    new Runs(await SqliteStore.open(path, { driver }));

  it.skipIf(!hasOwn).each<[DriverName, DriverName]>([
    ["libsql", "node:sqlite"],
    ["node:sqlite", "libsql"],
  ])("%s writes, %s goes on, and both have it open", async (first, second) => {
    const path = newPath();
    const one = await open(path, first);
    const begun = new Worker(one, { agents });
    await begun.start();
    const run = await one.start("Pay.", { agent: "office", id: "a" });
    for await (const { event } of run.watch({ deltas: false })) {
      if (event.type === "agent_end") break;
    }
    await begun.stop();

    const other = await open(path, second);
    expect(await other.get("a").info()).toEqual(await run.info());
    expect(await other.get("a").messages()).toEqual(await run.messages());
    const next = new Worker(other, { agents });
    await next.start();
    for (const { toolCall } of (await run.info()).pending) {
      await run.decide({ [toolCall.id]: { type: "approve" } });
    }
    expect((await run.result()).text).toBe("Done.");
    expect(JSON.stringify(await run.messages())).toContain("Zoë 🍵 has it.");
    expect(await other.get("a").messages()).toEqual(await run.messages());
    await next.stop();
    await Promise.all([one.close(), other.close()]);
    const again = await open(path, first);
    expect((await again.list()).runs).toMatchObject([{ id: "a", stop: "done" }]);
    expect((await again.check()).filter(({ status }) => status === "problem")).toEqual([]);
    await again.close();
  });
});

describe("a file that may only be read", () => {
  const message = (path: string): string =>
    `The file ${path} cannot be written: give this user the right to write to it and to its folder.`;

  it("is an error that says what to do, whichever statement meets it", async () => {
    const url = newUrl();
    await (await openRuns(url)).close();
    const path = url.slice("file:".length);
    const driver = await openDriver(path);
    driver.exec("pragma query_only = 1");
    try {
      driver.exec("update gyre_meta set value = value");
      expect.unreachable("It was written.");
    } catch (error) {
      expect(explainError(path, error)).toMatchObject({
        code: "no_access",
        message: message(path),
      });
    } finally {
      driver.close();
    }
  });

  // Root may write to every file.
  it.skipIf(isRoot)("is not opened", async () => {
    const path = newPath();
    await (await openRuns(`file:${path}`)).close();
    chmodSync(path, 0o444);
    await expect(openRuns(`file:${path}`)).rejects.toMatchObject({
      code: "no_access",
      message: message(path),
    });
  });

  it.skipIf(isRoot)("in a folder that may only be read, is not opened", async () => {
    const path = `${newPath()}-folder/runs.db`;
    mkdirSync(dirname(path));
    await (await openRuns(`file:${path}`)).close();
    chmodSync(dirname(path), 0o555);
    const opening = openRuns(`file:${path}`);
    await expect(opening.finally(() => chmodSync(dirname(path), 0o755))).rejects.toMatchObject({
      ...{ code: "no_access", message: message(path) },
    });
  });
});
