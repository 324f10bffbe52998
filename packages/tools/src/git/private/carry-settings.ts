import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { chmod, type FileHandle, lstat, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { findRunningKeys, parseSettings, type Setting } from "../config.ts";
import { findDangling, findRemotes, isHarmless, isHarmlessKey } from "./harmless.ts";

/** Of a config. */
export const MAX_CONFIG_BYTES: number = 1024 * 1024;
/** Of one command: each takes a run of git. */
const MAX_CARRIED_KEYS = 200;
const GIT_TIMEOUT_MS = 10_000;
/** A config that the user changes meanwhile is looked at again. */
const MAX_PLANS = 20;
/** The user's git may hold the lock for a moment. */
const LOCK_TRIES = 100;
const LOCK_WAIT_MS = 20;

/** What became of the changes of a command. */
export interface CarriedSettings {
  carried: readonly string[];
  /** Not carried over: git could run something by them, or they are not known to run nothing. */
  dropped: readonly string[];
  /** Not carried over: the user changed them meanwhile. */
  kept: readonly string[];
}

export interface CarryOptions {
  /** Of the user. */
  path: string;
  /** What the command found, byte by byte (latin1), as all texts here: a config has no encoding. */
  before: string;
  /** What the command left. */
  after: string;
  /** A folder that no command can change. */
  work: string;
  /** The same, on the file system of the config. */
  beside: string;
  /**
   * Other commands run. To replace the file would take away the mount by which it is read-only
   * for them, so it is written in its place.
   */
  isShared: boolean;
  /** PATH, to find git in. */
  searchPath: string;
}

/**
 * Carries over what a command changed in its private config, as far as it is known to run
 * nothing. What the user changed meanwhile stays. Rejects where the config cannot be locked
 * or written.
 */
export async function carrySettings(options: CarryOptions): Promise<CarriedSettings> {
  const { before, after, path } = options;
  if (before === after) return { carried: [], dropped: [], kept: [] };
  const old = await listSettings(options, before);
  const now = await listSettings(options, after);
  if (old === undefined || now === undefined) {
    return { carried: [], dropped: ["all, because git cannot read it"], kept: [] };
  }
  const changed = changedKeys(groupValues(old), groupValues(now));
  const candidates = changed.filter(isHarmlessKey).slice(0, MAX_CARRIED_KEYS);
  if (candidates.length === 0) return { carried: [], dropped: changed, kept: [] };
  for (let tried = 1; ; tried += 1) {
    const current = await readConfig(path);
    const planned = await plan(options, { old, now, current, candidates });
    const { carried, text } = await apply(options, current, planned.edits);
    const isDone = carried.length === 0 || (await replaceConfig(options, current, text));
    if (isDone) {
      const done = new Set([...carried, ...planned.kept, ...planned.same]);
      return { carried, kept: planned.kept, dropped: changed.filter((key) => !done.has(key)) };
    }
    if (tried >= MAX_PLANS) throw new Error(`${path} is being changed all the time.`);
  }
}

/**
 * Writes the config if it is still `current`. It is locked only for that: the user's git does not
 * wait for a lock, it fails.
 */
async function replaceConfig(
  options: CarryOptions,
  current: string,
  text: string,
): Promise<boolean> {
  const { path } = options;
  const lock = await lockConfig(path);
  try {
    if ((await readConfig(path)) !== current) return false;
    await writeConfig(options, text);
    return true;
  } finally {
    await lock.close();
    await rm(`${path}.lock`, { force: true });
  }
}

/** A command that still runs can replace the lock: so the text is never taken from there. */
async function writeConfig({ path, beside, isShared }: CarryOptions, text: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (isShared && stats) {
    const file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      const bytes = Buffer.from(text, "latin1");
      await file.write(bytes, 0, bytes.length, 0);
      await file.truncate(bytes.length);
    } finally {
      await file.close();
    }
    return;
  }
  const made = join(beside, `gyre-${globalThis.crypto.randomUUID()}.sample`);
  try {
    await writePrivate(made, text);
    await chmod(made, (stats?.mode ?? 0o644) & 0o777);
    await rename(made, path);
  } finally {
    await rm(made, { force: true });
  }
}

interface Edit {
  key: string;
  values: readonly string[];
}

interface Plan {
  edits: Edit[];
  kept: string[];
  /** The user made the same change. */
  same: string[];
}

async function plan(
  options: CarryOptions,
  given: {
    old: readonly Setting[];
    now: readonly Setting[];
    current: string;
    candidates: readonly string[];
  },
): Promise<Plan> {
  const { old, now, candidates } = given;
  const real = given.current === options.before ? old : await listSettings(options, given.current);
  if (real === undefined) throw new Error(`git cannot read ${options.path}.`);
  const result: Plan = { edits: [], kept: [], same: [] };
  // A branch may only name a remote that has an address in the end.
  const remotes = findRemotes([...real, ...now.filter((one) => isHarmless(one, new Set()))]);
  const [before, after, current] = [groupValues(old), groupValues(now), groupValues(real)];
  for (const key of candidates) {
    const was = before.get(key) ?? [];
    const is = after.get(key) ?? [];
    const theirs = current.get(key) ?? [];
    if (!is.every((value) => isHarmless([key, value], remotes))) continue;
    if (isSame(theirs, is)) result.same.push(key);
    else if (isSame(theirs, was)) result.edits.push({ key, values: is });
    else result.kept.push(key);
  }
  return { ...result, edits: withoutDangling(result.edits, real) };
}

