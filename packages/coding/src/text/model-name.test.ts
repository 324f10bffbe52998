import { describe, expect, it } from "vitest";
import { catalog } from "@gyre/ai/models";
import { parseModelName } from "./model-name.ts";

describe("parseModelName", () => {
  it.each([
    ["sonnet:high", { model: "sonnet", thinking: "high" }],
    ["anthropic/claude-sonnet-5-5:off", { model: "anthropic/claude-sonnet-5-5", thinking: "off" }],
    ["ollama/gpt-oss:20b:low", { model: "ollama/gpt-oss:20b", thinking: "low" }],
    ["ollama/mine:max", { model: "ollama/mine:max" }],
    ["openrouter/deepseek/r1:free", { model: "openrouter/deepseek/r1:free" }],
    ["sonnet:High", { model: "sonnet:High" }],
    [":high", { model: ":high" }],
    ["sonnet", { model: "sonnet" }],
  ])("%s", (name, expected) => {
    expect(parseModelName(name)).toEqual(expected);
  });

  it("takes no known model for a level", () => {
    const cut = catalog()
      .map(({ provider, id }) => `${provider}/${id}`)
      .filter((name) => parseModelName(name).thinking !== undefined);
    expect(cut).toEqual([]);
  });
});
