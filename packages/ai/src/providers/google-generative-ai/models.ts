import type { ModelQuirks } from "../../messages/quirks.ts";
import type { StreamOptions, ThinkingBudgets } from "../../client/client.ts";
import { type Model, THINKING_LEVELS, type ThinkingLevel } from "../../messages/messages.ts";
import { resolveService } from "../services/presets.ts";
import { findEffortWord, nearestLevel } from "../services/thinking-level.ts";

/** From here on models take a level, sign and number their calls, and read images in results. */
const LEVELS_SINCE = 3;
/** From here on models think, by a budget. */
const BUDGETS_SINCE = 2.5;
const BUDGETS: Required<ThinkingBudgets> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
};
/** The model decides by itself how much it thinks. */
const DYNAMIC_BUDGET = -1;
/** What a request says about thinking. */
export interface ThinkingConfig {
  includeThoughts?: boolean;
  thinkingBudget?: number;
  thinkingLevel?: string;
}

/** The setting for thinking that is nearest to the level of the request. */
export function chooseThinking(model: Model, options: StreamOptions): ThinkingConfig | undefined {
  const { thinkingBudgets, thinkingLevel = "off" } = options;
  const kind = findKind(model);
  if (kind === undefined) return undefined;
  const shown = thinkingLevel === "off" ? {} : { includeThoughts: true };
  if (kind === "levels") {
    // Thinking cannot be switched off there.
    const wanted = thinkingLevel === "off" ? "minimal" : thinkingLevel;
    const level = nearestLevel(wanted, findLevels(model)) ?? "high";
    return { ...shown, thinkingLevel: findEffortWord(model, level).toUpperCase() };
  }
  const { least, most, none } = findBudgets(model.id);
  if (thinkingLevel === "off") return { thinkingBudget: none };
  const wanted = thinkingBudgets?.[thinkingLevel] ?? BUDGETS[thinkingLevel];
  const thinkingBudget =
    wanted === DYNAMIC_BUDGET ? wanted : Math.min(Math.max(wanted, least), most);
  return { ...shown, thinkingBudget };
}

/** How a model is asked to think: as the catalog says, or else as its name lets expect. */
function findKind(model: Model): "levels" | "budget" | undefined {
  if (model.reasoning === false) return undefined;
  if (model.thinkingLevels) return "levels";
  // Models that draw and speak take no word about thinking.
  if (/-(image|tts)\b/.test(model.id)) return undefined;
  const generation = parseGeneration(model);
  if (generation >= LEVELS_SINCE) return "levels";
  return generation >= BUDGETS_SINCE ? "budget" : undefined;
}

/** What a model takes of which nothing is known: some have no other levels. */
const LEAST_LEVELS: readonly ThinkingLevel[] = ["low", "high"];

function findLevels(model: Model): readonly ThinkingLevel[] {
  const given = quirk(model, "thinkingLevels");
  if (!Array.isArray(given)) return model.thinkingLevels ?? LEAST_LEVELS;
  return THINKING_LEVELS.filter((level) =>
    given.some((one) => String(one).toLowerCase() === level),
  );
}

/** Tokens that a model of the generation before levels may think. `none`: as near to it as it can. */
function findBudgets(id: string): { least: number; most: number; none: number } {
  if (/flash-lite/.test(id)) return { least: 512, most: 24_576, none: 0 };
  if (/flash/.test(id)) return { least: 1, most: 24_576, none: 0 };
  return { least: 128, most: 32_768, none: 128 };
}

/** The number in a model's name. Names without one always mean the newest. */
function parseGeneration(model: Model): number {
  const given = quirk(model, "generation");
  if (typeof given === "number") return given;
  const number = /gemini-(\d+(?:\.\d+)?)/.exec(model.id)?.[1];
  if (number !== undefined) return Number(number);
  return model.id.includes("gemini-") ? Infinity : 0;
}

/** Whether a model is of those that take levels, and sign and number their calls. */
export function isNewer(model: Model): boolean {
  return parseGeneration(model) >= LEVELS_SINCE;
}

/** Whether a model takes JSON Schema for its text; from the next generation on beside tools as well. */
export function hasJsonSchema(model: Model): boolean {
  return parseGeneration(model) >= BUDGETS_SINCE;
}

/** How a model differs, as it or else its service says. */
export function quirk(model: Model, name: keyof ModelQuirks): unknown {
  return model.quirks?.[name] ?? resolveService(model).quirks?.[name];
}
