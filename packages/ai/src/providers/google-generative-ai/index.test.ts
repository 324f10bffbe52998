import { describe, expect, it } from "vitest";
import type { StreamOptions, ThinkingBudgets } from "../../client/client.ts";
import type {
  AssistantContent,
  AssistantMessage,
  Model,
  ThinkingLevel,
  ToolResultMessage,
  UserContent,
} from "../../messages/messages.ts";
import {
  createAsk,
  type FakeAnswer,
  fakeService,
  sendRequest,
  type Payloads,
  createAnswers,
  sse,
  createResult,
  listTypes,
  createPrompt,
} from "../../testing/fake-service.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { googleGenerativeAi } from "./index.ts";
import { prepareFiles } from "../files/prepare.ts";
import { FILES } from "./files.ts";
import { formatMessages } from "./request.ts";
import { AFTER_FINISH_MS } from "../http/exchange.ts";

const model: Model = {
  id: "gemini-3.1-pro-preview",
  name: "Gemini",
  api: "google-generative-ai",
  provider: "google",
};
const older: Model = { ...model, id: "gemini-2.5-flash" };

interface Extra {
  finishReason?: string;
  [field: string]: unknown;
}

/** One chunk of the first candidate. */
function chunk(parts: readonly object[], extra: Extra = {}, around: object = {}): object {
  const content = { role: "model", parts };
  return {
    candidates: [{ content, index: 0, ...extra }],
    modelVersion: "gemini-3.1-pro-001",
    responseId: "r1",
    ...around,
  };
}

const STOP: Extra = { finishReason: "STOP" };
const WHOLE = [chunk([{ text: "Hi" }], STOP)];

const ask = createAsk(googleGenerativeAi, model, WHOLE, (payloads: Payloads) => sse(...payloads));

async function readContent(...payloads: object[]): Promise<AssistantContent[]> {
  return (await ask(payloads)).message.content;
}

const assistant = createAnswers(model);

function call(id: string, name = "read", signature?: string): AssistantContent {
  const proof = signature === undefined ? {} : { signature };
  return { type: "toolCall", id, name, arguments: { path: "a" }, ...proof };
}

function result(
  toolCallId: string,
  content: UserContent[] = [{ type: "text", text: "done" }],
  isError = false,
): ToolResultMessage {
  return createResult(toolCallId, content, { toolName: "read", isError });
}

const PICTURE: UserContent = { type: "image", mimeType: "image/png", data: "aW1n" };
const INLINE = { inlineData: { mimeType: "image/png", data: "aW1n" } };

const SOMETHING: unknown = expect.stringMatching(/./);

