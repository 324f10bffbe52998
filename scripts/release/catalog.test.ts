import { expect, it } from "vitest";
import { decode } from "../../packages/ai/src/models/catalog.ts";
import type { Model } from "../../packages/ai/src/messages/messages.ts";
import { catalogSource } from "./catalog.mjs";
import { plant } from "../shared/tree.ts";

const FILES = [
  "anthropic",
  "openai",
  "google",
  "xai",
  "deepseek",
  "mistral",
  "moonshotai",
  "zai",
  "groq",
  "cerebras",
  "together",
  "fireworks",
  "huggingface",
  "google-vertex",
  "amazon-bedrock",
  "azure",
  "openrouter",
];
const DATA = "dist/providers/data";

interface Entry {
  id: string;
  [fact: string]: unknown;
}

/** A package with facts: of each service a model "plain", and what is given. */
function facts(given: Record<string, Entry[]>, license = "MIT"): string {
  const files = FILES.map((file) => {
    const entries = [{ id: "plain" }, ...(given[file] ?? [])].map((entry) => [
      `chat:${entry.id}`,
      { type: "chat", ...entry },
    ]);
    const api = file === "azure" ? "azure-openai-responses" : "wire";
    return [`${DATA}/${file}.json`, { [api]: Object.fromEntries(entries) }];
  });
  return plant({
    "package.json": { name: "facts", version: "1.2.3", license },
    [`${DATA}/.manifest.json`]: { generatedAt: "2030-02-03T04:05:06.789Z" },
    ...Object.fromEntries(files),
  });
}

