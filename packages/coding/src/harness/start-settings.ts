import type { Model } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import type { SessionSettings } from "@gyre/sessions";
import type { PermissionMode } from "@gyre/tools";
import { assertModel, isModelAllowed } from "./ceilings.ts";
import { type Models, type ModelsOptions, openModels } from "../models/models.ts";
import type { Policy } from "../policy/policy.ts";
import type { Settings } from "../settings/settings.ts";
import type { HarnessOptions, ModeState } from "./types.ts";
import { assumeMode, isMode, lowerMode, modelValue } from "../text/choices.ts";

/** Whether another system prompt was asked for just now than the session has. */
export function isPromptGiven({ explicit, keepsRights = false }: HarnessOptions): boolean {
  const isGiven = explicit?.has("systemPrompt") || explicit?.has("appendSystemPrompt");
  return !keepsRights && isGiven === true;
}

/** The settings, with those of the session where nothing else was asked for. */
export function mergeSettings(
  { settings, explicit, keepsRights = false }: HarnessOptions,
  had: SessionSettings,
): Settings {
  const { model, thinkingLevel, tools, mode } = had;
  const isOpen = (key: keyof Settings): boolean => keepsRights || !explicit?.has(key);
  return {
    ...settings,
    ...(model && isOpen("model") && !isScripted(model) && { model: modelValue(model) }),
    ...(thinkingLevel && isOpen("thinking") && { thinking: thinkingLevel }),
    ...(tools && isOpen("tools") && { tools }),
    ...(keepsRights && { mode: keptMode(mode, settings) }),
  };
}

/**
 * The mode at the start. Without a setting it is assumed where the user is there or has begun it, and not for
 * runs that other processes continue, nor for a session that another person may have written.
 */
export function startMode(
  settings: Settings,
  isUsers: boolean,
  policy: Pick<Policy, "lowerMode"> | undefined,
): ModeState {
  const usual = settings.mode ?? (isUsers ? assumeMode(settings) : "ask");
  const now = policy?.lowerMode(usual) ?? usual;
  return { now, isAssumed: settings.mode === undefined && now === "auto" };
}

/** The mode of a session. One without a mode was made elsewhere, and gets no more than questions. */
function keptMode(mode: string | undefined, settings: Settings): PermissionMode {
  if (mode === undefined) return lowerMode(settings.mode ?? "ask", "ask");
  return isMode(mode) ? mode : "plan";
}

/** The model that is set. One that the ceilings leave out is refused if it was asked for just now. */
export async function chooseModel(models: Models, options: HarnessOptions): Promise<Model> {
  const { ceilings, explicit, keepsRights } = options;
  const isAsked = !keepsRights && explicit?.has("model");
  const model = await models.current();
  // One that a program gives was not found by its name. Models in place of all others are scripted.
  if (!options.models) options.policy?.assertModel(model);
  if (isAsked) assertModel(model, ceilings);
  const [first] = ceilings?.models ?? [];
  return first === undefined || isModelAllowed(model, ceilings) ? model : models.find(first);
}

/** A session that began without a key has the scripted model, which is not to be resumed with. */
function isScripted({ provider }: Pick<Model, "provider">): boolean {
  return provider === scriptedModelInfo.provider;
}

export async function findModels(
  { models, adaptModels }: HarnessOptions,
  options: ModelsOptions,
): Promise<Models> {
  if (models) return models;
  const found = await openModels(options);
  return adaptModels?.(found) ?? found;
}
