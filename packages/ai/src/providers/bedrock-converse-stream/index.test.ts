import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { Message, Model } from "../../messages/messages.ts";
import {
  createAsk,
  fakeService,
  sendRequest,
  type Exchanged,
  createAnswers,
  TEXT_AND_IMAGE,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { crc32 } from "../aws/event-stream.ts";
import { bedrockConverseStream } from "./index.ts";
import { formatMessages } from "./request.ts";
import { bedrockInvokeStream } from "../bedrock-invoke-stream/index.ts";
import { AFTER_FINISH_MS } from "../http/exchange.ts";

const model: Model = {
  id: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  name: "Sonnet",
  api: "bedrock-converse-stream",
  provider: "amazon-bedrock",
  maxTokens: 64_000,
};
const nova: Model = {
  ...model,
  id: "us.amazon.nova-2-lite-v1:0",
  name: "Nova",
  reasoning: true,
};
const llama: Model = { ...model, id: "us.meta.llama4-maverick-17b-instruct-v1:0", name: "Llama" };

const STRING_TYPE = 7;
const FRAME_BYTES = 16;

/** One binary message, with both its checksums. */
function message(headers: Record<string, string>, payload: string): Uint8Array {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) =>
      Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([STRING_TYPE, value.length >> 8, value.length & 0xff]),
        Buffer.from(value),
      ]),
    ),
  );
  const body = Buffer.from(payload);
  const whole = Buffer.alloc(FRAME_BYTES + head.length + body.length);
  whole.writeUInt32BE(whole.length, 0);
  whole.writeUInt32BE(head.length, 4);
  whole.writeUInt32BE(crc32(whole.subarray(0, 8)), 8);
  Buffer.concat([head, body]).copy(whole, 12);
  whole.writeUInt32BE(crc32(whole.subarray(0, -4)), whole.length - 4);
  return whole;
}

function event(name: string, payload: object): Uint8Array {
  return message({ ":event-type": name, ":message-type": "event" }, JSON.stringify(payload));
}

function exception(name: string, payload: string): Uint8Array {
  return message({ ":exception-type": name, ":message-type": "exception" }, payload);
}

function delta(contentBlockIndex: number, piece: object): Uint8Array {
  return event("contentBlockDelta", { contentBlockIndex, delta: piece, p: "abc" });
}

function start(contentBlockIndex: number, piece: object): Uint8Array {
  return event("contentBlockStart", { contentBlockIndex, start: piece });
}

function stop(contentBlockIndex: number): Uint8Array {
  return event("contentBlockStop", { contentBlockIndex });
}

function stopped(stopReason: string, more: object = {}): Uint8Array {
  return event("messageStop", { stopReason, p: "ab", ...more });
}

const START = event("messageStart", { role: "assistant", p: "abcd" });
const TEXT = [delta(0, { text: "Hi" }), delta(0, { text: " there" }), stop(0)];
const USAGE = { inputTokens: 12, outputTokens: 7, totalTokens: 119, cacheReadInputTokens: 100 };
const FIGURES = event("metadata", { usage: USAGE, metrics: { latencyMs: 5 }, p: "a" });
const WHOLE = [START, ...TEXT, stopped("end_turn"), FIGURES];

const ask = createAsk(bedrockConverseStream, model, WHOLE, (body: readonly Uint8Array[]) => ({
  body,
}));

const assistant = createAnswers(model);

