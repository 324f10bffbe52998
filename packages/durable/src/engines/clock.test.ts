import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchClock } from "./clock.ts";

const HOUR_MS = 3_600_000;

describe("a watch over the clock of the machine", () => {
  beforeEach(() =>
    vi.useFakeTimers({ toFake: ["Date", "performance", "setInterval", "clearInterval"] }),
  );
  afterEach(() => vi.useRealTimers());

  it("D28 notices once that it was set back", () => {
    const onSetback = vi.fn<() => void>();
    const end = watchClock(onSetback);
    vi.advanceTimersByTime(10_000);
    expect(onSetback).not.toHaveBeenCalled();
    vi.setSystemTime(Date.now() - HOUR_MS);
    vi.advanceTimersByTime(10_000);
    expect(onSetback).toHaveBeenCalledTimes(1);
    vi.setSystemTime(Date.now() - 1_000);
    vi.advanceTimersByTime(500);
    expect(onSetback).toHaveBeenCalledTimes(2);
    end();
    vi.setSystemTime(Date.now() - HOUR_MS);
    vi.advanceTimersByTime(10_000);
    expect(onSetback).toHaveBeenCalledTimes(2);
  });

  it("minds neither a clock that is set forward nor one that is slow", () => {
    const onSetback = vi.fn<() => void>();
    const end = watchClock(onSetback);
    vi.setSystemTime(Date.now() + HOUR_MS);
    vi.advanceTimersByTime(1_000);
    for (let seconds = 0; seconds < 100; seconds++) {
      vi.setSystemTime(Date.now() - 20);
      vi.advanceTimersByTime(1_000);
    }
    expect(onSetback).not.toHaveBeenCalled();
    end();
  });

  it("does not mind that the process is stopped between two looks at its clocks", () => {
    const onSetback = vi.fn<() => void>();
    let time = 0;
    const day = vi.spyOn(Date, "now").mockImplementation(() => (time += 60_000) - 60_000);
    const steady = vi.spyOn(performance, "now").mockImplementation(() => time);
    const end = watchClock(onSetback);
    vi.advanceTimersByTime(5_000);
    day.mockImplementation(() => time);
    vi.advanceTimersByTime(5_000);
    expect(onSetback).not.toHaveBeenCalled();
    for (const mock of [day, steady]) mock.mockRestore();
    end();
  });
});
