import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../client/client.ts";
import { complete } from "../client/client.ts";
import type { AssistantMessageEvent } from "../stream/events.ts";
import type { AssistantMessage, Message, ToolResultMessage } from "../messages/messages.ts";
import {
  call,
  callAll,
  cutOff,
  fail,
  say,
  type ScriptedModel,
  scriptedModel,
  scriptedModelInfo,
  type ScriptStep,
  serviceTool,
  stall,
  think,
  unfinished,
} from "./scripted.ts";
import { manualClock } from "./manual-clock.ts";

const ask: Message = { role: "user", content: "Go", timestamp: 0 };

type Bare = Record<string, unknown>;

/** An event without the live message, and with only the end's own fields of the final one. */
function bare(event: AssistantMessageEvent): Bare {
  const { type } = event;
  if (type === "done") return { type, reason: event.reason };
  if (type === "error") return { type, reason: event.reason, text: event.error.errorMessage };
  const { partial: _, ...rest } = event;
  return structuredClone(rest);
}

async function open(
  model: ScriptedModel,
  messages: readonly Message[] = [ask],
  options: StreamOptions = {},
): Promise<{ seen: Bare[]; result: Promise<AssistantMessage>; ended: Promise<unknown> }> {
  const stream = await model.stream(model.model, { messages }, options);
  const seen: Bare[] = [];
  const ended = (async () => {
    for await (const event of stream) seen.push(bare(event));
  })().catch((error: unknown) => error);
  const result = stream.result();
  result.catch(() => {});
  return { seen, result, ended };
}

async function collectEvents(
  step: ScriptStep,
  options: Parameters<typeof scriptedModel>[1] = {},
): Promise<Bare[]> {
  const { seen, ended } = await open(scriptedModel([step], options));
  await ended;
  return seen;
}

async function readMessage(step: ScriptStep): Promise<AssistantMessage> {
  const model = scriptedModel([step]);
  return complete(model, model.model, { messages: [ask] });
}

function resultFor(message: AssistantMessage, text = "ok"): ToolResultMessage[] {
  return message.content.flatMap((block) =>
    block.type === "toolCall"
      ? [
          {
            role: "toolResult",
            toolCallId: block.id,
            toolName: block.name,
            content: [{ type: "text", text }],
            isError: false,
            timestamp: 0,
          },
        ]
      : [],
  );
}

const assistant = (
  content: AssistantMessage["content"],
  more: Partial<AssistantMessage> = {},
): AssistantMessage => ({
  role: "assistant",
  content,
  api: "scripted",
  provider: "scripted",
  model: "scripted",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
  ...more,
});

