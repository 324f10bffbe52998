import type { BigIntStats } from "node:fs";
import { basename } from "node:path";
import { Slices, type Workspace } from "@gyre/tools";
import {
  type Content,
  contentSeen,
  isSameContent,
  isThere,
  type MaybeContent,
  takesBack,
  whyNot,
} from "./content.ts";
import type { Copies, Copy } from "./copies.ts";
import { type GitFiles, GitIndex, readGitContents } from "./git-contents.ts";
import type { FileChange, FileState, LeftOut } from "./lines/line.ts";
import {
  snapshotPath,
  MAX_FILE_BYTES,
  readMode,
  describeFailure,
  computeSignature,
  readQuickly,
  tooLarge,
} from "./lines/snapshot.ts";
import { FileScan, statFile } from "./scan.ts";
import type { HistoryStore } from "./lines/store.ts";

/** A change within this time after a look may not show in what the system notes of a file. */
const RACY_MS = 20;
/** A file that is new to us and older than the last look by more than this is not a new one. */
const CLOCK_SLACK_MS = 2_000;
/** Files of which contents are in memory at the same time. */
const FILES_AT_ONCE = 64;
/** So many files that are copied at once share one file. */
const MIN_PACKED_FILES = 16;
const NO_ROOM = "too much is copied already";
const CALLED_BEFORE = "a command changed it before it was copied";
const NS_PER_MS = 1_000_000n;
const IGNORE_FILES: ReadonlySet<string> = new Set([".gitignore", ".ignore"]);

/** What the changes since the last look are attributed to. */
export type ChangeSource = { by: "agent"; unsure?: string } | { by: "others" };

export interface FoundChanges {
  changes: FileChange[];
  leftOut: LeftOut[];
}

/** Where the content of a file is that may be changed. */
type Source =
  | { type: "copy"; copy: Copy }
  | { type: "git"; oid: string; bytes: number }
  | { type: "stored"; state: FileState }
  | { type: "none"; why: string };

interface Known {
  kind: "file" | "link";
  mode: number;
  signature: string;
  /** It may change without another signature. */
  isRacy: boolean;
  source: Source;
}

export interface KnownFilesOptions {
  workspace: Workspace;
  store: HistoryStore;
  copies: Copies;
  now: () => number;
  /** How long the first look rests after each slice, to make room for a command that runs: see `Slices`. */
  restMs: () => number;
  /** Called now and then with the number of files that were listed, before they are looked at. */
  onListed: (files: number) => void;
  /** Whether another call, that is under way or has ended, has all files looked at after it. */
  willLookAgain: () => boolean;
  /** For tests. */
  maxFiles?: number;
  maxOwnFiles?: number;
}

/**
 * What all files were when they were last looked at, with their contents, so that what a
 * command did can be listed and undone. One look at a time: its caller sees to that.
 */
export class KnownFiles {
  readonly #options: KnownFilesOptions;
  readonly #known = new Map<string, Known>();
  /** When all was looked at last. */
  #lookedAt: number | undefined;
  /** When the look began that is under way: what is copied later may have been changed since, in the same tick. */
  #begunAt = 0;
  /** When a command began before the first look had ended. */
  #calledAt: number | undefined;
  /** Why a file that was not seen before may have been there. */
  #doubt: string | undefined;
  #git: { folder: string; isUsable: boolean } | undefined;
  readonly #gitIndex: GitIndex;
  readonly #scan: FileScan;
  /** What is looked at though it is ignored; made again when that may be other files. */
  #watched: { entries: GitFiles["entries"] | undefined; list: Iterable<string> } | undefined;
  /** What scans have reported and was not dealt with yet: one may have failed in between. */
  readonly #reported = new Set<string>();

  constructor(options: KnownFilesOptions) {
    this.#options = options;
    this.#gitIndex = new GitIndex(options.workspace.root);
    this.#scan = new FileScan(options.workspace, options);
  }

  /** Whether it is known what a file was. */
  has(path: string): boolean {
    return this.#known.has(path);
  }

