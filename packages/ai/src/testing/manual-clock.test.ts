import { describe, expect, it } from "vitest";
import { loadPart } from "../common/loading.ts";
import { manualClock } from "./manual-clock.ts";

describe("manualClock", () => {
  it("stands still until it is advanced", async () => {
    const clock = manualClock(1000);
    let ran = false;
    clock.after(5, () => (ran = true));
    await clock.turn();
    expect([clock.now(), ran, clock.pending]).toEqual([1000, false, 1]);
    await clock.advance(4);
    expect([clock.now(), ran, clock.pending]).toEqual([1004, false, 1]);
    await clock.advance(1);
    expect([clock.now(), ran, clock.pending]).toEqual([1005, true, 0]);
  });

  it("runs what is due in order of time, then of setting, each at its own time", async () => {
    const clock = manualClock();
    const ran: [string, number][] = [];
    clock.after(20, () => ran.push(["late", clock.now()]));
    clock.after(10, () => ran.push(["first of two", clock.now()]));
    clock.after(10, () => ran.push(["second of two", clock.now()]));
    clock.after(31, () => ran.push(["not due", clock.now()]));
    await clock.advance(30);
    expect(ran).toEqual([
      ["first of two", 10],
      ["second of two", 10],
      ["late", 20],
    ]);
    expect(clock.now()).toBe(30);
  });

  it("waits for parts of the code that are loaded on the way, however long that takes", async () => {
    const clock = manualClock();
    let done = false;
    const loading = new Promise((resolve) => setTimeout(resolve, 30));
    void (async () => {
      await loadPart(loading);
      await loadPart(Promise.reject(new Error("not there"))).catch(() => undefined);
      clock.after(10, () => (done = true));
    })();
    await clock.advance(10);
    expect(done).toBe(true);
  });

  it("runs timers that are set on the way, after promises have had their turn", async () => {
    const clock = manualClock();
    const wait = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
    const ticks: number[] = [];
    void (async () => {
      for (let i = 0; i < 5; i++) {
        await wait(10);
        await clock.turn();
        ticks.push(clock.now());
      }
    })();
    await clock.advance(50);
    expect(ticks).toEqual([10, 20, 30, 40, 50]);
  });

  it("forgets a timer that was taken back", async () => {
    const clock = manualClock();
    const undo = clock.after(1, () => expect.unreachable());
    undo();
    undo();
    expect(clock.pending).toBe(0);
    await clock.advance(10);
  });

  it("throws what a timer throws, and can go on", async () => {
    const clock = manualClock();
    clock.after(1, () => {
      throw new Error("from the timer");
    });
    await expect(clock.advance(1)).rejects.toThrow("from the timer");
    await clock.advance(1);
    expect(clock.now()).toBe(2);
  });
});
