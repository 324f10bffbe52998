import type { Clock } from "@gyre/ai";
import { expect, it } from "vitest";
import { Spinner } from "./spinner.ts";

/** A clock in the test's hands: `turn` fires what waits. */
function setUp({ isCalm = false } = {}) {
  const waiting: { ms: number; run: () => void }[] = [];
  const clock: Pick<Clock, "after"> = {
    after(ms, run) {
      const timer = { ms, run };
      waiting.push(timer);
      return () => {
        const at = waiting.indexOf(timer);
        if (at >= 0) waiting.splice(at, 1);
      };
    },
  };
  const spinner = new Spinner({ clock, draw: () => {}, isCalm: () => isCalm });
  return { waiting, spinner, turn: () => waiting.shift()?.run() };
}

it("turns from start to stop, and no longer", () => {
  const { spinner, turn, waiting } = setUp();
  spinner.start();
  turn();
  turn();
  expect(spinner.tick).toBe(2);
  expect(waiting).toHaveLength(1);
  spinner.stop();
  expect(waiting).toEqual([]);
});

it("has one timer however often it is started", () => {
  const { spinner, waiting } = setUp();
  spinner.start();
  spinner.start();
  expect(waiting).toHaveLength(1);
});

it("turns slowly where something else moves", () => {
  const calm = setUp({ isCalm: true });
  const other = setUp();
  calm.spinner.start();
  other.spinner.start();
  expect(calm.waiting[0]?.ms).toBeGreaterThan(other.waiting[0]?.ms ?? 0);
});
