import { describe, expect, it } from "vitest";
import type { Model } from "../messages/messages.ts";
import { findService } from "../providers/services/presets.ts";
import { mergeModels, parseUserModels, UserModelsError, userServices } from "./user-models.ts";

const SOURCE = "models.json";

function listProblems(json: unknown): readonly string[] {
  try {
    parseUserModels(json, SOURCE);
  } catch (error) {
    if (error instanceof UserModelsError) return error.problems;
    throw error;
  }
  return [];
}

const whole: Model = {
  id: "m",
  name: "M",
  api: "openai-completions",
  provider: "acme",
  baseUrl: "https://acme.example/v1",
  reasoning: true,
  input: ["text", "image", "pdf", "audio", "video"],
  price: { input: 1, output: 0, cacheRead: 0.1, cacheWrite: 2, tiers: [{ above: 5, output: 3 }] },
  contextWindow: 1000,
  maxTokens: 100,
  headers: { "x-team": "a" },
  quirks: { maxTokensField: "max_tokens", extra: { list: [1] } },
};
const service = {
  name: "Acme",
  api: "openai-completions",
  baseUrl: "http://127.0.0.1:9/v1",
  keyEnv: ["ACME_KEY"],
  urlEnv: [],
  keyless: true,
  auth: "api-key" as const,
  headers: { "x-team": "b" },
  quirks: { systemRole: "system" as const },
};

describe("parseUserModels", () => {
  it("keeps every field of models and services", () => {
    expect(parseUserModels({ models: [whole], services: { acme: service } }, SOURCE)).toEqual({
      source: SOURCE,
      models: [whole],
      services: { acme: service },
    });
  });

  it("takes a file with nothing in it", () => {
    expect(parseUserModels({}, SOURCE)).toEqual({ source: SOURCE, models: [], services: {} });
  });

  it("says file, place, value and what is allowed", () => {
    const act = (): unknown =>
      parseUserModels({ models: [{ ...whole, contextWindow: "big" }] }, SOURCE);
    expect(act).toThrow(UserModelsError);
    expect(act).toThrow(
      'models.json: models[0].contextWindow is "big", but must be a whole number of tokens above 0',
    );
  });

  it.each([
    ["a list", [], "the file is [], but must be an object"],
    ["null", null, "the file is null, but must be an object"],
    ["models as an object", { models: {} }, "models is {}, but must be a list"],
    ["services as a list", { services: [] }, "services is [], but must be an object"],
    ["a model as a text", { models: ["m"] }, 'models[0] is "m", but must be an object'],
    ["an empty id", model({ id: " " }), 'models[0].id is " ", but must be a text'],
    ["no whole number", model({ maxTokens: 1.5 }), "models[0].maxTokens is 1.5, but must be"],
    ["no tokens at all", model({ maxTokens: 0 }), "models[0].maxTokens is 0, but must be"],
    ["a price below 0", model({ price: { input: -1 } }), "models[0].price.input is -1, but must"],
    ["a price as a number", model({ price: 3 }), "models[0].price is 3, but must be an object"],
    ["tiers as an object", model({ price: { tiers: {} } }), "models[0].price.tiers is {}, but"],
    [
      "a tier without its number",
      model({ price: { tiers: [{ input: 1 }] } }),
      "models[0].price.tiers[0].above is missing",
    ],
    ["another kind of input", model({ input: ["text", "smell"] }), "models[0].input is ["],
    ["no kind of input", model({ input: [] }), "models[0].input is [], but must be"],
    [
      "yes as a text",
      model({ reasoning: "yes" }),
      'models[0].reasoning is "yes", but must be true',
    ],
    ["no address", model({ baseUrl: "acme" }), 'models[0].baseUrl is "acme", but must be an addr'],
    ["another protocol", model({ baseUrl: "file:///x" }), "models[0].baseUrl is"],
    ["a header as a number", model({ headers: { a: 1 } }), "models[0].headers.a is 1, but must"],
    [
      "a quirk that there is not",
      model({ quirks: { nonsense: 1 } }),
      'models[0].quirks is not as it should be. There is no quirk "nonsense".',
    ],
    ["quirks as a list", model({ quirks: [] }), "models[0].quirks is [], but must be an object"],
    [
      "another way to send a key",
      { services: { a: { auth: "cookie" } } },
      'services.a.auth is "cookie", but must be one of "bearer", "api-key"',
    ],
    ["a variable as a text", { services: { a: { keyEnv: "K" } } }, 'services.a.keyEnv is "K", but'],
  ])("refuses %s", (_, json, problem) => {
    const problems = listProblems(json);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });

  it("refuses keys that it does not know, and says which one may be meant", () => {
    expect(listProblems(model({ context_window: 5 }))[0]).toContain(
      "models[0].context_window is no key that is known here; did you mean contextWindow? (known: id, name, api,",
    );
    expect(listProblems({ modles: [] })[0]).toBe(
      "modles is no key that is known here; did you mean models? (known: models, services)",
    );
    expect(listProblems(JSON.parse('{"__proto__": 1, "constructor": 2}'))).toHaveLength(2);
  });

  it("says all that is wrong at once", () => {
    expect(listProblems({ models: [{ name: 1 }], services: { a: { keyless: 0 } } })).toEqual([
      "models[0].name is 1, but must be a text that is not empty",
      "models[0].id is missing",
      "models[0].provider is missing",
      "services.a.keyless is 0, but must be true or false",
    ]);
  });

  it("refuses the same model twice", () => {
    const twice = [
      { provider: "a", id: "m" },
      { provider: "b", id: "m" },
      { provider: "a", id: "m" },
    ];
    expect(listProblems({ models: twice })).toEqual(["models[2] is a/m, which is there already"]);
  });

  it("shows no key that was put in a wrong place", () => {
    const key = "sk-0123456789abcdef";
    const problems = listProblems({
      models: [{ provider: "a", id: "m", token: "0123-secret", maxTokens: key }],
      services: { a: { apiKey: key, keyEnv: key } },
    });
    expect(problems).toHaveLength(4);
    expect(problems.join()).not.toContain(key);
    expect(problems.join()).not.toContain("0123-secret");
  });
});

