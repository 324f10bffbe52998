import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  AssistantContent,
  AssistantMessage,
  ImageContent,
  Message,
  Model,
  UserContent,
} from "./messages.ts";
import { createAnswers, createResult, createPrompt } from "../testing/fake-service.ts";
import {
  type ImageConstraints as MessageConstraints,
  transformMessages,
} from "../files/transform-images.ts";
import { listCalledTools, isOwn, NO_OUTPUT, NO_TEXT, toWellFormed } from "./transform-messages.ts";

const model: Model = { id: "m1", name: "One", api: "wire", provider: "house" };
const RULES: MessageConstraints = { ids: { pattern: /^[\w-]+$/, maxLength: 20 } };
const LONE = "\uD83D";

const assistant = createAnswers(model);

/** Other authors, one for each way to differ. */
const OTHERS: readonly Partial<AssistantMessage>[] = [
  { model: "m2" },
  { provider: "elsewhere" },
  { api: "other-wire" },
];

function call(id: string, more: object = {}): Extract<AssistantContent, { type: "toolCall" }> {
  return { type: "toolCall", id, name: "look", arguments: {}, ...more };
}

function result(toolCallId: string, content: UserContent[] = []): Message {
  return createResult(toolCallId, content);
}

/** The content of one assistant message, transformed. */
function handed(
  content: AssistantContent[],
  by: Partial<AssistantMessage> = {},
  rules: MessageConstraints = RULES,
): AssistantContent[] {
  const [message] = transformMessages([assistant(content, by)], model, rules);
  return message?.role === "assistant" ? message.content : [];
}

/** A user message, transformed. */
function asked(
  content: string | UserContent[],
  to: Model = model,
  rules: MessageConstraints = RULES,
): unknown {
  const [message] = transformMessages([{ role: "user", content, timestamp: 0 }], to, rules);
  return message?.content;
}

describe("what only its author can read", () => {
  it("is known by wire, service and model together", () => {
    expect(isOwn(assistant([]), model)).toBe(true);
    for (const other of OTHERS) expect(isOwn(assistant([], other), model)).toBe(false);
  });

  it("goes back to its author as it was", () => {
    const own: AssistantContent[] = [
      { type: "thinking", thinking: `Hm ${LONE}`, signature: "s1" },
      { type: "thinking", thinking: "", signature: "s2", redacted: true },
      { type: "text", text: "Yes", signature: "s3" },
      { type: "text", text: "", signature: "s4" },
      call("c1", { signature: "s5" }),
      { type: "serviceTool", id: "t1", name: "search", raw: { any: ["thing"] } },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ];
    expect(handed(own)).toEqual(own);
  });

  it.each(OTHERS)("becomes text for all others: %j", (other) => {
    const content = handed(
      [
        { type: "thinking", thinking: "Hm", signature: "s1" },
        { type: "thinking", thinking: "", signature: "s2", redacted: true },
        { type: "text", text: "Yes", signature: "s3" },
        { type: "text", text: "", signature: "s4" },
        call("c1", { signature: "s5" }),
        { type: "serviceTool", id: "t1", name: "search", input: { q: "x" }, output: "y", raw: {} },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ],
      other,
    );
    expect(content).toEqual([
      { type: "text", text: "[thinking]\nHm\n[/thinking]" },
      { type: "text", text: "Yes" },
      call("c1"),
      { type: "text", text: '[The service ran its tool search with {"q":"x"}, which gave y]' },
      { type: "text", text: "[Image made by the model: image/png]" },
    ]);
    expect(JSON.stringify(content)).not.toMatch(/"s\d"/);
  });

  it("of thinking without a signature stays thinking where the wire can say so", () => {
    const thought: AssistantContent[] = [{ type: "thinking", thinking: "Hm" }];
    const text = [{ type: "text", text: "[thinking]\nHm\n[/thinking]" }];
    expect(handed(thought)).toEqual(text);
    const keep: MessageConstraints = { ...RULES, unsignedThinking: "keep" };
    expect(handed(thought, {}, keep)).toEqual(thought);
    expect(handed(thought, { model: "m2" }, keep)).toEqual(text);
  });
});

