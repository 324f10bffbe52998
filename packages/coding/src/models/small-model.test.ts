import { catalog } from "@gyre/ai/models";
import { expect, it } from "vitest";
import { findSmallModel } from "./small-model.ts";

const all = catalog();

it.each(["anthropic", "openai", "google"])(
  "is a cheaper one of the same service: %s",
  (provider) => {
    const [dearest] = all
      .filter((model) => model.provider === provider && model.price?.input !== undefined)
      .sort((a, b) => (b.price?.input ?? 0) - (a.price?.input ?? 0));
    if (!dearest) throw new Error(`There is no model of ${provider}.`);
    const small = findSmallModel(dearest, all);
    expect(small.provider).toBe(provider);
    expect(small.price?.input).toBeGreaterThan(0);
    expect(small.price?.input).toBeLessThan(dearest.price?.input ?? 0);
    expect(findSmallModel(small, all)).toBe(small);
  },
);

it("is the model itself where it has an address or no price", () => {
  const local = { id: "x", name: "x", api: "ollama", provider: "ollama" };
  expect(findSmallModel(local, all)).toBe(local);
  const own = { ...all.find(({ provider }) => provider === "anthropic"), baseUrl: "http://x.test" };
  expect(findSmallModel(own as never, all)).toBe(own);
});
