/** CPU time of this process, user and system, in milliseconds. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export function collect(): void {
  const { gc } = globalThis as { gc?: () => void };
  if (!gc) throw new Error("Run with --expose-gc.");
  gc();
}

/** Collections happen as they do in life: forcing one would also throw away compiled code. */
export async function measureCpu(work: () => Promise<void>): Promise<number> {
  const before = cpuMs();
  await work();
  return cpuMs() - before;
}

/** How long it is run before the first round that counts, for the compiler to settle. */
const WARM_UP_MS = 3_000;

/** Medians of the works over interleaved rounds, warmed up. */
export async function interleaved(
  rounds: number,
  works: Readonly<Record<string, () => Promise<void>>>,
): Promise<Record<string, number>> {
  const warmedUpAt = performance.now() + WARM_UP_MS;
  while (performance.now() < warmedUpAt) for (const work of Object.values(works)) await work();
  const times: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, work] of Object.entries(works)) {
      (times[name] ??= []).push(await measureCpu(work));
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, median(ms)]));
}
