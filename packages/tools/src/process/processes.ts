import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { type Clock, systemClock } from "@gyre/ai";
import {
  type CapturedOutput,
  newRunId,
  noteRun,
  openSpool,
  OutputCapture,
  processInfo,
  ProcessTree,
  RUN_VARIABLE,
  runMark,
  unwatch,
  watch,
  withoutInherited,
} from "@gyre/ai/programs";
import { EXIT_BY_SIGTERM, limitArguments } from "./containment.ts";
import type { ProgramSpec } from "../sandbox/sandbox.ts";

export type { CapturedOutput } from "@gyre/ai/programs";

/** After a program has exited, its pipes are looked at so often. */
const PIPE_POLL_MS = 10;
/** They are closed once nothing came, after so many looks. */
const QUIET_POLLS = 10;
/** They are closed even if something still comes. */
const MAX_POLLS = 200;
/** How long it may take to write the rest of the output to the disk. */
const SPOOL_GRACE_MS = 100;

type StreamName = "stdout" | "stderr";

/** How a program ended. */
export interface ProgramEnd {
  exitCode: number | null;
  /** The signal that ended it. */
  signal: string | null;
  timedOut: boolean;
  aborted: boolean;
  durationMs: number;
  stdout: CapturedOutput;
  stderr: CapturedOutput;
  /** Processes that even SIGKILL did not end in time: the kernel holds them. */
  left?: readonly number[];
}

/** How a program is run, and what becomes of its output. */
export interface RunOptions {
  /** Default: none. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** If it throws, the program is ended and the error is the answer. */
  onOutput?: (piece: string, stream: StreamName) => void;
  /** A folder (0700) for what is too long for memory, and for notes of what runs. */
  spoolFolder: string;
  /** Written to its standard input, which is then closed; absent: closed at once. */
  input?: string;
  /**
   * Its output is that of a terminal: it is drawn here, and what is captured and reported is text. Then its standard
   * input stays open for `write`, and `onOutput` is called also with "", where the screen alone has changed.
   */
  terminal?: DrawnTerminal;
  clock?: Clock;
}

/** A terminal that what a program writes is drawn on. */
export interface DrawnTerminal {
  /** `left`: text that has left the screen. `reply`: what the terminal answers to the program. */
  write(piece: string): { left: string; reply: string };
  /** What is left on the screen, at the end. */
  end(): string;
}

/** A program that was started. */
export interface RunningProgram {
  readonly pid: number;
  /** How it ended; never rejects but for what `onOutput` threw. */
  readonly ended: Promise<ProgramEnd>;
  /** What it has written so far. */
  output(): { stdout: CapturedOutput; stderr: CapturedOutput };
  /** Writes to its standard input, where that is open. Throws where it is not. */
  write(text: string): void;
  /** Neither `signal` nor `timeoutMs` ends it any more; `stop` does. */
  detach(): void;
  stop(): void;
}

interface Exit {
  code: number | null;
  signal: string | null;
}

/**
 * Runs a program in a process group of its own and answers when it has exited, not when
 * the last of its descendants closes a pipe. On abort, on timeout and at its end
 * nothing that it started is left. Rejects only where it cannot be started at all.
 */
export async function runProgram(program: ProgramSpec, options: RunOptions): Promise<ProgramEnd> {
  if (options.signal?.aborted) return notStarted();
  const { ended } = await startProgram(program, options);
  return ended;
}

