import type { ProgramEnd } from "../process/processes.ts";

const WRITE_FAILED = /\bEROFS\b|Read-only file system|\bEBUSY\b|Device or resource busy/i;
const NETWORK_FAILED = new RegExp(
  [
    String.raw`\bEAI_AGAIN\b`,
    String.raw`\bENETUNREACH\b`,
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
  ].join("|"),
  "i",
);

/** What to set where a command failed in the sandbox and says that it could not write or connect. */
export function hintAtSandbox(
  { exitCode, stderr }: Pick<ProgramEnd, "exitCode" | "stderr">,
  hasNetwork: boolean,
): string | undefined {
  if (exitCode === 0) return undefined;
  const output = `${stderr.head}\n${stderr.tail}`;
  if (!hasNetwork && NETWORK_FAILED.test(output)) {
    return "The sandbox has no network; the user can allow it with the setting `network`.";
  }
  if (!WRITE_FAILED.test(output)) return undefined;
  return "The sandbox keeps that place read-only; the user can name more folders in the setting `writable`.";
}
