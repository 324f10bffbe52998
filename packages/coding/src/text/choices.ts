import type { Model, ThinkingLevel } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";

/** A model that can be chosen. */
export interface ModelChoice {
  /** service/id. */
  value: string;
  name: string;
}

/** The modes, with what each means. */
export const MODES: Readonly<Record<PermissionMode, { name: string; description: string }>> = {
  ask: { name: "Ask", description: "Asks before it changes files or runs commands." },
  "auto-edit": {
    name: "Edit",
    description: "Changes files of the folder by itself, and asks before it runs commands.",
  },
  auto: {
    name: "Auto",
    description:
      "Works by itself in the sandbox. Asks about the network, other folders and what cannot be undone.",
  },
  plan: { name: "Plan", description: "Reads and plans. Changes nothing and runs nothing." },
  full: { name: "Full", description: "Does everything by itself." },
};

/** The levels of thinking, with their names for people. */
export const THINKING: Readonly<Record<ThinkingLevel, string>> = {
  off: "Off",
  minimal: "Minimal",
  low: "Low",
  medium: "Medium",
  high: "High",
  xhigh: "Extra high",
  max: "Maximum",
};

export const MODE_NAMES: readonly PermissionMode[] = Object.keys(MODES).filter(isMode);
export const THINKING_NAMES: readonly ThinkingLevel[] =
  Object.keys(THINKING).filter(isThinkingLevel);

/**
 * The mode where nothing is said of it: `auto` where the system has a sandbox that was not turned off. One that
 * turns out not to work makes it `ask`, with the first call that matters.
 */
export function assumeMode(
  { sandbox = "auto" }: { sandbox?: "auto" | "none" },
  platform: NodeJS.Platform = process.platform,
): PermissionMode {
  const hasSandbox = platform === "linux" || platform === "darwin";
  return hasSandbox && sandbox !== "none" ? "auto" : "ask";
}

export function isMode(value: string): value is PermissionMode {
  return Object.hasOwn(MODES, value);
}

export function isThinkingLevel(value: string): value is ThinkingLevel {
  return Object.hasOwn(THINKING, value);
}

/** The choices with the model that is set, if it is not among them. */
export function withCurrentModel(choices: readonly ModelChoice[], model: Model): ModelChoice[] {
  const value = modelValue(model);
  const isListed = choices.some((choice) => choice.value === value);
  return isListed ? [...choices] : [{ value, name: model.name }, ...choices];
}

/** What a model is called by. */
export function modelValue({ provider, id }: Pick<Model, "provider" | "id">): string {
  return `${provider}/${id}`;
}
