import type { Clock } from "@gyre/ai";
import type { ProgramSpec } from "./sandbox.ts";

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
}

/** Output: its beginning and end in memory, all of it in a file once that is too little. */
export interface CapturedOutput {
  head: string;
  tail: string;
  bytes: number;
  lines: number;
  /** Where all of it is, if head and tail are not all. */
  path?: string;
}

export interface RunOptions {
  /** Default: none. */
  timeoutMs?: number;
  signal?: AbortSignal;
  onOutput?: (piece: string, stream: "stdout" | "stderr") => void;
  /** A folder (0700) for what is too long for memory. */
  spoolFolder: string;
  /** Written to its standard input, which is then closed; absent: closed at once. */
  input?: string;
  clock?: Clock;
}

/**
 * Runs a program in a process group of its own and answers when it has exited, not when
 * the last of its descendants lets go of a pipe. On abort, on time-out and at its end
 * nothing that it started is left. Rejects only where it cannot be started at all.
 */
export function runProgram(_program: ProgramSpec, _options: RunOptions): Promise<ProgramEnd> {
  throw new Error("Not here yet.");
}
