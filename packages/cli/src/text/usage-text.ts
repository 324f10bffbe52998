import { totalTokens, type Usage } from "@gyre/ai";
import { dollars } from "./dollars.ts";

/** What was used, as a sentence. */
export function usageSentence(usage: Usage): string {
  return `${formatCount(totalTokens(usage))} tokens, for ${costText(usage)}.`;
}

/** What it cost, as far as that is known. */
export function costText({ cost }: Usage): string {
  return cost ? priceText(cost) : "a price that is not known";
}

/** The sum, and what the service bills beside it. */
function priceText({ notIncluded, total }: NonNullable<Usage["cost"]>): string {
  return notIncluded ? `${dollars(total)} without ${notIncluded.join(", ")}` : dollars(total);
}

/** Tokens of each kind, and the cost. What is not known is left out. */
export function usageDetails(usage: Usage): string {
  const { cacheRead, cacheWrite, cost, input, output } = usage;
  const kinds = [
    [input, "in"],
    [output, "out"],
    [cacheRead, "read from the cache"],
    [cacheWrite, "written to the cache"],
  ] as const;
  const parts = kinds.flatMap(([count, what]) => (count ? [`${formatCount(count)} ${what}`] : []));
  if (cost) parts.push(priceText(cost));
  return parts.length === 0 ? "not known" : parts.join(" · ");
}

/** A number with its thousands apart. */
export function formatCount(value: number): string {
  return value.toLocaleString("en");
}