describe("reading", () => {
  it("reads text, the id, the served model, usage and the reason", async () => {
    const { message, events } = await ask([
      chunk([{ text: "Hel" }]),
      chunk([{ text: "lo" }], STOP, {
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 },
      }),
    ]);
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hello" }],
      responseId: "r1",
      servedModel: "gemini-3.1-pro-001",
      stopReason: "stop",
      usage: { input: 5, output: 2, totalTokens: 7 },
      report: { events: 2, stopReason: "STOP", usage: { promptTokenCount: 5 } },
    });
    expect(listTypes(events)).toBe("start text_start text_delta text_delta text_end done");
  });

  it("makes a block of neighboring text, and another one of what is thought", async () => {
    const content = await readContent(
      chunk([{ text: "Let me ", thought: true }]),
      chunk([{ text: "see.", thought: true }, { text: "It " }]),
      chunk([{ text: "" }]),
      chunk([{ text: "is." }]),
      chunk([], STOP),
    );
    expect(content).toEqual([
      { type: "thinking", thinking: "Let me see." },
      { type: "text", text: "It is." },
    ]);
  });

  it("keeps each signature byte for byte with the part that has it", async () => {
    const content = await readContent(
      chunk([{ text: "Well", thought: true, thoughtSignature: "c2ln+/0=" }]),
      chunk([{ text: "A" }, { text: "B", thoughtSignature: "c2ln+/1=" }, { text: "C" }]),
      chunk([{ functionCall: { name: "read", args: {} }, thoughtSignature: "c2ln+/2=" }]),
      chunk([{ text: "", thoughtSignature: "c2ln+/3=" }]),
      chunk([{ thoughtSignature: "c2ln+/4=" }, { text: "", thoughtSignature: "" }], STOP),
    );
    expect(content).toEqual([
      { type: "thinking", thinking: "Well", signature: "c2ln+/0=" },
      { type: "text", text: "A" },
      { type: "text", text: "B", signature: "c2ln+/1=" },
      { type: "text", text: "C" },
      { type: "toolCall", id: "call_r1_1", name: "read", arguments: {}, signature: "c2ln+/2=" },
      { type: "text", text: "", signature: "c2ln+/3=" },
      { type: "text", text: "", signature: "c2ln+/4=" },
    ]);
  });

  it("takes calls whole, several in one response, and makes up the ids that are not there", async () => {
    const { message } = await ask([
      chunk([
        { functionCall: { name: "read", args: { path: "a", n: [1, null] } } },
        { functionCall: { id: "x9", name: "read", args: { path: "b" } } },
      ]),
      chunk([{ functionCall: { name: "list" } }, { text: "" }], STOP),
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual([
      { type: "toolCall", id: "call_r1_1", name: "read", arguments: { path: "a", n: [1, null] } },
      { type: "toolCall", id: "x9", name: "read", arguments: { path: "b" } },
      { type: "toolCall", id: "call_r1_3", name: "list", arguments: {} },
    ]);
  });

  it("keeps what its own tools did, whole, and runs nothing", async () => {
    const code = { executableCode: { language: "PYTHON", code: "print(1)" } };
    const ran = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } };
    const search = {
      toolCall: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", args: { queries: ["x"] } },
      thoughtSignature: "c2ln",
    };
    const found = { toolResponse: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", response: { a: 1 } } };
    const { message } = await ask([chunk([code, ran, search, found, { text: "One." }], STOP)]);
    expect(message.stopReason).toBe("stop");
    expect(message.content).toEqual([
      {
        type: "serviceTool",
        id: "code_1",
        name: "code_execution",
        input: code.executableCode,
        raw: code,
      },
      {
        type: "serviceTool",
        id: "code_1",
        name: "code_execution",
        output: ran.codeExecutionResult,
        raw: ran,
      },
      {
        type: "serviceTool",
        id: "s1",
        name: "GOOGLE_SEARCH_WEB",
        input: { queries: ["x"] },
        raw: search,
      },
      { type: "serviceTool", id: "s1", name: "GOOGLE_SEARCH_WEB", output: { a: 1 }, raw: found },
      { type: "text", text: "One." },
    ]);
  });

  it("gives the images that the model made, and leaves out those that it only thought of", async () => {
    const { message } = await ask([
      chunk([{ ...INLINE, thought: true }, { text: "Here:" }, INLINE]),
      chunk([{ ...INLINE, thoughtSignature: "c2ln" }], STOP),
    ]);
    expect(message.content).toEqual([
      { type: "text", text: "Here:" },
      PICTURE,
      { ...PICTURE, signature: "c2ln" },
    ]);
    expect(message.report?.unknown).toEqual({ "part inlineData": 1 });
  });

  it("counts parts that it does not know, and goes on", async () => {
    const { message } = await ask([
      chunk([{ hologram: {} }, {}, { fileData: { fileUri: "gs://x" } }, { text: "Hi" }]),
      { news: true },
      chunk([{ functionCall: {} }], STOP),
      "[DONE]",
    ]);
    expect(message.content).toEqual([{ type: "text", text: "Hi" }]);
    expect(message.report?.unknown).toEqual({
      "part hologram": 1,
      "part fileData": 1,
      "end of no call": 1,
    });
  });

  it("reads the first candidate, and says how many there were", async () => {
    const { message } = await ask([
      {
        candidates: [
          { index: 1, content: { parts: [{ text: "No" }] }, finishReason: "SAFETY" },
          { index: 0, content: { parts: [{ text: "Yes" }] }, finishReason: "STOP" },
        ],
      },
      { candidates: [{ index: 1, content: { parts: [{ text: "No" }] } }] },
    ]);
    expect(message.content).toEqual([{ type: "text", text: "Yes" }]);
    expect(message.report).toMatchObject({ stopReason: "STOP", details: { choices: 2 } });
  });

  it("keeps what the service reports of sources and ratings", async () => {
    const { message } = await ask([
      chunk([{ text: "a" }], { citationMetadata: { citationSources: [1] } }),
      chunk([{ text: "b" }], { citationMetadata: { citationSources: [2] }, safetyRatings: ["ok"] }),
      chunk([], { ...STOP, groundingMetadata: { webSearchQueries: ["q"] } }),
    ]);
    expect(message.report?.details).toEqual({
      citationMetadata: [{ citationSources: [1] }, { citationSources: [2] }],
      safetyRatings: ["ok"],
      groundingMetadata: [{ webSearchQueries: ["q"] }],
    });
  });

  it("counts as input what was not in the cache, and thinking as output; the last figures hold", async () => {
    const { message } = await ask([
      chunk(
        [{ text: "a" }],
        {},
        { usageMetadata: { promptTokenCount: 100, totalTokenCount: 100 } },
      ),
      chunk([], STOP),
      {
        usageMetadata: {
          promptTokenCount: 100,
          cachedContentTokenCount: 60,
          toolUsePromptTokenCount: 7,
          candidatesTokenCount: 10,
          thoughtsTokenCount: 30,
          totalTokenCount: 147,
        },
      },
    ]);
    expect(message.usage).toEqual({
      input: 47,
      cacheRead: 60,
      output: 40,
      reasoning: 30,
      totalTokens: 147,
    });
    expect(message.report?.usage).toMatchObject({ cachedContentTokenCount: 60 });
  });

  it("leaves out usage that was not reported", async () => {
    const answer = await ask([
      chunk([{ text: "a" }], STOP, { usageMetadata: { totalTokenCount: 3 } }),
    ]);
    expect(answer.message.usage).toEqual({ totalTokens: 3 });
    const unsaid = await ask(WHOLE);
    expect(unsaid.message.usage).toEqual({});
    expect(unsaid.message.report).not.toHaveProperty("usage");
  });

  it("reads one JSON array as well, and one object", async () => {
    const payloads = [chunk([{ text: "Hi " }]), chunk([{ text: "you" }], STOP)];
    const headers = { "content-type": "application/json; charset=UTF-8" };
    const hearBody = async (body: string): Promise<AssistantMessage> =>
      (await sendRequest(googleGenerativeAi, model, fakeService({ body, headers }))).message;
    const array = await hearBody(JSON.stringify(payloads, undefined, 1));
    expect(array).toMatchObject({
      content: [{ type: "text", text: "Hi you" }],
      report: { events: 2 },
    });
    const object = await hearBody(JSON.stringify(payloads[1]));
    expect(object).toMatchObject({ content: [{ type: "text", text: "you" }], stopReason: "stop" });
  });
});

