import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { defineAgent } from "../contract/agent.ts";
import { MAX_ENTRY_BYTES } from "../contract/messages.ts";
import { openDriver } from "../sqlite/driver/driver.ts";
import { SCHEMA_VERSION } from "../sqlite/schema.ts";
import { effectTool, scriptedAgent, temporaryUrls, withWorker } from "../worker/harness.ts";
import { openRuns } from "./open.ts";

const newUrl = temporaryUrls("bad-input", afterAll);
const folder = mkdtempSync(join(tmpdir(), "gyre-bad-input-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a store that cannot be opened", () => {
  it.each([
    ["mysql://root:secret@db/runs", "bad_url", "mysql://root:***@db/runs"],
    ["./runs.db", "bad_url", 'give a file, such as "file:./runs.db"'],
    ["file:", "bad_url", "names no file"],
    [`file:${join(folder, "missing", "runs.db")}`, "no_access", "its folder has to exist"],
    [`file:${folder}`, "no_access", "cannot be opened"],
  ])("%s", async (url, code, words) => {
    const opening = openRuns(url);
    await expect(opening).rejects.toMatchObject({ code });
    await expect(opening).rejects.toThrow(words);
  });

  it("a file that is no database is left as it is", async () => {
    const path = join(folder, "letter.txt");
    writeFileSync(path, "Dear reader, this is a letter and not a database at all. ".repeat(20));
    await expect(openRuns(`file:${path}`)).rejects.toMatchObject({
      code: "not_a_store",
      message: expect.stringContaining("is no SQLite database: give the path of another file"),
    });
    expect(readdirSync(folder)).toEqual(["letter.txt"]);
  });

  it("tables of a newer version, unless that says that this one may work", async () => {
    const url = newUrl();
    const path = url.slice("file:".length);
    await (await openRuns(url)).close();
    const driver = await openDriver(path);
    driver.exec(`pragma user_version = ${SCHEMA_VERSION + 2}`);
    await expect((await openRuns(url)).close()).resolves.toBeUndefined();
    const oldest = `update gyre_meta set value = '${SCHEMA_VERSION + 1}' where key = 'oldest_schema'`;
    driver.exec(oldest);
    await expect(openRuns(url)).rejects.toMatchObject({
      code: "schema_newer",
      message: expect.stringContaining(
        `are of version ${SCHEMA_VERSION + 2}, this package knows version ${SCHEMA_VERSION}: update`,
      ),
    });
    driver.close();
  });

  it("tables of an older version, where they may not be changed", async () => {
    await expect(openRuns(newUrl(), { migrate: false })).rejects.toMatchObject({
      code: "schema_older",
      message: expect.stringContaining("open it once with { migrate: true }"),
    });
  });

  it("a store that is closed", async () => {
    const runs = await openRuns(newUrl());
    await runs.close();
    await expect(runs.start("Go.", { agent: "office" })).rejects.toMatchObject({ code: "closed" });
  });
});

describe("a run that cannot be started", () => {
  it("the same id is the same run; with another prompt it is an error, and nothing is done", async () => {
    const runs = await openRuns(newUrl());
    await runs.start("Order tea.", { agent: "office", id: "order" });
    const again = await runs.start("Order tea.", { agent: "office", id: "order" });
    expect(await again.messages()).toHaveLength(1);
    const other = runs.start("Order coffee.", { agent: "office", id: "order" });
    await expect(other).rejects.toMatchObject({ code: "exists" });
    await expect(other).rejects.toThrow('There is a run "order" with another prompt');
    expect(await again.messages()).toMatchObject([{ content: "Order tea." }]);
    await runs.close();
  });

  it("a prompt that is too large, empty, or has no agent", async () => {
    const runs = await openRuns(newUrl());
    const large = runs.start("x".repeat(MAX_ENTRY_BYTES), { agent: "office" });
    await expect(large).rejects.toMatchObject({ code: "too_large" });
    await expect(large).rejects.toThrow("at most 16 MiB: keep it elsewhere");
    await expect(runs.start("", { agent: "office" })).rejects.toThrow("The prompt is empty");
    await expect(runs.start("Go.", { agent: "" })).rejects.toThrow("needs the name of an agent");
    const without = runs.start("Go.", undefined as never);
    await expect(without).rejects.toMatchObject({ code: "invalid" });
    await expect(without).rejects.toThrow('write { agent: "name" }');
    await expect(runs.schedule("Go.", undefined as never)).rejects.toThrow(
      "A schedule needs a name",
    );
    await expect(runs.start(undefined as never, { agent: "office" })).rejects.toThrow(
      "A prompt is a text, or messages",
    );
    expect((await runs.list()).runs).toEqual([]);
    await runs.close();
  });

  it("a session of another agent", async () => {
    const runs = await openRuns(newUrl());
    await runs.start("Go.", { agent: "office", session: "s" });
    await expect(runs.start("Go.", { agent: "other", session: "s" })).rejects.toThrow(
      'The session "s" belongs to another agent than "other"',
    );
    await runs.close();
  });

  it("an agent that no worker knows: the run waits, and says what is missing", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "offce" });
      expect((await run.info()).stuck).toBe(
        'No worker knows the agent "offce": start one that has it. Workers know office.',
      );
    });
  });

  it("no worker at all", async () => {
    const runs = await openRuns(newUrl());
    const run = await runs.start("Go.", { agent: "office" });
    expect((await run.info()).stuck).toBe("There is no worker: start one.");
    await runs.close();
  });
});

describe("a run that is not there, or has ended", () => {
  it("says so", async () => {
    const runs = await openRuns(newUrl());
    const run = runs.get("nope");
    const words = 'There is no run "nope": list() has those that there are.';
    await expect(run.info()).rejects.toThrow(words);
    await expect(run.steer("Hi")).rejects.toThrow(words);
    await expect(run.result()).rejects.toThrow(words);
    await expect(run.retry()).rejects.toThrow(words);
    await expect(runs.list({ after: "x" })).rejects.toThrow('"x" is not the `next` of a page.');
    await runs.close();
  });
});

describe("a result that is too large", () => {
  it("is an error for the model, which names the tool and the size; the run goes on", async () => {
    const huge = effectTool("pay", () => "x".repeat(MAX_ENTRY_BYTES));
    const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Too large."], { tools: [huge] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office" });
      const { text, messages } = await run.result();
      expect(text).toBe("Too large.");
      expect(JSON.stringify(messages[2])).toContain(
        'The result of tool \\"pay\\" has 16.0 MiB, and an entry of a run has at most 16 MiB',
      );
    });
  });
});

describe("an agent that cannot be", () => {
  it("says why", async () => {
    const open = vi.fn<() => never>();
    expect(() => defineAgent({ name: "a b", version: "1", open })).toThrow('got "a b"');
    expect(() => defineAgent({ name: "a", version: "", open })).toThrow("has no version");
    const agent = scriptedAgent(["Done."]);
    await expect(withWorker(newUrl(), { agents: [agent, agent] }, async () => {})).rejects.toThrow(
      "Two agents of a worker have the same name.",
    );
  });
});
