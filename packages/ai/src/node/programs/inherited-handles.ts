import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";

/** Of standard input, output and error. */
const STANDARD_HANDLES = 3;
/** Among the flags of a handle in Linux's `/proc`: it is closed when a program starts. */
const CLOSE_ON_EXEC = 0o2000000;
const OCTAL = 8;

/** What a program gets from its fourth handle on. */
export type FurtherHandles = (number | "ignore")[];

/**
 * Starts a program such that it gets none of the handles that the parent of this process left
 * open: by a folder among them it would reach what its sandbox keeps from it. In their place it
 * gets `/dev/null`. Handles that Node opens are closed by themselves. Which are inherited is known
 * on Linux alone.
 */
export function withoutInherited<Child>(start: (further: FurtherHandles) => Child): Child {
  const inherited = listInherited();
  if (inherited.length === 0) return start([]);
  const nothing = openSync("/dev/null", "r");
  try {
    const further: FurtherHandles = Array.from(
      { length: Math.max(...inherited) + 1 - STANDARD_HANDLES },
      () => "ignore",
    );
    for (const handle of inherited) further[handle - STANDARD_HANDLES] = nothing;
    return start(further);
  } finally {
    closeSync(nothing);
  }
}

function listInherited(): number[] {
  if (process.platform !== "linux" || !existsSync("/proc/self/fdinfo")) return [];
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((handle) => handle >= STANDARD_HANDLES && isInherited(handle));
}

function isInherited(handle: number): boolean {
  let info: string;
  try {
    info = readFileSync(`/proc/self/fdinfo/${handle}`, "utf8");
  } catch {
    // Closed since it was listed, as that of the list itself.
    return false;
  }
  const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? "0", OCTAL);
  return (flags & CLOSE_ON_EXEC) === 0;
}
