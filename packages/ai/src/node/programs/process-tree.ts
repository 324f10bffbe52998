import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { errnoOf } from "../../common/errors.ts";

/**
 * The environment variable by which a program and all that it starts are found again,
 * also where they left its process group, its session and its parents. A program that
 * was started by a program of ours has the ids of both, with a comma in between.
 */
export const RUN_VARIABLE = "GYRE_RUN";

/** From SIGTERM to SIGKILL. */
export const TERM_GRACE_MS = 100;
/** How long the kernel may take to remove what was killed. */
const KILL_WAIT_MS = 800;
const POLL_MS = 5;
/** How often we look again where a look that found nothing may have missed something. */
const MAX_UNSURE_LOOKS = 10;
/** A process that is being turned into another program is waited for so long: it may be ours. */
const MAX_UNCLEAR_MS = 80;
/** Looks of a host that exits: it cannot wait for the dead to be gone. */
const LAST_LOOKS = 3;
const RUN_ID_BYTES = 16;
const isLinux = process.platform === "linux";

export function newRunId(): string {
  return randomBytes(RUN_ID_BYTES).toString("hex");
}

/** The value of `RUN_VARIABLE` for a program: its id, after those that we have ourselves. */
export function runMark(id: string): string {
  const outer = process.env[RUN_VARIABLE];
  return outer ? `${outer},${id}` : id;
}

/** More microseconds than any program runs, and no other limit that a person would set. */
const LEAST_LIMIT = 2 ** 52;
const LIMIT_DIGITS = 12;

/**
 * The soft limit for time in real-time scheduling that marks the processes of a run: each hands
 * it down to those that it starts, and programs leave it alone.
 */
export function limitMark(id: string): string {
  return String(LEAST_LIMIT + Number.parseInt(id.slice(0, LIMIT_DIGITS), 16));
}

/** A process as the kernel reports it. `start`: ticks since the machine was started. */
export interface ProcessInfo {
  pid: number;
  parent: number;
  group: number;
  session: number;
  start: number;
  /** Dead, and not taken note of by its parent yet. */
  isZombie: boolean;
  /** A thread of the kernel, which has no environment. */
  isKernels: boolean;
}

/** Fields of /proc/PID/stat, counted from the one after the name. */
const STAT_FLAGS = 6;
const STAT_START = 19;
const KERNEL_THREAD = 0x0020_0000;

/** Nothing where there is no such process, and on systems other than Linux. */
export function processInfo(pid: number | "self"): ProcessInfo | undefined {
  const stat = readProc(`${pid}/stat`)?.toString("latin1");
  if (stat === undefined) return undefined;
  // The name, in brackets, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group, session] = fields;
  return {
    pid: Number.parseInt(stat, 10),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    start: Number(fields[STAT_START]),
    isZombie: state === "Z" || state === "X",
    isKernels: (Number(fields[STAT_FLAGS]) & KERNEL_THREAD) !== 0,
  };
}

export interface TreeRoot {
  id: string;
  pid?: number;
  start?: number;
  /**
   * We have watched it since it was started, so the numbers that it and its own had
   * were not given to others meanwhile.
   */
  isWatched: boolean;
  /** All of it are in a PID namespace, whose init is the only child of the root. Default false. */
  isNamespace?: boolean;
  /** It was started with the limit of `limitMark`, so that all of it have it. Default false. */
  hasLimit?: boolean;
}

/** What was found of a tree at a moment. */
interface Sighting {
  members: ProcessInfo[];
  /**
   * Nothing was missed. A process that died while we looked may have been a member, and
   * may have started others that came too late to be listed. One that is just being
   * turned into another program has no environment for a moment.
   */
  isSure: boolean;
  /** A process lives that may or may not be a member. */
  isUnclear: boolean;
}

/**
 * A program that was started as the leader of a session of its own, with `RUN_VARIABLE`
 * in its environment, and all that came from it.
 *
 * On Linux these are found: by the mark in their environment or among their limits; by their
 * parents; by the session that one of them led; by having been seen as one of them before.
 * What drops all of these before it is looked for is not found: a namespace has no such hole.
 * Elsewhere it is the
 * process group (macOS) or what `taskkill /T` finds (Windows).
 */
export class ProcessTree {
  readonly #root: TreeRoot;
  /** Pid and start of each process that was once found. */
  readonly #known = new Map<number, number>();
  /** Process groups that none but ours are in, as long as they have anybody in them. */
  readonly #groups = new Set<number>();
  /**
   * Others' processes that were there before the root was. They need not be read again
   * for as long as it takes to end a tree, which is not enough for a pid to come round.
   */
  readonly #older = new Map<number, ProcessInfo>();
  /** Pids that were last seen to be dead, or none of ours. */
  #harmless = new Set<number>();
  #ending: Promise<number[]> | undefined;

