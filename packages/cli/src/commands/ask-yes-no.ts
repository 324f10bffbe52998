import { createInterface } from "node:readline";
import { EXIT, ExitError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";

/**
 * Asks the person at the terminal. Anything but a clear yes is a no, and so is the end of the
 * input. Rejects with `ExitError` once `io.signal` has fired.
 */
export async function askYesNo(
  question: string,
  io: Pick<Io, "stdin" | "stdout" | "signal">,
): Promise<boolean> {
  io.stdout.write(`${question} [y/N] `);
  // Without an output it is the terminal itself that shows what is typed.
  const lines = createInterface({ input: io.stdin });
  let stop = (): void => {};
  try {
    return await new Promise<boolean>((settle, reject) => {
      stop = () => reject(new ExitError(EXIT.interrupted, "Interrupted."));
      lines.once("line", (line) => settle(/^\s*y(es)?\s*$/i.test(line)));
      lines.once("close", () => settle(false));
      io.signal.addEventListener("abort", stop);
      if (io.signal.aborted) stop();
    });
  } finally {
    io.signal.removeEventListener("abort", stop);
    lines.close();
  }
}
