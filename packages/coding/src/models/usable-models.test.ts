import { expect, it } from "vitest";
import { sortNewestFirst } from "./usable-models.ts";

it("of each family the newest comes first, and families stay in their order", () => {
  const models = [
    ["anthropic/claude-haiku-4-5", "Claude Haiku 4.5"],
    ["anthropic/claude-sonnet-4-5", "Claude Sonnet 4.5"],
    ["openai/gpt-5", "GPT-5"],
    ["anthropic/claude-sonnet-5-5", "Claude Sonnet 5.5"],
    ["anthropic/claude-sonnet-5", "Claude Sonnet 5"],
    ["openai/gpt-5.10", "GPT-5.10"],
    ["openai/gpt-5.9", "GPT-5.9"],
    ["other/claude-sonnet-9", "Claude Sonnet 9"],
    ["anthropic/claude-haiku-5-20260101", "Claude Haiku 5 20260101"],
  ].map(([value = "", name = ""]) => ({ value, name }));
  expect(sortNewestFirst(models).map(({ name }) => name)).toEqual([
    "Claude Haiku 5 20260101",
    "Claude Haiku 4.5",
    "Claude Sonnet 5.5",
    "Claude Sonnet 5",
    "Claude Sonnet 4.5",
    "GPT-5.10",
    "GPT-5.9",
    "GPT-5",
    "Claude Sonnet 9",
  ]);
});
