import type { Model, ModelPrice, ThinkingLevel } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";

/** A model that can be chosen. */
export interface ModelChoice {
  /** service/id. */
  value: string;
  name: string;
  /** In tokens; absent: not known. */
  contextWindow?: number;
  /** US dollars for a million tokens; absent: not known. */
  price?: Pick<ModelPrice, "input" | "output">;
}

/** The modes, with what each means. */
export const MODES: Readonly<Record<PermissionMode, { name: string; description: string }>> = {
  ask: {
    name: "Ask",
    description:
      "Asks before it changes files. Commands run in a layer first, where one is possible, and it asks what to keep of that; elsewhere it asks before.",
  },
  "auto-edit": {
    name: "Edit",
    description:
      "Changes files of the folder by itself. Commands run in a layer first, where one is possible, and it asks what to keep of that; elsewhere it asks before.",
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

/** Each mode allows all that those before it allow. */
const MODE_ORDER: readonly PermissionMode[] = ["plan", "ask", "auto-edit", "auto", "full"];

/** Whether a mode allows no more than another. */
export function isModeWithin(mode: PermissionMode, most: PermissionMode): boolean {
  return MODE_ORDER.indexOf(mode) <= MODE_ORDER.indexOf(most);
}

/** The one of two modes that allows less. */
export function lowerMode(mode: PermissionMode, most: PermissionMode): PermissionMode {
  return isModeWithin(mode, most) ? mode : most;
}

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

/** The modes as they are called in Claude Code. */
export const CLAUDE_MODES: Readonly<Record<string, PermissionMode>> = {
  default: "ask",
  manual: "ask",
  acceptEdits: "auto-edit",
  bypassPermissions: "full",
};

/** The mode that a text means, by its name here or in Claude Code. */
export function parseMode(text: string): PermissionMode | undefined {
  if (isMode(text)) return text;
  return Object.hasOwn(CLAUDE_MODES, text) ? CLAUDE_MODES[text] : undefined;
}

export function isThinkingLevel(value: string): value is ThinkingLevel {
  return Object.hasOwn(THINKING, value);
}

/** The choices with the model that is set, if it is not among them. */
export function withCurrentModel(
  choices: readonly ModelChoice[],
  model: Pick<Model, "provider" | "id" | "name">,
): ModelChoice[] {
  const value = modelValue(model);
  const isListed = choices.some((choice) => choice.value === value);
  return isListed ? [...choices] : [{ value, name: model.name }, ...choices];
}

/** What a model is called by. */
export function modelValue({ provider, id }: Pick<Model, "provider" | "id">): string {
  return `${provider}/${id}`;
}
