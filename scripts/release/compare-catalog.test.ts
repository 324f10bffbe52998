import { expect, it } from "vitest";
import { plant } from "../shared/tree.ts";
import { FACTS_FOLDER, SERVICES } from "./catalog.mjs";
import { compareCatalog, describeComparison } from "./compare-catalog.mjs";

const model = {
  id: "gpt",
  name: "GPT",
  api: "openai-responses",
  provider: "openai",
  reasoning: true,
  thinkingLevels: ["low", "high"],
  contextWindow: 1_050_000,
  maxTokens: 128_000,
  price: { input: 1 },
} as const;

const entry = {
  id: "gpt",
  type: "chat",
  reasoning: true,
  contextWindow: 272_000,
  maxTokens: 128_000,
  thinkingLevelMap: { off: null, medium: null },
  cost: { input: 1, output: 0, tiers: [{ inputTokensAbove: 272_000, input: 2 }] },
};

/** A package with one model of OpenAI, and the same at OpenRouter. */
function facts(given: object): string {
  const routed = { ...entry, id: "openai/gpt", contextWindow: 1_050_000 };
  const files = SERVICES.map(({ file }) => [
    `${FACTS_FOLDER}/${file}.json`,
    { wire: file === "openai" ? { a: given } : file === "openrouter" ? { a: routed } : {} },
  ]);
  return plant(Object.fromEntries(files));
}

it("has nothing to say of what is the same, and gives the reason of what was corrected", async () => {
  const comparison = await compareCatalog(facts(entry), [model]);
  expect(comparison).toEqual({
    entries: 1,
    requests: 7,
    differences: [
      {
        name: "openai/gpt",
        what: "window 1050000; the source has 272000",
        reason: expect.stringContaining("where the dearer price begins"),
      },
    ],
  });
  expect(describeComparison(comparison)).toMatch(/1 differences, 0 without a reason\.$/);
});

it.each([
  [{ contextWindow: 400_000 }, "window 1050000; the source has 400000"],
  [{ maxTokens: 64_000 }, "output limit 128000; the source has 64000"],
  [{ cost: { ...entry.cost, input: 3 } }, "price of input 1; the source has 3"],
  [
    { thinkingLevelMap: { off: null, low: null } },
    'level minimal is sent as "low"; the source has medium, high',
  ],
])("reports %j", async (other, what) => {
  const { differences } = await compareCatalog(facts({ ...entry, ...other }), [model]);
  expect(differences).toContainEqual({ name: "openai/gpt", what, reason: undefined });
});
