import { totalmem } from "node:os";
import { describe, expect, it } from "vitest";
import { findMaxRss, LoadGauge, type LoadProbe } from "./load.ts";

const MS = 1e6;

/** A process whose time, memory and delays a test sets. */
function fakeProbe(): { state: { now: number; rss: number; p99Ms: number }; probe: LoadProbe } {
  const state = { now: 0, rss: 0, p99Ms: 20 };
  const delays = {
    enable: () => true,
    disable: () => true,
    reset: () => (state.p99Ms = 0),
    percentile: () => state.p99Ms * MS,
  };
  return { state, probe: { now: () => state.now, rssBytes: () => state.rss, delays } };
}

describe("back-pressure", () => {
  const limits = { maxLagMs: 200, maxRssBytes: 1_000 };

  it("of the event loop counts whole windows of 5 s, and ends with the next good one", () => {
    const { state, probe } = fakeProbe();
    const gauge = new LoadGauge(limits, probe);
    gauge.start();
    state.p99Ms = 220;
    state.now = 4_999;
    expect(gauge.findOverload()).toBeUndefined();
    state.now = 5_000;
    expect(gauge.findOverload()).toBe("lag");
    expect(gauge.lagMs).toBe(200);
    state.p99Ms = 219;
    state.now = 9_999;
    expect(gauge.findOverload()).toBe("lag");
    state.now = 10_000;
    expect(gauge.findOverload()).toBeUndefined();
  });

  it("of the memory counts at once", () => {
    const { state, probe } = fakeProbe();
    const gauge = new LoadGauge(limits, probe);
    state.rss = 1_000;
    expect(gauge.findOverload()).toBe("memory");
    state.rss = 999;
    expect(gauge.findOverload()).toBeUndefined();
  });

  it("has a default for the memory that the machine can give", () => {
    expect(findMaxRss()).toBeGreaterThan(0);
    expect(findMaxRss()).toBeLessThanOrEqual(0.8 * totalmem());
  });
});
