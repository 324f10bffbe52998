import { defineTool } from "@gyre/agent";
import {
  type FileContent,
  hashFile,
  MAX_INLINE_BYTES,
  readStoredFile,
  toBase64,
  type UserContent,
} from "@gyre/ai";
import { call } from "@gyre/ai/testing";
import type { Session } from "@gyre/sessions";
import { expect, it } from "vitest";
import { describeStores } from "../../../../tests/support/stores.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { scriptedAgent, withWorker } from "../worker/harness.ts";

const BYTES = new Uint8Array(MAX_INLINE_BYTES + 1).fill(7);
const FILE: FileContent = {
  type: "file",
  mediaType: "application/pdf",
  source: { type: "base64", data: toBase64(BYTES) },
};
const HASH = await hashFile(BYTES);

async function append(session: Session, content: UserContent[]): Promise<void> {
  await session.append({ type: "message", message: { role: "user", content, timestamp: 1 } });
}

describeStores("contents of large files", (stores) => {
  it("are stored once, and deleted with the last session that has them", async () => {
    const url = await stores.create();
    const runs = await openRuns(url);
    const store = await openStore(url);
    const sessions = runs.sessions();
    for (const id of ["one", "two"]) {
      const session = await sessions.create({ cwd: "/tea", id });
      await append(session, [FILE]);
      await session.close();
    }
    const [row] = await store.readEntries("one", [1]);
    expect(row?.data).toContain(`"sha256":"${HASH}"`);
    expect(row?.data.length).toBeLessThan(1_000);
    await sessions.remove("one");
    expect(await store.sessions.readFile("one", HASH)).toBeUndefined();
    const left = await store.sessions.readFile("two", HASH);
    expect(left?.length).toBe(BYTES.length);
    await sessions.remove("two");
    // Another session does not get what is gone by its hash.
    await (await sessions.create({ cwd: "/tea", id: "three" })).close();
    expect(await store.sessions.readFile("three", HASH)).toBeUndefined();
    await store.close();
    await runs.close();
  });

  it("are there for a session that has them alone", async () => {
    const url = await stores.create();
    const runs = await openRuns(url);
    const sessions = runs.sessions();
    const session = await sessions.create({ cwd: "/tea", id: "one" });
    await append(session, [FILE]);
    const other = await sessions.create({ cwd: "/tea", id: "two" });
    expect(await other.files?.read(HASH)).toBeUndefined();
    const bytes =
      session.files && (await readStoredFile({ sha256: HASH, size: BYTES.length }, session.files));
    expect(bytes && Buffer.from(bytes).equals(BYTES)).toBe(true);
    await session.close();
    await other.close();
    await runs.close();
  });

  it("of a session that is gone are not stored", async () => {
    const store = await openStore(await stores.create());
    await store.sessions.writeFile("none", HASH, BYTES);
    expect(await store.sessions.readFile("none", HASH)).toBeUndefined();
    await store.close();
  });

  it("that many sessions store and lose at once are there for each that has them", async () => {
    const url = await stores.create();
    const runs = await openRuns(url);
    const store = await openStore(url);
    const sessions = runs.sessions();
    const ids = Array.from({ length: 12 }, (_, at) => `s${at}`);
    for (const id of ids) await (await sessions.create({ cwd: "/", id })).close();
    await Promise.all(
      ids.map(async (id, at) => {
        await store.sessions.writeFile(id, HASH, BYTES);
        if (at % 2 === 0) await store.sessions.remove(id);
      }),
    );
    for (const [at, id] of ids.entries()) {
      const bytes = await store.sessions.readFile(id, HASH);
      expect([id, bytes?.length]).toEqual([id, at % 2 === 0 ? undefined : BYTES.length]);
    }
    await store.close();
    await runs.close();
  });

  it("of runs go with retention, and reach the model in every turn", async () => {
    const seen: boolean[] = [];
    const look = defineTool({
      name: "look",
      description: "Looks",
      parameters: { type: "object" },
      execute: () => ({ content: [FILE] }),
    });
    const agent = scriptedAgent(
      [
        call("look"),
        (context) => {
          seen.push(JSON.stringify(context.messages).includes(toBase64(BYTES)));
          return "A page.";
        },
        (context) => {
          seen.push(JSON.stringify(context.messages).includes(toBase64(BYTES)));
          return "Still a page.";
        },
      ],
      { tools: [look] },
    );
    const url = await stores.create();
    const store = await openStore(url);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const first = await runs.start("Look", { agent: "office", session: "s" });
      expect((await first.result()).text).toBe("A page.");
      const rows = await store.readEntriesAfter("s", 0, 100);
      expect(Math.max(...rows.map(({ data }) => data.length))).toBeLessThan(5_000);
      expect((await store.sessions.readFile("s", HASH))?.length).toBe(BYTES.length);
      const second = await runs.start("And now?", { agent: "office", session: "s" });
      expect((await second.result()).text).toBe("Still a page.");
    });
    expect(seen).toEqual([true, true]);
    expect(await store.prune(Number.MAX_SAFE_INTEGER, 100)).toBe(2);
    expect(await store.sessions.readFile("s", HASH)).toBeUndefined();
    await store.close();
  });
});
