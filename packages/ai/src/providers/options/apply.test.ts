import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { Context, Message, Model, Tool } from "../../messages/messages.ts";
import {
  createAnswers,
  createPrompt,
  createResult,
  fakeService,
  sse,
} from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";

const CLAUDE = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5");
const RESPONSES = createModel("openai-responses", "openai", "gpt-4.1", { reasoning: false });
const CHAT = createModel("openai-completions", "openai", "gpt-4.1", { reasoning: false });
const GEMINI = createModel("google-generative-ai", "google", "gemini-2.5-flash");
const BEDROCK = createModel(
  "bedrock-converse-stream",
  "amazon-bedrock",
  "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
);
const LOCAL = createModel("ollama", "ollama", "qwen3", { reasoning: false });
const TOOLS: readonly Tool[] = [
  {
    name: "look",
    description: "Looks",
    parameters: {
      type: "object",
      properties: { at: { type: "string", minLength: 1 }, deep: { type: "boolean" } },
      required: ["at"],
    },
  },
];

async function send(
  model: Model,
  options: StreamOptions,
  context: Partial<Context> = { tools: TOOLS },
  body = "",
) {
  const service = fakeService({ body });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const asked = { messages: [createPrompt("Hello")], ...context };
  const answer = await stream(model, asked, { apiKey: "test-key-0123456789", ...options });
  const message = await answer.result();
  return { message, error: message.errorMessage, body: service.requests[0]?.body };
}

describe("an option that cannot be sent", () => {
  it("is an error before the key is looked for, with what to write instead", async () => {
    const { stream } = findFormat(CLAUDE.api).create({ fetch: () => expect.unreachable() });
    const context = { messages: [createPrompt("Hello")] };
    const message = await (await stream(CLAUDE, context, { minP: 0.1 })).result();
    expect(message.errorMessage).toBe(
      'Anthropic has no option "minP", which the request to model "claude-sonnet-4-5" has. Use "topP", or leave it out. It has topP, topK, stopSequences, parallelToolCalls, strictTools, userId, cacheBreakpoints, serviceTools. For other fields of the request use onPayload.',
    );
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
  });

  it.each<[string, Model, StreamOptions, string]>([
    [
      "a model without settings for sampling",
      createModel("anthropic-messages", "anthropic", "claude-opus-4-7"),
      { topP: 0.5 },
      'Model "claude-opus-4-7" rejects the option "topP": it has no settings for sampling. Leave it out.',
    ],
    [
      "a model that thinks",
      CLAUDE,
      { topK: 5, thinkingLevel: "low" },
      'Model "claude-sonnet-4-5" rejects the option "topK": not while it thinks. Leave it out, or set thinkingLevel to off.',
    ],
    [
      "a model of OpenAI that thinks",
      createModel("openai-completions", "openai", "gpt-5.1"),
      { presencePenalty: 1 },
      'Model "gpt-5.1" rejects the option "presencePenalty": it has no settings for sampling. Leave it out.',
    ],
    [
      "a model of xAI that thinks",
      createModel("openai-completions", "xai", "grok-4"),
      { stopSequences: ["."] },
      'Model "grok-4" rejects the option "stopSequences": models of xAI that think do not take it. Leave it out.',
    ],
    [
      "a model whose cache has no breakpoints",
      createModel("openai-completions", "openrouter", "openai/gpt-4.1"),
      { cacheBreakpoints: [{ after: 0 }] },
      'Model "openai/gpt-4.1" rejects the option "cacheBreakpoints": its cache has no breakpoints. Leave it out, or use cacheRetention.',
    ],
    ["a wrong value", CLAUDE, { topP: 2 }, 'The option "topP" is a number from 0 to 1.'],
    [
      "a place that is not there",
      CLAUDE,
      { cacheBreakpoints: [{ after: 3 }] },
      'The option "cacheBreakpoints" cannot be sent: there is no message 3 among 1.',
    ],
    [
      "a message that is not there on Amazon Bedrock",
      BEDROCK,
      { cacheBreakpoints: [{ after: "system" }] },
      'The option "cacheBreakpoints" cannot be sent: there is nothing to cache after system.',
    ],
    [
      "an option of another format of the service",
      CHAT,
      { providerOptions: { openai: { truncation: "auto" } } },
      'The API format "openai-completions" of model "gpt-4.1" has no option "providerOptions.openai.truncation". Use a model of another format of OpenAI, or leave it out.',
    ],
  ])("is named: %s", async (_, model, options, error) => {
    const sent = await send(model, options);
    expect(sent.error).toBe(error);
    expect(sent.body).toBeUndefined();
  });

  it("is found by its spelling, and does not compile", async () => {
    // @ts-expect-error: there is no such option.
    const top: StreamOptions = { top_p: 0.5 };
    // @ts-expect-error: there is no such service.
    const service: StreamOptions = { providerOptions: { antropic: {} } };
    // @ts-expect-error: the service has no such option.
    const own: StreamOptions = { providerOptions: { anthropic: { servicetier: "auto" } } };
    // @ts-expect-error: the option of the service has no such value.
    const value: StreamOptions = { providerOptions: { anthropic: { serviceTier: "flex" } } };
    expect(value).toBeDefined();
    expect((await send(CLAUDE, top)).error).toBe(
      'There is no option "top_p". Did you mean "topP"? For other fields of the request use onPayload.',
    );
    expect((await send(CLAUDE, service)).error).toBe(
      'There are no options of a service "antropic". Did you mean "anthropic"?',
    );
    expect((await send(CLAUDE, own)).error).toBe(
      'There is no option "servicetier" in providerOptions.anthropic. Did you mean "serviceTier"? For other fields of the request use onPayload.',
    );
  });

  it("names the tool whose schema the service cannot enforce", async () => {
    const parameters = { type: "object", properties: { map: { type: "object" } } };
    const tools = [{ name: "put", description: "Puts", parameters }];
    const sent = await send(CLAUDE, { strictTools: true }, { tools });
    expect(sent.error).toBe(
      'The option "strictTools" cannot be sent: the schema of tool "put" cannot be enforced, because /properties/map may have properties of any name. Change it, or leave out strictTools.',
    );
    expect(sent.body).toBeUndefined();
  });
});

