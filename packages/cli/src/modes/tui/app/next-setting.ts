import { THINKING_LEVELS } from "@gyre/ai";
import type { Harness } from "../../../harness/harness.ts";

const MODES = ["ask", "auto-edit", "plan"] as const;

/** Selects the next mode; the first follows the last. */
export function cycleMode(harness: Harness): Promise<void> {
  const at = MODES.findIndex((mode) => mode === harness.mode);
  return harness.setMode(MODES[(at + 1) % MODES.length] ?? "ask");
}

/** Selects the next thinking level; the first follows the last. */
export function cycleThinking(harness: Harness): Promise<void> {
  const at = THINKING_LEVELS.findIndex((level) => level === harness.agent.state.thinkingLevel);
  return harness.setThinking(THINKING_LEVELS[(at + 1) % THINKING_LEVELS.length] ?? "off");
}