describe("what a step says", () => {
  it("a string is a text in one delta", async () => {
    expect(await collectEvents("Hello")).toEqual([
      { type: "start" },
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Hello" },
      { type: "text_end", contentIndex: 0, content: "Hello" },
      { type: "done", reason: "stop" },
    ]);
  });

  it("a list is its parts in order, cut as chunkSize says", async () => {
    const step = [
      think("Hmm", { signature: "proof" }),
      "I look",
      call("read", { path: "a" }),
      serviceTool("search", { input: { q: "x" }, output: ["y"] }),
      { chunkSize: 4 },
    ];
    const toolCall = { type: "toolCall", id: "call_1", name: "read", arguments: { path: "a" } };
    const content = {
      type: "serviceTool",
      id: "service_1",
      name: "search",
      input: { q: "x" },
      output: ["y"],
    };
    expect(await collectEvents(step)).toEqual([
      { type: "start" },
      { type: "thinking_start", contentIndex: 0 },
      { type: "thinking_delta", contentIndex: 0, delta: "Hmm" },
      { type: "thinking_end", contentIndex: 0, content: "Hmm" },
      { type: "text_start", contentIndex: 1 },
      { type: "text_delta", contentIndex: 1, delta: "I lo" },
      { type: "text_delta", contentIndex: 1, delta: "ok" },
      { type: "text_end", contentIndex: 1, content: "I look" },
      { type: "toolcall_start", contentIndex: 2 },
      { type: "toolcall_delta", contentIndex: 2, delta: '{"pa' },
      { type: "toolcall_delta", contentIndex: 2, delta: 'th":' },
      { type: "toolcall_delta", contentIndex: 2, delta: '"a"}' },
      { type: "toolcall_end", contentIndex: 2, toolCall },
      { type: "service_tool", contentIndex: 3, content },
      { type: "done", reason: "toolUse" },
    ]);
    expect((await readMessage(step)).content).toEqual([
      { type: "thinking", thinking: "Hmm", signature: "proof" },
      { type: "text", text: "I look" },
      toolCall,
      content,
    ]);
  });

  it("a redacted thought has no delta", async () => {
    const step = think("", { redacted: true, signature: "opaque" });
    expect((await collectEvents(step)).map(({ type }) => type)).toEqual([
      "start",
      "thinking_start",
      "thinking_end",
      "done",
    ]);
    expect((await readMessage(step)).content).toEqual([
      { type: "thinking", thinking: "", redacted: true, signature: "opaque" },
    ]);
  });

  it("a delta never parts a pair of surrogates", async () => {
    const events = await collectEvents(["a😀b", { chunkSize: 1 }]);
    const deltas = events.flatMap(({ delta }) => (delta === undefined ? [] : [delta]));
    expect(deltas).toEqual(["a", "😀", "b"]);
  });

  it("arguments given as a string are sent as they are, also when broken", async () => {
    const { content } = await readMessage([
      call("a", '{"x": 1}'),
      call("b", '{"x": '),
      call("c", ""),
    ]);
    expect(content).toEqual([
      { type: "toolCall", id: "call_1", name: "a", arguments: { x: 1 } },
      {
        type: "toolCall",
        id: "call_2",
        name: "b",
        arguments: {},
        rawArguments: '{"x": ',
        argumentsError: expect.any(String),
      },
      { type: "toolCall", id: "call_3", name: "c", arguments: {} },
    ]);
  });

  it("callAll takes names and whole calls, beside other parts", async () => {
    const { content } = await readMessage(["x", callAll(["ls", ["read", { path: "a" }, "mine"]])]);
    expect(content.slice(1)).toEqual([
      { type: "toolCall", id: "call_1", name: "ls", arguments: {} },
      { type: "toolCall", id: "mine", name: "read", arguments: { path: "a" } },
    ]);
  });

  it("usage, stop reason, ids and the model that was asked are in the message", async () => {
    const model = scriptedModel([
      {
        parts: ["x"],
        usage: { input: 3, output: 1 },
        stopReason: "length",
        responseId: "r1",
        servedModel: "s",
      },
    ]);
    const asked = {
      ...scriptedModelInfo,
      id: "other",
      provider: "p",
      price: { input: 1e6, output: 2e6 },
    };
    const clock = manualClock(77);
    expect(await complete(model, asked, { messages: [ask] }, { clock })).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "x" }],
      api: "scripted",
      provider: "p",
      model: "other",
      responseId: "r1",
      servedModel: "s",
      usage: { input: 3, output: 1, cost: { input: 3, output: 2, total: 5 } },
      stopReason: "length",
      timestamp: 77,
    });
  });

  it("the options of the model are defaults that a step may change", async () => {
    const count = (events: Bare[]): number => events.filter((event) => "delta" in event).length;
    expect(count(await collectEvents("abcd", { chunkSize: 2 }))).toBe(2);
    expect(count(await collectEvents(["abcd", { chunkSize: 1 }], { chunkSize: 2 }))).toBe(4);
  });

  it("a function decides when asked, at once or later", async () => {
    const model = scriptedModel([
      ({ messages }, { temperature }, index) => `${messages.length} ${temperature} ${index}`,
      async (_context, _options, index) => [say(`later ${index}`)],
    ]);
    const first = await complete(model, model.model, { messages: [ask] }, { temperature: 0.5 });
    const second = await complete(model, model.model, { messages: [ask, first, ask] });
    expect([first.content, second.content]).toEqual([
      [{ type: "text", text: "1 0.5 0" }],
      [{ type: "text", text: "later 1" }],
    ]);
  });

  it("a function in place of the list answers every request", async () => {
    const model = scriptedModel((_context, _options, index) => `answer ${index}`);
    for (let index = 0; index < 3; index++) {
      const { content } = await complete(model, model.model, { messages: [ask] });
      expect(content).toEqual([{ type: "text", text: `answer ${index}` }]);
    }
    model.assertComplete();
  });
});

