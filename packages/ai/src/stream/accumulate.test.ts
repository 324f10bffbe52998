import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Accumulator, emptyAssistantMessage } from "./accumulate.ts";
import { AssistantMessageEventStream } from "./assistant-stream.ts";
import type { AssistantMessageEvent } from "./events.ts";
import type { AssistantMessage, Model } from "../messages/messages.ts";

const model: Model = { id: "m", name: "M", api: "a", provider: "p" };

function begin(asked: Model = model): {
  out: Accumulator;
  stream: AssistantMessageEventStream;
  events: () => Record<string, unknown>[];
} {
  const stream = new AssistantMessageEventStream();
  const out = new Accumulator(stream, asked, 7);
  const events = (): Record<string, unknown>[] => {
    const list: Record<string, unknown>[] = [];
    for (let event = stream.take(); event; event = stream.take())
      list.push(bare(event, out.message));
    return list;
  };
  return { out, stream, events };
}

/** The event without the message, which must be the one live message. */
function bare(event: AssistantMessageEvent, live: AssistantMessage): Record<string, unknown> {
  const { partial, message, error, ...rest }: Record<string, unknown> = { ...event };
  expect(partial ?? message ?? error).toBe(live);
  return structuredClone(rest);
}

describe("what becomes of deltas", () => {
  it("each kind of block has its events, and the message is up to date at each", () => {
    const { out, events } = begin();
    out.start();
    expect(out.message).toEqual(emptyAssistantMessage(model, 7));
    const thought = out.thinkingStart();
    out.thinking(thought, "Hm");
    out.thinking(thought, "m");
    expect(out.message.content).toEqual([{ type: "thinking", thinking: "Hmm" }]);
    out.thinkingEnd(thought, { signature: "s1", redacted: false });
    const text = out.textStart();
    out.text(text, "Hel");
    out.text(text, "lo");
    expect(out.message.content[text]).toEqual({ type: "text", text: "Hello" });
    out.textEnd(text, "s2");
    const call = out.toolCallStart("c1", "read", "s3");
    out.toolCall(call, '{"path": "a/');
    expect(out.message.content[call]).toMatchObject({ arguments: { path: "a/" } });
    out.toolCall(call, 'b"}');
    out.toolCallEnd(call);
    const content = { type: "serviceTool", id: "s", name: "search" } as const;
    out.serviceTool(content);
    out.done("toolUse");

    const toolCall = {
      type: "toolCall",
      id: "c1",
      name: "read",
      arguments: { path: "a/b" },
      signature: "s3",
    };
    expect(events()).toEqual([
      { type: "start" },
      { type: "thinking_start", contentIndex: 0 },
      { type: "thinking_delta", contentIndex: 0, delta: "Hm" },
      { type: "thinking_delta", contentIndex: 0, delta: "m" },
      { type: "thinking_end", contentIndex: 0, content: "Hmm" },
      { type: "text_start", contentIndex: 1 },
      { type: "text_delta", contentIndex: 1, delta: "Hel" },
      { type: "text_delta", contentIndex: 1, delta: "lo" },
      { type: "text_end", contentIndex: 1, content: "Hello" },
      { type: "toolcall_start", contentIndex: 2 },
      { type: "toolcall_delta", contentIndex: 2, delta: '{"path": "a/' },
      { type: "toolcall_delta", contentIndex: 2, delta: 'b"}' },
      { type: "toolcall_end", contentIndex: 2, toolCall },
      { type: "service_tool", contentIndex: 3, content },
      { type: "done", reason: "toolUse" },
    ]);
    expect(out.message).toEqual({
      ...emptyAssistantMessage(model, 7),
      content: [
        { type: "thinking", thinking: "Hmm", signature: "s1", redacted: false },
        { type: "text", text: "Hello", signature: "s2" },
        toolCall,
        content,
      ],
      stopReason: "toolUse",
    });
  });

  it("start comes once, and first, also where the caller does not say so", () => {
    for (const first of [
      (out: Accumulator) => void out.textStart(),
      (out: Accumulator) => out.serviceTool({ type: "serviceTool", id: "s", name: "n" }),
      (out: Accumulator) => out.done("stop"),
    ]) {
      const { out, events } = begin();
      first(out);
      out.start();
      const types = events().map(({ type }) => type);
      expect(types[0]).toBe("start");
      expect(types.filter((type) => type === "start")).toHaveLength(1);
    }
  });

  it("text that comes after the end of the stream is dropped: the message stays as it was", () => {
    const { out, stream } = begin();
    const at = out.textStart();
    out.text(at, "all");
    stream.end(out.message);
    out.text(at, " and more");
    expect(out.message.content).toEqual([{ type: "text", text: "all" }]);
  });

  it("blocks may interleave", () => {
    const { out } = begin();
    const [a, b] = [out.toolCallStart("a", "x"), out.toolCallStart("b", "y")];
    const text = out.textStart();
    out.toolCall(a, '{"n":');
    out.toolCall(b, '{"n":2');
    out.text(text, "t");
    out.toolCall(a, "1}");
    out.toolCall(b, "}");
    out.toolCallEnd(b);
    out.toolCallEnd(a);
    out.done("toolUse");
    expect(out.message.content).toEqual([
      { type: "toolCall", id: "a", name: "x", arguments: { n: 1 } },
      { type: "toolCall", id: "b", name: "y", arguments: { n: 2 } },
      { type: "text", text: "t" },
    ]);
  });

  it("an empty delta is no event; one for a block of another kind, or closed, is dropped", () => {
    const { out, events } = begin();
    const text = out.textStart();
    out.text(text, "");
    out.thinking(text, "x");
    out.toolCall(text, "x");
    out.text(99, "x");
    out.textEnd(text);
    out.text(text, "late");
    out.textEnd(text);
    expect(events().map(({ type }) => type)).toEqual(["start", "text_start", "text_end"]);
    expect(out.message.content).toEqual([{ type: "text", text: "" }]);
  });

  it("any text in any pieces is the same text", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (pieces) => {
        const { out } = begin();
        const [text, thought] = [out.textStart(), out.thinkingStart()];
        for (const piece of pieces) {
          out.text(text, piece);
          out.thinking(thought, piece);
        }
        out.done("stop");
        const whole = pieces.join("");
        expect(out.message.content).toEqual([
          { type: "text", text: whole },
          { type: "thinking", thinking: whole },
        ]);
      }),
    );
  });
});

