import type { Model, ThinkingLevel } from "@gyre/ai";

/**
 * How much a model thinks where nothing is set: as much as its service has it think by itself. Claude models that
 * decide for themselves have the effort "high" by default, those of OpenAI "medium", Gemini 3 "high". A model that
 * thinks only if it is asked to does not.
 */
export function recommendedThinking({ api, features, id, reasoning }: Model): ThinkingLevel {
  if (!reasoning) return "off";
  if (features?.some((feature) => feature === "adaptiveThinking" || feature === "thinksByDefault"))
    return "high";
  if (id.startsWith("gemini-3")) return "high";
  if (api === "openai-responses" || id.startsWith("gemini-2.5")) return "medium";
  return "off";
}