/** A part with a piece of a call. */
function piece(functionCall: object, extra: object = {}): object {
  return { functionCall, ...extra };
}

function stringPiece(value: string, willContinue = true): object {
  const arg = { jsonPath: "$.city", stringValue: value, ...(willContinue && { willContinue }) };
  return piece({ partialArgs: [arg], willContinue: true });
}

describe("arguments in pieces", () => {
  const begin = piece({ name: "weather", willContinue: true });
  const end = piece({});

  it("grow as they come, and end with an empty call", async () => {
    const { events, message } = await ask([
      chunk([piece({ name: "weather", willContinue: true }, { thoughtSignature: "c2ln" })]),
      chunk([stringPiece("Ber")]),
      chunk([stringPiece("lin")]),
      chunk([stringPiece("", false)]),
      chunk([end]),
      chunk([begin]),
      chunk([stringPiece("Rome")]),
      chunk([stringPiece("", false)]),
      chunk([end], STOP),
    ]);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual([
      {
        type: "toolCall",
        id: "call_r1_1",
        name: "weather",
        arguments: { city: "Berlin" },
        signature: "c2ln",
      },
      { type: "toolCall", id: "call_r1_2", name: "weather", arguments: { city: "Rome" } },
    ]);
    const deltas = events.flatMap((event) =>
      event.type === "toolcall_delta" ? [event.delta] : [],
    );
    expect(deltas.slice(0, 3)).toEqual(['{"city":"Ber', "lin", '"}']);
  });

  it.each<[string, object[]]>([
    ["the next call", [piece({ name: "list" })]],
    ["text", [{ text: "So." }]],
    ["the end of the response", []],
  ])("end with %s, where no empty call comes", async (_, next) => {
    const days = { partialArgs: [{ jsonPath: "$.days[0].n", numberValue: 2 }] };
    const [first] = await readContent(
      chunk([begin, stringPiece("Rome", false)]),
      chunk([piece(days)]),
      chunk(next, STOP),
    );
    expect(first).toMatchObject({ arguments: { city: "Rome", days: [{ n: 2 }] } });
    expect(first).not.toHaveProperty("argumentsError");
  });

  it("belong to one call as long as its id is the same", async () => {
    const content = await readContent(
      chunk([piece({ id: "c1", name: "weather", willContinue: true })]),
      chunk([
        piece({
          id: "c1",
          name: "weather",
          partialArgs: [{ jsonPath: "$.city", stringValue: "Rome" }],
        }),
      ]),
      chunk([piece({ id: "c2", name: "weather", willContinue: true }), end], STOP),
    );
    expect(content).toMatchObject([
      { id: "c1", arguments: { city: "Rome" } },
      { id: "c2", arguments: {} },
    ]);
  });

  it("are an error where they are not whole, and never pass for less than they are", async () => {
    const cut = [chunk([begin]), chunk([stringPiece("Ber")])];
    const stopped = await ask([...cut, chunk([], STOP)]);
    expect(stopped.message.content).toMatchObject([
      { arguments: {}, rawArguments: '{"city":"Ber', argumentsError: expect.any(String) },
    ]);
    const closed = [chunk([begin]), chunk([stringPiece("Berlin", false)])];
    const tooLong = await ask([...closed, chunk([], { finishReason: "MAX_TOKENS" })]);
    expect(tooLong.message).toMatchObject({
      stopReason: "length",
      content: [{ arguments: {}, argumentsError: expect.any(String) }],
    });
    const lost = piece({ partialArgs: [{ jsonPath: "$..x", numberValue: 1 }] });
    const [broken] = await readContent(chunk([begin]), chunk([lost, end], STOP));
    expect(broken).toHaveProperty("argumentsError");
  });

  it("that are whole count, also where the call was announced", async () => {
    const [first, ...others] = await readContent(
      chunk([piece({ name: "weather", args: {}, willContinue: true })]),
      chunk([piece({ args: { city: "Rome" } })], STOP),
    );
    expect(first).toMatchObject({ arguments: { city: "Rome" } });
    expect(others).toEqual([]);
  });

  it("that come again whole are not taken twice", async () => {
    const { message } = await ask([
      chunk([begin, stringPiece("Rome", false), piece({ args: { city: "Rome" } })], STOP),
    ]);
    expect(message.content).toMatchObject([{ arguments: { city: "Rome" } }]);
    expect(message.report?.unknown).toEqual({ "arguments that came before": 1 });
  });

  it("without a name are a call still", async () => {
    const [first] = await readContent(chunk([piece({ args: { city: "Rome" } })], STOP));
    expect(first).toMatchObject({ type: "toolCall", name: "", arguments: { city: "Rome" } });
  });
});