describe("a service's own tools", () => {
  const other = { model: "m2" };

  it("are described as text where the block itself was not kept", () => {
    expect(handed([{ type: "serviceTool", id: "t", name: "search" }])).toEqual([
      { type: "text", text: "[The service ran its tool search]" },
    ]);
  });

  it("with long outputs are shown in part, and how long they were", () => {
    const output = "🦜".repeat(5_000);
    const [block] = handed([{ type: "serviceTool", id: "t", name: "search", output }], other);
    const text = block?.type === "text" ? block.text : "";
    expect(text.length).toBeLessThan(2_200);
    expect(text).toContain("… (10000 characters in all)");
    expect(toWellFormed(text)).toBe(text);
  });

  it("that were cut inside a character are well-formed", () => {
    const output = `x${"🦜".repeat(5_000)}`;
    const [block] = handed([{ type: "serviceTool", id: "t", name: "search", output }], other);
    const text = block?.type === "text" ? block.text : "";
    expect(toWellFormed(text)).toBe(text);
  });
});

describe("nothing is empty", () => {
  it.each(["", " \n\t"])("a user who says nothing (%j)", (nothing) => {
    const placeholder = [{ type: "text", text: NO_TEXT }];
    expect(asked(nothing)).toEqual(placeholder);
    expect(asked([])).toEqual(placeholder);
    expect(asked([{ type: "text", text: nothing }])).toEqual(placeholder);
  });

  it("what is empty beside something is left out", () => {
    const word: UserContent = { type: "text", text: "word" };
    expect(asked([{ type: "text", text: " " }, word, { type: "text", text: "" }])).toEqual([word]);
  });

  it("a tool that gives nothing", () => {
    const [, message] = transformMessages([assistant([call("c1")]), result("c1")], model, RULES);
    expect(message?.content).toEqual([{ type: "text", text: NO_OUTPUT }]);
  });

  it("a model that says nothing", () => {
    const thinking: AssistantContent = { type: "thinking", thinking: " " };
    expect(handed([{ type: "text", text: "\n" }, thinking, call("c1")])).toEqual([call("c1")]);
    const messages = [createPrompt("a"), assistant([thinking, { type: "text", text: "" }])];
    expect(transformMessages(messages, model, RULES)).toHaveLength(1);
  });
});

describe("images", () => {
  const png: ImageContent = { type: "image", data: "A".repeat(4_000), mimeType: "image/png" };
  const leftOut = (why: string, type = "image/png", size = 3): UserContent[] => [
    { type: "text", text: `[Image left out (${type}, ${size} KB): ${why}]` },
  ];

  it("stay where the model reads them, or nothing is known of it", () => {
    expect(asked([png])).toEqual([png]);
    expect(asked([png], { ...model, input: ["text", "image"] })).toEqual([png]);
  });

  it("are left out with a note where the model reads none", () => {
    expect(asked([png], { ...model, input: ["text"] })).toEqual(
      leftOut("this model reads no images"),
    );
  });

  it("are left out with a note where the service does not know their type", () => {
    const tiff = { ...png, mimeType: "image/tiff" };
    const why = "this service does not read its type";
    expect(asked([tiff])).toEqual(leftOut(why, "image/tiff"));
    expect(asked([tiff], model, { ...RULES, imageTypes: ["image/tiff"] })).toEqual([tiff]);
    expect(asked([png], model, { ...RULES, imageTypes: ["image/tiff"] })).toEqual(leftOut(why));
  });

  it("are left out with a note where they are too large: 5 MB, or as the constraints say", () => {
    expect(asked([png], model, { ...RULES, maxImageBytes: 3_000 })).toEqual([png]);
    expect(asked([png], model, { ...RULES, maxImageBytes: 2_999 })).toEqual(
      leftOut("this service takes at most 2 KB"),
    );
    const most = Math.floor((5_000_000 / 3) * 4);
    const big = { ...png, data: "A".repeat(most + 4) };
    expect(asked([big])).toEqual(leftOut("this service takes at most 5000 KB", "image/png", 5_001));
    expect(asked([{ ...png, data: "A".repeat(most) }])).not.toEqual(asked([big]));
  });

  it("are left out with a note where there is nothing in them", () => {
    expect(asked([{ ...png, data: "" }])).toEqual(leftOut("it is empty", "image/png", 0));
  });

  it("of tools are judged alike", () => {
    const messages = [assistant([call("c1")]), result("c1", [png])];
    const [, message] = transformMessages(messages, { ...model, input: ["text"] }, RULES);
    expect(message?.content).toEqual(leftOut("this model reads no images"));
  });
});

