import type { Clock } from "@gyre/ai";
import type { ProgramEnd, RunningProgram } from "../../process/processes.ts";
import type { ProgramSpec } from "../../sandbox/sandbox.ts";
import { encodeKeys, typedText } from "../../terminal/keys.ts";
import type { Screen } from "../../terminal/screen.ts";

/** Jobs that run at once; as many that have ended are remembered. */
export const MAX_JOBS = 16;
/** Of a job, kept until it is read. What is older is in its file. */
export const JOB_MAX_UNREAD_CHARS: number = 64 * 1024;
/** Typed at once: a terminal takes no more before its program reads. */
export const MAX_TYPED_CHARS = 4_000;
/** A program that has written nothing for so long has answered what was typed. */
const QUIET_MS = 150;
/** What is left of a character that was cut in two. */
const HALF_CHARACTER = /^[\uDC00-\uDFFF]/;

/** A job as it is listed. */
export interface JobInfo {
  id: string;
  command: string;
  pid: number;
  /** How long it has run, or ran. */
  durationMs: number;
  /** Absent as long as it runs. */
  end?: ProgramEnd;
  /** It runs in a terminal, where one can type. */
  hasTerminal?: true;
}

/** The terminal of a job, and the rights of the program that reads what is typed there. */
export interface JobTerminal {
  readonly screen: Screen;
  /** It runs outside of the sandbox. */
  readonly isUnsandboxed: boolean;
  /** It was allowed to use the network, for what it was started with. */
  readonly hasGrant: boolean;
}

/** What a job wrote since it was last read, both streams in the order in which it came. */
export interface JobOutput {
  text: string;
  /** Characters that came before `text` and were dropped. */
  dropped: number;
  /** Files with all of it, once there are any. */
  paths: string[];
  /** What is on the screen of a job that runs in a terminal; `text` is what has left it. */
  screen?: { rows: readonly string[]; cursor: { row: number; column: number } };
}

interface Job {
  id: string;
  command: string;
  startedAt: number;
  program: RunningProgram;
  /** It has ended, and so has what comes after it. */
  settled: Promise<void>;
  stop: () => void;
  unread: Unread;
  end?: ProgramEnd;
  terminal?: JobTerminal;
  /** What was typed in its terminal since the last Enter. */
  typed: string;
  /** Called when there is something new to report. */
  wake: Set<() => void>;
  /** It was asked to end, or its end is waited for: that is no news. */
  isAwaited: boolean;
}

/** What has happened to a job. `isNews`: it ended without anybody asking for that. */
export interface JobChange {
  job: JobInfo;
  isNews: boolean;
}

/** A command that runs in the foreground and can go on as a job. */
export interface Movable {
  /** Has it go on in the background. Throws where that is not possible: it stays as it is then. */
  move(): void;
}

/** Text that is not read yet: the last of it. */
class Unread {
  #text = "";
  #dropped = 0;
  #isEmpty = true;

  /** A piece without text says that a screen has changed. */
  add(piece: string): void {
    this.#isEmpty = false;
    this.#text += piece;
    // Not with every piece: that would copy all of it each time.
    if (this.#text.length > 2 * JOB_MAX_UNREAD_CHARS) this.#trim();
  }

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  take(): { text: string; dropped: number } {
    this.#trim();
    const taken = { text: this.#text, dropped: this.#dropped };
    this.#text = "";
    this.#dropped = 0;
    this.#isEmpty = true;
    return taken;
  }

  #trim(): void {
    const excess = this.#text.length - JOB_MAX_UNREAD_CHARS;
    if (excess <= 0) return;
    this.#text = this.#text.slice(excess).replace(HALF_CHARACTER, "");
    this.#dropped += excess;
  }
}

/** What a program has written since it was last read. */
export class JobFeed {
  readonly unread: Unread = new Unread();
  readonly wake: Set<() => void> = new Set();

  add(piece: string): void {
    this.unread.add(piece);
    this.notify();
  }

  notify(): void {
    for (const run of [...this.wake]) run();
  }
}

/** A program that runs, with what it takes to be a job. */
export interface AdoptedProgram {
  command: string;
  startedAt: number;
  program: RunningProgram;
  feed: JobFeed;
  after?: (() => Promise<void>) | undefined;
  terminal?: JobTerminal | undefined;
}

export interface JobTableOptions {
  /** As in `RunOptions`. */
  spoolFolder: string;
  clock: Clock;
  /** Part of the ids: jobs of another table, in another process say, are other jobs. */
  token?: string;
}

/**
 * Programs that run beside the agent. They are ended by `close`, at the latest by the
 * exit of the process; where it is killed, by `reapLeftovers` at the next start.
 */
export class JobTable {
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, Job>();
  readonly #starting = new Set<Promise<Job>>();
  readonly #listeners = new Set<(change: JobChange) => void>();
  readonly #movable = new Set<Movable>();
  #count = 0;
  #isClosed = false;

