import { readFileSync } from "node:fs";
import { describe, expect, expectTypeOf, it } from "vitest";
import { namesSource } from "../../../../scripts/release/model-names.mjs";
import { SERVICES } from "../providers/services/presets.ts";
import { catalog } from "./catalog.ts";
import { model } from "./model.ts";
import type { KnownModelName, ModelName, ServiceName } from "../messages/names.ts";

describe("a model by service and id", () => {
  it("has what the catalog knows of it, unless something else is said", () => {
    const known = catalog().find(({ provider }) => provider === "anthropic");
    expect(known && model("anthropic", known.id)).toEqual(known);
    expect(known && model("anthropic", known.id, { maxTokens: 9 })).toEqual({
      ...known,
      maxTokens: 9,
    });
  });

  it.each([
    [model("ollama", "llama3"), { api: "ollama", provider: "ollama", name: "llama3" }],
    [
      model("azure-openai-responses", "my-deployment", { baseUrl: "https://a.example/openai/v1" }),
      { api: "openai-responses", id: "my-deployment", baseUrl: "https://a.example/openai/v1" },
    ],
    [
      model("my-server", "qwen3", { baseUrl: "http://localhost:8000/v1" }),
      { api: "openai-completions", provider: "my-server" },
    ],
    [model("anthropic", "claude-sonnet-4-20250514"), { api: "anthropic-messages" }],
  ])("may be one that the catalog does not have: %j", (made, expected) => {
    expect(made).toMatchObject(expected);
  });

  it("names what is wrong", () => {
    expect(() => model("antropic", "x")).toThrow(
      'There is no service "antropic". Did you mean anthropic? For a server of your own, give its address as `baseUrl`.',
    );
    expect(() => model("openai", "")).toThrow('The id of the model at "openai" is empty.');
    const quirks = { thinkin: "budget" } as never;
    expect(() => model("openai", "x", { quirks })).toThrow('did you mean "thinking"?');
    // @ts-expect-error There is no such quirk.
    expect(() => model("openai", "x", { quirks: { nonsense: true } })).toThrow(/no quirk/);
  });

  it.each([
    ["baseURL", "baseUrl"],
    ["url", "baseUrl"],
    ["context_window", "contextWindow"],
    ["contextLength", "contextWindow"],
    ["maxOutputTokens", "maxTokens"],
    ["cost", "price"],
  ])("%s is answered with %s", (name, meant) => {
    expect(() => model("openai", "x", { [name]: 1 })).toThrow(
      `There is no option "${name}" of model(): write ${meant}.`,
    );
    expect(model("openai", "x", { [meant]: 1, more: true } as never)).toHaveProperty(meant, 1);
  });
});

describe("names", () => {
  it("are those of the catalog", () => {
    const file = readFileSync(new URL("../messages/names.ts", import.meta.url), "utf8");
    const flat = (text: string): string => text.replaceAll(/\s+/g, " ");
    expect(flat(file)).toBe(flat(namesSource(catalog(), SERVICES)));
  });

  it("complete in an editor, and others are allowed", () => {
    expectTypeOf<"anthropic/claude-sonnet-4-5">().toExtend<KnownModelName>();
    expectTypeOf<"sonnet">().toExtend<ModelName>();
    expectTypeOf<"my-server">().toExtend<ServiceName>();
    expect(catalog().length).toBeGreaterThan(500);
  });
});
