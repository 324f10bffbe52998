import { callAll } from "@gyre/ai/testing";
import { expect, it, vi } from "vitest";
import { describeStores, type TestStore } from "../../../../tests/support/stores.ts";
import { MAX_ENTRY_BYTES } from "../contract/messages.ts";
import { SCHEMA_VERSION as POSTGRES_VERSION } from "../postgres/schema.ts";
import { openDriver } from "../sqlite/driver/driver.ts";
import { SCHEMA_VERSION as SQLITE_VERSION } from "../sqlite/schema.ts";
import { askTool } from "../tools/ask.ts";
import type { DurableAgent } from "../contract/agent.ts";
import type { NewItem } from "../contract/store.ts";
import { effectTool, scriptedAgent, withWorker } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";
import { openRuns, openStore } from "./open.ts";
import { Runs } from "./runs.ts";

/** Has the tables of a store be of another version. */
async function setVersion(store: TestStore, url: string, version: number): Promise<void> {
  if (store.name === "postgres") {
    await store.server.run(`update gyre_meta set value = '${version}' where key = 'schema'`, url);
    const oldest = `update gyre_meta set value = '${version}' where key = 'oldest_schema'`;
    await store.server.run(oldest, url);
    return;
  }
  const driver = await openDriver(url.slice("file:".length));
  driver.exec(`pragma user_version = ${version}`);
  driver.exec(`update gyre_meta set value = '${version}' where key = 'oldest_schema'`);
  driver.close();
}

