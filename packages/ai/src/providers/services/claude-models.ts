import type { Model, ModelFeature } from "../../messages/messages.ts";

const FOUR: readonly ModelFeature[] = ["interleavedThinking", "bedrockCache"];
const FOUR_FIVE: readonly ModelFeature[] = [...FOUR, "longBedrockCache", "eagerInput"];
const FOUR_SIX: readonly ModelFeature[] = [...FOUR_FIVE, "adaptiveThinking", "userLast"];
const FOUR_SEVEN: readonly ModelFeature[] = [
  ...FOUR_SIX,
  "xhighEffort",
  "hiddenThinking",
  "fixedTemperature",
];
const FIVE: readonly ModelFeature[] = [...FOUR_SEVEN, "thinksByDefault"];
const FIVE_ONE: readonly ModelFeature[] = [...FIVE, "noForcedCalls", "bindsThinking"];

/** The Claude models that are known, by the part of their ids behind `claude-`. */
const MODELS: Readonly<Record<string, readonly ModelFeature[]>> = {
  instant: [],
  v2: [],
  "2": [],
  "3-opus": [],
  "3-sonnet": [],
  "3-haiku": [],
  "3-5-sonnet": [],
  "3-5-sonnet-20241022": ["bedrockCache"],
  "3-5-haiku": ["bedrockCache"],
  "3-7-sonnet": ["bedrockCache"],
  "opus-4": FOUR,
  "sonnet-4": FOUR,
  "opus-4-1": FOUR,
  "opus-4-5": FOUR_FIVE,
  "sonnet-4-5": FOUR_FIVE,
  "haiku-4-5": FOUR_FIVE,
  "opus-4-6": FOUR_SIX,
  "sonnet-4-6": FOUR_SIX,
  "opus-4-7": FOUR_SEVEN,
  "opus-4-8": FOUR_SEVEN,
  "fable-5": FIVE,
  "opus-5": [...FIVE, "offDisabled"],
  "sonnet-5": [...FIVE, "offDisabled"],
  "fable-5-1": FIVE_ONE,
  "opus-5-5": FIVE_ONE,
  "sonnet-5-5": [...FIVE_ONE, "offBetweenTools"],
  "haiku-5-5": [...FIVE_ONE, "offDisabled"],
};

/** What any Claude model that is not known is taken for: all that the newest reject is left out. */
const UNKNOWN = FIVE_ONE;

/**
 * What requests to a Claude model have to respect, by its id, whatever region or vendor the id has
 * around its name. Nothing for other models.
 */
export function findClaudeFeatures(id: string): readonly ModelFeature[] {
  const [, name] = /claude-([\w.-]+)/.exec(id) ?? [];
  if (name === undefined) return [];
  const plain = name.replaceAll(".", "-");
  let found = "";
  for (const known of Object.keys(MODELS)) {
    // A number behind the name makes it another model; a date does not.
    const isIt =
      plain.startsWith(known) && !/^(?:\d|-\d{1,2}(?!\d))/.test(plain.slice(known.length));
    if (isIt && known.length > found.length) found = known;
  }
  return MODELS[found] ?? UNKNOWN;
}

/** Whether a model has a feature: as the catalog says, or else as is known of its id. */
export function hasFeature(model: Model, feature: ModelFeature): boolean {
  return (model.features ?? findClaudeFeatures(model.id)).includes(feature);
}
