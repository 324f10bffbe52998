import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRecord } from "@gyre/ai";
import { defaultSessionFolder } from "@gyre/sessions";
import { removeWorkCopy, type WorkCopy } from "../copies/work-copy.ts";
import type { Environment } from "../core/environment.ts";
import { isRunning } from "../file-history/copies.ts";
import { removeHistory } from "../file-history/lines/folders.ts";
import { isMissing } from "../file-history/lines/store.ts";
import type { TreePlace } from "../file-history/rewind/file-tree.ts";

const VERSION = 1;
const ID_BYTES = 4;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const RECORD = "race.json";

/** One that takes part in a race, as it is written down. */
export interface RivalRecord {
  /** From 1 on. */
  number: number;
  /** As it was asked for; absent: that of the session. */
  model?: string;
  copy: WorkCopy;
  /** The file of its own session, a copy of the one that the race is in. */
  path: string;
  /** The id of that session. */
  id: string;
  /** Where that session ended when it began. */
  from: number | null;
  /** Its last entry in the session that the race is in, once it is a branch there. */
  leaf?: number;
}

/** A race, as it is written down before it begins: what is needed to finish it or to clean up. */
export interface RaceRecord {
  version: typeof VERSION;
  /** The session that the race is in. */
  session: string;
  /** The folder that was copied. */
  cwd: string;
  /** The entry after which the rivals go on. */
  at: number | null;
  /** The copies have the files of this place; absent: those of the folder. */
  base?: TreePlace;
  prompt: string;
  /** The process that runs it; 0: none any more. */
  pid: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  rivals: readonly RivalRecord[];
}

/** A race that is on the disk. */
export interface StoredRace {
  folder: string;
  record: RaceRecord;
  /** The process that began it is there. */
  isRunning: boolean;
}

/** Where the races of this user are: beside the sessions. */
export function racesFolder(env: Environment): string {
  return join(dirname(defaultSessionFolder(env)), "races");
}

/** A folder for a new race. */
export async function createRaceFolder(env: Environment): Promise<string> {
  const folder = join(racesFolder(env), randomBytes(ID_BYTES).toString("hex"));
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  return folder;
}

/** Writes down a race of this process. */
export async function writeRace(
  folder: string,
  race: Omit<RaceRecord, "version" | "pid">,
): Promise<StoredRace> {
  const record: RaceRecord = { version: VERSION, pid: process.pid, ...race };
  await saveRecord(folder, record);
  return { folder, record, isRunning: true };
}

/** Writes down that one of the rivals is a branch of the session. */
export async function noteLeaf(stored: StoredRace, number: number, leaf: number): Promise<void> {
  const { folder, record } = stored;
  const rivals = record.rivals.map((each) => (each.number === number ? { ...each, leaf } : each));
  stored.record = { ...record, rivals };
  await saveRecord(folder, stored.record);
}

/** Writes down that no process runs it any more: it is found, and can be finished. */
export async function leaveRace({ folder, record }: StoredRace): Promise<void> {
  await saveRecord(folder, { ...record, pid: 0 });
}

async function saveRecord(folder: string, record: RaceRecord): Promise<void> {
  const path = join(folder, RECORD);
  await writeFile(`${path}.tmp`, JSON.stringify(record, undefined, 2), { mode: FILE_MODE });
  await rename(`${path}.tmp`, path);
}

/** All races that are on the disk, and folders of races that did not come to their record. */
export async function listRaces(
  env: Environment,
): Promise<{ races: StoredRace[]; broken: string[] }> {
  const all = racesFolder(env);
  const names = await readdir(all).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const races: StoredRace[] = [];
  const broken: string[] = [];
  for (const name of names) {
    const folder = join(all, name);
    const record = await readRecord(join(folder, RECORD));
    if (record) races.push({ folder, record, isRunning: record.pid > 0 && isRunning(record.pid) });
    else broken.push(folder);
  }
  return { races, broken };
}

/** Races of a folder that were cut off, the newest first. */
export async function findLeftRaces(env: Environment, cwd: string): Promise<StoredRace[]> {
  const { races } = await listRaces(env);
  const left = races.filter(({ isRunning, record }) => !isRunning && record.cwd === cwd);
  return left.sort((a, b) => b.record.startedAt - a.record.startedAt);
}

async function readRecord(path: string): Promise<RaceRecord | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, "utf8"));
    return isRaceRecord(value) ? value : undefined;
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isRaceRecord(value: unknown): value is RaceRecord {
  if (!isRecord(value) || value["version"] !== VERSION) return false;
  const { session, cwd, at, prompt, pid, startedAt, rivals } = value;
  return (
    [session, cwd, prompt].every((each) => typeof each === "string") &&
    [pid, startedAt].every((each) => typeof each === "number") &&
    (at === null || typeof at === "number") &&
    Array.isArray(rivals) &&
    rivals.every(isRivalRecord)
  );
}

function isRivalRecord(value: unknown): value is RivalRecord {
  if (!isRecord(value) || !isRecord(value["copy"])) return false;
  const { number, path, id, from, copy } = value;
  const { kind, folder, cwd, origin } = copy;
  return (
    typeof number === "number" &&
    (from === null || typeof from === "number") &&
    (kind === "worktree" || kind === "copy") &&
    [path, id, folder, cwd, origin].every((each) => typeof each === "string")
  );
}

/** Removes a race: copies, sessions and histories of its rivals, but for the copies that are to stay. */
export async function removeRace(
  { folder, record }: Pick<StoredRace, "folder" | "record">,
  env: Environment,
  kept: ReadonlySet<number> = new Set(),
): Promise<void> {
  for (const { copy, id, number, path } of record.rivals) {
    await removeHistory(env, id);
    await rm(path, { force: true });
    if (!kept.has(number)) await removeWorkCopy(copy, env);
  }
  if (kept.size === 0) await rm(folder, { recursive: true, force: true });
  else await rm(join(folder, RECORD), { force: true });
}
