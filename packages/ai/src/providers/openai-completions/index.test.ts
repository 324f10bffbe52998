import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type {
  AssistantMessage,
  Context,
  Message,
  Model,
  UserContent,
} from "../../messages/messages.ts";
import {
  createAsk,
  fakeService,
  sendRequest,
  IMAGE,
  type Payloads,
  createAnswers,
  sse,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import type { ChatQuirks } from "../../messages/quirks.ts";
import { openaiCompletions } from "./index.ts";
import { formatMessages } from "./request.ts";
import { SERVICES } from "../services/presets.ts";

const model: Model = { id: "small-1", name: "Small", api: "openai-completions", provider: "groq" };
const DONE = "[DONE]";
const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };

function at(provider: string, id = "some-model", more: Partial<Model> = {}): Model {
  return {
    id,
    name: id,
    api: "openai-completions",
    provider,
    baseUrl: "http://x.test/v1",
    ...more,
  };
}

function quirky(quirks: ChatQuirks, more: Partial<Model> = {}): Model {
  return at("my-own", "some-model", { quirks: { ...quirks }, ...more });
}

function chunk(delta: object, finish_reason: string | null = null, more: object = {}): object {
  const choices = [{ index: 0, delta, finish_reason }];
  return { id: "chat_1", object: "chat.completion.chunk", model: "small-1-2025", choices, ...more };
}

function calls(...tool_calls: object[]): object {
  return chunk({ tool_calls });
}

const USED = { id: "chat_1", model: "small-1-2025", choices: [], usage: USAGE };
const WHOLE = [chunk({ role: "assistant", content: "Hi" }), chunk({}, "stop"), USED, DONE];

const ask = createAsk(openaiCompletions, model, WHOLE, (payloads: Payloads) => sse(...payloads));

async function captureBody(
  by: Model,
  context: Partial<Context> = {},
  options: StreamOptions = {},
): Promise<Record<string, unknown>> {
  return (await ask(WHOLE, context, options, by)).request.body;
}

const assistant = createAnswers(model);

function call(id: string, given: Record<string, unknown> = {}): AssistantMessage["content"][0] {
  return { type: "toolCall", id, name: "look", arguments: given };
}

function result(toolCallId: string, content: UserContent[] | string = "seen"): Message {
  const blocks: UserContent[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  return createResult(toolCallId, blocks);
}

const TOOL = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
};