/** Like `runProgram`, answering as soon as it runs. Throws on a signal that was aborted before. */
export async function startProgram(
  program: ProgramSpec,
  options: RunOptions,
): Promise<RunningProgram> {
  const { signal, timeoutMs, spoolFolder, onOutput, input, terminal } = options;
  const { clock = systemClock } = options;
  signal?.throwIfAborted();
  const id = newRunId();
  const note = noteRun(spoolFolder, id);
  const startedAt = clock.now();
  let child: StartedChild;
  try {
    child = await spawnChild(program, id, input !== undefined || terminal !== undefined);
  } catch (error) {
    note.remove();
    throw error;
  }
  const { pid, start, exited } = child;
  if (start !== undefined) note.started(pid, start);
  const tree = new ProcessTree({
    id,
    pid,
    ...(start !== undefined && { start }),
    isWatched: true,
    isNamespace: program.tree?.kind === "namespace",
    hasLimit: program.tree?.kind === "limit",
  });
  watch(tree);

  let failure: { error: unknown } | undefined;
  const onPiece = (name: StreamName) => (piece: string) => {
    if (failure) return;
    try {
      onOutput?.(piece, name);
    } catch (error) {
      failure = { error };
      stop();
    }
  };
  const stdout = readPipe(
    child.stdout,
    spoolFolder,
    onPiece("stdout"),
    terminal && drawOn(terminal, (reply) => child.stdin?.write(reply)),
  );
  const stderr = readPipe(child.stderr, spoolFolder, onPiece("stderr"));
  // A program need not read what it is given.
  child.stdin?.on("error", () => {});
  if (!terminal) child.stdin?.end(input);

  let endedBy: "itself" | "abort" | "timeout" | undefined;
  let abandon: (exit: Exit) => void = () => {};
  const abandoned = new Promise<Exit>((resolve) => {
    abandon = resolve;
  });
  function stop(): void {
    void tree.end().then((left) => {
      if (left.includes(pid)) abandon({ code: null, signal: null });
    });
  }
  const endBy = (reason: "abort" | "timeout"): void => {
    if (endedBy) return;
    endedBy = reason;
    stop();
  };
  const onAbort = (): void => endBy("abort");
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted) onAbort();
  const cancelTimeout =
    timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => endBy("timeout"));

  async function settle(): Promise<ProgramEnd> {
    const exit = await Promise.race([exited, abandoned]);
    endedBy ??= "itself";
    // The init of a namespace reports our own signal as an exit code.
    const isOurSignal = endedBy !== "itself" && exit.code === EXIT_BY_SIGTERM && program.tree;
    cancelTimeout?.();
    signal?.removeEventListener("abort", onAbort);
    const durationMs = clock.now() - startedAt;
    child.stdin?.destroy();
    const isOwnEnd = endedBy === "itself" && !failure;
    const [left] = await Promise.all([
      tree.end(),
      closePipes([stdout, stderr], isOwnEnd ? MAX_POLLS : QUIET_POLLS),
    ]);
    unwatch(tree);
    if (left.length === 0) note.remove();
    if (failure) throw failure.error;
    return {
      ...(isOurSignal
        ? { exitCode: null, signal: "SIGTERM" }
        : { exitCode: exit.code, signal: exit.signal }),
      timedOut: endedBy === "timeout",
      aborted: endedBy === "abort",
      durationMs,
      stdout: stdout.capture.get(),
      stderr: stderr.capture.get(),
      ...(left.length > 0 && { left }),
    };
  }
  return {
    pid,
    ended: settle(),
    output: () => ({ stdout: stdout.capture.get(), stderr: stderr.capture.get() }),
    write(text) {
      if (!terminal || !child.stdin?.writable) {
        throw new Error("Nothing can be typed there: it has ended, or does not run in a terminal.");
      }
      child.stdin.write(text);
    },
    detach() {
      cancelTimeout?.();
      signal?.removeEventListener("abort", onAbort);
    },
    stop: onAbort,
  };
}

function notStarted(): ProgramEnd {
  const nothing = { head: "", tail: "", bytes: 0, lines: 0 };
  return {
    exitCode: null,
    signal: null,
    timedOut: false,
    aborted: true,
    durationMs: 0,
    stdout: nothing,
    stderr: nothing,
  };
}

interface StartedChild {
  pid: number;
  /** Absent where the system does not say. */
  start: number | undefined;
  stdin: Writable | null;
  stdout: Readable;
  stderr: Readable;
  exited: Promise<Exit>;
}

