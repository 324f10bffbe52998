import { CodingAgentError, type CodingAgentErrorCode } from "@gyre/coding/internal/core/errors";

/** How the program ends, for scripts. Documented: a code never changes its meaning. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  /** No key, or one that the service refused. */
  auth: 41,
  /** A limit of turns, cost or tokens ended the run. */
  limit: 53,
  /** The run could not be finished because a call was denied. */
  denied: 54,
  timeout: 124,
  interrupted: 130,
} as const;

export type ExitCode = number;

/** What is wrong with the command line, for the person who wrote it. */
export class UsageError extends Error {
  readonly exitCode: ExitCode = EXIT.usage;
}

/** Ends the program with one line and a code. */
export class ExitError extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** stdout takes no more. What there is to say of it was said where that was found out. */
export class OutputError extends ExitError {}

/** The exit code of a program that a signal has ended. */
export function findExitCode({ reason }: AbortSignal): ExitCode {
  return reason instanceof ExitError ? reason.exitCode : EXIT.interrupted;
}

const EXITS: Readonly<Record<CodingAgentErrorCode, ExitCode>> = {
  bad_option: EXIT.usage,
  bad_settings: EXIT.usage,
  no_key: EXIT.auth,
  prompt_blocked: EXIT.failed,
  aborted: EXIT.interrupted,
  failed: EXIT.failed,
};

/** The exit code of a program that an error has ended. */
export function toExitCode(error: unknown): ExitCode {
  if (error instanceof ExitError || error instanceof UsageError) return error.exitCode;
  return error instanceof CodingAgentError ? EXITS[error.code] : EXIT.failed;
}