  /** To be called when a command begins before the first look has ended. */
  noteCall(at: number): void {
    if (this.#lookedAt === undefined) this.#calledAt ??= at;
  }

  /** Between commands the first look goes on as fast as it can: what it comes to can be taken back. */
  #restMs(): number {
    return this.#calledAt === undefined ? 0 : this.#options.restMs();
  }

  close(): Promise<void> {
    return this.#scan.close();
  }

  /**
   * Looks at all files. What is seen for the first time at the first look counts as no change.
   * `notBefore` as for `walkFolders`.
   */
  async scanAll(
    author: ChangeSource,
    signal: AbortSignal,
    notBefore?: number,
  ): Promise<FoundChanges> {
    const startedAt = this.#options.now();
    this.#begunAt = startedAt;
    const last = this.#lookedAt;
    const git = await this.#usable(await this.#gitIndex.read());
    const { isPartial } = await this.#scan.run({
      also: this.#listWatched(git),
      signal,
      restMs: () => this.#restMs(),
      ...(notBefore !== undefined && { notBefore }),
      onListed: this.#options.onListed,
      report: (path) => void this.#reported.add(path),
    });
    const suspects = await this.#findSuspects();
    const found: FoundChanges = { changes: [], leftOut: [] };
    if (this.#calledAt !== undefined) {
      const why = "a command began before all files were listed: what it removed is not known";
      found.leftOut.push({ path: "removed files", why });
    }
    if (isPartial) this.#doubt = "the folder has more files than are looked at";
    const isFirst = last === undefined;
    if (!isFirst) await this.#noteIgnoreFiles(suspects);
    const slices = new Slices(() => this.#restMs());
    const moved = this.#findInodes(suspects);
    const old = last === undefined ? undefined : last - CLOCK_SLACK_MS;
    for (const some of inParts(suspects)) {
      const learned: Suspect[] = [];
      const changed: Suspect[] = [];
      for (const suspect of some) {
        if (this.#isOvertaken(suspect)) {
          found.leftOut.push({ path: suspect.path, why: CALLED_BEFORE });
          this.#take(suspect.path, suspect.stats, { type: "none", why: CALLED_BEFORE });
          continue;
        }
        const isNew = !this.#known.has(suspect.path);
        // It came into sight, or from outside; not from another place that is looked at.
        const isOld = isOlder(suspect.stats, old) && !moved.has(suspect.stats?.ino);
        const wasThere = isNew && (isFirst || isOld);
        (author.by === "others" || wasThere ? learned : changed).push(suspect);
      }
      await this.#learn(learned, git);
      const postponed = await this.#compare(changed, author, found);
      for (const { path } of some) this.#reported.delete(path);
      for (const path of postponed) this.#reported.add(path);
      if (slices.isDue) await slices.pause();
    }
    this.#calledAt = undefined;
    // What a part of the folder hides is not known at the next look either.
    if (!isPartial) this.#doubt = undefined;
    this.#lookedAt = startedAt;
    return found;
  }

  /** Which files were at these paths: those that are somewhere else now were moved. */
  #findInodes(suspects: readonly Suspect[]): ReadonlySet<bigint | undefined> {
    const inodes = new Set<bigint | undefined>();
    for (const { path } of suspects) {
      const known = this.#known.get(path);
      if (known && known.signature !== "") inodes.add(readInode(known.signature));
    }
    return inodes;
  }

  /** Whether a command may have changed a file before the first look came to it. */
  #isOvertaken(suspect: Suspect): suspect is Suspect & { stats: BigIntStats } {
    if (this.#calledAt === undefined || !suspect.stats) return false;
    const changedAt = Number(suspect.stats.ctimeNs / NS_PER_MS);
    return changedAt > this.#calledAt - (changedAt % 1000 === 0 ? CLOCK_SLACK_MS : RACY_MS);
  }

  /** What git tracks, and what is known: a call may have named what is ignored. */
  #listWatched(git: GitFiles | undefined): Iterable<string> {
    const entries = git?.entries;
    if (this.#watched?.entries !== entries || !this.#watched) {
      const known = this.#known;
      const list = {
        *[Symbol.iterator]() {
          if (entries) yield* entries.keys();
          yield* known.keys();
        },
      };
      this.#watched = { entries, list };
    }
    return this.#watched.list;
  }

  /** Of the files that a scan reported, those that are not as they are known. */
  async #findSuspects(): Promise<Suspect[]> {
    const suspects: Suspect[] = [];
    const slices = new Slices(() => this.#restMs());
    for (const path of this.#reported) {
      const isIgnored = this.#scan.isIgnored(path);
      const stats = await statFile(this.#options.workspace, path, isIgnored);
      const known = this.#known.get(path);
      const isAsBefore = stats
        ? known?.signature === computeSignature(stats) && !known.isRacy
        : !known;
      if (isAsBefore) this.#reported.delete(path);
      else suspects.push(stats ? { path, stats, isIgnored } : { path, isIgnored: false });
      if (slices.isDue) await slices.pause();
    }
    return suspects;
  }

  /** Looks at files that a call is about to change, ignored or not. */
  async scanBefore(paths: readonly string[], author: ChangeSource): Promise<FoundChanges> {
    this.#begunAt = this.#options.now();
    const isKnown = (path: string): boolean => this.#known.has(path);
    // What was never looked at is taken as it is: its author is unknown.
    await this.#learn(named(paths.filter((path) => !isKnown(path))), undefined);
    return this.#lookAt(named(paths.filter(isKnown)), author);
  }

  /** Looks at the same files after the call: what is new was made by it. */
  scanAfter(paths: readonly string[], author: ChangeSource): Promise<FoundChanges> {
    this.#begunAt = this.#options.now();
    return this.#lookAt(named(paths), author);
  }

  async #lookAt(suspects: readonly Suspect[], author: ChangeSource): Promise<FoundChanges> {
    const found: FoundChanges = { changes: [], leftOut: [] };
    await this.#noteIgnoreFiles(suspects);
    for (const some of inParts(suspects)) {
      if (author.by !== "agent") await this.#learn(some, undefined);
      else {
        for (const path of await this.#compare(some, author, found)) this.#reported.add(path);
      }
    }
    return found;
  }

  /** Takes files as they are, so that a change of them can be taken back. */
  async #learn(suspects: readonly Suspect[], git: GitFiles | undefined): Promise<void> {
    const read: { path: string; stats: BigIntStats; bytes: Buffer }[] = [];
    const rest: Suspect[] = [];
    const { workspace, copies } = this.#options;
    let room = 0;
    for (const suspect of suspects) {
      const { path, stats } = suspect;
      await this.#forget(path);
      const oid = stats && git?.cleanOid(path, stats);
      if (stats && stats.size > MAX_FILE_BYTES) {
        this.#take(path, stats, { type: "none", why: tooLarge(stats.size) });
      } else if (stats && oid !== undefined) {
        this.#take(path, stats, { type: "git", oid, bytes: Number(stats.size) });
      } else if (stats && !copies.hasRoomFor(room + Number(stats.size))) {
        this.#take(path, stats, { type: "none", why: NO_ROOM });
      } else {
        const isMany = suspects.length >= MIN_PACKED_FILES;
        const bytes = isMany && stats ? readQuickly(workspace, path, stats) : undefined;
        if (stats && bytes) read.push({ path, stats, bytes });
        else rest.push(suspect);
        room += bytes?.length ?? 0;
      }
    }
    if (read.length > 0) {
      const sources = await this.#copyAll(read.map(({ bytes }) => bytes));
      read.forEach(({ path, stats }, index) => {
        this.#take(path, stats, sources[index] ?? { type: "none", why: NO_ROOM });
      });
    }
    await Promise.all(rest.map(({ path, stats }) => this.#copy(path, stats)));
  }

  async #copyAll(contents: readonly Uint8Array[]): Promise<Source[]> {
    try {
      const copies = await this.#options.copies.putAll(contents);
      return copies.map((copy) => ({ type: "copy", copy }));
    } catch (error) {
      const why = `it could not be copied: ${describeFailure(error)}`;
      return contents.map(() => ({ type: "none", why }));
    }
  }

  async #copy(path: string, stats: BigIntStats | undefined): Promise<void> {
    const seen = await snapshotPath(this.#options.workspace, path, stats);
    if (seen.kind === "file" || seen.kind === "link") {
      this.#set(path, seen, await this.#copyBytes(seen.bytes));
    } else if (seen.kind === "skipped") {
      const source: Source = { type: "none", why: seen.why };
      if (stats) this.#take(path, stats, source);
      else this.#set(path, { kind: "file", mode: 0, signature: "" }, source);
    } else if (stats && this.#calledAt !== undefined) {
      this.#take(path, stats, { type: "none", why: CALLED_BEFORE });
    }
  }

  async #copyBytes(bytes: Uint8Array): Promise<Source> {
    try {
      const copy = await this.#options.copies.put(bytes);
      return copy ? { type: "copy", copy } : { type: "none", why: NO_ROOM };
    } catch (error) {
      return { type: "none", why: `it could not be copied: ${describeFailure(error)}` };
    }
  }

  /**
   * Finds what the agent has changed, and keeps both what was and what is. Resolves to the files
   * that another call is writing: the look after that call is for them.
   */
  async #compare(
    suspects: readonly Suspect[],
    author: ChangeSource,
    found: FoundChanges,
  ): Promise<string[]> {
    const contents = await this.#gitContents(suspects);
    const postponed: string[] = [];
    for (const suspect of suspects) {
      const { path } = suspect;
      const known = this.#known.get(path);
      const seen = await snapshotPath(this.#options.workspace, path);
      if (seen.kind === "skipped" && seen.isChanging && this.#options.willLookAgain()) {
        postponed.push(path);
        continue;
      }
      const leaveOut = async (why: string): Promise<void> => {
        found.leftOut.push({ path, why });
        await this.#learn([suspect], undefined);
      };
      if (!known && !isThere(seen)) continue;
      const doubt = this.#findDoubt(suspect);
      if (!known && doubt !== undefined) {
        await leaveOut(doubt);
        continue;
      }
      const before = known ? await this.#readContent(known, contents) : null;
      const after = contentSeen(seen);
      if (isSameContent(before, after)) {
        // The same content, noted with what the system says of it now.
        if (known && (seen.kind === "file" || seen.kind === "link")) {
          this.#set(path, seen, known.source);
        }
        continue;
      }
      const why = whyNot(before) ?? whyNot(after);
      if (
        why !== undefined &&
        suspect.stats &&
        known?.signature === computeSignature(suspect.stats)
      ) {
        // Only looked at because it was changed shortly before the last look.
        this.#take(path, suspect.stats, known.source);
        continue;
      }
      if (why !== undefined) {
        await leaveOut(why);
        continue;
      }
      try {
        const change: FileChange = {
          path,
          before: await this.#keep(before),
          after: await this.#keep(after),
          ...(author.by === "agent" && author.unsure !== undefined && { unsure: author.unsure }),
        };
        found.changes.push(change);
        await this.#forget(path);
        if (change.after && (seen.kind === "file" || seen.kind === "link")) {
          this.#set(path, seen, { type: "stored", state: change.after });
        }
      } catch (error) {
        await leaveOut(`it could not be kept: ${describeFailure(error)}`);
      }
    }
    return postponed;
  }

  /** Why a file that is new to us may have been there before. */
  #findDoubt({ isIgnored, isNamed }: Suspect): string | undefined {
    if (isNamed) return undefined;
    return isIgnored ? "it was ignored before" : this.#doubt;
  }

  /** Where what is ignored changes, files come into sight that have been there all along. */
  async #noteIgnoreFiles(suspects: readonly Suspect[]): Promise<void> {
    const ignoring = suspects.filter(({ path }) => IGNORE_FILES.has(basename(path)));
    const contents = await this.#gitContents(ignoring);
    for (const { path } of ignoring) {
      const known = this.#known.get(path);
      const before = known ? await this.#readContent(known, contents) : null;
      const after = contentSeen(await snapshotPath(this.#options.workspace, path));
      // One that is new leaves out more, unless it takes something back.
      const isHarmless = before === null && !takesBack(after);
      if (isSameContent(before, after) || isHarmless) continue;
      this.#doubt = "it may have been there before: what is ignored has changed";
    }
  }

  async #keep(content: MaybeContent): Promise<FileState | null> {
    if (content === null || typeof content === "string") return null;
    const { kind, mode, bytes } = content;
    return { kind, mode, bytes: bytes.length, hash: await this.#options.store.put(bytes) };
  }

  /** What a file was, or why that is not known any more. */
  async #readContent(known: Known, git: ReadonlyMap<string, Buffer>): Promise<Content | string> {
    const { kind, mode, source } = known;
    try {
      switch (source.type) {
        case "none":
          return source.why;
        case "copy":
          return { kind, mode, bytes: await this.#options.copies.get(source.copy) };
        case "stored":
          return { kind, mode, bytes: await this.#options.store.get(source.state.hash) };
        case "git": {
          const bytes = git.get(source.oid);
          // Of another length: it is converted when it is checked out.
          if (bytes?.length !== source.bytes) return "git does not have it as it was";
          return { kind, mode, bytes };
        }
      }
    } catch (error) {
      return `what was kept of it cannot be read: ${describeFailure(error)}`;
    }
  }

  #gitContents(suspects: readonly Suspect[]): Promise<Map<string, Buffer>> {
    const oids = suspects.flatMap(({ path }) => {
      const source = this.#known.get(path)?.source;
      return source?.type === "git" ? [source.oid] : [];
    });
    if (oids.length === 0 || !this.#git) return Promise.resolve(new Map());
    return readGitContents(this.#git.folder, oids);
  }

  /** What git has is as good as a copy where the program is there and gives it. */
  async #usable(git: GitFiles | undefined): Promise<GitFiles | undefined> {
    if (!git) return undefined;
    if (!this.#git) {
      const [entry] = git.entries.values();
      const isUsable =
        entry !== undefined && (await readGitContents(git.folder, [entry.oid])).size > 0;
      this.#git = { folder: git.folder, isUsable };
    }
    return this.#git.isUsable ? git : { ...git, cleanOid: () => undefined };
  }

  #take(path: string, stats: BigIntStats, source: Source): void {
    const kind = stats.isSymbolicLink() ? "link" : "file";
    this.#set(path, { kind, mode: readMode(stats), signature: computeSignature(stats) }, source);
  }

  #set(path: string, seen: Pick<Known, "kind" | "mode" | "signature">, source: Source): void {
    const { kind, mode, signature } = seen;
    if (!this.#known.has(path)) this.#watched = undefined;
    const isRacy = changedAt(signature) > this.#begunAt - RACY_MS;
    this.#known.set(path, { kind, mode, signature, isRacy, source });
  }

  async #forget(path: string): Promise<void> {
    const known = this.#known.get(path);
    this.#known.delete(path);
    if (known) this.#watched = undefined;
    if (known?.source.type === "copy") await this.#options.copies.drop(known.source.copy);
  }
}

/** A file that may have changed. */
interface Suspect {
  path: string;
  /** Absent: it was not come across. */
  stats?: BigIntStats;
  isIgnored: boolean;
  /** A call has named it, and it was looked at before that. */
  isNamed?: boolean;
}

function named(paths: readonly string[]): Suspect[] {
  return paths.map((path) => ({ path, isIgnored: false, isNamed: true }));
}

/** When what is at a path was last changed in any way, in milliseconds since 1970. */
function changedAt(signature: string): number {
  return Number(BigInt(signature.split(" ")[2] ?? "0") / NS_PER_MS);
}

function readInode(signature: string): bigint {
  return BigInt(signature.split(" ")[3] ?? "0");
}

function isOlder(stats: BigIntStats | undefined, thanMs: number | undefined): boolean {
  return stats !== undefined && thanMs !== undefined && Number(stats.ctimeNs / NS_PER_MS) < thanMs;
}

function* inParts<T>(list: readonly T[]): Generator<T[]> {
  for (let at = 0; at < list.length; at += FILES_AT_ONCE) yield list.slice(at, at + FILES_AT_ONCE);
}
