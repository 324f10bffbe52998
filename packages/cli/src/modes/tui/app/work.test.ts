import type { Clock } from "@gyre/ai";
import { expect, it } from "vitest";
import { Work } from "./work.ts";

/** A clock in the test's hands: `turn` fires what waits. */
function setUp({ isCalm = false } = {}) {
  const waiting: { ms: number; run: () => void }[] = [];
  const clock: Pick<Clock, "now" | "after"> = {
    now: () => 0,
    after(ms, run) {
      const timer = { ms, run };
      waiting.push(timer);
      return () => {
        const at = waiting.indexOf(timer);
        if (at >= 0) waiting.splice(at, 1);
      };
    },
  };
  const work = new Work({ clock, draw: () => {}, isCalm: () => isCalm });
  return { waiting, work, turn: () => waiting.shift()?.run() };
}

const never = (): Promise<void> => new Promise(() => {});

it("turns the spinner while something is done, and no longer", async () => {
  const { turn, waiting, work } = setUp();
  await work.run(async () => {
    turn();
    turn();
    expect(work.tick).toBe(2);
    expect(waiting).toHaveLength(1);
  });
  expect(waiting).toEqual([]);
  expect(work.task).toBeUndefined();
});

it("has one spinner where a command goes on with a prompt", async () => {
  const { waiting, work } = setUp();
  await work.run(async () => {
    work.forget();
    void work.run(never);
  }, "/command");
  expect(waiting).toHaveLength(1);
  expect(work.task).not.toHaveProperty("name");
});

it("turns it slowly where something else moves", () => {
  const calm = setUp({ isCalm: true });
  const other = setUp();
  void calm.work.run(never);
  void other.work.run(never);
  expect(calm.waiting[0]?.ms).toBeGreaterThan(other.waiting[0]?.ms ?? 0);
});

it("stops it where the work fails", async () => {
  const { waiting, work } = setUp();
  await expect(work.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(waiting).toEqual([]);
});
