import { expect, test } from "vitest";
import { footerRow, formatTokens } from "./footer.ts";
import { textOfRow, widthOfRow } from "../terminal/row.ts";
import { NO_COLORS } from "../terminal/theme.ts";

const facts = {
  model: { id: "claude-sonnet-5-5", contextWindow: 200_000 },
  thinking: "high",
  mode: "auto-edit",
  usage: {
    input: 1_000,
    cacheRead: 9_000,
    output: 512,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.034 },
  },
  contextTokens: 19_200,
  compactAt: 160_000,
} as const;

const at = (columns: number): string => textOfRow(footerRow(facts, columns, NO_COLORS));

test("model, thinking and mode on the left; context, cost, tokens and cache on the right", () => {
  expect(at(100)).toMatch(
    /^claude-sonnet-5-5 · thinking high · auto-edit +12% of context · \$0\.034 · ↑10k ↓512 · cache 90%$/,
  );
});

test("where it is narrow, the least useful facts are left out first", () => {
  expect(at(70)).toMatch(/auto-edit +12% of context · \$0\.034$/);
  expect(at(40)).toBe("claude-sonnet-5-5 · thinking high · aut…");
  for (const columns of [20, 40, 60, 80, 120]) {
    expect(widthOfRow(footerRow(facts, columns, NO_COLORS))).toBeLessThanOrEqual(columns);
  }
});

test("a price that is not known is not shown", () => {
  const { cost: _, ...usage } = facts.usage;
  expect(textOfRow(footerRow({ ...facts, usage }, 100, NO_COLORS))).not.toContain("$");
});

test("tokens are rounded for people", () => {
  expect([950, 4_210, 31_400, 1_234_000].map(formatTokens)).toEqual(["950", "4.2k", "31k", "1.2M"]);
});

test("the context is a share of what it is compacted at, not of the window", () => {
  const model = { id: "m", contextWindow: 1_000_000 };
  const row = footerRow({ ...facts, model, contextTokens: 80_000 }, 100, NO_COLORS);
  expect(textOfRow(row)).toContain("50% of context");
});
