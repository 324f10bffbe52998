import { appendFileSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { redact } from "@gyre/ai";
import { sanitize } from "@gyre/tools";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
/** Of a file: one that is longer is emptied by the next process. */
const MAX_LOG_BYTES = 1_048_576;

/**
 * Writes what MCP servers say on their standard error to a file each, without keys. A process
 * adds `MAX_LOG_BYTES` of each at most; what cannot be written is left.
 */
export function mcpLog(folder: string): (server: string, text: string) => void {
  const written = new Map<string, number>();
  return (server, text) => {
    const path = join(folder, `${server.replace(/[^\w-]+/g, "_")}.log`);
    const before = written.get(path);
    if (before !== undefined && before > MAX_LOG_BYTES) return;
    const line = sanitize(redact(text));
    written.set(path, (before ?? 0) + Buffer.byteLength(line));
    try {
      if (before === undefined) begin(folder, path);
      appendFileSync(path, line, { mode: OWNER_ONLY });
    } catch {
      // A log is no reason for anything else to fail.
      written.set(path, MAX_LOG_BYTES + 1);
    }
  };
}

function begin(folder: string, path: string): void {
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > MAX_LOG_BYTES) rmSync(path, { force: true });
}
