import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type {
  Context,
  Message,
  Model,
  ThinkingLevel,
  UserContent,
} from "../../messages/messages.ts";
import {
  createAsk,
  fakeService,
  sendRequest,
  type Payloads,
  createAnswers,
  sse,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import { prepareFiles } from "../files/prepare.ts";
import { FILES } from "./files.ts";
import { openaiResponses } from "./index.ts";
import { formatMessages } from "./request.ts";

const model: Model = {
  id: "gpt-5.2",
  name: "GPT",
  api: "openai-responses",
  provider: "openai",
  reasoning: true,
  thinkingLevels: ["off", "low", "medium", "high", "xhigh"],
};
const plain: Model = { ...model, id: "gpt-4.1", reasoning: false };

const CREATED = {
  type: "response.created",
  response: { id: "resp_1", model: "gpt-5.2-2025-12-11", status: "in_progress", output: [] },
};
const USAGE = {
  input_tokens: 120,
  input_tokens_details: { cached_tokens: 100, cache_write_tokens: 5 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 129,
};

function completed(output: object[] = [], more: object = {}): object {
  return {
    type: "response.completed",
    response: {
      id: "resp_1",
      model: "gpt-5.2-2025-12-11",
      status: "completed",
      output,
      usage: USAGE,
      ...more,
    },
  };
}

function cut(reason: string, output: object[] = []): object {
  const more = { status: "incomplete", incomplete_details: { reason } };
  return { ...completed(output, more), type: "response.incomplete" };
}

/** An event of the item at `output_index`. */
function at(output_index: number, type: string, more: object): object {
  return { type: `response.${type}`, output_index, ...more };
}

function messageItem(text: string, more: object = {}): { type: string; content: object[] } {
  const part = { type: "output_text", text, annotations: [] };
  return {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [part],
    ...more,
  } as { type: string; content: object[] };
}

function call(args: string, more: object = {}): object {
  return {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    name: "add",
    arguments: args,
    ...more,
  };
}

function sealed(more: object = {}): { id: string; [field: string]: unknown } {
  return { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "c2VhbGVk+/=", ...more };
}

const MESSAGE = [
  at(0, "output_item.added", { item: messageItem("", { content: [], status: "in_progress" }) }),
  at(0, "content_part.added", { content_index: 0, part: { type: "output_text", text: "" } }),
  at(0, "output_text.delta", { content_index: 0, delta: "Hel" }),
  at(0, "output_text.delta", { content_index: 0, delta: "lo" }),
  at(0, "output_text.done", { content_index: 0, text: "Hello" }),
  at(0, "content_part.done", { content_index: 0, part: { type: "output_text", text: "Hello" } }),
  at(0, "output_item.done", { item: messageItem("Hello") }),
];
const WHOLE = [CREATED, ...MESSAGE, completed([messageItem("Hello")])];

function callEvents(index: number, pieces: readonly string[], more: object = {}): object[] {
  return [
    at(index, "output_item.added", { item: call("", more) }),
    ...pieces.map((delta) => at(index, "function_call_arguments.delta", { delta })),
    at(index, "function_call_arguments.done", { arguments: pieces.join("") }),
    at(index, "output_item.done", { item: call(pieces.join(""), more) }),
  ];
}

const ask = createAsk(openaiResponses, model, WHOLE, (payloads: Payloads) => sse(...payloads));

async function bodyFor(
  context: Partial<Context> = {},
  options: StreamOptions = {},
  asked: Model = model,
): Promise<Record<string, unknown>> {
  return (await ask(WHOLE, context, options, asked)).request.body;
}

const assistant = createAnswers(model);

function result(toolCallId: string, content: UserContent[]): Message {
  return createResult(toolCallId, content, { toolName: "add" });
}

const FOREIGN = { api: "anthropic-messages", provider: "anthropic", model: "claude" };
const PNG = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } as const;
const ADD = { name: "add", description: "Adds.", parameters: { type: "object" } } as const;

describe("reading", () => {
  it("reads text, the id, the served model, usage and the reason", async () => {
    const { message, events } = await ask();
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hello", signature: '{"id":"msg_1"}' }],
      responseId: "resp_1",
      servedModel: "gpt-5.2-2025-12-11",
      stopReason: "stop",
      usage: {
        input: 15,
        cacheRead: 100,
        cacheWrite: 5,
        output: 9,
        reasoning: 4,
        totalTokens: 129,
      },
      report: {
        events: 9,
        stopReason: "completed",
        usage: USAGE,
        details: { status: "completed" },
      },
    });
    expect(message.report?.unknown).toBeUndefined();
    expect(listTypes(events)).toBe("start text_start text_delta text_delta text_end done");
  });

  it("prices the tier that the service used", async () => {
    const price = { input: 2, output: 10 };
    const usage = { input_tokens: 1_000_000, output_tokens: 0, total_tokens: 1_000_000 };
    const costs: unknown[] = [];
    for (const service_tier of ["default", "flex", "priority"]) {
      const [last] = [completed([messageItem("Hello")])] as [{ response: object }];
      const end = { ...last, response: { ...last.response, usage, service_tier } };
      const { message } = await ask([CREATED, ...MESSAGE, end], {}, {}, { ...model, price });
      costs.push(message.usage.cost?.total);
    }
    expect(costs).toEqual([2, 1, 4]);
  });

  it("leaves unknown what the service does not count", async () => {
    const usage = { input_tokens: 5, output_tokens: 2 };
    const { message } = await ask([CREATED, ...MESSAGE, completed([], { usage })]);
    expect(message.usage).toEqual({ input: 5, output: 2 });
    const silent = await ask([CREATED, ...MESSAGE, completed([], { usage: null })]);
    expect(silent.message.usage).toEqual({});
    expect(silent.message.report?.usage).toBeUndefined();
  });

  it("keeps a text for each part, its phase and what it cites", async () => {
    const annotations = [{ type: "url_citation", url: "https://example.org/", title: "It" }];
    const item = messageItem("", {
      phase: "commentary",
      content: [
        { type: "output_text", text: "One", annotations },
        { type: "output_text", text: "Two" },
      ],
    });
    const { message } = await ask([
      CREATED,
      at(0, "output_text.delta", { content_index: 0, delta: "One" }),
      at(0, "output_text.annotation.added", { content_index: 0, annotation: annotations[0] }),
      at(0, "output_text.delta", { content_index: 1, delta: "Two" }),
      at(0, "output_item.done", { item }),
      completed([item]),
    ]);
    expect(message.content).toEqual([
      {
        type: "text",
        text: "One",
        signature: JSON.stringify({ id: "msg_1", phase: "commentary", annotations }),
        citations: [{ url: "https://example.org/", title: "It" }],
      },
      {
        type: "text",
        text: "Two",
        signature: JSON.stringify({ id: "msg_1", phase: "commentary" }),
      },
    ]);
    const [sent] = formatMessages([assistant(message.content)], { ...model, reasoning: false });
    expect(sent).toEqual({
      type: "message",
      role: "assistant",
      id: "msg_1",
      status: "completed",
      phase: "commentary",
      content: [
        { type: "output_text", text: "One", annotations },
        { type: "output_text", text: "Two", annotations: [] },
      ],
    });
  });

  it("matches the parts of a message by order where their index is another", async () => {
    const { message } = await ask([
      CREATED,
      at(0, "output_item.added", { item: messageItem("", { content: [] }) }),
      at(0, "output_text.delta", { content_index: 1, delta: "Hello" }),
      at(0, "output_item.done", { item: messageItem("Hello") }),
      completed([messageItem("Hello")]),
    ]);
    expect(message.content).toMatchObject([{ type: "text", text: "Hello" }]);
  });

  it("keeps reasoning whole, its summaries a blank line apart", async () => {
    const summary = [
      { type: "summary_text", text: "First." },
      { type: "summary_text", text: "Second." },
    ];
    const item = sealed({ summary });
    const { message, events } = await ask([
      CREATED,
      at(0, "output_item.added", { item: sealed({ encrypted_content: "early" }) }),
      at(0, "reasoning_summary_part.added", { summary_index: 0, part: summary[0] }),
      at(0, "reasoning_summary_text.delta", { summary_index: 0, delta: "First." }),
      at(0, "reasoning_summary_text.done", { summary_index: 0, text: "First." }),
      at(0, "reasoning_summary_text.delta", { summary_index: 1, delta: "Sec" }),
      at(0, "reasoning_summary_text.delta", { summary_index: 1, delta: "ond." }),
      at(0, "output_item.done", { item }),
      completed([item]),
    ]);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "First.\n\nSecond.", signature: JSON.stringify(item) },
    ]);
    expect(events.filter(({ type }) => type === "thinking_delta")).toHaveLength(4);
    expect(message.report?.unknown).toBeUndefined();
  });

  it("reads reasoning in full, and marks what is hidden", async () => {
    const content = [{ type: "reasoning_text", text: "Aloud" }];
    const open = { type: "reasoning", id: "rs_0", summary: [], content };
    const { message } = await ask([
      CREATED,
      at(0, "reasoning_text.delta", { content_index: 0, delta: "Aloud" }),
      at(0, "output_item.done", { item: open }),
      at(1, "output_item.done", { item: sealed() }),
      completed(),
    ]);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Aloud", signature: JSON.stringify(open) },
      { type: "thinking", thinking: "", signature: JSON.stringify(sealed()), redacted: true },
    ]);
  });

  it("streams calls with their arguments, several in one response", async () => {
    const { message, events } = await ask([
      CREATED,
      ...callEvents(0, ['{"a":', "1}"]),
      ...callEvents(1, [""], { id: "fc_2", call_id: "call_2", name: "now" }),
      completed(),
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual([
      { type: "toolCall", id: "call_1", name: "add", arguments: { a: 1 }, signature: "fc_1" },
      { type: "toolCall", id: "call_2", name: "now", arguments: {}, signature: "fc_2" },
    ]);
    expect(events.filter(({ type }) => type === "toolcall_delta")).toHaveLength(2);
  });

  it.each([
    ["with their done event", [at(0, "function_call_arguments.done", { arguments: '{"a":1}' })]],
    ["with the item", [at(0, "output_item.done", { item: call('{"a":1}') })]],
    ["as an object", [at(0, "output_item.done", { item: call("", { arguments: { a: 1 } }) })]],
    ["written in another way", [...callEvents(0, ['{"a":1}']).slice(1, 2)]],
  ])("takes arguments that come %s", async (_, events) => {
    const last = completed([call('{ "a": 1 }')]);
    const added = at(0, "output_item.added", { item: call("") });
    const { message } = await ask([CREATED, added, ...events, last]);
    expect(message.content).toMatchObject([{ id: "call_1", arguments: { a: 1 } }]);
    expect(message.content).toHaveLength(1);
  });

  it("does not run a call whose arguments come in two versions", async () => {
    const { message } = await ask([
      CREATED,
      ...callEvents(0, ['{"a":1}']).slice(0, 2),
      at(0, "output_item.done", { item: call('{"a":2}') }),
      completed(),
    ]);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
  });

  it("says so where arguments do not parse", async () => {
    const { message } = await ask([CREATED, ...callEvents(0, ['{"a":']), completed()]);
    expect(message.content).toMatchObject([{ rawArguments: '{"a":', arguments: {} }]);
    expect(message.content[0]).toHaveProperty("argumentsError");
  });

  it("knows an item by its place where its ids change from event to event", async () => {
    const { message } = await ask([
      CREATED,
      at(0, "output_item.added", { item: sealed({ id: "a" }) }),
      at(0, "reasoning_summary_text.delta", { item_id: "b", summary_index: 0, delta: "Well" }),
      at(0, "output_item.done", { item: sealed({ id: "c" }) }),
      at(1, "output_item.added", { item: call("", { id: "d" }) }),
      at(1, "function_call_arguments.delta", { item_id: "e", delta: '{"a":1}' }),
      at(1, "output_item.done", { item: call('{"a":1}', { id: "f" }) }),
      at(2, "output_item.added", { item: messageItem("", { id: "g", content: [] }) }),
      at(2, "output_text.delta", { item_id: "h", content_index: 0, delta: "Hello" }),
      at(2, "output_item.done", { item: messageItem("Hello", { id: "i" }) }),
      completed([
        sealed({ id: "j" }),
        call('{"a":1}', { id: "k", call_id: "other" }),
        messageItem("Hello", { id: "l" }),
      ]),
    ]);
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "Well" },
      { type: "toolCall", id: "call_1", signature: "f", arguments: { a: 1 } },
      { type: "text", text: "Hello", signature: '{"id":"i"}' },
    ]);
  });

  it("reads items that interleave, in the order in which they began", async () => {
    const [added, delta, done, whole] = callEvents(1, ['{"a":1}']);
    const { message } = await ask([
      CREATED,
      MESSAGE[0] ?? {},
      MESSAGE[2] ?? {},
      added ?? {},
      delta ?? {},
      MESSAGE[3] ?? {},
      done ?? {},
      whole ?? {},
      ...MESSAGE.slice(4),
      completed(),
    ]);
    expect(message.content).toMatchObject([
      { type: "text", text: "Hello" },
      { type: "toolCall", arguments: { a: 1 } },
    ]);
  });

  it("adds what only the last event shows, and nothing twice", async () => {
    const output = [sealed(), messageItem("Hello"), call('{"a":1}')];
    const only = await ask([completed(output)]);
    expect(only.message.content.map(({ type }) => type)).toEqual(["thinking", "text", "toolCall"]);
    expect(only.message.stopReason).toBe("toolUse");
    const second = call('{"a":1}', { id: "fc_2", call_id: "call_2" });
    const some = await ask([
      CREATED,
      ...callEvents(0, ['{"a":1}']),
      completed([...output, second]),
    ]);
    expect(some.message.content.map(({ type }) => type)).toEqual([
      "toolCall",
      "thinking",
      "text",
      "toolCall",
    ]);
    expect(some.message.content.at(-1)).toMatchObject({ id: "call_2", arguments: { a: 1 } });
  });

  it("reads deltas of items that were not announced", async () => {
    const { message } = await ask([
      CREATED,
      at(0, "reasoning_summary_text.delta", { item_id: "rs_1", summary_index: 0, delta: "Well" }),
      at(0, "output_text.delta", { item_id: "msg_1", content_index: 0, delta: "Hello" }),
      at(1, "function_call_arguments.delta", { delta: '{"a":1}' }),
      at(1, "output_item.done", { item: call('{"a":1}') }),
      completed([sealed(), messageItem("Hello"), call('{"a":1}')]),
    ]);
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "Well", signature: JSON.stringify(sealed()) },
      { type: "text", text: "Hello" },
      { type: "toolCall", id: "call_1", arguments: { a: 1 } },
    ]);
    expect(message.report?.unknown).toEqual({ "delta of no call": 1 });
  });

  it("adds the end of a text of which deltas are missing", async () => {
    const { message } = await ask([
      CREATED,
      ...MESSAGE.slice(0, 3),
      ...MESSAGE.slice(4),
      completed(),
    ]);
    expect(message.content).toMatchObject([{ text: "Hello" }]);
    const other = at(0, "output_item.done", { item: messageItem("Good day") });
    const two = await ask([CREATED, ...MESSAGE.slice(0, 4), other, completed()]);
    expect(two.message.content).toMatchObject([{ text: "Hello" }]);
    expect(two.message.report?.unknown).toEqual({ "text that is not what its deltas say": 1 });
  });

  it("shows the service's own tools whole, and runs none", async () => {
    const search = { type: "web_search_call", id: "ws_1", action: { query: "moon" } };
    const mcp = { type: "mcp_call", id: "mcp_1", name: "roll", arguments: "{}", output: "4" };
    const patch = { type: "apply_patch_call", id: "ap_1", call_id: "c", operation: { path: "a" } };
    const { message } = await ask([
      CREATED,
      at(0, "output_item.added", { item: { ...search, status: "in_progress" } }),
      at(0, "web_search_call.searching", {}),
      at(0, "output_item.done", { item: search }),
      at(1, "mcp_call_arguments.delta", { delta: "{}" }),
      at(1, "output_item.done", { item: mcp }),
      at(2, "output_item.done", { item: patch }),
      at(3, "output_item.done", { item: { type: "moon_phase", id: "mp_1" } }),
      completed(),
    ]);
    expect(message.content).toEqual([
      {
        type: "serviceTool",
        id: "ws_1",
        name: "web_search",
        input: { query: "moon" },
        raw: search,
      },
      { type: "serviceTool", id: "mcp_1", name: "roll", input: "{}", output: "4", raw: mcp },
      { type: "serviceTool", id: "ap_1", name: "apply_patch", input: { path: "a" }, raw: patch },
      {
        type: "serviceTool",
        id: "mp_1",
        name: "moon_phase",
        raw: { type: "moon_phase", id: "mp_1" },
      },
    ]);
    expect(message.stopReason).toBe("stop");
    expect(message.report?.unknown).toEqual({ "item moon_phase": 1 });
  });

  it("shows a list of tools once, however often and in which form it is announced", async () => {
    const list = (id: string, tools: object[] = []): object => ({
      type: "mcp_list_tools",
      id,
      server_label: "docs",
      tools,
    });
    const whole = list("mcpl_1", [{ name: "search" }]);
    const shown = [{ type: "serviceTool", id: "mcpl_1", name: "mcp_list_tools", raw: whole }];
    const twice = await ask([
      CREATED,
      at(0, "output_item.added", { item: list("mcpl_1") }),
      at(0, "output_item.added", { item: list("mcpl_1") }),
      at(0, "output_item.done", { item: whole }),
      at(0, "output_item.done", { item: whole }),
      completed([whole]),
    ]);
    expect(twice.message.content).toEqual(shown);
    const renamed = await ask([
      CREATED,
      at(0, "output_item.added", { item: list("mcpl_0") }),
      at(1, "output_item.done", { item: whole }),
      completed([whole]),
    ]);
    expect(renamed.message.content).toEqual(shown);
  });

  it("passes over what it does not know, and counts it", async () => {
    const strange = [
      { type: "ping", cost: "0" },
      at(99, "moon_phase.delta", { delta: "full" }),
      at(99, "moon_phase.delta", { delta: 1 }),
    ];
    const { message } = await ask([...strange, ...WHOLE]);
    expect(message.content).toMatchObject([{ text: "Hello" }]);
    expect(message.report?.unknown).toEqual({
      "event ping": 1,
      "event response.moon_phase.delta": 2,
    });
  });

  it("knows an event by its SSE name where the payload has no type", async () => {
    const { type: _, ...rest } = completed([messageItem("Hello")]) as { type: string };
    const body = `event: response.completed\n${sse(rest)}`;
    const { message } = await sendRequest(openaiResponses, model, fakeService(body));
    expect(message).toMatchObject({ stopReason: "stop", content: [{ text: "Hello" }] });
  });
});