describe("wellFormed", () => {
  it("replaces lone halves and nothing else", () => {
    expect(toWellFormed("plain")).toBe("plain");
    expect(toWellFormed("🦜 é \uFFFD")).toBe("🦜 é \uFFFD");
    expect(toWellFormed(`a${LONE}b`)).toBe("a\uFFFDb");
    expect(toWellFormed(`\uDE00${LONE}`)).toBe("\uFFFD\uFFFD");
    expect(toWellFormed(`${LONE}🦜`)).toBe("\uFFFD🦜");
  });

  it("gives what can be sent as UTF-8 without loss, for any text", () => {
    const text = fc.string({ unit: "binary" });
    const halves = fc.constantFrom(LONE, "\uDE00", "🦜", "x");
    const any = fc.array(fc.oneof(text, halves)).map((parts) => parts.join(""));
    fc.assert(
      fc.property(any, (given) => {
        const sent = toWellFormed(given);
        expect(
          new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(sent)),
        ).toBe(sent);
        expect(sent).toHaveLength(given.length);
      }),
    );
  });

  it("is asked of every text of a transcript", () => {
    const messages: Message[] = [
      createPrompt(`u${LONE}`),
      assistant([
        { type: "text", text: `t${LONE}` },
        { type: "thinking", thinking: `h${LONE}` },
        { type: "serviceTool", id: "t1", name: "search", input: `i${LONE}`, output: [`o${LONE}`] },
      ]),
      assistant([call(`c${LONE}`)]),
      result(`c${LONE}`, [{ type: "text", text: `r${LONE}` }]),
    ];
    const strings: string[] = [];
    JSON.parse(JSON.stringify(transformMessages(messages, model, RULES)), (_, value: unknown) => {
      if (typeof value === "string") strings.push(value);
      return value;
    });
    expect(strings.map(toWellFormed)).toEqual(strings);
  });
});

