import { basename, dirname } from "node:path";
import type { ToolEnv } from "../../contract/env.ts";

/** A path that begins so names a result that an agent keeps, not a file. */
export const KEPT_PREFIX = "kept:";

/** As long output is saved. */
const OUTPUT_FILE = /^output-[\da-f-]+\.txt$/;

/** The name of a file with long output of this agent's own, where `path` is one. */
export function spooledName(env: ToolEnv, path: string): string | undefined {
  if (dirname(path) !== env.spoolFolder) return undefined;
  const name = basename(path);
  return OUTPUT_FILE.test(name) ? name : undefined;
}

/** The key of a kept result, where `path` names one and this agent keeps any. */
export function keptKey(env: ToolEnv, path: string): string | undefined {
  return env.kept && path.startsWith(KEPT_PREFIX) ? path.slice(KEPT_PREFIX.length) : undefined;
}
