import { describe, expect, it } from "vitest";
import { type Model, THINKING_LEVELS, type ThinkingLevel } from "../messages/messages.ts";
import { createProviders } from "../providers/index.ts";
import { fakeService, sendRequest } from "../testing/fake-service.ts";
import { catalog } from "./catalog.ts";

/** All that a request can have to do with thinking, in any format. */
interface Body {
  reasoning?: { effort?: string; enabled?: boolean };
  reasoning_effort?: string;
  thinking?: { type?: string; budget_tokens?: number };
  output_config?: { effort?: string };
  enable_thinking?: boolean;
  chat_template_kwargs?: object;
  think?: unknown;
  reasoningConfig?: { maxReasoningEffort?: string };
  generationConfig?: { thinkingConfig?: { thinkingLevel?: string; thinkingBudget?: number } };
  additionalModelRequestFields?: Body;
}

/** What a request says about thinking. */
interface Asked {
  /** The words for how much. */
  words: string[];
  /** Whether it switches thinking on (`true`) or off. */
  switched: boolean[];
  budgets: number[];
}

async function findAsked(model: Model, thinkingLevel: ThinkingLevel): Promise<Asked> {
  const service = fakeService("");
  const provider = createProviders({ fetch: service.fetch }).get(model.api);
  if (!provider) throw new Error(`There is no format ${model.api}.`);
  const at = { baseUrl: "https://service.test/v1", ...model };
  const { request } = await sendRequest(() => provider, at, service, {}, { thinkingLevel });
  const body = request.body as Body;
  return readAsked({ ...body, ...body.additionalModelRequestFields });
}

function readAsked(body: Body): Asked {
  const { thinking, reasoning, generationConfig } = body;
  const { thinkingLevel, thinkingBudget } = generationConfig?.thinkingConfig ?? {};
  const types: Readonly<Record<string, boolean>> = {
    enabled: true,
    adaptive: true,
    disabled: false,
    between_tools: false,
  };
  const words = [
    reasoning?.effort,
    body.reasoning_effort,
    body.output_config?.effort,
    body.reasoningConfig?.maxReasoningEffort,
    thinkingLevel?.toLowerCase(),
  ];
  const switched = [
    reasoning?.enabled,
    body.enable_thinking,
    thinking?.type === undefined ? undefined : (types[thinking.type] ?? true),
  ];
  return {
    words: words.filter((word) => word !== undefined),
    switched: switched.filter((on) => on !== undefined),
    budgets: [thinking?.budget_tokens, thinkingBudget].filter((count) => count !== undefined),
  };
}

function find(provider: string, id: string): Model {
  const model = catalog().find((one) => one.provider === provider && one.id === id);
  if (!model) throw new Error(`${provider}/${id} is not in the catalog.`);
  return model;
}

/** What is wrong with what was asked of a model, by the facts that the catalog has of it. */
function findProblems(model: Model, level: ThinkingLevel, asked: Asked): string[] {
  const { thinkingLevels, efforts, features = [], reasoning } = model;
  const { words, switched, budgets } = asked;
  if (!reasoning) {
    return [...words, ...switched, ...budgets].length > 0 ? ["is asked, and does not think"] : [];
  }
  const problems: string[] = [];
  const known: readonly ThinkingLevel[] = thinkingLevels ?? ["low", "medium", "high"];
  const allowed = known.map((one) => efforts?.[one] ?? (one === "off" ? "none" : one));
  for (const word of words) {
    if (word === "" || !allowed.includes(word)) problems.push(`"${word}" is not among its levels`);
    if ((word === "none") !== (level === "off") && level !== "off") problems.push(`is off`);
  }
  if (words.length > 1) problems.push("has two words for one level");
  if (words.length > 0 && budgets.length > 0) problems.push("has a level and a budget");
  if (thinkingLevels && budgets.length > 0) problems.push("takes levels, and no budget");
  const canBeOff = known.includes("off") || features.some((one) => one.startsWith("off"));
  if (switched.includes(false) && !canBeOff) problems.push("cannot be switched off");
  if (switched.includes(false) && level !== "off") problems.push("is switched off");
  if (level !== "off" && [...words, ...switched, ...budgets].length === 0) {
    problems.push("is not asked to think");
  }
  // The least of its levels that is enough, or else its highest.
  const active = known.filter((one) => one !== "off");
  const rank = (one: ThinkingLevel): number => THINKING_LEVELS.indexOf(one);
  const nearest = active.find((one) => rank(one) >= rank(level)) ?? active.at(-1);
  if (level !== "off" && thinkingLevels && nearest) {
    const word = efforts?.[nearest] ?? nearest;
    const expected = word === "" ? [] : [word];
    if (words.join() !== expected.join()) {
      problems.push(`asks for ${words.join() || "no level"}, not for ${word || "no level"}`);
    }
  }
  return problems;
}

/** Models that, as the catalog says, think, but to which their format has no way to say how much. */
function cannotBeAsked({ api, id }: Model): boolean {
  return api === "bedrock-converse-stream" && !/claude|amazon\.nova|openai\./.test(id);
}