  constructor(options: JobTableOptions) {
    this.#options = options;
  }

  /**
   * Starts a job and gives its id at once. Throws where it cannot be started. `after` is called
   * when it has ended, and does not reject.
   */
  async start(
    program: ProgramSpec,
    command: string,
    timeoutMs?: number,
    after?: () => Promise<void>,
    terminal?: JobTerminal,
  ): Promise<string> {
    if (this.#isClosed) throw new Error("The agent has ended: no job is started any more.");
    this.#makeRoom();
    const starting = this.#start(program, command, timeoutMs, after, terminal);
    this.#starting.add(starting);
    try {
      return (await starting).id;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async #start(
    program: ProgramSpec,
    command: string,
    timeoutMs?: number,
    after?: () => Promise<void>,
    terminal?: JobTerminal,
  ): Promise<Job> {
    const { startProgram } = await import("../../process/processes.ts");
    const { clock, spoolFolder } = this.#options;
    const feed = new JobFeed();
    const startedAt = clock.now();
    const running = await startProgram(program, {
      spoolFolder,
      clock,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(terminal && { terminal: terminal.screen }),
      onOutput: (piece) => feed.add(piece),
    });
    return this.#add({ command, startedAt, program: running, feed, after, terminal });
  }

  /** Has a program that runs go on as a job, and gives its id. `after` as in `start`. */
  adopt(adopted: AdoptedProgram): string {
    if (this.#isClosed) throw new Error("The agent has ended: no job is started any more.");
    this.#makeRoom();
    adopted.program.detach();
    return this.#add(adopted).id;
  }

  #add({ command, startedAt, program, feed, after, terminal }: AdoptedProgram): Job {
    const { token } = this.#options;
    const id = `job-${token === undefined ? "" : `${token}-`}${++this.#count}`;
    const { unread, wake } = feed;
    const job: Job = {
      id,
      command,
      startedAt,
      program,
      settled: program.ended.then(() => after?.()),
      stop: () => program.stop(),
      unread,
      wake,
      isAwaited: false,
      typed: "",
      ...(terminal && { terminal }),
    };
    this.#jobs.set(id, job);
    this.#report({ job: this.#info(job), isNews: false });
    void program.ended.then((end) => {
      job.end = end;
      const isNews = !job.isAwaited && wake.size === 0;
      feed.notify();
      this.#report({ job: this.#info(job), isNews });
    });
    return job;
  }

  /** Calls `listener` when a job has started or ended; the answer takes it back. */
  onChange(listener: (change: JobChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #report(change: JobChange): void {
    for (const listener of [...this.#listeners]) listener(change);
  }

  /** A command runs in the foreground until the answer is called. */
  offer(command: Movable): () => void {
    this.#movable.add(command);
    return () => void this.#movable.delete(command);
  }

  get hasMovable(): boolean {
    return this.#movable.size > 0;
  }

  /** Has all commands of the foreground go on as jobs. Throws the first reason why one cannot, when the others do. */
  moveAll(): void {
    const failures: unknown[] = [];
    for (const command of [...this.#movable]) {
      try {
        command.move();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** All that a job has written, or its beginning and its end: what is to be read stays so. */
  peek(id: string): ReturnType<RunningProgram["output"]> {
    return this.#get(id).program.output();
  }

  /** What a job wrote since it was last read. */
  read(id: string): JobOutput {
    const { unread, program } = this.#get(id);
    const { stdout, stderr } = program.output();
    const paths = [stdout.path, stderr.path].filter((path) => path !== undefined);
    const screen = this.screen(id);
    return { ...unread.take(), paths, ...(screen && { screen }) };
  }

  /** What is on the screen of a job that runs in a terminal. */
  screen(id: string): JobOutput["screen"] {
    const { terminal, end } = this.#get(id);
    if (!terminal || end || terminal.screen.isOver) return undefined;
    const { rows, cursor } = terminal.screen;
    return { rows, cursor };
  }

  /**
   * What a call that types this would do: the text that is in the line of the job then, and the rights of the job.
   * Throws where the job does not take it.
   */
  describeTyping(id: string, input: string): Omit<JobTerminal, "screen"> & { text: string } {
    const { terminal, typed } = this.#getTyped(id, input);
    const { isUnsandboxed, hasGrant } = terminal;
    return { isUnsandboxed, hasGrant, text: typed + typedText(input) };
  }

  /**
   * Types in the terminal of a job, and resolves once it has shown nothing new for a while, has ended, or after `ms`.
   */
  async type(id: string, input: string, ms: number, signal?: AbortSignal): Promise<void> {
    const job = this.#getTyped(id, input);
    const { hasApplicationKeys } = job.terminal.screen;
    job.typed = (job.typed + typedText(input)).split("\n").at(-1) ?? "";
    job.program.write(encodeKeys(input, { isApplication: hasApplicationKeys }));
    const until = this.#options.clock.now() + ms;
    await this.#next(job, ms, signal);
    while (!job.end && !signal?.aborted && this.#options.clock.now() < until) {
      if (!(await this.#next(job, QUIET_MS, signal))) break;
    }
    await this.#settle(job);
  }

  /** One that has written the last of its output has ended, or is about to. */
  async #settle({ terminal, program }: Job): Promise<void> {
    if (terminal?.screen.isOver) await program.ended;
  }

  #getTyped(id: string, input: string): Job & { terminal: JobTerminal } {
    const job = this.#get(id);
    const { terminal } = job;
    if (input === "") throw new Error("There is nothing to type: input is empty.");
    if (input.length > MAX_TYPED_CHARS) {
      throw new Error(`At most ${MAX_TYPED_CHARS} characters can be typed at once.`);
    }
    if (job.end) throw new Error(`${id} has ended: nothing can be typed there.`);
    if (!terminal) {
      throw new Error(`${id} does not run in a terminal. Start it with tty and background.`);
    }
    return Object.assign(job, { terminal });
  }

  /** Resolves when a job has something to read or has ended, and after `ms` in any case. */
  async wait(id: string, ms: number, signal?: AbortSignal): Promise<void> {
    const job = this.#get(id);
    const isReady = job.end || !job.unread.isEmpty || ms <= 0 || signal?.aborted;
    if (!isReady) await this.#next(job, ms, signal);
    await this.#settle(job);
  }

  /** Whether a job has written something, or ended, within `ms`. */
  #next(job: Job, ms: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isNew: boolean): void => {
        cancel();
        job.wake.delete(onNew);
        signal?.removeEventListener("abort", onAbort);
        resolve(isNew);
      };
      const onNew = (): void => finish(true);
      const onAbort = (): void => finish(false);
      const cancel = this.#options.clock.after(ms, onAbort);
      job.wake.add(onNew);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Resolves when a job has ended. */
  async ended(id: string): Promise<JobInfo> {
    const job = this.#get(id);
    job.end = await job.program.ended;
    await job.settled;
    return this.#info(job);
  }

  /** Ends a job with all that it started. One that has ended is left as it is. */
  async stop(id: string): Promise<JobInfo> {
    const job = this.#get(id);
    job.isAwaited = true;
    if (!job.end) job.stop();
    return this.ended(id);
  }

  info(id: string): JobInfo {
    return this.#info(this.#get(id));
  }

  list(): JobInfo[] {
    return [...this.#jobs.values()].map((job) => this.#info(job));
  }

  /** Ends all jobs; resolves when nothing of them is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#jobs.keys()].map((id) => this.stop(id)));
  }

  #info({ id, command, program, startedAt, end, terminal }: Job): JobInfo {
    const durationMs = end?.durationMs ?? this.#options.clock.now() - startedAt;
    const { pid } = program;
    const state = { ...(end && { end }), ...(terminal && { hasTerminal: true as const }) };
    return { id, command, pid, durationMs, ...state };
  }

  #get(id: string): Job {
    const job = this.#jobs.get(id);
    if (job) return job;
    const ids = [...this.#jobs.keys()].join(", ") || "none";
    const { token } = this.#options;
    if (token !== undefined && id.startsWith("job-") && !id.startsWith(`job-${token}-`)) {
      throw new Error(
        `Job "${id}" is gone: the process that started it has ended, and its jobs with it. Start it again if it is still needed. Available: ${ids}.`,
      );
    }
    throw new Error(`There is no job "${id}". Available: ${ids}.`);
  }

  #makeRoom(): void {
    const jobs = [...this.#jobs.values()];
    const running = jobs.filter((job) => !job.end);
    if (running.length + this.#starting.size >= MAX_JOBS) {
      const ids = running.map((job) => job.id).join(", ");
      throw new Error(`${MAX_JOBS} jobs run already (${ids}). Stop one of them first.`);
    }
    const ended = jobs.filter((job) => job.end);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MAX_JOBS + 1))) {
      this.#jobs.delete(id);
    }
  }
}
