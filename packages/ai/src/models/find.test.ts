import { describe, expect, it } from "vitest";
import type { Model } from "../messages/messages.ts";
import { catalog } from "./catalog.ts";
import { AmbiguousModelError, createCatalog, findModel, ModelNotFoundError } from "./find.ts";

function model(provider: string, id: string, name: string = id): Model {
  return { id, name, provider, api: "wire" };
}

const models = [
  model("anthropic", "claude-opus-4-5", "Claude Opus 4.5"),
  model("anthropic", "claude-opus-4-5-20251101", "Claude Opus 4.5"),
  model("anthropic", "claude-sonnet-4-5", "Claude Sonnet 4.5"),
  model("anthropic", "claude-sonnet-4-5-20250929", "Claude Sonnet 4.5"),
  model("anthropic", "claude-sonnet-4-10", "Claude Sonnet 4.10"),
  model("anthropic", "claude-sonnet-4-6", "Claude Sonnet 4.6"),
  model("openai", "gpt-5", "GPT-5"),
  model("openai", "gpt-5-mini", "GPT-5 mini"),
  model("openai", "gpt-5.2", "GPT-5.2"),
  model("google", "gemini-2.5-flash", "Gemini 2.5 Flash"),
  model("google", "gemini-3-flash", "Gemini 3 Flash"),
  model("mistral", "mistral-large-2512"),
  model("mistral", "mistral-large-4"),
  model("mistral", "mistral-large-latest"),
  model("home", "llama-8b"),
  model("groq", "openai/gpt-oss-120b"),
  model("groq", "llama-8b"),
  model("together", "openai/gpt-oss-120b"),
  model("together", "zai-org/glm-5"),
  model("amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "Claude Sonnet 4.5"),
  model("amazon-bedrock", "anthropic.claude-sonnet-4-6", "Claude Sonnet 4.6"),
  model("openrouter", "anthropic/claude-sonnet-4.6", "Claude Sonnet 4.6"),
  model("openrouter", "openai/gpt-5", "GPT-5"),
  model("openrouter", "openai/gpt-5.1-codex", "GPT-5.1 Codex"),
];
const found = (query: string): string => {
  const { provider, id } = findModel(query, models);
  return `${provider}/${id}`;
};

describe("findModel", () => {
  it.each([
    ["provider/id", "openrouter/openai/gpt-5", "openrouter/openai/gpt-5"],
    ["provider/id of the maker before an equal id elsewhere", "openai/gpt-5", "openai/gpt-5"],
    ["an id, also one with a slash", "zai-org/glm-5", "together/zai-org/glm-5"],
    ["an id that others begin with", "gpt-5", "openai/gpt-5"],
    ["an id in another case, with space around", " GPT-5 ", "openai/gpt-5"],
    ["an id with a date", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5-20250929"],
    ["a name; without a date first", "claude opus 4.5", "anthropic/claude-opus-4-5"],
    ["a name at its maker first", "Claude Sonnet 4.6", "anthropic/claude-sonnet-4-6"],
    ["a part: the newest, by number", "sonnet", "anthropic/claude-sonnet-4-10"],
    ["a part with other separators", "sonnet 4.5", "anthropic/claude-sonnet-4-5"],
    ["a part of one only", "codex", "openrouter/openai/gpt-5.1-codex"],
    ["a part that is a whole word", "mini", "openai/gpt-5-mini"],
    ["words that stand apart", "gemini flash", "google/gemini-3-flash"],
    ["what is called latest", "mistral-large", "mistral/mistral-large-latest"],
    ["one's own before resellers", "llama", "home/llama-8b"],
    ["a part at a service", "openrouter/sonnet", "openrouter/anthropic/claude-sonnet-4.6"],
    ["a part at its maker", "anthropic/sonnet", "anthropic/claude-sonnet-4-10"],
  ])("finds %s: %s", (_, query, expected) => {
    expect(found(query)).toBe(expected);
  });

  it.each([
    ["anthropic/claude-sonnet-6", "anthropic/claude-sonnet-4-6"],
    ["openai/mini-5", "openai/gpt-5-mini"],
    ["anthropic/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-5-20250929"],
    ["openai/gpt-5.1-codex", "openrouter/openai/gpt-5.1-codex"],
    ["google/gemini-flash", "google/gemini-3-flash"],
    ["mistral/llama-8b", "mistral/mistral-large-4"],
  ])("never takes another model for %s, which names a service; it suggests", (query, other) => {
    const error = caught(() => found(query));
    expect(error).toBeInstanceOf(ModelNotFoundError);
    expect((error as ModelNotFoundError).suggestions).toSatisfy(
      (names: string[]) => names.length === 0 || names.includes(other),
      String((error as ModelNotFoundError).suggestions),
    );
  });

  it("takes names of the same family at a service for one, however they are dated", () => {
    expect(found("amazon-bedrock/sonnet")).toBe("amazon-bedrock/anthropic.claude-sonnet-4-6");
  });

  it("chooses between no two resellers", () => {
    const error = caught(() => found("gpt-oss-120b"));
    expect(error).toBeInstanceOf(AmbiguousModelError);
    expect(error).toMatchObject({
      code: "ambiguous_model",
      query: "gpt-oss-120b",
      candidates: ["groq/openai/gpt-oss-120b", "together/openai/gpt-oss-120b"],
      message:
        '"gpt-oss-120b" fits several models: groq/openai/gpt-oss-120b, together/openai/gpt-oss-120b. Write one of them in full.',
    });
  });

  it("chooses between no two families, and shows the newest of each", () => {
    expect(caught(() => found("claude"))).toMatchObject({
      candidates: ["anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-10"],
    });
    expect(caught(() => found("anthropic/"))).toMatchObject({
      candidates: ["anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-10"],
    });
  });

  it("shows some of very many", () => {
    const many = Array.from({ length: 12 }, (_, index) => model("x", `m-${"abcdefghijkl"[index]}`));
    const error = caught(() => findModel("m", many));
    expect(error.message).toContain("x/m-h and 4 more. Write");
    expect(error).toMatchObject({ candidates: { length: 12 } });
  });

  it.each([
    ["sonet", ["anthropic/claude-sonnet-4-10"]],
    ["claude opsu", ["anthropic/claude-opus-4-5"]],
    ["gpt-5-minni", ["openai/gpt-5-mini"]],
    ["anthropic/opis", ["anthropic/claude-opus-4-5"]],
    ["anthropc/claude-opus-4-5", ["anthropic/claude-opus-4-5"]],
    ["antropic/claude-opsu-4-5", ["anthropic/claude-opus-4-5"]],
    ["claude-3-5-sonnet-latest", ["anthropic/claude-sonnet-4-10"]],
    ["claude-3-opus-20240229", ["anthropic/claude-opus-4-5"]],
    ["anthropic/claude-3-5-sonnet-latest", ["anthropic/claude-sonnet-4-10"]],
    ["openai:gpt-5", ["openai/gpt-5"]],
    ["anthropic:claude-3-opus-20240229", ["anthropic/claude-opus-4-5"]],
  ])("suggests what may be meant by %s", (query, suggestions) => {
    const error = caught(() => found(query));
    expect(error).toBeInstanceOf(ModelNotFoundError);
    expect(error).toMatchObject({ code: "model_not_found", query });
    const { suggestions: given } = error as ModelNotFoundError;
    expect(given.slice(0, suggestions.length)).toEqual(suggestions);
    expect(error.message).toContain(`No model fits "${query}". Did you mean ${suggestions[0]}`);
  });

  it("each suggestion can be found", () => {
    for (const query of ["gtp", "sonet 4", "gemni", "mistrallarge5"]) {
      const error = caught(() => found(query));
      expect(error).toBeInstanceOf(ModelNotFoundError);
      for (const name of (error as ModelNotFoundError).suggestions) expect(found(name)).toBe(name);
    }
  });

  it("says how to write a model that the catalog does not have", () => {
    expect(caught(() => found("nowhere/nothing")).message).toBe(
      'No model fits "nowhere/nothing". Write a name as provider/id, or add the model to your file of models. In a program, model("nowhere", "nothing") of @gyre/ai/models is one that the catalog does not have.',
    );
  });

  it.each(["", " ", "/", "-", "xyzzy"])("finds nothing for %j", (query) => {
    const error = caught(() => found(query));
    expect(error).toBeInstanceOf(ModelNotFoundError);
    expect(error.message).toBe(
      `No model fits "${query}". Write a name as provider/id, or add the model to your file of models.`,
    );
  });

  it.each(["nope", "none"])("suggests nothing that is near to %s by chance alone", (query) => {
    // Of all models that are known: with more names there is more chance.
    expect(caught(() => findModel(query)).message).toContain("Write a name as provider/id");
  });

  it("finds nothing in nothing", () => {
    expect(() => findModel("gpt-5", [])).toThrow(ModelNotFoundError);
  });

  it("gives the same for every order of the models", () => {
    const turned = [...models].reverse();
    for (const query of ["sonnet", "gpt-5", "opus", "gemini flash", "mistral-large", "llama"]) {
      const { provider, id } = findModel(query, turned);
      expect(`${provider}/${id}`).toBe(found(query));
    }
  });
});

describe("findModel in the catalog", () => {
  it("knows the usual short names", () => {
    expect(findModel("gpt-5")).toMatchObject({ provider: "openai", id: "gpt-5" });
    for (const family of ["sonnet", "opus", "haiku"]) {
      const { provider, id } = findModel(family);
      expect(provider).toBe("anthropic");
      const others = catalog()
        .filter((one) => one.provider === "anthropic" && one.id.includes(family))
        .map((one) => one.name);
      const byNumber = new Intl.Collator("en", { numeric: true });
      const newest = others.sort((a, b) => byNumber.compare(a, b)).at(-1);
      expect(catalog().find((one) => one.provider === provider && one.id === id)?.name).toBe(
        newest,
      );
    }
  });

  it("finds every model by provider/id", () => {
    const all = createCatalog(catalog());
    for (const one of catalog()) expect(all.find(`${one.provider}/${one.id}`)).toBe(one);
  });
});

describe("createCatalog", () => {
  it("lists all, or those of a service", () => {
    const one = createCatalog(models);
    expect(one.list()).toEqual(models);
    expect(one.list({ provider: "groq" }).map(({ id }) => id)).toEqual([
      "openai/gpt-oss-120b",
      "llama-8b",
    ]);
    expect(one.list({ provider: "nowhere" })).toEqual([]);
  });

  it("of two with the same provider and id the later one counts", () => {
    const one = createCatalog([model("a", "m", "old"), model("a", "n"), model("a", "m", "new")]);
    expect(one.list().map(({ name }) => name)).toEqual(["new", "n"]);
    expect(one.find("m").name).toBe("new");
  });
});

function caught(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("Nothing was thrown.");
}