describe("reading", () => {
  it("reads text, the id, the served model, usage and the reason", async () => {
    const { message, events } = await ask();
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hi" }],
      responseId: "chat_1",
      servedModel: "small-1-2025",
      stopReason: "stop",
      usage: { input: 10, output: 4, totalTokens: 14 },
      report: { events: 3, stopReason: "stop", usage: USAGE },
    });
    expect(message.usage.cacheRead).toBeUndefined();
    expect(message.report?.unknown).toBeUndefined();
    expect(listTypes(events)).toBe("start text_start text_delta text_end done");
  });

  it("streams calls with their arguments, several at a time", async () => {
    const { message, events } = await ask([
      calls({ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }),
      calls({ index: 1, id: "b", type: "function", function: { name: "add", arguments: '{"x"' } }),
      calls({ index: 0, function: { arguments: '{"at":' } }),
      calls(
        { index: 1, function: { arguments: ":1}" } },
        { index: 0, function: { arguments: '"gate"}' } },
      ),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual([
      { type: "toolCall", id: "a", name: "look", arguments: { at: "gate" } },
      { type: "toolCall", id: "b", name: "add", arguments: { x: 1 } },
    ]);
    expect(events.filter(({ type }) => type === "toolcall_delta")).toHaveLength(4);
  });

  it("takes calls without an index, by their ids", async () => {
    const { message } = await ask([
      calls(
        { id: "a", function: { name: "look", arguments: '{"at":"1"}' } },
        { id: "b", function: { name: "look", arguments: '{"at":' } },
      ),
      calls({ id: "b", function: { arguments: '"2"' } }),
      calls({ function: { arguments: "}" } }),
      calls({ function: { name: "look", arguments: '{"at":"3"}' } }),
      chunk({}, "tool_calls"),
    ]);
    expect(message.content).toMatchObject([
      { id: "a", arguments: { at: "1" } },
      { id: "b", arguments: { at: "2" } },
      { name: "look", arguments: { at: "3" } },
    ]);
  });

  it("begins another call at a used index for another id or another name", async () => {
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look", arguments: '{"at":"1"}' } }),
      calls({ index: 0, id: "b", function: { name: "look", arguments: '{"at":' } }),
      calls({ index: 0, id: "b", function: { name: "look", arguments: '"2"}' } }),
      calls({ index: 0, function: { name: "add", arguments: "{}" } }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toEqual([
      { type: "toolCall", id: "a", name: "look", arguments: { at: "1" } },
      { type: "toolCall", id: "b", name: "look", arguments: { at: "2" } },
      { type: "toolCall", id: "call_2_chat_1", name: "add", arguments: {} },
    ]);
  });

  it("takes an id and a name that come late", async () => {
    const { message } = await ask([
      calls({ index: 0, function: { arguments: '{"at":' } }),
      calls({ index: 0, function: { name: "look", arguments: '"1"}' } }),
      calls({ index: 0, id: "a" }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toEqual([
      { type: "toolCall", id: "a", name: "look", arguments: { at: "1" } },
    ]);
  });

  it("gives a call an id of its own where the service gives none, or the same twice", async () => {
    const { message } = await ask([
      calls(
        { index: 0, function: { name: "look" } },
        { index: 1, id: "x", function: { name: "add" } },
      ),
      calls({ index: 2, id: "x", function: { name: "sub" } }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    const ids = message.content.map((block) => (block.type === "toolCall" ? block.id : ""));
    expect(ids).toEqual(["call_0_chat_1", "x", "call_2_chat_1"]);
  });

  it("goes on with a call whose id changes from delta to delta", async () => {
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look", arguments: '{"at":' } }),
      calls({ index: 0, id: "b", function: { arguments: '"1' } }),
      calls({ index: 0, id: "c", function: { name: "", arguments: '"}' } }),
      calls({ index: 0, id: "d", function: { name: "look", arguments: "{}" } }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toEqual([
      { type: "toolCall", id: "a", name: "look", arguments: { at: "1" } },
      { type: "toolCall", id: "d", name: "look", arguments: {} },
    ]);
  });

  it.each(["null", "", " ", " null "])("passes over an event of %j", async (nothing) => {
    const { message } = await ask([chunk({ content: "Hi" }), nothing, chunk({}, "stop"), DONE]);
    expect(message).toMatchObject({
      stopReason: "stop",
      content: [{ text: "Hi" }],
      report: { events: 2 },
    });
  });

  it.each([
    ["nothing", []],
    ["null", [null]],
    ["an empty string, then an empty object", ["", "{}"]],
    ["an empty object first", ["{}", ""]],
    ["an object", [{}]],
  ])("takes %s for no arguments", async (_, given) => {
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look" } }),
      ...given.map((value) => calls({ index: 0, function: { arguments: value } })),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toEqual([{ type: "toolCall", id: "a", name: "look", arguments: {} }]);
  });

  it("takes arguments that are an object, and those after an empty one", async () => {
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look", arguments: { at: "1" } } }),
      calls({ index: 1, id: "b", function: { name: "look", arguments: "{}" } }),
      calls({ index: 1, function: { arguments: '{"at":"2"}' } }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toMatchObject([{ arguments: { at: "1" } }, { arguments: { at: "2" } }]);
  });

  it("keeps arguments that do not parse, with the reason", async () => {
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look", arguments: '{"at": ' } }),
      chunk({}, "length"),
      DONE,
    ]);
    expect(message.stopReason).toBe("length");
    expect(message.content).toMatchObject([
      { arguments: {}, rawArguments: '{"at": ', argumentsError: expect.any(String) },
    ]);
  });

  it("takes a call for a call, also where the reason is another", async () => {
    const one = calls({ index: 0, id: "a", function: { name: "look", arguments: "{}" } });
    for (const reason of ["stop", "eos", "function_call"]) {
      const { message } = await ask([one, chunk({}, reason), DONE]);
      expect(message).toMatchObject({ stopReason: "toolUse", report: { stopReason: reason } });
    }
    const { message } = await ask([one, DONE]);
    expect(message.stopReason).toBe("toolUse");
  });

  it("reads calls of the older kind", async () => {
    const { message } = await ask([
      chunk({ function_call: { name: "look", arguments: '{"at":' } }),
      chunk({ function_call: { arguments: '"1"}' } }),
      chunk({}, "function_call"),
      DONE,
    ]);
    expect(message.content).toMatchObject([{ name: "look", arguments: { at: "1" } }]);
  });

  it.each(["reasoning_content", "reasoning", "reasoning_text"])(
    "reads thinking in %s",
    async (field) => {
      const { message } = await ask([
        chunk({ role: "assistant", content: "", [field]: "Hm" }),
        chunk({ [field]: "m." }),
        chunk({ content: "Hi", [field]: null }),
        chunk({}, "stop"),
        DONE,
      ]);
      expect(message.content).toEqual([
        { type: "thinking", thinking: "Hmm." },
        { type: "text", text: "Hi" },
      ]);
    },
  );

  it("reads a thought once that comes under two names", async () => {
    const { message } = await ask([
      chunk({ reasoning: "Hm", reasoning_content: "Hm" }),
      chunk({ content: "Hi" }, "stop"),
      DONE,
    ]);
    expect(message.content).toMatchObject([{ thinking: "Hm" }, { text: "Hi" }]);
  });

  it("reads content in parts", async () => {
    const { message } = await ask([
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }] }] }),
      chunk({
        content: [
          { type: "thinking", thinking: "m" },
          { type: "text", text: "Hi" },
        ],
      }),
      chunk({ content: [{ type: "reference", reference_ids: [1] }] }),
      chunk({ content: "!" }, "stop"),
      DONE,
    ]);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Hmm" },
      { type: "text", text: "Hi!" },
    ]);
    expect(message.report?.unknown).toEqual({ "part reference": 1 });
  });

  it("keeps the details of thinking as its signature, whole again", async () => {
    const text = (more: object): object =>
      chunk({ reasoning_details: [{ type: "reasoning.text", index: 0, ...more }] });
    const { message } = await ask([
      text({ text: "Hm", signature: null }),
      text({ text: "m." }),
      text({ signature: "c2ln+/=" }),
      chunk({ reasoning_details: [{ type: "reasoning.encrypted", index: 0, data: "c2VhbA==" }] }),
      chunk({ content: "Hi" }),
      chunk({ reasoning_details: [{ type: "reasoning.encrypted", index: 1, data: "bGF0ZQ==" }] }),
      chunk({}, "stop"),
      DONE,
    ]);
    expect(message.content).toEqual([
      {
        type: "thinking",
        thinking: "Hmm.",
        signature: JSON.stringify([
          { type: "reasoning.text", index: 0, text: "Hmm.", signature: "c2ln+/=" },
          { type: "reasoning.encrypted", index: 0, data: "c2VhbA==" },
        ]),
      },
      { type: "text", text: "Hi" },
      {
        type: "thinking",
        thinking: "",
        redacted: true,
        signature: JSON.stringify([{ type: "reasoning.encrypted", index: 1, data: "bGF0ZQ==" }]),
      },
    ]);
    expect(message.report?.details).toMatchObject({ reasoningDetails: 5 });
  });

  it("shows a refusal as text, and reports it", async () => {
    const { message } = await ask([
      chunk({ refusal: "I will " }),
      chunk({ refusal: "not." }),
      chunk({}, "stop"),
      DONE,
    ]);
    expect(message).toMatchObject({
      stopReason: "stop",
      content: [{ type: "text", text: "I will not." }],
      report: { details: { refusal: "I will not." } },
    });
  });

  it.each(["content_filter", "sensitive"])(
    "fails as refused on %s, with the content kept",
    async (reason) => {
      const { message } = await ask([chunk({ content: "Well" }), chunk({}, reason), USED, DONE]);
      expect(message).toMatchObject({
        stopReason: "error",
        failure: { kind: "refused", retryable: false },
        content: [{ type: "text", text: "Well" }],
        usage: { output: 4 },
        report: { stopReason: reason },
      });
    },
  );

  it.each([
    ["error", "unknown"],
    ["network_error", "unknown"],
    ["insufficient_system_resource", "overloaded"],
  ])("fails on the reason %s, to be tried again", async (reason, kind) => {
    const { message } = await ask([chunk({ content: "We" }, reason), DONE]);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind, retryable: true } });
  });

  it.each(["length", "max_tokens", "model_length"])("knows %s for length", async (reason) => {
    const { message } = await ask([chunk({ content: "We" }, reason), DONE]);
    expect(message.stopReason).toBe("length");
  });

  it("fails on an error within, and keeps what came with it", async () => {
    const { message } = await ask([
      chunk({ content: "We" }, "length"),
      chunk({ content: "" }, null, {
        error: { code: 502, message: "Upstream broke" },
        usage: USAGE,
      }),
      DONE,
    ]);
    expect(message).toMatchObject({
      stopReason: "error",
      errorMessage: expect.stringContaining("Upstream broke"),
      content: [{ type: "text", text: "We" }],
      usage: { output: 4 },
      report: { stopReason: "length", usage: USAGE },
    });
  });

  it("waits for the figures that follow an error", async () => {
    const failed = { error: { message: "Upstream broke", type: "server_error" } };
    const { message } = await ask([chunk({ content: "We" }), failed, USED, DONE]);
    expect(message).toMatchObject({
      stopReason: "error",
      errorMessage: expect.stringContaining("Upstream broke"),
      report: { usage: USAGE },
    });
  });

  it.each([
    ["at the end of the body", sse(chunk({ content: "We" }), { error: { message: "Broke" } })],
    ["as an event", `event: error\ndata: {"message":"Broke"}\n\n`],
    ["as an object of its own", sse({ object: "error", message: "Broke", code: 500 }, DONE)],
    [
      "in a choice",
      sse({ choices: [{ index: 0, finish_reason: "error", error: { message: "Broke" } }] }, DONE),
    ],
  ])("fails on an error %s", async (_, body) => {
    const { message } = await sendRequest(openaiCompletions, model, fakeService(body));
    expect(message).toMatchObject({
      stopReason: "error",
      errorMessage: expect.stringContaining("Broke"),
    });
  });

  it("is whole at the end of the body once it knows why the model stopped", async () => {
    const { message } = await ask([chunk({ content: "Hi" }), chunk({}, "stop")]);
    expect(message.stopReason).toBe("stop");
  });

  it("is whole with the last mark, also without a reason or a role", async () => {
    const { message } = await ask([chunk({ content: "Hi" }), DONE]);
    expect(message).toMatchObject({ stopReason: "stop", content: [{ text: "Hi" }] });
    expect(message.report?.stopReason).toBeUndefined();
  });

  it("is whole at the mark, while the connection stays open", async () => {
    const service = fakeService({ body: sse(...WHOLE), open: true });
    const { message } = await sendRequest(openaiCompletions, model, service);
    expect(message.stopReason).toBe("stop");
  });

  it("is incomplete wherever it ends before that", async () => {
    const payloads = [
      chunk({ role: "assistant", content: "" }),
      chunk({ reasoning: "Hm" }),
      chunk({ content: "Hi" }),
      calls({ index: 0, id: "a", function: { name: "look", arguments: '{"at":"1"}' } }),
    ];
    for (let length = 0; length <= payloads.length; length++) {
      const { message } = await ask(payloads.slice(0, length));
      expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
    }
  });

  it("is incomplete where more follows the reason and no end", async () => {
    const { message } = await ask([chunk({ content: "Hi" }, "stop"), chunk({ content: " there" })]);
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "incomplete" },
      content: [{ text: "Hi there" }],
    });
  });

  it("reads choice 0 alone, and reports how many there were", async () => {
    const choices = (text: string): object[] => [
      { index: 1, delta: { content: "Other" }, finish_reason: null },
      { index: 0, delta: { content: text }, finish_reason: null },
    ];
    const { message } = await ask([
      { choices: choices("Hi") },
      { choices: [{ index: 1, delta: {}, finish_reason: "length" }] },
      chunk({}, "stop"),
      DONE,
    ]);
    expect(message).toMatchObject({
      content: [{ text: "Hi" }],
      stopReason: "stop",
      report: { stopReason: "stop", details: { choices: 2 } },
    });
  });

  it("reads text completions", async () => {
    const text = (piece: string, finish_reason: string | null = null): object => ({
      id: "cmpl_1",
      object: "text_completion",
      choices: [{ index: 0, text: piece, finish_reason }],
    });
    const { message } = await ask([text("Once"), text(" upon", "length"), DONE]);
    expect(message).toMatchObject({ content: [{ text: "Once upon" }], stopReason: "length" });
  });

  it("does not read a text twice that comes beside its delta", async () => {
    const choice = { index: 0, text: "Hi", delta: { content: "Hi" }, message: { content: "Hi" } };
    const { message } = await ask([{ choices: [choice] }, chunk({}, "stop"), DONE]);
    expect(message.content).toMatchObject([{ text: "Hi" }]);
  });

  it("takes a message that comes in one piece", async () => {
    const message = { role: "assistant", content: "Hi" };
    const heard = await ask([{ choices: [{ index: 0, message, finish_reason: "stop" }] }, DONE]);
    expect(heard.message).toMatchObject({ content: [{ text: "Hi" }], stopReason: "stop" });
  });

  it("passes over what it does not know, and counts it", async () => {
    const { message } = await ask([
      { id: "", model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      { type: "ping", cost: 1 },
      chunk({ content: "Hi", channel: "final" }, null, { obfuscation: "xyz" }),
      chunk({}, "stop"),
      DONE,
    ]);
    expect(message).toMatchObject({
      content: [{ text: "Hi" }],
      responseId: "chat_1",
      servedModel: "small-1-2025",
      report: {
        events: 4,
        unknown: { "event ping": 1, "field channel": 1 },
        details: { prompt_filter_results: [{ prompt_index: 0 }] },
      },
    });
  });

  it("keeps the first id where each chunk has another", async () => {
    const { message } = await ask([
      chunk({ content: "Hi" }),
      chunk({}, "stop", { id: "stub" }),
      DONE,
    ]);
    expect(message.responseId).toBe("chat_1");
  });

  it("shows tools that the service ran, and never as calls", async () => {
    const tool = { index: 0, type: "search", arguments: '{"query":"x"}' };
    const { message } = await ask([
      chunk({ executed_tools: [{ ...tool, search_results: {} }] }),
      chunk({ executed_tools: [{ index: 0, output: "found" }] }),
      chunk({ executed_tools: [{ ...tool, index: 1 }] }),
      chunk({ content: "Hi" }, "stop"),
      DONE,
    ]);
    expect(message.stopReason).toBe("stop");
    expect(message.content).toEqual([
      {
        type: "serviceTool",
        id: "search_0",
        name: "search",
        input: { query: "x" },
        output: "found",
        raw: { ...tool, search_results: {}, output: "found" },
      },
      { type: "text", text: "Hi" },
      {
        type: "serviceTool",
        id: "search_1",
        name: "search",
        input: { query: "x" },
        raw: { ...tool, index: 1 },
      },
    ]);
  });

  it("keeps annotations and images", async () => {
    const url = "data:image/png;base64,aGk=";
    const { message } = await ask([
      chunk({ content: "Hi", annotations: [{ n: 1 }] }),
      chunk({ annotations: [{ n: 2 }], images: [{ type: "image_url", image_url: { url } }] }),
      chunk({ images: [{ image_url: { url: "https://example.org/a.png" } }] }, "stop"),
      DONE,
    ]);
    expect(message.content).toMatchObject([{ text: "Hi" }, IMAGE]);
    expect(message.report).toMatchObject({
      details: { annotations: [{ n: 1 }, { n: 2 }] },
      unknown: { image: 1 },
    });
  });

  it("keeps what a service behind a gateway wants back with a call", async () => {
    const extra_content = { google: { thought_signature: "c2ln" } };
    const { message } = await ask([
      calls({ index: 0, id: "a", function: { name: "look", arguments: "{}" }, extra_content }),
      chunk({}, "tool_calls"),
      DONE,
    ]);
    expect(message.content).toMatchObject([{ signature: JSON.stringify(extra_content) }]);
    expect(formatMessages([message], model)).toMatchObject([
      { tool_calls: [{ id: "a", extra_content }] },
    ]);
  });
});

