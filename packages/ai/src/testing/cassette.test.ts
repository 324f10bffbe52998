import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import { CASSETTE_VERSION, CassetteError, record, replay } from "./cassette.ts";
import { complete, type ProtocolClient, type StreamOptions } from "../client/client.ts";
import type { AssistantMessageEvent } from "../stream/events.ts";
import type { AssistantMessage, Context, Message } from "../messages/messages.ts";
import {
  call,
  cutOff,
  fail,
  say,
  scriptedModel,
  scriptedModelInfo as model,
  type ScriptedResponse,
  type ScriptPart,
  serviceTool,
  stall,
  think,
} from "./scripted.ts";
import { manualClock } from "./manual-clock.ts";

const user = (content: string): Message => ({ role: "user", content, timestamp: 1 });
const ask: Context = { messages: [user("Go")] };

interface Taped {
  events: Record<string, unknown>[];
  result: AssistantMessage | string;
}

/** All that a reader gets of one response, with the live message left out. */
async function tape(
  client: ProtocolClient,
  context: Context = ask,
  options: StreamOptions = {},
): Promise<Taped> {
  const events: Record<string, unknown>[] = [];
  try {
    const stream = await client.stream(model, context, options);
    for await (const event of stream) events.push(bare(event));
    return { events, result: structuredClone(await stream.result()) };
  } catch (error) {
    return { events, result: String(error) };
  }
}

function bare(event: AssistantMessageEvent): Record<string, unknown> {
  if (event.type === "done" || event.type === "error") return structuredClone({ ...event });
  const { partial: _, ...rest } = event;
  return structuredClone(rest);
}

/** Records the steps, one request each, and gives the lines and what was seen. */
async function recordAll(
  steps: readonly ScriptedResponse[],
  options: StreamOptions = {},
): Promise<{ lines: string[]; seen: Taped[] }> {
  const lines: string[] = [];
  const seen: Taped[] = [];
  const clock = manualClock(42);
  const client = record(scriptedModel(steps), (line) => lines.push(line));
  for (const [index] of steps.entries()) {
    seen.push(await tape(client, { messages: [user(`Request ${index}`)] }, { clock, ...options }));
  }
  return { lines, seen };
}

async function replayAll(lines: string | Iterable<string>, requests: number): Promise<Taped[]> {
  const client = replay(lines);
  const seen: Taped[] = [];
  for (let index = 0; index < requests; index++) {
    seen.push(await tape(client, { messages: [user(`Request ${index}`)] }));
  }
  client.assertComplete();
  return seen;
}

const text = fc.string({ unit: "binary", maxLength: 40 });
const proof = fc.record({ signature: text, redacted: fc.boolean() }, { requiredKeys: [] });
/** As it comes back from a file: JSON has no negative zero. */
const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)));
const parts: fc.Arbitrary<ScriptPart> = fc.oneof(
  fc.tuple(text, fc.record({ signature: text }, { requiredKeys: [] })).map((of) => say(...of)),
  fc.tuple(text, proof).map((of) => think(...of)),
  fc.tuple(text, fc.oneof(fc.dictionary(text, json), text)).map((of) => call(...of)),
  fc.record({ input: json, output: json }).map((of) => serviceTool("s", of)),
);
const endings: fc.Arbitrary<ScriptedResponse> = fc.oneof(
  fc.constant({}),
  fc.constantFrom("stop", "length", "pause").map((stopReason) => ({ stopReason }) as const),
  text.map((message) => fail(message, { kind: "network", status: 500 })),
  text.map((refuse) => ({ refuse })),
  fc.constant(cutOff()),
  text.map((message) => ({ breaks: new Error(message) })),
  text.map((message) => ({ throws: new Error(message) })),
  text.map((message) => ({ rejects: new Error(message) })),
);
const responses: fc.Arbitrary<ScriptedResponse> = fc
  .tuple(
    fc.array(parts, { maxLength: 5 }),
    endings,
    fc.record(
      {
        chunkSize: fc.integer({ min: 1, max: 9 }),
        usage: fc.record({ input: fc.nat(), output: fc.nat() }),
        responseId: text,
        servedModel: text,
      },
      { requiredKeys: [] },
    ),
  )
  .map(([list, ending, more]) => ({ parts: list, ...ending, ...more }));