describe("thinking levels of the catalog", () => {
  it.each([
    ["openai", "gpt-6-astra", [undefined, "low", "low", "medium", "high", "xhigh", "max"]],
    ["openai", "gpt-6.1-sol", [undefined, "low", "low", "medium", "high", "xhigh", "max"]],
    ["openai", "gpt-5.6-cyber", [undefined, "low", "low", "medium", "high", "xhigh", "max"]],
    ["openai", "gpt-6-sol", ["none", "low", "low", "medium", "high", "xhigh", "max"]],
    ["openai", "gpt-5.1", ["none", "low", "low", "medium", "high", "high", "high"]],
    ["openai", "gpt-5", ["minimal", "minimal", "low", "medium", "high", "high", "high"]],
    ["openai", "gpt-5-pro", [undefined, "high", "high", "high", "high", "high", "high"]],
    ["xai", "grok-4.3", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]],
    ["xai", "grok-4.5", [undefined, "low", "low", "medium", "high", "xhigh", "xhigh"]],
    ["google", "gemini-3.5-flash", ["minimal", "minimal", "low", "medium", "high", "high", "high"]],
    ["google", "gemini-3.7-flash", ["low", "low", "low", "medium", "high", "high", "high"]],
    ["google", "gemma-4-31b-it", ["minimal", "minimal", "high", "high", "high", "high", "high"]],
    ["anthropic", "claude-opus-4-6", [undefined, "low", "low", "medium", "high", "max", "max"]],
    ["anthropic", "claude-opus-5", [undefined, "low", "low", "medium", "high", "xhigh", "max"]],
    ["deepseek", "deepseek-v4-pro", [undefined, "high", "high", "high", "high", "max", "max"]],
    ["groq", "qwen/qwen3.6-27b", ["none", ...Array<string>(6).fill("default")]],
    ["zai", "glm-4.7", Array<undefined>(7).fill(undefined)],
    ["openrouter", "z-ai/glm-5.3", [undefined, "low", "low", "high", "high", "max", "max"]],
  ] as const)("of %s/%s", async (provider, id, efforts) => {
    const model = find(provider, id);
    const asked = await Promise.all(THINKING_LEVELS.map((level) => findAsked(model, level)));
    expect(asked.map(({ words }) => words[0])).toEqual(efforts);
  });

  it("no request of any model at any level is outside of what the catalog says", async () => {
    const outside: string[] = [];
    let requests = 0;
    for (const model of catalog()) {
      for (const level of THINKING_LEVELS) {
        requests++;
        const asked = await findAsked(model, level);
        if (cannotBeAsked(model) || model.provider === "perplexity") {
          expect(asked, model.id).toEqual({ words: [], switched: [], budgets: [] });
          continue;
        }
        const problems = findProblems(model, level, asked);
        if (problems.length > 0) {
          outside.push(`${model.provider}/${model.id} ${level}: ${problems.join(", ")}`);
        }
      }
    }
    expect(requests).toBe(catalog().length * THINKING_LEVELS.length);
    expect(outside).toEqual([]);
  });

  it("Claude models take levels just where their features say so", () => {
    const claude = catalog().filter(
      ({ id, provider }) =>
        id.includes("claude") && ["anthropic", "amazon-bedrock"].includes(provider),
    );
    expect(claude.length).toBeGreaterThan(80);
    for (const { id, features, thinkingLevels } of claude) {
      expect(features?.includes("adaptiveThinking"), id).toBe(thinkingLevels !== undefined);
    }
  });
});

describe("a model that is not in the catalog", () => {
  const made = (api: string, provider: string, id = "new-model"): Model => ({
    id,
    name: id,
    api,
    provider,
    reasoning: true,
  });
  it.each([
    ["openai-responses", "openai", "gpt-9"],
    ["openai-completions", "groq", "new-model"],
    ["openai-completions", "xai", "grok-9"],
    ["bedrock-converse-stream", "amazon-bedrock", "openai.gpt-9"],
  ])("of %s is asked for levels that nearly all take, and never for none", async (api, at, id) => {
    const asked = await Promise.all(
      THINKING_LEVELS.map((level) => findAsked(made(api, at, id), level)),
    );
    const [off, ...levels] = asked.map(({ words }) => words[0]);
    expect(levels).toEqual(["low", "low", "medium", "high", "high", "high"]);
    expect(off).toBeUndefined();
  });

  it("of Google is asked for the two levels that all have, and cannot be switched off", async () => {
    const model = made("google-generative-ai", "google", "gemini-9");
    const asked = await Promise.all(THINKING_LEVELS.map((level) => findAsked(model, level)));
    expect(asked.flatMap(({ words }) => words)).toEqual([
      "low",
      "low",
      "low",
      "high",
      "high",
      "high",
      "high",
    ]);
  });

  it("of Anthropic is asked as the newest are", async () => {
    const model = made("anthropic-messages", "anthropic", "claude-new-9");
    for (const level of ["high", "xhigh", "max"] as const) {
      const asked = await findAsked(model, level);
      expect(asked).toEqual({ words: [level], switched: [true], budgets: [] });
    }
  });
});
