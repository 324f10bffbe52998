import { afterAll, describe, expect, it, vi } from "vitest";
import type { Inbox, RunRow, StoredEntry } from "../contract/store.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { scriptedAgent, temporaryUrls, wrapStore } from "./harness.ts";
import { Worker } from "./worker.ts";

const newUrl = temporaryUrls("bad_rows", afterAll);

/** What a hand, or a disk, has changed in the tables. */
interface Damage {
  inbox?: (inbox: Inbox) => Inbox;
  entries?: (rows: StoredEntry[]) => StoredEntry[];
  run?: (row: RunRow) => RunRow | undefined;
}

async function withDamage(
  damage: Damage,
  act: (runs: Runs, onRequest: () => void) => Promise<void>,
): Promise<void> {
  const store = wrapStore(await openStore(newUrl()), async (name, call) => {
    const value = await call();
    if (name === "readInbox") return damage.inbox?.(value as Inbox) ?? value;
    if (name === "readEntriesAfter") return damage.entries?.(value as StoredEntry[]) ?? value;
    if (name === "readRun" && value && damage.run) return damage.run(value as RunRow);
    return value;
  });
  const runs = new Runs(store, { onError: () => {} });
  const onRequest = vi.fn<() => void>();
  const agent = scriptedAgent(["One.", "Two.", "Three."], { onRequest });
  const worker = new Worker(runs, { agents: [agent] });
  await worker.start();
  try {
    await act(runs, onRequest);
  } finally {
    await worker.stop({ drainMs: 0 });
    await runs.close();
  }
}

describe("rows that cannot be read", () => {
  it("D16 a prompt that cannot be read ends its run with an error, and no other", async () => {
    const damage: Damage = {
      inbox: ({ items, ...inbox }) => ({
        ...inbox,
        items: items.map((item) =>
          item.kind === "prompt" && item.run === "bad" ? { ...item, data: "{oops" } : item,
        ),
      }),
    };
    await withDamage(damage, async (runs, onRequest) => {
      const options = { agent: "office", session: "s" };
      // Not before the others are queued behind it.
      const at = new Date(Date.now() + 600_000);
      const first = await runs.start("First.", { ...options, id: "first", at });
      const bad = await runs.start("Bad.", { ...options, id: "bad" });
      const last = await runs.start("Last.", { ...options, id: "last" });
      await first.abort();
      const result = await bad.result();
      expect(result).toMatchObject({ stop: "error", messages: [] });
      expect(result.error).toContain('The prompt of run "bad" cannot be read: ');
      const ends = [];
      for await (const { event } of bad.watch()) ends.push(event);
      expect(ends).toMatchObject([
        { type: "agent_end", stop: "error", errorMessage: result.error },
      ]);
      await expect(bad.retry()).rejects.toMatchObject({ code: "invalid" });
      expect((await last.result()).text).toBe("One.");
      expect(onRequest).toHaveBeenCalledTimes(1);
    });
  });

  it("D16 a queued run that was removed keeps none behind it from its turn", async () => {
    const damage: Damage = { run: (row) => (row.id === "gone" ? undefined : row) };
    await withDamage(damage, async (runs) => {
      const options = { agent: "office", session: "s" };
      const at = new Date(Date.now() + 600_000);
      const first = await runs.start("First.", { ...options, id: "first", at });
      await runs.start("Gone.", { ...options, id: "gone" });
      const last = await runs.start("Last.", { ...options, id: "last" });
      await first.abort();
      expect((await last.result()).text).toBe("One.");
    });
  });

  it("D16 an open run that was removed keeps none behind it from its turn", async () => {
    const damage: Damage = { run: (row) => (row.id === "gone" ? undefined : row) };
    await withDamage(damage, async (runs) => {
      const options = { agent: "office", session: "s" };
      const at = new Date(Date.now() + 300);
      await runs.start("Gone.", { ...options, id: "gone", at });
      const last = await runs.start("Last.", { ...options, id: "last" });
      expect((await last.result()).text).toBe("One.");
    });
  });

  it("D3 an entry that cannot be read ends the run with an error, and the log stays as it is", async () => {
    let isDamaged = false;
    const damage: Damage = {
      entries: (rows) =>
        isDamaged ? rows.map((row) => (row.id === 1 ? { ...row, data: "{oops" } : row)) : rows,
    };
    await withDamage(damage, async (runs, onRequest) => {
      const options = { agent: "office", session: "s" };
      const first = await runs.start("First.", { ...options, id: "first" });
      await first.result();
      isDamaged = true;
      const second = await runs.start("Second.", { ...options, id: "second" });
      await vi.waitFor(async () => expect((await second.info()).status).toBe("ended"), {
        timeout: 10_000,
      });
      const { stop, error } = await second.info();
      expect(stop).toBe("error");
      expect(error).toContain(
        'Run "second" cannot be read from its store: The session s has an entry 1 that is no JSON. ',
      );
      expect(onRequest).toHaveBeenCalledTimes(1);
      isDamaged = false;
      await second.retry();
      expect((await second.result()).text).toBe("Two.");
    });
  });

  it.each(["meta", "limits", "usage", "output"] as const)(
    "D22 a run whose %s cannot be read ends with an error",
    async (column) => {
      let isDamaged = true;
      const damage: Damage = { run: (row) => (isDamaged ? { ...row, [column]: "{oops" } : row) };
      await withDamage(damage, async (runs, onRequest) => {
        const run = await runs.start("Go.", { agent: "office", id: "r" });
        await vi.waitFor(
          async () => expect((await runs.store.listRuns({ limit: 1 }))[0]?.status).toBe("ended"),
          { timeout: 10_000 },
        );
        const [row] = await runs.store.listRuns({ limit: 1 });
        expect(row?.stop).toBe("error");
        expect(row?.error).toBeTruthy();
        expect(onRequest).not.toHaveBeenCalled();
        isDamaged = false;
        await run.retry();
        expect((await run.result()).text).toBe("One.");
      });
    },
  );
});