describe("a round trip", () => {
  it("gives the same events and the same result, for any script", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(responses, { maxLength: 4 }), async (steps) => {
        const { lines, seen } = await recordAll(steps);
        expect(lines).toHaveLength(steps.length + 1);
        expect(await replayAll(lines, steps.length)).toEqual(seen);
        expect(await replayAll(lines.join("\n"), steps.length)).toEqual(seen);
      }),
      { numRuns: 200 },
    );
  });

  it("keeps a response that was aborted, with what had arrived", async () => {
    const controller = new AbortController();
    const lines: string[] = [];
    const client = record(scriptedModel([["So far", stall()]]), (line) => lines.push(line));
    const taped = tape(client, ask, { signal: controller.signal, clock: manualClock(7) });
    await manualClock().advance(0);
    expect(lines).toHaveLength(1);
    controller.abort();
    const seen = await taped;
    expect(seen.result).toMatchObject({
      stopReason: "aborted",
      content: [{ type: "text", text: "So far" }],
    });
    expect(await tape(replay(lines))).toEqual(seen);
  });

  it("keeps a stream that ended with a result and no terminal event, and blocks without events", async () => {
    const message: AssistantMessage = {
      role: "assistant",
      content: [
        { type: "image", data: "AA==", mimeType: "image/png" },
        { type: "text", text: "x" },
        { type: "image", data: "BB==", mimeType: "image/png" },
      ],
      api: "scripted",
      provider: "scripted",
      model: "scripted",
      usage: { output: 1, cost: { total: 3 } },
      stopReason: "stop",
      timestamp: 5,
    };
    for (const terminal of [true, false]) {
      const source: ProtocolClient = {
        stream() {
          const stream = new AssistantMessageEventStream();
          stream.push({ type: "start", partial: message });
          stream.push({ type: "text_start", contentIndex: 1, partial: message });
          stream.push({ type: "text_delta", contentIndex: 1, delta: "x", partial: message });
          stream.push({ type: "text_end", contentIndex: 1, content: "x", partial: message });
          if (terminal) stream.push({ type: "done", reason: "stop", message });
          else stream.end(message);
          return stream;
        },
      };
      const lines: string[] = [];
      const seen = await tape(record(source, (line) => lines.push(line)));
      expect(seen.result).toEqual(message);
      expect(await tape(replay(lines))).toEqual(seen);
    }
  });

  it("cassettes may follow each other, with empty lines between", async () => {
    const one = await recordAll([{ parts: ["one"] }]);
    const two = await recordAll([{ parts: ["two"] }]);
    const client = replay([...one.lines, "", ...two.lines, ""].join("\n"));
    const request = { messages: [user("Request 0")] };
    expect([await tape(client, request), await tape(client, request)]).toEqual([
      ...one.seen,
      ...two.seen,
    ]);
    client.assertComplete();
  });

  it("requests made side by side are matched in the order of asking, not of ending", async () => {
    const clock = manualClock();
    const lines: string[] = [];
    const slowThenQuick = scriptedModel(
      [
        { parts: ["slow"], delayMs: 20 },
        { parts: ["quick"], delayMs: 10 },
      ],
      { clock },
    );
    const client = record(slowThenQuick, (line) => lines.push(line));
    const both = (from: ProtocolClient): Promise<AssistantMessage[]> =>
      Promise.all(
        ["a", "b"].map((content) => complete(from, model, { messages: [user(content)] })),
      );
    const asked = both(client);
    await clock.advance(20);
    expect(lines.map((line) => JSON.parse(line).number)).toEqual([undefined, 2, 1]);
    expect(await both(replay(lines))).toEqual(await asked);
  });
});