describe("how a response may end", () => {
  const opening = [
    { type: "start" },
    { type: "text_start", contentIndex: 0 },
    { type: "text_delta", contentIndex: 0, delta: "So" },
  ];
  const closing = { type: "text_end", contentIndex: 0, content: "So" };

  it("with an error after the parts", async () => {
    const step = ["So", fail("Too busy", { kind: "overloaded", status: 529, retryAfterMs: 5 })];
    expect(await collectEvents(step)).toEqual([
      ...opening,
      closing,
      { type: "error", reason: "error", text: "Too busy" },
    ]);
    expect(await readMessage(step)).toMatchObject({
      stopReason: "error",
      content: [{ type: "text", text: "So" }],
      failure: { kind: "overloaded", status: 529, retryAfterMs: 5 },
    });
    expect((await readMessage(fail("Odd"))).failure).toEqual({ kind: "unknown" });
  });

  it("with an error in the middle of a block", async () => {
    expect(await collectEvents([unfinished(say("So")), fail("Gone")])).toEqual([
      ...opening,
      { type: "error", reason: "error", text: "Gone" },
    ]);
  });

  it("with a refusal of the service", async () => {
    expect(await readMessage({ refuse: "I will not" })).toMatchObject({
      stopReason: "error",
      errorMessage: "I will not",
      failure: { kind: "refused", retryable: false },
    });
  });

  it("with no terminal event", async () => {
    const { seen, ended, result } = await open(scriptedModel([["So", cutOff()]]));
    expect(await ended).toBeUndefined();
    expect(seen).toEqual([...opening, closing]);
    await expect(result).rejects.toMatchObject({ code: "incomplete" });
  });

  it("with a stream that breaks", async () => {
    const broken = new Error("socket hung up");
    const { seen, ended, result } = await open(scriptedModel([["So", { breaks: broken }]]));
    expect(await ended).toBe(broken);
    expect(seen).toEqual([...opening, closing]);
    await expect(result).rejects.toBe(broken);
  });

  it("with no stream at all", async () => {
    const model = scriptedModel([
      { throws: new Error("thrown") },
      { rejects: new Error("rejected") },
      () => {
        throw new Error("function threw");
      },
    ]);
    const start = (): unknown => model.stream(model.model, { messages: [ask] }, {});
    expect(start).toThrow("thrown");
    await expect(start()).rejects.toThrow("rejected");
    expect(start).toThrow("function threw");
  });

  it("a function's promise that rejects breaks the stream", async () => {
    const { ended } = await open(scriptedModel([() => Promise.reject(new Error("later"))]));
    expect(await ended).toMatchObject({ message: "later" });
  });
});

describe("time", () => {
  it("delayMs is before the first event, betweenMs between two deltas", async () => {
    const clock = manualClock();
    const step = { parts: ["ab", "c"], chunkSize: 1, delayMs: 100, betweenMs: 10 };
    const { seen } = await open(scriptedModel([step], { clock }));
    const counts: number[] = [];
    for (const ms of [99, 1, 9, 1, 10]) {
      await clock.advance(ms);
      counts.push(seen.length);
    }
    expect(counts).toEqual([0, 3, 3, 6, 9]);
    expect(seen.at(-1)).toEqual({ type: "done", reason: "stop" });
    expect(clock.pending).toBe(0);
  });

  it("without delays the whole response is there when stream() returns", async () => {
    const model = scriptedModel([["a", call("b")]]);
    const stream = model.stream(model.model, { messages: [ask] }, {});
    expect(stream).toMatchObject({ closed: true });
    await stream;
  });
});