describe("arguments", () => {
  function parseRaw(raw: string): Record<string, unknown> {
    const { out } = begin();
    const call = out.toolCallStart("c", "t");
    for (const character of raw) out.toolCall(call, character);
    out.toolCallEnd(call);
    const {
      type: _,
      id: __,
      name: ___,
      ...rest
    } = { ...out.message.content[call] } as Record<string, unknown>;
    return rest;
  }

  it("are what the JSON says, for any object", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const raw = JSON.stringify(value);
        expect(parseRaw(raw)).toEqual({ arguments: JSON.parse(raw) });
      }),
    );
  });

  it("are empty for nothing and for white space", () => {
    expect(parseRaw("")).toEqual({ arguments: {} });
    expect(parseRaw(" \n")).toEqual({ arguments: {} });
  });

  it("that do not parse are empty, with the bytes and the parser's words", () => {
    for (const raw of ['{"a": 1', '{"a": 1}}', "{a: 1}", "nonsense"]) {
      expect(parseRaw(raw)).toEqual({
        arguments: {},
        rawArguments: raw,
        argumentsError: expect.stringMatching(/./),
      });
    }
  });

  it("that are null are none: some services say so where a call has no arguments", () => {
    expect(parseRaw("null")).toEqual({ arguments: {} });
  });

  it("that are no object are an error that says what they are", () => {
    for (const [raw, kind] of [
      ["[1]", "an array"],
      ["7", "a number"],
      ['"x"', "a string"],
      ["true", "a boolean"],
    ] as const) {
      expect(parseRaw(raw)).toEqual({
        arguments: {},
        rawArguments: raw,
        argumentsError: `Expected a JSON object, got ${kind}`,
      });
    }
  });
});

describe("usage", () => {
  it("later figures replace earlier ones, and the cost follows", () => {
    const { out } = begin({ ...model, price: { input: 1e6, output: 2e6 } });
    out.usage({ input: 3, output: 1 });
    expect(out.message.usage).toEqual({
      input: 3,
      output: 1,
      cost: { input: 3, output: 2, total: 5 },
    });
    out.usage({ output: 4 });
    expect(out.message.usage).toEqual({
      input: 3,
      output: 4,
      cost: { input: 3, output: 8, total: 11 },
    });
  });

  it("has no cost where the price is unknown", () => {
    const { out } = begin();
    out.usage({ input: 3, output: 1 });
    expect(out.message.usage).toEqual({ input: 3, output: 1 });
  });

  it("a cost that is no longer known is taken back", () => {
    const { out } = begin({ ...model, price: { input: 1, output: 2 } });
    out.usage({ input: 3 });
    expect(out.message.usage.cost).toBeDefined();
    out.usage({ cacheRead: 5 });
    expect(out.message.usage).toEqual({ input: 3, cacheRead: 5 });
  });

  it("a cost that was reported is taken as it is", () => {
    const { out } = begin({ ...model, price: { input: 1, output: 2 } });
    out.usage({ input: 3, cost: { total: 0.5 } });
    expect(out.message.usage.cost).toEqual({ total: 0.5 });
  });
});

