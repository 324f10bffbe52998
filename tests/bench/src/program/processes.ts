import { readdirSync, readFileSync } from "node:fs";

// What Linux reports of processes. Elsewhere these throw: the figures are of Linux.

const KB = 1_024;
const MB = 1_000_000;
/** Of the clock that processes are charged by. */
const TICKS_A_SECOND = 100;
/** Places in /proc/PID/stat, counted behind the name. */
const STATE = 0;
const PARENT = 1;
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

/** `Pss`: memory of its own, with its share of what it shares; `Rss`: with all of that. In MB. */
export function memoryMb(pid: number, kind: "Pss" | "Rss"): number {
  const lines = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").split("\n");
  const [, kb] = /^\w+:\s+(\d+) kB/.exec(lines.find((one) => one.startsWith(kind)) ?? "") ?? [];
  return (Number(kb) * KB) / MB;
}

/** CPU that a process has used so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const fields = readStat(pid);
  if (fields === undefined) throw new Error(`There is no process ${pid} any more.`);
  return (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) / TICKS_A_SECOND;
}

/** All that a process has started and that still runs, with all that those have started. */
export function findDescendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(readStat(Number(name))?.[PARENT]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  const walk = (at: number): void => {
    for (const child of children.get(at) ?? []) {
      found.push(child);
      walk(child);
    }
  };
  walk(pid);
  return found;
}

/** Whether it is gone; one that only waits to be counted is. */
export function isDead(pid: number): boolean {
  const state = readStat(pid)?.[STATE];
  return state === undefined || state === "Z" || state === "X";
}

/** The words of its command line. */
export function readCommand(pid: number): string[] {
  return (read(`/proc/${pid}/cmdline`) ?? "").split("\0").slice(0, -1);
}

function readStat(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  // The name stands in brackets and may hold any character.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** Undefined: the process ended before it could be read. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}