  constructor(root: TreeRoot) {
    this.#root = root;
    if (root.pid === undefined || root.pid === process.pid) return;
    if (root.start !== undefined) this.#known.set(root.pid, root.start);
    if (root.isWatched) this.#groups.add(root.pid);
  }

  /** The pids of the tree that are alive now. Linux only. */
  find(): number[] {
    return this.#look().members.map((member) => member.pid);
  }

  /**
   * Ends all of it: SIGTERM, then SIGKILL after `TERM_GRACE_MS`. Gives the pids that
   * could not be ended. Further calls give the same answer.
   */
  end(): Promise<number[]> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** SIGKILL for all of it, without waiting: for a host that is about to exit. */
  kill(): void {
    const looks = isLinux ? LAST_LOOKS : 1;
    for (let n = 0; n < looks; n++) this.#signal(isLinux ? this.#look().members : [], "SIGKILL");
  }

  #look(): Sighting {
    // Before the others are listed: a group that is empty now may be another's then.
    for (const group of this.#groups) if (!send(-group, 0)) this.#groups.delete(group);
    const since = this.#root.start ?? 0;
    const { all, vanished } = allProcesses(this.#older);
    const living: ProcessInfo[] = [];
    const dead = new Set(vanished);
    for (const found of all.values()) {
      if (found.start < since || found.pid === process.pid) this.#older.set(found.pid, found);
      else if (found.isZombie) dead.add(found.pid);
      else living.push(found);
    }
    const members = new Map<number, ProcessInfo>();
    const unclear = new Set<number>();
    for (const found of living) {
      const { pid, start } = found;
      const mark = this.#known.get(pid) === start ? "ours" : readMark(found, this.#root);
      if (mark === "ours") members.set(pid, found);
      if (mark === "unclear") unclear.add(pid);
    }
    for (let before = -1; before !== members.size;) {
      before = members.size;
      for (const { pid, start } of members.values()) this.#known.set(pid, start);
      for (const found of living) {
        const isMember = members.has(found.parent) || this.#led(found.session, all);
        if (isMember) members.set(found.pid, found);
      }
    }
    for (const { group } of members.values()) this.#groups.add(group);
    for (const { pid, group, isZombie } of all.values()) {
      if (!isZombie && !members.has(pid)) this.#groups.delete(group);
    }
    const isSure = [...unclear, ...dead].every(
      (pid) => members.has(pid) || this.#harmless.has(pid),
    );
    this.#harmless = new Set(
      [...all.keys()].filter((pid) => !members.has(pid) && !unclear.has(pid)),
    );
    const isUnclear = [...unclear].some((pid) => !members.has(pid));
    return { members: [...members.values()], isSure, isUnclear };
  }

