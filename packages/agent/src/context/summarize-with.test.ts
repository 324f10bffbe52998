import { type Context, type Model, type Usage } from "@gyre/ai";
import { call, scriptedModel, type ScriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Agent, type ContextConfig, summarizeWith } from "../index.ts";
import { access } from "../node/model-access.ts";
import { tool } from "../testing/play.ts";

const never = new AbortController().signal;

afterEach(() => void vi.restoreAllMocks());

function createFrom(
  script: ScriptedModel,
  spent: Usage[] = [],
): NonNullable<ContextConfig["summarize"]> {
  return summarizeWith(script.model, {
    protocol: script,
    onUsage: (usage) => void spent.push(usage),
  });
}

describe("summarizeWith", () => {
  it("asks a model for what is needed, with the text as it is", async () => {
    let asked: Context | undefined;
    const script = scriptedModel([
      (context) => {
        asked = structuredClone(context);
        return "  In short.  ";
      },
    ]);
    const spent: Usage[] = [];
    const summarize = createFrom(script, spent);
    expect(await summarize("a long text", never, "turns")).toBe("In short.");
    expect(spent).toHaveLength(1);
    expect(asked?.messages).toMatchObject([{ role: "user", content: "a long text" }]);
    expect(asked?.systemPrompt).toContain("what is left to do");
  });

  it("says what the user wants kept, where a user asked for a compaction", async () => {
    let prompt: string | undefined;
    const script = scriptedModel([
      ({ systemPrompt }) => {
        prompt = systemPrompt;
        return "In short.";
      },
    ]);
    await createFrom(script)("a long text", never, "turns", "the names of the tests");
    expect(prompt).toMatch(/ Above all, the user wants kept: the names of the tests$/);
  });

  it("rejects where the model gives none, so that nothing empty stands for old turns", async () => {
    const script = scriptedModel([""]);
    const spent: Usage[] = [];
    await expect(createFrom(script, spent)("x", never, "result")).rejects.toThrow(/./);
    expect(spent).toHaveLength(1);
  });

  it("takes the name of a model, and in Node the client of all services", async () => {
    const script = scriptedModel(["In short."]);
    vi.spyOn(access, "createClient").mockResolvedValue(script);
    let asked: Model | undefined;
    const summarize = summarizeWith("anthropic/claude-haiku-4-5", {
      onUsage: (_usage, model) => void (asked = model),
    });
    expect(await summarize("x", never, "turns")).toBe("In short.");
    expect(asked).toMatchObject({ provider: "anthropic", id: "claude-haiku-4-5" });
  });

  it("takes another model for results than for turns", async () => {
    const script = scriptedModel(["One.", "Two."]);
    const asked: string[] = [];
    const summarize = summarizeWith((what) => ({ ...script.model, id: `for-${what}` }), {
      protocol: script,
      onUsage: (_usage, { id }) => void asked.push(id),
    });
    await summarize("x", never, "turns");
    await summarize("x", never, "result");
    expect(asked).toEqual(["for-turns", "for-result"]);
  });

  it("has what a summary costs counted in the run, and in its limits", async () => {
    const usage = { input: 1_000_000, output: 0 };
    const summarizer = scriptedModel(["In short."], { usage });
    const price = { input: 3, output: 15 };
    const long = tool("x", () => "word ".repeat(400));
    const steps: ScriptStep[] = Array.from({ length: 6 }, (_, i) => call("x", { i }));
    const script = scriptedModel([...steps, "Done"]);
    const agent = new Agent({
      protocol: script,
      model: { ...script.model, price },
      tools: [long],
      limits: { maxCostUsd: 2 },
      context: {
        triggerTokens: 1200,
        targetTokens: 800,
        keepTurns: 1,
        summarize: summarizeWith(
          { ...summarizer.model, price },
          { protocol: summarizer, onUsage: (used) => void agent.countUsage(used) },
        ),
      },
    });
    const end = await agent.prompt("Go");
    expect(end).toMatchObject({ stop: "limit", usage: { cost: { total: 3 } } });
    expect(script.calls.length).toBeLessThan(steps.length);
  });
});
