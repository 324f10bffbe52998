import { readFileSync, statSync } from "node:fs";

/** The columns before the path: address, count, protocol, flags, type, state, inode. */
const LINE = /^\S+: (?:\S+ +){6}(\/.+)$/;

/**
 * The sockets with a path that programs of this machine have open now: to connect to one needs no
 * network, and what listens there may do things for any caller. Linux only.
 */
export function listSockets(table = "/proc/net/unix"): string[] {
  const paths = new Set<string>();
  for (const line of readTable(table).split("\n")) {
    const path = LINE.exec(line)?.[1];
    if (path !== undefined) paths.add(path);
  }
  return [...paths].filter(isSocket);
}

function readTable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // A kernel or a /proc without it: then what has a known place is hidden alone.
    return "";
  }
}

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    // Removed, or out of reach: then also for what we start.
    return false;
  }
}
