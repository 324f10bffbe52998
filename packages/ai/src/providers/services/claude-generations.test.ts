import { describe, expect, it } from "vitest";
import { findClaudeFeatures } from "./claude-generations.ts";

describe("findClaudeFeatures", () => {
  const four = { interleavedThinking: true, bedrockCache: true };
  const fourFive = { ...four, longBedrockCache: true, eagerInput: true };
  const fourSix = { ...fourFive, adaptiveThinking: true, userLast: true };
  const fourSeven = { ...fourSix, xhighEffort: true, hiddenThinking: true, fixedTemperature: true };
  const five = { ...fourSeven, thinksByDefault: true };
  const fiveOne = { ...five, noForcedCalls: true, bindsThinking: true };

  it.each([
    ["claude-3-haiku-20240307", {}],
    ["anthropic.claude-3-7-sonnet-20250219-v1:0", { bedrockCache: true }],
    ["claude-opus-4-20250514", four],
    ["claude-opus-4-1", four],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", fourFive],
    ["claude-opus-4-6", fourSix],
    ["claude-opus-4-7", fourSeven],
    ["claude-opus-4-10", fourSeven],
    ["claude-opus-5", { ...five, thinkingOff: "disabled" }],
    ["claude-sonnet-5", { ...five, thinkingOff: "disabled" }],
    ["claude-haiku-5", five],
    ["claude-opus-5-1", fiveOne],
    ["claude-sonnet-5-5", { ...fiveOne, thinkingOff: "between_tools" }],
    ["claude-haiku-5-5", { ...fiveOne, thinkingOff: "disabled" }],
    ["claude-opus-6", fiveOne],
    ["gpt-5.1", {}],
  ])("of %s", (id, features) => {
    expect(findClaudeFeatures(id)).toEqual(features);
  });
});
