import { join } from "node:path";
import type { TerminalRun } from "../../../../packages/cli/dist/testing/terminal-program.js";
import { type Bench, entry } from "./cli.ts";

/** What the program shows when it can be typed to. */
export const PROMPT = "›";
export const DEADLINE_MS = 120_000;
/** Nothing was written for so long: it has come to rest. */
const QUIET_MS = 400;
const ROWS = 24;

/** The program in a terminal of 80 columns; `startedAt` is just before its process was made. */
export async function start(
  bench: Bench,
  args: readonly string[] = [],
  rows: number = ROWS,
): Promise<TerminalRun & { readonly startedAt: number }> {
  // Loaded where it is needed: other cases measure memory.
  const { openCommand } = await import("../../../../packages/cli/dist/testing/terminal-program.js");
  const startedAt = performance.now();
  const run = openCommand([process.execPath, entry, ...args], {
    cwd: join(bench.home, "work"),
    env: bench.env,
    columns: 80,
    rows,
  });
  return Object.assign(run, { startedAt });
}

export async function stop(run: TerminalRun): Promise<void> {
  run.kill();
  await run.end;
}

/** Runs `work` with the program once it can be typed to. */
export async function withRun<T>(
  bench: Bench,
  args: readonly string[],
  work: (run: TerminalRun) => Promise<T>,
  rows?: number,
): Promise<T> {
  const run = await start(bench, args, rows);
  try {
    await run.until(PROMPT, { within: DEADLINE_MS });
    await quiet(run);
    return await work(run);
  } finally {
    await stop(run);
  }
}

export const later = (ms: number): Promise<void> => new Promise((settle) => setTimeout(settle, ms));

/** Settles when nothing has been written for a while. */
export function quiet(run: TerminalRun): Promise<void> {
  return new Promise((settle) => {
    const arm = (): NodeJS.Timeout =>
      setTimeout(() => {
        end();
        settle();
      }, QUIET_MS);
    let timer = arm();
    const end = run.listen(() => {
      clearTimeout(timer);
      timer = arm();
    });
  });
}

/** Looks again and again, as often as it can. */
export async function eventually<T>(look: () => T | undefined): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS / 10;
  while (performance.now() < deadline) {
    const found = look();
    if (found !== undefined) return found;
    await later(1);
  }
  throw new Error(`It did not come: ${look.toString()}`);
}
