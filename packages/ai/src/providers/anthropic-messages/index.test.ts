import { describe, expect, it } from "vitest";
import type { Message, Model } from "../../messages/messages.ts";
import {
  createAsk,
  fakeService,
  sendRequest,
  type Payloads,
  createAnswers,
  sse,
  TEXT_AND_IMAGE,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import { anthropicMessages } from "./index.ts";
import { formatMessages } from "./request.ts";

const model: Model = {
  id: "claude-sonnet-4-5",
  name: "Sonnet",
  api: "anthropic-messages",
  provider: "anthropic",
  maxTokens: 64_000,
};

const START = {
  type: "message_start",
  message: {
    id: "msg_1",
    model: "claude-sonnet-4-5-20250929",
    content: [],
    usage: { input_tokens: 12, cache_read_input_tokens: 100, output_tokens: 1 },
  },
};
const STOP = { type: "message_stop" };

function stopped(stop_reason: string, extra: object = {}): object {
  return { type: "message_delta", delta: { stop_reason, ...extra }, usage: { output_tokens: 7 } };
}

function block(index: number, content_block: object, ...deltas: object[]): object[] {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

const TEXT = block(0, { type: "text", text: "" }, { type: "text_delta", text: "Hi" });
const WHOLE = [START, ...TEXT, stopped("end_turn"), STOP];

const ask = createAsk(anthropicMessages, model, WHOLE, (payloads: Payloads) => sse(...payloads));

const assistant = createAnswers(model);

describe("reading", () => {
  it("reads text, the id, the served model, usage and the reason", async () => {
    const { message, events } = await ask();
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hi" }],
      responseId: "msg_1",
      servedModel: "claude-sonnet-4-5-20250929",
      stopReason: "stop",
      usage: { input: 12, cacheRead: 100, output: 7 },
      report: { events: 6, stopReason: "end_turn" },
    });
    expect(message.usage.cacheWrite).toBeUndefined();
    expect(listTypes(events)).toBe("start text_start text_delta text_end done");
  });

  it("keeps signatures and hidden thinking byte for byte", async () => {
    const { message } = await ask([
      START,
      ...block(
        0,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "Well" },
        { type: "signature_delta", signature: "c2ln+/=" },
      ),
      ...block(1, { type: "redacted_thinking", data: "aGlkZGVu" }),
      ...block(2, { type: "text", text: "Hi" }),
      stopped("end_turn"),
      STOP,
    ]);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Well", signature: "c2ln+/=" },
      { type: "thinking", thinking: "", signature: "aGlkZGVu", redacted: true },
      { type: "text", text: "Hi" },
    ]);
  });

  it("streams calls with their arguments, several in one response", async () => {
    const { message, events } = await ask([
      START,
      ...block(
        0,
        { type: "tool_use", id: "toolu_1", name: "add", input: {} },
        { type: "input_json_delta", partial_json: "" },
        { type: "input_json_delta", partial_json: '{"a": 1' },
        { type: "input_json_delta", partial_json: ', "b": 2}' },
      ),
      ...block(1, { type: "tool_use", id: "toolu_2", name: "now", input: {} }),
      stopped("tool_use"),
      STOP,
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual([
      { type: "toolCall", id: "toolu_1", name: "add", arguments: { a: 1, b: 2 } },
      { type: "toolCall", id: "toolu_2", name: "now", arguments: {} },
    ]);
    expect(events.filter(({ type }) => type === "toolcall_delta")).toHaveLength(2);
  });

  it("takes the input that comes whole with a call's start", async () => {
    const { message } = await ask([
      START,
      ...block(0, { type: "tool_use", id: "toolu_1", name: "add", input: { a: 1 } }),
      stopped("tool_use"),
      STOP,
    ]);
    expect(message.content).toMatchObject([{ arguments: { a: 1 } }]);
  });

  it("takes the content that comes whole with the message's start", async () => {
    const content = [
      { type: "text", text: "On it" },
      { type: "tool_use", id: "toolu_1", name: "add", input: { a: 1 } },
    ];
    const { message } = await ask([
      { type: "message_start", message: { ...START.message, content, stop_reason: "tool_use" } },
      STOP,
    ]);
    expect(message).toMatchObject({
      stopReason: "toolUse",
      content: [
        { type: "text", text: "On it" },
        { type: "toolCall", name: "add", arguments: { a: 1 } },
      ],
    });
  });

  it("shows what the service ran, and keeps its blocks whole", async () => {
    const result = {
      type: "web_search_tool_result",
      tool_use_id: "srv_1",
      content: [{ url: "https://example.org" }],
    };
    const { message } = await ask([
      START,
      ...block(
        0,
        { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} },
        { type: "input_json_delta", partial_json: '{"query":"x"}' },
      ),
      ...block(1, result),
      ...TEXT.map((event) => ({ ...event, index: 2 })),
      stopped("pause_turn"),
      STOP,
    ]);
    expect(message.stopReason).toBe("pause");
    expect(message.content.slice(0, 2)).toEqual([
      {
        type: "serviceTool",
        id: "srv_1",
        name: "web_search",
        input: { query: "x" },
        raw: { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } },
      },
      {
        type: "serviceTool",
        id: "srv_1",
        name: "web_search",
        output: result.content,
        raw: result,
      },
    ]);
  });

  it("keeps citations, which the service wants back", async () => {
    const citation = { type: "web_search_result_location", encrypted_index: "abc" };
    const { message } = await ask([
      START,
      ...block(
        0,
        { type: "text", text: "", citations: [] },
        { type: "citations_delta", citation },
        { type: "text_delta", text: "Cited" },
      ),
      stopped("end_turn"),
      STOP,
    ]);
    expect(message.content).toEqual([
      { type: "text", text: "Cited", signature: JSON.stringify([citation]) },
    ]);
    expect(formatMessages([createPrompt("?"), message], model)[1]).toMatchObject({
      content: [{ type: "text", text: "Cited", citations: [citation] }],
    });
  });

  it("keeps a compaction block for the next request", async () => {
    const { message } = await ask([
      START,
      ...block(
        0,
        { type: "compaction", content: null },
        { type: "compaction_delta", content: "So far.", encrypted_content: "xyz" },
      ),
      ...TEXT.map((event) => ({ ...event, index: 1 })),
      stopped("end_turn"),
      STOP,
    ]);
    const raw = { type: "compaction", content: "So far.", encrypted_content: "xyz" };
    expect(message.content[0]).toMatchObject({ type: "serviceTool", name: "compaction", raw });
    expect(formatMessages([createPrompt("?"), message], model)[1]).toMatchObject({
      content: [raw, {}],
    });
  });

  it("names the model that took over", async () => {
    const { message } = await ask([
      START,
      ...block(0, { type: "fallback", from: { model: "a" }, to: { model: "claude-other" } }),
      ...TEXT.map((event) => ({ ...event, index: 1 })),
      stopped("end_turn"),
      STOP,
    ]);
    expect(message.servedModel).toBe("claude-other");
  });

  it.each([
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["stop_sequence", "stop"],
    ["something_new", "stop"],
  ])("a response that stopped by %s ends with %s", async (reason, stopReason) => {
    const { message } = await ask([START, ...TEXT, stopped(reason), STOP]);
    expect(message).toMatchObject({ stopReason, report: { stopReason: reason } });
  });

  it("a refusal is an error that keeps the text so far", async () => {
    const details = { stop_details: { type: "refusal", explanation: "Not that." } };
    const { message } = await ask([START, ...TEXT, stopped("refusal", details), STOP]);
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "refused", retryable: false },
      content: [{ text: "Hi" }],
    });
    expect(message.errorMessage).toContain("Not that.");
  });

  it("an error inside the stream is reported by its kind", async () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const { message } = await ask([START, ...TEXT, error]);
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "overloaded", retryable: true },
      content: [{ text: "Hi" }],
    });
  });

  it("passes over what it does not know, and counts it", async () => {
    const { message } = await ask([
      START,
      { type: "moon_phase" },
      { type: "ping" },
      ...block(0, { type: "hologram", data: 1 }),
      ...block(
        1,
        { type: "text", text: "" },
        { type: "smell_delta" },
        { type: "text_delta", text: "Hi" },
      ),
      stopped("end_turn"),
      STOP,
    ]);
    expect(message.stopReason).toBe("stop");
    expect(message.report?.unknown).toEqual({
      "event moon_phase": 1,
      "block hologram": 1,
      "delta smell_delta": 1,
    });
  });

  it.each([
    ["at any event", WHOLE.slice(0, -1)],
    ["by a second beginning", [START, ...TEXT, ...WHOLE]],
    ["by an event that is no JSON", [START, "<html>"]],
  ])("a response that is cut short %s is incomplete, and keeps what came", async (_, payloads) => {
    const { message } = await ask(payloads);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
  });

  it("is done with message_stop, also when the connection stays open", async () => {
    const service = fakeService({ body: sse(...WHOLE), open: true });
    const { message } = await sendRequest(anthropicMessages, model, service);
    expect(message.stopReason).toBe("stop");
  });
});

