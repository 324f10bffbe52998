import { randomBytes } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { errnoOf, isRecord } from "@gyre/ai";
import { FILE_MODE, hasNoLinks } from "./files.ts";
import { checkProcess, identifyProcess, isSameBoot, type ProcessIdentity } from "./process.ts";
import {
  giveSignOfLife,
  hasNoSignOfLife,
  removeSignOfLife,
  type SignOfLife,
} from "./sign-of-life.ts";
import { SessionError } from "../format/types.ts";
import { noteWritten } from "./written-names.ts";

const TOKEN_BYTES = 8;
/** How often a lock that another process changes meanwhile is tried. */
const MAX_TRIES = 32;
/** How many claims of dead processes on a dead process's lock are followed. */
const MAX_CLAIM_DEPTH = 4;
/** The last moment that a date can name. */
const MAX_DATE_MS = 8.64e15;
/** The holder that a lock names. */
interface Holder extends ProcessIdentity {
  token: string;
  /** Milliseconds since 1970. */
  since: number;
  /** It listens on a socket beside the lock while it lives: see `SignOfLife`. */
  alive?: boolean;
}

/** For people: what to do about a lock. */
export interface LockHints {
  /** Where it was left behind. Default: to delete its file. */
  unlockHint?: string;
  /** Where another process has the session open: how to continue in a copy. */
  forkHint?: string;
}

/**
 * A file beside a session file that names the one process that may write to it. It is created whole
 * or not at all, and is taken from a process only if that has certainly ended.
 */
export class FileLock {
  readonly path: string;
  readonly #target: string;
  readonly #holder: Holder;
  readonly #sign: SignOfLife | undefined;

  /** Throws `SessionError` with code `locked`, which names the holder. */
  constructor(target: string, now: number, hints: LockHints = {}) {
    this.path = `${target}.lock`;
    this.#target = target;
    const token = randomBytes(TOKEN_BYTES).toString("hex");
    this.#sign = giveSignOfLife(this.path, token);
    this.#holder = { ...identifyProcess(), token, since: now, ...(this.#sign && { alive: true }) };
    let other: Holder | "unreadable" | undefined;
    try {
      other = acquire(this.path, this.#holder, 0);
    } catch (error) {
      this.#sign?.end();
      throw error;
    }
    if (!other) return;
    this.#sign?.end();
    const state = describeHolder(other, { unlockHint: `delete ${this.path}`, ...hints });
    const what = `This session is ${state} Its file: ${target}`;
    throw new SessionError("locked", what, { path: target });
  }

  /** Whether the lock is still there, and still ours. */
  isHeld(): boolean {
    const holder = readHolder(this.path);
    return isRecord(holder) && holder.token === this.#holder.token;
  }

  release(): void {
    if (this.isHeld()) {
      noteWritten(this.#target);
      rmSync(this.path, { force: true });
    }
    this.#sign?.end();
  }
}

/** Takes a lock, or returns its holder. */
function acquire(path: string, me: Holder, depth: number): Holder | "unreadable" | undefined {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (putNew(path, me)) return undefined;
    const holder = readHolder(path);
    if (holder === undefined) continue;
    if (holder === "unreadable" || !isGone(path, holder) || depth === MAX_CLAIM_DEPTH)
      return holder;
    // Only the process with the claim on this very lock may replace it. Another one that found the
    // same lock gets the claim later, and then finds a new lock.
    const claim = `${path}.${holder.token}`;
    const other = acquire(claim, me, depth + 1);
    if (other) return other;
    try {
      const still = readHolder(path);
      if (isRecord(still) && still.token === holder.token) {
        replace(path, me);
        removeSignOfLife(path, holder.token);
        return undefined;
      }
    } finally {
      rmSync(claim, { force: true });
    }
  }
  return readHolder(path) ?? "unreadable";
}

/** Creates the file with its content in one step; false if it exists. */
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

/** Leaves nothing behind if it fails: half a lock would not name its holder. */
function write(path: string, me: Holder): void {
  const file = openSync(path, "wx", FILE_MODE);
  try {
    writeSync(file, JSON.stringify(me));
    // After a power failure an empty lock would not either.
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
    // The holder is unknown.
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

/** Whether the holder has certainly ended. A holder that cannot be checked counts as running. */
function isGone(path: string, holder: Holder): boolean {
  const state = checkProcess(holder);
  if (state !== "unknown") return state === "gone";
  // Another container of this machine, or one that was: its process ids mean nothing here.
  return isSameBoot(holder) && holder.alive === true && hasNoSignOfLife(path, holder.token);
}

/** Whom a lock names, and what to do about it. */
function describeHolder(
  holder: Holder | "unreadable",
  { forkHint, unlockHint }: LockHints & { unlockHint: string },
): string {
  const copy = forkHint === undefined ? "fork it" : `go on in a copy: ${forkHint}`;
  if (holder === "unreadable") {
    return `locked, and its lock does not say by whom. If nothing else has it open: ${unlockHint}. Else ${copy}.`;
  }
  const { pid, host, since, space } = holder;
  const when = new Date(since).toISOString();
  if (pid === process.pid && host === hostname() && space === identifyProcess().space) {
    return `open in this process already, since ${when}. Close it first.`;
  }
  return `open in process ${pid} on ${host}, since ${when}. Close it there, or ${copy}. If that process is gone for certain: ${unlockHint}.`;
}