describe("the end of a response", () => {
  it.each([
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["A_NEW_REASON", "stop"],
    ["OTHER", "stop"],
  ])("%s is %s", async (finishReason, stopReason) => {
    const { message } = await ask([chunk([{ text: "a" }], { finishReason })]);
    expect(message).toMatchObject({ stopReason, report: { stopReason: finishReason } });
  });

  it.each([
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
  ])("%s is a refusal; what was said before is kept", async (finishReason) => {
    const { message } = await ask([
      chunk([{ text: "Some" }]),
      chunk([], { finishReason, finishMessage: "No." }),
    ]);
    expect(message).toMatchObject({
      stopReason: "error",
      content: [{ type: "text", text: "Some" }],
      failure: { kind: "refused", retryable: false },
      report: { stopReason: finishReason },
    });
    expect(message.errorMessage).toContain(`${finishReason}: No.`);
  });

  it("is a refusal where the request was blocked", async () => {
    const { message } = await ask([
      { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 4 } },
    ]);
    expect(message).toMatchObject({
      failure: { kind: "refused", retryable: false },
      usage: { input: 4 },
      report: { details: { promptFeedback: { blockReason: "SAFETY" } } },
    });
    expect(message.report).not.toHaveProperty("stopReason");
  });

  it.each(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])(
    "%s is the model's fault, and may go better the next time",
    async (finishReason) => {
      const { message } = await ask([chunk([{ text: "a" }], { finishReason })]);
      expect(message.failure).toEqual({ kind: "incomplete", retryable: true });
    },
  );

  it("may be announced with every chunk: the last one counts", async () => {
    const { message } = await ask([
      chunk([{ text: "a" }], STOP),
      chunk([{ text: "b" }], STOP),
      chunk([], { finishReason: "MAX_TOKENS" }),
      chunk([]),
    ]);
    expect(message).toMatchObject({
      content: [{ type: "text", text: "ab" }],
      stopReason: "length",
      report: { stopReason: "MAX_TOKENS" },
    });
  });

  it("is not there before the service said why it stopped, wherever it is cut", async () => {
    const payloads = [
      chunk([{ text: "Hm", thought: true }]),
      chunk([{ text: "Hi" }], { finishReason: "FINISH_REASON_UNSPECIFIED" }),
      chunk([{ functionCall: { name: "read", args: { path: "a" } } }]),
      chunk([piece({ name: "weather", willContinue: true })]),
      chunk([stringPiece("Rome", false)]),
      chunk([piece({})]),
    ];
    for (let cut = 1; cut <= payloads.length; cut++) {
      const { message } = await ask(payloads.slice(0, cut));
      expect(message).toMatchObject({ stopReason: "error", failure: { kind: "incomplete" } });
      expect(message.content).not.toEqual([]);
    }
    const { message } = await ask([...payloads, chunk([], STOP)]);
    expect(message).toMatchObject({ stopReason: "toolUse", content: { length: 4 } });
  });

  it("is not there where a chunk is cut in its middle", async () => {
    const body = sse(chunk([{ text: "Hi" }], STOP));
    const { message } = await sendRequest(googleGenerativeAi, model, fakeService(body.trimEnd()));
    expect(message.failure?.kind).toBe("incomplete");
  });

  it("does not wait for a connection that stays open", async () => {
    const clock = manualClock();
    const answer: FakeAnswer = { body: sse(chunk([{ text: "Hi" }], STOP)), open: true };
    const heard = sendRequest(googleGenerativeAi, model, fakeService(answer), {}, { clock });
    await clock.advance(AFTER_FINISH_MS);
    expect((await heard).message).toMatchObject({
      stopReason: "stop",
      content: [{ type: "text", text: "Hi" }],
    });
  });

  it("is an error where one comes in the middle", async () => {
    const error = { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" };
    const { message } = await ask([chunk([{ text: "Hi" }]), { error }]);
    expect(message).toMatchObject({
      content: [{ type: "text", text: "Hi" }],
      failure: { kind: "overloaded", retryable: true },
    });
  });
});

