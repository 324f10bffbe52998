import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionModeState,
} from "@agentclientprotocol/sdk";
import type { Model, ThinkingLevel } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";
import type { ModelChoice } from "./acp-host.ts";
import type { Harness } from "../harness/harness.ts";

export const MODES: Readonly<Record<PermissionMode, { name: string; description: string }>> = {
  ask: { name: "Ask", description: "Asks before it changes files or runs commands." },
  "auto-edit": {
    name: "Edit",
    description: "Changes files of the folder by itself, and asks before it runs commands.",
  },
  plan: { name: "Plan", description: "Reads and plans. Changes nothing and runs nothing." },
  full: { name: "Full", description: "Does everything by itself." },
};

const THINKING: Readonly<Record<ThinkingLevel, string>> = {
  off: "Off",
  minimal: "Minimal",
  low: "Low",
  medium: "Medium",
  high: "High",
  xhigh: "Extra high",
};

export type ConfigId = "model" | "mode" | "thinking";

export function isMode(value: string): value is PermissionMode {
  return Object.hasOwn(MODES, value);
}

export function isThinkingLevel(value: string): value is ThinkingLevel {
  return Object.hasOwn(THINKING, value);
}

export function modelValue({ provider, id }: Pick<Model, "provider" | "id">): string {
  return `${provider}/${id}`;
}

/** What can be set, with what is set now. */
export function configOptions(
  harness: Pick<Harness, "agent" | "mode" | "model">,
  choices: readonly ModelChoice[],
): SessionConfigOption[] {
  const { model } = harness;
  const current = modelValue(model);
  const isListed = choices.some(({ value }) => value === current);
  const models = isListed ? choices : [{ value: current, name: model.name }, ...choices];
  return [
    select("mode", "Mode", "mode", harness.mode, modeChoices()),
    select("model", "Model", "model", current, models),
    select("thinking", "Thinking", "thought_level", harness.agent.state.thinkingLevel, thinking()),
  ];
}

/** The same for editors that know modes only. */
export function modeState(mode: PermissionMode): SessionModeState {
  const availableModes = Object.entries(MODES).map(([id, about]) => ({ id, ...about }));
  return { currentModeId: mode, availableModes };
}

function select(
  id: ConfigId,
  name: string,
  category: string,
  currentValue: string,
  options: readonly SessionConfigSelectOption[],
): SessionConfigOption {
  return { type: "select", id, name, category, currentValue, options: [...options] };
}

function modeChoices(): SessionConfigSelectOption[] {
  return Object.entries(MODES).map(([value, about]) => ({ value, ...about }));
}

function thinking(): SessionConfigSelectOption[] {
  return Object.entries(THINKING).map(([value, name]) => ({ value, name }));
}
