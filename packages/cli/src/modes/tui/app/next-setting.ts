import type { Harness } from "../../../harness/harness.ts";

const MODES = ["ask", "auto-edit", "plan"] as const;
const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;

/** Goes on to the next mode, and from the last to the first. */
export function toNextMode(harness: Harness): Promise<void> {
  const at = MODES.findIndex((mode) => mode === harness.mode);
  return harness.setMode(MODES[(at + 1) % MODES.length] ?? "ask");
}

/** Goes on to the next thinking level, and from the last to the first. */
export function toNextLevel(harness: Harness): Promise<void> {
  const at = LEVELS.findIndex((level) => level === harness.agent.state.thinkingLevel);
  return harness.setThinking(LEVELS[(at + 1) % LEVELS.length] ?? "off");
}