describe("the end", () => {
  it("is the last event, though the connection stays open and more may follow", async () => {
    const body = sse(...WHOLE, { type: "ping" }, "[DONE]");
    const { message } = await sendRequest(
      openaiResponses,
      model,
      fakeService({ body, open: true }),
    );
    expect(message).toMatchObject({ stopReason: "stop", report: { events: WHOLE.length } });
  });

  it("never comes without it: cut after any event, the response is incomplete", async () => {
    const payloads = [CREATED, ...MESSAGE, ...callEvents(1, ['{"a":', "1}"]), completed()];
    for (let kept = 0; kept < payloads.length; kept++) {
      const { message } = await ask(payloads.slice(0, kept));
      expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
    }
  });

  it("is no [DONE] by itself", async () => {
    const body = sse(CREATED, ...MESSAGE, "[DONE]");
    const { message } = await sendRequest(
      openaiResponses,
      model,
      fakeService({ body, open: true }),
    );
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "incomplete" },
      content: [{ text: "Hello" }],
    });
  });

  it("is the same however the bytes are cut", async () => {
    const payloads = [CREATED, ...MESSAGE, ...callEvents(1, ['{"a":"é€"}']), completed()];
    const bytes = new TextEncoder().encode(sse(...payloads));
    const pieces = Array.from(bytes, (_, from) => bytes.subarray(from, from + 1));
    const whole = await ask(payloads);
    const cutUp = await sendRequest(openaiResponses, model, fakeService({ body: pieces }));
    expect(cutUp.message.content).toEqual(whole.message.content);
  });

  it("fails where a second response begins", async () => {
    const { message } = await ask([CREATED, ...MESSAGE, ...WHOLE]);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
  });

  it("is `length` where the room was used up, with the call that was cut", async () => {
    const started = callEvents(0, ['{"a":']).slice(0, 2);
    const { message } = await ask([CREATED, ...started, cut("max_output_tokens")]);
    expect(message).toMatchObject({
      stopReason: "length",
      report: {
        stopReason: "max_output_tokens",
        details: { status: "incomplete", incomplete: { reason: "max_output_tokens" } },
      },
    });
    expect(message.content[0]).toHaveProperty("argumentsError");
  });

  it("is a refusal where a content filter cut it off, with what had come", async () => {
    const { message } = await ask([CREATED, ...MESSAGE, cut("content_filter")]);
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "refused", retryable: false },
      content: [{ text: "Hello" }],
      usage: { output: 9 },
    });
  });

  it("shows the model's refusal as text", async () => {
    const item = messageItem("", { content: [{ type: "refusal", refusal: "I will not." }] });
    const { message } = await ask([
      CREATED,
      at(0, "refusal.delta", { content_index: 0, delta: "I will" }),
      at(0, "refusal.done", { content_index: 0, refusal: "I will not." }),
      at(0, "output_item.done", { item }),
      completed([item]),
    ]);
    expect(message).toMatchObject({
      stopReason: "stop",
      content: [{ type: "text", text: "I will not." }],
      report: { details: { refusal: "I will not." } },
    });
  });

  it.each([
    ["an event", { type: "error", code: "rate_limit_exceeded", message: "Slow down" }],
    ["a wrapped event", { type: "error", error: { code: "rate_limit_exceeded", message: "Slow" } }],
    ["no type", { error: { code: "rate_limit_exceeded", message: "Slow down" } }],
    [
      "a failed response",
      {
        type: "response.failed",
        response: { status: "failed", error: { code: "rate_limit_exceeded", message: "Slow" } },
      },
    ],
  ])("is an error where the service says so with %s", async (_, event) => {
    const { message } = await ask([CREATED, ...MESSAGE, event, completed()]);
    expect(message).toMatchObject({
      stopReason: "error",
      failure: { kind: "rate_limit" },
      content: [{ text: "Hello" }],
      report: { details: { status: "failed", code: "rate_limit_exceeded" } },
    });
    expect(message.errorMessage).toContain("Slow");
  });

  it("is an error also where the service gives no reason", async () => {
    const response = { status: "cancelled", error: null };
    const { message } = await ask([CREATED, { type: "response.completed", response }]);
    expect(message).toMatchObject({
      stopReason: "error",
      report: { details: { status: "cancelled" } },
    });
  });
});

