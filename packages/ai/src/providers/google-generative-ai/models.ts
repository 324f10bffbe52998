import type { StreamOptions, ThinkingBudgets } from "../../client/client.ts";
import type { Model, ThinkingLevel } from "../../messages/messages.ts";
import { resolveService } from "../services/presets.ts";

/** From here on models take a level, sign and number their calls, and read images in results. */
const LEVELS_SINCE = 3;
/** From here on models think, by a budget. */
const BUDGETS_SINCE = 2.5;
/** The last one of its family that can be asked for next to no thinking. */
const LAST_MINIMAL_FLASH = 3.6;
const BUDGETS: Required<ThinkingBudgets> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
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
  const generation = parseGeneration(model);
  // Models that draw and speak take no word about thinking.
  if (model.reasoning === false || generation < BUDGETS_SINCE || /-(image|tts)\b/.test(model.id)) {
    return undefined;
  }
  const { thinkingBudgets, thinkingLevel = "off" } = options;
  const shown = thinkingLevel === "off" ? {} : { includeThoughts: true };
  if (generation >= LEVELS_SINCE) {
    return { ...shown, thinkingLevel: nearestLevel(thinkingLevel, findLevels(model, generation)) };
  }
  const { least, most, none } = findBudgets(model.id);
  if (thinkingLevel === "off") return { thinkingBudget: none };
  const wanted = thinkingBudgets?.[thinkingLevel] ?? BUDGETS[thinkingLevel];
  const thinkingBudget =
    wanted === DYNAMIC_BUDGET ? wanted : Math.min(Math.max(wanted, least), most);
  return { ...shown, thinkingBudget };
}

const LEVELS: readonly string[] = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];

/** The levels that a model takes. Thinking cannot be switched off on the newer ones. */
function findLevels(model: Model, generation: number): readonly string[] {
  const given = quirk(model, "thinkingLevels");
  if (Array.isArray(given)) return given.map((level) => String(level).toUpperCase());
  const known = LEVELS.filter((level) =>
    model.thinkingLevels?.some((one) => one.toUpperCase() === level),
  );
  if (known.length > 0) return known;
  if (/gemini-3-pro/.test(model.id)) return ["LOW", "HIGH"];
  const isSmall = /flash-lite/.test(model.id);
  const isFlash = /flash/.test(model.id) && generation <= LAST_MINIMAL_FLASH;
  return isSmall || isFlash ? LEVELS : LEVELS.slice(1);
}

/** The level that was asked for, or else the next higher one, or the highest. */
function nearestLevel(level: ThinkingLevel, levels: readonly string[]): string {
  const wanted = level === "xhigh" ? LEVELS.length : LEVELS.indexOf(level.toUpperCase());
  const found = levels.find((one) => LEVELS.indexOf(one) >= wanted);
  return found ?? levels.at(-1) ?? "HIGH";
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

/** How a model differs, as it or else its service says. */
export function quirk(model: Model, name: string): unknown {
  return model.quirks?.[name] ?? resolveService(model).quirks?.[name];
}
