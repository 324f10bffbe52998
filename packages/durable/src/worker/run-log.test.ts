import { describe, expect, it, vi } from "vitest";
import { DurableError } from "../contract/errors.ts";
import type { Change, Claim, Fence, Store } from "../contract/store.ts";
import { Outage } from "./outage.ts";
import { RunLog } from "./run-log.ts";

const CLAIM: Claim = {
  ...{ session: "s", worker: "w", token: 1, claim: "c", tenant: "", agent: "a", version: "1" },
  ...{ seq: 0, leaf: null, deaths: 0 },
};

const row = (id: number) => ({
  ...{ id, parentId: null, type: "message" as const, timestamp: 0, data: "{}" },
});

describe("flush", () => {
  it.each(Array.from({ length: 20 }, (_, turns) => turns))(
    "has stored what was appended before it, also %i turns after another began",
    async (turns) => {
      const stored: number[] = [];
      const store = {
        append: async (_fence: unknown, { entries }: Change) => {
          stored.push(...entries.map(({ id }) => id));
          return "done";
        },
      } as unknown as Store;
      const log = new RunLog(store, CLAIM, new AbortController().signal, new Outage());
      await log.append([row(1)]);
      const first = log.flush();
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      void log.append([row(2)]);
      await log.flush();
      expect(stored).toEqual([1, 2]);
      await first;
    },
  );
});

describe("a store that is away", () => {
  it("D14 all commits that wait are made as soon as one of them is", async () => {
    vi.useFakeTimers();
    try {
      let isAway = true;
      const stored: string[] = [];
      const store = {
        append: async ({ session }: Fence) => {
          if (isAway) throw new DurableError("unavailable", "away");
          stored.push(session);
          return "done";
        },
      } as unknown as Store;
      const outage = new Outage();
      const commit = async (session: string): Promise<void> => {
        const { signal } = new AbortController();
        const log = new RunLog(store, { ...CLAIM, session }, signal, outage);
        await log.append([row(1)]);
        await log.flush();
      };
      const commits = [commit("a"), commit("b")];
      // By now they try twice a second, at the same time.
      await vi.advanceTimersByTimeAsync(5_000);
      isAway = false;
      commits.push(commit("c"));
      await vi.advanceTimersByTimeAsync(0);
      expect(stored).toEqual(["c", "a", "b"]);
      await Promise.all(commits);
    } finally {
      vi.useRealTimers();
    }
  });

  it("D14 a commit that fails while others are made is not tried more often", async () => {
    let tries = 0;
    const store = {
      append: async ({ session }: Fence) => {
        if (session === "b") return "done";
        tries++;
        throw new DurableError("unavailable", "away");
      },
    } as unknown as Store;
    const outage = new Outage();
    const lost = new AbortController();
    const open = async (session: string): Promise<RunLog> => {
      const log = new RunLog(store, { ...CLAIM, session }, lost.signal, outage);
      await log.append([row(1)]);
      return log;
    };
    const failing = (await open("a")).flush();
    for (let count = 0; count < 100; count++) await (await open("b")).flush();
    expect(tries).toBeLessThan(10);
    lost.abort();
    await expect(failing).rejects.toThrow("worked on by another worker");
  });
});
