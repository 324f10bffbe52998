import { type AssistantMessage, type Model, textOf } from "@gyre/ai";
import { anthropicMessages } from "@gyre/ai/providers/anthropic-messages";
import { openaiCompletions } from "@gyre/ai/providers/openai-completions";
import { afterEach, describe, expect, it } from "vitest";
import { type Script, type ScriptedService, scriptedService } from "./scripted-service.ts";

const WIRES = [
  { api: "anthropic-messages", make: anthropicMessages, path: "" },
  { api: "openai-completions", make: openaiCompletions, path: "/v1" },
] as const;

let service: ScriptedService;
afterEach(() => service.close());

describe.each(WIRES)("a scripted service over $api", ({ api, make, path }) => {
  async function ask(script: Script): Promise<AssistantMessage> {
    service = await scriptedService(script);
    const model: Model = {
      id: "claude-test",
      name: "Test",
      api,
      provider: "test",
      baseUrl: `${service.url}${path}`,
    };
    const messages = [{ role: "user", content: "Hello", timestamp: 0 }] as const;
    return (await make().stream(model, { messages }, { apiKey: "key" })).result();
  }

  it("says text, thoughts and calls, and what they cost", async () => {
    const message = await ask([
      {
        say: [
          { thinking: "Where is it? In 日本." },
          { text: "I look into two files at once." },
          { call: "read", arguments: { path: "a.txt" } },
          { call: "read", arguments: { path: "b.txt" }, id: "own" },
          { call: "now" },
        ],
        usage: { input: 7, output: 8, cacheRead: 9 },
      },
    ]);
    expect(message).toMatchObject({
      stopReason: "toolUse",
      content: [
        { type: "thinking", thinking: "Where is it? In 日本." },
        { type: "text", text: "I look into two files at once." },
        { type: "toolCall", id: "toolu_1", name: "read", arguments: { path: "a.txt" } },
        { type: "toolCall", id: "own", name: "read", arguments: { path: "b.txt" } },
        { type: "toolCall", name: "now", arguments: {} },
      ],
      usage: { input: 7, output: 8, cacheRead: 9 },
    });
    expect(service.problems).toEqual([]);
    expect(service.requests).toMatchObject([{ nth: 0, wire: api, body: { stream: true } }]);
  });

  it.each([
    [401, "auth"],
    [429, "rate_limit"],
    [500, "unknown"],
    [529, "overloaded"],
  ])("refuses with %i", async (status, kind) => {
    const message = await ask([{ status, message: "No.", headers: { "retry-after": "1" } }]);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind, status } });
  });

  it.each(["cut", "error"] as const)("breaks off after a delta: %s", async (how) => {
    const message = await ask([
      { say: "Hello to you", deltaChars: 6, fault: { how, afterDeltas: 1 } },
    ]);
    expect([message.stopReason, textOf(message)]).toEqual(["error", "Hello "]);
  });

  it("breaks off after any byte", async () => {
    const message = await ask([{ say: "Hello", fault: { how: "cut", afterBytes: 20 } }]);
    expect(message).toMatchObject({ stopReason: "error", content: [] });
  });

  it("answers by the request, and reports when the script is over", async () => {
    const message = await ask([({ body }) => ({ say: String(body["model"]) })]);
    expect(textOf(message)).toBe("claude-test");
    const again = await fetch(`${service.url}${service.requests[0]?.path}`, {
      method: "POST",
      body: service.requests[0]?.text ?? "",
    });
    expect(again.status).toBe(400);
    expect(service.problems).toEqual(["request 1: the script has no answer to it"]);
  });
});
