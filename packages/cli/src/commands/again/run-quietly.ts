import { spawn } from "node:child_process";
import { EXIT, ExitError } from "../../core/exit-codes.ts";

/** Runs a command of the user's own, with their rights and without its output. Gives whether it succeeded. */
export function runQuietly(
  [program = "", ...args]: readonly string[],
  cwd: string,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((settle, fail) => {
    const child = spawn(program, args, { cwd, stdio: "ignore", signal });
    child.once("error", (error) =>
      fail(new ExitError(EXIT.failed, `${program} cannot be run: ${error.message}`)),
    );
    child.once("close", (code) => settle(code === 0));
  });
}
