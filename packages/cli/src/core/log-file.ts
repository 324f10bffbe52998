import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** What is written about a run is for the owner's eyes. */
const OWNER_ONLY = 0o600;

/**
 * Adds texts to a file, which is made with its folder where it is missing. Throws at once
 * where that cannot be done.
 */
export function logFile(path: string): (text: string) => void {
  mkdirSync(dirname(path), { recursive: true });
  const write = (text: string): void => appendFileSync(path, text, { mode: OWNER_ONLY });
  write("");
  return write;
}
