import type { Cost } from "../../messages/messages.ts";

const TICKS_PER_DOLLAR = 10_000_000_000;

/** What xAI has billed for a request, with its tools: a number of ticks in its usage. */
export function readTicks({ cost_in_usd_ticks: ticks }: Record<string, unknown>): Cost | undefined {
  return typeof ticks === "number" ? { total: ticks / TICKS_PER_DOLLAR } : undefined;
}
