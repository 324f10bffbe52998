import { expect, it } from "vitest";
import { growthExponent, timed } from "./measure.ts";

const SIZES = [10, 100, 1_000, 10_000];

it.each([
  ["what takes as long whatever its size", 0, () => 7],
  ["linear work", 1, (size: number) => 3 * size],
  ["work that sorts", 1.2, (size: number) => size * Math.log(size)],
  ["quadratic work", 2, (size: number) => 0.001 * size ** 2],
])("the exponent of %s is %d", (_, exponent, time) => {
  expect(growthExponent(SIZES.map((size) => [size, time(size)]))).toBeCloseTo(exponent, 2);
});

it("the exponent is that of the growth alone: neither the unit nor the order counts", () => {
  const points = SIZES.map((size) => [size, size ** 1.5] as const);
  expect(growthExponent(points)).toBeCloseTo(1.5, 9);
  expect(growthExponent(points.map(([size, ms]) => [size, ms * 1000]))).toBeCloseTo(1.5, 9);
  expect(growthExponent(points.toReversed())).toBeCloseTo(1.5, 9);
});

it("the exponent is fitted to all points, not just to the first and the last", () => {
  const bent = growthExponent([
    [1, 1],
    [10, 10],
    [100, 10],
    [1_000, 1_000],
  ]);
  expect(bent).toBeCloseTo(0.9, 9);
});

it("two points are enough for an exponent", () => {
  expect(
    growthExponent([
      [2, 8],
      [4, 64],
    ]),
  ).toBeCloseTo(3, 9);
});

it("short work is repeated until its time can be measured, and counts as one run", async () => {
  let runs = 0;
  const began = performance.now();
  const { wallMs, cpuMs } = await timed(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    runs++;
  });
  const passed = performance.now() - began;
  expect(runs).toBeGreaterThan(1);
  expect(passed).toBeGreaterThanOrEqual(60);
  expect(wallMs * runs).toBeLessThanOrEqual(passed);
  expect(cpuMs).toBeGreaterThanOrEqual(0);
});

it("work that fails is not timed", async () => {
  await expect(timed(() => Promise.reject(new Error("boom")))).rejects.toThrow("boom");
});