describe("abort", () => {
  const text = "The request was aborted.";
  const aborted = { type: "error", reason: "aborted", text };

  it("beforehand: one event, and no step is used", async () => {
    const model = scriptedModel(["Hello"]);
    const { seen, ended, result } = await open(model, [ask], { signal: AbortSignal.abort() });
    await ended;
    expect(seen).toEqual([aborted]);
    expect(await result).toMatchObject({
      stopReason: "aborted",
      content: [],
      errorMessage: text,
      failure: { kind: "aborted" },
    });
    expect(() => model.assertComplete()).toThrow("1 of 1 steps were not used.");
  });

  it("in a stall: what had arrived is kept", async () => {
    const controller = new AbortController();
    const { seen, ended, result } = await open(
      scriptedModel([[unfinished(say("So far")), stall()]]),
      [ask],
      { signal: controller.signal },
    );
    await manualClock().advance(0);
    expect(seen.map(({ type }) => type)).toEqual(["start", "text_start", "text_delta"]);
    controller.abort();
    await ended;
    expect(seen.at(-1)).toEqual(aborted);
    expect((await result).content).toEqual([{ type: "text", text: "So far" }]);
  });

  it("in the first delay and between any two deltas: at once, and no timer is left", async () => {
    const step = { parts: ["abc", call("t", { x: 1 })], chunkSize: 1, delayMs: 5, betweenMs: 5 };
    const whole = await collectEvents(step, {
      clock: { ...manualClock(), after: (_ms, run) => (run(), () => {}) },
    });
    const deltas = whole.filter((event) => "delta" in event).length;
    for (let steps = 0; steps <= deltas - 1; steps++) {
      const clock = manualClock();
      const controller = new AbortController();
      const { seen, ended } = await open(scriptedModel([step], { clock }), [ask], {
        signal: controller.signal,
      });
      await clock.advance(5 * steps + 4);
      const before = [...seen];
      controller.abort();
      expect(clock.pending).toBe(0);
      await ended;
      expect(seen).toEqual([...before, aborted]);
      expect(before).toEqual(whole.slice(0, before.length));
      expect(before.filter((event) => "delta" in event).length).toBe(steps);
    }
  });

  it("by a reader, from inside of an event that is being pushed", async () => {
    const clock = manualClock();
    const controller = new AbortController();
    const model = scriptedModel([{ parts: ["abc", "d"], chunkSize: 1, delayMs: 1 }], { clock });
    const stream = await model.stream(
      model.model,
      { messages: [ask] },
      { signal: controller.signal },
    );
    const seen: string[] = [];
    const read = (): void => {
      for (let event = stream.take(); event; event = stream.take()) {
        seen.push(event.type === "text_delta" ? event.delta : event.type);
        if (event.type === "text_delta" && event.delta === "b") controller.abort();
      }
      if (!stream.closed) stream.whenReadable(read);
    };
    stream.whenReadable(read);
    await clock.advance(1);
    expect(seen).toEqual(["start", "text_start", "a", "b", "error"]);
    expect((await stream.result()).content).toEqual([{ type: "text", text: "ab" }]);
  });

  it("while a function decides, and between its decision and the response", async () => {
    for (const late of [false, true]) {
      const controller = new AbortController();
      let decide: (step: string) => void = () => {};
      const decision = new Promise<string>((resolve) => (decide = resolve));
      const { seen, ended } = await open(scriptedModel([() => decision]), [ask], {
        signal: controller.signal,
      });
      if (late) decide("Too late");
      controller.abort();
      await ended;
      decide("Too late");
      expect(seen).toEqual([aborted]);
    }
  });

  it("after the end changes nothing", async () => {
    const controller = new AbortController();
    const { result } = await open(scriptedModel(["Hello"]), [ask], { signal: controller.signal });
    controller.abort();
    expect((await result).stopReason).toBe("stop");
  });
});