describe("asking", () => {
  it("keeps nothing at the service, and asks for sealed reasoning", async () => {
    const { request } = await ask(WHOLE, { systemPrompt: "Be brief." });
    expect(request.url).toBe("https://api.openai.com/v1/responses");
    expect(request.headers).toMatchObject({ authorization: "Bearer test-key" });
    expect(request.body).toEqual({
      model: "gpt-5.2",
      stream: true,
      store: false,
      instructions: "Be brief.",
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }],
      reasoning: { effort: "none" },
      include: ["reasoning.encrypted_content"],
    });
  });

  it("finds Azure: its key has a header of its own, and a query stays at the end", async () => {
    const baseUrl = "https://me.example/openai/v1/?api-version=preview";
    const azure = { ...model, provider: "azure-openai-responses", baseUrl };
    const { request } = await ask(WHOLE, {}, {}, azure);
    expect(request.url).toBe("https://me.example/openai/v1/responses?api-version=preview");
    expect(request.headers).toMatchObject({ "api-key": "test-key" });
    expect(request.headers).not.toHaveProperty("authorization");
  });

  it.each<[string, readonly ThinkingLevel[] | undefined, ThinkingLevel, string | undefined]>([
    ["gpt-5", ["minimal", "low", "medium", "high"], "off", "minimal"],
    ["gpt-5", ["minimal", "low", "medium", "high"], "xhigh", "high"],
    ["gpt-5-codex", ["low", "medium", "high"], "minimal", "low"],
    ["gpt-5-codex", ["low", "medium", "high"], "off", undefined],
    ["gpt-5-pro", ["high"], "low", "high"],
    ["gpt-5.1", ["off", "low", "medium", "high"], "off", "none"],
    ["gpt-5.1", ["off", "low", "medium", "high"], "minimal", "low"],
    ["gpt-5.1", ["off", "low", "medium", "high"], "xhigh", "high"],
    ["gpt-5.1-codex-max", ["low", "medium", "high", "xhigh"], "xhigh", "xhigh"],
    ["gpt-5.2-pro", ["medium", "high", "xhigh"], "low", "medium"],
    ["gpt-5.1-chat-latest", ["medium"], "high", "medium"],
    ["gpt-6", undefined, "off", undefined],
    ["gpt-6", undefined, "xhigh", "high"],
    ["o4-mini", undefined, "off", undefined],
    ["o4-mini", undefined, "minimal", "low"],
    ["some-other", undefined, "high", "high"],
  ])("asks %s, which takes %j, for level %s as effort %s", async (id, levels, level, effort) => {
    const { thinkingLevels: _, ...unknown } = model;
    const at = { ...unknown, id, ...(levels && { thinkingLevels: levels }) };
    const { reasoning } = await bodyFor({}, { thinkingLevel: level }, at);
    const summary = level === "off" ? {} : { summary: "auto" };
    expect(reasoning).toEqual(effort && { effort, ...summary });
  });

  it("lets a model say which efforts it knows, and that its reasoning is not sealed", async () => {
    const quirks = { efforts: ["low", "high"], encryptedReasoning: false };
    const asked = { ...model, quirks };
    const body = await bodyFor({}, { thinkingLevel: "medium" }, asked);
    expect(body).toMatchObject({ reasoning: { effort: "high" } });
    expect(body).not.toHaveProperty("include");
    const none = { ...model, quirks: { efforts: [] } };
    expect(await bodyFor({}, { thinkingLevel: "high" }, none)).not.toHaveProperty("reasoning");
  });

  it("sends a temperature only to models that do not reason", async () => {
    expect(await bodyFor({}, { temperature: 0.5 })).not.toHaveProperty("temperature");
    const body = await bodyFor(
      {},
      { temperature: 0.5, maxTokens: 1, thinkingLevel: "high" },
      plain,
    );
    expect(body).toMatchObject({ temperature: 0.5, max_output_tokens: 16 });
    expect(body).not.toHaveProperty("reasoning");
    expect(body).not.toHaveProperty("include");
  });

  it("offers tools, and says which may be used", async () => {
    const tools = [ADD];
    expect(await bodyFor({ tools })).toMatchObject({
      tools: [
        {
          type: "function",
          name: "add",
          description: "Adds.",
          parameters: { type: "object" },
          strict: false,
        },
      ],
    });
    expect(await bodyFor({ tools })).not.toHaveProperty("tool_choice");
    for (const toolChoice of ["auto", "none", "required"] as const) {
      expect(await bodyFor({ tools }, { toolChoice })).toMatchObject({ tool_choice: toolChoice });
    }
    expect(await bodyFor({ tools }, { toolChoice: { name: "add" } })).toMatchObject({
      tool_choice: { type: "function", name: "add" },
    });
    expect(await bodyFor({ tools: [] }, { toolChoice: "required" })).not.toHaveProperty(
      "tool_choice",
    );
  });

  it("names the cache after the conversation, and makes it last where that is known", async () => {
    const sessionId = "s".repeat(80);
    expect(await bodyFor({}, { sessionId })).toMatchObject({ prompt_cache_key: "s".repeat(64) });
    expect(await bodyFor({}, { sessionId })).not.toHaveProperty("prompt_cache_retention");
    const long = { sessionId, cacheRetention: "long" } as const;
    expect(await bodyFor({}, long)).toMatchObject({ prompt_cache_retention: "24h" });
    const other = { ...model, id: "other" };
    expect(await bodyFor({}, long, other)).not.toHaveProperty("prompt_cache_retention");
    const lasting = { ...other, quirks: { cacheRetention: true } };
    expect(await bodyFor({}, long, lasting)).toHaveProperty("prompt_cache_retention");
    const none = await bodyFor({}, { sessionId, cacheRetention: "none" });
    expect(none).not.toHaveProperty("prompt_cache_key");
  });

  it("passes on who the user is", async () => {
    const body = await bodyFor({}, { metadata: { user_id: "u1", other: 1 } });
    expect(body).toMatchObject({ safety_identifier: "u1" });
    expect(body).not.toHaveProperty("metadata");
  });
});

