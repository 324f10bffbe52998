import { describe, expect, it } from "vitest";
import type { Model } from "../messages/messages.ts";
import { catalog } from "./catalog.ts";
import { mergeCatalogFacts, CatalogFactsError, parseCatalogFacts } from "./catalog-facts.ts";

const SOURCE = "facts.json";
const FACT = { provider: "anthropic", id: "claude-opus-9", contextWindow: 9_000, maxTokens: 900 };

const parse = (...models: unknown[]): unknown =>
  parseCatalogFacts({ date: "2030-01-02", models }, SOURCE);

describe("parseCatalogFacts", () => {
  it("takes facts of a known service's models", () => {
    const whole = {
      ...FACT,
      name: "Opus 9",
      reasoning: true,
      thinkingLevels: ["off", "low", "xhigh"],
      efforts: { xhigh: "max" },
      features: ["userLast"],
      input: ["text"],
      price: { input: 1, output: 2, tiers: [{ above: 200_000, input: 2 }] },
    };
    expect(parse(whole)).toEqual({ date: "2030-01-02", models: [whole] });
  });

  it.each([
    ["baseUrl", "https://evil.test"],
    ["headers", { "x-to": "https://evil.test" }],
    ["quirks", { extra: {} }],
    ["api", "openai-completions"],
    ["keyEnv", ["HOME"]],
    ["urlEnv", ["HOME"]],
    ["__proto__", { baseUrl: "https://evil.test" }],
  ])("can never say where a key goes: %s", (key, value) => {
    const fact: unknown = JSON.parse(
      `{"provider": "anthropic", "id": "m", ${JSON.stringify(key)}: ${JSON.stringify(value)}}`,
    );
    expect(() => parse(fact)).toThrow(CatalogFactsError);
  });

  it("can add no service", () => {
    expect(() => parse({ ...FACT, provider: "evil" })).toThrow("service that is known");
    const services = { anthropic: { baseUrl: "https://evil.test" } };
    expect(() => parseCatalogFacts({ date: "2030-01-02", models: [], services }, SOURCE)).toThrow(
      "services is no key",
    );
  });

  it.each<[object, string]>([
    [{ price: { input: -1 } }, "models[0].price.input is -1"],
    [{ price: { input: 1e9 } }, "models[0].price has a rate above"],
    [{ price: { tiers: [{ above: 1, output: 1e9 }] } }, "models[0].price has a rate above"],
    [{ contextWindow: 0 }, "models[0].contextWindow is 0"],
    [{ contextWindow: 1e12 }, "models[0].contextWindow is 1000000000000"],
    [{ maxTokens: 9_001 }, "models[0].maxTokens is more than its contextWindow"],
    [{ thinkingLevels: ["ultra"] }, "models[0].thinkingLevels"],
    [{ efforts: { high: "a b" } }, "models[0].efforts.high"],
    [{ features: ["root"] }, "models[0].features"],
    [{ id: "a\u001b[2Jb" }, "models[0].id"],
    [{ name: "x".repeat(201) }, "models[0].name"],
  ])("rejects %j", (other, why) => {
    expect(() => parse({ ...FACT, ...other })).toThrow(why);
  });

  it.each([
    [null],
    [[]],
    ["text"],
    [{ models: [] }],
    [{ date: "2030-02-31", models: [] }],
    [{ date: "tomorrow", models: [] }],
    [{ date: "2030-01-02", models: {} }],
    [{ date: "2030-01-02", models: [null] }],
    [{ date: "2030-01-02", models: [FACT, FACT] }],
  ])("rejects a file like %j", (json) => {
    expect(() => parseCatalogFacts(json, SOURCE)).toThrow(CatalogFactsError);
  });

  it("reports the first problems of many, and how many more there are", () => {
    const models = Array.from({ length: 9 }, (_, n) => ({ provider: "groq", id: `m${n}`, x: 1 }));
    expect(() => parse(...models)).toThrow(/models\[4\].*; and 4 more$/);
  });
});

describe("mergeCatalogFacts", () => {
  const base: readonly Model[] = [
    {
      id: "m",
      name: "M",
      api: "openai-completions",
      provider: "groq",
      contextWindow: 8_000,
      price: { input: 1, output: 2 },
      quirks: { cacheControl: true },
    },
  ];

  it("replaces what the facts say, and nothing else", () => {
    const models = [{ provider: "groq", id: "m", contextWindow: 16_000 }];
    expect(mergeCatalogFacts(base, { date: "2030-01-02", models })).toEqual([
      { ...base[0], contextWindow: 16_000 },
    ]);
  });

  it("gives a new model the format of its service", () => {
    const models = [{ provider: "anthropic", id: "claude-opus-9" }];
    expect(mergeCatalogFacts(base, { date: "2030-01-02", models })[1]).toEqual({
      id: "claude-opus-9",
      name: "claude-opus-9",
      api: "anthropic-messages",
      provider: "anthropic",
    });
  });

  it("can hold all that the catalog says", () => {
    const facts: unknown = JSON.parse(
      JSON.stringify(catalog(), (key, value: unknown) => (key === "api" ? undefined : value)),
    );
    const parsed = parseCatalogFacts({ date: "2030-01-02", models: facts }, SOURCE);
    expect(mergeCatalogFacts([], parsed)).toEqual(catalog());
  });
});
