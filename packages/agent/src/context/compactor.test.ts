import { estimateTokens, type Message, textOf, validateTranscript } from "@gyre/ai";
import {
  call,
  fail,
  say,
  scriptedModel,
  scriptedModelInfo,
  type ScriptStep,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it, vi } from "vitest";
import { Agent } from "../agent/agent.ts";
import { applyCompaction, LEFT_OUT_TEXT, planCompaction } from "./compaction.ts";
import type { Compaction, ContextConfig } from "../contract/compaction.ts";
import { anAnswer } from "../testing/messages.ts";
import { later, never, play, type Played, start, text, tool, user } from "../testing/play.ts";
import type { AgentEvent, AgentLoopConfig, AgentMessage, AgentTool } from "../contract/types.ts";
import { View } from "./view.ts";

const words = (count: number, word = "word"): string => `${word} `.repeat(count).trim();
const compactions = (events: readonly AgentEvent[]): Compaction[] =>
  events.flatMap((event) => (event.type === "compaction" ? [event.compaction] : []));
const steps = (count: number, from = 0): ScriptStep[] =>
  Array.from({ length: count }, (_, i) => [say(`Step ${from + i}`), call("x", { i: from + i })]);
const sent = (messages: readonly Message[] | undefined): string => JSON.stringify(messages ?? []);

describe("R24: a result that is too long, when it comes", () => {
  const numbers = Array.from({ length: 3_000 }, (_, i) => `line ${i}`).join("\n");
  const long = tool("x", () => ({ ...text(numbers), details: { lines: 3_000 } }));
  const context = { maxResultTokens: 1_000 };

  it("is cut to its beginning and end before anybody sees it", async () => {
    const { events, model } = await play({
      script: [call("x"), "Done"],
      tools: [long],
      config: { context },
    });
    const end = events.find((event) => event.type === "tool_execution_end");
    const result = end?.type === "tool_execution_end" ? end.result : undefined;
    const short = result ? textOf(result) : "";
    expect(short).toMatch(/^line 0\nline 1\n/);
    expect(short).toMatch(/\[Here a part of \d+ tokens in all is left out\.\]/);
    expect(short).toMatch(/line 2999\n\n\[The rest was not kept\.\]$/);
    expect(estimateTokens(short)).toBeLessThanOrEqual(1_000);
    expect(result?.details).toEqual({ lines: 3_000 });
    expect(textOf(model.calls[1]?.messages.at(-1) as Message)).toBe(short);
  });

  it("keeps its parts on lines of their own", async () => {
    const { content } = text(numbers);
    const parts = tool("x", () => ({
      content: [{ type: "text", text: "Exit code 0." }, ...content],
    }));
    const { model } = await play({
      script: [call("x"), "Done"],
      tools: [parts],
      config: { context },
    });
    expect(textOf(model.calls[1]?.messages.at(-1) as Message)).toMatch(/^Exit code 0\.\nline 0\n/);
  });

  it("is stored whole where the model is pointed to", async () => {
    const kept = new Map<string, string>();
    const { model } = await play({
      script: [call("x", {}, "call/1"), "Done"],
      tools: [long],
      config: {
        context: {
          ...context,
          storeResult: async (key, whole) => {
            kept.set(key, whole);
            return `read the file /kept/${key}`;
          },
        },
      },
    });
    expect(kept.get("call_1")).toBe(numbers);
    expect(textOf(model.calls[1]?.messages.at(-1) as Message)).toMatch(
      /\[The whole result is kept: read the file \/kept\/call_1\]$/,
    );
  });

  it.each([
    [
      "is summed up",
      () => "Many lines.",
      /\n\[Of \d+ tokens, the middle is left out\. Summary of the whole:\]\nMany lines\.\n/,
    ],
    ["is cut where that throws", () => Promise.reject(new Error("no")), /^line 0\n/],
    ["is cut where the summary is long itself", () => numbers, /^line 0\n/],
  ])("%s", async (_what, summarize, expected) => {
    const { model } = await play({
      script: [call("x"), "Done"],
      tools: [long],
      config: { context: { ...context, summarize } },
    });
    expect(textOf(model.calls[1]?.messages.at(-1) as Message)).toMatch(expected);
  });

  it("keeps its beginning, its end and its errors beside a summary of the call's result", async () => {
    const asked: unknown[] = [];
    const text = numbers.replace("line 1500", "src/a.ts(3,1): error TS2304: no name");
    const { model } = await play({
      script: [call("x", { command: "make" }), "Done"],
      tools: [tool("x", () => ({ content: [{ type: "text", text }] }))],
      config: {
        context: {
          ...context,
          summarize: (_text, _signal, ...more) => {
            asked.push(more);
            return "Many lines.";
          },
        },
      },
    });
    const short = textOf(model.calls[1]?.messages.at(-1) as Message);
    expect(asked).toEqual([["result", 'the result of the call x {"command":"make"}']]);
    expect(short).toMatch(/^line 0\nline 1\n/);
    expect(short).toContain("\nsrc/a.ts(3,1): error TS2304: no name\n[The end:]\n");
    expect(short).toMatch(/line 2999\n\n\[/);
    expect(estimateTokens(short)).toBeLessThanOrEqual(1_000);
  });

  it("R24 is never summarized where its tool pages", async () => {
    const paged = { ...long, presentation: { kind: "read", paged: true } as const };
    const summarize = vi.fn<() => string>(() => "Many lines.");
    const { model } = await play({
      script: [call("x"), "Done"],
      tools: [paged],
      config: { context: { ...context, summarize } },
    });
    expect(summarize).not.toHaveBeenCalled();
    expect(textOf(model.calls[1]?.messages.at(-1) as Message)).toMatch(/^line 0\nline 1\n/);
  });

  it("is cut where a summary takes too long, and where the run is stopped meanwhile", async () => {
    for (const stops of [true, false]) {
      const { clock, done, abort, recorder } = start({
        script: [call("x"), "Done"],
        tools: [long],
        config: { context: { ...context, summarize: () => never(), summaryWaitMs: 5_000 } },
      });
      await clock.advance(10);
      expect(recorder.only("tool_execution_end")).toEqual([]);
      if (stops) abort();
      else await clock.advance(5_000);
      const { end, transcript } = await done;
      expect(end.stop).toBe(stops ? "aborted" : "done");
      expect(textOf(transcript[2] as Message)).toMatch(/^line 0\n/);
    }
  });

  it("keeps its images, and its end if keeping fails", async () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
    const { transcript } = await play({
      script: [call("x"), "Done"],
      tools: [tool("x", () => ({ content: [{ type: "text", text: numbers }, image] }))],
      config: {
        context: {
          ...context,
          storeResult: () => {
            throw new Error("full");
          },
        },
      },
    });
    const result = transcript[2] as Message;
    expect(result.content[1]).toEqual(image);
    expect(textOf(result)).toMatch(/\[The rest was not kept\.\]$/);
  });

  it("is left as it is where there is no context option", async () => {
    const { transcript } = await play({ script: [call("x"), "Done"], tools: [long] });
    expect(textOf(transcript[2] as Message)).toBe(numbers);
  });
});

