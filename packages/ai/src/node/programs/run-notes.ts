import {
  appendFileSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { processInfo, ProcessTree } from "./process-tree.ts";

const NO_SPACE = new Set(["ENOSPC", "EDQUOT"]);

/** The process that runs a program, and where its numbers mean something. */
interface Host {
  boot: string;
  namespace: string;
  pid: number;
  start: number;
}

/** A note on disk that a program runs. */
export interface RunNote {
  /** Once it has a pid. */
  started(pid: number, start: number): void;
  /** Nothing is left of it. */
  remove(): void;
}

/**
 * Notes in `folder` that a program is about to be started, for `reapLeftovers`. It is
 * written before the program is there, so that no moment is without it. Nothing is
 * noted on systems other than Linux. Throws where the folder cannot be written; a disk
 * that is full is no reason not to run what may make room on it.
 */
export function noteRun(folder: string, id: string): RunNote {
  const host = thisHost();
  const path = join(folder, `running-${id}.jsonl`);
  if (!host || !tryWrite(() => writeWhole(path, line(host)))) {
    return { started() {}, remove() {} };
  }
  return {
    started(pid, start) {
      tryWrite(() => appendFileSync(path, line({ pid, start })));
    },
    remove: () => rmSync(path, { force: true }),
  };
}

/**
 * Ends what is left of the run that a note describes, if its host is no more, and removes the
 * note. Gives the number of processes that were ended.
 */
export async function endNotedRun(path: string, id: string): Promise<number> {
  const here = thisHost();
  if (!here) return 0;
  const [host, root] = parseNote(await readFile(path, "utf8"));
  let ended = 0;
  if (host === undefined || host.boot === here.boot) {
    if (host && (host.namespace !== here.namespace || isRunning(host))) return 0;
    const tree = new ProcessTree({ id, ...root, isWatched: false });
    const found = tree.find().length;
    const left = await tree.end();
    ended = found - left.length;
    if (left.length > 0) return ended;
  }
  await rm(path, { force: true });
  return ended;
}

/** What `isHostGone` reads: which process, on which machine, made a folder. Nothing off Linux. */
export function describeHost(): string | undefined {
  const host = thisHost();
  return host && line({ ...host, machine: hostname() });
}

/** Whether the process that such a description names runs no more, as far as can be known here. */
export function isHostGone(description: string): boolean {
  const here = thisHost();
  const [host] = parseNote(description);
  if (!here || !host || parseLine(description)?.["machine"] !== hostname()) return false;
  if (host.boot !== here.boot) return true;
  return host.namespace === here.namespace && !isRunning(host);
}

function isRunning({ pid, start }: Host): boolean {
  const info = processInfo(pid);
  return info?.start === start && !info.isZombie;
}

function thisHost(): Host | undefined {
  const self = processInfo("self");
  if (!self) return undefined;
  return {
    boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    namespace: readlinkSync("/proc/self/ns/pid"),
    pid: self.pid,
    start: self.start,
  };
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Renamed into its place: who finds it finds all of it. */
function writeWhole(path: string, text: string): void {
  const unfinished = `${path}.new`;
  try {
    writeFileSync(unfinished, text, { flag: "wx", mode: 0o600 });
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

function tryWrite(write: () => void): boolean {
  try {
    write();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && NO_SPACE.has(String(error.code))) return false;
    throw error;
  }
}

/** Host and root. A line that the end of its writer cut off is ignored. */
function parseNote(text: string): [Host | undefined, { pid: number; start: number } | undefined] {
  const [first, second] = text.split("\n").map(parseLine);
  const host =
    typeof first?.["boot"] === "string" &&
    typeof first["namespace"] === "string" &&
    typeof first["pid"] === "number" &&
    typeof first["start"] === "number"
      ? {
          boot: first["boot"],
          namespace: first["namespace"],
          pid: first["pid"],
          start: first["start"],
        }
      : undefined;
  const root =
    typeof second?.["pid"] === "number" && typeof second["start"] === "number"
      ? { pid: second["pid"], start: second["start"] }
      : undefined;
  return [host, root];
}

function parseLine(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