describe("recording", () => {
  it("passes each event on at once, and writes the line before the last one", async () => {
    const inner = new AssistantMessageEventStream();
    const lines: string[] = [];
    const client = record({ stream: () => inner }, (line) => lines.push(line));
    const outer = await client.stream(model, ask, {});
    const partial = (await tape(scriptedModel(["x"]))).result;
    if (typeof partial === "string") throw new Error(partial);

    const start: AssistantMessageEvent = { type: "start", partial };
    inner.push(start);
    expect(outer.take()).toBe(start);
    const block: AssistantMessageEvent = { type: "text_start", contentIndex: 0, partial };
    inner.push(block);
    expect(outer.take()).toBe(block);
    expect(lines).toHaveLength(1);

    const done: AssistantMessageEvent = { type: "done", reason: "stop", message: partial };
    let linesWhenDone = 0;
    outer.whenReadable(() => (linesWhenDone = lines.length));
    inner.push(done);
    expect(linesWhenDone).toBe(2);
    expect(outer.take()).toBe(done);
    expect(await outer.result()).toBe(partial);
  });

  it("holds what decides on the response, and nothing secret or fleeting", async () => {
    const lines: string[] = [];
    const scripted = scriptedModel([
      { parts: [call("read", { path: "a" }, "c1")], usage: { input: 1 } },
      { parts: ["x"] },
    ]);
    const client = record(scripted, (line) => lines.push(line));
    const parameters = z.object({ path: z.string() });
    const context = {
      systemPrompt: "Be kind",
      tools: [{ name: "read", description: "Reads", parameters }],
    };
    const options: StreamOptions = {
      temperature: 0.5,
      maxTokens: 9,
      thinkingLevel: "low",
      toolChoice: { name: "read" },
      apiKey: "SECRET",
      headers: { authorization: "SECRET" },
      metadata: { user: "SECRET" },
      sessionId: "SECRET",
      signal: new AbortController().signal,
    };
    const messages: Message[] = [user("Go")];
    const response = await complete(client, model, { ...context, messages }, options);
    messages.push(response, {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "read",
      content: [{ type: "text", text: "text" }],
      details: "SECRET",
      isError: false,
      timestamp: 3,
    });
    await complete(client, model, { ...context, messages }, options);

    expect(lines.join("\n")).not.toContain("SECRET");
    expect(JSON.parse(lines[0] ?? "")).toEqual({ cassette: CASSETTE_VERSION });
    const { request, events } = JSON.parse(lines[2] ?? "");
    expect(request).toEqual({
      model: { id: "scripted", api: "scripted", provider: "scripted" },
      systemPrompt: "Be kind",
      messages: [
        { role: "user", content: "Go" },
        {
          role: "assistant",
          content: [{ type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } }],
          api: "scripted",
          provider: "scripted",
          model: "scripted",
          stopReason: "toolUse",
        },
        {
          role: "toolResult",
          toolCallId: "c1",
          toolName: "read",
          content: [{ type: "text", text: "text" }],
          isError: false,
        },
      ],
      tools: [
        {
          name: "read",
          description: "Reads",
          parameters: expect.objectContaining({ type: "object", required: ["path"] }),
        },
      ],
      options: {
        temperature: 0.5,
        maxTokens: 9,
        thinkingLevel: "low",
        toolChoice: { name: "read" },
      },
    });
    expect(events).toEqual([
      { type: "start" },
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "x" },
      { type: "text_end", contentIndex: 0 },
      { type: "done", reason: "stop" },
    ]);
  });

  it("a request is kept as it was when made, whatever becomes of its messages", async () => {
    const clock = manualClock();
    const lines: string[] = [];
    const slow = scriptedModel([{ parts: ["x"], delayMs: 1 }], { clock });
    const messages: Message[] = [user("Go")];
    const asked = complete(
      record(slow, (line) => lines.push(line)),
      model,
      { messages },
    );
    messages.push(user("Later"));
    await clock.advance(1);
    await asked;
    expect((await tape(replay(lines))).result).toMatchObject({ stopReason: "stop" });
  });

  it("an error of write fails the response", async () => {
    let writes = 0;
    const client = record(scriptedModel(["x"]), () => {
      if (writes++ > 0) throw new Error("disk full");
    });
    expect(await tape(client)).toMatchObject({
      events: [{}, {}, {}, {}],
      result: "Error: disk full",
    });
  });
});