describe("the request", () => {
  it("goes to the model, with the key in its header", async () => {
    const { request } = await ask(WHOLE, {}, {}, { ...model, id: "models/gemini-2.0-flash" });
    expect(request.url).toBe(
      "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse",
    );
    expect(request.headers).toMatchObject({ "x-goog-api-key": "test-key" });
    expect(request.body).toEqual({ contents: [{ role: "user", parts: [{ text: "Hello" }] }] });
  });

  it.each([
    ["google", "AIzaKey", "x-goog-api-key"],
    ["google", "ya29.token", "authorization"],
    ["google-vertex", "AIzaKey", "x-goog-api-key"],
    ["google-vertex", "AQ.key", "x-goog-api-key"],
    ["google-vertex", "token", "authorization"],
  ])("to %s sends %s in %s", async (provider, apiKey, header) => {
    const at = { ...model, provider, baseUrl: "https://vertex.example/v1/publishers/google/" };
    const { request } = await ask(WHOLE, {}, { apiKey }, at);
    expect(request.url).toMatch(/^https:\/\/vertex\.example\/v1\/publishers\/google\/models\//);
    expect(request.headers[header]).toBe(header === "authorization" ? `Bearer ${apiKey}` : apiKey);
  });

  it("keeps a query of the address", async () => {
    const { request } = await ask(WHOLE, {}, {}, { ...model, baseUrl: "https://a.example/v1?k=1" });
    expect(request.url).toBe(
      "https://a.example/v1/models/gemini-3.1-pro-preview:streamGenerateContent?k=1&alt=sse",
    );
  });

  const parameters = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { path: { type: "string", pattern: "^a" } },
    additionalProperties: false,
  };
  const tools = [{ name: "read", description: "Reads.", parameters }];

  it("declares the tools with their whole schema", async () => {
    const { request } = await ask(WHOLE, { tools, systemPrompt: "Be brief." });
    const { $schema: _, ...schema } = parameters;
    expect(request.body).toMatchObject({
      systemInstruction: { parts: [{ text: "Be brief." }] },
      tools: [
        {
          functionDeclarations: [
            { name: "read", description: "Reads.", parametersJsonSchema: schema },
          ],
        },
      ],
    });
    expect(JSON.stringify(request.body)).not.toContain("$schema");
    expect(request.body).not.toHaveProperty("toolConfig");
  });

  it.each<[NonNullable<StreamOptions["toolChoice"]>, object]>([
    ["auto", { mode: "AUTO" }],
    ["none", { mode: "NONE" }],
    ["required", { mode: "ANY" }],
    [{ name: "read" }, { mode: "ANY", allowedFunctionNames: ["read"] }],
  ])("says which tool is to be used: %o", async (toolChoice, functionCallingConfig) => {
    const { request } = await ask(WHOLE, { tools }, { toolChoice });
    expect(request.body["toolConfig"]).toEqual({ functionCallingConfig });
    const without = await ask(WHOLE, {}, { toolChoice });
    expect(without.request.body).not.toHaveProperty("toolConfig");
  });

  it("asks for arguments in pieces where a quirk says so", async () => {
    const at = { ...model, quirks: { streamArguments: true } };
    const { request } = await ask(WHOLE, { tools }, {}, at);
    expect(request.body["toolConfig"]).toEqual({
      functionCallingConfig: { streamFunctionCallArguments: true },
    });
  });

  it.each<[string, ThinkingLevel, object | undefined]>([
    ["gemini-2.5-flash", "off", { thinkingBudget: 0 }],
    ["gemini-2.5-flash", "low", { includeThoughts: true, thinkingBudget: 2048 }],
    ["gemini-2.5-flash", "xhigh", { includeThoughts: true, thinkingBudget: 24_576 }],
    ["gemini-2.5-flash-lite", "minimal", { includeThoughts: true, thinkingBudget: 1024 }],
    ["gemini-2.5-pro", "off", { thinkingBudget: 128 }],
    ["gemini-2.5-pro", "xhigh", { includeThoughts: true, thinkingBudget: 32_768 }],
    ["gemini-2.5-pro", "max", { includeThoughts: true, thinkingBudget: 32_768 }],
    ["gemini-3-pro-preview", "medium", { includeThoughts: true, thinkingLevel: "HIGH" }],
    ["gemini-3.1-pro-preview", "off", { thinkingLevel: "LOW" }],
    ["gemini-flash-latest", "xhigh", { includeThoughts: true, thinkingLevel: "HIGH" }],
    ["gemini-2.0-flash", "high", undefined],
    ["gemini-2.5-flash-image", "off", undefined],
    ["gemma-3-27b-it", "high", undefined],
  ])("asks %s to think: %s", async (id, thinkingLevel, thinkingConfig) => {
    const { request } = await ask(WHOLE, {}, { thinkingLevel }, { ...model, id });
    const expected = thinkingConfig === undefined ? undefined : { thinkingConfig };
    expect(request.body["generationConfig"]).toEqual(expected);
  });

  it.each<[readonly ThinkingLevel[], ThinkingLevel, object]>([
    [["minimal", "low", "medium", "high"], "off", { thinkingLevel: "MINIMAL" }],
    [
      ["minimal", "low", "medium", "high"],
      "xhigh",
      { includeThoughts: true, thinkingLevel: "HIGH" },
    ],
    [["low", "medium", "high"], "off", { thinkingLevel: "LOW" }],
    [["low", "medium", "high"], "minimal", { includeThoughts: true, thinkingLevel: "LOW" }],
    [["low", "medium", "high"], "medium", { includeThoughts: true, thinkingLevel: "MEDIUM" }],
    [["minimal", "high"], "low", { includeThoughts: true, thinkingLevel: "HIGH" }],
  ])("asks a model that takes %j to think: %s", async (thinkingLevels, level, thinkingConfig) => {
    const at = { ...model, id: "gemma-9", reasoning: true, thinkingLevels };
    const { request } = await ask(WHOLE, {}, { thinkingLevel: level }, at);
    expect(request.body["generationConfig"]).toEqual({ thinkingConfig });
  });

  it("goes by what is said of a model, before its name", async () => {
    const quirks = { generation: 3, thinkingLevels: ["low", "high"] };
    const own = { ...model, id: "my-model", quirks };
    const { request } = await ask(WHOLE, {}, { thinkingLevel: "medium" }, own);
    expect(request.body["generationConfig"]).toMatchObject({
      thinkingConfig: { thinkingLevel: "HIGH" },
    });
    const plain = await ask(WHOLE, {}, { thinkingLevel: "high" }, { ...model, reasoning: false });
    expect(plain.request.body).not.toHaveProperty("generationConfig");
  });

  it.each<[ThinkingBudgets, number, number]>([
    [{ low: 500 }, 512, 1_512],
    [{ low: 99_999 }, 24_576, 4_000],
    [{ low: -1 }, -1, 1_000],
  ])("keeps budgets within bounds, with room for the answer: %o", async (budgets, budget, most) => {
    const options = { thinkingLevel: "low" as const, thinkingBudgets: budgets, maxTokens: 1_000 };
    const at = { ...model, id: "gemini-2.5-flash-lite", maxTokens: 4_000 };
    const { request } = await ask(WHOLE, {}, { ...options, temperature: 0.5 }, at);
    expect(request.body["generationConfig"]).toEqual({
      maxOutputTokens: most,
      temperature: 0.5,
      thinkingConfig: { includeThoughts: true, thinkingBudget: budget },
    });
  });

  it("is the same for the same input, byte for byte", async () => {
    const context = {
      tools,
      messages: [createPrompt("Hi"), assistant([call("c1")]), result("c1")],
    };
    const [one, two] = [await ask(WHOLE, context), await ask(WHOLE, context)];
    expect(JSON.stringify(one.request.body)).toBe(JSON.stringify(two.request.body));
  });
});