describe("an option that is sent", () => {
  it("is that of the model's service, and not that of others", async () => {
    const providerOptions = {
      anthropic: { serviceTier: "auto" as const, speed: "fast" as const },
      openai: { serviceTier: "flex" as const },
    };
    const { body } = await send(CLAUDE, { providerOptions });
    expect(body).toMatchObject({ service_tier: "auto", speed: "fast" });
    expect((await send(CHAT, { providerOptions })).body).toMatchObject({ service_tier: "flex" });
  });

  it("is every one of the format for a service that is not listed", async () => {
    const model = createModel("openai-completions", "aviary", "owl", {
      baseUrl: "https://a.example",
    });
    const { body } = await send(model, { topK: 3, minP: 0.1, seed: 1, userId: "u" });
    expect(body).toMatchObject({ top_k: 3, min_p: 0.1, seed: 1, user: "u" });
  });

  it("is seen by onPayload", async () => {
    const seen: unknown[] = [];
    await send(CHAT, { topP: 0.5, onPayload: ({ top_p }) => void seen.push(top_p) });
    expect(seen).toEqual([0.5]);
  });

  it("limits calls to one with the choice that the request has", async () => {
    const one = { parallelToolCalls: false };
    const choice = async (options: StreamOptions) =>
      (await send(CLAUDE, options)).body?.["tool_choice"];
    expect(await choice(one)).toEqual({ type: "auto", disable_parallel_tool_use: true });
    expect(await choice({ ...one, toolChoice: "required" })).toEqual({
      type: "any",
      disable_parallel_tool_use: true,
    });
    expect((await send(CLAUDE, one, {})).body?.["tool_choice"]).toBeUndefined();
    expect((await send(CHAT, one)).body).toMatchObject({ parallel_tool_calls: false });
    expect((await send(CHAT, one, {})).body).not.toHaveProperty("parallel_tool_calls");
  });

  it("makes schemas strict in the way of each service", async () => {
    const strictTools = true;
    const openai = {
      type: "object",
      properties: {
        at: { type: "string", description: "(minLength: 1)" },
        deep: { anyOf: [{ type: "boolean" }, { type: "null" }] },
      },
      required: ["at", "deep"],
      additionalProperties: false,
    };
    const claude = {
      ...openai,
      properties: { ...openai.properties, deep: { type: "boolean" } },
      required: ["at"],
    };
    expect((await send(CHAT, { strictTools })).body?.["tools"]).toEqual([
      {
        type: "function",
        function: { name: "look", description: "Looks", parameters: openai, strict: true },
      },
    ]);
    expect((await send(RESPONSES, { strictTools })).body?.["tools"]).toEqual([
      { type: "function", name: "look", description: "Looks", parameters: openai, strict: true },
    ]);
    expect((await send(CLAUDE, { strictTools })).body?.["tools"]).toMatchObject([
      { name: "look", input_schema: claude, strict: true },
    ]);
    expect((await send(BEDROCK, { strictTools })).body?.["toolConfig"]).toMatchObject({
      tools: [{ toolSpec: { name: "look", inputSchema: { json: claude }, strict: true } }],
    });
    expect((await send(GEMINI, { strictTools })).body?.["toolConfig"]).toEqual({
      functionCallingConfig: { mode: "VALIDATED" },
    });
  });
});