  /** Looks until it is sure, or finds something. */
  async #lookWell(): Promise<Sighting> {
    const until = Date.now() + MAX_UNCLEAR_MS;
    let now = this.#look();
    for (let n = 1; !now.isSure && now.members.length === 0; n++) {
      if (n >= MAX_UNSURE_LOOKS && !(now.isUnclear && Date.now() < until)) break;
      await pause(1);
      now = this.#look();
    }
    return now;
  }

  /** Whether one of ours is or was the leader of a session. */
  #led(session: number, all: ReadonlyMap<number, ProcessInfo>): boolean {
    const start = this.#known.get(session);
    if (start === undefined) return false;
    const leader = all.get(session);
    // The number of a session is not given to a process as long as it has members.
    return leader ? leader.start === start : this.#root.isWatched;
  }

  /**
   * A group gets its signal as one, so that nothing is forked past it, be it seen or
   * not. An empty one is forgotten: its number is free for others.
   */
  #signal(members: readonly ProcessInfo[], signal: NodeJS.Signals): void {
    for (const { pid, group } of members) if (!this.#groups.has(group)) send(pid, signal);
    for (const group of this.#groups) if (!send(-group, signal)) this.#groups.delete(group);
  }

  #end(): Promise<number[]> {
    if (!isLinux) return this.#endGroup();
    const { isNamespace, pid, start } = this.#root;
    const root = isNamespace && pid !== undefined ? processInfo(pid) : undefined;
    const init = root?.start === start && root && onlyChild(root.pid);
    // Where the root has gone, or has not made the namespace yet, marks and parents show what is there.
    return init && init.parent === root.pid ? this.#endNamespace(root, init) : this.#endAll();
  }

  /**
   * Asks the group of the root to end, then kills the init: the kernel kills all of the namespace
   * with it, and the init is the last of it to go. Nothing needs to be looked for.
   */
  async #endNamespace(root: ProcessInfo, init: ProcessInfo): Promise<number[]> {
    const processes = [init, root];
    const killAt = Date.now() + TERM_GRACE_MS;
    send(-root.pid, "SIGTERM");
    while (processes.some(isAlive) && Date.now() < killAt) await pause(POLL_MS);
    for (const each of processes) if (isAlive(each)) send(each.pid, "SIGKILL");
    const stopWaitingAt = Date.now() + KILL_WAIT_MS;
    while (processes.some(isAlive) && Date.now() < stopWaitingAt) await pause(POLL_MS);
    return processes.filter(isAlive).map(({ pid }) => pid);
  }

  async #endAll(): Promise<number[]> {
    this.#older.clear();
    const killAt = Date.now() + TERM_GRACE_MS;
    const stopWaitingAt = killAt + KILL_WAIT_MS;
    let now = await this.#lookWell();
    while (now.members.length > 0 && Date.now() < stopWaitingAt) {
      const isToBeKilled = Date.now() >= killAt;
      this.#signal(now.members, isToBeKilled ? "SIGKILL" : "SIGTERM");
      const until = isToBeKilled ? stopWaitingAt : killAt;
      while (now.members.some(isAlive) && Date.now() < until) await pause(POLL_MS);
      now = await this.#lookWell();
    }
    // For what came and went too fast to be seen. The dead do not mind.
    this.#signal([], "SIGKILL");
    return now.members.map((member) => member.pid);
  }

  async #endGroup(): Promise<number[]> {
    const { pid } = this.#root;
    if (pid === undefined) return [];
    if (process.platform === "win32") {
      await new Promise((resolve) => {
        execFile("taskkill", ["/pid", String(pid), "/T", "/F"], resolve);
      });
      return [];
    }
    const startedAt = Date.now();
    send(-pid, "SIGTERM");
    while (send(-pid, 0) && Date.now() - startedAt < TERM_GRACE_MS) await pause(POLL_MS);
    send(-pid, "SIGKILL");
    return [];
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** A file below /proc; nothing if the process has gone or is none of ours. */
function readProc(path: string): Buffer | undefined {
  try {
    return readFileSync(`/proc/${path}`);
  } catch {
    return undefined;
  }
}

/** `vanished`: listed, and gone when they were looked at. Those that are known are not read. */
function allProcesses(known: ReadonlyMap<number, ProcessInfo>): {
  all: Map<number, ProcessInfo>;
  vanished: number[];
} {
  const all = new Map<number, ProcessInfo>();
  const vanished: number[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const info = known.get(pid) ?? processInfo(pid);
    if (info) all.set(pid, info);
    else vanished.push(pid);
  }
  return { all, vanished };
}

function readMark(
  { pid, isKernels }: ProcessInfo,
  { id, hasLimit }: TreeRoot,
): "ours" | "other" | "unclear" {
  if (isKernels) return "other";
  const limits = readProc(`${pid}/limits`);
  if (limits?.includes(limitMark(id))) return "ours";
  const environment = readEnvironment(pid);
  if (environment === "other") return "other";
  // One that is being turned into another program has a limit all the while.
  if (environment.length === 0) return hasLimit && limits?.length ? "other" : "unclear";
  // Most have not: that is found out without making strings.
  if (!environment.includes(id)) return "other";
  const prefix = `${RUN_VARIABLE}=`;
  const isOurs = environment
    .toString("latin1")
    .split("\0")
    .some(
      (entry) => entry.startsWith(prefix) && entry.slice(prefix.length).split(",").includes(id),
    );
  return isOurs ? "ours" : "other";
}

/** Empty for one that is being turned into another program, or is about to be gone. */
function readEnvironment(pid: number): Buffer | "other" {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    // Another user's is closed to us. One that exits has none, but may be the last of a namespace.
    const isClosed = errnoOf(error) === "EACCES" || errnoOf(error) === "EPERM";
    return isClosed ? "other" : Buffer.alloc(0);
  }
}

/** The only child of a process; nothing where it has none yet, or where the kernel does not say. */
function onlyChild(pid: number): ProcessInfo | undefined {
  const children = readProc(`${pid}/task/${pid}/children`)?.toString("latin1").trim() ?? "";
  return /^\d+$/.test(children) ? processInfo(Number(children)) : undefined;
}

function isAlive({ pid, start }: ProcessInfo): boolean {
  const now = processInfo(pid);
  return now?.start === start && !now.isZombie;
}

/** Whether there was a process to get it. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has gone, or it is another user's: the next look at the processes shows which.
    return false;
  }
}