describe("a request that is not as recorded", () => {
  async function catchMiss(
    recorded: Context,
    now: Context,
    options: StreamOptions = {},
  ): Promise<string> {
    const lines: string[] = [];
    const scripted = scriptedModel(() => "x");
    await tape(
      record(scripted, (line) => lines.push(line)),
      recorded,
    );
    const client = replay(lines);
    const { events, result } = await tape(client, now, options);
    if (typeof result === "string") throw new Error(result);
    expect(events.map(({ type }) => type)).toEqual(["error"]);
    expect(result.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(() => client.assertComplete()).toThrow(
      `The recording was not followed. 1 of 1 responses were not used. ${result.errorMessage}`,
    );
    return result.errorMessage ?? "";
  }

  it("says where it differs, and how", async () => {
    expect(await catchMiss(ask, { messages: [user("Stay")] })).toBe(
      'Request 1 differs from the recording at messages[0].content: recorded "Go", now "Stay".',
    );
    expect(await catchMiss(ask, { ...ask, systemPrompt: "Be kind" })).toBe(
      'Request 1 differs from the recording at systemPrompt: recorded nothing, now "Be kind".',
    );
    expect(await catchMiss(ask, ask, { temperature: 1 })).toBe(
      "Request 1 differs from the recording at options.temperature: recorded nothing, now 1.",
    );
    expect(await catchMiss({ messages: [user("Go"), user("on")] }, ask)).toBe(
      'Request 1 differs from the recording at messages[1]: recorded {"role":"user","content":"on"}, now nothing.',
    );
  });

  it("shows long values cut, around the place where they part", async () => {
    const same = "s".repeat(5000);
    const miss = await catchMiss(
      { messages: [user(`${same}one${same}`)] },
      { messages: [user(`${same}two`)] },
    );
    expect(miss).toBe(
      `Request 1 differs from the recording at messages[0].content: recorded …${"s".repeat(40)}one${"s".repeat(77)}…, now …${"s".repeat(40)}two".`,
    );
  });

  it("timestamps and the order of keys do not count", async () => {
    const tool = (parameters: Record<string, unknown>): Context => ({
      messages: [user("Go")],
      tools: [{ name: "t", description: "", parameters }],
    });
    const lines: string[] = [];
    const scripted = scriptedModel(["x"]);
    await tape(
      record(scripted, (line) => lines.push(line)),
      tool({ type: "object", title: "T" }),
    );
    const later: Context = {
      ...tool({ title: "T", type: "object" }),
      messages: [{ role: "user", content: "Go", timestamp: 999 }],
    };
    expect((await tape(replay(lines), later)).result).toMatchObject({ stopReason: "stop" });
  });

  it("one too many says how many there are; a miss uses up nothing", async () => {
    const { lines } = await recordAll([{ parts: ["x"] }]);
    const client = replay(lines);
    const request = { messages: [user("Request 0")] };
    expect((await tape(client)).result).toMatchObject({ stopReason: "error" });
    expect((await tape(client, request)).result).toMatchObject({ stopReason: "stop" });
    expect((await tape(client, request)).result).toMatchObject({
      errorMessage: "Request 2 is one too many: the recording has 1.",
    });
    expect(() => client.assertComplete()).toThrow("Request 2 is one too many");
  });

  it("a request that is aborted beforehand stays aborted", async () => {
    const { lines } = await recordAll([{ parts: ["x"] }]);
    const client = replay(lines);
    const signal = AbortSignal.abort();
    const { result } = await tape(client, { messages: [user("Request 0")] }, { signal });
    expect(result).toMatchObject({ stopReason: "aborted" });
    client.assertComplete();
  });
});

describe("a cassette that cannot be read", () => {
  const header = `{"cassette":${CASSETTE_VERSION}}`;
  const cases: [string, string[], number, RegExp][] = [
    ["is empty", [], 1, /^Line 1 of the cassette is not its header, {"cassette":1}\.$/],
    ["has no header", ['{"number":1}'], 1, /^Line 1 of the cassette is not its header/],
    [
      "is of another version",
      ['{"cassette":2}'],
      1,
      /is of version 2, and this reader takes 1\. Record it again\.$/,
    ],
    [
      "has a line cut off",
      [header, "", '{"number":1,'],
      3,
      /^Line 3 of the cassette is not JSON: /,
    ],
    [
      "has a line that is no object",
      [header, "7"],
      2,
      /^Line 2 of the cassette is not a JSON object\.$/,
    ],
    ["has a line of another kind", [header, '{"number":1}'], 2, /is not a recorded response\.$/],
    [
      "has an event of another kind",
      [header, '{"number":1,"request":{},"events":[{"type":"text_leap"}]}'],
      2,
      /is not a recorded response\.$/,
    ],
  ];
  it.each(cases)("%s", (_name, lines, line, message) => {
    for (const given of [lines, lines.join("\n")]) {
      let thrown: unknown;
      try {
        replay(given);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(CassetteError);
      expect(thrown).toMatchObject({
        code: "cassette",
        line,
        message: expect.stringMatching(message),
      });
    }
  });
});

describe("version 1 of the format", () => {
  const events =
    '[{"type":"start"},{"type":"thinking_start","contentIndex":0},' +
    '{"type":"thinking_delta","contentIndex":0,"delta":"Hm"},' +
    '{"type":"thinking_end","contentIndex":0,"signature":"s"},' +
    '{"type":"toolcall_start","contentIndex":1,"id":"c1","name":"read"},' +
    '{"type":"toolcall_delta","contentIndex":1,"delta":"{}"},' +
    '{"type":"toolcall_end","contentIndex":1},' +
    '{"type":"done","reason":"toolUse"}]';

  it("is written as these bytes, and read again", async () => {
    const model = scriptedModel([[think("Hm", { signature: "s" }), call("read", {}, "c1")]]);
    const lines: string[] = [];
    const context = { messages: [{ role: "user" as const, content: "Go", timestamp: 0 }] };
    const recorded = await (
      await record(model, (line) => lines.push(line)).stream(model.model, context, {})
    ).result();
    expect(lines[0]).toBe('{"cassette":1}');
    expect(lines[1]).toContain(`"events":${events},"message":`);
    const replayed = await replay(lines).stream(model.model, context, {});
    expect(await replayed.result()).toEqual(recorded);
  });
});
