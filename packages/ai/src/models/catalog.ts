import {
  type Model,
  MODEL_FEATURES,
  type ModelFeature,
  type ModelPrice,
  type PriceTier,
  THINKING_LEVELS,
  type ThinkingLevel,
  type TokenPrice,
} from "../messages/messages.ts";
import { DATA, DATE, SOURCES } from "./data.ts";

/** The day, as YYYY-MM-DD, on which the facts were gathered. */
export const CATALOG_DATE: string = DATE;

/** Where the facts are from: packages with version and license. */
export const CATALOG_SOURCES: readonly string[] = SOURCES;

let built: readonly Model[] | undefined;

/**
 * The models that are known without asking a service. Made when it is first called;
 * the same list each time; it is frozen.
 */
export function catalog(): readonly Model[] {
  built ??= Object.freeze(decode(DATA));
  return built;
}

/**
 * The models that a text describes. A line `@service|api` begins the models of a
 * service; each has a line of its own:
 *
 *     id|name|window|output limit|kinds|prices|tier|tier...
 *
 * No name: the last part of the id. Kinds: `t` text, `i` images, `r` thinking, and after a
 * slash the levels of thinking that it takes (`n` off, `u` minimal, `l`, `m`, `h`, `x`, `M` max), each with
 * its word in parentheses where that is another, and after one more slash a letter for each of its
 * features (`a` for the first of `MODEL_FEATURES`). Prices:
 * input, output, read from a cache, written to it, with commas between. A tier is
 * `tokens:prices`. Counts of tokens may be in thousands (`k`) or in 1,024s (`K`). What
 * is empty is not known.
 */
export function decode(text: string): Model[] {
  const models: Model[] = [];
  const known = new Map<string, Abilities>();
  let provider = "";
  let api = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("@")) {
      [provider = "", api = ""] = line.slice(1).split("|");
    } else if (line !== "") {
      models.push(parseModel(line, provider, api, known));
    }
  }
  return models;
}

/** `known`: what was parsed before. Most models have what another one has. */
function parseModel(
  line: string,
  provider: string,
  api: string,
  known: Map<string, Abilities>,
): Model {
  const [id = "", name, window = "", limit = "", kinds = "", rates = "", ...tiers] =
    line.split("|");
  const model: Model = { id, name: name || id.slice(id.lastIndexOf("/") + 1), api, provider };
  if (kinds !== "") {
    const abilities = known.get(kinds) ?? parseAbilities(kinds);
    known.set(kinds, abilities);
    Object.assign(model, abilities);
  }
  if (rates !== "") {
    const webSearch = findSearchPrice(provider, id);
    const price = parsePrice(rates, tiers);
    model.price = Object.freeze(webSearch === undefined ? price : { ...price, webSearch });
  }
  const contextWindow = parseTokens(window);
  if (contextWindow !== undefined) model.contextWindow = contextWindow;
  const maxTokens = parseTokens(limit);
  if (maxTokens !== undefined) model.maxTokens = maxTokens;
  return Object.freeze(model);
}

/** US dollars for a search, of the services that report how many they ran. */
const WEB_SEARCH_PRICES: Readonly<Record<string, number>> = {
  anthropic: 0.01,
  "google-vertex-anthropic": 0.01,
  openai: 0.01,
  google: 0.014,
  "google-vertex": 0.014,
};
/** Gemini before its third generation: for a request with searches, however many. */
const OLD_GEMINI = /^gemini-[12]\b/;
const OLD_GEMINI_SEARCH_PRICE = 0.035;

function findSearchPrice(provider: string, id: string): number | undefined {
  return OLD_GEMINI.test(id) ? OLD_GEMINI_SEARCH_PRICE : WEB_SEARCH_PRICES[provider];
}

const TEXT: readonly "text"[] = Object.freeze<"text"[]>(["text"]);
const TEXT_AND_IMAGES: readonly ("text" | "image")[] = Object.freeze<("text" | "image")[]>([
  "text",
  "image",
]);

const LEVEL_LETTERS = "nulmhxM";

type Abilities = Pick<Model, "reasoning" | "input" | "thinkingLevels" | "efforts" | "features">;

function parseAbilities(kinds: string): Abilities {
  const [plain = "", levels = "", features] = kinds.split("/");
  return {
    reasoning: plain.includes("r"),
    input: plain.includes("i") ? TEXT_AND_IMAGES : TEXT,
    ...(levels !== "" && parseLevels(levels)),
    ...(features !== undefined && { features: parseFeatures(features) }),
  };
}

function parseLevels(text: string): Pick<Model, "thinkingLevels" | "efforts"> {
  const thinkingLevels: ThinkingLevel[] = [];
  const efforts: Partial<Record<ThinkingLevel, string>> = {};
  for (const [, letter = "", word] of text.matchAll(/(\w)(?:\((\w*)\))?/g)) {
    const level = THINKING_LEVELS[LEVEL_LETTERS.indexOf(letter)];
    if (level === undefined) continue;
    thinkingLevels.push(level);
    if (word !== undefined) efforts[level] = word;
  }
  Object.freeze(thinkingLevels);
  return Object.keys(efforts).length > 0
    ? { thinkingLevels, efforts: Object.freeze(efforts) }
    : { thinkingLevels };
}

const FEATURE_LETTERS = "abcdefghijklmn";

function parseFeatures(letters: string): readonly ModelFeature[] {
  return Object.freeze(
    MODEL_FEATURES.filter((_, index) => letters.includes(FEATURE_LETTERS.charAt(index))),
  );
}

function parsePrice(rates: string, tiers: readonly string[]): ModelPrice {
  if (tiers.length === 0) return parseRates(rates);
  return { ...parseRates(rates), tiers: Object.freeze(tiers.map(parseTier)) };
}

function parseTier(text: string): PriceTier {
  const [above = "", rates = ""] = text.split(":");
  return Object.freeze({ above: parseTokens(above) ?? 0, ...parseRates(rates) });
}

const RATES = ["input", "output", "cacheRead", "cacheWrite"] as const;

function parseRates(text: string): TokenPrice {
  const price: TokenPrice = {};
  for (const [index, rate] of text.split(",").entries()) {
    const name = RATES[index];
    if (name !== undefined && rate !== "") price[name] = Number(rate);
  }
  return price;
}

const UNITS: Readonly<Record<string, number>> = { k: 1000, K: 1024 };

function parseTokens(text: string): number | undefined {
  if (text === "") return undefined;
  const unit = UNITS[text.slice(-1)];
  return unit === undefined ? Number(text) : Number(text.slice(0, -1)) * unit;
}
