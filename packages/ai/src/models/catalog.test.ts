import { describe, expect, it } from "vitest";
import { SERVICES } from "../providers/services/presets.ts";
import { computeCost } from "../messages/usage.ts";
import { catalog, CATALOG_DATE, CATALOG_SOURCES, decode } from "./catalog.ts";
import { DATA } from "./data.ts";

/** The catalog is in every package that is published. */
const MAX_DATA_BYTES = 60_000;

describe("catalog", () => {
  it("says when and from where its facts are", () => {
    expect(CATALOG_DATE).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(CATALOG_SOURCES.length).toBeGreaterThan(0);
    for (const source of CATALOG_SOURCES) expect(source).toMatch(/@\d.* \((MIT|Apache-2\.0)\)$/);
  });

  it("is made once", () => {
    expect(catalog()).toBe(catalog());
  });

  it("cannot be changed", () => {
    const [first] = catalog();
    expect(Object.isFrozen(catalog())).toBe(true);
    expect(Object.isFrozen(first)).toBe(true);
    expect(Object.isFrozen(first?.price)).toBe(true);
    expect(Object.isFrozen(first?.input)).toBe(true);
  });

  it("is small", () => {
    expect(DATA.length).toBeLessThan(MAX_DATA_BYTES);
  });

  it("has each model once, with the wire of its service", () => {
    const apis = new Map(SERVICES.map(({ id, api }) => [id, api]));
    const seen = new Set<string>();
    for (const { provider, id, api, name } of catalog()) {
      expect(api, id).toBe(apis.get(provider));
      expect(name, id).not.toBe("");
      expect(seen, id).not.toContain(`${provider}/${id}`);
      seen.add(`${provider}/${id}`);
    }
  });

  it("has the models of these services, all of them known", () => {
    const services = [...new Set(catalog().map(({ provider }) => provider))];
    expect(services.sort()).toEqual([
      "amazon-bedrock",
      "anthropic",
      "azure-openai-responses",
      "cerebras",
      "deepseek",
      "fireworks",
      "google",
      "google-vertex",
      "groq",
      "huggingface",
      "mistral",
      "moonshot",
      "openai",
      "openrouter",
      "perplexity",
      "together",
      "xai",
      "zai",
    ]);
    expect(SERVICES.map(({ id }) => id)).toEqual(expect.arrayContaining(services));
  });

  it("has only facts that can be", () => {
    for (const { id, contextWindow, maxTokens, input, price, provider } of catalog()) {
      for (const count of [contextWindow, maxTokens]) {
        if (count !== undefined) expect(Number.isSafeInteger(count) && count > 0, id).toBe(true);
      }
      if (maxTokens !== undefined && contextWindow !== undefined) {
        expect(maxTokens, `${provider}/${id}`).toBeLessThanOrEqual(contextWindow);
      }
      if (input) expect(input, id).toContain("text");
      const { tiers = [], ...base } = price ?? {};
      for (const rates of [base, ...tiers]) {
        for (const rate of Object.values(rates)) {
          expect(Number.isFinite(rate) && rate >= 0, id).toBe(true);
          // What is not known is absent; nothing but what is called free costs nothing.
          if (!id.endsWith(":free")) expect(rate, `${provider}/${id}`).toBeGreaterThan(0);
        }
      }
      expect(tiers, id).toEqual([...tiers].sort((a, b) => a.above - b.above));
    }
  });

  it("knows window, limit, price, thinking and images of nearly all at the makers of models", () => {
    const makers = new Set(["anthropic", "openai", "google", "xai", "deepseek"]);
    const models = catalog().filter(({ provider }) => makers.has(provider));
    const whole = models.filter(
      ({ contextWindow, maxTokens, price, reasoning, input }) =>
        contextWindow !== undefined &&
        maxTokens !== undefined &&
        price?.input !== undefined &&
        price.output !== undefined &&
        reasoning !== undefined &&
        input !== undefined,
    );
    expect(whole.length / models.length).toBeGreaterThan(0.9);
  });

  it("has prices that depend on how long the input is", () => {
    const tiered = catalog().find(
      ({ provider, price }) => provider === "openai" && price?.tiers !== undefined,
    );
    const above = tiered?.price?.tiers?.[0]?.above ?? 0;
    const short = computeCost({ input: above, output: 0 }, tiered?.price)?.total ?? 0;
    const long = computeCost({ input: above + 1, output: 0 }, tiered?.price)?.total ?? 0;
    expect(above).toBeGreaterThan(0);
    expect(long).toBeGreaterThan(short * 1.5);
    // A window that ended where the dearer price begins would make that price pointless.
    expect(tiered?.contextWindow).toBeGreaterThan(above);
  });

  it("has nothing in it that does not chat in text", () => {
    const others = catalog().filter(({ id }) =>
      /embed|whisper|-tts|dall-e|-image|moderation|:batch/.test(id),
    );
    expect(others).toEqual([]);
  });
});

describe("decode", () => {
  it("reads every field", () => {
    const text = "@acme|wire\nlab/one|The One|1000k|8K|tir|1,2,0.5,1.25|200k:2,4,,2.5|500k:3";
    expect(decode(text)).toEqual([
      {
        id: "lab/one",
        name: "The One",
        api: "wire",
        provider: "acme",
        contextWindow: 1_000_000,
        maxTokens: 8192,
        reasoning: true,
        input: ["text", "image"],
        price: {
          input: 1,
          output: 2,
          cacheRead: 0.5,
          cacheWrite: 1.25,
          tiers: [
            { above: 200_000, input: 2, output: 4, cacheWrite: 2.5 },
            { above: 500_000, input: 3 },
          ],
        },
      },
    ]);
  });

  it("leaves absent what is empty", () => {
    expect(decode("@acme|wire\nlab/one\n@other|cable\ntwo||||t|,3\nfree||4095|||0,0")).toEqual([
      { id: "lab/one", name: "one", api: "wire", provider: "acme" },
      {
        id: "two",
        name: "two",
        api: "cable",
        provider: "other",
        reasoning: false,
        input: ["text"],
        price: { output: 3 },
      },
      {
        id: "free",
        name: "free",
        api: "cable",
        provider: "other",
        contextWindow: 4095,
        price: { input: 0, output: 0 },
      },
    ]);
  });
});
