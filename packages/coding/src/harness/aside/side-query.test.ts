import type { AgentMessage } from "@gyre/agent";
import { type AssistantMessage, type Usage } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { sideQuery, sideQuestion } from "./side-query.ts";

const { signal } = new AbortController();

/** An answer that calls a tool. */
const calling: AssistantMessage = {
  role: "assistant",
  content: [{ type: "toolCall", id: "1", name: "look", arguments: {} }],
  api: "scripted",
  provider: "scripted",
  model: "scripted",
  usage: {},
  stopReason: "toolUse",
  timestamp: 3,
};

/** A tool that counts how often it runs. */
function countingTool() {
  const counted = { runs: 0 };
  const tool = {
    name: "look",
    label: "Look",
    description: "Looks.",
    parameters: { type: "object" as const, properties: {} },
    execute: () => `run ${++counted.runs}`,
  };
  return { counted, tool };
}

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

it("answers a side question from the conversation so far, which stays as it is, and runs no tool", async () => {
  const script = scriptedModel(["  Green.  "]);
  const { counted, tool } = countingTool();
  const messages: AgentMessage[] = [
    { role: "user", content: "Make tea.", timestamp: 1 },
    { role: "notice", text: "A job ended.", summary: "job", timestamp: 2 },
    calling,
  ];
  const before = structuredClone(messages);
  const answer = await sideQuestion(
    "Which tea?",
    { systemPrompt: "Be kind.", tools: [tool], messages, thinkingLevel: "off" },
    { client: script, model: script.model, signal, spent: () => {} },
  );
  expect(answer).toBe("Green.");
  expect(messages).toEqual(before);
  const [sent] = script.calls;
  // The call that is under way is left out: no service takes one without its result.
  expect(sent?.messages.map(({ role }) => role)).toEqual(["user", "user", "user"]);
  expect(JSON.stringify(sent?.messages.at(-1))).toContain("Which tea?");
  expect(sent?.options.toolChoice).toBe("none");
  expect(sent?.tools?.map(({ name }) => name)).toEqual(["look"]);
  expect(counted.runs).toBe(0);
});

it("runs no tool for a side question where the model calls one all the same", async () => {
  const script = scriptedModel([call("look")]);
  const { counted, tool } = countingTool();
  const state = { systemPrompt: "", tools: [tool], messages: [], thinkingLevel: "off" as const };
  const options = { client: script, model: script.model, signal, spent: () => {} };
  await expect(sideQuestion("Which tea?", state, options)).rejects.toThrow("ended early");
  expect(counted.runs).toBe(0);
});