describe("mergeModels", () => {
  const base: Model[] = [
    { id: "one", name: "One", api: "wire", provider: "acme", maxTokens: 10, price: { input: 1 } },
    { id: "two", name: "Two", api: "wire", provider: "acme", headers: { a: "1", b: "1" } },
    { id: "one", name: "Other one", api: "cable", provider: "other" },
  ];
  const merge = (json: unknown): Model[] => mergeModels(base, parseUserModels(json, SOURCE));

  it("gives the same models where the user has none", () => {
    expect(merge({})).toEqual(base);
  });

  it("changes what is named of a known model, and nothing else", () => {
    const merged = merge({
      models: [{ provider: "acme", id: "one", contextWindow: 99, price: { output: 2 } }],
    });
    expect(merged).toEqual([
      { ...base[0], contextWindow: 99, price: { output: 2 } },
      base[1],
      base[2],
    ]);
  });

  it("adds a model, which has its id for a name and the wire of its service", () => {
    expect(merge({ models: [{ provider: "acme", id: "new" }] }).at(-1)).toEqual({
      id: "new",
      name: "new",
      api: "wire",
      provider: "acme",
    });
    expect(merge({ models: [{ provider: "ollama", id: "qwen" }] }).at(-1)?.api).toBe("ollama");
    expect(merge({ models: [whole] }).at(-1)).toEqual(whole);
  });

  it("adds a model at a service of the user's own", () => {
    const merged = merge({
      models: [{ provider: "mine", id: "m" }],
      services: { mine: { api: "wire", baseUrl: "http://127.0.0.1:1" } },
    });
    expect(merged.at(-1)).toEqual({
      id: "m",
      name: "m",
      api: "wire",
      provider: "mine",
      baseUrl: "http://127.0.0.1:1",
    });
  });

  it("says which model's wire cannot be known", () => {
    expect(() => merge({ models: [{ provider: "mine", id: "m" }] })).toThrow(
      'models.json: models[0] needs "api", as nothing is known of a service "mine"; or give "api" in services.mine',
    );
  });

  it("what is said of a service holds for its models that say nothing else themselves", () => {
    const merged = merge({
      models: [
        { provider: "acme", id: "one", baseUrl: "https://one.example", headers: { b: "3" } },
      ],
      services: {
        acme: { api: "new", baseUrl: "https://acme.example", headers: { b: "2", c: "2" } },
      },
    });
    expect(merged).toEqual([
      { ...base[0], api: "new", baseUrl: "https://one.example", headers: { b: "3", c: "2" } },
      {
        ...base[1],
        api: "new",
        baseUrl: "https://acme.example",
        headers: { a: "1", b: "2", c: "2" },
      },
      base[2],
    ]);
  });

  it("does not change what it is given", () => {
    const before = structuredClone(base);
    merge({ models: [{ provider: "acme", id: "one", name: "X" }], services: { acme: service } });
    expect(base).toEqual(before);
  });
});

describe("userServices", () => {
  it("are presets: what the file does not say is as we know it, or made of the id", () => {
    const file = {
      models: [{ provider: "acme", id: "one", api: "openai-completions" }],
      services: { acme: { auth: "api-key", keyEnv: ["ACME"] }, groq: { name: "Our Groq" } },
    };
    expect(userServices(parseUserModels(file, "f"))).toEqual([
      {
        id: "acme",
        name: "acme",
        api: "openai-completions",
        keyEnv: ["ACME"],
        urlEnv: ["ACME_BASE_URL"],
        keyless: true,
        auth: "api-key",
      },
      { ...findService("groq"), name: "Our Groq" },
    ]);
  });
});

function model(fields: Record<string, unknown>): unknown {
  return { models: [{ provider: "acme", id: "m", ...fields }] };
}
