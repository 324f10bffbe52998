import { THINKING_LEVELS } from "@gyre/ai";
import type { Harness } from "../../../harness/harness.ts";

const MODES = ["ask", "auto-edit", "plan"] as const;

/** Goes on to the next mode, and from the last to the first. */
export function cycleMode(harness: Harness): Promise<void> {
  const at = MODES.findIndex((mode) => mode === harness.mode);
  return harness.setMode(MODES[(at + 1) % MODES.length] ?? "ask");
}

/** Goes on to the next thinking level, and from the last to the first. */
export function cycleThinking(harness: Harness): Promise<void> {
  const at = THINKING_LEVELS.findIndex((level) => level === harness.agent.state.thinkingLevel);
  return harness.setThinking(THINKING_LEVELS[(at + 1) % THINKING_LEVELS.length] ?? "off");
}
