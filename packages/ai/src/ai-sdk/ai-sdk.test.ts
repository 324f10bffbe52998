import { describe, expect, it } from "vitest";
import { complete } from "../client/client.ts";
import type { AssistantMessage, Message } from "../messages/messages.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { type AiSdkLanguageModel, fromAiSdk, type FromAiSdkOptions } from "./index.ts";

const usage = {
  inputTokens: { total: 12, noCache: 4, cacheRead: 8, cacheWrite: undefined },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};
const finish = (unified: string): object => ({
  type: "finish",
  finishReason: { unified, raw: unified },
  usage,
});

interface Fake extends AiSdkLanguageModel {
  calls: Record<string, unknown>[];
}

/** A model of the AI SDK that streams these parts; a function is called in between. */
function fakeModel(
  parts: readonly (object | (() => unknown))[],
  specificationVersion: "v3" | "v4" = "v4",
): Fake {
  const calls: Record<string, unknown>[] = [];
  return {
    specificationVersion,
    provider: "fake.chat",
    modelId: "fake-1",
    calls,
    async doStream(options: Record<string, unknown>) {
      calls.push(options);
      const rest = [...parts];
      const stream = new ReadableStream<unknown>({
        async pull(controller) {
          const next = rest.shift();
          if (next === undefined) controller.close();
          else if (typeof next !== "function") controller.enqueue(next);
          else await next();
        },
      });
      return { stream };
    },
  };
}

const go: Message[] = [{ role: "user", content: "Go", timestamp: 0 }];

async function ask(
  fake: AiSdkLanguageModel,
  context: { messages: readonly Message[]; systemPrompt?: string } = { messages: go },
  options: FromAiSdkOptions & { asked?: Parameters<typeof complete>[3] } = {},
): Promise<AssistantMessage> {
  const { model, protocol } = fromAiSdk(fake, options);
  return complete(protocol, model, { ...context, messages: [...context.messages] }, options.asked);
}

