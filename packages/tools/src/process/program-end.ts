import type { ProgramEnd } from "./processes.ts";

const MS_PER_SECOND = 1_000;

/** How a program ended, in a sentence. */
export function howEnded(end: ProgramEnd): string {
  const seconds = (end.durationMs / MS_PER_SECOND).toFixed(1);
  if (end.timedOut) return `Ended by us after ${seconds} s: its time was over.`;
  if (end.aborted) return "Ended by us: it was aborted.";
  if (end.exitCode === null) return `Ended by ${end.signal ?? "an unknown signal"}.`;
  return `Exit code ${end.exitCode}.`;
}
