import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import fc from "fast-check";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, expectTypeOf, it } from "vitest";
import { encodeText } from "../files/file-facts.ts";
import type {
  AssistantContent,
  FileContent,
  ImageContent,
  Message,
  TextContent,
  ThinkingContent,
  ToolCall,
  ToolResultMessage,
  UserContent,
} from "../messages/messages.ts";
import {
  fromAnthropic,
  fromModelMessages,
  fromOpenAiChat,
  fromOpenAiResponses,
  fromPi,
  fromUiMessages,
  type Imported,
  toAnthropic,
  toModelMessages,
  toOpenAiChat,
  toOpenAiResponses,
  toPi,
  toUiMessages,
} from "./index.ts";

const text: fc.Arbitrary<TextContent> = fc
  .string({ minLength: 1 })
  .map((value) => ({ type: "text", text: value }));
const image: fc.Arbitrary<ImageContent> = fc.base64String().map((data) => ({
  type: "image",
  data,
  mimeType: "image/png",
}));
const address = fc.webUrl().map((url) => ({ type: "url" as const, url }));
const contents = fc.base64String({ minLength: 4 }).map((data) => ({
  type: "base64" as const,
  data,
}));
/** Files as a form has them; what an address is of, is known by the form. */
const files = (
  service: string,
): Record<"pdf" | "picture" | "uploaded", fc.Arbitrary<FileContent>> => ({
  pdf: fc.record({
    type: fc.constant("file" as const),
    mediaType: fc.constant("application/pdf"),
    name: fc.stringMatching(/^[a-z]{1,8}\.pdf$/),
    source: contents,
  }),
  picture: fc.record({
    type: fc.constant("file" as const),
    mediaType: fc.constant("image/*"),
    source: address,
  }),
  uploaded: fc.uuid().map((id) => ({
    type: "file" as const,
    mediaType: "application/pdf",
    source: { type: "id" as const, id, service },
  })),
});
const user: fc.Arbitrary<string | UserContent[]> = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 3 }),
);
const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.jsonValue(), { maxKeys: 3 }).map(
  // As JSON gives it back: without a prototype of null, and without -0.
  (value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>,
);
const call: fc.Arbitrary<ToolCall> = fc.record({
  type: fc.constant("toolCall" as const),
  id: fc.uuid().map((id) => `call_${id}`),
  name: fc.constantFrom("read", "write"),
  arguments: args,
});

interface Form {
  api: string;
  provider: string;
  /** What an answer may have before its calls. */
  blocks: fc.Arbitrary<Exclude<AssistantContent, ToolCall>>;
  results: fc.Arbitrary<Pick<ToolResultMessage, "content" | "isError">>;
  user?: fc.Arbitrary<string | UserContent[]>;
}

/** Transcripts of whole turns: an answer with calls is followed by their results. */
function transcripts({ api, provider, blocks, results, user: userContent = user }: Form) {
  const answer = fc.tuple(
    fc.array(blocks, { maxLength: 3 }),
    fc.uniqueArray(call, { maxLength: 2, selector: ({ id }) => id }),
    fc.array(results, { minLength: 2, maxLength: 2 }),
  );
  const turn = fc.tuple(userContent, fc.array(answer, { minLength: 1, maxLength: 2 }));
  const timestamp = 0;
  return fc.array(turn, { minLength: 1, maxLength: 3 }).map((turns) =>
    turns.flatMap(([content, answers]): Message[] => [
      { role: "user", content, timestamp },
      ...untilDone(answers).flatMap(([before, calls, outputs]): Message[] => {
        if (before.length + calls.length === 0) return [];
        const stopReason = calls.length > 0 ? "toolUse" : "stop";
        const from = { api, provider, model: "unknown", usage: {}, stopReason, timestamp } as const;
        return [
          { role: "assistant", content: [...before, ...calls], ...from },
          ...calls.map(({ id, name }, index): Message => {
            const output = outputs[index] ?? { content: [], isError: false };
            return { role: "toolResult", toolCallId: id, toolName: name, ...output, timestamp };
          }),
        ];
      }),
    ]),
  );
}

/** An answer without calls is the last of its turn. */
function untilDone<T extends readonly [unknown, readonly unknown[], unknown]>(answers: T[]): T[] {
  const last = answers.findIndex(([, calls]) => calls.length === 0);
  return last < 0 ? answers : answers.slice(0, last + 1);
}

const textResult = text.map((block) => ({ content: [block], isError: false }));
const anyResult = fc.oneof(
  text.map((block) => ({ content: [block], isError: true })),
  fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 2 }).map((content) => ({
    content,
    isError: false,
  })),
);
const thinking = (signature: fc.Arbitrary<string>): fc.Arbitrary<ThinkingContent> =>
  fc.record({ type: fc.constant("thinking" as const), thinking: fc.string(), signature });