/** Without what would leave a branch with a remote that has no address. */
function withoutDangling(edits: readonly Edit[], real: readonly Setting[]): Edit[] {
  const before = new Set(findDangling(real));
  let left = [...edits];
  for (;;) {
    const dangling = new Set(findDangling(applied(real, left)).filter((name) => !before.has(name)));
    if (dangling.size === 0) return left;
    const kept = left.filter(({ key, values }) => {
      const removed = values.length === 0 ? /^remote\.(.+)\.url$/s.exec(key)?.[1] : undefined;
      if (removed !== undefined) return !dangling.has(removed);
      return !values.some((value) => dangling.has(value));
    });
    if (kept.length === left.length) return [];
    left = kept;
  }
}

function applied(settings: readonly Setting[], edits: readonly Edit[]): Setting[] {
  const keys = new Set(edits.map(({ key }) => key));
  return [
    ...settings.filter(([key]) => !keys.has(key)),
    ...edits.flatMap(({ key, values }) => values.map((value): Setting => [key, value])),
  ];
}

/** The config with the edits, made by git itself on a copy. */
async function apply(
  options: CarryOptions,
  text: string,
  edits: readonly Edit[],
): Promise<{ carried: string[]; text: string }> {
  if (edits.length === 0) return { carried: [], text };
  const copy = join(options.work, "config");
  await writePrivate(copy, text);
  const before = parseSettings((await listFile(options, copy)) ?? "");
  const carried: string[] = [];
  for (const { key, values } of edits) {
    if (before.some(([name]) => name === key)) {
      await git(options, ["config", "--file", copy, "--unset-all", "--", key]);
    }
    for (const value of values) {
      await git(options, ["config", "--file", copy, "--add", "--", key, value]);
    }
    carried.push(key);
  }
  const after = parseSettings((await listFile(options, copy)) ?? "");
  const allowed = new Set(findRunningKeys(before));
  const running = findRunningKeys(after).filter((key) => !allowed.has(key));
  if (running.length > 0)
    throw new Error(`It would have git run a program: ${running.join(", ")}.`);
  return { carried, text: await readFile(copy, "latin1") };
}

function changedKeys(old: Values, now: Values): string[] {
  const keys = new Set([...old.keys(), ...now.keys()]);
  return [...keys].filter((key) => !isSame(old.get(key) ?? [], now.get(key) ?? []));
}

/** By key, in the order of the file. */
type Values = ReadonlyMap<string, readonly string[]>;

function groupValues(settings: readonly Setting[]): Values {
  const values = new Map<string, string[]>();
  for (const [key, value] of settings) {
    const known = values.get(key);
    if (known) known.push(value);
    else values.set(key, [value]);
  }
  return values;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}

async function listSettings(options: CarryOptions, text: string): Promise<Setting[] | undefined> {
  if (text === "") return [];
  const copy = join(options.work, "listed");
  await writePrivate(copy, text);
  const listed = await listFile(options, copy);
  return listed === undefined ? undefined : parseSettings(listed);
}

function listFile(options: CarryOptions, path: string): Promise<string | undefined> {
  const args = ["config", "--file", path, "--no-includes", "--null", "--list"];
  return git(options, args).catch(() => undefined);
}

function git({ searchPath, work }: CarryOptions, args: readonly string[]): Promise<string> {
  const env = { PATH: searchPath, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
  const options = { cwd: work, env, timeout: GIT_TIMEOUT_MS, maxBuffer: 4 * MAX_CONFIG_BYTES };
  return new Promise((done, fail) => {
    execFile("git", [...args], options, (error, stdout) => (error ? fail(error) : done(stdout)));
  });
}

async function writePrivate(path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text, "latin1");
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The lock that git itself uses. */
async function lockConfig(path: string): Promise<FileHandle> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  for (let tried = 1; ; tried += 1) {
    try {
      return await open(`${path}.lock`, flags, 0o644);
    } catch (error) {
      const isLocked = error instanceof Error && "code" in error && error.code === "EEXIST";
      if (!isLocked) throw error;
      if (tried >= LOCK_TRIES) {
        throw new Error(`${path}.lock is there: another git is changing the config`, {
          cause: error,
        });
      }
      await wait(LOCK_WAIT_MS);
    }
  }
}

/** A plain file of bounded size, no link followed; nothing where there is none. */
export async function readConfig(path: string): Promise<string> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return "";
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_CONFIG_BYTES) {
      throw new Error(`${path} is not a plain file of at most ${MAX_CONFIG_BYTES} bytes.`);
    }
    return await file.readFile("latin1");
  } finally {
    await file.close();
  }
}
