import { describe, expect, it } from "vitest";
import type { Model, ModelFeature } from "../../messages/messages.ts";
import { findClaudeFeatures, hasFeature } from "./claude-models.ts";

describe("findClaudeFeatures", () => {
  const four: ModelFeature[] = ["interleavedThinking", "bedrockCache"];
  const fourFive: ModelFeature[] = [...four, "longBedrockCache", "eagerInput"];
  const fourSix: ModelFeature[] = [...fourFive, "adaptiveThinking", "userLast"];
  const fourSeven: ModelFeature[] = [
    ...fourSix,
    "xhighEffort",
    "hiddenThinking",
    "fixedTemperature",
  ];
  const five: ModelFeature[] = [...fourSeven, "thinksByDefault"];
  const fiveOne: ModelFeature[] = [...five, "noForcedCalls", "bindsThinking"];

  it.each<[string, readonly ModelFeature[]]>([
    ["claude-3-haiku-20240307", []],
    ["anthropic.claude-3-5-sonnet-20240620-v1:0", []],
    ["anthropic.claude-3-5-sonnet-20241022-v2:0", ["bedrockCache"]],
    ["anthropic.claude-3-7-sonnet-20250219-v1:0", ["bedrockCache"]],
    ["claude-opus-4-20250514", four],
    ["claude-opus-4-1", four],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", fourFive],
    ["claude-opus-4-6", fourSix],
    ["anthropic/claude-opus-4.6", fourSix],
    ["claude-opus-4-7", fourSeven],
    ["claude-opus-5", [...five, "offDisabled"]],
    ["claude-sonnet-5", [...five, "offDisabled"]],
    ["claude-fable-5-1", fiveOne],
    ["claude-sonnet-5-5", [...fiveOne, "offBetweenTools"]],
    ["claude-haiku-5-5", [...fiveOne, "offDisabled"]],
    ["gpt-5.1", []],
  ])("of %s", (id, features) => {
    expect(findClaudeFeatures(id)).toEqual(features);
  });

  it.each(["claude-opus-4-10", "claude-haiku-5", "claude-opus-5-1", "claude-opus-6", "claude-new"])(
    "takes %s, which is not known, for one that rejects all that the newest reject",
    (id) => {
      expect(findClaudeFeatures(id)).toEqual(fiveOne);
    },
  );
});

describe("hasFeature", () => {
  it("goes by what is said of a model, before its id", () => {
    const model: Model = { id: "claude-opus-6", name: "", api: "", provider: "" };
    expect(hasFeature(model, "userLast")).toBe(true);
    expect(hasFeature({ ...model, features: ["eagerInput"] }, "userLast")).toBe(false);
    expect(hasFeature({ ...model, features: ["eagerInput"] }, "eagerInput")).toBe(true);
  });
});
