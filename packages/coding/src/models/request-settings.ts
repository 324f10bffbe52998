import type { AgentOptions } from "@gyre/agent";
import type { Settings } from "../settings/settings.ts";

/** What is set about every request of an agent and of its sub-agents. */
export type RequestSettings = Pick<AgentOptions, "thinkingBudgets" | "cacheRetention">;

export function readRequestSettings({
  cacheRetention,
  thinkingBudgets,
}: Settings): RequestSettings {
  return {
    ...(thinkingBudgets && { thinkingBudgets }),
    ...(cacheRetention && { cacheRetention }),
  };
}

/** How many of the messages that wait an agent gets at once. */
export function readQueueModes({
  followUpMode,
  steeringMode,
}: Settings): Pick<AgentOptions, "steeringMode" | "followUpMode"> {
  return { ...(steeringMode && { steeringMode }), ...(followUpMode && { followUpMode }) };
}
