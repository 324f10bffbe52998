import { describe, expect, it } from "vitest";
import { THINKING_LEVELS, type Model, type ThinkingLevel } from "../messages/messages.ts";
import { createProviders } from "../providers/index.ts";
import { fakeService, sendRequest } from "../testing/fake-service.ts";
import { catalog } from "./catalog.ts";

/** What a request says about thinking, whatever the format calls it. */
async function askedEffort(model: Model, thinkingLevel: ThinkingLevel): Promise<unknown> {
  const service = fakeService("");
  const provider = createProviders({ fetch: service.fetch }).get(model.api);
  if (!provider) throw new Error(`There is no format ${model.api}.`);
  const at = { baseUrl: "https://service.test/v1", ...model };
  const { request } = await sendRequest(() => provider, at, service, {}, { thinkingLevel });
  const {
    reasoning,
    reasoning_effort: effort,
    generationConfig,
  } = request.body as {
    reasoning?: { effort?: unknown };
    reasoning_effort?: unknown;
    generationConfig?: { thinkingConfig?: { thinkingLevel?: string } };
  };
  return (
    reasoning?.effort ?? effort ?? generationConfig?.thinkingConfig?.thinkingLevel?.toLowerCase()
  );
}

function find(provider: string, id: string): Model {
  const model = catalog().find((one) => one.provider === provider && one.id === id);
  if (!model) throw new Error(`${provider}/${id} is not in the catalog.`);
  return model;
}

describe("thinking levels of the catalog", () => {
  it.each([
    ["openai", "gpt-6-astra", [undefined, "low", "low", "medium", "high", "xhigh"]],
    ["openai", "gpt-6.1-sol", [undefined, "low", "low", "medium", "high", "xhigh"]],
    ["openai", "gpt-5.6-cyber", [undefined, "low", "low", "medium", "high", "xhigh"]],
    ["openai", "gpt-6-sol", ["none", "low", "low", "medium", "high", "xhigh"]],
    ["openai", "gpt-5.1", ["none", "low", "low", "medium", "high", "high"]],
    ["openai", "gpt-5", ["minimal", "minimal", "low", "medium", "high", "high"]],
    ["openai", "gpt-5-pro", [undefined, "high", "high", "high", "high", "high"]],
    ["xai", "grok-4.5", [undefined, "low", "low", "medium", "high", "xhigh"]],
    ["google", "gemini-3.5-flash", ["minimal", "minimal", "low", "medium", "high", "high"]],
    ["google", "gemini-3.7-flash", ["low", "low", "low", "medium", "high", "high"]],
  ] as const)("of %s/%s", async (provider, id, efforts) => {
    const model = find(provider, id);
    const asked = await Promise.all(THINKING_LEVELS.map((level) => askedEffort(model, level)));
    expect(asked).toEqual(efforts);
  });

  it("no request of these formats is outside of what its model takes", async () => {
    const outside: string[] = [];
    const models = catalog().filter(
      ({ thinkingLevels, api, provider }) =>
        thinkingLevels &&
        ["openai-responses", "google-generative-ai"].includes(api) &&
        // Models that take no level, but a number of tokens.
        provider !== "google-vertex",
    );
    for (const model of models) {
      for (const level of THINKING_LEVELS) {
        const effort = await askedEffort(model, level);
        const asked = effort === "none" ? "off" : effort;
        if (asked === undefined || model.thinkingLevels?.some((known) => known === asked)) continue;
        outside.push(`${model.provider}/${model.id} ${level}: ${String(effort)}`);
      }
    }
    expect(models.length).toBeGreaterThan(40);
    expect(outside).toEqual([]);
  });
});
