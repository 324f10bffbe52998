import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { errnoOf } from "@gyre/ai";

/** Of the fields of /proc/PID/stat, counted behind the name. */
const STATE_FIELD = 0;
const START_FIELD = 19;

/** A process, so that others can find out whether it has ended. */
export interface ProcessIdentity {
  pid: number;
  /** When the process started, in units of the system; distinguishes it from a later one with its pid. */
  start: string;
  host: string;
  /** Identifies one boot of the machine. */
  boot: string;
  /** The pid namespace: a pid in a container means nothing outside of it. */
  space: string;
}

/** This process. */
export function identifyProcess(): ProcessIdentity {
  return {
    pid: process.pid,
    start: readProcess(process.pid)?.start ?? "",
    host: hostname(),
    boot: readSystem("/proc/sys/kernel/random/boot_id"),
    space: readSystem("/proc/self/ns/pid", readlinkSync),
  };
}

/**
 * Whether a process has ended. `stopped`: it is there, and a signal has stopped it. `unknown`: it is
 * one of another machine or container, whose process ids mean nothing here.
 */
export function checkProcess(
  { pid, start, host, boot, space }: ProcessIdentity,
  here: ProcessIdentity = identifyProcess(),
): "gone" | "running" | "stopped" | "unknown" {
  const isSameHost = host === here.host;
  if (boot !== here.boot) {
    return isSameHost && boot !== "" && here.boot !== "" ? "gone" : "running";
  }
  if (!isSameHost || space !== here.space) return "unknown";
  const found = readProcess(pid);
  if (!found) return "gone";
  if (found.start !== "" && start !== "" && found.start !== start) return "gone";
  return found.isStopped ? "stopped" : "running";
}

/** Whether a process is known to be of this boot of this machine, in whatever container. */
export function isSameBoot({ boot }: ProcessIdentity): boolean {
  return boot !== "" && boot === readSystem("/proc/sys/kernel/random/boot_id");
}

/** A process that has not ended. `start` is empty where the system does not report it. */
function readProcess(pid: number): { start: string; isStopped: boolean } | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === "ESRCH") return undefined;
  }
  const stat = readSystem(`/proc/${pid}/stat`);
  // The name, in parentheses, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[STATE_FIELD];
  if (state === "Z" || state === "X") return undefined;
  return { start: fields[START_FIELD] ?? "", isStopped: state === "T" };
}

/** A file or link of the system; empty where there is none. */
function readSystem(
  path: string,
  read: (path: string, encoding: "utf8") => string = readFileSync,
): string {
  try {
    return read(path, "utf8").trim();
  } catch {
    // Not Linux, or no permission.
    return "";
  }
}
