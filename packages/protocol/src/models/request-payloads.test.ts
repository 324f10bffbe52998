import { describe, expect, it } from "vitest";
import { MAX_CONTEXT_MESSAGES, MAX_CONTEXT_TOOLS, parseRequest } from "./request-payloads.ts";

const model = { provider: "p", id: "m" };
const user = { role: "user", content: "Hi", timestamp: 1 };
const assistant = {
  role: "assistant",
  api: "a",
  provider: "p",
  model: "m",
  usage: {},
  stopReason: "stop",
  timestamp: 1,
};
const result = {
  role: "toolResult",
  toolCallId: "c",
  toolName: "t",
  isError: false,
  timestamp: 1,
  content: [],
};

function createRequest(messages: unknown, more: object = {}): Record<string, unknown> {
  return { model, context: { messages, ...more } };
}

describe("invalid_request says what is wrong", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["nothing", {}, '"model"'],
    ["a model by its name", { model: "m", context: {} }, '"model"'],
    ["a model without its provider", { model: { id: "m" }, context: {} }, '"model"'],
    ["no context", { model }, '"context"'],
    ["no messages", { model, context: {} }, '"context.messages"'],
    ["a system prompt that is no text", createRequest([], { systemPrompt: 1 }), "systemPrompt"],
    ["null for a message", createRequest([user, null]), "Message 1"],
    ["an unknown role", createRequest([{ ...user, role: "system" }]), "Message 0"],
    ["a message without its time", createRequest([{ role: "user", content: "" }]), "Message 0"],
    ["a block of no kind", createRequest([{ ...user, content: [{ type: "x" }] }]), "Message 0"],
    [
      "an image without data",
      createRequest([{ ...user, content: [{ type: "image" }] }]),
      "Message 0",
    ],
    ["an answer that is a text", createRequest([{ ...assistant, content: "x" }]), "Message 0"],
    [
      "a call without arguments",
      createRequest([{ ...assistant, content: [{ type: "toolCall", id: "c", name: "n" }] }]),
      "Message 0",
    ],
    ["a result of no call", createRequest([{ ...result, toolCallId: 1 }]), "Message 0"],
    ["tools that are no list", createRequest([user], { tools: {} }), '"context.tools"'],
    ["a tool without a schema", createRequest([user], { tools: [{ name: "t" }] }), "Tool 0"],
    [
      "too many tools",
      createRequest([], { tools: Array(MAX_CONTEXT_TOOLS + 1).fill(0) }),
      "at most",
    ],
    ["too many messages", createRequest(Array(MAX_CONTEXT_MESSAGES + 1).fill(0)), "at most"],
    ["options that are a list", { ...createRequest([user]), options: [] }, '"options"'],
  ])("%s", (_, payload, words) => {
    expect(() => parseRequest(payload)).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: expect.stringContaining(words),
      }),
    );
  });

  it.each([
    ["temperature", "hot"],
    ["temperature", null],
    ["maxTokens", 0],
    ["maxTokens", 1.5],
    ["sessionId", 1],
    ["thinkingLevel", "much"],
    ["thinkingBudgets", { much: 1 }],
    ["thinkingBudgets", { low: -1 }],
    ["cacheRetention", "ever"],
    ["toolChoice", {}],
    ["maxRetryDelayMs", -1],
    ["timeoutMs", "1"],
    ["metadata", []],
    ["topP", "0.5"],
    ["stopSequences", "END"],
    ["strictTools", 1],
    ["outputFormat", {}],
    ["verbosity", "much"],
    ["cacheBreakpoints", [1]],
    ["serviceTools", ["webSearch"]],
    ["providerOptions", []],
  ])('"options.%s" is not %j', (name, value) => {
    const payload = { ...createRequest([user]), options: { [name]: value } };
    expect(() => parseRequest(payload)).toThrow(`"options.${name}"`);
  });
});

describe("what may travel does", () => {
  it("every kind of message, every option, and nothing that is not known", () => {
    const content = [
      { type: "text", text: "a" },
      { type: "thinking", thinking: "b" },
      { type: "toolCall", id: "c", name: "t", arguments: {} },
      { type: "serviceTool", id: "s", name: "t" },
      { type: "image", data: "", mimeType: "image/png" },
    ];
    const messages = [user, { ...assistant, content }, result];
    const tools = [{ name: "t", description: "d", parameters: { type: "object" } }];
    const options = {
      temperature: 0,
      maxTokens: 1,
      sessionId: "s",
      thinkingLevel: "high",
      thinkingBudgets: { low: 1 },
      cacheRetention: "long",
      toolChoice: { name: "t" },
      maxRetryDelayMs: 0,
      timeoutMs: 1,
      metadata: { a: 1 },
      topP: 0.5,
      topK: 5,
      minP: 0.1,
      seed: 1,
      stopSequences: ["END"],
      presencePenalty: 1,
      frequencyPenalty: 1,
      parallelToolCalls: false,
      strictTools: true,
      verbosity: "low",
      userId: "u",
      logprobs: 2,
      cacheBreakpoints: [{ after: "system" }],
      outputFormat: { schema: { type: "object" }, tool: "t" },
      serviceTools: [{ type: "webSearch", maxUses: 2 }],
      providerOptions: { openai: { serviceTier: "flex" } },
    };
    const context = { systemPrompt: "s", messages, tools };
    const secrets = { apiKey: "k", headers: { a: "b" }, signal: 1, fetch: 1, onPayload: 1 };
    expect(parseRequest({ model, context, options: { ...options, ...secrets } })).toEqual({
      model,
      context,
      options,
    });
  });
});