describe("usage", () => {
  it("takes what came last", async () => {
    const later = { ...USAGE, completion_tokens: 9, total_tokens: 19 };
    const { message } = await ask([
      chunk({ content: "Hi" }, "stop", { usage: USAGE }),
      { choices: [], usage: later },
      DONE,
    ]);
    expect(message).toMatchObject({ usage: { output: 9 }, report: { usage: later } });
  });

  it("finds it in a service's own place", async () => {
    const own = await ask([chunk({ content: "Hi" }, "stop", { x_groq: { usage: USAGE } }), DONE]);
    expect(own.message.usage).toMatchObject({ input: 10, output: 4 });
    const choices = [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop", usage: USAGE }];
    const inChoice = await ask([{ choices }, DONE]);
    expect(inChoice.message.usage).toMatchObject({ input: 10, output: 4 });
  });

  it.each([
    ["details", { prompt_tokens_details: { cached_tokens: 6, cache_write_tokens: 1 } }],
    ["a field of its own", { cached_tokens: 6, cache_creation_input_tokens: 1 }],
    ["hits", { prompt_cache_hit_tokens: 6, prompt_tokens_details: { cache_write_tokens: 1 } }],
  ])("takes cached tokens out of the input: %s", async (_, more) => {
    const { message } = await ask([
      chunk({ content: "Hi" }, "stop", { usage: { ...USAGE, ...more } }),
      DONE,
    ]);
    expect(message.usage).toMatchObject({ input: 3, cacheRead: 6, cacheWrite: 1, output: 4 });
  });

  it("counts thinking with the output, whichever way the service does", async () => {
    const details = { completion_tokens_details: { reasoning_tokens: 3 } };
    const within = await ask([
      chunk({ content: "Hi" }, "stop", { usage: { ...USAGE, ...details } }),
      DONE,
    ]);
    expect(within.message.usage).toMatchObject({ output: 4, reasoning: 3 });
    const beside = { ...USAGE, ...details, total_tokens: 17 };
    const { message } = await ask([chunk({ content: "Hi" }, "stop", { usage: beside }), DONE]);
    expect(message.usage).toMatchObject({ output: 7, reasoning: 3 });
    const more = { ...USAGE, completion_tokens_details: { reasoning_tokens: 5 } };
    const unfit = await ask([chunk({ content: "Hi" }, "stop", { usage: more }), DONE]);
    expect(unfit.message.usage).toMatchObject({ output: 9, reasoning: 5 });
  });

  it("takes the cost that a gateway reports", async () => {
    const usage = { ...USAGE, cost: 0.25 };
    const chunks = [chunk({ content: "Hi" }, "stop", { usage }), DONE];
    const { message } = await ask(chunks, {}, {}, at("openrouter"));
    expect(message.usage.cost).toEqual({ total: 0.25 });
    expect((await ask(chunks)).message.usage.cost).toBeUndefined();
  });

  it("is unknown where the service says nothing", async () => {
    const { message } = await ask([chunk({ content: "Hi" }, "stop"), DONE]);
    expect(message.usage).toEqual({});
    expect(message.report?.usage).toBeUndefined();
  });
});

describe("requests", () => {
  it("asks for a stream with usage, with the key as a bearer", async () => {
    const { request } = await ask(
      WHOLE,
      { systemPrompt: "Be brief." },
      { maxTokens: 5, temperature: 0 },
    );
    expect(request.url).toBe("https://api.groq.com/openai/v1/chat/completions");
    expect(request.headers["authorization"]).toBe("Bearer test-key");
    expect(request.body).toEqual({
      model: "small-1",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      max_completion_tokens: 5,
      temperature: 0,
    });
  });

  it("keeps a query of the address at its end", async () => {
    const azure = at("azure-openai", "gpt-4o", {
      baseUrl: "https://r.openai.azure.test/openai/deployments/d?api-version=2025-01-01",
    });
    const { request } = await ask(WHOLE, {}, {}, azure);
    expect(request.url).toBe(
      "https://r.openai.azure.test/openai/deployments/d/chat/completions?api-version=2025-01-01",
    );
    expect(request.headers["api-key"]).toBe("test-key");
  });

  it("writes calls, results and images", async () => {
    const messages: Message[] = [
      { role: "user", content: [{ type: "text", text: "See" }, IMAGE], timestamp: 0 },
      assistant([{ type: "text", text: "On it" }, call("a", { at: "1" }), call("b")]),
      result("a", [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
      ]),
      result("b", [IMAGE]),
      createPrompt("And?"),
    ];
    const image_url = { url: "data:image/png;base64,aGk=" };
    expect(formatMessages(messages, model)).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "See" },
          { type: "image_url", image_url },
        ],
      },
      {
        role: "assistant",
        content: "On it",
        tool_calls: [
          { id: "a", type: "function", function: { name: "look", arguments: '{"at":"1"}' } },
          { id: "b", type: "function", function: { name: "look", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "one\ntwo" },
      { role: "tool", tool_call_id: "b", content: "(See the images in the next message.)" },
      {
        role: "user",
        content: [
          { type: "text", text: "[Images that look gave]" },
          { type: "image_url", image_url },
        ],
      },
      { role: "user", content: "And?" },
    ]);
  });

  it("leaves out what would be empty", () => {
    const messages = [
      createPrompt("Hello"),
      assistant([{ type: "thinking", thinking: "Hm" }]),
      assistant([{ type: "text", text: "  " }, call("a")]),
      result("a", []),
    ];
    expect(formatMessages(messages, model)).toMatchObject([
      { role: "user" },
      { role: "assistant", content: null, tool_calls: [{ id: "a" }] },
      { role: "tool", content: "(no output)" },
    ]);
  });

  it("keeps the beginning the same when messages are added", () => {
    const messages: Message[] = [
      createPrompt("Hello"),
      createAnswers(at("openai"))([{ type: "thinking", thinking: "Hm" }, call("call_1|fc_2")]),
      result("call_1|fc_2", [IMAGE]),
      assistant([{ type: "text", text: "Done" }]),
      createPrompt("Thanks"),
    ];
    for (const { id, api } of SERVICES) {
      if (api !== model.api) continue;
      const whole = formatMessages(messages, at(id)).map((message) => JSON.stringify(message));
      for (const length of [1, 4]) {
        const part = formatMessages(messages.slice(0, length), at(id))
          .map((message) => JSON.stringify(message))
          // Said only as long as the user has answer nothing.
          .filter((message) => !message.includes("(Go on.)"));
        expect(whole.slice(0, part.length)).toEqual(part);
      }
    }
  });

  it("gives the user the last word where a service takes no other", () => {
    const messages = [createPrompt("Hello"), assistant([{ type: "text", text: "Well" }])];
    for (const id of ["mistral", "perplexity"]) {
      expect(formatMessages(messages, at(id)).at(-1)).toEqual({
        role: "user",
        content: "(Go on.)",
      });
    }
    const claude = { ...at("openrouter"), id: "anthropic/claude-opus-4.6" };
    expect(formatMessages(messages, claude).at(-1)).toMatchObject({ role: "user" });
    const older = { ...at("openrouter"), id: "anthropic/claude-sonnet-4-20250514" };
    expect(formatMessages(messages, older).at(-1)).toMatchObject({ role: "assistant" });
  });

  it("writes tools, and how they may be chosen", async () => {
    const tools = [TOOL];
    const body = await captureBody(model, { tools });
    expect(body["tools"]).toEqual([{ type: "function", function: TOOL }]);
    expect(body["tool_choice"]).toBeUndefined();
    const choices: [NonNullable<StreamOptions["toolChoice"]>, unknown][] = [
      ["auto", "auto"],
      ["none", "none"],
      ["required", "required"],
      [{ name: "look" }, { type: "function", function: { name: "look" } }],
    ];
    for (const [toolChoice, written] of choices) {
      const chosen = await captureBody(model, { tools }, { toolChoice });
      expect(chosen["tool_choice"]).toEqual(written);
    }
  });

  it("declares tools that only the transcript has, as not to be used", async () => {
    const messages = [createPrompt("Hello"), assistant([call("a")]), result("a")];
    const body = await captureBody(model, { messages });
    expect(body).toMatchObject({ tools: [{ function: { name: "look" } }], tool_choice: "none" });
  });

  it("gives thinking with details back to the model that made it, and only to that", () => {
    const details = [{ type: "reasoning.text", index: 0, text: "Hm", signature: "c2ln" }];
    const router = at("openrouter", "vendor/deep");
    const answer = createAnswers(router)([
      { type: "thinking", thinking: "Hm", signature: JSON.stringify(details) },
      { type: "text", text: "Hi" },
    ]);
    expect(formatMessages([answer], router)).toEqual([
      { role: "assistant", content: "Hi", reasoning_details: details },
    ]);
    expect(formatMessages([answer], at("openrouter", "vendor/other"))).toEqual([
      { role: "assistant", content: "[thinking]\nHm\n[/thinking]\n\nHi" },
    ]);
  });

  it("joins a model's own text as it was", () => {
    const answer = assistant([
      { type: "text", text: "One " },
      { type: "thinking", thinking: "Hm" },
      { type: "text", text: "two" },
    ]);
    expect(formatMessages([answer], model)).toEqual([
      { role: "assistant", content: "One two", reasoning: "Hm" },
    ]);
  });
});