const options = fc
  .dictionary(fc.constantFrom("anthropic", "openai"), fc.record({ signature: fc.string() }), {
    minKeys: 1,
  })
  .map((value) => JSON.stringify(value));
const reasoning = fc
  .record({ id: fc.uuid(), text: fc.string({ minLength: 1 }) })
  .map((value): ThinkingContent => ({
    type: "thinking",
    thinking: value.text,
    signature: JSON.stringify({
      type: "reasoning",
      id: value.id,
      summary: [{ type: "summary_text", text: value.text }],
    }),
  }));
const openai = files("openai");
const anthropic = files("anthropic");
const plain = fc.string({ minLength: 1 }).map((value): FileContent => ({
  type: "file",
  mediaType: "text/plain",
  name: "a.txt",
  source: { type: "base64", data: encodeText(value) },
}));
const note = plain.map((file): FileContent => ({ ...file, mediaType: "text/csv", name: "a.csv" }));
const sound = contents.map((source): FileContent => ({
  type: "file",
  mediaType: "audio/mpeg",
  source,
}));
const withFiles = (...kinds: fc.Arbitrary<FileContent>[]): fc.Arbitrary<UserContent[]> =>
  fc.array(fc.oneof(text, image, ...kinds), { minLength: 1, maxLength: 3 });
const toResult = (
  content: fc.Arbitrary<UserContent[]>,
): fc.Arbitrary<Pick<ToolResultMessage, "content" | "isError">> =>
  content.map((blocks) => ({ content: blocks, isError: false }));
const any = withFiles(openai.pdf, openai.picture, note, sound);
const aiSdk = { api: "ai-sdk", provider: "ai-sdk", blocks: fc.oneof(text, thinking(options)) };

