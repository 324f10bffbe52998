import { expect, it } from "vitest";
import { complete } from "./client.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { cutOff, fail, scriptedModel } from "../testing/scripted.ts";

const { model } = scriptedModel([]);
const context = { messages: [{ role: "user" as const, content: "Go", timestamp: 0 }] };

it("complete gives the whole response, and passes the options on", async () => {
  const client = scriptedModel(["Hello"]);
  const message = await complete(client, client.model, context, { maxTokens: 3 });
  expect(message).toMatchObject({ content: [{ type: "text", text: "Hello" }], stopReason: "stop" });
  expect(client.calls).toMatchObject([{ options: { maxTokens: 3 } }]);
});

it("complete takes messages without a time: they get that of the call", async () => {
  const client = scriptedModel(["Hello"]);
  const clock = { ...manualClock(), now: () => 42 };
  const asked = { messages: [{ role: "user", content: "Hi" }] } as const;
  await complete(client, client.model, asked, { clock });
  await complete(scriptedModel(["Hello"]), client.model, {
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(client.calls[0]?.messages).toEqual([{ role: "user", content: "Hi", timestamp: 42 }]);
});

it("complete gives a failed response as a message", async () => {
  const client = scriptedModel([fail("Busy", { kind: "overloaded" })]);
  expect(await complete(client, client.model, context)).toMatchObject({
    stopReason: "error",
    errorMessage: "Busy",
    failure: { kind: "overloaded" },
  });
});

it("complete rejects where there is no response: a throw, a rejection, a stream cut off", async () => {
  const client = scriptedModel([
    { throws: new Error("thrown") },
    { rejects: new Error("rejected") },
    cutOff(),
  ]);
  await expect(complete(client, client.model, context)).rejects.toThrow("thrown");
  await expect(complete(client, client.model, context)).rejects.toThrow("rejected");
  await expect(complete(client, client.model, context)).rejects.toMatchObject({
    code: "incomplete",
  });
});

it.each([
  ["gpt-5", { messages: [] }, 'the name "gpt-5" where it needs a model: give findModel("gpt-5")'],
  [model, "hello", 'give { messages: [{ role: "user", content: "hello"'],
  [model, [], "give { messages: [{ role:"],
  [undefined, { messages: [] }, "complete(client, model, context) has no model"],
])("complete(client, %j, %j) is answered with what to write", async (given, context, text) => {
  const client = scriptedModel([]);
  await expect(complete(client, given as never, context as never)).rejects.toThrow(text);
});