describe("ids", () => {
  /** The id that a call has on the wire. */
  function wireId(id: string, rules: MessageConstraints = RULES): string {
    const [block] = handed([call(id)], {}, rules);
    return block?.type === "toolCall" ? block.id : "";
  }

  it("that fit are kept", () => {
    expect(wireId("call_1-A")).toBe("call_1-A");
    expect(wireId("x".repeat(20))).toBe("x".repeat(20));
  });

  it.each(["", "with space", "a|b", "x".repeat(21), "é", LONE])(
    "that do not fit (%j) are replaced",
    (id) => {
      const replaced = wireId(id);
      expect(replaced).toMatch(/^[A-Za-z0-9]{20}$/);
      // The same in every request, whatever else is in it.
      const [, later] = transformMessages(
        [createPrompt("more"), assistant([call(id)])],
        model,
        RULES,
      );
      expect(later).toMatchObject({ content: [{ id: replaced }] });
    },
  );

  it("may have to have one length", () => {
    const nine: MessageConstraints = { ids: { pattern: /^[a-zA-Z0-9]{9}$/, maxLength: 9 } };
    expect(wireId("abcdefghi", nine)).toBe("abcdefghi");
    expect(wireId("abc", nine)).toMatch(/^[a-zA-Z0-9]{9}$/);
  });

  it("that nothing fits are an error, instead of looked for without end", () => {
    const rules: MessageConstraints = { ids: { pattern: /^call_\d$/, maxLength: 6 } };
    expect(() => wireId("a|b", rules)).toThrow(
      'No id for the call "a|b" fits /^call_\\d$/ with at most 6 characters.',
    );
  });

  // Some fit, some do not, and some are what others are replaced by.
  const unfit = ["a|b", "a|c", "", "much too long to be an id of a call", LONE, "é"];
  const rivals = unfit.map((id) => wireId(id));
  const ids = fc.oneof(
    fc.constantFrom(...unfit, ...rivals, "call_1", "call_2"),
    fc.string({ maxLength: 30 }),
    fc.stringMatching(/^[\w-]{1,20}$/),
  );
  const turn = fc
    .uniqueArray(ids, { minLength: 1, maxLength: 4 })
    .map((named): Message[] => [
      assistant(named.map((id) => call(id))),
      ...named.map((id) => result(id)),
    ]);
  const words = fc.string().map((text): Message[] => [createPrompt(text)]);
  const transcripts = fc.array(fc.oneof(turn, words), { maxLength: 12 });

  const listIds = (messages: readonly Message[]): string[] =>
    messages.flatMap((message) => {
      if (message.role === "toolResult") return [message.toolCallId];
      if (message.role !== "assistant") return [];
      return message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
    });

  it("fit, are one to one, and are kept unless one that was replaced has them", () => {
    fc.assert(
      fc.property(transcripts, (turns) => {
        const messages = turns.flat();
        const before = listIds(messages);
        const after = listIds(transformMessages(messages, model, RULES));
        expect(after).toHaveLength(before.length);
        const wireIds = new Map<string, string>();
        for (const [at, id] of before.entries()) {
          const sent = after[at] ?? "";
          expect(sent).toMatch(RULES.ids.pattern);
          expect(sent.length).toBeLessThanOrEqual(RULES.ids.maxLength);
          expect(wireIds.get(id) ?? sent).toBe(sent);
          const fits = RULES.ids.pattern.test(id) && id.length <= RULES.ids.maxLength;
          const isTaken = [...wireIds].some(([other, taken]) => other !== id && taken === id);
          if (fits && !isTaken) expect(sent).toBe(id);
          wireIds.set(id, sent);
        }
        expect(new Set(wireIds.values()).size).toBe(wireIds.size);
      }),
    );
  });

  it("and all else do not change when turns are added at the end", () => {
    fc.assert(
      fc.property(transcripts, fc.nat(12), (turns, count) => {
        const all = transformMessages(turns.flat(), model, RULES);
        const begun = transformMessages(turns.slice(0, count).flat(), model, RULES);
        expect(all.slice(0, begun.length)).toEqual(begun);
      }),
    );
  });

  it("leave what they are given as it was", () => {
    fc.assert(
      fc.property(transcripts, (turns) => {
        const messages = turns.flat();
        const copy = structuredClone(messages);
        const once = transformMessages(messages, model, RULES);
        expect(messages).toEqual(copy);
        expect(transformMessages(messages, model, RULES)).toEqual(once);
      }),
    );
  });
});

describe("calledTools", () => {
  it("are named once each, in the order of their first call", () => {
    const named = (name: string): AssistantContent => call("c", { name });
    expect(
      listCalledTools([
        createPrompt("Go"),
        assistant([named("b"), { type: "text", text: "and" }, named("a")]),
        assistant([named("b")]),
      ]),
    ).toEqual(["b", "a"]);
    expect(listCalledTools([createPrompt("Go")])).toEqual([]);
  });
});
