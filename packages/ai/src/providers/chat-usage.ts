import type { Usage } from "../messages.ts";
import type { ChatDialect } from "./chat-quirks.ts";

/**
 * The figures of a chat service, wherever it puts them. Input is what was neither read
 * from nor written to a cache; output includes thinking; what was not said is absent.
 */
export function chatUsage(raw: Record<string, unknown>, { usageCost }: ChatDialect): Usage {
  const input = detailsOf(raw["prompt_tokens_details"]);
  const output = detailsOf(raw["completion_tokens_details"]);
  const all = numberOf(raw["prompt_tokens"]);
  const said = numberOf(raw["completion_tokens"]);
  const totalTokens = numberOf(raw["total_tokens"]);
  const cacheRead = numberOf(
    input["cached_tokens"] ?? raw["cached_tokens"] ?? raw["prompt_cache_hit_tokens"],
  );
  const cacheWrite = numberOf(input["cache_write_tokens"] ?? raw["cache_creation_input_tokens"]);
  const reasoning = numberOf(output["reasoning_tokens"] ?? raw["reasoning_tokens"]);
  const usage: Usage = {};
  if (all !== undefined) usage.input = Math.max(0, all - (cacheRead ?? 0) - (cacheWrite ?? 0));
  if (said !== undefined) {
    // Some count thinking beside the output: the total tells, or that it would not fit in.
    const thought = reasoning ?? 0;
    const beside = thought > said || (all ?? 0) + said + thought === totalTokens;
    usage.output = beside ? said + thought : said;
  }
  if (cacheRead !== undefined) usage.cacheRead = cacheRead;
  if (cacheWrite !== undefined) usage.cacheWrite = cacheWrite;
  if (reasoning !== undefined) usage.reasoning = reasoning;
  if (totalTokens !== undefined) usage.totalTokens = totalTokens;
  const total = usageCost && raw["is_byok"] !== true ? numberOf(raw["cost"]) : undefined;
  if (total !== undefined) usage.cost = { total };
  return usage;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function detailsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