describe("a model of the AI SDK", () => {
  const proof = { anthropic: { signature: "sealed" } };
  const parts = [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", id: "r1", modelId: "fake-1-0601" },
    { type: "reasoning-start", id: "0" },
    { type: "reasoning-delta", id: "0", delta: "Hm" },
    { type: "reasoning-delta", id: "0", delta: "", providerMetadata: proof },
    { type: "reasoning-end", id: "0" },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Hel" },
    { type: "text-delta", id: "1", delta: "lo" },
    { type: "text-end", id: "1" },
    { type: "tool-input-start", id: "c1", toolName: "look" },
    { type: "tool-input-delta", id: "c1", delta: '{"a":' },
    { type: "tool-input-delta", id: "c1", delta: "1}" },
    { type: "tool-input-end", id: "c1" },
    { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"a":1}' },
    { type: "tool-call", toolCallId: "c2", toolName: "look", input: '{"b":2}' },
    finish("tool-calls"),
  ];

  it("streams thinking with its proof, text, calls and usage", async () => {
    expect(await ask(fakeModel(parts))).toMatchObject({
      content: [
        { type: "thinking", thinking: "Hm", signature: JSON.stringify(proof) },
        { type: "text", text: "Hello" },
        { type: "toolCall", id: "c1", name: "look", arguments: { a: 1 } },
        { type: "toolCall", id: "c2", name: "look", arguments: { b: 2 } },
      ],
      stopReason: "toolUse",
      usage: { input: 4, cacheRead: 8, output: 5, reasoning: 2, totalTokens: 17 },
      responseId: "r1",
      servedModel: "fake-1-0601",
      provider: "fake.chat",
    });
  });

  it("gives deltas of a call as they come, with the arguments so far", async () => {
    const { model, protocol } = fromAiSdk(fakeModel(parts));
    const stream = await protocol.stream(model, { messages: go }, {});
    const seen: unknown[] = [];
    for await (const event of stream) {
      if (event.type !== "toolcall_delta" || event.contentIndex !== 2) continue;
      seen.push([event.delta, structuredClone(event.partial.content[2])]);
    }
    expect(seen).toMatchObject([
      ['{"a":', { arguments: {} }],
      ["1}", { arguments: { a: 1 } }],
    ]);
  });

  it.each(["v3", "v4"] as const)(
    "gets back what it wrote, results and images: %s",
    async (version) => {
      const first = await ask(fakeModel(parts, version));
      const image = { type: "image" as const, data: "AAAA", mimeType: "image/png" };
      const results = ["c1", "c2"].map((toolCallId, index): Message => ({
        role: "toolResult",
        toolCallId,
        toolName: "look",
        content: index === 0 ? [{ type: "text", text: "No." }] : [image],
        isError: index === 0,
        timestamp: 0,
      }));
      const sent: Message = {
        role: "user",
        content: [{ type: "text", text: "See" }, image],
        timestamp: 0,
      };
      const fake = fakeModel([finish("stop")], version);
      const systemPrompt = "Be brief.";
      await ask(fake, { messages: [sent, first, ...results], systemPrompt }).catch(() => undefined);
      const data = version === "v4" ? { type: "data", data: "AAAA" } : "AAAA";
      const file = { type: "file", data, mediaType: "image/png" };
      const shown = version === "v4" ? file : { ...file, type: "image-data" };
      const name = { type: "tool-result", toolName: "look" };
      expect(fake.calls[0]?.["prompt"]).toEqual([
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "See" }, file] },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm", providerOptions: proof },
            { type: "text", text: "Hello" },
            { type: "tool-call", toolCallId: "c1", toolName: "look", input: { a: 1 } },
            { type: "tool-call", toolCallId: "c2", toolName: "look", input: { b: 2 } },
          ],
        },
        {
          role: "tool",
          content: [
            { ...name, toolCallId: "c1", output: { type: "error-text", value: "No." } },
            { ...name, toolCallId: "c2", output: { type: "content", value: [shown] } },
          ],
        },
      ]);
    },
  );

  it("gets options, tools and the choice of a tool", async () => {
    const fake = fakeModel([finish("stop")]);
    const { model, protocol } = fromAiSdk(fake, { providerOptions: { fake: { speed: 1 } } });
    const parameters = { type: "object", properties: { a: { type: "number" } } };
    const tools = [{ name: "look", description: "Looks.", parameters }];
    await protocol.stream(
      model,
      { messages: go, tools },
      {
        temperature: 0.5,
        topP: 0.9,
        stopSequences: ["END"],
        maxTokens: 9,
        headers: { "x-a": "b" },
        thinkingLevel: "high",
        toolChoice: { name: "look" },
      },
    );
    expect(fake.calls[0]).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      stopSequences: ["END"],
      maxOutputTokens: 9,
      headers: { "x-a": "b" },
      reasoning: "high",
      toolChoice: { type: "tool", toolName: "look" },
      tools: [{ type: "function", name: "look", description: "Looks.", inputSchema: parameters }],
      providerOptions: { fake: { speed: 1 } },
    });
  });

  it("is asked for JSON of a schema, unless there is a tool that stands for it", async () => {
    const schema = { type: "object", properties: { a: { type: "number" } } };
    const fake = fakeModel([finish("stop")]);
    const { model, protocol } = fromAiSdk(fake);
    const tools = [{ name: "final_answer", description: "Answers.", parameters: schema }];
    const outputFormat = { schema, tool: "final_answer", name: "a" };
    await (await protocol.stream(model, { messages: go }, { outputFormat })).result();
    await (await protocol.stream(model, { messages: go, tools }, { outputFormat })).result();
    expect(fake.calls[0]?.["responseFormat"]).toEqual({ type: "json", schema, name: "a" });
    expect(fake.calls[1]).not.toHaveProperty("responseFormat");
    expect(fake.calls[1]).toMatchObject({ tools: [{ name: "final_answer" }] });
  });

  it("is not asked with an option that a call of the AI SDK does not have", async () => {
    const fake = fakeModel([finish("stop")]);
    const { errorMessage, failure } = await ask(fake, undefined, { asked: { minP: 0.5 } });
    expect(errorMessage).toBe(
      'A model of the AI SDK has no option "minP". Leave it out, or give providerOptions to fromAiSdk.',
    );
    expect([failure, fake.calls]).toEqual([{ kind: "bad_request", retryable: false }, []]);
  });

  it("is aborted: its signal fires, and what came is kept", async () => {
    const control = new AbortController();
    const fake = fakeModel([
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Hel" },
      // Once what came before was read: a stream asks for the next part early.
      () => (setImmediate(() => control.abort()), new Promise(() => {})),
    ]);
    const message = await ask(fake, undefined, { asked: { signal: control.signal } });
    expect(message).toMatchObject({ stopReason: "aborted", content: [{ text: "Hel" }] });
    expect(fake.calls[0]?.["abortSignal"]).toMatchObject({ aborted: true });
    const never = fakeModel([]);
    const { stopReason } = await ask(never, undefined, { asked: { signal: control.signal } });
    expect([stopReason, never.calls]).toEqual(["aborted", []]);
  });

  it("ends with timeout when its time is over", async () => {
    const clock = manualClock(0);
    const fake = fakeModel([() => new Promise(() => {})]);
    const message = ask(fake, undefined, { asked: { clock, timeoutMs: 100 } });
    await clock.advance(100);
    expect((await message).failure).toEqual({ kind: "timeout", retryable: true });
  });

  const apiError = (statusCode: number, responseBody: string, headers = {}): Error =>
    Object.assign(new Error("Bad"), {
      statusCode,
      responseBody,
      responseHeaders: headers,
      url: "https://a.test",
    });
  it.each([
    [apiError(401, '{"error":{"message":"invalid x-api-key"}}'), { kind: "auth", status: 401 }],
    [apiError(429, "{}", { "Retry-After": "7" }), { kind: "rate_limit", retryAfterMs: 7000 }],
    [apiError(529, "{}"), { kind: "overloaded" }],
    [
      apiError(400, '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}'),
      { kind: "overflow" },
    ],
    [new TypeError("fetch failed"), { kind: "network" }],
  ])("that throws ends with a failure: %s", async (error, failure) => {
    const throwing: AiSdkLanguageModel = {
      ...fakeModel([]),
      async doStream() {
        throw error;
      },
    };
    const message = await ask(throwing);
    expect(message.failure).toMatchObject(failure);
    expect(message.stopReason).toBe("error");
  });

  it.each([
    [[finish("content-filter")], "refused"],
    [[{ type: "text-start", id: "1" }], "incomplete"],
    [[{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }], "overloaded"],
  ])("that ends badly is a failure: %j", async (given, kind) => {
    expect((await ask(fakeModel(given))).failure?.kind).toBe(kind);
  });

  it("shows tools that the service ran, and images", async () => {
    const data = { type: "data", data: new Uint8Array([1, 2]) };
    const service = { toolCallId: "s", toolName: "search", providerExecuted: true };
    const message = await ask(
      fakeModel([
        { type: "tool-call", ...service, input: "{}" },
        { type: "tool-result", ...service, result: ["tea"] },
        { type: "file", mediaType: "image/png", data },
        { type: "source", id: "1" },
        finish("length"),
      ]),
    );
    expect(message).toMatchObject({
      content: [
        { type: "serviceTool", name: "search", input: "{}" },
        { type: "serviceTool", output: ["tea"] },
        { type: "image", data: "AQI=" },
      ],
      stopReason: "length",
      report: { unknown: { source: 1 } },
    });
  });

  it("of another version is refused, with what to use", () => {
    const old = { ...fakeModel([]), specificationVersion: "v2" } as unknown as AiSdkLanguageModel;
    expect(() => fromAiSdk(old)).toThrow("fromAiSdk takes v3 and v4, of AI SDK 6 and 7");
  });
});
