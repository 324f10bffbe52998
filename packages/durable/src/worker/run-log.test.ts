import { describe, expect, it } from "vitest";
import type { Change, Claim, Store } from "../contract/store.ts";
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
      const log = new RunLog(store, CLAIM, new AbortController().signal);
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
