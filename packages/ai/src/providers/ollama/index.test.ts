import { describe, expect, it } from "vitest";
import type { Message, Model } from "../../messages/messages.ts";
import {
  createAsk,
  fakeService,
  sendRequest,
  IMAGE,
  createAnswers,
  TEXT_AND_IMAGE,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { ollama } from "./index.ts";
import { formatMessages } from "./request.ts";

const model: Model = { id: "qwen3:8b", name: "Qwen", api: "ollama", provider: "ollama" };

function line(message: object, more: object = {}): string {
  return `${JSON.stringify({ model: "qwen3:8b", created_at: "2026-01-01", message, done: false, ...more })}\n`;
}

const FIGURES = { total_duration: 9, prompt_eval_count: 12, eval_count: 7 };

function done(done_reason: string, more: object = FIGURES): string {
  return line({ role: "assistant", content: "" }, { done: true, done_reason, ...more });
}

const TEXT = [line({ content: "Hi" }), line({ content: " there" })];
const WHOLE = [...TEXT, done("stop")];

const ask = createAsk(ollama, model, WHOLE, (body: readonly string[]) => ({ body }));

const assistant = createAnswers(model);

function calls(...named: object[]): string {
  return line({ content: "", tool_calls: named });
}

describe("reading", () => {
  it("reads text, the served model, usage and the reason", async () => {
    const { message, events } = await ask();
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hi there" }],
      servedModel: "qwen3:8b",
      stopReason: "stop",
      usage: { input: 12, output: 7 },
    });
    expect(message.report).toEqual({
      events: 3,
      stopReason: "stop",
      usage: { prompt_eval_count: 12, eval_count: 7 },
      details: { total_duration: 9 },
    });
    expect(listTypes(events)).toBe("start text_start text_delta text_delta text_end done");
  });

  it("gives the same from single bytes, with CRLF and with empty lines", async () => {
    const options = { clock: manualClock() };
    const { message } = await ask(WHOLE, {}, options);
    const text = WHOLE.join("\r\n");
    for (const body of [[...text], [text]]) {
      expect((await ask(body, {}, options)).message).toEqual(message);
    }
  });

  it("counts what was read from the cache apart from other input", async () => {
    const counts = { prompt_eval_count: 12, prompt_eval_cached_count: 10, eval_count: 7 };
    const { message } = await ask([...TEXT, done("stop", counts)]);
    expect(message.usage).toEqual({ input: 2, cacheRead: 10, output: 7 });
    expect(message.report?.usage).toEqual(counts);
  });

  it("leaves unknown what is not reported", async () => {
    const { message } = await ask([...TEXT, done("stop", {})]);
    expect(message.usage).toEqual({});
    expect(message.report?.usage).toBeUndefined();
  });

  it("reads thinking, before and between the text", async () => {
    const { message } = await ask([
      line({ content: "", thinking: "Well" }),
      line({ content: "", thinking: ", yes" }),
      line({ content: "Hi" }),
      line({ content: " you", thinking: "Hm" }),
      done("stop"),
    ]);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Well, yes" },
      { type: "text", text: "Hi" },
      { type: "thinking", thinking: "Hm" },
      { type: "text", text: " you" },
    ]);
  });

  it("reads calls, several in a line and in several lines", async () => {
    const { message, events } = await ask([
      ...TEXT,
      calls(
        { id: "call_a", function: { name: "add", arguments: { a: 1 } } },
        { function: { name: "now", arguments: {} } },
      ),
      calls({ function: { name: "add", arguments: '{"a": 2}' } }),
      done("stop"),
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.report?.stopReason).toBe("stop");
    expect(message.content).toMatchObject([
      { type: "text", text: "Hi there" },
      { type: "toolCall", id: "call_a", name: "add", arguments: { a: 1 } },
      { type: "toolCall", name: "now", arguments: {} },
      { type: "toolCall", name: "add", arguments: { a: 2 } },
    ]);
    expect(events.filter(({ type }) => type === "toolcall_end")).toHaveLength(3);
  });

  it("makes up ids that no other call of the conversation has", async () => {
    const earlier = assistant([
      { type: "toolCall", id: "call_0", name: "add", arguments: {} },
      { type: "toolCall", id: "call_3", name: "add", arguments: {} },
    ]);
    const add = { function: { name: "add", arguments: {} } };
    const { message } = await ask(
      [calls({ id: "same", ...add }, { id: "same", ...add }, add), calls(add, add), done("stop")],
      { messages: [createPrompt("Add"), earlier, createPrompt("Again")] },
    );
    const ids = message.content.map((block) => (block.type === "toolCall" ? block.id : ""));
    expect(ids[0]).toBe("same");
    expect(new Set([...ids, "call_0", "call_3"]).size).toBe(ids.length + 2);
    for (const id of ids) expect(id).toMatch(/^[\w-]+$/);
  });

  it("never repairs arguments that do not parse", async () => {
    const { message } = await ask([
      calls({ function: { name: "add", arguments: '{"a": ' } }),
      done("stop"),
    ]);
    expect(message.content).toMatchObject([
      { arguments: {}, rawArguments: '{"a": ', argumentsError: expect.any(String) },
    ]);
  });

  it.each([
    ["stop", "stop"],
    ["length", "length"],
    ["load", "stop"],
    ["something_new", "stop"],
  ])("reads the reason %s as %s", async (reason, stopReason) => {
    const { message } = await ask([...TEXT, done(reason)]);
    expect(message).toMatchObject({ stopReason, report: { stopReason: reason } });
  });

  it("counts what it does not know and goes on", async () => {
    const { message } = await ask(['{"weather":"fine"}\n', ...WHOLE]);
    expect(message.content).toEqual([{ type: "text", text: "Hi there" }]);
    expect(message.report?.unknown).toEqual({ "line with weather": 1 });
  });

  it("fails when an error comes in the middle, with what came kept", async () => {
    const { message } = await ask([
      ...TEXT,
      '{"error":"model runner has stopped"}\n',
      done("stop"),
    ]);
    expect(message).toMatchObject({ content: [{ text: "Hi there" }], stopReason: "error" });
    expect(message.errorMessage).toContain("model runner has stopped");
  });

  it("shows the message of an error that is no stream", async () => {
    const body = `{"error":"model 'qwen3:8b' not found"}`;
    const { message } = await sendRequest(ollama, model, fakeService({ body, status: 404 }));
    expect(message.failure).toMatchObject({ kind: "bad_request", status: 404 });
    expect(message.errorMessage).toContain("not found");
  });

  it.each([
    ["before anything", []],
    ["after a line", TEXT],
    ["in a line", [...TEXT, done("stop").slice(0, 40)]],
    ["before the last line's end", [...TEXT, done("stop").trimEnd()]],
    ["by a line that is no JSON", [...TEXT, "<html>\n"]],
  ])("a response that is cut short %s is incomplete, and keeps what came", async (_, body) => {
    const { message, events } = await ask(body);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
    expect(message.content).toHaveLength(body.length > 0 ? 1 : 0);
    expect(events.at(-1)?.type).toBe("error");
  });

  it("is done with the line that says so, also when the connection stays open", async () => {
    const service = fakeService({ body: WHOLE, open: true });
    const { message } = await sendRequest(ollama, model, service);
    expect(message.stopReason).toBe("stop");
  });
});

