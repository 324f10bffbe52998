import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** What is written about a run is for the owner's eyes. */
const OWNER_ONLY = 0o600;

/** In place of the path of a file: standard error. */
export const STDERR_LOG = "";

/**
 * Adds texts to a file, which is made with its folder where it is missing. Throws at once
 * where that cannot be done.
 */
export function logFile(path: string): (text: string) => void {
  if (path === STDERR_LOG) return (text) => void process.stderr.write(text);
  mkdirSync(dirname(path), { recursive: true });
  const write = (text: string): void => appendFileSync(path, text, { mode: OWNER_ONLY });
  write("");
  return write;
}
