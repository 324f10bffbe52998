/** Prints a figure in milliseconds, or another unit, and whether it is within its limit. */
export function printFigure(what: string, value: number, most: number, unit = "ms"): boolean {
  const isGood = value <= most;
  console.log(
    `${what}: ${value.toFixed(2)} ${unit} (at most ${most}): ${isGood ? "ok" : "TOO MUCH"}`,
  );
  return isGood;
}

export function takeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

export async function takeMs(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}