describe("writing", () => {
  const call = { type: "toolCall", id: "call_1", name: "look", arguments: { at: "x" } } as const;
  const result = createResult("call_1", TEXT_AND_IMAGE);
  const tools = [
    { name: "look", description: "Looks", parameters: { type: "object", properties: {} } },
    { name: "go", description: "Goes", parameters: { type: "object", properties: {} } },
  ];

  it("asks the server at home, which wants no key", async () => {
    const service = fakeService({ body: WHOLE });
    const { stream } = ollama({ fetch: service.fetch });
    await (await stream(model, { messages: [createPrompt("Hello")] }, {})).result();
    const [request] = service.requests;
    expect(request?.url).toBe("http://127.0.0.1:11434/api/chat");
    expect(request?.headers["authorization"]).toBeUndefined();
    expect(request?.body).toEqual({
      model: "qwen3:8b",
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
      think: false,
    });
  });

  it("sends a key where there is one", async () => {
    const at = { ...model, baseUrl: "https://ollama.com" };
    const { request } = await ask(WHOLE, {}, {}, at);
    expect(request.url).toBe("https://ollama.com/api/chat");
    expect(request.headers["authorization"]).toBe("Bearer test-key");
  });

  it.each([
    ["127.0.0.1:11434", "http://127.0.0.1:11434"],
    ["box", "http://box:11434"],
    ["box:80", "http://box:80"],
    [":8000", "http://127.0.0.1:8000"],
    ["0.0.0.0", "http://127.0.0.1:11434"],
    ["http://0.0.0.0:8000", "http://127.0.0.1:8000"],
    ["[::]:8000", "http://[::1]:8000"],
    ["box/models", "http://box:11434/models"],
    ["https://box/", "https://box"],
  ])("reaches the host %s", async (baseUrl, address) => {
    const { request } = await ask(WHOLE, {}, {}, { ...model, baseUrl });
    expect(request.url).toBe(`${address}/api/chat`);
  });

  it("distinguishes a page of something in between from a broken answer", async () => {
    const page = { body: "<html><title>Log in</title>", headers: { "content-type": "text/html" } };
    const { message } = await sendRequest(ollama, model, fakeService(page));
    expect(message.errorMessage).toContain("an HTML page instead of JSON, from");
    expect(message.failure).toMatchObject({ kind: "unknown", retryable: false });
  });

  it("says nothing of a message that has only what cannot be said here", () => {
    const own = assistant([{ type: "serviceTool", id: "s", name: "search", raw: {} }]);
    expect(formatMessages([createPrompt("?"), own, createPrompt("!")], model)).toEqual([
      { role: "user", content: "?" },
      { role: "user", content: "!" },
    ]);
  });

  it("describes what another service ran, without what only that one can read", () => {
    const output = [{ title: "Found", encrypted_content: "sealed" }];
    const theirs = { type: "serviceTool", id: "s", name: "search", output, raw: {} } as const;
    const [described] = formatMessages([assistant([theirs], { model: "other" })], model);
    expect(described).toMatchObject({
      content: '[The service ran its tool search, which gave [{"title":"Found"}]]',
    });
  });

  it("writes the system prompt, images, thoughts, calls and results", async () => {
    const messages: Message[] = [
      { role: "user", content: [{ type: "text", text: "Look" }, IMAGE], timestamp: 0 },
      assistant([
        { type: "thinking", thinking: "Hm" },
        { type: "text", text: "I look." },
        call,
        { ...call, id: "call_2" },
      ]),
      result,
      { ...result, toolCallId: "call_2", content: [IMAGE] },
      createPrompt("And?"),
    ];
    const { request } = await ask(WHOLE, { systemPrompt: "Be brief.", messages });
    const results = [
      { role: "tool", content: "A dot", tool_name: "look", tool_call_id: "call_1" },
      { role: "tool", content: "(The image follows.)", tool_name: "look", tool_call_id: "call_2" },
      { role: "user", content: "(Images of the results.)", images: ["aGk=", "aGk="] },
    ];
    expect(request.body["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Look", images: ["aGk="] },
      {
        role: "assistant",
        content: "I look.",
        thinking: "Hm",
        tool_calls: [
          { id: "call_1", function: { name: "look", arguments: { at: "x" } } },
          { id: "call_2", function: { name: "look", arguments: { at: "x" } } },
        ],
      },
      ...results,
      { role: "user", content: "And?" },
    ]);
    expect(formatMessages(messages.slice(0, 4), model).slice(2)).toEqual(results);
  });

  it("sends what other models thought as text", () => {
    const theirs = assistant([{ type: "thinking", thinking: "Hm" }], { model: "llama3" });
    const [formatted] = formatMessages([theirs], model);
    expect(formatted).toEqual({ role: "assistant", content: "[thinking]\nHm\n[/thinking]" });
  });

  it.each([
    [undefined, ["look", "go"]],
    ["auto", ["look", "go"]],
    ["required", ["look", "go"]],
    ["none", undefined],
    [{ name: "go" }, ["go"]],
  ] as const)("shows the tools that the choice %j leaves", async (toolChoice, names) => {
    const { request } = await ask(WHOLE, { tools }, toolChoice === undefined ? {} : { toolChoice });
    const shown = tools.filter(({ name }) => names?.some((one) => one === name));
    expect(request.body["tools"]).toEqual(
      names && shown.map((tool) => ({ type: "function", function: tool })),
    );
  });

  it.each([
    [model, "off", false],
    [model, "minimal", true],
    [model, "high", true],
    [{ ...model, reasoning: false }, "high", undefined],
    [{ ...model, id: "gpt-oss:20b" }, "off", "low"],
    [{ ...model, id: "gpt-oss:20b" }, "minimal", "low"],
    [{ ...model, id: "gpt-oss:20b" }, "medium", "medium"],
    [{ ...model, id: "gpt-oss:20b" }, "xhigh", "high"],
    [{ ...model, id: "gpt-oss:20b" }, "max", "high"],
    [{ ...model, quirks: { thinking: "levels" } }, "high", "high"],
    [{ ...model, id: "gpt-oss:20b", quirks: { thinking: "switch" } }, "high", true],
  ] as const)("asks %j how much to think: %s", async (at, thinkingLevel, think) => {
    const { request } = await ask(WHOLE, {}, { thinkingLevel }, at);
    expect(request.body["think"]).toBe(think);
  });

  it("sets the window, the limit and the temperature", async () => {
    const at = { ...model, contextWindow: 32_768 };
    const { request } = await ask(WHOLE, {}, { maxTokens: 100, temperature: 0 }, at);
    expect(request.body["options"]).toEqual({ num_ctx: 32_768, num_predict: 100, temperature: 0 });
    const smaller = await ask(WHOLE, {}, {}, { ...at, quirks: { numCtx: 8_192 } });
    expect(smaller.request.body["options"]).toEqual({ num_ctx: 8_192 });
  });

  it("keeps the model loaded for longer only if asked", async () => {
    const long = await ask(WHOLE, {}, { cacheRetention: "long" });
    expect(long.request.body["keep_alive"]).toBe("1h");
    for (const cacheRetention of ["none", "short"] as const) {
      const { request } = await ask(WHOLE, {}, { cacheRetention });
      expect(request.body).not.toHaveProperty("keep_alive");
    }
  });
});