describe("reading", () => {
  it("reads text, usage and the reason", async () => {
    const { message: heard, events } = await ask();
    expect(heard).toMatchObject({
      content: [{ type: "text", text: "Hi there" }],
      stopReason: "stop",
      usage: { input: 12, cacheRead: 100, output: 7, totalTokens: 119 },
      report: {
        events: 6,
        stopReason: "end_turn",
        usage: USAGE,
        details: { metrics: { latencyMs: 5 } },
      },
    });
    expect(heard.usage.cacheWrite).toBeUndefined();
    expect(heard.report?.details).not.toHaveProperty("p");
    expect(heard.report?.unknown).toBeUndefined();
    expect(listTypes(events)).toBe("start text_start text_delta text_delta text_end done");
  });

  it("gives the same from single bytes", async () => {
    const single = WHOLE.flatMap((one) => Array.from(one, (byte) => Uint8Array.of(byte)));
    const at = { clock: manualClock() };
    expect((await ask(single, {}, at)).message).toEqual((await ask(WHOLE, {}, at)).message);
  });

  it("knows the older names of the cache's figures", async () => {
    const usage = { inputTokens: 1, cacheReadInputTokenCount: 2, cacheWriteInputTokenCount: 3 };
    const { message: heard } = await ask([
      START,
      ...TEXT,
      stopped("end_turn"),
      event("metadata", { usage }),
    ]);
    expect(heard.usage).toEqual({ input: 1, cacheRead: 2, cacheWrite: 3 });
    expect(heard.report?.usage).toEqual(usage);
  });

  it("keeps signatures and hidden thinking byte for byte", async () => {
    const { message: heard } = await ask([
      START,
      delta(0, { reasoningContent: { text: "We" } }),
      delta(0, { reasoningContent: { text: "ll" } }),
      delta(0, { reasoningContent: { signature: "c2ln+/=" } }),
      stop(0),
      delta(1, { reasoningContent: { redactedContent: "aGlkZGVu" } }),
      stop(1),
      delta(2, { reasoningContent: { redactedContent: "aGk=" } }),
      delta(2, { reasoningContent: { redactedContent: "aG8=" } }),
      stop(2),
      delta(3, { text: "Hi" }),
      stop(3),
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.content).toEqual([
      { type: "thinking", thinking: "Well", signature: "c2ln+/=" },
      { type: "thinking", thinking: "", signature: "aGlkZGVu", redacted: true },
      { type: "thinking", thinking: "", signature: btoa("hiho"), redacted: true },
      { type: "text", text: "Hi" },
    ]);
  });

  it("begins a new block where another kind comes under the same number", async () => {
    const { message: heard } = await ask([
      START,
      delta(0, { reasoningContent: { text: "Hm" } }),
      delta(0, { text: "Hi" }),
      stop(0),
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.content).toEqual([
      { type: "thinking", thinking: "Hm" },
      { type: "text", text: "Hi" },
    ]);
  });

  it("streams calls with their arguments, several in one response", async () => {
    const { message: heard, events } = await ask([
      START,
      start(0, { toolUse: { toolUseId: "t_1", name: "add", type: "tool_use" } }),
      delta(0, { toolUse: { input: '{"a": 1' } }),
      delta(0, { toolUse: { input: ', "b": 2}' } }),
      stop(0),
      start(1, { toolUse: { toolUseId: "t_2", name: "now" } }),
      stop(1),
      start(2, { toolUse: { toolUseId: "t_3", name: "go", input: { to: "x" } } }),
      stop(2),
      stopped("tool_use"),
      FIGURES,
    ]);
    expect(heard.stopReason).toBe("toolUse");
    expect(heard.content).toEqual([
      { type: "toolCall", id: "t_1", name: "add", arguments: { a: 1, b: 2 } },
      { type: "toolCall", id: "t_2", name: "now", arguments: {} },
      { type: "toolCall", id: "t_3", name: "go", arguments: { to: "x" } },
    ]);
    expect(events.filter(({ type }) => type === "toolcall_delta")).toHaveLength(3);
  });

  it("keeps two calls apart that have the same number, and never repairs arguments", async () => {
    const { message: heard } = await ask([
      START,
      start(0, { toolUse: { toolUseId: "t_1", name: "add" } }),
      delta(0, { toolUse: { input: '{"a": ' } }),
      start(0, { toolUse: { toolUseId: "t_2", name: "add" } }),
      delta(0, { toolUse: { input: '{"a": 2}' } }),
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.stopReason).toBe("toolUse");
    expect(heard.content).toMatchObject([
      { id: "t_1", arguments: {}, rawArguments: '{"a": ', argumentsError: expect.any(String) },
      { id: "t_2", arguments: { a: 2 } },
    ]);
  });

  const SERVICE_USE = { toolUseId: "s_1", name: "interpreter", type: "server_tool_use" };
  const SERVICE_RESULT = { toolUseId: "s_1", status: "success", type: "interpreter_result" };

  it("shows the tools that the service runs, and sends them back as they were", async () => {
    const { message: heard } = await ask(
      [
        START,
        start(0, { toolUse: SERVICE_USE }),
        delta(0, { toolUse: { input: '{"snippet": "1 + 1"}' } }),
        stop(0),
        start(1, { toolResult: SERVICE_RESULT }),
        delta(1, { toolResult: [{ text: "It is" }] }),
        delta(1, { toolResult: [{ text: " 2" }, { json: { exitCode: 0 } }] }),
        stop(1),
        delta(2, { text: "2" }),
        stop(2),
        stopped("end_turn"),
        FIGURES,
      ],
      {},
      {},
      nova,
    );
    const use = { toolUse: { ...SERVICE_USE, input: { snippet: "1 + 1" } } };
    const output = [{ text: "It is 2" }, { json: { exitCode: 0 } }];
    const result = { toolResult: { ...SERVICE_RESULT, content: output } };
    expect(heard.stopReason).toBe("stop");
    expect(heard.content).toEqual([
      {
        type: "serviceTool",
        id: "s_1",
        name: "interpreter",
        input: { snippet: "1 + 1" },
        raw: use,
      },
      { type: "serviceTool", id: "s_1", name: "interpreter", output, raw: result },
      { type: "text", text: "2" },
    ]);
    const [, back] = formatMessages([createPrompt("?"), heard], nova);
    expect(back).toEqual({ role: "assistant", content: [use, result, { text: "2" }] });
  });

  it("keeps citations with their text, and sends them back", async () => {
    const citation = { title: "facts", location: { documentChar: { start: 0, end: 4 } } };
    const { message: heard } = await ask([
      START,
      delta(0, { citation }),
      delta(0, { text: "It was so." }),
      stop(0),
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.content).toEqual([
      {
        type: "text",
        text: "It was so.",
        signature: JSON.stringify([citation]),
        citations: [{ title: "facts" }],
      },
    ]);
    expect(formatMessages([createPrompt("?"), heard], model)[1]).toEqual({
      role: "assistant",
      content: [{ citationsContent: { content: [{ text: "It was so." }], citations: [citation] } }],
    });
  });

  it("takes images that the model made", async () => {
    const { message: heard } = await ask([
      START,
      start(0, { image: { format: "jpeg" } }),
      delta(0, { image: { source: { bytes: "aGk=" } } }),
      stop(0),
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.content).toEqual([{ type: "image", data: "aGk=", mimeType: "image/jpeg" }]);
  });

  it("counts what it does not know and goes on", async () => {
    const { message: heard } = await ask([
      event("initialThing", {}),
      START,
      start(0, { hologram: {} }),
      delta(0, { hologram: 1 }),
      delta(7, { toolUse: { input: "{}" } }),
      delta(1, { reasoningContent: { mood: "good" } }),
      ...TEXT,
      stopped("end_turn"),
      FIGURES,
    ]);
    expect(heard.content).toEqual([{ type: "text", text: "Hi there" }]);
    expect(heard.report?.unknown).toEqual({
      "event initialThing": 1,
      "block hologram": 1,
      "delta hologram": 1,
      "delta of no block": 1,
      "delta reasoningContent.mood": 1,
    });
  });

  it.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["something_new", "stop"],
  ])("reads the reason %s as %s", async (reason, stopReason) => {
    const { message: heard } = await ask([START, ...TEXT, stopped(reason), FIGURES]);
    expect(heard).toMatchObject({ stopReason, report: { stopReason: reason } });
  });

  it.each([
    ["guardrail_intervened", "refused", false],
    ["content_filtered", "refused", false],
    ["malformed_tool_use", "bad_request", true],
    ["malformed_model_output", "bad_request", true],
  ])("fails with the reason %s, and keeps what came", async (reason, kind, retryable) => {
    const { message: heard } = await ask([START, ...TEXT, stopped(reason), FIGURES]);
    expect(heard).toMatchObject({
      content: [{ type: "text", text: "Hi there" }],
      stopReason: "error",
      failure: { kind, retryable },
      usage: { input: 12, output: 7 },
    });
  });

  it("reports which model a router chose, and other details", async () => {
    const trace = { promptRouter: { invokedModelId: "anthropic.claude-x" } };
    const { message: heard } = await ask([
      START,
      ...TEXT,
      stopped("end_turn", { additionalModelResponseFields: { stop_sequence: "|" } }),
      event("metadata", { usage: USAGE, trace }),
    ]);
    expect(heard.servedModel).toBe("anthropic.claude-x");
    expect(heard.report?.details).toEqual({
      trace,
      additionalModelResponseFields: { stop_sequence: "|" },
    });
  });

  it.each([
    ["throttlingException", "rate_limit"],
    ["serviceUnavailableException", "overloaded"],
    ["validationException", "bad_request"],
  ])("fails when %s comes in the middle, with what came kept", async (name, kind) => {
    const { message: heard } = await ask([
      START,
      ...TEXT,
      exception(name, '{"message":"Not now"}'),
      ...WHOLE,
    ]);
    expect(heard).toMatchObject({
      content: [{ text: "Hi there" }],
      stopReason: "error",
      failure: { kind },
    });
    expect(heard.errorMessage).toContain("Not now");
  });

  it("fails when the connection says an error of its own", async () => {
    const headers = {
      ":message-type": "error",
      ":error-code": "InternalServerException",
      ":error-message": "It broke",
    };
    const { message: heard } = await ask([START, message(headers, "")]);
    expect(heard.stopReason).toBe("error");
    expect(heard.errorMessage).toContain("It broke");
  });

  it.each(WHOLE.slice(0, -2).map((_, at) => at))(
    "a response cut after event %i is incomplete, and keeps what came",
    async (at) => {
      const { message: heard, events } = await ask(WHOLE.slice(0, at + 1));
      expect(heard).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
      expect(events.at(-1)?.type).toBe("error");
    },
  );

  it("a response cut in the middle of a message is incomplete", async () => {
    const end = stopped("end_turn");
    const { message: heard } = await ask([START, ...TEXT, end.subarray(0, end.length - 1)]);
    expect(heard).toMatchObject({
      content: [{ text: "Hi there" }],
      failure: { kind: "incomplete" },
    });
  });

  it("a message with a wrong checksum, or a second beginning, is incomplete", async () => {
    const broken = Uint8Array.from(FIGURES);
    broken[20] = 0;
    for (const body of [
      [START, broken],
      [START, ...TEXT, START],
    ]) {
      expect((await ask(body)).message.failure).toMatchObject({ kind: "incomplete" });
    }
  });

  it("is whole when only the figures, or a part of them, are missing", async () => {
    for (const rest of [[], [FIGURES.subarray(0, 30)]]) {
      const { message: heard } = await ask([START, ...TEXT, stopped("end_turn"), ...rest]);
      expect(heard).toMatchObject({ stopReason: "stop", usage: {} });
      expect(heard.report?.usage).toBeUndefined();
    }
  });

  it("is done with the figures, also when the connection stays open", async () => {
    const service = fakeService({ body: WHOLE, open: true });
    const { message: heard } = await sendRequest(bedrockConverseStream, model, service);
    expect(heard.stopReason).toBe("stop");
  });

  it("waits for the figures only a little", async () => {
    const clock = manualClock();
    const service = fakeService({ body: [START, ...TEXT, stopped("end_turn")], open: true });
    const heard = sendRequest(bedrockConverseStream, model, service, {}, { clock });
    await clock.advance(AFTER_FINISH_MS);
    expect((await heard).message.stopReason).toBe("stop");
  });

  it("says what came where no stream came", async () => {
    const headers = { "content-type": "application/json" };
    const body = '{"message":"The security token included in the request is expired"}';
    const service = fakeService({ body, headers });
    const { message: heard } = await sendRequest(bedrockConverseStream, model, service);
    expect(heard.stopReason).toBe("error");
    expect(heard.errorMessage).toContain("The security token");
  });
});

describe("reading what InvokeModelWithResponseStream wraps", () => {
  function invoke(body: readonly Uint8Array[], at: Model = model): Promise<Exchanged> {
    const asked = { ...at, api: "bedrock-invoke-stream" };
    return sendRequest(bedrockInvokeStream, asked, fakeService({ body }));
  }

  it("asks each model in its own format", async () => {
    const { request: claude } = await invoke(WHOLE);
    expect(claude.url).toMatch(/\/model\/us\.anthropic\.claude-.*\/invoke-with-response-stream$/);
    expect(claude.body).toMatchObject({
      anthropic_version: "bedrock-2023-05-31",
      max_tokens: 32_000,
      messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
    });
    expect(claude.body).not.toHaveProperty("model");
    expect(claude.body).not.toHaveProperty("stream");
    const { request: other } = await invoke(WHOLE, nova);
    expect(other.body).toMatchObject({
      schemaVersion: "messages-v1",
      messages: [{ role: "user", content: [{ text: "Hello" }] }],
    });
  });

  function chunk(payload: object): Uint8Array {
    return event("chunk", { bytes: Buffer.from(JSON.stringify(payload)).toString("base64") });
  }

  it("reads Anthropic's events", async () => {
    const { message: heard } = await invoke([
      chunk({ type: "message_start", message: { id: "msg_1", model: "claude-x", usage: {} } }),
      chunk({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      chunk({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text: "Grüße" },
      }),
      chunk({ type: "content_block_stop", index: 0 }),
      chunk({
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: 3 },
      }),
      chunk({ type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 2 } }),
    ]);
    expect(heard).toMatchObject({
      content: [{ type: "text", text: "Grüße" }],
      responseId: "msg_1",
      servedModel: "claude-x",
      stopReason: "stop",
      usage: { output: 3 },
      report: {
        events: 6,
        details: { "amazon-bedrock-invocationMetrics": { inputTokenCount: 2 } },
      },
    });
  });

  it("reads Nova's events", async () => {
    const { message: heard } = await invoke([
      chunk({ messageStart: { role: "assistant" } }),
      chunk({
        contentBlockDelta: { delta: { text: "Hi" }, contentBlockIndex: 0 },
        "amazon-bedrock-guardrailAction": "NONE",
      }),
      chunk({ contentBlockStop: { contentBlockIndex: 0 } }),
      chunk({ messageStop: { stopReason: "end_turn" } }),
      chunk({ metadata: { usage: { inputTokens: 1, outputTokens: 2 }, metrics: {} } }),
    ]);
    expect(heard).toMatchObject({
      content: [{ type: "text", text: "Hi" }],
      stopReason: "stop",
      usage: { input: 1, output: 2 },
      report: { events: 5, details: { "amazon-bedrock-guardrailAction": "NONE" } },
    });
  });

  it("counts chunks of other formats, and takes bytes that are none for a broken response", async () => {
    const other = await invoke([chunk({ outputText: "Hi" })]);
    expect(other.message).toMatchObject({
      failure: { kind: "incomplete" },
      report: { unknown: { chunk: 1 } },
    });
    const broken = await invoke([event("chunk", { bytes: "%%%" })]);
    expect(broken.message.failure).toMatchObject({ kind: "incomplete" });
  });
});

describe("writing", () => {
  const tools = [
    {
      name: "look",
      description: "Looks",
      parameters: { type: "object", properties: { at: { type: "string" } }, title: "Look" },
    },
  ];
  const call = { type: "toolCall", id: "t_1", name: "look", arguments: { at: "x" } } as const;
  const result = createResult("t_1", TEXT_AND_IMAGE, { isError: true });
  const IMAGE = { image: { format: "png", source: { bytes: "aGk=" } } };

  it("asks the right place with the key in its header", async () => {
    const { request } = await ask();
    expect(request.url).toBe(
      "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
    );
    expect(request.headers).toMatchObject({
      authorization: "Bearer test-key",
      accept: "application/vnd.amazon.eventstream",
      "content-type": "application/json",
    });
  });

  it("writes the id of a model that is an ARN as one part of the path", async () => {
    const id = "arn:aws:bedrock:eu-west-1:1234:inference-profile/eu.anthropic.claude-opus-4-6-v1";
    const { request } = await ask(WHOLE, {}, {}, { ...model, id });
    expect(request.url).toContain(
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1234%3Ainference-profile%2Feu.anthropic.claude-opus-4-6-v1/converse-stream",
    );
  });

  const SECRET = "no/real+secret/just+something/long+enough";

  it("signs with a pair of AWS keys, for the region of the address", async () => {
    const at = { ...model, baseUrl: "https://bedrock-runtime.eu-west-1.amazonaws.com/" };
    const apiKey = `ASIAEXAMPLE1:${SECRET}:c2Vzc2lvbg==`;
    const clock = manualClock(Date.UTC(2026, 0, 2, 3, 4, 5));
    const { request } = await ask(WHOLE, {}, { apiKey, clock }, at);
    expect(request.headers["authorization"]).toMatch(
      /^AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE1\/20260102\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=accept;content-type;host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    );
    expect(request.headers).toMatchObject({
      "x-amz-date": "20260102T030405Z",
      "x-amz-security-token": "c2Vzc2lvbg==",
    });
    expect(JSON.stringify(request.headers)).not.toContain(SECRET);
  });

  it("signs for the region that the model names, and says when none is known", async () => {
    const apiKey = `AKIAEXAMPLE1:${SECRET}`;
    const at = { ...model, baseUrl: "https://gateway.example", quirks: { region: "us-west-2" } };
    const { request } = await ask(WHOLE, {}, { apiKey }, at);
    expect(request.headers["authorization"]).toContain("/us-west-2/bedrock/");

    const { stream } = bedrockConverseStream({ fetch: fakeService({ body: WHOLE }).fetch });
    const unknown: Model = { ...model, baseUrl: "https://gateway.example" };
    const answer = await stream(unknown, { messages: [createPrompt("Hello")] }, { apiKey });
    const failed = await answer.result();
    expect(failed).toMatchObject({ failure: { kind: "bad_request", retryable: false } });
    expect(failed.errorMessage).toContain('the quirk "region"');
    expect(failed.errorMessage).not.toContain(SECRET);
  });

  const history: Message[] = [
    createPrompt("Look"),
    assistant([
      { type: "thinking", thinking: "Hm", signature: "sig" },
      { type: "thinking", thinking: "", signature: "aGlk", redacted: true },
      { type: "text", text: "  " },
      call,
    ]),
    result,
    createPrompt("And?"),
  ];

  it("merges results with what the user says next, images and errors included", () => {
    expect(formatMessages(history, model)).toEqual([
      { role: "user", content: [{ text: "Look" }] },
      {
        role: "assistant",
        content: [
          { reasoningContent: { reasoningText: { text: "Hm", signature: "sig" } } },
          { reasoningContent: { redactedContent: "aGlk" } },
          { toolUse: { toolUseId: "t_1", name: "look", input: { at: "x" } } },
        ],
      },
      {
        role: "user",
        content: [
          {
            // An error with an image cannot be marked as one.
            toolResult: {
              toolUseId: "t_1",
              content: [{ text: "(The call failed.)" }, { text: "A dot" }, IMAGE],
            },
          },
          { text: "And?" },
        ],
      },
    ]);
  });

  it("marks errors that hold text alone", () => {
    const failed: Message = { ...result, content: result.content.slice(0, 1) };
    const [, , results] = formatMessages([createPrompt("Look"), assistant([call]), failed], model);
    expect(results).toMatchObject({ content: [{ toolResult: { status: "error" } }] });
  });

  it("leaves out thinking of a Claude model that nothing came of", () => {
    const cut = assistant([{ type: "thinking", thinking: "Hm", signature: "sig" }]);
    expect(formatMessages([createPrompt("1"), cut, createPrompt("2")], model)).toEqual([
      { role: "user", content: [{ text: "1" }, { text: "2" }] },
    ]);
  });

  it("puts the images of results behind all results where a result can have none", () => {
    const only: Message = { ...result, toolCallId: "t_2", content: result.content.slice(1) };
    const calls = createAnswers(llama)([call, { ...call, id: "t_2" }]);
    for (const after of [[], [createPrompt("And?")]]) {
      const [, , results] = formatMessages(
        [createPrompt("Look"), calls, result, only, ...after],
        llama,
      );
      expect(results).toEqual({
        role: "user",
        content: [
          { toolResult: { toolUseId: "t_1", content: [{ text: "A dot" }] } },
          { toolResult: { toolUseId: "t_2", content: [{ text: "(The image follows.)" }] } },
          IMAGE,
          IMAGE,
          ...after.map(() => ({ text: "And?" })),
        ],
      });
    }
  });

  it("shows signatures only to the model that made them, and ids in its alphabet", () => {
    const other: Model = { ...model, id: "anthropic.claude-opus-4-6-v1" };
    const [, answer, heard] = formatMessages(
      [
        createPrompt("Look"),
        assistant([
          { type: "thinking", thinking: "Hm", signature: "sig" },
          { ...call, id: "call:1|x" },
        ]),
        { ...result, toolCallId: "call:1|x" },
      ],
      other,
    );
    const text = JSON.stringify([answer, heard]);
    expect(text).not.toContain('"sig"');
    const ids = [...text.matchAll(/"toolUseId":"([^"]*)"/g)].map(([, id]) => id);
    expect(ids).toHaveLength(2);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[0]).toMatch(/^[\w-]{1,64}$/);
  });

  it("lets a user begin, sends no blank text, and ends no answer with spaces", async () => {
    const messages = [assistant([{ type: "text", text: "So  " }])];
    const { request } = await ask(WHOLE, { systemPrompt: " ", messages });
    expect(request.body["system"]).toBeUndefined();
    expect(formatMessages(messages, model)).toEqual([
      { role: "user", content: [{ text: "(The conversation goes on.)" }] },
      { role: "assistant", content: [{ text: "So" }] },
    ]);
    const cited = assistant([{ type: "text", text: " ", signature: "[{}]" }]);
    expect(formatMessages([createPrompt("a"), cited, createPrompt("")], model)).toEqual([
      { role: "user", content: [{ text: "a" }, { text: "(no text)" }] },
    ]);
  });

  const POINT = { cachePoint: { type: "default" } };

  it("marks at most four places to cache, which the next request finds again", async () => {
    const one = { systemPrompt: "Be brief.", messages: history.slice(0, 3) };
    const first = (await ask(WHOLE, one)).request.body;
    const second = (await ask(WHOLE, { ...one, messages: history })).request.body;
    expect(first["system"]).toEqual([{ text: "Be brief." }, POINT]);
    expect(first["messages"]).toMatchObject([
      { content: [{ text: "Look" }, POINT] },
      { role: "assistant" },
      { content: [{ toolResult: {} }, POINT] },
    ]);
    expect(JSON.stringify(second).split('"cachePoint"')).toHaveLength(1 + 3);
    expect((await ask(WHOLE, one)).request.body).toEqual(first);
  });

  it.each([
    ["Claude 4.5 for long", model, "long", { type: "default", ttl: "1h" }],
    [
      "an older Claude for long",
      { ...model, id: "anthropic.claude-3-7-sonnet-20250219-v1:0" },
      "long",
      { type: "default" },
    ],
    ["Nova", nova, "long", { type: "default" }],
    [
      "a model of which we know it",
      { ...llama, quirks: { cache: true } },
      "short",
      { type: "default" },
    ],
    ["Claude 3", { ...model, id: "anthropic.claude-3-haiku-20240307-v1:0" }, "short", undefined],
    ["Llama", llama, "short", undefined],
    ["no model if the caller says so", model, "none", undefined],
  ] as const)("caches for %s", async (_, at, cacheRetention, point) => {
    const { request } = await ask(WHOLE, { systemPrompt: "S" }, { cacheRetention }, at);
    const cachePoint = point ? [{ cachePoint: point }] : [];
    expect(request.body["system"]).toEqual([{ text: "S" }, ...cachePoint]);
    expect(request.body["messages"]).toEqual([
      { role: "user", content: [{ text: "Hello" }, ...cachePoint] },
    ]);
  });

  it.each([
    ["auto", undefined],
    ["required", { any: {} }],
    [{ name: "look" }, { tool: { name: "look" } }],
  ] as const)("says the choice of tools %j", async (toolChoice, expected) => {
    const { request } = await ask(WHOLE, { tools }, { toolChoice });
    const { parameters, ...named } = tools[0] ?? {};
    expect(request.body["toolConfig"]).toEqual({
      tools: [{ toolSpec: { ...named, inputSchema: { json: parameters } } }],
      ...(expected && { toolChoice: expected }),
    });
  });

  it("declares no tools if none may be called, but those that were", async () => {
    const none = await ask(WHOLE, { tools }, { toolChoice: "none" });
    expect(none.request.body["toolConfig"]).toBeUndefined();
    for (const context of [{ messages: history, tools }, { messages: history }]) {
      const { request } = await ask(WHOLE, context, { toolChoice: "none" });
      expect(request.body["toolConfig"]).toMatchObject({
        tools: [{ toolSpec: { name: "look", description: "Not to be used any more." } }],
      });
    }
  });

  it("gives Nova schemas with what it takes, and no empty description", async () => {
    const named = {
      ...tools[0],
      name: "look",
      description: "",
      parameters: tools[0]?.parameters ?? {},
    };
    const { request } = await ask(WHOLE, { tools: [named] }, {}, nova);
    const json = { type: "object", properties: { at: { type: "string" } } };
    expect(request.body["toolConfig"]).toEqual({
      tools: [{ toolSpec: { name: "look", inputSchema: { json } } }],
    });
  });

  it("limits and warms the answer as asked", async () => {
    const { request } = await ask(WHOLE, {}, { maxTokens: 100, temperature: 0.5 });
    expect(request.body["inferenceConfig"]).toEqual({ maxTokens: 100, temperature: 0.5 });
    const bare = await ask(WHOLE, {}, {}, llama);
    expect(Object.keys(bare.request.body)).toEqual(["messages"]);
  });

  const THINKING: StreamOptions = { thinkingLevel: "medium", maxTokens: 1_000, temperature: 1 };
  const LEFT = { maxTokens: 1_000 };
  const gpt: Model = { ...model, id: "global.openai.gpt-5.6-sol" };

  it.each([
    [
      "Claude by a budget",
      model,
      { thinking: { type: "enabled", budget_tokens: 8_192 } },
      { maxTokens: 9_216 },
    ],
    [
      "newer Claude by a level",
      { ...model, id: "anthropic.claude-opus-4-6-v1" },
      { thinking: { type: "adaptive" }, output_config: { effort: "medium" } },
      LEFT,
    ],
    ["Nova 2", nova, { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } }, LEFT],
    ["gpt-oss", { ...model, id: "openai.gpt-oss-120b-1:0" }, { reasoning_effort: "medium" }, LEFT],
    ["GPT", gpt, { reasoning: { effort: "medium" } }, LEFT],
    ["others", llama, undefined, { maxTokens: 1_000, temperature: 1 }],
    ["a model that cannot", { ...model, reasoning: false }, undefined, { ...LEFT, temperature: 1 }],
  ] as const)("asks %s to think", async (_, at, fields, config) => {
    const { request } = await ask(WHOLE, {}, THINKING, at);
    expect(request.body["additionalModelRequestFields"]).toEqual(fields);
    expect(request.body["inferenceConfig"]).toEqual(config);
  });

  it("sets no limit where Nova thinks hardest", async () => {
    const { request } = await ask(WHOLE, {}, { ...THINKING, thinkingLevel: "xhigh" }, nova);
    expect(request.body["inferenceConfig"]).toBeUndefined();
    expect(request.body["additionalModelRequestFields"]).toEqual({
      reasoningConfig: { type: "enabled", maxReasoningEffort: "high" },
    });
  });

  it("lets Claude think between calls, and not where a call is forced", async () => {
    const between = await ask(WHOLE, { tools }, THINKING);
    expect(between.request.body["additionalModelRequestFields"]).toMatchObject({
      anthropic_beta: ["interleaved-thinking-2025-05-14"],
    });
    const forced = await ask(WHOLE, { tools }, { ...THINKING, toolChoice: "required" });
    expect(forced.request.body["additionalModelRequestFields"]).toBeUndefined();
    const old = { ...model, id: "us.anthropic.claude-3-7-sonnet-20250219-v1:0" };
    const older = await ask(WHOLE, { tools }, THINKING, old);
    expect(older.request.body["additionalModelRequestFields"]).toEqual({
      thinking: { type: "enabled", budget_tokens: 8_192 },
    });
  });

  it("lets Claude leave out thinking that does not fit any more, or sends none", async () => {
    const bound: Model = { ...model, id: "us.anthropic.claude-sonnet-5-5" };
    const answer = createAnswers(bound)([
      { type: "thinking", thinking: "Hm", signature: "sealed" },
      { type: "text", text: "Hi" },
    ]);
    const messages = [createPrompt("Hello"), answer, createPrompt("And?")];
    const on = await ask(WHOLE, { messages }, { thinkingLevel: "high" }, bound);
    expect(on.request.body["additionalModelRequestFields"]).toMatchObject({
      thinking: {
        type: "adaptive",
        block_binding: { prefix_mismatch_behavior: "drop_block" },
      },
      anthropic_beta: ["thinking-binding-controls-2026-08-01"],
    });
    expect(JSON.stringify(on.request.body)).toContain("sealed");
    const off = await ask(WHOLE, { messages }, {}, bound);
    expect(off.request.body["additionalModelRequestFields"]).toEqual({
      thinking: { type: "between_tools" },
    });
    expect(JSON.stringify(off.request.body)).not.toContain("sealed");
    const older = await ask(
      WHOLE,
      { messages },
      { thinkingLevel: "high" },
      {
        ...bound,
        id: "us.anthropic.claude-opus-4-8",
      },
    );
    expect(JSON.stringify(older.request.body)).not.toContain("block_binding");
  });

  it("takes a model's family from a quirk where its id does not show it", async () => {
    const id = "arn:aws:bedrock:us-east-1:1234:application-inference-profile/abc";
    const at = { ...model, id, quirks: { family: "claude", cache: true } } as const;
    const { request } = await ask(WHOLE, { systemPrompt: "S" }, THINKING, at);
    expect(request.body["system"]).toEqual([{ text: "S" }, POINT]);
    expect(request.body["additionalModelRequestFields"]).toEqual({
      thinking: { type: "enabled", budget_tokens: 8_192 },
    });
  });
});
