import { scriptedModel, type Context } from "@gyre/ai";
import { expect, it } from "vitest";
import { summariser } from "./summarise.ts";

const never = new AbortController().signal;

it("asks a model for what is needed, with the text as it is", async () => {
  let asked: Context | undefined;
  const script = scriptedModel([
    (context) => {
      asked = structuredClone(context);
      return "  In short.  ";
    },
  ]);
  const summarise = summariser(script, () => script.model);
  expect(await summarise("a long text", never, "turns")).toBe("In short.");
  expect(asked?.messages).toMatchObject([{ role: "user", content: "a long text" }]);
  expect(asked?.systemPrompt).toContain("what is left to do");
});

it("rejects where the model gives none, so that nothing empty stands for old turns", async () => {
  const script = scriptedModel([""]);
  const summarise = summariser(script, () => script.model);
  await expect(summarise("x", never, "result")).rejects.toThrow();
});