describe("messages come back as they were", () => {
  const cases: [string, Form, (messages: readonly Message[]) => Imported & { sent: string[] }][] = [
    [
      "from OpenAI's chat",
      {
        api: "openai-completions",
        provider: "openai",
        blocks: text,
        results: textResult,
        user: withFiles(openai.pdf, openai.picture, openai.uploaded, sound),
      },
      (messages) => there(toOpenAiChat(messages, { systemPrompt: "Be brief." }), fromOpenAiChat),
    ],
    [
      "from OpenAI's responses",
      {
        api: "openai-responses",
        provider: "openai",
        blocks: fc.oneof(text, reasoning),
        results: withFiles(openai.pdf, openai.picture).map((content) => ({
          content,
          isError: false,
        })),
        user: withFiles(openai.pdf, openai.picture, openai.uploaded, note),
      },
      (messages) =>
        there(toOpenAiResponses(messages, { systemPrompt: "Be brief." }), fromOpenAiResponses),
    ],
    [
      "from Anthropic",
      {
        api: "anthropic-messages",
        provider: "anthropic",
        blocks: fc.oneof(text, thinking(fc.string({ minLength: 1 }))),
        results: fc.oneof(anyResult, toResult(withFiles(anthropic.pdf, anthropic.picture))),
        user: withFiles(anthropic.pdf, anthropic.picture, anthropic.uploaded, plain),
      },
      (messages) =>
        there(toAnthropic(messages), (sent) => fromAnthropic(sent, { system: "Be brief." })),
    ],
    [
      "from model messages of the AI SDK",
      { ...aiSdk, results: fc.oneof(anyResult, toResult(withFiles(note, sound))), user: any },
      (messages) =>
        there(toModelMessages(messages, { systemPrompt: "Be brief." }), fromModelMessages),
    ],
    [
      "from UI messages of the AI SDK",
      { ...aiSdk, results: fc.oneof(anyResult, toResult(any)), user: any },
      (messages) => there(toUiMessages(messages, { systemPrompt: "Be brief." }), fromUiMessages),
    ],
  ];

  it.each(cases)("%s", (_, form, roundTrip) => {
    fc.assert(
      fc.property(transcripts(form), (messages) => {
        const back = roundTrip(messages);
        expect(back).toEqual({ systemPrompt: "Be brief.", messages, lost: [], sent: [] });
      }),
    );
  });

  it("from pi", () => {
    const form = {
      api: "anthropic-messages",
      provider: "anthropic",
      blocks: fc.oneof(text, thinking(fc.string({ minLength: 1 }))),
      results: anyResult,
    };
    fc.assert(
      fc.property(transcripts(form), (messages) => {
        const { messages: sent, lost } = toPi(messages);
        const back = fromPi(sent).messages.map((message) =>
          message.role === "assistant" ? { ...message, usage: {} } : message,
        );
        expect([back, lost]).toEqual([messages, []]);
      }),
    );
  });
});

function there<T extends object>(
  { messages, lost }: { messages: T[]; lost: string[] },
  back: (messages: readonly T[]) => Imported,
): Imported & { sent: string[] } {
  // As JSON, which is how they are stored.
  return { ...back(JSON.parse(JSON.stringify(messages)) as T[]), sent: lost };
}

