import { lstatSync, type Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";
import { parseFileName, SESSION_SUFFIX, summarizeFile, timeIn } from "../format/summary.ts";
import type { SessionFileSummary } from "../format/types.ts";
import { INDEX_FOLDER, type WrittenPlace, WrittenNames } from "../file/written-names.ts";
import { readIndex, writeIndex } from "./index-file.ts";
import { compareUpdated, type FileState, Row, type RowFolder } from "./row.ts";

/** Files that are looked into at the same time. */
export const MAX_OPEN_FILES = 32;
/** What changed within this time may change again without another time of change, however coarse clocks are. */
export const SETTLE_MS = 2_000;
/** The same where times have parts of a second: clocks of file systems tick every few milliseconds. */
const FINE_SETTLE_MS = 100;
/** Files are compared with what is known of them without a promise for each, for so long at once. */
const SLICE_MS = 5;
/** Files that are compared with what is known of them by each look, in turn. */
const CHECKED_IN_TURN = 256;
/** A folder with fewer sessions is read again as fast as its index. */
const MIN_SAVED = 64;
/** The index is written when this part of it has changed. */
const SAVED_SHARE = 1 / 16;
/** Files that are read at most before the index is written: one that is killed begins there. */
const FILES_PER_SAVE = 2_048;
const LOCK_SUFFIX = `${SESSION_SUFFIX}.lock`;

/** Files are compared in the background so long after a look that compared only some. */
const SWEEP_DELAY_MS = 1_000;

/** How a folder is looked at. */
export interface Look {
  /** Some of the files that need no look get one. */
  isTurn: boolean;
  /**
   * All files are compared where something has changed, also those that a program changed which
   * noted no name. Otherwise these are found by and by.
   */
  isWhole: boolean;
}

/**
 * The summaries of the session files of one folder. What is known is compared with the folder
 * whenever it is asked for. A writer takes a lock beside its file, which changes the time of the
 * folder: while that is the same, only files with a lock, those that were written a moment ago, and
 * some of the others in turn are looked at. A writer that removes its lock notes the name of its file.
 */
export class FolderRows implements RowFolder {
  readonly name: string;
  readonly path: string;
  readonly #indexPath: string;
  readonly #now: () => number;
  readonly #rows = new Map<string, Row>();
  readonly #locked = new Set<string>();
  readonly #unsure = new Set<string>();
  readonly #written: WrittenNames;
  /** Up to where the rows have what was written. */
  #upTo: WrittenPlace | undefined;
  #hasSavedPlace = false;
  #names: Iterator<string> = [].values();
  #changedAt: number | undefined;
  #isSettled = false;
  #isLoaded = false;
  /** A change of the folder was looked at without comparing all files. */
  #needsSweep = false;
  #isSweepPlanned = false;
  #unsaved = 0;
  #version = 0;
  #last: Promise<void> = Promise.resolve();
  #waiting: { isWhole: boolean; done: Promise<void> } | undefined;

  constructor(root: string, name: string, now: () => number) {
    this.#now = now;
    this.name = name;
    this.path = join(root, name);
    this.#indexPath = join(root, INDEX_FOLDER, `${name}.json`);
    this.#written = new WrittenNames(root, name);
  }

  /** Another one where a row has changed. */
  get version(): number {
    return this.#version;
  }

  rows(): Iterable<Row> {
    return this.#rows.values();
  }

  /** Brings the rows up to date with what was written before the call. */
  refresh({ isTurn, isWhole }: Look): Promise<void> {
    // One that waits has not looked yet.
    if (this.#waiting && (this.#waiting.isWhole || !isWhole)) return this.#waiting.done;
    const waiting = {
      isWhole,
      done: this.#enqueue(() => {
        if (this.#waiting === waiting) this.#waiting = undefined;
        return this.#look(isTurn, isWhole);
      }),
    };
    this.#waiting = waiting;
    return waiting.done;
  }

  /** Compares these with their files. */
  recheck(names: readonly string[]): Promise<void> {
    return this.#enqueue(() => this.#check(names));
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work, work);
    return this.#last;
  }

  async #look(isTurn: boolean, isWhole: boolean): Promise<void> {
    if (!this.#isLoaded) await this.#load();
    const { mtimeMs: changedAt = 0 } = (await stat(this.path).catch(ignoreMissing)) ?? {};
    if (changedAt === this.#changedAt && this.#isSettled && !(isWhole && this.#needsSweep)) {
      const turn = isTurn ? this.#takeTurn() : [];
      return this.#check(new Set([...this.#locked, ...this.#unsure, ...turn]));
    }
    this.#isSettled = hasSettled(changedAt, this.#now());
    this.#changedAt = changedAt;
    try {
      const before = [...this.#locked];
      const names = await this.#readNames();
      // After the names: a lock that was not there had left a note.
      const written = await this.#written.take();
      const isAll = isWhole || written === undefined || names.size < MIN_SAVED;
      await this.#check(isAll ? names : this.#findDue(names, [...before, ...written]));
      this.#upTo = this.#written.place;
      this.#needsSweep = !isAll;
      // An index that says up to where it knows what was written spares the next process the rest.
      const isLarge = this.#rows.size >= MIN_SAVED;
      if (isLarge && this.#upTo && !this.#hasSavedPlace) await this.#save();
    } catch (error) {
      this.#changedAt = undefined;
      this.#written.resume(this.#upTo);
      throw error;
    }
    if (this.#needsSweep) this.#planSweep();
  }

  /** Those that are new, that have or had a lock, that were just read, or were written. */
  #findDue(names: ReadonlySet<string>, written: readonly string[]): Set<string> {
    const due = new Set([...this.#locked, ...this.#unsure]);
    for (const name of written) if (names.has(name)) due.add(name);
    for (const name of names) if (!this.#rows.has(name)) due.add(name);
    return due;
  }

  /** Compares all files a while later, for as long as the process has something else to do. */
  #planSweep(): void {
    if (this.#isSweepPlanned) return;
    this.#isSweepPlanned = true;
    setTimeout(() => {
      this.#isSweepPlanned = false;
      const [names, changedAt] = [this.#rows.keys(), this.#changedAt];
      const goOn = async (): Promise<void> => {
        const some = takeSome(names, CHECKED_IN_TURN);
        if (!this.#needsSweep) return;
        if (some.length === 0) {
          this.#needsSweep = this.#changedAt !== changedAt;
          return;
        }
        // One part at a time, so that a look does not wait for all of them.
        await this.recheck(some);
        setImmediate(start).unref();
      };
      // The next look that compares all files meets the same error, and reports it.
      const start = (): void => void goOn().catch(() => {});
      start();
    }, SWEEP_DELAY_MS).unref();
  }

  #takeTurn(): string[] {
    const taken = takeSome(this.#names, CHECKED_IN_TURN);
    if (taken.length < CHECKED_IN_TURN) this.#names = this.#rows.keys();
    return taken;
  }

  async #readNames(): Promise<Set<string>> {
    const all = await readdir(this.path).catch(ignoreUnreadable);
    const names = new Set<string>();
    this.#locked.clear();
    for (const name of all) {
      if (name.endsWith(SESSION_SUFFIX)) names.add(name);
      else if (name.endsWith(LOCK_SUFFIX)) this.#locked.add(name.slice(0, -".lock".length));
    }
    for (const name of this.#rows.keys()) if (!names.has(name)) this.#drop(name);
    for (const name of this.#locked) if (!names.has(name)) this.#locked.delete(name);
    return names;
  }

  async #check(names: Iterable<string>): Promise<void> {
    const waiting = (await this.#findChanged(names)).values();
    const work = async (): Promise<void> => {
      for (const name of waiting) {
        await this.#read(name);
        if (this.#unsaved >= FILES_PER_SAVE) await this.#save();
      }
    };
    await Promise.all(Array.from({ length: MAX_OPEN_FILES }, work));
    const most = Math.max(MIN_SAVED, this.#rows.size * SAVED_SHARE);
    if (this.#unsaved >= most) await this.#save();
  }

  /** Those that are not as they were when they were read. */
  async #findChanged(names: Iterable<string>): Promise<string[]> {
    const changed: string[] = [];
    let since = performance.now();
    for (const name of names) {
      const known = this.#rows.get(name);
      const stats = lookAt(join(this.path, name));
      if (stats && !stats.isFile()) this.#drop(name);
      else if (!known?.isSure || !isSame(known.state, stats)) changed.push(name);
      if (performance.now() - since < SLICE_MS) continue;
      await new Promise((settle) => setImmediate(settle));
      since = performance.now();
    }
    return changed;
  }

  async #read(name: string): Promise<void> {
    const path = join(this.path, name);
    try {
      const now = this.#now();
      const known = this.#rows.get(name)?.state.titles;
      const { summary, stats, titles } = await summarizeFile(path, known);
      const { size, mtimeMs, ctimeMs } = stats;
      const isSure = hasSettled(mtimeMs, now) && hasSettled(ctimeMs, now);
      this.#put(name, summary, { size, mtimeMs, ctimeMs, isSure, titles });
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return this.#drop(name);
      // Its name and nothing more is known.
      const [id, time] = [parseFileName(path), timeIn(path) ?? 0];
      const summary = { id, path, cwd: "", createdAt: time, updatedAt: time, bytes: 0 };
      this.#put(name, summary, { size: 0, mtimeMs: 0, ctimeMs: 0, isSure: false });
    }
  }

  #put(name: string, summary: SessionFileSummary, state: FileState): void {
    const known = this.#rows.get(name);
    if (state.isSure) {
      this.#unsaved++;
      this.#unsure.delete(name);
    } else this.#unsure.add(name);
    // Most of those that are read again have not changed: their order stays.
    const isKnown = known !== undefined && isSameSummary(known.summary, summary);
    if (!isKnown) this.#version++;
    const kept = isKnown ? known.summary : summary;
    this.#rows.set(name, new Row(this, name, summary.updatedAt, { summary: kept, state }));
  }

  #drop(name: string): void {
    this.#unsure.delete(name);
    if (this.#rows.delete(name)) this.#version++;
  }

  async #load(): Promise<void> {
    const { lines, written } = await readIndex(this.#indexPath);
    for (const line of lines) {
      const row = Row.parse(this, line);
      this.#rows.set(row.name, row);
    }
    this.#version++;
    this.#upTo = written;
    this.#hasSavedPlace = written !== undefined;
    this.#written.resume(written);
    this.#isLoaded = true;
  }

  async #save(): Promise<void> {
    this.#unsaved = 0;
    const sure = [...this.#rows.values()].filter(({ isSure }) => isSure);
    // In the order of most lists, which then have little to sort.
    sure.sort(compareUpdated);
    const lines = sure.map((row) => row.formatLine());
    this.#hasSavedPlace = this.#upTo !== undefined;
    await writeIndex(this.#indexPath, lines, this.#upTo);
  }
}

function takeSome(names: Iterator<string>, most: number): string[] {
  const taken: string[] = [];
  while (taken.length < most) {
    const { done, value } = names.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

/** What the file system says; undefined where that cannot be known: reading the file says why. */
function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

function isSame(row: FileState, stats: Stats | undefined): boolean {
  return row.size === stats?.size && row.mtimeMs === stats.mtimeMs && row.ctimeMs === stats.ctimeMs;
}

/** Whether a change from now on has another time than this one. */
function hasSettled(time: number, now: number): boolean {
  return now - time > (time % 1_000 === 0 ? SETTLE_MS : FINE_SETTLE_MS);
}

function isSameSummary(one: SessionFileSummary, other: SessionFileSummary): boolean {
  return (
    one.updatedAt === other.updatedAt &&
    one.bytes === other.bytes &&
    JSON.stringify(one) === JSON.stringify(other)
  );
}

function ignoreMissing(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}

/** One that another user made, as with `sudo`, does not keep us from the rest. */
function ignoreUnreadable(error: unknown): [] {
  if (errnoOf(error) === "ENOENT" || errnoOf(error) === "EACCES") return [];
  throw error;
}
