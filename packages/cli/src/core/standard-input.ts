import { ExitError, EXIT } from "./exit-codes.ts";
import type { Io } from "./io.ts";

/** More than any model takes. */
export const MAX_INPUT_BYTES: number = 16 * 1024 * 1024;
/** After so long without a byte, a user may wonder what the program waits for. */
const WONDER_MS = 2_000;

/**
 * All of stdin as text. Where a prompt was given as well, stdin may be a pipe that nothing is
 * written to and that is never closed: a line on stderr says so after a while.
 */
export async function readInput(io: Io, signal: AbortSignal, hasPrompt: boolean): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const wonder = setTimeout(() => {
    if (bytes > 0 || !hasPrompt) return;
    io.stderr.write("gyre: Waiting for the end of stdin. If there is no input, add </dev/null.\n");
  }, WONDER_MS);
  const stop = (): void => {
    if ("destroy" in io.stdin && typeof io.stdin.destroy === "function") io.stdin.destroy();
  };
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) throw interrupted();
    for await (const piece of io.stdin) {
      const buffer = typeof piece === "string" ? Buffer.from(piece) : piece;
      bytes += buffer.length;
      if (bytes > MAX_INPUT_BYTES) {
        throw new ExitError(
          EXIT.usage,
          `More than ${MAX_INPUT_BYTES >> 20} MB were piped in. Put it into a file and name that in the prompt.`,
        );
      }
      pieces.push(buffer);
    }
  } catch (error) {
    if (signal.aborted) throw interrupted();
    throw error;
  } finally {
    clearTimeout(wonder);
    signal.removeEventListener("abort", stop);
  }
  if (signal.aborted) throw interrupted();
  return Buffer.concat(pieces)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
}

function interrupted(): ExitError {
  return new ExitError(EXIT.interrupted, "Interrupted while reading stdin.");
}