describe("R24: what stays in sight", () => {
  const context: ContextConfig = { triggerTokens: 4_000, targetTokens: 2_000, keepTurns: 1 };

  it("old results become one line each, which says how to read them back", async () => {
    const kept = new Map<string, string>();
    const { events, model } = await play({
      script: [...steps(12), "Done"],
      tools: [tool("x", (args) => words(500, `w${String(args["i"])}`))],
      config: { context: { ...context, storeResult: (key, whole) => void kept.set(key, whole) } },
    });
    const [first] = compactions(events);
    expect(first?.message).toBeUndefined();
    expect(Object.values(first?.shortened ?? {})[0]).toMatch(
      /^\[Result of x of \d+ tokens, left out to save space\.\] \[It is kept: under the key "call_1"\]$/,
    );
    expect(kept.get("call_1")).toBe(words(500, "w0"));
    expect(textOf(model.calls.at(-1)?.messages.at(-1) as Message)).toBe(words(500, "w11"));
  });

  it("the scratch-pad, as it is when the context is compacted, and until the next time", async () => {
    let notes = "Notes 0";
    const { events, model } = await play({
      script: [...steps(40), "Done"],
      tools: [
        tool("x", (args) => {
          notes = `Notes ${String(args["i"])}`;
          return words(args["i"] === 3 ? 900 : 300);
        }),
      ],
      config: { context: { ...context, pinned: () => notes } },
    });
    const made = compactions(events);
    expect(made.length).toBeGreaterThan(3);
    for (const compaction of made) {
      expect(compaction.message && textOf(compaction.message)).toMatch(/Notes \d+$/);
    }
    for (const { messages } of model.calls.slice(20)) expect(sent(messages)).toMatch(/Notes \d+"/);
    const texts = made.map(({ message }) => message && textOf(message));
    expect(new Set(texts).size).toBe(made.length);
  });

  it("one that throws does not end the run", async () => {
    const { end } = await play({
      script: [...steps(20), "Done"],
      tools: [tool("x", () => words(300))],
      config: {
        context: {
          ...context,
          pinned: () => {
            throw new Error("gone");
          },
        },
      },
    });
    expect(end.stop).toBe("done");
  });

  it("the bytes of a request begin with those of the one before, but for a compaction", async () => {
    const { model, events } = await play({
      script: [...steps(60), "Done"],
      tools: [tool("x", () => words(300))],
      config: { context },
    });
    const changed = model.calls.filter(({ messages }, index) => {
      const before = model.calls[index - 1]?.messages ?? [];
      return sent(messages.slice(0, before.length)) !== sent(before);
    });
    expect(changed).toHaveLength(compactions(events).length);
  });
});

describe("R24: messages of the application's own", () => {
  const context: ContextConfig = { triggerTokens: 1_000, targetTokens: 500, keepTurns: 1 };
  const note: AgentMessage = { role: "note", content: words(2_000), timestamp: 0 };
  const messages = [user("First"), note, anAnswer];
  /** As an application does that shows its notes to the model. */
  const convertMessage = (message: AgentMessage): Message | undefined =>
    message.role === "note" ? { ...message, role: "user" } : message;
  const convertToLlm = (all: readonly AgentMessage[]): Message[] =>
    all.flatMap((each) => convertMessage(each) ?? []);
  const playWith = (config: Partial<AgentLoopConfig>): Promise<Played> =>
    play({ script: ["Done"], messages, prompts: [user("Go on")], config });

  it("count as what convertMessage makes of them", async () => {
    const { events, model } = await playWith({
      context: { ...context, convertMessage },
      convertToLlm,
    });
    expect(compactions(events)).toHaveLength(1);
    expect(estimateTokens(sent(model.calls[0]?.messages))).toBeLessThan(500);
  });

  it("are in the text that is summarized", async () => {
    const texts: string[] = [];
    const summarize = (given: string): string => {
      texts.push(given);
      return "Summary.";
    };
    await playWith({ context: { ...context, convertMessage, summarize }, convertToLlm });
    expect(texts.join()).toContain(`user: ${words(10)}`);
  });

  it("count nothing without it", async () => {
    const { events } = await playWith({ context });
    expect(compactions(events)).toHaveLength(0);
  });

  it("one that throws ends the run with an error message", async () => {
    const failing = (): never => {
      throw new Error("no such message");
    };
    const { end } = await playWith({ context: { ...context, convertMessage: failing } });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toContain("no such message");
  });
});

describe("R24: a summary of old turns", () => {
  const context = { triggerTokens: 1_000, targetTokens: 500, keepTurns: 1 };
  const short = tool("x", () => words(60));

  it("is asked for before it is needed, and is there when it is", async () => {
    const asked: { turn: number; text: string }[] = [];
    const order: string[] = [];
    let turn = 0;
    const { model, recorder } = await play({
      script: [...steps(12), "Done"],
      tools: [short],
      config: {
        context: {
          ...context,
          summarize: (text, _signal, what) => {
            order.push(`asked ${what}`);
            asked.push({ turn, text });
            return Promise.resolve("The beginning.");
          },
        },
      },
      onEvent: ({ type }) => {
        if (type === "turn_start") turn++;
        if (type === "compaction") order.push(`compacted ${turn}`);
      },
    });
    expect(order.slice(0, 2)).toEqual(["asked turns", expect.stringMatching(/^compacted /)]);
    const needed = Number(order[1]?.replace(/\D/g, ""));
    expect(asked[0]?.turn).toBeLessThan(needed);
    expect(asked[0]?.text).toMatch(/^assistant: Step 0/);
    expect(recorder.only("compaction")[0]).not.toContain("There is no summary");
    expect(textOf(model.calls.at(-1)?.messages[1] as Message)).toMatch(
      /^Summary of earlier turns:\n\nThe beginning\./,
    );
  });

  it("that is not there in time is done without, and is aborted", async () => {
    const signals: AbortSignal[] = [];
    const { clock, done } = start({
      script: [...steps(14), "Done"],
      tools: [short],
      config: {
        context: {
          ...context,
          summaryWaitMs: 2_000,
          summarize: (_text, signal) => {
            signals.push(signal);
            return never();
          },
        },
      },
    });
    for (let i = 0; i < 20; i++) await clock.advance(1_000);
    const { recorder } = await done;
    expect(recorder.only("compaction")[0]).toContain("It did not come within 2000 ms.");
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  it("that comes while tools run is used, and one for a run that ended is stopped", async () => {
    const summary = later<string>();
    const signals: AbortSignal[] = [];
    let turns = 0;
    const { recorder } = await play({
      script: [...steps(12), "Done"],
      tools: [tool("x", () => words(60))],
      config: {
        context: {
          ...context,
          summarize: (_text, signal) => {
            signals.push(signal);
            return signals.length === 1 ? summary.promise : never();
          },
        },
      },
      onEvent: ({ type }) => {
        if (type === "turn_end" && ++turns === 10) summary.resolve("Late.");
      },
    });
    expect(recorder.only("compaction").join("\n")).not.toContain("There is no summary");
    expect(signals.at(-1)?.aborted).toBe(signals.length > 1);
  });

  it("that a run did not need any more is there for the next", async () => {
    let asked = 0;
    const model = scriptedModel([...steps(8), "One", ...steps(4, 8), "Two"]);
    const agent = new Agent({
      protocol: model,
      context: {
        ...context,
        summarize: () => {
          asked++;
          return Promise.resolve("The beginning.");
        },
      },
      model: model.model,
      tools: [short],
    });
    await agent.prompt("Go");
    expect([asked, agent.state.compaction]).toEqual([1, undefined]);
    await agent.prompt("On");
    expect(asked).toBe(1);
    expect(agent.state.compaction?.message && textOf(agent.state.compaction.message)).toMatch(
      /The beginning\./,
    );
  });
});

describe("R24: what is called before a compaction", () => {
  const answers = (count: number): string[] => Array.from({ length: count }, () => words(1_500));

  async function prompts(agent: Agent, count: number): Promise<AgentEvent[]> {
    const events: AgentEvent[] = [];
    agent.subscribe((event) => void events.push(event));
    for (let i = 0; i < count; i++) await agent.prompt(`Ask ${i}`);
    return events;
  }

  it("may put it off, as long as the window has room", async () => {
    const script = scriptedModel(answers(8));
    const asked: number[] = [];
    const agent = new Agent({
      protocol: script,
      model: { ...script.model, contextWindow: 9_000 },
      context: {
        triggerTokens: 3_000,
        keepTurns: 1,
        beforeCompaction: () => {
          asked.push(script.calls.length);
          return false;
        },
      },
    });
    const events = await prompts(agent, 8);
    expect(asked.length).toBeGreaterThan(3);
    expect(compactions(events).length).toBeGreaterThan(0);
    const first = events.findIndex(({ type }) => type === "compaction");
    const turnsBefore = events.slice(0, first).filter(({ type }) => type === "turn_end").length;
    // It would have been made at 3,000 tokens, after two answers; it was when 9,000 were full.
    expect(turnsBefore).toBeGreaterThanOrEqual(5);
  });

  it("and throws: the run ends with that error (R5), and the next goes on", async () => {
    const script = scriptedModel(answers(4));
    let isBroken = true;
    const agent = new Agent({
      protocol: script,
      model: script.model,
      context: {
        triggerTokens: 3_000,
        keepTurns: 1,
        beforeCompaction: () => {
          if (isBroken) throw new Error("no disk");
        },
      },
    });
    await prompts(agent, 2);
    const end = await agent.prompt("Now?");
    expect([end.stop, end.finalMessage?.errorMessage]).toMatchObject(["error", /no disk/]);
    isBroken = false;
    expect((await agent.prompt("And now?")).stop).toBe("done");
  });
});

describe("R24: a service that says the context is too large", () => {
  const overflow = fail("prompt is too long", { kind: "overflow", status: 400 });
  const long = tool("x", () => words(400));
  const context = { triggerTokens: 1e6, keepTurns: 1 };

  it("is asked once more with a smaller one", async () => {
    const { end, model, events } = await play({
      script: [...steps(10), overflow, "Done"],
      tools: [long],
      config: { context },
    });
    expect(end.stop).toBe("done");
    const types = events.map(({ type }) => type);
    const at = types.indexOf("compaction");
    expect(types.slice(at - 1, at + 3)).toEqual([
      "turn_start",
      "compaction",
      "retry",
      "message_start",
    ]);
    expect(events[at]).toMatchObject({ reason: "The service said that the context is too large." });
    expect(events[at + 1]).toMatchObject({ kind: "overflow", delayMs: 0, attempt: 1 });
    const [refused, taken] = model.calls.slice(-2);
    expect(sent(taken?.messages).length).toBeLessThan(sent(refused?.messages).length / 2);
    expect(validateTranscript(taken?.messages ?? [])).toEqual([]);
  });

  const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
  const shot = tool("x", () => ({ content: [{ type: "text", text: "A screen" }, image] }));
  const tooLarge = fail("Request Entity Too Large", { kind: "overflow", status: 413 });
  const countImages = (messages: readonly unknown[] = []): number =>
    JSON.stringify(messages).split('"type":"image"').length - 1;

  it("is asked without older images first, then without any, then with less", async () => {
    const { end, model, events } = await play({
      script: [...steps(3), tooLarge, tooLarge, tooLarge, "Done"],
      tools: [shot],
      config: { context },
    });
    expect(end.stop).toBe("done");
    expect(model.calls.slice(-4).map(({ messages }) => countImages(messages))).toEqual([
      3, 1, 0, 0,
    ]);
    const sizes = model.calls.slice(-4).map(({ messages }) => sent(messages).length);
    expect(new Set(sizes).size).toBe(4);
    expect(compactions(events)).toHaveLength(1);
    expect(JSON.stringify(end.messages)).toContain('"type":"image"');
  });

  it("is asked without images where there is no context option", async () => {
    const { end, model } = await play({
      script: [...steps(1), tooLarge, "Done"],
      tools: [shot],
    });
    expect(end.stop).toBe("done");
    expect(model.calls.slice(-2).map(({ messages }) => countImages(messages))).toEqual([1, 0]);
  });

  it("a full window without an answer is made smaller, not asked again as it is", async () => {
    const silent = {
      parts: [],
      stopReason: "length",
      usage: { input: 99_500, output: 0 },
    } as const;
    const { end, model, events } = await play({
      script: [...steps(10), silent, "Done"],
      tools: [long],
      config: {
        context,
        model: { ...scriptedModelInfo, contextWindow: 100_000 },
      },
    });
    expect(end.stop).toBe("done");
    expect(compactions(events)).toHaveLength(1);
    const [full, smaller] = model.calls.slice(-2);
    expect(sent(smaller?.messages).length).toBeLessThan(sent(full?.messages).length);
  });

  it("and says so again: the run fails, with its words", async () => {
    const { end, model } = await play({
      script: [...steps(10), overflow, overflow],
      tools: [long],
      config: { context },
    });
    model.assertComplete();
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toContain("prompt is too long");
  });

  it("where nothing can be left out: the run fails, and says why", async () => {
    const { end, events } = await play({ script: [overflow], config: { context } });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toBe(
      "prompt is too long It cannot be made smaller. The system prompt and the tools take 0 tokens, the first request 5, the last turns 0.",
    );
    expect(compactions(events)).toEqual([]);
  });

  it("after another error: what was waited for stays waited for", async () => {
    const { end, recorder } = await play(
      {
        script: [...steps(10), fail("busy", { kind: "overloaded", status: 529 }), overflow, "Done"],
        tools: [long],
        config: { context },
      },
      2_000,
    );
    expect(end.stop).toBe("done");
    expect(recorder.only("retry", "compaction").map((line) => line.split(" ")[0])).toEqual([
      "retry",
      "compaction",
      "retry",
    ]);
  });

  it("is not asked at all where the estimate is above its window and cannot be lowered", async () => {
    const model = scriptedModel([]);
    const { end } = await play({
      prompts: [user(words(2_000))],
      config: { context: {}, model: { ...model.model, contextWindow: 1_000 } },
    });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.failure).toMatchObject({ kind: "overflow" });
    expect(end.finalMessage?.errorMessage).toMatch(
      /does not fit the model's window of 1000, and cannot be made smaller\. .*the first request 2004/,
    );
  });
});

it("R24: an agent remembers from run to run how its service counts", async () => {
  const counted = (text: string): ScriptStep => ({
    parts: [text],
    usage: { input: 2_000, output: 1 },
  });
  const model = scriptedModel(["a", "b", "c", "d", "e"].map(counted));
  const agent = new Agent({
    protocol: model,
    context: { triggerTokens: 1_500, keepTurns: 1 },
    model: model.model,
  });
  for (let i = 0; i < 5; i++) await agent.prompt(words(200));
  // By our own count there is room: 5 times 200 words.
  expect(agent.state.compaction).toBeDefined();
});

describe("R24: whatever happens", () => {
  const turns = fc.array(
    fc.record({
      sizes: fc.array(fc.nat(1_500), { minLength: 1, maxLength: 3 }),
      refused: fc.nat(15).map((n) => n === 1),
    }),
    { minLength: 1, maxLength: 25 },
  );
  const summaries = fc.constantFrom("none", "good", "bad", "long", "slow");
  const sizes = fc.record({
    triggerTokens: fc.integer({ min: 600, max: 6_000 }),
    keepTurns: fc.integer({ min: 1, max: 3 }),
    maxResultTokens: fc.constantFrom(300, 700, 12_000),
  });

  it("gets below its target or says why, changes earlier bytes only then, and parts no call", async () => {
    await fc.assert(
      fc.asyncProperty(turns, summaries, sizes, fc.boolean(), async (plan, kind, limits, notes) => {
        const script = plan.flatMap(({ sizes: each, refused }): ScriptStep[] => [
          ...(refused ? [fail("too long", { kind: "overflow", status: 400 })] : []),
          [say("On."), ...each.map((size) => call("x", { size }))],
        ]);
        const answers = {
          good: () => Promise.resolve("In short."),
          bad: () => Promise.reject(new Error("bad")),
          long: () => words(5_000),
          slow: () => never<string>(),
        };
        const { clock, done } = start({
          script: [...script, "Done"],
          tools: [tool("x", (args) => words(Number(args["size"])), { concurrent: true })],
          config: {
            limits: { maxIdenticalCalls: 1_000 },
            context: {
              ...limits,
              ...(kind !== "none" && { summarize: answers[kind] }),
              ...(notes && { pinned: () => "Notes.", storeResult: () => "in a file" }),
            },
          },
        });
        let isOver = false;
        void done.finally(() => (isOver = true)).catch(() => {});
        for (let i = 0; !isOver && i < 10_000; i++) await clock.advance(31_000);
        const { end, events, model } = await done;
        const failed = end.finalMessage?.failure?.kind;
        expect([undefined, "overflow"]).toContain(failed);
        if (!plan.some(({ refused }) => refused)) expect(failed).toBeUndefined();
        for (const event of events) {
          if (event.type !== "compaction") continue;
          expect(event.after).toBeLessThan(event.before);
          if (event.reason.includes("It stays above its target")) continue;
          expect(event.after).toBeLessThanOrEqual(limits.triggerTokens / 2);
        }
        const changed = model.calls.filter(({ messages }, index) => {
          const before = model.calls[index - 1]?.messages ?? [];
          return sent(messages.slice(0, before.length)) !== sent(before);
        });
        expect(changed.length).toBeLessThanOrEqual(compactions(events).length);
        for (const { messages } of model.calls) {
          expect(validateTranscript(messages)).toEqual([]);
          expect(messages[0]).toEqual(user("Go"));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("R24: many turns", () => {
  const WINDOW = 128_000;
  const TURNS = 2_000;
  const counts = new WeakMap<Message, number>();
  const counted = (message: Message): number => {
    let count = counts.get(message);
    if (count === undefined) {
      count = encode(JSON.stringify(message.content)).length;
      counts.set(message, count);
    }
    return count;
  };

  /** What a tool of a coding agent gives: code, prose, tables, other scripts. */
  function output(i: number): string {
    const size = 60 + ((i * 37) % 240);
    const lines = (line: (n: number) => string): string =>
      Array.from({ length: size }, (_, n) => line(n)).join("\n");
    if (i % 5 === 0) return lines((n) => `  const value${n} = await parse(input[${n + i}], ${n});`);
    if (i % 5 === 1) return lines((n) => `${n + i}\t${n * 17}\t0x${(n * 7919).toString(16)}`);
    if (i % 5 === 2) return lines((n) => `Клиент ${n} ответил за ${i} мс`);
    if (i % 5 === 3) return lines((n) => `第${n}行：服务器已经启动`);
    return lines((n) => `src/part-${n % 9}/file-${n}.ts:${i}: the parser keeps what it has read`);
  }

  it("2,000 turns through a window of 128k: never too large, never parted, the facts in sight", async () => {
    const decided: string[] = [];
    const changed = new Set<string>();
    let largest = 0;
    let refused = 0;
    const service = scriptedModel(
      (context, _options, index) => {
        const size = context.messages.reduce((sum, message) => sum + counted(message), 0);
        largest = Math.max(largest, size);
        if (size > WINDOW) {
          refused++;
          return fail("too long", { kind: "overflow", status: 400 });
        }
        expect(context.messages[0]).toMatchObject({ content: "Rewrite the parser, please." });
        if (index % 40 === 0) {
          const all = sent(context.messages);
          for (const line of decided) expect(all).toContain(line);
          for (const path of changed) expect(all).toContain(path);
        }
        if (index >= TURNS) return "Done";
        const usage = { input: size, output: 1 };
        if (index % 50 === 7) {
          const line = `Decision: part ${index} is written in style ${index * 3}.`;
          decided.push(line);
          return { parts: [say(`${line}\nOn with it.`), call("read", { path: "a" })], usage };
        }
        if (index % 25 === 3) {
          const path = `src/part-${index % 9}/file-${index}.ts`;
          changed.add(path);
          return { parts: [call("edit", { path, edits: [] }), call("read", { path })], usage };
        }
        return {
          parts: [say(`Looking at ${index}.`), call("shell", { command: `cat ${index}` })],
          usage,
        };
      },
      { keepCalls: false },
    );
    let runs = 0;
    const outputs: AgentTool[] = ["read", "edit", "shell"].map((name) =>
      tool(name, () => (name === "edit" ? "Changed." : output(runs++)), {
        presentation: {
          kind: "other",
          effects: ({ path }) => (name === "edit" ? { changes: [String(path)] } : {}),
        },
      }),
    );
    const agent = new Agent({
      protocol: service,
      context: {},
      limits: { maxTurns: Infinity },
      model: { ...service.model, contextWindow: WINDOW },
      tools: outputs,
    });
    let made = 0;
    agent.subscribe(({ type }) => void (made += Number(type === "compaction")));
    const end = await agent.prompt("Rewrite the parser, please.");
    expect(end.stop).toBe("done");
    expect(end.turns).toBe(TURNS + 1);
    expect(refused).toBe(0);
    expect(largest).toBeLessThanOrEqual(WINDOW);
    expect(largest).toBeGreaterThan(WINDOW / 2);
    expect(made).toBeGreaterThan(20);
    const { messages, compaction } = agent.state;
    const last = compaction ? applyCompaction(messages, compaction) : messages;
    expect(validateTranscript(last as Message[])).toEqual([]);
    expect([decided.length, changed.size]).toEqual([40, 80]);
  });

  it("a turn costs the same however long the transcript is", () => {
    const messages: AgentMessage[] = [user("First")];
    for (let i = 0; i < 20_000; i++) messages.push(user(`Message ${i}`));
    let reads = 0;
    const watched = new Proxy(messages, {
      get: (target, key, receiver) => {
        if (typeof key === "string" && /^\d+$/.test(key)) reads++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    const compaction = { from: 1, to: 19_900, message: user(LEFT_OUT_TEXT) };
    const view = new View();
    view.update(watched, compaction);
    reads = 0;
    for (let i = 0; i < 100; i++) {
      messages.push(user(`More ${i}`));
      expect(view.update(watched, compaction)).toHaveLength(104 + i);
    }
    expect(reads).toBeLessThanOrEqual(200);
    reads = 0;
    const limits = { trigger: 10, target: 5, keepTurns: 1, window: 1e6 };
    planCompaction(watched, limits, { earlier: compaction });
    expect(reads).toBeLessThan(5_000);
  });
});
