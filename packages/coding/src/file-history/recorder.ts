import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Middleware, ToolInvocation } from "@gyre/agent";
import { defaultSessionFolder, type Session } from "@gyre/sessions";
import { findCheckAfterCommand, type Workspace } from "@gyre/tools";
import { findNamedFiles, isReadingCall } from "./call-files.ts";
import { Copies } from "./copies.ts";
import { type ChangeSource, type FoundChanges, KnownFiles } from "./known-files.ts";
import type { HistoryLine, LeftOut } from "./line.ts";
import { describeFailure } from "./snapshot.ts";
import { readPrompts } from "./prompts.ts";
import { planRewind, type RewindFrom, type RewindPlan } from "./rewind.ts";
import { applyRewind, type RewindReport } from "./rewind-apply.ts";
import { HistoryStore, type StoreWriter } from "./store.ts";

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
  /** What a rewind would do. */
  plan(from: RewindFrom): Promise<RewindPlan>;
  /** Does it; see `applyRewind`. */
  apply(plan: RewindPlan, options: { withConflicts: boolean }): Promise<RewindReport>;
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
  /** For tests. */
  writer?: StoreWriter;
  maxFiles?: number;
  maxOwnFiles?: number;
  maxFirstWaitMs?: number;
  maxWaitedFiles?: number;
}

/** Where the histories of this user are: beside the sessions. */
export function historyFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(dirname(defaultSessionFolder(env)), "files");
}

/** Where what is kept of the files of a session is. */
export function sessionHistoryFolder(
  env: Readonly<Record<string, string | undefined>>,
  session: string,
): string {
  return join(historyFolder(env), folderName(session));
}

/** Takes away what is kept of the files of a session. */
export async function removeHistory(
  env: Readonly<Record<string, string | undefined>>,
  session: string,
): Promise<void> {
  await rm(sessionHistoryFolder(env, session), { recursive: true, force: true });
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

  async plan(from: RewindFrom): Promise<RewindPlan> {
    await this.#turn;
    const opened = await this.#open();
    if (!opened) return { steps: [], leftOut: [] };
    return planRewind({ ...opened, workspace: this.#options.workspace }, from);
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
      const looked = this.#scanBefore(undefined);
      this.#firstLook ??= looked.then(() => false);
    }
    return () => {
      if (--this.#runs === 0 && this.#options.isJobRunning()) void this.#scanBefore(undefined);
    };
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
    const startedAt = this.#now();
    const startedTick = (this.#begunAt = performance.now());
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
      // While a look at all files is made, the next prompt may come.
      const entry = this.#startEntry();
      const author: ChangeSource = { by: "agent", ...(isLong && { unsure: LONG_CALL }) };
      const looked = this.#scanAfter(paths, author, entry, notBefore);
      // Not before: another call may look first.
      const ended = looked.finally(() => this.#active--);
      // A look at all files is made while the model goes on: the next call waits for it.
      if (paths) await ended;
    }
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
    entry: Promise<number>,
    notBefore: number | undefined,
  ): Promise<void> {
    const { signal } = new AbortController();
    const look = (known: KnownFiles): Promise<FoundChanges> => {
      if (paths) return known.scanAfter(paths, author);
      this.#looksAhead--;
      return this.#scanAll(known, author, signal, notBefore);
    };
    return this.#scan(signal, look, entry);
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
    ownEntry?: Promise<number>,
  ): Promise<void> {
    return this.#inTurn(async () => {
      try {
        const opened = signal.aborted ? undefined : await this.#open();
        if (!opened) return;
        const found = await look(opened.known);
        const { changes } = found;
        const leftOut = listed(found);
        if (changes.length === 0 && leftOut.length === 0) return;
        const entry = await (ownEntry ?? this.#findEntry(opened.session));
        await opened.store.append({ by: "agent", entry, at: this.#now(), changes, leftOut });
      } catch (error) {
        this.#warnOnce(error);
      }
    });
  }

  /** The newest prompt as of now, also where it is waited for later. */
  #startEntry(): Promise<number> {
    const session = this.#options.session();
    const entry = session ? this.#findEntry(session) : Promise.resolve(0);
    // What fails is reported where it is needed.
    entry.catch(() => {});
    return entry;
  }

  /** The newest prompt. What was read for it before is not read again. */
  async #findEntry(session: Session): Promise<number> {
    const { leaf } = session;
    const last = this.#prompt;
    let entry = 0;
    for await (const prompt of readPrompts(session, last?.leaf ?? null)) {
      entry = prompt.entry;
      break;
    }
    if (entry === 0) entry = last?.entry ?? 0;
    this.#prompt = { leaf, entry };
    return entry;
  }

  #open(): Promise<Opened> | undefined {
    const session = this.#options.session();
    if (!session) return undefined;
    return (this.#opened ??= this.#openFor(session));
  }

  async #openFor(session: Session): Promise<Opened> {
    const { folder, writer, workspace, maxFiles, maxOwnFiles } = this.#options;
    const { maxWaitedFiles = MAX_WAITED_FILES } = this.#options;
    const store = await HistoryStore.open(join(folder, folderName(session.header.id)), writer);
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

function listed({ leftOut }: FoundChanges): LeftOut[] {
  if (leftOut.length <= MAX_LISTED) return leftOut;
  const more = leftOut.length - MAX_LISTED;
  return [...leftOut.slice(0, MAX_LISTED), { path: `${more} more files`, why: "too many to list" }];
}

/** An id that came with a file may be anything. */
function folderName(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(id)) return id;
  return createHash("sha256").update(id).digest("hex");
}