describe("the transcript", () => {
  const thought = {
    type: "thinking",
    thinking: "Well",
    signature: JSON.stringify(sealed()),
  } as const;
  const text = { type: "text", text: "Hi", signature: '{"id":"msg_1"}' } as const;
  const toolCall = {
    type: "toolCall",
    id: "call_1",
    name: "add",
    arguments: { a: 1 },
    signature: "fc_1",
  } as const;

  it("goes back to the model that wrote it as it was", () => {
    const sent = formatMessages(
      [
        createPrompt("Add"),
        assistant([thought, text, toolCall]),
        result("call_1", [{ type: "text", text: "2" }]),
      ],
      model,
    );
    expect(sent.slice(1)).toEqual([
      sealed(),
      {
        type: "message",
        role: "assistant",
        id: "msg_1",
        status: "completed",
        content: [{ type: "output_text", text: "Hi", annotations: [] }],
      },
      { type: "function_call", id: "fc_1", call_id: "call_1", name: "add", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "call_1", output: "2" },
    ]);
    expect(JSON.stringify(sent[1])).toBe(thought.signature);
  });

  it("brings what a response held back whole in the next request", async () => {
    const item = sealed({ summary: [{ type: "summary_text", text: "Well" }] });
    const answer = [CREATED, at(0, "output_item.done", { item }), ...callEvents(1, ["{}"])];
    const { message } = await ask([...answer, completed()]);
    expect(formatMessages([message], model)).toEqual([item, call("{}")]);
  });

  it("goes to another model without what only its author can read", () => {
    const sent = formatMessages([assistant([thought, text, toolCall], FOREIGN)], model);
    expect(sent).toEqual([
      {
        type: "message",
        role: "assistant",
        id: "msg_said_0",
        status: "completed",
        content: [{ type: "output_text", text: "[thinking]\nWell\n[/thinking]", annotations: [] }],
      },
      {
        type: "message",
        role: "assistant",
        id: "msg_said_1",
        status: "completed",
        content: [{ type: "output_text", text: "Hi", annotations: [] }],
      },
      { type: "function_call", call_id: "call_1", name: "add", arguments: '{"a":1}' },
    ]);
  });

  it("leaves out reasoning without the item that it led to", () => {
    const shell = { type: "local_shell_call", id: "lsh_1", call_id: "c", action: {} };
    const shown = { type: "serviceTool", id: "lsh_1", name: "local_shell", raw: shell } as const;
    const empty = { ...text, text: " " };
    expect(formatMessages([assistant([thought])], model)).toEqual([]);
    expect(formatMessages([assistant([thought, empty])], model)).toEqual([]);
    expect(formatMessages([assistant([thought, shown])], model)).toEqual([]);
    const after = formatMessages([assistant([thought, shown, toolCall])], model);
    // Nor does an id go without the reasoning that belongs to it.
    expect(after).toEqual([
      { type: "function_call", call_id: "call_1", name: "add", arguments: '{"a":1}' },
    ]);
  });

  it("leaves out reasoning that the service would have to remember", () => {
    const signature = JSON.stringify({ type: "reasoning", id: "rs_1", summary: [] });
    const known = { type: "thinking", thinking: "Well", signature } as const;
    expect(formatMessages([assistant([known, toolCall])], model)).toHaveLength(1);
    const aloud = { ...sealed(), encrypted_content: null, content: [{ text: "Well" }] };
    const rest = { ...known, signature: JSON.stringify(aloud) };
    expect(formatMessages([assistant([rest, toolCall])], model)).toHaveLength(2);
  });

  it("sends sealed reasoning without an id that is too long", () => {
    const { id: _, ...rest } = sealed();
    const signature = JSON.stringify({ ...rest, id: `rs_${"x".repeat(400)}` });
    const [reasoning] = formatMessages([assistant([{ ...thought, signature }, toolCall])], model);
    expect(reasoning).toEqual(rest);
  });

  it("brings back the service's own tools, but none that waits for an answer", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed", action: {} };
    const custom = { type: "custom_tool_call", id: "ct_1", call_id: "c", name: "x", input: "" };
    const lookup = { type: "tool_search_call", id: "ts_1", execution: "client" };
    const content = [search, custom, lookup].map(
      (raw) => ({ type: "serviceTool", id: raw.id, name: raw.type, raw }) as const,
    );
    expect(formatMessages([assistant([thought, ...content])], model)).toEqual([sealed(), search]);
  });

  it("sends no id twice, none that is too long, and none of another kind", () => {
    const twice = formatMessages([assistant([text]), assistant([text])], plain);
    const own = { model: plain.id };
    const ids = formatMessages(
      [
        assistant([text], own),
        assistant([text], own),
        assistant([{ ...text, signature: '{"id":"chat-7"}' }], own),
        assistant([{ ...text, signature: JSON.stringify({ id: `msg_${"x".repeat(99)}` }) }], own),
        assistant([{ ...text, signature: "not JSON" }], own),
      ],
      plain,
    ).map((item) => (item as { id: string }).id);
    expect(ids).toEqual(["msg_1", "msg_said_1", "msg_said_2", "msg_said_3", "msg_said_4"]);
    expect(new Set(twice.map((item) => (item as { id: string }).id)).size).toBe(2);
    const calls = formatMessages(
      [assistant([toolCall, { ...toolCall, id: "call_2" }], own), result("call_1", [])],
      plain,
    );
    expect(calls).toMatchObject([{ id: "fc_1" }, { call_id: "call_2" }, { output: "(no output)" }]);
    expect(calls[1]).not.toHaveProperty("id");
  });

  it("makes ids of calls fit, the same for a call and its result", () => {
    const id = `toolu.${"x".repeat(80)}`;
    const sent = formatMessages([assistant([{ ...toolCall, id }], FOREIGN), result(id, [])], model);
    const [asked, answered] = sent as { call_id: string }[];
    expect(asked?.call_id).toMatch(/^[\w-]{1,64}$/);
    expect(answered?.call_id).toBe(asked?.call_id);
  });

  it("sends images of users and of tools", () => {
    const image = {
      type: "input_image",
      image_url: "data:image/png;base64,iVBORw0KGgo=",
      detail: "auto",
    };
    const look = { type: "text", text: "Look" } as const;
    const user: Message = { role: "user", content: [look, PNG], timestamp: 0 };
    const parts = [{ type: "input_text", text: "Look" }, image];
    expect(
      formatMessages([user, assistant([toolCall]), result("call_1", [look, PNG])], model),
    ).toMatchObject([{ content: parts }, {}, { type: "function_call_output", output: parts }]);
    const blind = { ...model, input: ["text"] } as const;
    const target = { model: blind, service: { id: "openai", name: "OpenAI" } };
    const seen = [user, assistant([toolCall]), result("call_1", [look, PNG])];
    const [, , rest] = formatMessages(prepareFiles(seen, target, FILES), blind);
    expect((rest as { output: string }).output).toMatch(/^Look\n\[Image left out/);
  });

  it("never has an empty text, and needs no tools for calls of the past", async () => {
    const messages = [
      createPrompt(""),
      assistant([{ type: "text", text: "" }, toolCall]),
      result("call_1", [{ type: "text", text: "" }]),
    ];
    const { input, tools } = await bodyFor({ messages });
    expect(input).toMatchObject([
      { content: [{ text: "(no text)" }] },
      { type: "function_call" },
      { output: "(no output)" },
    ]);
    expect(tools).toBeUndefined();
  });

  it("is the same each time, and its beginning does not change when it grows", async () => {
    const messages = [
      createPrompt("Add"),
      assistant([thought, text, toolCall]),
      result("call_1", [{ type: "text", text: "2" }]),
      assistant([text], FOREIGN),
      createPrompt("And?"),
      assistant([{ ...thought, signature: JSON.stringify(sealed({ id: "rs_2" })) }, text]),
    ];
    const whole = formatMessages(messages, model);
    for (let kept = 1; kept <= messages.length; kept++) {
      const part = formatMessages(messages.slice(0, kept), model);
      expect(JSON.stringify(part)).toBe(JSON.stringify(whole.slice(0, part.length)));
    }
    const [one, two] = [await bodyFor({ messages }), await bodyFor({ messages })];
    expect(JSON.stringify(one)).toBe(JSON.stringify(two));
  });
});
