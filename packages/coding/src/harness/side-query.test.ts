import { type Usage } from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { sideQuery } from "./side-query.ts";

const { signal } = new AbortController();

it("asks one thing, gives the answer, and reports what it has used", async () => {
  const script = scriptedModel(["  Yes.  "]);
  const spent: Usage[] = [];
  const answer = await sideQuery("Is it?", {
    client: script,
    model: script.model,
    signal,
    spent: (_model, usage) => void spent.push(usage),
  });
  expect(answer).toBe("Yes.");
  expect(spent).toHaveLength(1);
  expect(script.calls[0]?.messages).toMatchObject([{ role: "user", content: "Is it?" }]);
});

it("rejects where there is no answer", async () => {
  const script = scriptedModel([""]);
  const options = { client: script, model: script.model, signal, spent: () => {} };
  await expect(sideQuery("Is it?", options)).rejects.toThrow(/./);
});
