import type { Clock } from "@gyre/ai";
import type { ProgramEnd, RunningProgram } from "../../process/processes.ts";
import type { ProgramSpec } from "../../sandbox/sandbox.ts";

/** Jobs that run at once; as many that have ended are remembered. */
export const MAX_JOBS = 16;
/** Of a job, kept until it is read. What is older is in its file. */
export const JOB_MAX_UNREAD_CHARS: number = 64 * 1024;
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
}

/** What a job wrote since it was last read, both streams in the order in which it came. */
export interface JobOutput {
  text: string;
  /** Characters that came before `text` and were dropped. */
  dropped: number;
  /** Files with all of it, once there are any. */
  paths: string[];
}

interface Job {
  id: string;
  command: string;
  startedAt: number;
  program: RunningProgram;
  /** It has ended, and so has what comes after it. */
  settled: Promise<void>;
  stop: AbortController;
  unread: Unread;
  end?: ProgramEnd;
  /** Called when there is something new to report. */
  wake: Set<() => void>;
}

/** Text that is not read yet: the last of it. */
class Unread {
  #text = "";
  #dropped = 0;

  add(piece: string): void {
    this.#text += piece;
    // Not with every piece: that would copy all of it each time.
    if (this.#text.length > 2 * JOB_MAX_UNREAD_CHARS) this.#trim();
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  take(): { text: string; dropped: number } {
    this.#trim();
    const taken = { text: this.#text, dropped: this.#dropped };
    this.#text = "";
    this.#dropped = 0;
    return taken;
  }

  #trim(): void {
    const excess = this.#text.length - JOB_MAX_UNREAD_CHARS;
    if (excess <= 0) return;
    this.#text = this.#text.slice(excess).replace(HALF_CHARACTER, "");
    this.#dropped += excess;
  }
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
  ): Promise<string> {
    if (this.#isClosed) throw new Error("The agent has ended: no job is started any more.");
    this.#makeRoom();
    const starting = this.#start(program, command, timeoutMs, after);
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
  ): Promise<Job> {
    const { startProgram } = await import("../../process/processes.ts");
    const { clock, spoolFolder } = this.#options;
    const stop = new AbortController();
    const unread = new Unread();
    const wake = new Set<() => void>();
    const notify = (): void => {
      for (const run of [...wake]) run();
    };
    const startedAt = clock.now();
    const running = await startProgram(program, {
      spoolFolder,
      clock,
      signal: stop.signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
      onOutput: (piece) => {
        unread.add(piece);
        notify();
      },
    });
    const { token } = this.#options;
    const id = `job-${token === undefined ? "" : `${token}-`}${++this.#count}`;
    const settled = running.ended.then(() => after?.());
    const job: Job = { id, command, startedAt, program: running, settled, stop, unread, wake };
    this.#jobs.set(id, job);
    void running.ended.then((end) => {
      job.end = end;
      notify();
    });
    return job;
  }

  /** What a job wrote since it was last read. */
  read(id: string): JobOutput {
    const { unread, program } = this.#get(id);
    const { stdout, stderr } = program.output();
    const paths = [stdout.path, stderr.path].filter((path) => path !== undefined);
    return { ...unread.take(), paths };
  }

  /** Resolves when a job has something to read or has ended, and after `ms` in any case. */
  wait(id: string, ms: number, signal?: AbortSignal): Promise<void> {
    const job = this.#get(id);
    if (job.end || !job.unread.isEmpty || ms <= 0 || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, done);
      function done(): void {
        cancel();
        job.wake.delete(done);
        signal?.removeEventListener("abort", done);
        resolve();
      }
      job.wake.add(done);
      signal?.addEventListener("abort", done, { once: true });
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
    this.#get(id).stop.abort();
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

  #info({ id, command, program, startedAt, end }: Job): JobInfo {
    const durationMs = end?.durationMs ?? this.#options.clock.now() - startedAt;
    return { id, command, pid: program.pid, durationMs, ...(end && { end }) };
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