describe("what is lost is named", () => {
  const from = { api: "anthropic-messages", provider: "p", model: "m", usage: {}, timestamp: 0 };
  const messages: Message[] = [
    { role: "user", content: "Go", timestamp: 0 },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm", signature: "sealed" },
        { type: "serviceTool", id: "s1", name: "search" },
        { type: "toolCall", id: "c1", name: "look", arguments: {} },
      ],
      ...from,
      stopReason: "toolUse",
    },
    {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "look",
      content: [
        { type: "text", text: "Seen" },
        { type: "image", data: "AAAA", mimeType: "image/bmp" },
      ],
      isError: true,
      timestamp: 0,
    },
  ];

  it.each([
    [
      toOpenAiChat(messages).lost,
      [
        "message 1: thinking",
        "message 1: a signature",
        "message 1: a tool that the service ran",
        "message 2: that a result is an error",
        "message 2: where the texts of a result end",
        "message 2: the image of a result",
      ],
    ],
    [
      toOpenAiResponses(messages).lost,
      [
        "message 1: a signature",
        "message 1: thinking",
        "message 1: a tool that the service ran",
        "message 2: that a result is an error",
      ],
    ],
    [
      toAnthropic(messages).lost,
      ["message 1: a tool that the service ran", "message 2: an image of the type image/bmp"],
    ],
    [toModelMessages(messages).lost, ["message 1: a tool that the service ran"]],
    [
      toUiMessages(messages).lost,
      ["message 1: a signature", "message 1: a tool that the service ran"],
    ],
    [toPi(messages).lost, ["message 1: a tool that the service ran"]],
  ])("on the way out: %#", (lost, expected) => {
    expect(lost).toEqual(expected);
  });

  it("on the way out: files that a form has no place for", () => {
    const stored = { type: "stored", sha256: "0".repeat(64), size: 1_000 } as const;
    const elsewhere = { type: "id", id: "f", service: "nowhere" } as const;
    const content: UserContent[] = [
      {
        type: "file",
        mediaType: "video/mp4",
        name: "a.mp4",
        source: { type: "base64", data: "AA" },
      },
      { type: "file", mediaType: "application/pdf", source: stored },
      { type: "file", mediaType: "application/pdf", source: elsewhere },
    ];
    const sent: Message[] = [{ role: "user", content, timestamp: 0 }];
    const all = [
      "message 0: a file (a.mp4, video/mp4, 1 KB)",
      "message 0: a file (application/pdf, 1 KB)",
      "message 0: a file (application/pdf)",
    ];
    expect(toOpenAiChat(sent).lost).toEqual(all);
    expect(toAnthropic(sent).lost).toEqual(all);
    expect(toPi(sent)).toEqual({ messages: [{ ...sent[0], content: [] }], lost: all });
    for (const { lost } of [toOpenAiResponses(sent), toModelMessages(sent), toUiMessages(sent)]) {
      expect(lost).toEqual(all.slice(1));
    }
  });

  it("on the way in", () => {
    const url = { type: "image_url", image_url: { url: "https://a.test/b.png" } };
    const custom = { id: "c", type: "custom", custom: { name: "x", input: "" } };
    const chat = [
      { role: "user", content: [{ type: "text", text: "See" }, url, { type: "input_audio" }] },
      { role: "assistant", content: null, refusal: "No.", tool_calls: [custom] },
      { role: "function", name: "old", content: "" },
      { role: "system", content: "Late." },
    ];
    expect(fromOpenAiChat(chat)).toMatchObject({
      systemPrompt: "Late.",
      messages: [
        { content: [{ text: "See" }, { mediaType: "image/png", source: { type: "url" } }] },
        { content: [{ text: "No." }] },
      ],
      lost: [
        "message 0: a part of the type input_audio",
        "message 1: that an answer is a refusal",
        "message 1: a call of a custom tool",
        "message 2: a message of the role function",
        "message 3: the place of a system message",
      ],
    });
    const document = { type: "document", source: { type: "content", content: [] } };
    const anthropic = [{ role: "user", content: [document, { type: "text", text: "Read" }] }];
    expect(fromAnthropic(anthropic).lost).toEqual(["message 0: a block of the type document"]);
    const ui = [
      {
        id: "1",
        role: "user",
        parts: [{ type: "source-url", url: "https://a.test" }],
        metadata: 1,
      },
    ];
    expect(fromUiMessages(ui).lost).toEqual([
      "message 0: metadata",
      "message 0: a part of the type source-url",
    ]);
    expect(fromPi([{ role: "bashExecution", command: "ls" }]).lost).toEqual([
      "message 0: a message of the role bashExecution",
    ]);
  });
});

