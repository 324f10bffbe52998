import { cpuMs } from "../src/measure/measure.ts";

/** A run that is shorter is repeated until so much time has passed, and counts as one of them. */
const SHORTEST_MS = 60;

export interface Times {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** What one run of `work` takes: the mean of as many as are needed. */
export async function timed(work: () => Promise<void>): Promise<Times> {
  const wall = performance.now();
  const cpu = cpuMs();
  let runs = 0;
  let wallMs: number;
  do {
    await work();
    runs++;
    wallMs = performance.now() - wall;
  } while (wallMs < SHORTEST_MS);
  return { cpuMs: (cpuMs() - cpu) / runs, wallMs: wallMs / runs };
}

/** The slope of log(time) over log(size): 1 is linear, 2 is quadratic. */
export function growthExponent(points: readonly (readonly [size: number, time: number])[]): number {
  const logs = points.map(([size, time]) => [Math.log(size), Math.log(time)] as const);
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(logs.map(([size]) => size));
  const y = mean(logs.map(([, time]) => time));
  const over = logs.reduce((sum, [size, time]) => sum + (size - x) * (time - y), 0);
  const under = logs.reduce((sum, [size]) => sum + (size - x) ** 2, 0);
  return over / under;
}