describe("the transcript", () => {
  it("begins and ends with the user, and has one content for neighbors", () => {
    const text = (words: string): AssistantContent => ({ type: "text", text: words });
    const messages = [
      assistant([text("A")]),
      assistant([text("B")]),
      createPrompt("C"),
      { role: "user" as const, content: [PICTURE], timestamp: 0 },
      assistant([text("D")]),
    ];
    expect(formatMessages(messages, model)).toEqual([
      { role: "user", parts: [{ text: SOMETHING }] },
      { role: "model", parts: [{ text: "A" }, { text: "B" }] },
      { role: "user", parts: [{ text: "C" }, INLINE] },
      { role: "model", parts: [{ text: "D" }] },
      { role: "user", parts: [{ text: SOMETHING }] },
    ]);
  });

  it("never sends empty text", () => {
    const messages = [
      createPrompt(""),
      assistant([{ type: "text", text: " " }]),
      createPrompt("Hi"),
    ];
    expect(formatMessages(messages, model)).toEqual([
      { role: "user", parts: [{ text: "(no text)" }, { text: "Hi" }] },
    ]);
  });

  const turn = [createPrompt("Go"), assistant([call("c1", "read", "c2ln"), call("c2")])];

  it("has the results of a turn together, and nothing else among them", () => {
    const failed = result("c2", [{ type: "text", text: "gone" }], true);
    const sent = formatMessages([...turn, result("c1"), failed, createPrompt("Now")], model);
    expect(sent.slice(1)).toEqual([
      {
        role: "model",
        parts: [
          {
            functionCall: { id: "c1", name: "read", args: { path: "a" } },
            thoughtSignature: "c2ln",
          },
          { functionCall: { id: "c2", name: "read", args: { path: "a" } } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c1", name: "read", response: { output: "done" } } },
          { functionResponse: { id: "c2", name: "read", response: { error: "gone" } } },
        ],
      },
      { role: "user", parts: [{ text: "Now" }] },
    ]);
  });

  it("has results in the order of their calls, by names that it takes", () => {
    const odd = assistant([call("c1", "read file"), call("c2", "mcp.read:it"), call("c3", "1st")]);
    const results = ["c2", "c3", "c1"].map((id) => result(id));
    const [, answer, answered] = formatMessages([createPrompt("Go"), odd, ...results], model);
    const names = ["read_file", "mcp.read:it", "_1st"];
    expect(answer).toMatchObject({ parts: names.map((name) => ({ functionCall: { name } })) });
    expect(answered).toMatchObject({
      parts: ["c1", "c2", "c3"].map((id) => ({ functionResponse: { id } })),
    });
  });

  it("puts images into results where the model reads them there", () => {
    const heic: UserContent = { type: "image", mimeType: "image/heic", data: "aGVpYw==" };
    const sent = formatMessages([...turn, result("c1", [PICTURE, heic]), result("c2")], model);
    expect(sent.slice(2)).toMatchObject([
      {
        parts: [
          { functionResponse: { id: "c1", response: { output: SOMETHING }, parts: [INLINE] } },
          { functionResponse: { id: "c2" } },
        ],
      },
      { parts: [{ text: SOMETHING }, { inlineData: { mimeType: "image/heic" } }] },
    ]);
  });

  it("has them follow for older models, which take no ids either", () => {
    const own = { model: older.id };
    const messages = [
      createPrompt("Go"),
      assistant([call("c1"), call("c2")], own),
      result("c1", [{ type: "text", text: "seen" }, PICTURE]),
      result("c2"),
      createPrompt("Now"),
    ];
    const functionCall = { name: "read", args: { path: "a" } };
    expect(formatMessages(messages, older).slice(1)).toEqual([
      { role: "model", parts: [{ functionCall }, { functionCall }] },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "read", response: { output: "seen" } } },
          { functionResponse: { name: "read", response: { output: "done" } } },
        ],
      },
      { role: "user", parts: [{ text: expect.stringContaining("read") }, INLINE, { text: "Now" }] },
    ]);
  });

  it("says with a call of another model that it cannot be signed, for models that ask", () => {
    const foreign = [
      createPrompt("Go"),
      assistant([call("toolu/1", "read", "ZWxzZQ=="), call("toolu/2")], { model: "other" }),
      result("toolu/1"),
      result("toolu/2"),
    ];
    const [, calls, results] = formatMessages(foreign, model) as {
      parts: Record<string, unknown>[];
    }[];
    expect(calls?.parts.map(({ thoughtSignature }) => thoughtSignature)).toEqual([
      "skip_thought_signature_validator",
      undefined,
    ]);
    const ids = calls?.parts.map(({ functionCall }) => (functionCall as { id: string }).id) ?? [];
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^[\w.:-]{1,64}$/);
    expect(
      results?.parts.map(({ functionResponse }) => (functionResponse as { id: string }).id),
    ).toEqual(ids);
    expect(JSON.stringify(formatMessages(foreign, older))).not.toContain("thoughtSignature");
  });

  it("gives the model back what it alone can read, as it was", () => {
    const raw = { executableCode: { language: "PYTHON", code: "1" }, thoughtSignature: "c2ln0" };
    const content: AssistantContent[] = [
      { type: "thinking", thinking: "Hm" },
      { type: "thinking", thinking: "So", signature: "c2ln1" },
      { type: "text", text: "Hi" },
      { type: "text", text: "", signature: "c2ln2" },
      { type: "serviceTool", id: "code_1", name: "code_execution", raw },
      { ...PICTURE, ...{ signature: "c2ln3" } },
    ];
    const messages = [createPrompt("Go"), assistant(content), createPrompt("On")];
    expect(formatMessages(messages, model)[1]).toEqual({
      role: "model",
      parts: [
        { text: "Hm", thought: true },
        { text: "So", thought: true, thoughtSignature: "c2ln1" },
        { text: "Hi" },
        { text: "", thoughtSignature: "c2ln2" },
        raw,
        { ...INLINE, thoughtSignature: "c2ln3" },
      ],
    });
    const target = { model: older, service: { id: "google", name: "Google" } };
    const prepared = prepareFiles(messages, target, FILES);
    expect(JSON.stringify(formatMessages(prepared, older))).not.toContain("c2ln");
  });

  it("sends back what was read without a difference", async () => {
    const parts = [
      { text: "Hm", thought: true, thoughtSignature: "c2ln0" },
      { text: "Hi" },
      { text: "", thoughtSignature: "c2ln1" },
      { functionCall: { id: "c1", name: "read", args: { path: "a" } }, thoughtSignature: "c2ln2" },
      { functionCall: { id: "c2", name: "read", args: { path: "b" } } },
    ];
    const { message } = await ask(parts.map((part, at) => chunk([part], at === 4 ? STOP : {})));
    const messages = [createPrompt("Go"), message, result("c1"), result("c2")];
    expect(formatMessages(messages, model)[1]).toEqual({ role: "model", parts });
  });

  it("does not change its beginning when more is said", () => {
    const messages = [...turn, result("c1", [PICTURE]), result("c2"), createPrompt("Now")];
    const long = [...messages, assistant([call("c3")]), result("c3"), createPrompt("End")];
    for (const at of [model, older]) {
      const before = formatMessages(messages, at);
      expect(formatMessages(long, at).slice(0, before.length)).toEqual(before);
    }
  });

  it("goes without declared tools, though there are calls in it", async () => {
    const { request } = await ask(WHOLE, { messages: [...turn, result("c1"), result("c2")] });
    expect(request.body).not.toHaveProperty("tools");
    expect(request.body["contents"]).toHaveLength(3);
  });
});
