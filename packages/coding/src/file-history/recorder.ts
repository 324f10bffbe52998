import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Middleware, ToolInvocation } from "@gyre/agent";
import type { Session } from "@gyre/sessions";
import { findCheckAfterCommand, type Workspace } from "@gyre/tools";
import { findNamedFiles, isReadingCall } from "./call-files.ts";
import { Copies } from "./copies.ts";
import { type ChangeSource, type FoundChanges, KnownFiles } from "./known-files.ts";
import {
  type EndangeredFiles,
  findDeletingCommand,
  findEndangered,
  listGone,
} from "./ignored-files.ts";
import { historyIn } from "./lines/folders.ts";
import {
  type FileChange,
  type FilePlace,
  type HistoryLine,
  isSameState,
  type LeftOut,
} from "./lines/line.ts";
import { describeFailure, snapshotPath } from "./lines/snapshot.ts";
import { findNewestMessage, readPrompts } from "./prompts.ts";
import { applyRewind, type RewindReport } from "./rewind/apply.ts";
import { findMissingLines } from "./rewind/complete-line.ts";
import type { TreePlace } from "./rewind/file-tree.ts";
import { copyLine } from "./rewind/fork-history.ts";
import { computeState, planRewind, type RewindPlan } from "./rewind/plan.ts";
import { settleRewind } from "./rewind/settle.ts";
import { HistoryStore, type StoreWriter } from "./lines/store.ts";
import { TrackedFiles } from "./tracked-files.ts";

/** After a call that took longer, a change may as well be that of the person who waited. */
export const MAX_SURE_MS = 60_000;
/** A command waits no longer for the first look. */
const MAX_FIRST_WAIT_MS = 100;
/** A first look at more files takes longer than that: no command waits for it. */
const MAX_WAITED_FILES = 3_000;
/** While a command starts, which takes so long, the first look rests for most of the time. */
const COMMAND_START_MS = 250;
const START_REST_MS = 20;
/** While it runs on, for less of it. */
const REST_MS = 4;
/** No look before a call where the last one ended a moment ago: so many times what it took. */
const LOOK_AGAIN_FACTOR = 4;
/** Left out files that are listed for one look; the rest is counted. */
const MAX_LISTED = 100;
const JOB_RAN = "a background job ran: it was changed by that, or by another program";
const LONG_CALL = "a command ran for long: it was changed by that, or by another program";

/** What became of files in a session, and the way back. */
export interface FileHistory {
  /** What was changed, the oldest first. */
  lines(): Promise<readonly HistoryLine[]>;
  /** What would bring the files to a place: back, forward or onto another branch. */
  plan(to: FilePlace): Promise<RewindPlan>;
  /** Does it; see `applyRewind`. */
  apply(plan: RewindPlan, options: { withConflicts: boolean }): Promise<RewindReport>;
  /**
   * Adds what another agent did in a copy of the folder, as lines of this session. `base`: the copy had the files of this
   * place; without it, those of the folder.
   */
  addRival(
    other: HistoryStore,
    lines: readonly HistoryLine[],
    base: TreePlace | undefined,
  ): Promise<void>;
  /** Looks at all files: what has changed since the last look is not the agent's. */
  lookAround(): Promise<void>;
}

export interface RecorderOptions {
  workspace: Workspace;
  /** Nothing is recorded where there is none. */
  session: () => Session | undefined;
  /** Whether a job runs in the background. */
  isJobRunning: () => boolean;
  /** Where the histories of all sessions are. */
  folder: string;
  /** Called once, where files cannot be looked at. */
  warn: (text: string) => void;
  now?: () => number;
  /** Whether a call waits for the look after it: what it did is then written down before its result. Default: false. */
  waitsForLooks?: boolean;
  /** For tests. */
  writer?: StoreWriter;
  maxFiles?: number;
  maxOwnFiles?: number;
  maxFirstWaitMs?: number;
  maxWaitedFiles?: number;
}