describe("writing", () => {
  it("asks the right place with the key in its header", async () => {
    const { request } = await ask();
    expect(request.url).toBe("https://api.anthropic.com/v1/messages");
    expect(request.headers).toMatchObject({
      "x-api-key": "test-key",
      "anthropic-version": "2023-06-01",
      "content-type": "application/json",
    });
    expect(request.body).toMatchObject({ model: model.id, stream: true, max_tokens: 32_000 });
  });

  it("sends an account's token the usual way", async () => {
    const { request } = await ask(WHOLE, {}, { apiKey: "sk-ant-oat01-x" });
    expect(request.headers["authorization"]).toBe("Bearer sk-ant-oat01-x");
    expect(request.headers["x-api-key"]).toBeUndefined();
  });

  const call = { type: "toolCall", id: "toolu_1", name: "look", arguments: { at: "x" } } as const;
  const history: Message[] = [
    createPrompt("Look"),
    assistant(
      [
        { type: "thinking", thinking: "Hm", signature: "sig" },
        { type: "thinking", thinking: "", signature: "hidden", redacted: true },
        call,
      ],
      { stopReason: "toolUse" },
    ),
    createResult("toolu_1", TEXT_AND_IMAGE, { isError: true }),
    createPrompt("And?"),
  ];

  it("merges results with what the user says next, images and errors included", () => {
    expect(formatMessages(history, model)).toEqual([
      { role: "user", content: [{ type: "text", text: "Look" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "sig" },
          { type: "redacted_thinking", data: "hidden" },
          { type: "tool_use", id: "toolu_1", name: "look", input: { at: "x" } },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            content: [
              // An error with an image cannot be marked as one.
              { type: "text", text: "(The call failed.)" },
              { type: "text", text: "A dot" },
              {
                type: "image",
                source: { type: "base64", media_type: "image/png", data: "aGk=" },
              },
            ],
          },
          { type: "text", text: "And?" },
        ],
      },
    ]);
  });

  it("puts at most four breakpoints, at places that the next request finds again", async () => {
    const first = await ask(WHOLE, { systemPrompt: "Be brief.", messages: history.slice(0, 3) });
    const second = await ask(WHOLE, { systemPrompt: "Be brief.", messages: history });
    for (const { request } of [first, second]) {
      const marks = JSON.stringify(request.body).split('"cache_control"').length - 1;
      expect(marks).toBeGreaterThan(0);
      expect(marks).toBeLessThanOrEqual(4);
    }
    expect(second.request.body["system"]).toEqual([
      { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
    ]);
  });

  it("keeps the cache for longer, or not at all, if asked", async () => {
    const long = await ask(WHOLE, { systemPrompt: "S" }, { cacheRetention: "long" });
    expect(JSON.stringify(long.request.body)).toContain('"ttl":"1h"');
    const none = await ask(WHOLE, { systemPrompt: "S" }, { cacheRetention: "none" });
    expect(JSON.stringify(none.request.body)).not.toContain("cache_control");
  });

  const tools = [
    { name: "look", description: "Looks", parameters: { type: "object", properties: {} } },
  ];

  it("prices what a cache keeps for an hour", async () => {
    const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
    const usage = {
      input_tokens: 0,
      output_tokens: 0,
      cache_creation_input_tokens: 1_000_000,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1_000_000 },
    };
    const [, ...rest] = WHOLE;
    const begin = { type: "message_start", message: { id: "m1", usage } };
    const { message } = await ask([begin, ...rest], {}, {}, { ...model, price });
    expect(message.usage).toMatchObject({ cacheWrite: 1_000_000, longCacheWrite: 1_000_000 });
    expect(message.usage.cost?.cacheWrite).toBe(6);
  });

  it("names a signature that is not its own", async () => {
    const answer = createAnswers(model)([{ type: "text", text: "Hi", signature: "c2lnbmVk" }]);
    const messages = [createPrompt("Hello"), answer, createPrompt("And?")];
    const service = fakeService("");
    const provider = anthropicMessages({ fetch: service.fetch });
    const stream = await provider.stream(model, { messages }, { apiKey: "k" });
    expect((await stream.result()).errorMessage).toBe(
      "The transcript has a text with a signature that is not JSON, so that it is not from this format. Take the signature out.",
    );
    expect(service.requests).toEqual([]);
  });

  it("adds the caller's betas to its own", async () => {
    const options = {
      thinkingLevel: "high",
      headers: { "Anthropic-Beta": "files-api-2025-04-14, interleaved-thinking-2025-05-14" },
    } as const;
    const at = { ...model, id: "claude-sonnet-4-5", headers: { "anthropic-beta": "context-1m" } };
    const { request } = await ask(WHOLE, { tools }, options, at);
    expect(request.headers["anthropic-beta"]).toBe(
      "interleaved-thinking-2025-05-14,context-1m,files-api-2025-04-14",
    );
  });

  it.each([
    ["claude-opus-4-1", undefined],
    ["claude-sonnet-4-5-20250929", true],
    ["claude-haiku-5-5", true],
    ["other", undefined],
  ])("asks %s for arguments as they are written, if it can", async (id, eager) => {
    const { request } = await ask(WHOLE, { tools }, {}, { ...model, id });
    expect(request.body["tools"]).toEqual([
      {
        name: "look",
        description: "Looks",
        input_schema: { type: "object", properties: {} },
        ...(eager && { eager_input_streaming: true }),
      },
    ]);
  });

  it.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [{ name: "look" }, { type: "tool", name: "look" }],
  ] as const)("says the choice of tools %j", async (toolChoice, tool_choice) => {
    const { request } = await ask(WHOLE, { tools }, { toolChoice });
    expect(request.body).toMatchObject({
      tools: [{ name: "look", description: "Looks", input_schema: { type: "object" } }],
      tool_choice,
    });
  });

  it("declares the tools that the transcript has calls of, where none are given", async () => {
    const { request } = await ask(WHOLE, { messages: history });
    expect(request.body).toMatchObject({
      tools: [{ name: "look" }],
      tool_choice: { type: "none" },
    });
  });

  it.each([
    ["https://gate.example", "https://gate.example/v1/messages"],
    ["https://gate.example/v1/", "https://gate.example/v1/messages"],
    [" https://gate.example/claude ", "https://gate.example/claude/v1/messages"],
    ["https://gate.example/?team=7", "https://gate.example/v1/messages?team=7"],
  ])("finds the service at %s", async (baseUrl, url) => {
    const { request } = await ask(WHOLE, {}, {}, { ...model, baseUrl });
    expect(request.url).toBe(url);
  });

  it("thinks by a budget, with room for the answer beside it", async () => {
    const { request } = await ask(WHOLE, { tools }, { thinkingLevel: "high", maxTokens: 1_000 });
    expect(request.body).toMatchObject({
      thinking: { type: "enabled", budget_tokens: 16_384 },
      max_tokens: 17_408,
    });
    expect(request.headers["anthropic-beta"]).toContain("interleaved-thinking");
    const own = { thinkingLevel: "low", thinkingBudgets: { low: 5_000 } } as const;
    const { request: given } = await ask(WHOLE, {}, own);
    expect(given.body["thinking"]).toEqual({ type: "enabled", budget_tokens: 5_000 });
  });

  it("thinks no more than the model can say in all", async () => {
    const small = { ...model, maxTokens: 8_000 };
    for (const thinkingLevel of ["xhigh", "max"] as const) {
      const { request } = await ask(WHOLE, {}, { thinkingLevel }, small);
      expect(request.body).toMatchObject({ thinking: { budget_tokens: 6_976 }, max_tokens: 8_000 });
    }
    const large = { ...model, maxTokens: 128_000 };
    const { request } = await ask(WHOLE, {}, { thinkingLevel: "max" }, large);
    expect(request.body).toMatchObject({ thinking: { budget_tokens: 65_536 }, max_tokens: 97_536 });
  });

  it.each([
    ["claude-opus-4-6", { type: "adaptive" }, ["high", "high"]],
    ["claude-sonnet-5", { type: "adaptive", display: "summarized" }, ["xhigh", "max"]],
    ["claude-haiku-5-5-20270101", { type: "adaptive", display: "summarized" }, ["xhigh", "max"]],
  ])("thinks by a level with %s", async (id, thinking, efforts) => {
    for (const [index, thinkingLevel] of (["xhigh", "max"] as const).entries()) {
      const { request } = await ask(WHOLE, {}, { thinkingLevel }, { ...model, id });
      expect(request.body).toMatchObject({ thinking, output_config: { effort: efforts[index] } });
    }
  });

  it.each([
    ["claude-opus-4-8", undefined, undefined],
    ["claude-opus-5", { type: "disabled" }, undefined],
    ["claude-sonnet-5", { type: "disabled" }, undefined],
    ["claude-haiku-5-5", { type: "disabled" }, undefined],
    ["claude-sonnet-5-5", { type: "between_tools" }, undefined],
    ["claude-opus-5-5", { type: "adaptive", display: "summarized" }, { effort: "low" }],
    ["claude-fable-5-1", { type: "adaptive", display: "summarized" }, { effort: "low" }],
  ])("asks %s not to think, or to think little", async (id, thinking, output_config) => {
    const { request } = await ask(WHOLE, {}, { temperature: 0.5 }, { ...model, id });
    expect({ thinking: request.body["thinking"] }).toMatchObject({ thinking });
    expect(request.body["output_config"]).toEqual(output_config);
    expect(request.body["temperature"]).toBeUndefined();
  });

  it("forces no call on models that refuse to be forced", async () => {
    const forced = { thinkingLevel: "high", toolChoice: "required" } as const;
    const newest = await ask(WHOLE, { tools }, forced, { ...model, id: "claude-opus-5-5" });
    expect(newest.request.body["tool_choice"]).toBeUndefined();
    expect(newest.request.body["thinking"]).toMatchObject({ type: "adaptive" });
    const newer = await ask(WHOLE, { tools }, forced, { ...model, id: "claude-opus-5" });
    expect(newer.request.body["tool_choice"]).toEqual({ type: "any" });
    expect(newer.request.body["thinking"]).toEqual({ type: "disabled" });
  });

  it("lets the newest models leave out thinking of theirs that does not fit any more", async () => {
    const options = { thinkingLevel: "high" } as const;
    const newest = await ask(WHOLE, {}, options, { ...model, id: "claude-opus-5-5" });
    expect(newest.request.body["thinking"]).toMatchObject({
      type: "adaptive",
      block_binding: { prefix_mismatch_behavior: "drop_block" },
    });
    expect(newest.request.headers["anthropic-beta"]).toBe("thinking-binding-controls-2026-08-01");
    const older = await ask(WHOLE, {}, options, { ...model, id: "claude-opus-5" });
    expect(older.request.body["thinking"]).not.toHaveProperty("block_binding");
    expect(older.request.headers["anthropic-beta"]).toBeUndefined();
  });

  it("leaves thinking out where the service would refuse it", async () => {
    const forced = await ask(
      WHOLE,
      { tools },
      { thinkingLevel: "high", toolChoice: "required", temperature: 1 },
    );
    expect(forced.request.body["thinking"]).toBeUndefined();
    expect(forced.request.body["temperature"]).toBe(1);
    const begun = [
      createPrompt("Look"),
      assistant([call], { stopReason: "toolUse" }),
      ...history.slice(2, 3),
    ];
    const middle = await ask(WHOLE, { messages: begun, tools }, { thinkingLevel: "high" });
    expect(middle.request.body["thinking"]).toBeUndefined();
  });

  it("gives another model's thinking as text, without its signature", () => {
    const [, foreign] = formatMessages(
      [
        createPrompt("?"),
        assistant([{ type: "thinking", thinking: "Hm", signature: "theirs" }], { model: "other" }),
      ],
      model,
    );
    expect(foreign).toMatchObject({ content: [{ type: "text" }] });
    expect(JSON.stringify(foreign)).toContain("Hm");
    expect(JSON.stringify(foreign)).not.toContain("theirs");
  });

  it("marks errors that hold text alone", () => {
    const failed = { ...history[2], content: [{ type: "text", text: "No" }] } as Message;
    const [, , results] = formatMessages([...history.slice(0, 2), failed], model);
    expect(results).toMatchObject({
      content: [{ type: "tool_result", is_error: true, content: [{ text: "No" }] }],
    });
  });

  it("leaves out thinking that nothing came of, and blank texts", () => {
    const cut = assistant([{ type: "thinking", thinking: "Hm", signature: "sig" }]);
    const cited = assistant([
      { type: "thinking", thinking: "Hm", signature: "sig" },
      { type: "text", text: " ", signature: "[]" },
      { type: "text", text: "So" },
      { type: "thinking", thinking: "Hm", signature: "sig" },
    ]);
    expect(
      formatMessages([createPrompt("1"), cut, createPrompt("2"), cited, createPrompt("3")], model),
    ).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "1" },
          { type: "text", text: "2" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "sig" },
          { type: "text", text: "So" },
        ],
      },
      { role: "user", content: [{ type: "text", text: "3" }] },
    ]);
  });

  it("describes as text what the service began to run and never answered", () => {
    const raw = {
      type: "server_tool_use",
      id: "srvtoolu_1",
      name: "web_search",
      input: { q: "x" },
    };
    const cut = assistant([{ type: "serviceTool", id: "srvtoolu_1", name: "web_search", raw }]);
    const [, paused] = formatMessages([createPrompt("?"), cut], model);
    expect(paused).toEqual({ role: "assistant", content: [raw] });
    const [, described] = formatMessages([createPrompt("?"), cut, createPrompt("!")], model);
    expect(described).toEqual({
      role: "assistant",
      content: [{ type: "text", text: '[The service ran its tool web_search with {"q":"x"}]' }],
    });
  });

  it("gives the user the last word where a model takes no other, but for a pause", () => {
    const newer: Model = { ...model, id: "claude-opus-4-6" };
    const by = { model: newer.id };
    const raw = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
    const text = assistant([{ type: "text", text: "So" }], by);
    expect(formatMessages([createPrompt("?"), text], newer).at(-1)).toMatchObject({
      role: "user",
      content: [{ text: "(Go on.)" }],
    });
    const paused = assistant([{ type: "serviceTool", id: "srvtoolu_1", name: "web_search", raw }], {
      ...by,
      stopReason: "pause",
    });
    expect(formatMessages([createPrompt("?"), paused], newer).at(-1)).toMatchObject({
      role: "assistant",
    });
  });

  it("does not begin to think in a turn of the assistant that began without", async () => {
    const begun = [createPrompt("?"), assistant([{ type: "text", text: "So" }])];
    const { request } = await ask(WHOLE, { messages: begun }, { thinkingLevel: "high" });
    expect(request.body["thinking"]).toBeUndefined();
  });

  it("leaves out a blank system prompt", async () => {
    const { request } = await ask(WHOLE, { systemPrompt: " \n" });
    expect(request.body["system"]).toBeUndefined();
  });

  it("declares tools that were called by names that it takes", async () => {
    const odd = assistant([
      { type: "toolCall", id: "1", name: "functions.look", arguments: {} },
      { type: "toolCall", id: "2", name: "", arguments: {} },
    ]);
    const results = ["1", "2"].map((id): Message => ({ ...history[2], toolCallId: id }) as Message);
    const { request } = await ask(WHOLE, { messages: [createPrompt("?"), odd, ...results] });
    expect(request.body["tools"]).toMatchObject([{ name: "functions_look" }, { name: "unnamed" }]);
    expect(JSON.stringify(request.body["messages"])).toContain('"name":"functions_look"');
  });

  it("begins with the user, and ends without white space", () => {
    expect(formatMessages([assistant([{ type: "text", text: "I go on " }])], model)).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ text: "I go on" }] },
    ]);
  });
});
