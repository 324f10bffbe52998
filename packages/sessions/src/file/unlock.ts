import { readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { errnoOf, isRecord } from "@gyre/ai";
import { parseFields } from "../format/body.ts";
import { FileLock } from "./lock.ts";
import { SessionError } from "../format/types.ts";

/** The holder of a lock, for people. */
export interface LockHolder {
  pid: number;
  host: string;
  /** Milliseconds since 1970. */
  since: number;
}

/**
 * Removes the lock of a session file whose holder is gone, is on another machine, or is unknown, and
 * returns that holder; undefined if there was no lock. Throws `SessionError` with code `locked` where
 * the holder may be running on this machine.
 *
 * A holder on another machine that still runs notices before its next append, and stops writing.
 */
export function removeLock(target: string, now: number): LockHolder | "unknown" | undefined {
  const path = `${target}.lock`;
  const holder = holderIn(path);
  if (holder === undefined) return undefined;
  try {
    // Taking it is the test of whether it is stale.
    new FileLock(target, now).release();
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "locked") throw error;
    const isHere = holder !== "unknown" && holder.host === hostname();
    if (isHere) throw error;
    rmSync(path, { force: true });
  }
  return holder;
}

function holderIn(path: string): LockHolder | "unknown" | undefined {
  try {
    const fields = parseFields(readFileSync(path));
    if (!isRecord(fields)) return "unknown";
    const { pid, host, since } = fields;
    const isWhole =
      typeof pid === "number" && typeof host === "string" && typeof since === "number";
    return isWhole ? { pid, host, since } : "unknown";
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
