import type { Cost, ModelPrice, TokenPrice, Usage } from "./messages.ts";

const TOKENS_PER_PRICE = 1_000_000;
const PRICED = ["input", "output", "cacheRead", "cacheWrite"] as const;

/**
 * What a response cost, or nothing where a price that it needs is not known, or
 * where the service did not say how many tokens there were.
 */
export function computeCost(usage: Usage, price: ModelPrice | undefined): Cost | undefined {
  if (!price || (usage.input === undefined && usage.output === undefined)) return undefined;
  const factor = tierFactor(usage.serviceTier);
  if (factor === undefined) return undefined;
  const cost: Cost = { total: 0 };
  const tier = tierFor(usage, price);
  for (const part of PRICED) {
    const tokens = usage[part];
    if (tokens === undefined || tokens === 0) continue;
    const dollars =
      part === "cacheWrite" ? priceWrites(usage, tier) : toDollars(tokens, tier[part]);
    if (dollars === undefined) return undefined;
    cost[part] = dollars * factor;
    cost.total += dollars * factor;
  }
  const unpriced = [...(usage.unpricedTools ?? [])];
  if (usage.webSearches) {
    if (price.webSearch === undefined) unpriced.push("webSearch");
    else {
      cost.webSearches = usage.webSearches * price.webSearch;
      cost.total += cost.webSearches;
    }
  }
  if (unpriced.length > 0) cost.notIncluded = unpriced;
  return cost;
}

function toDollars(tokens: number, perMillion: number | undefined): number | undefined {
  if (tokens === 0) return 0;
  return perMillion === undefined ? undefined : (tokens * perMillion) / TOKENS_PER_PRICE;
}

/** What is kept for an hour costs twice the input, where its price is not known. */
const LONG_WRITE_FACTOR = 2;

function priceWrites(usage: Usage, price: TokenPrice): number | undefined {
  const { cacheWrite = 0, longCacheWrite = 0 } = usage;
  const { input, longCacheWrite: known } = price;
  const perLong = known ?? (input === undefined ? undefined : input * LONG_WRITE_FACTOR);
  const long = toDollars(longCacheWrite, perLong);
  const short = toDollars(cacheWrite - longCacheWrite, price.cacheWrite);
  return long === undefined || short === undefined ? undefined : long + short;
}

/** Tiers at the usual price, and those that are cheaper or dearer by a factor for all tokens. */
const TIER_FACTORS: ReadonlyMap<string, number> = new Map([
  ["default", 1],
  ["standard", 1],
  ["auto", 1],
  ["on_demand", 1],
  ["flex", 0.5],
  ["batch", 0.5],
  ["priority", 2],
]);

/** Nothing for a tier whose price is not known. */
function tierFactor(tier = "default"): number | undefined {
  return TIER_FACTORS.get(tier);
}

/** The prices that hold for a request of this size. A tier says only what differs. */
function tierFor(usage: Usage, price: ModelPrice): TokenPrice {
  if (!price.tiers) return price;
  const size = (usage.input ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  const reached = price.tiers.filter(({ above }) => size > above);
  return Object.assign({}, price, ...reached.sort((a, b) => a.above - b.above)) as TokenPrice;
}

/** Tokens of a response in all: as reported, or the sum of what was. */
export function totalTokens(usage: Usage): number {
  if (usage.totalTokens !== undefined) return usage.totalTokens;
  return (
    (usage.input ?? 0) + (usage.output ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0)
  );
}

/**
 * Two usages as one. What neither of them knows stays unknown; so does the cost
 * where one of them has tokens of which the price is not known.
 */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: Usage = {};
  for (const part of [...PRICED, "longCacheWrite", "reasoning", "webSearches"] as const) {
    if (one[part] !== undefined || other[part] !== undefined) {
      sum[part] = (one[part] ?? 0) + (other[part] ?? 0);
    }
  }
  const unpricedTools = joinNames(one.unpricedTools, other.unpricedTools);
  if (unpricedTools) sum.unpricedTools = unpricedTools;
  const tokens = totalTokens(one) + totalTokens(other);
  if (tokens > 0) sum.totalTokens = tokens;
  const unpriced = [one, other].some((usage) => !usage.cost && totalTokens(usage) > 0);
  const cost = unpriced ? undefined : addCost(one.cost, other.cost);
  if (cost) sum.cost = cost;
  return sum;
}

function joinNames(
  one: readonly string[] = [],
  other: readonly string[] = [],
): readonly string[] | undefined {
  const names = new Set([...one, ...other]);
  return names.size > 0 ? [...names] : undefined;
}

function addCost(one: Cost | undefined, other: Cost | undefined): Cost | undefined {
  if (!one || !other) return one ?? other;
  const notIncluded = joinNames(one.notIncluded, other.notIncluded);
  const sum: Cost = { total: one.total + other.total, ...(notIncluded && { notIncluded }) };
  for (const part of [...PRICED, "webSearches"] as const) {
    if (one[part] !== undefined || other[part] !== undefined) {
      sum[part] = (one[part] ?? 0) + (other[part] ?? 0);
    }
  }
  return sum;
}