describe("the end", () => {
  it("done closes what is open, in order of the content", () => {
    const { out, events } = begin();
    const text = out.textStart();
    const thought = out.thinkingStart();
    out.thinkingEnd(thought);
    const call = out.toolCallStart("c", "t");
    out.toolCall(call, "{}");
    out.text(text, "x");
    out.done("length");
    expect(events().slice(-3)).toEqual([
      { type: "text_end", contentIndex: 0, content: "x" },
      {
        type: "toolcall_end",
        contentIndex: 2,
        toolCall: { type: "toolCall", id: "c", name: "t", arguments: {} },
      },
      { type: "done", reason: "length" },
    ]);
  });

  it("fail keeps what had arrived as it is, and says what it was", async () => {
    for (const kind of ["network", "aborted"] as const) {
      const { out, stream, events } = begin();
      out.text(out.textStart(), "So f");
      out.toolCall(out.toolCallStart("c", "t"), '{"a": [1, ');
      out.fail("It broke", { kind, status: 500 });
      const reason = kind === "aborted" ? "aborted" : "error";
      expect(events().at(-1)).toEqual({ type: "error", reason });
      expect(await stream.result()).toEqual({
        ...emptyAssistantMessage(model, 7),
        content: [
          { type: "text", text: "So f" },
          { type: "toolCall", id: "c", name: "t", arguments: { a: [1] } },
        ],
        stopReason: reason,
        errorMessage: "It broke",
        failure: { kind, status: 500 },
      });
    }
  });

  it("fail before anything else is one event", () => {
    const { out, events } = begin();
    out.fail("No", { kind: "auth" });
    expect(events()).toEqual([{ type: "error", reason: "error" }]);
  });

  const endings: [string, (out: Accumulator) => void][] = [
    ["done", (out) => out.done("stop")],
    ["fail", (out) => out.fail("It broke", { kind: "network" })],
  ];
  it.each(endings)("after %s nothing changes: neither the events nor the message", (_name, end) => {
    const { out, events } = begin();
    const [text, thought] = [out.textStart(), out.thinkingStart()];
    const call = out.toolCallStart("c", "t");
    out.text(text, "x");
    end(out);
    const count = events().length;
    expect(count).toBeGreaterThan(0);
    const message = structuredClone(out.message);

    out.start();
    out.text(text, "late");
    out.thinking(thought, "late");
    out.toolCall(call, '{"late":1}');
    out.textEnd(text, "late");
    out.thinkingEnd(thought, { signature: "late" });
    out.toolCallEnd(call);
    out.text(out.textStart(), "late");
    out.thinking(out.thinkingStart(), "late");
    out.toolCallEnd(out.toolCallStart("late", "late"));
    out.serviceTool({ type: "serviceTool", id: "late", name: "late" });
    out.usage({ input: 99 });
    out.done("length");
    out.fail("late", { kind: "unknown" });

    expect(events()).toEqual([]);
    expect(out.message).toEqual(message);
  });

  it("a reader that ends the response from inside of an event has the last word", () => {
    for (const type of ["start", "text_end"]) {
      const { out, stream } = begin();
      const seen: string[] = [];
      const read = (): void => {
        for (let event = stream.take(); event; event = stream.take()) {
          seen.push(event.type);
          if (event.type === type) out.fail("Enough", { kind: "aborted" });
        }
        if (!stream.closed) stream.whenReadable(read);
      };
      stream.whenReadable(read);
      out.text(out.textStart(), "x");
      out.done("stop");
      expect(seen.at(-1)).toBe("error");
      expect(out.message.stopReason).toBe("aborted");
      expect(out.message.content).toHaveLength(type === "start" ? 0 : 1);
    }
  });
});

describe("what a service reports beside its content", () => {
  it("a call may get its id, its name and its signature late", () => {
    const { out } = begin();
    const call = out.toolCallStart("", "");
    out.identify(call, { id: "c1", name: "read" });
    out.toolCallEnd(call, "sig");
    out.identify(call, { id: "too late" });
    expect(out.message.content).toEqual([
      { type: "toolCall", id: "c1", name: "read", arguments: {}, signature: "sig" },
    ]);
  });

  it("an image is a block with an event of its own", () => {
    const { out, events } = begin();
    const content = { type: "image", data: "aGk=", mimeType: "image/png" } as const;
    out.image(content);
    expect(events()).toEqual([{ type: "start" }, { type: "image", contentIndex: 0, content }]);
    expect(out.message.content).toEqual([content]);
  });

  it("what it has no use for is counted by name", () => {
    const { out } = begin();
    expect(out.message.report).toBeUndefined();
    out.unknown("event moon");
    out.unknown("event moon");
    out.unknown("part sun");
    expect(out.message.report).toEqual({ events: 0, unknown: { "event moon": 2, "part sun": 1 } });
  });

  it("once it is cut short, nothing makes it whole", () => {
    const { out } = begin();
    out.text(out.textStart(), "Hel");
    out.cutShort();
    out.done("stop");
    expect(out.closed).toBe(false);
    out.fail("Cut.", { kind: "incomplete" });
    expect(out.message).toMatchObject({ stopReason: "error", content: [{ text: "Hel" }] });
  });
});
