import type { ThinkingLevel } from "@gyre/ai";
import { isThinkingLevel } from "./choices.ts";

/** A model by name, with the level of thinking that was asked for with it. */
export interface ModelName {
  model: string;
  thinking?: ThinkingLevel;
}

/**
 * "sonnet:high" as a model and a level of thinking. A colon that no level follows belongs to the name. What
 * Ollama calls a model has a tag after its colon: a level is read behind the tag alone.
 */
export function parseModelName(name: string): ModelName {
  const colon = name.lastIndexOf(":");
  const model = name.slice(0, colon);
  const thinking = name.slice(colon + 1);
  if (colon <= 0 || !isThinkingLevel(thinking)) return { model: name };
  if (model.startsWith("ollama/") && !model.includes(":")) return { model: name };
  return { model, thinking };
}
