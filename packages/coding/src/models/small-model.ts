import type { Model } from "@gyre/ai";

/** Summaries are long texts in, short ones out. */
const INPUT_WEIGHT = 10;
const MIN_WINDOW = 100_000;

/**
 * The cheapest model of the same service that reads long texts, or the model itself. A model with
 * an address of its own may be the only one there, and one without a price is not known to cost more.
 */
export function findSmallModel(model: Model, all: readonly Model[]): Model {
  if (model.baseUrl !== undefined || estimateCost(model) === Infinity) return model;
  const others = all.filter(
    (other) =>
      other.provider === model.provider &&
      other.api === model.api &&
      other.baseUrl === undefined &&
      // Free ones are limited, or trained on what they read.
      estimateCost(other) > 0 &&
      (other.contextWindow ?? 0) >= MIN_WINDOW,
  );
  return others.reduce(
    (best, other) => (estimateCost(other) < estimateCost(best) ? other : best),
    model,
  );
}

function estimateCost({ price }: Model): number {
  const { input = Infinity, output = Infinity } = price ?? {};
  return input * INPUT_WEIGHT + output;
}
