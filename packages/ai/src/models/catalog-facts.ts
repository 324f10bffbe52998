import type { Model } from "../messages/messages.ts";
import { SERVICES } from "../providers/services/presets.ts";
import { toList, toMap } from "../schema/json-schema.ts";
import {
  type Check,
  checkFields,
  LIST,
  MODEL,
  must,
  type Report,
  type Shape,
} from "./user-models.ts";

/**
 * What can be said of a model from outside. No address, no header, no API format and no quirk: facts
 * never decide where a key is sent.
 */
export type CatalogFact = Omit<Model, "name" | "api" | "baseUrl" | "headers" | "quirks"> &
  Partial<Pick<Model, "name">>;

/** Facts of models as of a day, once they were checked. */
export interface CatalogFacts {
  /** YYYY-MM-DD. */
  date: string;
  models: readonly CatalogFact[];
}

/** Facts of models are not as they should be. `problems` has the first ones, each with its place. */
export class CatalogFactsError extends Error {
  readonly code = "bad_catalog_facts";
  readonly problems: readonly string[];
  constructor(source: string, problems: readonly string[]) {
    const shown = problems.slice(0, MAX_PROBLEMS);
    const more = problems.length - shown.length;
    super(`${source}: ${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`);
    this.name = "CatalogFactsError";
    this.problems = shown;
  }
}

const MAX_PROBLEMS = 5;
/** More than all services together have. */
const MAX_MODELS = 20_000;
const MAX_TEXT_CHARS = 200;
/** No window is as large, and no price as high: what is above is a mistake, or meant to harm. */
const MAX_TOKENS = 1_000_000_000;
const MAX_DOLLARS = 100_000;

const PLAIN = must(
  (value) =>
    typeof value === "string" &&
    value.trim() !== "" &&
    value.length <= MAX_TEXT_CHARS &&
    !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(value),
  `a text of at most ${MAX_TEXT_CHARS} printable characters`,
);
const SERVICE = must(
  (value) => SERVICES.some(({ id }) => id === value),
  "a service that is known here",
);
const SOME_TOKENS = must(
  (value) => Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MAX_TOKENS,
  `a whole number of tokens above 0, at most ${MAX_TOKENS}`,
);
const RATES = ["input", "output", "cacheRead", "cacheWrite", "longCacheWrite"];
const PRICE: Check = (value, path, report) => {
  MODEL.price(value, path, report);
  const { tiers, ...base } = toMap(value);
  const rates = [base, ...toList(tiers).map(toMap)].flatMap((one) =>
    RATES.map((name) => Number(one[name])),
  );
  if (rates.some((rate) => rate > MAX_DOLLARS)) {
    report(path, `has a rate above ${MAX_DOLLARS} US dollars for a million tokens`);
  }
};
const DATE = must((value) => isDate(value), "a day as YYYY-MM-DD");

const FACT: Shape<CatalogFact> = {
  provider: SERVICE,
  id: PLAIN,
  name: PLAIN,
  reasoning: MODEL.reasoning,
  thinkingLevels: MODEL.thinkingLevels,
  efforts: MODEL.efforts,
  features: MODEL.features,
  input: MODEL.input,
  price: PRICE,
  contextWindow: SOME_TOKENS,
  maxTokens: SOME_TOKENS,
};

/**
 * Checks facts of models that come from outside:
 *
 *     { "date": "2026-11-16", "models": [{ "provider": ..., "id": ..., ... }] }
 *
 * Throws `CatalogFactsError` where anything is not as it should be: nothing of them is used then.
 */
export function parseCatalogFacts(json: unknown, source: string): CatalogFacts {
  const problems: string[] = [];
  const report: Report = (path, problem) => void problems.push(`${path || "the file"} ${problem}`);
  const file = checkFields(json, "", { date: DATE, models: LIST }, ["date", "models"], report);
  const models = toList(file["models"]);
  if (models.length > MAX_MODELS) report("models", `has more than ${MAX_MODELS} entries`);
  const seen = new Set<string>();
  for (const [index, value] of models.slice(0, MAX_MODELS).entries()) {
    const path = `models[${index}]`;
    const fact = checkFields(value, path, FACT, ["provider", "id"], report);
    const { contextWindow, id, maxTokens, provider } = fact;
    const name = `${String(provider)}/${String(id)}`;
    if (seen.has(name)) report(path, "is there twice");
    seen.add(name);
    if (Number(maxTokens) > Number(contextWindow)) {
      report(`${path}.maxTokens`, "is more than its contextWindow");
    }
  }
  if (problems.length > 0) throw new CatalogFactsError(source, problems);
  // Every key and every value was looked at above.
  return file as unknown as CatalogFacts;
}

/**
 * The models of `base` with facts of them from elsewhere. What the facts do not say stays as it was; a model that is
 * new has the API format of its service.
 */
export function mergeCatalogFacts(base: readonly Model[], { models }: CatalogFacts): Model[] {
  const merged = new Map(base.map((model) => [`${model.provider}/${model.id}`, model]));
  for (const fact of models) {
    const key = `${fact.provider}/${fact.id}`;
    const known = merged.get(key);
    const api = known?.api ?? SERVICES.find(({ id }) => id === fact.provider)?.api;
    if (api === undefined) continue;
    merged.set(key, { ...known, name: known?.name ?? fact.id, ...fact, api });
  }
  return [...merged.values()];
}

function isDate(value: unknown): value is string {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d$/.test(value)) return false;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value);
}