describeStores("bad input", (store) => {
  const own = store.name === "postgres" ? POSTGRES_VERSION : SQLITE_VERSION;

  it("a wrong address", async () => {
    const url = await store.create();
    const wrong: [string, string, string][] =
      store.name === "postgres"
        ? [
            [
              url.replace(/:\d+\//, ":1/"),
              "unavailable",
              "Check that it runs and that the address is right",
            ],
            [`${url}_other`, "no_access", "there is no such database: create it first"],
            [url.replace("postgres@", "stranger@"), "no_access", "does not let this user in"],
          ]
        : [
            [`${url}/runs.db`, "no_access", "its folder has to exist"],
            ["file:", "bad_url", "names no file"],
          ];
    for (const [address, code, words] of wrong) {
      const opening = openRuns(address);
      await expect(opening, address).rejects.toMatchObject({ code });
      await expect(opening, address).rejects.toThrow(words);
    }
  });

  it("tables of an older and of a newer version", async () => {
    const url = await store.create();
    await expect(openRuns(url, { migrate: false })).rejects.toMatchObject({
      code: "schema_older",
      message: expect.stringContaining("open it once with { migrate: true }"),
    });
    await (await openRuns(url)).close();
    await setVersion(store, url, own + 1);
    await expect(openRuns(url)).rejects.toMatchObject({
      code: "schema_newer",
      message: expect.stringContaining(`knows version ${own}: update @gyre/durable`),
    });
  });

  it("an agent that no worker knows: the run waits, and names what is missing", async () => {
    await withWorker(await store.create(), { agents: [scriptedAgent(["Done."])] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "offce" });
      expect(await run.info()).toMatchObject({
        status: "ready",
        stuck: 'No worker knows the agent "offce": start one that has it. Workers know office.',
      });
    });
  });

  it("an entry above 16 MiB: nothing of it is stored", async () => {
    const runs = await openRuns(await store.create());
    const large = runs.start("x".repeat(MAX_ENTRY_BYTES), { agent: "office" });
    await expect(large).rejects.toMatchObject({ code: "too_large" });
    await expect(large).rejects.toThrow("at most 16 MiB: keep it elsewhere and give a reference");
    expect((await runs.list()).runs).toEqual([]);
    const run = await runs.start("Go.", { agent: "office" });
    await expect(run.steer("x".repeat(MAX_ENTRY_BYTES))).rejects.toMatchObject({
      code: "too_large",
    });
    expect((await runs.store.readInbox(run.id)).items).toEqual([]);
    await runs.close();
  });

  it("a decision for another call: the call that waits goes on waiting", async () => {
    const agent = scriptedAgent([callAll([["ask", { question: "Which?" }]]), "Done."], {
      tools: [askTool()],
    });
    await withWorker(await store.create(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      await vi.waitFor(async () => expect((await run.info()).status).toBe("waiting"), 20_000);
      const decision = run.decide({ other: { type: "approve" } });
      await expect(decision).rejects.toMatchObject({ code: "not_pending" });
      await expect(decision).rejects.toThrow(/"other"/);
      expect(await run.info()).toMatchObject({ status: "waiting", pending: [{}] });
    });
  });

  const asking = (paid: string[]): DurableAgent =>
    scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], {
      tools: [effectTool("pay", (to) => `${paid.push(to)}`, { needsApproval: true })],
    });

  it("what is no decision: it is not sent, and the call waits as before", async () => {
    const paid: string[] = [];
    await withWorker(await store.create(), { agents: [asking(paid)] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office" });
      await vi.waitFor(async () => expect((await run.info()).status).toBe("waiting"), 20_000);
      const [call] = (await run.info()).pending;
      const id = call?.toolCall.id ?? "";
      const wrong: [unknown, string][] = [
        [{ type: "approved" }, `The decision on "${id}" is one of approve, deny, result and wait.`],
        [true, `The decision on "${id}" is one of approve, deny, result and wait.`],
        [
          { type: "approve", arguments: { to: "b" } },
          'There is no "arguments" of an approval: write args.',
        ],
        [
          { type: "result", result: "By hand." },
          `The result for "${id}" has "content", a list of texts, images and files.`,
        ],
      ];
      for (const [decision, message] of wrong) {
        const deciding = run.decide({ [id]: decision as never });
        await expect(deciding).rejects.toMatchObject({ code: "invalid", message });
      }
      expect((await runs.store.readInbox(run.id)).items).toEqual([]);
      await run.decide({ [id]: { type: "approve" } });
      expect((await run.result()).text).toBe("Done.");
      expect(paid).toEqual(["a"]);
    });
  });

  it("wrong items that are in the inbox already: they are put aside, and the run goes on", async () => {
    const paid: string[] = [];
    const reported: string[] = [];
    const opened = await openStore(await store.create());
    const runs = new Runs(opened, { onError: (_error, where) => void reported.push(where) });
    const worker = new Worker(runs, { agents: [asking(paid)] });
    await worker.start();
    const run = await runs.start("Pay.", { agent: "office" });
    await vi.waitFor(async () => expect((await run.info()).status).toBe("waiting"), 20_000);
    const [call] = (await run.info()).pending;
    const id = call?.toolCall.id ?? "";
    const wrong: [NewItem["kind"], string][] = [
      ["decision", JSON.stringify({ [id]: { type: "approved" } })],
      ["decision", JSON.stringify({ [id]: true })],
      ["decision", JSON.stringify({ [id]: { type: "result", result: "By hand." } })],
      ["decision", "null"],
      ["decision", "no JSON"],
      ["steering", "no JSON"],
      ["steering", '{"message":{"role":"user","content":"No list."}}'],
      ["followUp", '["{}"]'],
      ["abort", "no JSON"],
    ];
    for (const [at, [kind, data]] of wrong.entries()) {
      await opened.send({ run: run.id, kind, data, key: `wrong ${at}` });
      await vi.waitFor(async () => {
        expect((await opened.readInbox(run.id)).items).toEqual([]);
        expect((await run.info()).status).toBe("waiting");
      }, 20_000);
    }
    expect(reported.length).toBeGreaterThanOrEqual(wrong.length);
    expect(new Set(reported)).toEqual(new Set(wrong.map(([kind]) => `inbox: ${kind}`)));
    await run.decide({ [id]: { type: "approve" } });
    expect((await run.result()).text).toBe("Done.");
    expect(paid).toEqual(["a"]);
    await worker.stop({ drainMs: 0 });
    const session = await runs.sessions().open(run.id);
    for (const entry of session.entries) expect(await session.read(entry.id)).toBeDefined();
    expect((await session.context()).messages).toHaveLength(4);
    await session.close();
    await runs.close();
  });

  it("a run id twice with another prompt: the first run is as it was", async () => {
    const runs = await openRuns(await store.create());
    const run = await runs.start("Order tea.", { agent: "office", id: "order" });
    const other = runs.start("Order coffee.", { agent: "office", id: "order" });
    await expect(other).rejects.toMatchObject({ code: "exists" });
    await expect(other).rejects.toThrow('give this one another id, or go on with get("order")');
    expect(await run.messages()).toMatchObject([{ content: "Order tea." }]);
    expect((await runs.list()).runs).toHaveLength(1);
    await runs.close();
  });
});