describe("cache breakpoints of a caller", () => {
  const conversation = (model: Model): Message[] => {
    const answer = createAnswers(model);
    const call = { type: "toolCall" as const, id: "call_1", name: "look", arguments: {} };
    return [
      createPrompt("One"),
      answer([{ type: "text", text: "Looking." }, call], { stopReason: "toolUse" }),
      createResult("call_1", [{ type: "text", text: "Seen." }]),
      createPrompt("Two"),
    ];
  };

  /** The places of the marks, as paths. */
  function findMarks(value: unknown, mark: string, path = ""): string[] {
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, inner]) =>
      key === mark
        ? [`${path} ${JSON.stringify(inner)}`]
        : findMarks(inner, mark, `${path}/${key}`),
    );
  }

  it.each<[number, string]>([
    [0, "/messages/0/content/0"],
    [1, "/messages/1/content/1"],
    [2, "/messages/2/content/0"],
    [3, "/messages/2/content/1"],
    [-1, "/messages/2/content/1"],
    [-4, "/messages/0/content/0"],
  ])("stand where message %i ends, and nowhere else", async (after, path) => {
    const context = { tools: TOOLS, systemPrompt: "Be brief.", messages: conversation(CLAUDE) };
    const { body } = await send(CLAUDE, { cacheBreakpoints: [{ after }] }, context);
    expect(findMarks(body, "cache_control")).toEqual([`${path} {"type":"ephemeral"}`]);
  });

  it("stand after tools and the system prompt, for as long as they ask", async () => {
    const context = { tools: TOOLS, systemPrompt: "Be brief.", messages: conversation(CLAUDE) };
    const cacheBreakpoints = [{ after: "tools" }, { after: "system", ttl: "1h" }] as const;
    const { body } = await send(CLAUDE, { cacheBreakpoints }, context);
    expect(findMarks(body, "cache_control").toSorted()).toEqual([
      '/system/0 {"type":"ephemeral","ttl":"1h"}',
      '/tools/0 {"type":"ephemeral"}',
    ]);
  });

  it("are points of their own on Amazon Bedrock", async () => {
    const context = { tools: TOOLS, systemPrompt: "Be brief.", messages: conversation(BEDROCK) };
    const cacheBreakpoints = [
      { after: 0 },
      { after: 2 },
      { after: 3 },
      { after: "tools" },
    ] as const;
    const { body } = await send(BEDROCK, { cacheBreakpoints }, context);
    expect(findMarks(body, "cachePoint").toSorted()).toEqual([
      '/messages/0/content/1 {"type":"default"}',
      '/messages/2/content/1 {"type":"default"}',
      '/messages/2/content/3 {"type":"default"}',
      '/toolConfig/tools/1 {"type":"default"}',
    ]);
  });

  it("are marks of parts on OpenRouter", async () => {
    const model = createModel("openai-completions", "openrouter", "anthropic/claude-sonnet-4.5");
    const context = { tools: TOOLS, systemPrompt: "Be brief.", messages: conversation(model) };
    const cacheBreakpoints = [{ after: "system" }, { after: 2 }] as const;
    const { body } = await send(model, { cacheBreakpoints }, context);
    expect(findMarks(body, "cache_control")).toEqual([
      '/messages/0/content/0 {"type":"ephemeral"}',
      '/messages/3/content/0 {"type":"ephemeral"}',
    ]);
  });
});

describe("the probabilities of tokens", () => {
  const token = { token: "Hi", logprob: -0.1 };
  const chunk = (text: string) => ({
    choices: [{ delta: { content: text }, logprobs: { content: [token] } }],
  });
  const bodies: readonly [Model, string, unknown[]][] = [
    [
      CHAT,
      sse(chunk("Hi"), chunk("!"), { choices: [{ delta: {}, finish_reason: "stop" }] }, "[DONE]"),
      [token, token],
    ],
    [
      GEMINI,
      sse({
        candidates: [
          {
            content: { parts: [{ text: "Hi" }] },
            finishReason: "STOP",
            logprobsResult: { chosenCandidates: [token] },
          },
        ],
      }),
      [{ chosenCandidates: [token] }],
    ],
    [
      LOCAL,
      `${JSON.stringify({ message: { content: "Hi" }, logprobs: [token] })}\n${JSON.stringify({ done: true, done_reason: "stop" })}\n`,
      [token],
    ],
    [
      RESPONSES,
      sse(
        {
          type: "response.output_item.added",
          output_index: 0,
          item: { type: "message", id: "msg_1", content: [] },
        },
        { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Hi" },
        {
          type: "response.output_text.done",
          output_index: 0,
          content_index: 0,
          text: "Hi",
          logprobs: [token],
        },
        { type: "response.completed", response: { status: "completed" } },
      ),
      [token],
    ],
  ];

  it.each(bodies)(
    "are in the report of $id if they were requested",
    async (model, body, expected) => {
      const asked = await send(model, { logprobs: 1 }, {}, body);
      expect(asked.error).toBeUndefined();
      expect(asked.message.report?.details?.["logprobs"]).toEqual(expected);
      const plain = await send(model, {}, {}, body);
      expect(plain.message.report?.details?.["logprobs"]).toBeUndefined();
    },
  );
});
