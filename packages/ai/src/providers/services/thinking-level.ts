import { type Model, THINKING_LEVELS, type ThinkingLevel } from "../../messages/messages.ts";

/** A level at which a model thinks. */
export type ActiveLevel = Exclude<ThinkingLevel, "off">;

/** What a model takes of which nothing is known: the levels that nearly all have. */
export const USUAL_LEVELS: readonly ActiveLevel[] = ["low", "medium", "high"];

/** The least of the levels that a model takes that is enough, or else its highest. */
export function nearestLevel(
  wanted: ActiveLevel,
  known: readonly ThinkingLevel[] = USUAL_LEVELS,
): ActiveLevel | undefined {
  const levels = THINKING_LEVELS.filter(
    (level): level is ActiveLevel => level !== "off" && known.includes(level),
  );
  const least = THINKING_LEVELS.indexOf(wanted);
  return levels.find((level) => THINKING_LEVELS.indexOf(level) >= least) ?? levels.at(-1);
}

/** What the service of a model calls a level. Empty: it has no word for how much. */
export function findEffortWord(model: Model, level: ThinkingLevel): string {
  return model.efforts?.[level] ?? (level === "off" ? "none" : level);
}
