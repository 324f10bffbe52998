import { spawn } from "node:child_process";
import type { Clock } from "../../common/clock.ts";
import { redact } from "../../common/redact.ts";
import { keyProblem } from "./key-check.ts";
import { formatErrorCode, KeyCommandError } from "./key-error.ts";

/** More than any key, and enough of what a program complains. */
const MAX_OUTPUT_BYTES = 65_536;
/** How much of a program's complaint is shown. */
const SHOWN_CHARS = 500;
/** How many lines of its output are taken for secrets in what is shown. */
const SECRET_LINES = 20;

export interface KeyCommandsOptions {
  clock: Clock;
  timeoutMs: number;
  /** How long an answer is kept. */
  ttlMs: number;
}

export type Command = readonly [program: string, ...args: string[]];

/** Runs commands that give keys. */
export interface KeyCommands {
  /**
   * The first line that the command writes, without the space around it. Callers that
   * ask while it runs share its answer; it is ended when no caller waits any more. Rejects
   * with `KeyCommandError`, or with the reason of the signal.
   */
  get(command: Command, signal?: AbortSignal): Promise<string>;
  /** Forgets the answers. */
  clear(): void;
}

interface Running {
  answer: Promise<string>;
  stop: () => void;
  waiting: number;
}

export function createKeyCommands({ clock, timeoutMs, ttlMs }: KeyCommandsOptions): KeyCommands {
  const running = new Map<string, Running>();
  const kept = new Map<string, { key: string; at: number }>();

  const fresh = (id: string): string | undefined => {
    const answer = kept.get(id);
    if (!answer) return undefined;
    const age = clock.now() - answer.at;
    // A clock that was set back must not keep a key for longer.
    if (age >= 0 && age < ttlMs) return answer.key;
    kept.delete(id);
    return undefined;
  };

  const start = (id: string, command: Command): Running => {
    const { answer, stop } = run(command, timeoutMs, clock);
    const entry: Running = { answer, stop, waiting: 0 };
    const isCurrent = (): boolean => running.get(id) === entry;
    answer.then(
      (key) => {
        if (isCurrent()) kept.set(id, { key, at: clock.now() });
        if (isCurrent()) running.delete(id);
      },
      // Those who wait have the error.
      () => isCurrent() && running.delete(id),
    );
    running.set(id, entry);
    return entry;
  };

  return {
    async get(command, signal) {
      signal?.throwIfAborted();
      const id = JSON.stringify(command);
      const known = fresh(id);
      if (known !== undefined) return known;
      const entry = running.get(id) ?? start(id, command);
      entry.waiting++;
      try {
        return await unlessAborted(entry.answer, signal);
      } finally {
        if (--entry.waiting === 0) {
          // A later caller must not get a command that is being ended.
          if (running.get(id) === entry) running.delete(id);
          entry.stop();
        }
      }
    },
    clear() {
      kept.clear();
      running.clear();
    },
  };
}

/** One run. `stop` ends it, and does nothing once there is an answer. */
function run(
  [program, ...args]: Command,
  timeoutMs: number,
  clock: Clock,
): { answer: Promise<string>; stop: () => void } {
  let stop = (): void => {};
  const answer = new Promise<string>((resolve, reject) => {
    const fail = (problem: string): void => reject(new KeyCommandError(program, problem));
    let child;
    try {
      child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    } catch (error) {
      // The words of that error quote the arguments.
      return fail(`cannot be started (${formatErrorCode(error)})`);
    }
    const { stdout, stderr } = child;
    const out: Buffer[] = [];
    const complaint: Buffer[] = [];
    let outBytes = 0;
    let complaintBytes = 0;
    let ended = false;

    const written = (): string => Buffer.concat(out).toString();
    const complaintText = (): string => shown(Buffer.concat(complaint).toString(), written());
    const end = (problem: string): void => {
      ended = true;
      stopTimer();
      fail(problem);
      // Its children may hold the pipes open: do not wait for those.
      child.kill("SIGKILL");
      stdout.destroy();
      stderr.destroy();
    };
    const stopTimer = clock.after(timeoutMs, () =>
      end(`gave no key within ${timeoutMs} ms${complaintText()}`),
    );
    stop = () => end("was ended: its key is no longer needed");

    stdout.on("data", (chunk: Buffer) => {
      outBytes += chunk.length;
      if (outBytes > MAX_OUTPUT_BYTES) end(`wrote more than ${MAX_OUTPUT_BYTES} bytes`);
      else out.push(chunk);
    });
    stderr.on("data", (chunk: Buffer) => {
      if (complaintBytes < MAX_OUTPUT_BYTES) complaint.push(chunk);
      complaintBytes += chunk.length;
    });
    child.on("error", (error) => {
      stopTimer();
      const code = formatErrorCode(error);
      fail(code === "ENOENT" ? "was not found" : `cannot be run (${code})`);
    });
    child.on("close", (code, signal) => {
      if (ended) return;
      stopTimer();
      if (signal !== null) return fail(`was ended by ${signal}${complaintText()}`);
      if (code !== 0) return fail(`failed with code ${code}${complaintText()}`);
      const key = (written().split("\n", 1)[0] ?? "").trim();
      if (key === "")
        return fail(`gave no key: the first line that it wrote is empty${complaintText()}`);
      const problem = keyProblem(key);
      return problem === undefined ? resolve(key) : fail(`gave a key that ${problem}`);
    });
  });
  return { answer, stop: () => stop() };
}

/** What a program wrote to stderr, fit for an error: no key, no control characters, not long. */
function shown(complaint: string, written: string): string {
  // What it wrote to stdout may be the key, also where it failed.
  const secrets = written.split("\n", SECRET_LINES).map((line) => line.trim());
  // Cut last: a part of a key does not look like one.
  const text = redact(complaint, secrets)
    // oxlint-disable-next-line no-control-regex -- they are what is to go
    .replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ")
    .trim();
  if (text === "") return "";
  // It becomes the end of a sentence.
  return `: ${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text.replace(/\.$/, "")}`;
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
