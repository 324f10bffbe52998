import { findModel } from "@gyre/ai/models";
import { describe, expect, it } from "vitest";
import { recommendedThinking } from "./recommended-thinking.ts";

describe("recommendedThinking", () => {
  it.each([
    ["anthropic/claude-sonnet-5-5", "high"],
    ["openai/sol", "medium"],
    ["google/gemini-3.1-pro-preview", "high"],
  ])("%s", (name, level) => {
    expect(recommendedThinking(findModel(name))).toBe(level);
  });

  it("is off for a model of which nothing is known, and for one that does not think", () => {
    const model = { id: "mine", name: "mine", api: "openai-completions", provider: "ollama" };
    expect(recommendedThinking(model)).toBe("off");
    expect(recommendedThinking({ ...model, reasoning: false })).toBe("off");
    expect(recommendedThinking({ ...model, reasoning: true })).toBe("off");
  });
});
