import { randomBytes } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { errnoOf, isRecord } from "@gyre/ai";
import { FILE_MODE, hasNoLinks } from "./files.ts";
import { SessionError } from "../format/types.ts";

const TOKEN_BYTES = 8;
/** Each try follows a change that somebody else has made to the lock. */
const MAX_TRIES = 32;
/** Takers that died while they took over from takers that died. */
const MAX_CLAIM_DEPTH = 4;
/** The last moment that a date can name. */
const MAX_DATE_MS = 8.64e15;
/** Of the fields of /proc/PID/stat, counted behind the name. */
const STATE_FIELD = 0;
const START_FIELD = 19;

/** Who holds a lock, as it says itself. */
interface Holder {
  pid: number;
  /** When the process started, in the system's own measure; tells it from a later one with its pid. */
  start: string;
  host: string;
  /** Tells one start of the machine from another. */
  boot: string;
  /** The space that the pid belongs to: in a container it says nothing about pids outside. */
  space: string;
  token: string;
  /** Milliseconds since 1970. */
  since: number;
}

/** For people: what to do about a lock. */
export interface LockHints {
  /** Where it was left behind. Default: to delete its file. */
  unlockHint?: string;
  /** Where somebody else goes on with the session: how to go on in a copy. */
  forkHint?: string;
}

/**
 * A file beside another one that says who may write to it. It is made whole or not at all,
 * and is taken from a process only if that is gone for certain.
 */
export class FileLock {
  readonly path: string;
  readonly #holder: Holder;

  /** Throws `SessionError` with code `locked`, which names the holder. */
  constructor(target: string, now: number, hints: LockHints = {}) {
    this.path = `${target}.lock`;
    this.#holder = {
      ...thisProcess(),
      token: randomBytes(TOKEN_BYTES).toString("hex"),
      since: now,
    };
    const other = acquire(this.path, this.#holder, 0);
    if (other) throw lockedError(target, other, { unlockHint: `delete ${this.path}`, ...hints });
  }

  /** Whether the lock is still there, and still ours. */
  isHeld(): boolean {
    const holder = readHolder(this.path);
    return isRecord(holder) && holder.token === this.#holder.token;
  }

  release(): void {
    if (this.isHeld()) rmSync(this.path, { force: true });
  }
}

/** Takes a lock, or answers with who has it. */
function acquire(path: string, me: Holder, depth: number): Holder | "unreadable" | undefined {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (putNew(path, me)) return undefined;
    const holder = readHolder(path);
    if (holder === undefined) continue;
    if (holder === "unreadable" || !isGone(holder) || depth === MAX_CLAIM_DEPTH) return holder;
    // Only who holds the claim on this very lock may replace it. Another one that found the
    // same lock comes later to the claim, and then finds a new lock.
    const claim = `${path}.${holder.token}`;
    const other = acquire(claim, me, depth + 1);
    if (other) return other;
    try {
      const still = readHolder(path);
      if (isRecord(still) && still.token === holder.token) {
        replace(path, me);
        return undefined;
      }
    } finally {
      rmSync(claim, { force: true });
    }
  }
  return readHolder(path) ?? "unreadable";
}

/** Makes the file with its content in one step; answers false if there is one. */
function putNew(path: string, me: Holder): boolean {
  const draft = writeDraft(path, me);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    if (!hasNoLinks(error)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  try {
    write(path, me);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

function replace(path: string, me: Holder): void {
  const draft = writeDraft(path, me);
  try {
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDraft(path: string, me: Holder): string {
  const draft = `${path}.${me.token}.new`;
  write(draft, me);
  return draft;
}

/** Leaves nothing behind where it fails: half a lock would say nothing about who holds it. */
function write(path: string, me: Holder): void {
  const file = openSync(path, "wx", FILE_MODE);
  try {
    writeSync(file, JSON.stringify(me));
    // After a power failure an empty one would not either.
    fdatasyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

function readHolder(path: string): Holder | "unreadable" | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return isHolder(value) ? value : "unreadable";
  } catch {
    // Whose it is cannot be told, and the answer says so.
    return "unreadable";
  }
}

function isHolder(value: unknown): value is Holder {
  if (!isRecord(value)) return false;
  const { pid, start, host, boot, space, token, since } = value;
  return (
    typeof pid === "number" &&
    typeof since === "number" &&
    Math.abs(since) <= MAX_DATE_MS &&
    [start, host, boot, space].every((field) => typeof field === "string") &&
    typeof token === "string" &&
    /^[0-9a-f]+$/.test(token)
  );
}

/** Whether the holder cannot be running any more. What cannot be told counts as running. */
function isGone(holder: Holder): boolean {
  const here = thisProcess();
  if (holder.host !== here.host) return false;
  if (holder.boot !== here.boot) return holder.boot !== "" && here.boot !== "";
  if (holder.space !== here.space) return false;
  const start = startOf(holder.pid);
  return start === "gone" || (start !== "" && holder.start !== "" && start !== holder.start);
}

function thisProcess(): Omit<Holder, "token" | "since"> {
  return {
    pid: process.pid,
    start: startOf(process.pid),
    host: hostname(),
    boot: systemText("/proc/sys/kernel/random/boot_id"),
    space: systemLink("/proc/self/ns/pid"),
  };
}

/** When a process started; empty where the system does not tell. */
function startOf(pid: number): string {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === "ESRCH") return "gone";
  }
  const stat = systemText(`/proc/${pid}/stat`);
  // The name, in parentheses, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[STATE_FIELD];
  return state === "Z" || state === "X" ? "gone" : (fields[START_FIELD] ?? "");
}

/** A file of the system; empty where there is none. */
function systemText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Not Linux, or not ours to read.
    return "";
  }
}

function systemLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Not Linux, or not ours to read.
    return "";
  }
}

function lockedError(
  target: string,
  holder: Holder | "unreadable",
  hints: LockHints & { unlockHint: string },
): SessionError {
  const what = `This session is ${heldBy(holder, hints)} Its file: ${target}`;
  return new SessionError("locked", what, { path: target });
}

function heldBy(
  holder: Holder | "unreadable",
  { forkHint, unlockHint }: LockHints & { unlockHint: string },
): string {
  const copy = forkHint === undefined ? "fork it" : `go on in a copy: ${forkHint}`;
  if (holder === "unreadable") {
    return `locked, and its lock does not say by whom. If nothing else has it open: ${unlockHint}. Else ${copy}.`;
  }
  const { pid, host, since } = holder;
  const when = new Date(since).toISOString();
  if (pid === process.pid && host === hostname()) {
    return `open in this process already, since ${when}. Close it first.`;
  }
  return `open in process ${pid} on ${host}, since ${when}. Close it there, or ${copy}. If that process is gone for certain: ${unlockHint}.`;
}