function spawnChild(program: ProgramSpec, id: string, withInput: boolean): Promise<StartedChild> {
  return new Promise((resolve, reject) => {
    const { argv, tree } = program;
    const [file, ...args] = tree?.kind === "limit" ? limitArguments(tree.prlimit, id, argv) : argv;
    if (file === undefined) throw new Error("There is no program to start: argv is empty.");
    const fail = (error: Error): void => reject(startError(program, error));
    let child: ChildProcess;
    try {
      child = withoutInherited((further) =>
        spawn(file, args, {
          cwd: program.cwd,
          env: { ...program.env, [RUN_VARIABLE]: runMark(id) },
          // A session of its own, and with it a group that can be ended as one.
          detached: process.platform !== "win32",
          stdio: [withInput ? "pipe" : "ignore", "pipe", "pipe", ...further],
          windowsHide: true,
        }),
      );
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    child.on("error", fail);
    const { pid, stdin, stdout, stderr } = child;
    // Without these the error event comes.
    if (pid === undefined || !stdout || !stderr) return;
    const exited = new Promise<Exit>((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    // Asked now: as long as the event loop does not turn, a dead child keeps its number.
    const start = processInfo(pid)?.start;
    resolve({ pid, start, stdin, stdout, stderr, exited });
  });
}

function startError(program: ProgramSpec, error: Error): Error {
  const [file] = program.argv;
  const code = "code" in error ? error.code : undefined;
  let reason = error.message;
  if (!existsSync(program.cwd)) reason = `its working folder ${program.cwd} is not there.`;
  else if (code === "ENOENT") reason = "there is no such program on the PATH.";
  else if (code === "EACCES") reason = "it may not be executed.";
  else if (code === "E2BIG") reason = "its arguments and environment are too long. Use a file.";
  return new Error(`Cannot start ${file}: ${reason}`, { cause: error });
}

interface Pipe {
  capture: OutputCapture;
  stream: Readable;
  /** How many bytes have come. */
  received: number;
  /** A piece is on its way to the disk. */
  isBusy: boolean;
  closed: Promise<void>;
}

/** What a terminal makes of a piece of output; of its end, without one. */
type Draw = (piece: string | undefined) => string;

function drawOn(terminal: DrawnTerminal, answer: (reply: string) => void): Draw {
  return (piece) => {
    if (piece === undefined) return terminal.end();
    const { left, reply } = terminal.write(piece);
    if (reply !== "") answer(reply);
    return left;
  };
}

function readPipe(
  stream: Readable,
  folder: string,
  onPiece: (piece: string) => void,
  draw?: Draw,
): Pipe {
  const decoder = new StringDecoder("utf8");
  const capture = new OutputCapture(() => openSpool(folder));
  const closed = new Promise<void>((resolve) => {
    stream.once("close", () => {
      const rest = decoder.end();
      const last = draw ? draw(rest) + draw(undefined) : rest;
      if (draw) void capture.add(Buffer.from(last));
      if (last) onPiece(last);
      resolve();
    });
  });
  const pipe: Pipe = { capture, stream, received: 0, isBusy: false, closed };
  stream.on("data", (bytes: Buffer) => {
    pipe.received += bytes.length;
    const piece = decoder.write(bytes);
    const text = draw ? draw(piece) : piece;
    const written = capture.add(draw ? Buffer.from(text) : bytes);
    if (written) {
      pipe.isBusy = true;
      stream.pause();
      void written.then(() => {
        pipe.isBusy = false;
        stream.resume();
      });
    }
    if (text || draw) onPiece(text);
  });
  // A pipe that breaks is a pipe that ends: "close" follows.
  stream.on("error", () => {});
  return pipe;
}

/**
 * Reads pipes of a program that has exited to their end, or until they are quiet for
 * as long as a process that still holds them may take to be ended.
 */
async function closePipes(pipes: readonly Pipe[], maxPolls: number): Promise<void> {
  const closed = Promise.all(pipes.map((pipe) => pipe.closed));
  let bytesBefore = -1;
  for (let polls = 0; polls < maxPolls; polls++) {
    const bytes = pipes.reduce((sum, pipe) => sum + pipe.received, 0);
    const isQuiet = bytes === bytesBefore && !pipes.some((pipe) => pipe.isBusy);
    if (isQuiet && polls >= QUIET_POLLS) break;
    if (await within(closed, PIPE_POLL_MS)) break;
    // Where the event loop hangs, a timer comes before what is in the pipes: they are read between
    // timers and this, so each look counts, however late it is.
    await new Promise((resolve) => setImmediate(resolve));
    bytesBefore = bytes;
  }
  for (const pipe of pipes) pipe.stream.destroy();
  await within(
    closed.then(() => Promise.all(pipes.map((pipe) => pipe.capture.close()))),
    SPOOL_GRACE_MS,
  );
}

/** Whether a promise was there in time. */
function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    }, reject);
  });
}