/** Where a conversation is: its newest prompt, and its newest message. */
interface Moment {
  entry: number;
  leaf: number | null;
}

interface Opened {
  session: Session;
  store: HistoryStore;
  known: KnownFiles;
}

/**
 * Records what an agent's calls do to files. Around calls that name their files, those are
 * looked at; around all others that are not known to read only, all are. What has changed
 * between calls is not the agent's. A call never fails because of it.
 */
export class FileRecorder implements FileHistory {
  readonly middleware: Middleware;
  readonly #options: RecorderOptions;
  readonly #copies: Copies;
  readonly #closing = new AbortController();
  #opened: Promise<Opened> | undefined;
  /** One look at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #runs = 0;
  /** Calls that may change anything and are under way, or are looked at after their end. */
  #active = 0;
  /** Those that are under way. */
  #running = 0;
  /** Looks at all files after calls that are under way, or have ended, which have not begun. */
  #looksAhead = 0;
  /** How many have begun, and when the last one did, by `performance.now`. */
  #begun = 0;
  #begunAt = -Infinity;
  #wasJobRunning = false;
  #lastScan = { endedAt: -Infinity, tookMs: 0 };
  #prompt: { leaf: number | null; entry: number } | undefined;
  #isWarned = false;
  #tracked = new TrackedFiles();
  /** What others have changed before the prompt that comes, or is worked on. */
  #others: FileChange[] = [];
  /** Gives false when it has ended. */
  #firstLook: Promise<false> | undefined;
  #noteManyFiles = (): void => {};
  /** Settles when the first look has found more files than a command waits for. */
  readonly #hasManyFiles = new Promise<true>((resolve) => {
    this.#noteManyFiles = () => resolve(true);
  });

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#copies = new Copies(join(options.folder, ".copies"));
    this.middleware = {
      run: () => this.#run(),
      tool: (call, next) => this.#record(call, next),
    };
  }

  async lines(): Promise<readonly HistoryLine[]> {
    await this.#turn;
    return (await this.#open())?.store.lines ?? [];
  }

  async plan(to: FilePlace): Promise<RewindPlan> {
    await this.#turn;
    const opened = await this.#open();
    if (!opened) return { to, steps: [], leftOut: [] };
    return planRewind({ ...opened, workspace: this.#options.workspace }, to);
  }

  async apply(plan: RewindPlan, options: { withConflicts: boolean }): Promise<RewindReport> {
    const opened = await this.#open();
    if (!opened) throw new Error("There is no session, and so no history of files.");
    const { session, known } = opened;
    const world = { ...opened, workspace: this.#options.workspace };
    return this.#inTurn(async () => {
      const report = await applyRewind(world, plan, {
        ...options,
        entry: session.entries.at(-1)?.id ?? 0,
        leaf: session.leaf,
        at: this.#now(),
      });
      // Else it would be taken for what a job did.
      const paths = report.done.map(({ path }) => path);
      await known.scanAfter(paths, { by: "others" });
      return report;
    });
  }

  async addRival(
    other: HistoryStore,
    lines: readonly HistoryLine[],
    base: TreePlace | undefined,
  ): Promise<void> {
    const opened = await this.#open();
    if (!opened) throw new Error("There is no session, and so no history of files.");
    const { session, store } = opened;
    await this.#inTurn(async () => {
      for (const line of lines) {
        for (const each of findMissingLines(store.lines, session, line, { base })) {
          for (const part of await this.#splitByFolder(each)) await copyLine(other, store, part);
        }
        await copyLine(other, store, line);
      }
    });
  }

  /** What others changed in a copy alone is no change of the folder. */
  async #splitByFolder(line: HistoryLine): Promise<HistoryLine[]> {
    if (line.by !== "user") return [line];
    const { workspace } = this.#options;
    const parts = line.changes.map(async (change): Promise<HistoryLine> => {
      const current = computeState(await snapshotPath(workspace, change.path));
      const by = isSameState(current, change.after) ? "user" : "rival";
      return { ...line, by, changes: [change] };
    });
    return Promise.all(parts);
  }

  /** Looks at all files after a folder was added: what is new by that is no change. */
  async lookAround(): Promise<void> {
    if (!this.#opened) return;
    const { signal } = this.#closing;
    await this.#scan(signal, (known) => this.#scanAll(known, { by: "others" }, signal));
    await this.#waitForLooks();
  }

  /** Waits for what is under way, and removes the copies. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#waitForLooks();
    const opened = await this.#opened;
    await opened?.known.close();
    await this.#copies.close();
  }

  /** The first look is made while the model thinks. What changed between runs is not the agent's. */
  #run(): () => void {
    if (this.#runs++ === 0) {
      void this.#lookForOthers();
      const looked = this.#scanBefore(undefined);
      this.#firstLook ??= looked.then(() => false);
    }
    return () => {
      if (--this.#runs > 0) return;
      if (this.#options.isJobRunning()) void this.#scanBefore(undefined);
      // A conversation that went on elsewhere without the files of that place has those of now.
      void this.#notePlace();
    };
  }

  /**
   * What others have made of files of the history belongs to the prompt that comes: a rewind to it, or to a later one,
   * then knows what they were. It is written down when the prompt is there.
   */
  #lookForOthers(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        const opened = await this.#open();
        // What a job or a call does meanwhile is not theirs.
        const begun = this.#begun;
        if (!opened || this.#betweenCalls().by !== "others") return;
        const { session, store } = opened;
        const others = await this.#tracked.look(store, session, this.#options.workspace);
        if (begun === this.#begun) this.#others = others;
        else this.#tracked = new TrackedFiles();
      } catch (error) {
        this.#warnOnce(error);
      }
    });
  }

  async #record<T>(call: ToolInvocation, next: () => Promise<T>): Promise<T> {
    if (!this.#options.session() || (await isReadingCall(call))) return next();
    const paths = await findNamedFiles(call);
    if (paths || !(await this.#isFirstLookLong())) {
      // The look after the last call may be all that is needed.
      await this.#waitForLooks();
      if (paths !== undefined || !this.#isFresh()) await this.#scanBefore(paths);
      // A look that is under way would take what this call does for a change from outside.
      await this.#waitForLooks();
    }
    const endangered = paths ? undefined : await this.#keepIgnored(call);
    const startedAt = this.#now();
    const startedTick = (this.#begunAt = performance.now());
    // While a look at all files is made, the next prompt may come.
    const moment = this.#startMoment();
    const isFirst = this.#active++ === 0;
    const begun = ++this.#begun;
    this.#running++;
    if (!paths) this.#looksAhead++;
    try {
      return await next();
    } finally {
      this.#running--;
      const isAlone = isFirst && begun === this.#begun;
      const notBefore = isAlone ? this.#findCheck(startedTick) : undefined;
      const isLong = !paths && this.#now() - startedAt > MAX_SURE_MS;
      const author: ChangeSource = { by: "agent", ...(isLong && { unsure: LONG_CALL }) };
      const looked = this.#scanAfter(paths, author, moment, notBefore, endangered);
      // Not before: another call may look first.
      const ended = looked.finally(() => this.#active--);
      // A look at all files is made while the model goes on: the next call waits for it.
      if (paths || this.#options.waitsForLooks) await ended;
    }
  }

  /** Before a command that deletes: ignored files as `.env` are kept, so that they can be brought back. */
  async #keepIgnored(call: ToolInvocation): Promise<EndangeredFiles | undefined> {
    const command = await findDeletingCommand(call);
    if (command === undefined) return undefined;
    const { root } = this.#options.workspace;
    const cwd = typeof call.args["cwd"] === "string" ? call.args["cwd"] : ".";
    let found: EndangeredFiles | undefined;
    await this.#scan(this.#closing.signal, (known) => {
      found = findEndangered(command, { root, cwd, isKnown: (path) => known.has(path) });
      return known.scanBefore(found.paths, this.#betweenCalls());
    });
    return found;
  }

  /**
   * When the folders were checked after the command of a call that began at this time: the look
   * after it checks them no more. Undefined where they were not, or where a job may have changed
   * something since.
   */
  #findCheck(startedTick: number): number | undefined {
    if (this.#wasJobRunning || this.#options.isJobRunning()) return undefined;
    const checkedAt = findCheckAfterCommand(this.#options.workspace);
    return checkedAt > startedTick ? checkedAt : undefined;
  }

  /**
   * Whether the first look, which copies what git does not have, goes on for longer than a command
   * waits for it. What the command changes before it was copied is then left out, and listed.
   */
  async #isFirstLookLong(): Promise<boolean> {
    if (!this.#firstLook) return false;
    // What it did is compared with others then: nothing of it may be left out.
    if (this.#options.waitsForLooks) return this.#firstLook;
    const stop = new AbortController();
    const { maxFirstWaitMs = MAX_FIRST_WAIT_MS } = this.#options;
    const late = setTimeout(maxFirstWaitMs, true, { signal: stop.signal, ref: false });
    late.catch(() => {});
    const isLong = await Promise.race([this.#firstLook, late, this.#hasManyFiles]);
    stop.abort();
    const opened = isLong ? await this.#opened : undefined;
    opened?.known.noteCall(this.#now());
    return isLong;
  }

  #restMs(): number {
    if (this.#running === 0) return 0;
    return performance.now() - this.#begunAt < COMMAND_START_MS ? START_REST_MS : REST_MS;
  }

  async #waitForLooks(): Promise<void> {
    for (let turn: unknown; turn !== this.#turn;) {
      turn = this.#turn;
      await turn;
    }
  }

  /** What changes are attributed to that were made while no call ran. */
  #betweenCalls(): ChangeSource {
    if (this.#active > 0) return { by: "agent" };
    const didJobRun = this.#wasJobRunning || this.#options.isJobRunning();
    return didJobRun ? { by: "agent", unsure: JOB_RAN } : { by: "others" };
  }

  #isFresh(): boolean {
    const { endedAt, tookMs } = this.#lastScan;
    return this.#now() - endedAt < tookMs * LOOK_AGAIN_FACTOR;
  }

  /** Looks at some files or at all, when it is its turn. Closing ends it. */
  #scanBefore(paths: readonly string[] | undefined): Promise<void> {
    const { signal } = this.#closing;
    return this.#scan(signal, (known) => {
      const author = this.#betweenCalls();
      return paths ? known.scanBefore(paths, author) : this.#scanAll(known, author, signal);
    });
  }

  /** Looks at what a call did. Closing waits for it: else there would be no way back. */
  #scanAfter(
    paths: readonly string[] | undefined,
    author: ChangeSource,
    moment: Promise<Moment>,
    notBefore: number | undefined,
    endangered: EndangeredFiles | undefined,
  ): Promise<void> {
    const { signal } = new AbortController();
    const look = async (known: KnownFiles): Promise<FoundChanges> => {
      if (paths) return known.scanAfter(paths, author);
      this.#looksAhead--;
      const found = await this.#scanAll(known, author, signal, notBefore);
      if (endangered) found.leftOut.push(...listGone(endangered));
      return found;
    };
    return this.#scan(signal, look, moment);
  }

  async #scanAll(
    known: KnownFiles,
    author: ChangeSource,
    signal: AbortSignal,
    notBefore?: number,
  ): Promise<FoundChanges> {
    const startedAt = this.#now();
    const found = await known.scanAll(author, signal, notBefore);
    const endedAt = this.#now();
    this.#lastScan = { endedAt, tookMs: endedAt - startedAt };
    this.#wasJobRunning = this.#options.isJobRunning();
    return found;
  }

  /** Writes down what a look has found. */
  #scan(
    signal: AbortSignal,
    look: (known: KnownFiles) => Promise<FoundChanges>,
    ownMoment?: Promise<Moment>,
  ): Promise<void> {
    return this.#inTurn(async () => {
      try {
        const opened = signal.aborted ? undefined : await this.#open();
        if (!opened) return;
        const found = await look(opened.known);
        if (found.changes.length > 0 || found.leftOut.length > 0) {
          await this.#append(opened, found, ownMoment);
        }
      } catch (error) {
        this.#warnOnce(error);
      }
    });
  }

  /** Writes down what the files of this place are, where that does not follow from what is written. */
  #notePlace(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        const opened = await this.#open();
        if (opened) await this.#append(opened, { changes: [], leftOut: [] });
      } catch (error) {
        this.#warnOnce(error);
      }
    });
  }

  async #append(
    { session, store }: Opened,
    found: FoundChanges,
    ownMoment?: Promise<Moment>,
  ): Promise<void> {
    if (store.lines.length === 0 && found.changes.length + found.leftOut.length === 0) return;
    const { changes } = found;
    const leftOut = listed(found);
    const moment = await (ownMoment ?? this.#findMoment(session));
    const line: HistoryLine = { by: "agent", ...moment, at: this.#now(), changes, leftOut };
    const others = this.#others.splice(0);
    const missing = findMissingLines(store.lines, session, line, { others });
    for (const each of missing) await store.append(each);
    if (changes.length > 0 || leftOut.length > 0) await store.append(line);
  }

  /** Where the conversation is now, also where that is waited for later. */
  #startMoment(): Promise<Moment> {
    const session = this.#options.session();
    const moment = session ? this.#findMoment(session) : Promise.resolve({ entry: 0, leaf: null });
    // What fails is reported where it is needed.
    moment.catch(() => {});
    return moment;
  }

  /** What was read for it before is not read again. */
  async #findMoment(session: Session): Promise<Moment> {
    const { leaf } = session;
    const newest = findNewestMessage(session);
    const last = this.#prompt;
    let entry = 0;
    for await (const prompt of readPrompts(session, last?.leaf ?? null)) {
      entry = prompt.entry;
      break;
    }
    if (entry === 0) entry = last?.entry ?? 0;
    this.#prompt = { leaf, entry };
    return { entry, leaf: newest };
  }

  #open(): Promise<Opened> | undefined {
    const session = this.#options.session();
    if (!session) return undefined;
    return (this.#opened ??= this.#openFor(session));
  }

  async #openFor(session: Session): Promise<Opened> {
    const { folder, writer, workspace, maxFiles, maxOwnFiles } = this.#options;
    const { maxWaitedFiles = MAX_WAITED_FILES } = this.#options;
    const store = await HistoryStore.open(historyIn(folder, session.header.id), writer);
    const known = new KnownFiles({
      workspace,
      store,
      copies: this.#copies,
      now: () => this.#now(),
      restMs: () => this.#restMs(),
      willLookAgain: () => this.#looksAhead > 0,
      onListed: (files) => {
        if (files > maxWaitedFiles) this.#noteManyFiles();
      },
      ...(maxFiles !== undefined && { maxFiles }),
      ...(maxOwnFiles !== undefined && { maxOwnFiles }),
    });
    const cutOff = await settleRewind({ session, store, workspace });
    if (cutOff) this.#options.warn(describeCutOff(cutOff));
    return { session, store, known };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #warnOnce(error: unknown): void {
    if (this.#isWarned || this.#closing.signal.aborted) return;
    this.#isWarned = true;
    this.#options.warn(
      `What is changed may not be taken back by /rewind: the history of files failed (${describeFailure(error)}).`,
    );
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function describeCutOff({ changes }: HistoryLine): string {
  const files = changes.length === 1 ? "1 file" : `${changes.length} files`;
  return `Files were being brought to another place when the program was ended: ${files} came there. /rewind finishes it, or takes it back.`;
}

function listed({ leftOut }: FoundChanges): LeftOut[] {
  if (leftOut.length <= MAX_LISTED) return leftOut;
  const more = leftOut.length - MAX_LISTED;
  return [...leftOut.slice(0, MAX_LISTED), { path: `${more} more files`, why: "too many to list" }];
}
