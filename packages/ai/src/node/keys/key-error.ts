import { errnoOf } from "../../common/errors.ts";

/** The key file cannot be used. The message has the path and what to do, never the contents. */
export class KeyFileError extends Error {
  readonly code = "key_file";
  readonly path: string;
  /** What is wrong, as the end of a sentence that begins with the file. */
  readonly problem: string;
  constructor(path: string, problem: string) {
    super(`The key file ${path} ${problem}.`);
    this.name = "KeyFileError";
    this.path = path;
    this.problem = problem;
  }
}

/** A command gave no key. The message has the program, never its arguments or what it gave. */
export class KeyCommandError extends Error {
  readonly code = "key_command";
  readonly program: string;
  /** What is wrong, as the end of a sentence that begins with the command. */
  readonly problem: string;
  constructor(program: string, problem: string) {
    super(`The command ${program} ${problem}.`);
    this.name = "KeyCommandError";
    this.program = program;
    this.problem = problem;
  }
}

/** The code of a system error: its words may quote what must not be shown. */
export function formatErrorCode(error: unknown): string {
  return errnoOf(error) ?? (error instanceof Error ? error.name : typeof error);
}
