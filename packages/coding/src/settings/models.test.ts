import { describe, expect, it } from "vitest";
import { modelProblems, projectModels } from "./models.ts";

const address = { api: "openai-completions", baseUrl: "https://elsewhere.example/v1" };

it("reports all that is wrong", () => {
  expect(modelProblems({ models: [{ id: "m" }], services: { a: { baseUrl: "x" } } })).toEqual([
    "models[0].provider is missing",
    'services.a.baseUrl is "x", but must be an address that begins with http:// or https://',
  ]);
  expect(modelProblems({})).toEqual([]);
});

describe("a project", () => {
  it("adds services that are not known otherwise, and their models", () => {
    const models = [{ provider: "office", id: "house-7b", price: { input: 1 } }];
    const taken = projectModels({ services: { office: address }, models });
    expect(taken).toEqual({
      models: { services: { office: address }, models },
      refused: [],
      keyVariables: { office: "OFFICE_API_KEY" },
    });
  });

  it.each([
    ["an address of a known service", { services: { anthropic: address } }],
    ["an address of a known model", { models: [{ provider: "openai", id: "gpt-5", ...address }] }],
    ["a price, which limits of cost go by", { models: [{ provider: "xai", id: "g", price: {} }] }],
    ["a known service in other letters", { services: { Anthropic: address } }],
    ["a known variable by another name", { services: { "azure--openai": address } }],
    ["a key variable", { services: { office: { ...address, keyEnv: ["ANTHROPIC_API_KEY"] } } }],
    ["an address variable", { services: { office: { ...address, urlEnv: ["DATABASE_URL"] } } }],
    ["a service of the user", { services: { mine: address } }],
    ["a model at the user's service", { models: [{ provider: "mine", id: "m", ...address }] }],
    ["the user's service in other letters", { services: { MINE: address } }],
    ["a service that has the user's variable", { services: { special: address } }],
    ["a service the user has a model of", { services: { other: address } }],
  ])("does not set %s", (_what, project) => {
    const users = {
      services: { mine: address, shared: { ...address, keyEnv: ["SPECIAL_API_KEY"] } },
      models: [{ provider: "other", id: "m", ...address }],
    };
    const { models, refused, keyVariables } = projectModels(project, users);
    expect(models).toEqual({ models: [], services: {} });
    expect(refused).toHaveLength(1);
    expect(refused[0]).toMatch(/^what it says of the service ".*" is not used: /);
    expect(keyVariables).toEqual({});
  });

  it("loses the models of a service that is refused, and nothing else", () => {
    const services = { office: address, groq: address };
    const models = ["office", "groq"].map((provider) => ({ provider, id: "m" }));
    const taken = projectModels({ services, models });
    expect(taken.models).toEqual({
      services: { office: address },
      models: [{ provider: "office", id: "m" }],
    });
  });
});
