import { type Context, type Usage } from "@gyre/ai";
import { type ScriptedModel, scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { createSummarizer } from "./summarize.ts";

const never = new AbortController().signal;

function createFrom(
  script: ScriptedModel,
  spent: Usage[] = [],
): ReturnType<typeof createSummarizer> {
  return createSummarizer({
    client: script,
    model: () => script.model,
    spent: (_model, usage) => void spent.push(usage),
  });
}

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
  const summarize = createFrom(script);
  await expect(summarize("x", never, "result")).rejects.toThrow(/./);
});
