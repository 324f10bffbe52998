import { manualClock } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { QuietTimers } from "./quiet-timers.ts";

it("a timer fires after so long without a sign of life", async () => {
  const clock = manualClock();
  const fired: string[] = [];
  const timers = new QuietTimers(clock);
  const timer = timers.start(100, () => fired.push("one"));
  timers.start(100, () => fired.push("two"));
  await clock.advance(60);
  timer.restart();
  await clock.advance(60);
  expect(fired).toEqual(["two"]);
  await clock.advance(60);
  expect(fired).toEqual(["two", "one"]);
});

it("no timer runs while a person thinks, and each begins again after that", async () => {
  const clock = manualClock();
  const fired: string[] = [];
  const timers = new QuietTimers(clock);
  const stopped = timers.start(100, () => fired.push("stopped"));
  timers.start(100, () => fired.push("before"));
  let answer = (): void => {};
  const thinking = timers.pausedFor(
    () =>
      new Promise<void>((settle) => {
        answer = settle;
      }),
  );
  timers.start(100, () => fired.push("meanwhile"));
  await clock.advance(86_400_000);
  expect(fired).toEqual([]);
  stopped.stop();
  answer();
  await thinking;
  await clock.advance(99);
  expect(fired).toEqual([]);
  await clock.advance(1);
  expect(fired).toEqual(["before", "meanwhile"]);
});