describe("what other libraries store", () => {
  it("Anthropic: hidden thinking and tools of the service go back as they came", () => {
    const search = {
      type: "server_tool_use",
      id: "srv_1",
      name: "web_search",
      input: { q: "tea" },
    };
    const messages = [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [
          { type: "redacted_thinking", data: "hidden" },
          search,
          { type: "text", text: "Tea." },
        ],
      },
    ];
    const { messages: read, lost } = fromAnthropic(messages);
    expect(lost).toEqual([]);
    expect(read[1]?.content).toMatchObject([
      { type: "thinking", signature: "hidden", redacted: true },
      { type: "serviceTool", id: "srv_1", name: "web_search" },
      { text: "Tea." },
    ]);
    expect(toAnthropic(read).messages).toEqual(messages);
  });

  it("the AI SDK: signatures of Anthropic are those of its API, if that is named", () => {
    const providerOptions = { anthropic: { signature: "sealed" } };
    const messages = [
      { role: "assistant", content: [{ type: "reasoning", text: "Hm", providerOptions }] },
    ];
    const named = fromModelMessages(messages, { api: "anthropic-messages", provider: "anthropic" });
    expect(named.messages[0]?.content).toEqual([
      { type: "thinking", thinking: "Hm", signature: "sealed" },
    ]);
    expect(toModelMessages(named.messages)).toEqual({ messages, lost: [] });
  });

  it("the AI SDK: results of every kind, and images in every way", () => {
    const output = (value: object) => ({
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output: value }],
    });
    const { messages } = fromModelMessages([
      output({ type: "json", value: { a: 1 } }),
      output({ type: "error-json", value: ["b"] }),
      output({ type: "execution-denied" }),
      output({ type: "content", value: [{ type: "media", data: "AA", mediaType: "image/png" }] }),
      {
        role: "user",
        content: [
          { type: "image", image: new Uint8Array([1, 2]) },
          { type: "file", mediaType: "image/gif", data: "data:image/gif;base64,AQ==" },
          { type: "file", mediaType: "image/webp", data: { type: "data", data: "AQ==" } },
        ],
      },
    ]);
    expect(messages).toMatchObject([
      { content: [{ text: '{"a":1}' }], isError: false },
      { content: [{ text: '["b"]' }], isError: true },
      { content: [{ text: "Denied." }], isError: true },
      { content: [{ type: "image", data: "AA" }] },
      {
        content: [
          { data: "AQI=", mimeType: "image/png" },
          { data: "AQ==", mimeType: "image/gif" },
          { data: "AQ==", mimeType: "image/webp" },
        ],
      },
    ]);
  });

  it("useChat: tools by their type, and steps", () => {
    const parts = [
      { type: "step-start" },
      {
        type: "tool-price",
        toolCallId: "a",
        state: "output-available",
        input: { tea: 1 },
        output: { euros: 3 },
      },
      { type: "tool-price", toolCallId: "b", state: "output-error", input: {}, errorText: "No." },
      { type: "tool-price", toolCallId: "c", state: "input-available", input: {} },
      { type: "step-start" },
      { type: "text", text: "3 euros", state: "done" },
    ];
    const { messages, lost } = fromUiMessages([{ id: "1", role: "assistant", parts }]);
    expect(lost).toEqual([]);
    expect(messages).toMatchObject([
      { content: [{ id: "a", name: "price", arguments: { tea: 1 } }, { id: "b" }, { id: "c" }] },
      { toolCallId: "a", toolName: "price", content: [{ text: '{"euros":3}' }], isError: false },
      { toolCallId: "b", content: [{ text: "No." }], isError: true },
      { content: [{ text: "3 euros" }], stopReason: "stop" },
    ]);
  });

  it("arguments that do not parse are kept, and written back", () => {
    const tool_calls = [{ id: "c", type: "function", function: { name: "t", arguments: '{"a' } }];
    const messages = [{ role: "assistant", content: null, tool_calls }];
    const { messages: read } = fromOpenAiChat(messages);
    expect(read[0]?.content).toMatchObject([{ arguments: {}, rawArguments: '{"a' }]);
    expect(toOpenAiChat(read).messages).toEqual(messages);
  });
});

it("what is written has the types of the official libraries, and these can be read", () => {
  expectTypeOf(toOpenAiChat)
    .returns.toHaveProperty("messages")
    .toExtend<ChatCompletionMessageParam[]>();
  expectTypeOf(toOpenAiResponses)
    .returns.toHaveProperty("messages")
    .toExtend<ResponseInputItem[]>();
  expectTypeOf(toAnthropic).returns.toHaveProperty("messages").toExtend<MessageParam[]>();
  expectTypeOf(fromOpenAiChat).toBeCallableWith([] as ChatCompletionMessageParam[]);
  expectTypeOf(fromOpenAiResponses).toBeCallableWith([] as ResponseInputItem[]);
  expectTypeOf(fromAnthropic).toBeCallableWith([] as MessageParam[]);
});