describe("what it refuses", () => {
  const calling = assistant([{ type: "toolCall", id: "c1", name: "t", arguments: {} }], {
    stopReason: "toolUse",
  });
  const [answer] = resultFor(calling);
  if (!answer) throw new Error("no result");
  const empty: Message = { role: "user", content: "", timestamp: 0 };

  const cases: [string, Message[], string][] = [
    ["no messages", [], "there are no messages."],
    [
      "a call without a result",
      [ask, calling, ask],
      'message 1: The call "c1" of tool "t" has no result.',
    ],
    [
      "a result without a call",
      [ask, answer],
      'message 1: No call has the id "c1" of this result.',
    ],
    [
      "a second result",
      [ask, calling, answer, answer],
      'message 3: The result for call "c1" does not follow the message that made the call, or is a second one.',
    ],
    [
      "a doubled id",
      [ask, calling, answer, calling, answer],
      'message 3: The call id "c1" was used before.',
    ],
    ["empty content", [empty], "message 0: The user message has no content."],
    [
      "the assistant's own message last",
      [ask, assistant([{ type: "text", text: "x" }])],
      "message 1: The last message is the assistant's own.",
    ],
    [
      "several at once",
      [empty, calling, ask, answer],
      'message 0: The user message has no content. message 1: The call "c1" of tool "t" has no result. ' +
        'message 3: The result for call "c1" does not follow the message that made the call, or is a second one.',
    ],
  ];

  it.each(cases)("%s", async (_name, messages, reason) => {
    const model = scriptedModel(["Hello"]);
    const { seen, ended, result } = await open(model, messages);
    await ended;
    const refused = `The request was refused: ${reason}`;
    expect(seen).toEqual([{ type: "error", reason: "error", text: refused }]);
    expect((await result).failure).toEqual({ kind: "bad_request", retryable: false });
    expect(() => model.assertComplete()).toThrow(
      `The script was not followed. 1 of 1 steps were not used. Request 1: ${refused}`,
    );
    // The step is still there for a request that is right.
    expect((await (await open(model)).result).stopReason).toBe("stop");
  });

  it("takes a pause as the last message", async () => {
    const paused = assistant([{ type: "text", text: "x" }], { stopReason: "pause" });
    const { result } = await open(scriptedModel(["on"]), [ask, paused]);
    expect((await result).stopReason).toBe("stop");
  });

  it("a request past the end of the script", async () => {
    const model = scriptedModel(["one"]);
    const { result: first } = await open(model);
    await first;
    const { result } = await open(model);
    expect(await result).toMatchObject({
      stopReason: "error",
      errorMessage: "The script has no step for request 2",
      failure: { kind: "bad_request", retryable: false },
    });
    expect(() => model.assertComplete()).toThrow(
      "The script was not followed. Request 2: The script has no step for request 2",
    );
  });

  it("notices a known message that was exchanged, in a new list and in the same one", async () => {
    for (const same of [false, true]) {
      const model = scriptedModel(() => "x");
      const messages: Message[] = [ask, calling, answer];
      expect((await (await open(model, messages)).result).stopReason).toBe("stop");
      const next = same ? messages : [...messages];
      next[2] = ask;
      expect((await (await open(model, next)).result).errorMessage).toContain("has no result");
      next.length = 1;
      expect((await (await open(model, next)).result).stopReason).toBe("stop");
    }
  });

  it("reads each message of a growing conversation once", async () => {
    const model = scriptedModel(() => "x", { keepCalls: false });
    let reads = 0;
    const counted = (): Message => ({
      role: "user",
      get content() {
        reads++;
        return "Go";
      },
      timestamp: 0,
    });
    const messages: Message[] = [counted()];
    await (
      await open(model, messages)
    ).result;
    const once = reads;
    for (let turn = 1; turn < 200; turn++) {
      messages.push(counted());
      await (
        await open(model, turn % 2 ? messages : [...messages])
      ).result;
    }
    expect(reads).toBe(200 * once);
  });
});

describe("ids and records", () => {
  it("ids are counted over the model's life, and pass by those in use", async () => {
    const model = scriptedModel([
      [call("a"), call("b", {}, "call_2"), call("c")],
      [call("d")],
      [call("e")],
    ]);
    const elsewhere = assistant([{ type: "toolCall", id: "call_5", name: "old", arguments: {} }]);
    const messages: Message[] = [ask, elsewhere, ...resultFor(elsewhere)];
    const ids: string[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const response = await complete(model, model.model, { messages });
      const results = resultFor(response);
      ids.push(...results.map(({ toolCallId }) => toolCallId));
      messages.push(response, ...results);
    }
    expect(ids).toEqual(["call_1", "call_2", "call_3", "call_4", "call_6"]);
    model.assertComplete();
  });

  it("keeps each request as it was, unless the options say otherwise", async () => {
    const messages: Message[] = [ask];
    const tools = [{ name: "t", description: "T", parameters: { type: "object" } }];
    for (const keepCalls of [true, false]) {
      const model = scriptedModel(["a"], { keepCalls });
      await complete(
        model,
        model.model,
        { systemPrompt: "Be kind", messages, tools },
        { maxTokens: 5 },
      );
      messages.push(ask);
      expect(model.requests).toBe(1);
      expect(model.calls).toEqual(
        keepCalls
          ? [
              {
                model: scriptedModelInfo,
                systemPrompt: "Be kind",
                messages: [ask],
                tools,
                options: { maxTokens: 5 },
              },
            ]
          : [],
      );
    }
  });

  it("assertComplete is content with a script that was followed", async () => {
    const model = scriptedModel(["a", "b"]);
    await (
      await open(model)
    ).result;
    expect(() => model.assertComplete()).toThrow(
      "The script was not followed. 1 of 2 steps were not used.",
    );
    await (
      await open(model)
    ).result;
    model.assertComplete();
  });

  it("stream works when it is passed on alone", async () => {
    const { stream } = scriptedModel(["a"]);
    const response = await stream(scriptedModelInfo, { messages: [ask] }, {});
    expect((await response.result()).stopReason).toBe("stop");
  });
});
