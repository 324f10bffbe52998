import { describe, expect, it } from "vitest";
import { addUsage, computeCost, totalTokens } from "./usage.ts";

describe("computeCost", () => {
  const price = { input: 3, output: 15, cacheRead: 0.3 };

  it("is the tokens of each kind at its price for a million", () => {
    expect(
      computeCost({ input: 1_000_000, output: 200_000, cacheRead: 10_000_000 }, price),
    ).toEqual({
      input: 3,
      output: 3,
      cacheRead: 3,
      total: 9,
    });
  });

  it("is absent where a price that it needs is unknown, never 0", () => {
    expect(computeCost({ input: 1, output: 1 }, undefined)).toBeUndefined();
    expect(computeCost({ input: 1, cacheWrite: 1 }, price)).toBeUndefined();
    expect(computeCost({ input: 1, cacheWrite: 0 }, price)).toEqual({ input: 3e-6, total: 3e-6 });
  });

  it("is absent where the service reports no tokens", () => {
    expect(computeCost({}, price)).toBeUndefined();
  });

  it("is 0 for a price of 0 that is known", () => {
    expect(computeCost({ input: 5, output: 5 }, { input: 0, output: 0 })).toEqual({
      input: 0,
      output: 0,
      total: 0,
    });
  });
});

describe("totalTokens", () => {
  it("is what was reported, else the sum of the parts", () => {
    expect(totalTokens({ input: 1, output: 2, totalTokens: 10 })).toBe(10);
    expect(totalTokens({ input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 2 })).toBe(
      10,
    );
    expect(totalTokens({})).toBe(0);
  });
});

describe("addUsage", () => {
  it("adds each part, and leaves out what neither knows", () => {
    expect(addUsage({ input: 1, reasoning: 1 }, { input: 2, output: 3 })).toEqual({
      input: 3,
      output: 3,
      reasoning: 1,
      totalTokens: 6,
    });
    expect(addUsage({}, {})).toEqual({});
  });

  it("adds costs part by part", () => {
    const one = { input: 1, cost: { input: 1, total: 1 } };
    const other = { input: 1, cost: { input: 2, cacheRead: 3, total: 5 } };
    expect(addUsage(one, other).cost).toEqual({ input: 3, cacheRead: 3, total: 6 });
  });

  it("keeps the cost where the other used nothing", () => {
    const one = { input: 1, cost: { total: 1 } };
    expect(addUsage({}, one).cost).toEqual({ total: 1 });
    expect(addUsage(one, {}).cost).toEqual({ total: 1 });
  });

  it("does not know the cost where one has tokens of unknown price", () => {
    const priced = { input: 1, cost: { total: 1 } };
    const sum = addUsage(priced, { input: 1 });
    expect(sum).toEqual({ input: 2, totalTokens: 2 });
    expect(addUsage(sum, priced)).not.toHaveProperty("cost");
  });
});

describe("prices by the size of a request", () => {
  const price = {
    input: 1,
    output: 2,
    cacheRead: 0.1,
    tiers: [
      { above: 500_000, input: 8 },
      { above: 200_000, input: 4, output: 6 },
    ],
  };

  it.each([
    [200_000, 0, 0.2 + 2],
    [100_000, 100_001, 0.1 * 4 + 0.0100001 + 6],
    [600_000, 0, 0.6 * 8 + 6],
  ])("%i tokens and %i from a cache cost %f dollars", (input, cacheRead, total) => {
    const cost = computeCost({ input, cacheRead, output: 1_000_000 }, price);
    expect(cost?.total).toBeCloseTo(total, 9);
  });
});

describe("prices of some requests", () => {
  const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

  it("are higher for what a cache keeps for an hour", () => {
    const usage = { input: 0, output: 0, cacheWrite: 1_000_000, longCacheWrite: 1_000_000 };
    expect(computeCost(usage, price)?.total).toBe(6);
    const half = { ...usage, longCacheWrite: 500_000 };
    expect(computeCost(half, price)?.total).toBe(4.875);
    expect(computeCost(usage, { ...price, longCacheWrite: 7 })?.total).toBe(7);
    expect(computeCost({ ...usage, longCacheWrite: 0 }, price)?.total).toBe(3.75);
  });

  it.each([
    ["default", 18],
    ["flex", 9],
    ["batch", 9],
    ["priority", 36],
    ["some-other", undefined],
  ])("are those of the tier %s", (serviceTier, total) => {
    const usage = { input: 1_000_000, output: 1_000_000, serviceTier };
    expect(computeCost(usage, price)?.total).toBe(total);
  });

  it("are added up over several requests", () => {
    const one = { input: 1, cacheWrite: 10, longCacheWrite: 10 };
    expect(addUsage(one, { input: 1, cacheWrite: 5 })).toMatchObject({ longCacheWrite: 10 });
  });
});