function decodeModels(given: Record<string, Entry[]>, provider: string): Model[] {
  const [, data = ""] = /`([^`]*)`;\n$/.exec(catalogSource(facts(given))) ?? [];
  return decode(data).filter((model) => model.provider === provider && model.id !== "plain");
}

const decodeIds = (given: Record<string, Entry[]>, provider: string): string[] =>
  decodeModels(given, provider).map(({ id }) => id);

it("writes the date, and of each source name, version and license", () => {
  const source = catalogSource(facts({}));
  expect(source).toContain('export const DATE: string = "2030-02-03";');
  expect(source).toContain('"facts@1.2.3 (MIT)"');
  expect(source).toMatch(/"@pydantic\/genai-prices@[\d.]+ \(MIT\)"/);
});

it("takes nothing from a package whose license does not allow it", () => {
  expect(() => catalogSource(facts({}, "GPL-3.0"))).toThrow("facts has the license GPL-3.0");
});

it("writes what decode reads", () => {
  const entry = {
    id: "m-1",
    name: "M  1 (latest)",
    reasoning: true,
    input: ["text", "image"],
    cost: {
      input: 1.25,
      output: 10.000000001,
      cacheRead: 0.125,
      cacheWrite: 2,
      tiers: [{ inputTokensAbove: 200_000, input: 2.5, output: 15, cacheRead: 0, cacheWrite: 0 }],
    },
    contextWindow: 1_048_576,
    maxTokens: 65_535,
  };
  expect(decodeModels({ anthropic: [entry] }, "anthropic")).toEqual([
    {
      id: "m-1",
      name: "M 1",
      api: "anthropic-messages",
      provider: "anthropic",
      reasoning: true,
      input: ["text", "image"],
      price: {
        input: 1.25,
        output: 10,
        cacheRead: 0.125,
        cacheWrite: 2,
        tiers: [{ above: 200_000, input: 2.5, output: 15 }],
        webSearch: 0.01,
      },
      contextWindow: 1_048_576,
      maxTokens: 65_535,
    },
  ]);
});

it("knows no price of 0, but of what is called free", () => {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const [paid, free] = decodeModels(
    {
      openrouter: [
        { id: "a", cost },
        { id: "b:free", cost },
      ],
    },
    "openrouter",
  );
  expect(paid?.price).toBeUndefined();
  expect(free?.price).toEqual(cost);
});

it("leaves out what is no conversation in text", () => {
  const out = ["gpt-audio", "lab/x-image-2", "m:batch", "~lab/latest", "text-embedding-3", "y-tts"];
  const entries = [...out, "gemini-live-view", "imagine", "olive"].map((id) => ({ id }));
  expect(decodeIds({ openrouter: entries }, "openrouter")).toEqual(["imagine", "olive"]);
  expect(decodeIds({ openai: [{ id: "m", type: "classifier" }] }, "openai")).toEqual([]);
});

it("has whole windows of OpenAI's models, where the package ends them at the dearer price", () => {
  const cost = { input: 1, tiers: [{ inputTokensAbove: 272_000, input: 2 }] };
  const given = {
    openai: [
      { id: "gpt", contextWindow: 272_000, cost },
      { id: "gpt-mini", contextWindow: 272_000 },
    ],
    azure: [{ id: "gpt", contextWindow: 272_000, cost }],
    openrouter: [
      { id: "openai/gpt", contextWindow: 1_050_000 },
      { id: "openai/gpt-mini", contextWindow: 1_050_000 },
    ],
  };
  const windows = (provider: string): unknown[] =>
    decodeModels(given, provider).map(({ contextWindow }) => contextWindow);
  expect(windows("openai")).toEqual([272_000, 1_050_000]);
  expect(windows("azure-openai-responses")).toEqual([272_000]);
});

it("does not take a made-up limit for one, but the maker's", () => {
  const window = { contextWindow: 100_000 };
  const given = {
    openrouter: [
      { id: "a", maxTokens: 4096, ...window },
      { id: "b", maxTokens: 90_000, ...window },
      { id: "c", maxTokens: 64_000, ...window },
      { id: "google/d", maxTokens: 90_000, ...window },
      { id: "google/e", maxTokens: 90_000, ...window },
    ],
    google: [
      { id: "d", maxTokens: 8192 },
      { id: "e", maxTokens: 200_000 },
    ],
  };
  const limits = decodeModels(given, "openrouter").map(({ maxTokens }) => maxTokens);
  expect(limits).toEqual([undefined, undefined, 64_000, 8192, undefined]);
});

it("has the levels of thinking, each with its word where that is another", () => {
  const facts = { reasoning: true, input: ["text"] };
  const levels = (entry: object): unknown => {
    const [model] = decodeModels({ groq: [{ id: "m", ...facts, ...entry }] }, "groq");
    return [model?.thinkingLevels, model?.efforts];
  };
  expect(levels({})).toEqual([undefined, undefined]);
  expect(levels({ thinkingLevelMap: { off: null, minimal: "MINIMAL", medium: null } })).toEqual([
    ["minimal", "low", "high"],
    undefined,
  ]);
  const words = { off: "none", minimal: null, low: null, medium: null, high: "default" };
  expect(levels({ thinkingLevelMap: { ...words, max: "max" } })).toEqual([
    ["off", "high", "max"],
    { high: "default" },
  ]);
  expect(levels({ compat: { supportsReasoningEffort: false } })).toEqual([
    ["off", "high"],
    { high: "" },
  ]);
  expect(
    levels({ thinkingLevelMap: { off: null }, compat: { supportsReasoningEffort: false } }),
  ).toEqual([["high"], { high: "" }]);
});

it("has what requests to Claude models have to respect", () => {
  const entries = ["claude-sonnet-4-5", "other"].map((id) => ({ id, input: ["text"] }));
  expect(decodeModels({ anthropic: entries }, "anthropic").map(({ features }) => features)).toEqual(
    [["eagerInput", "interleavedThinking", "bedrockCache", "longBedrockCache"], undefined],
  );
});

it("refuses what would break the file", () => {
  for (const name of ["a|b", "a`b", "a\\b", "a${b}"]) {
    expect(() => catalogSource(facts({ groq: [{ id: "m", name }] }))).toThrow(
      "cannot be written down",
    );
  }
});