describe("quirks", () => {
  it("one that there is not is an error before the request", async () => {
    const quirks = { maxTokenField: "max_tokens" } as never;
    const stream = await openaiCompletions({ fetch: () => expect.unreachable() }).stream(
      at("groq", "small-1", { quirks }),
      { messages: [{ role: "user", content: "Hi", timestamp: 0 }] },
      { apiKey: "k" },
    );
    expect(await stream.result()).toMatchObject({
      stopReason: "error",
      errorMessage: expect.stringContaining(
        'There is no quirk "maxTokenField": did you mean "maxTokensField"?',
      ),
    });
  });

  it("a model's go before its service's", async () => {
    const body = await captureBody(
      at("groq", "small-1", { quirks: { maxTokensField: "max_tokens" } }),
      {},
      { maxTokens: 5 },
    );
    expect(body["max_tokens"]).toBe(5);
    expect(body["max_completion_tokens"]).toBeUndefined();
  });

  it("hold for some models of a service", async () => {
    const quirks: ChatQuirks = { byModel: [{ ids: "^some", quirks: { systemRole: "developer" } }] };
    const body = await captureBody(quirky(quirks), { systemPrompt: "Be brief." });
    expect(body["messages"]).toMatchObject([{ role: "developer" }, { role: "user" }]);
  });

  it("OpenAI's newer models take another limit and no temperature", async () => {
    const options = { maxTokens: 5, temperature: 1 };
    for (const id of ["gpt-5.2", "o3", "openai/gpt-5-mini"]) {
      const body = await captureBody(at("my-own", id), {}, options);
      expect(body).toMatchObject({ max_completion_tokens: 5 });
      expect(body["temperature"]).toBeUndefined();
    }
    expect(await captureBody(at("my-own", "gpt-oss-20b"), {}, options)).toMatchObject({
      max_tokens: 5,
      temperature: 1,
    });
  });

  it("asks for room where a service gives little", async () => {
    const known = { maxTokens: 100_000 };
    expect(await captureBody(at("fireworks", "x", known))).toMatchObject({ max_tokens: 32_000 });
    expect((await captureBody(at("groq", "x", known)))["max_completion_tokens"]).toBeUndefined();
  });

  it.each<[NonNullable<ChatQuirks["reasoning"]>, ChatQuirks, object, object]>([
    ["effort", {}, { reasoning_effort: "high" }, { reasoning_effort: "none" }],
    ["openrouter", {}, { reasoning: { effort: "high" } }, { reasoning: { effort: "none" } }],
    [
      "thinking",
      { thinkingExtra: { keep: "all" } },
      { thinking: { type: "enabled", keep: "all" } },
      { thinking: { type: "disabled" } },
    ],
    [
      "thinking",
      { efforts: { high: "max" } },
      { thinking: { type: "enabled" }, reasoning_effort: "max" },
      { thinking: { type: "disabled" } },
    ],
    ["enable_thinking", {}, { enable_thinking: true }, { enable_thinking: false }],
    [
      "template",
      {},
      { chat_template_kwargs: { enable_thinking: true } },
      { chat_template_kwargs: { enable_thinking: false } },
    ],
    ["none", {}, {}, {}],
  ])("says a thinking level by %s", async (reasoning, more, high, off) => {
    const thinks = { reasoning: true };
    const plain = await captureBody(quirky({ reasoning: "none" }));
    const deep = quirky({ reasoning, thinkingOff: true, ...more }, thinks);
    expect(await captureBody(deep, {}, { thinkingLevel: "high" })).toEqual({ ...plain, ...high });
    expect(await captureBody(deep)).toEqual({ ...plain, ...off });
    const always = quirky({ reasoning, ...more }, thinks);
    expect(await captureBody(always, {}, { thinkingLevel: "off" })).toEqual(plain);
    const never = quirky({ reasoning, ...more }, { reasoning: false });
    expect(await captureBody(never, {}, { thinkingLevel: "high" })).toEqual(plain);
  });

  it("says a level in the words that a service has", async () => {
    const words = async (by: Model): Promise<unknown[]> =>
      Promise.all(
        (["minimal", "low", "medium", "high", "xhigh", "max"] as const).map(
          async (thinkingLevel) =>
            (await captureBody(by, {}, { thinkingLevel }))["reasoning_effort"],
        ),
      );
    expect(await words(at("my-own"))).toEqual(["low", "low", "medium", "high", "high", "high"]);
    expect(await words(at("deepseek"))).toEqual(["low", "low", "high", "high", "max", "max"]);
    const known: Partial<Model> = { reasoning: true, thinkingLevels: ["minimal", "low", "high"] };
    expect(await words({ ...at("deepseek"), ...known })).toEqual([
      "minimal",
      "low",
      "high",
      "high",
      "high",
      "high",
    ]);
    const own: Partial<Model> = { thinkingLevels: ["off", "high"], efforts: { high: "default" } };
    expect(await words({ ...at("groq"), ...own })).toEqual(Array(6).fill("default"));
  });

  it("switches thinking on and off where a service has a switch", async () => {
    const hybrid: Model = {
      ...at("together"),
      reasoning: true,
      thinkingLevels: ["off", "high"],
      efforts: { high: "" },
    };
    const on = await captureBody(hybrid, {}, { thinkingLevel: "low" });
    expect(on).toMatchObject({ reasoning: { enabled: true } });
    expect(on).not.toHaveProperty("reasoning_effort");
    expect(await captureBody(hybrid)).toMatchObject({ reasoning: { enabled: false } });
    const always: Model = { ...at("together"), reasoning: true, thinkingLevels: ["low"] };
    const asked = await captureBody(always, {}, { thinkingLevel: "low" });
    expect(asked).toMatchObject({ reasoning_effort: "low" });
    expect(asked).not.toHaveProperty("reasoning");
  });

  it("says a budget where a service takes one", async () => {
    const options: StreamOptions = { thinkingLevel: "low", thinkingBudgets: { low: 900 } };
    expect(await captureBody(at("openrouter"), {}, options)).toMatchObject({
      reasoning: { max_tokens: 900 },
    });
    expect(await captureBody(quirky({ reasoning: "enable_thinking" }), {}, options)).toMatchObject({
      enable_thinking: true,
      thinking_budget: 900,
    });
  });

  it.each<[NonNullable<ChatQuirks["reasoningBack"]>, object]>([
    ["reasoning_content", { content: "Hi", reasoning_content: "Hm" }],
    ["reasoning", { content: "Hi", reasoning: "Hm" }],
    ["reasoning_details", { content: "Hi", reasoning: "Hm" }],
    [
      "parts",
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "Hm" }] },
          { type: "text", text: "Hi" },
        ],
      },
    ],
    ["none", { content: "Hi" }],
  ])("sends thinking back as %s", (reasoningBack, written) => {
    const by = quirky({ reasoningBack });
    const answer = createAnswers(by)([
      { type: "thinking", thinking: "Hm" },
      { type: "text", text: "Hi" },
    ]);
    expect(formatMessages([answer], by)).toEqual([{ role: "assistant", ...written }]);
  });

  it("fills in thinking where a service insists on it", () => {
    expect(formatMessages([assistant([call("a")]), result("a")], at("moonshot"))).toMatchObject([
      { role: "assistant", reasoning_content: " " },
      { role: "tool", name: "look" },
    ]);
  });

  it("Mistral: short ids, a word between results and the user, its own choice", async () => {
    const mistral = at("mistral");
    const messages = [
      createPrompt("Hello"),
      assistant([call("call_1"), call("abc123XYZ")]),
      result("call_1"),
      result("abc123XYZ"),
      createPrompt("And?"),
    ];
    const sent = formatMessages(messages, mistral);
    expect(sent).toMatchObject([
      { role: "user" },
      { role: "assistant", content: "", tool_calls: [{}, { id: "abc123XYZ" }] },
      { role: "tool", name: "look" },
      { role: "tool", tool_call_id: "abc123XYZ" },
      { role: "assistant", content: "(I have the results.)" },
      { role: "user", content: "And?" },
    ]);
    const id = /"tool_call_id":"([a-zA-Z0-9]{9})"/.exec(JSON.stringify(sent[2]))?.[1];
    expect(sent[1]).toMatchObject({ tool_calls: [{ id }, {}] });
    const body = await captureBody(mistral, { tools: [TOOL] }, { toolChoice: "required" });
    expect(body["tool_choice"]).toBe("any");
    expect(body["stream_options"]).toBeUndefined();
  });

  it("takes the tools away where a service has no way to forbid them", async () => {
    const forced = await captureBody(at("zai"), { tools: [TOOL] }, { toolChoice: "required" });
    expect(forced["tools"]).toBeDefined();
    expect(forced["tool_choice"]).toBeUndefined();
    const none = await captureBody(at("zai"), { tools: [TOOL] }, { toolChoice: "none" });
    expect(none["tools"]).toBeUndefined();
  });

  it("Perplexity: turns are taken, and tools sent as text", async () => {
    const messages = [
      assistant([{ type: "text", text: "Welcome" }]),
      createPrompt("Hello"),
      createPrompt("there"),
      assistant([{ type: "text", text: "On it" }, call("a", { at: "1" })]),
      result("a"),
      createPrompt("And?"),
    ];
    const body = await captureBody(at("perplexity"), { messages, tools: [TOOL] });
    expect(body["tools"]).toBeUndefined();
    expect(body["messages"]).toEqual([
      { role: "user", content: "(The conversation goes on.)" },
      { role: "assistant", content: "Welcome" },
      { role: "user", content: "Hello\n\nthere" },
      { role: "assistant", content: 'On it\n\n[Called look with {"at":"1"}]' },
      { role: "user", content: "[What look answered]\n\nseen\n\nAnd?" },
    ]);
  });

  it("Claude behind a gateway: at most three breakpoints, where the model's turn begins", async () => {
    const claude = at("openrouter", "anthropic/claude-sonnet-4.5");
    const messages = [
      createPrompt("One"),
      assistant([call("a"), call("b")]),
      result("a"),
      result("b"),
      assistant([call("c")]),
      result("c"),
    ];
    const context = { systemPrompt: "Be brief.", messages };
    const marked = async (options: StreamOptions): Promise<string[]> => {
      const { messages: sent } = await captureBody(claude, context, options);
      const found = Array.isArray(sent) ? sent : [];
      return found.map(
        (message) => /"cache_control":(\{[^}]*\})/.exec(JSON.stringify(message))?.[1] ?? "",
      );
    };
    const mark = '{"type":"ephemeral"}';
    expect(await marked({})).toEqual([mark, "", "", "", mark, "", mark]);
    expect(await marked({ cacheRetention: "none" })).toEqual(Array(7).fill(""));
    expect((await marked({ cacheRetention: "long" }))[0]).toBe('{"type":"ephemeral","ttl":"1h"}');
    const other = await captureBody(at("openrouter", "vendor/deep"), context);
    expect(JSON.stringify(other)).not.toContain("cache_control");
  });

  it("groups requests of a conversation for the service's cache", async () => {
    const openai = at("openai", "gpt-5.2");
    const sessionId = "s".repeat(80);
    expect(await captureBody(openai, {}, { sessionId, cacheRetention: "long" })).toMatchObject({
      prompt_cache_key: "s".repeat(64),
      prompt_cache_retention: "24h",
    });
    const none = await captureBody(openai, {}, { sessionId, cacheRetention: "none" });
    expect(none["prompt_cache_key"]).toBeUndefined();
    const { request } = await ask(WHOLE, {}, { sessionId: "s1" }, at("xai"));
    expect(request.headers["x-grok-conv-id"]).toBe("s1");
    const odd = await ask(WHOLE, {}, { sessionId: "s ü" }, at("xai"));
    expect(odd.request.headers["x-grok-conv-id"]).toBeUndefined();
  });

  it("keeps ids that carry a meaning for their model", () => {
    const messages = [assistant([call("functions.look:0")]), result("functions.look:0")];
    expect(formatMessages(messages, model)).toMatchObject([
      { tool_calls: [{ id: "functions.look:0" }] },
      { tool_call_id: "functions.look:0" },
    ]);
    expect(
      JSON.stringify(formatMessages(messages, at("openrouter", "anthropic/claude-x"))),
    ).not.toContain("functions.look");
  });
});
