import { execFileSync } from "node:child_process";

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
async function measureCpu(work: () => Promise<unknown>): Promise<number> {
  const before = cpuMs();
  await work();
  return cpuMs() - before;
}

/** How long it is run before the first round that counts, for the compiler to settle. */
const WARM_UP_MS = 3_000;

/** Medians of the works over interleaved rounds, warmed up. */
export async function interleaved(
  rounds: number,
  works: Readonly<Record<"floor" | "gyre", () => Promise<unknown>>>,
): Promise<{ floor: number; gyre: number }> {
  const warmedUpAt = performance.now() + WARM_UP_MS;
  while (performance.now() < warmedUpAt) for (const work of Object.values(works)) await work();
  const floor: number[] = [];
  const gyre: number[] = [];
  for (let round = 0; round < rounds; round++) {
    floor.push(await measureCpu(works.floor));
    gyre.push(await measureCpu(works.gyre));
  }
  return { floor: median(floor), gyre: median(gyre) };
}

/** CPU time in milliseconds of a process of Node that runs `code` as a module. */
export function measureScript(code: string, cwd: string = process.cwd()): number {
  const script = `${code};const{user,system}=process.cpuUsage();console.log((user+system)/1000);process.exit()`;
  const args = ["--input-type=module", "-e", script];
  const output = execFileSync(process.execPath, args, { cwd, encoding: "utf8" });
  return Number(output.trim().split("\n").at(-1));
}
