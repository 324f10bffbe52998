import type { Model, ThinkingLevel } from "@gyre/ai";

/**
 * What services say of their models, by names: the level that a model has where none is sent, or the one that is recommended for
 * programming where that is another. The first that fits counts. The table in docs/models.md names the pages.
 */
const RECOMMENDED: readonly (readonly [RegExp, ThinkingLevel])[] = [
  [/gpt-5-pro/, "high"],
  [/gemini-2\.5-flash-lite/, "off"],
  [/gemini-(?:3-|3\.[0-4]-(?!flash-lite)|pro-latest)/, "high"],
  [/gemini-(?:\d|flash)/, "medium"],
  [/grok-4[.-]3/, "low"],
  [/grok-(?:4[.-][5-9]|[5-9])/, "high"],
  [/glm-5[.p-]3/, "max"],
  [/glm-(?:4[.p-]7|[5-9])/, "high"],
  [/kimi-k3/, "max"],
  [/kimi-k2[.p-][5-9]/, "high"],
  [/deepseek-(?:v4|flash)/, "high"],
  [/(?:mistral-medium|magistral)/, "high"],
];

/**
 * How much a model thinks where nothing is set: as much as its service recommends. A model that thinks only if it is asked to, and of
 * which the service recommends nothing, does not.
 */
export function recommendedThinking({ api, features, id, reasoning }: Model): ThinkingLevel {
  if (!reasoning) return "off";
  if (features?.some((feature) => feature === "adaptiveThinking" || feature === "thinksByDefault"))
    return "high";
  const name = id.toLowerCase();
  const known = RECOMMENDED.find(([pattern]) => pattern.test(name));
  if (known) return known[1];
  return api === "openai-responses" ? "medium" : "off";
}
