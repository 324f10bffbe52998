import {
  call,
  type Message,
  say,
  scriptedModel,
  type ScriptStep,
  validateTranscript,
} from "@gyre/ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Agent } from "./agent.ts";
import {
  applyCompaction,
  contextLimits,
  LEFT_OUT_TEXT,
  onTopOf,
  planCompaction,
  readable,
  standIn,
  tokensOf,
} from "./compaction.ts";
import { never, play, start, tool, user } from "./testing/play.ts";
import type { AgentMessage } from "./types.ts";

const base = { api: "a", provider: "p", model: "m", usage: {}, timestamp: 0 } as const;

function answered(text: string): AgentMessage {
  return { ...base, role: "assistant", stopReason: "stop", content: [{ type: "text", text }] };
}

/** A turn with calls and their results. */
function worked(ids: readonly string[], text: string): AgentMessage[] {
  return [
    {
      ...base,
      role: "assistant",
      stopReason: "toolUse",
      content: ids.map((id) => ({ type: "toolCall", id, name: "x", arguments: {} })),
    },
    ...ids.map((id): AgentMessage => ({
      role: "toolResult",
      toolCallId: id,
      toolName: "x",
      content: [{ type: "text", text }],
      isError: false,
      timestamp: 0,
    })),
  ];
}

const words = (count: number): string => "word ".repeat(count).trim();
const sizeOf = (messages: readonly AgentMessage[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0);
const limits = { trigger: 500, target: 250, keepTurns: 2 };

/** A transcript of some length, every call answered. */
const transcripts = fc
  .array(
    fc.oneof(
      fc.nat(200).map((n) => ({ kind: "chat" as const, n })),
      fc.tuple(fc.integer({ min: 1, max: 3 }), fc.nat(200)).map(([calls, n]) => ({
        kind: "work" as const,
        calls,
        n,
      })),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((turns) => {
    let made = 0;
    const messages: AgentMessage[] = [user("The first request")];
    for (const turn of turns) {
      if (turn.kind === "chat") messages.push(answered(words(turn.n + 1)), user(words(turn.n + 1)));
      else {
        const ids = Array.from({ length: turn.calls }, () => `c${++made}`);
        messages.push(...worked(ids, words(turn.n + 1)));
      }
    }
    return messages;
  });

describe("R24: planning and applying", () => {
  it("R24: nothing is planned while there is room", () => {
    expect(planCompaction([user("A"), answered("B")], limits)).toBeUndefined();
  });

  it("R24: whatever the transcript, calls keep their results and the ends stay byte for byte", () => {
    fc.assert(
      fc.property(transcripts, (messages) => {
        const plan = planCompaction(messages, limits);
        if (!plan) return;
        const compaction = { ...plan, message: standIn(undefined, 0) };
        const sent = applyCompaction(messages, compaction);
        expect(validateTranscript(sent as Message[])).toEqual([]);
        expect(sent.slice(0, plan.from)).toEqual(messages.slice(0, plan.from));
        expect(sent.slice(plan.from + 1)).toEqual(messages.slice(plan.to));
        expect(sent[0]).toBe(messages[0]);
        expect(sizeOf(sent)).toBeLessThan(sizeOf(messages));
        const kept = sent.filter(({ role }) => role === "assistant").length;
        expect(kept).toBeGreaterThanOrEqual(Math.min(limits.keepTurns, messages.length - 1));
        if (kept > limits.keepTurns) expect(sizeOf(sent)).toBeLessThanOrEqual(limits.target);
      }),
    );
  });

  it("R24: both are pure, and the same when done again", () => {
    fc.assert(
      fc.property(transcripts, (messages) => {
        const copy = structuredClone(messages);
        const plan = planCompaction(messages, limits);
        expect(planCompaction(messages, limits)).toEqual(plan);
        if (!plan) return;
        const compaction = { ...plan, message: standIn("short", 0) };
        const sent = applyCompaction(messages, compaction);
        expect(applyCompaction(sent, compaction)).toBe(sent);
        expect(messages).toEqual(copy);
        if (sizeOf(sent) <= limits.trigger) expect(planCompaction(sent, limits)).toBeUndefined();
      }),
    );
  });

  it("R24: a second one is built on the first, and told as one of the transcript", () => {
    const turns = (from: number, count: number): AgentMessage[] =>
      Array.from({ length: count }, (_, i) => worked([`c${from + i}`], words(80))).flat();
    const early = [user("First"), ...turns(0, 8)];
    const first = planCompaction(early, limits);
    if (!first) return expect.unreachable();
    const compaction = { ...first, message: standIn("one", 0) };
    const late = [...early, ...turns(8, 8)];
    const second = planCompaction(applyCompaction(late, compaction), limits);
    if (!second) return expect.unreachable();
    const whole = onTopOf(compaction, second);
    expect(whole.from).toBe(first.from);
    expect(whole.to).toBeGreaterThan(first.to);
    const sent = applyCompaction(late, { ...whole, message: standIn("two", 0) });
    expect(validateTranscript(sent as Message[])).toEqual([]);
    expect(sizeOf(sent)).toBeLessThanOrEqual(limits.target);
    expect(sent.at(-1)).toBe(late.at(-1));
    return undefined;
  });

  it("R24: the limits come from the model's window where it is small", () => {
    const model = { id: "m", name: "m", api: "a", provider: "p" };
    expect(contextLimits({}, model)).toEqual({ trigger: 160_000, target: 80_000, keepTurns: 2 });
    expect(contextLimits({}, { ...model, contextWindow: 10_000 }).trigger).toBe(8_000);
    expect(contextLimits({ triggerTokens: 9, targetTokens: 3, keepTurns: 1 }, model)).toEqual({
      trigger: 9,
      target: 3,
      keepTurns: 1,
    });
  });

  it("what is to be summed up can be read", () => {
    expect(readable([user("Do it"), ...worked(["c1"], "done"), answered("Good")])).toBe(
      "user: Do it\n\nassistant: \ncalls x {}\n\nresult of x: done\n\nassistant: Good",
    );
  });
});

describe("R24: in a run", () => {
  const long = tool("x", () => words(100));
  const script = (calls: number): ScriptStep[] => [
    ...Array.from({ length: calls }, (_, i) => [say(`Step ${i}`), call("x", { i })]),
    "Done",
  ];
  const context = { triggerTokens: 500, targetTokens: 250, keepTurns: 1 };

  it("R24: it stays below its trigger; the transcript stays whole; the model never refuses", async () => {
    const { end, model, recorder } = await play({
      script: script(30),
      tools: [long],
      config: { context },
    });
    expect(end.stop).toBe("done");
    expect(end.messages).toHaveLength(62);
    model.assertComplete();
    const events = recorder.events.filter(({ type }) => type === "compaction");
    expect(events.length).toBeGreaterThan(3);
    for (const event of events) {
      if (event.type !== "compaction") continue;
      expect(event.before).toBeGreaterThan(context.triggerTokens);
      expect(event.after).toBeLessThanOrEqual(context.targetTokens + 50);
    }
    for (const { messages } of model.calls) {
      expect(messages[0]).toEqual(user("Go"));
      expect(sizeOf(messages)).toBeLessThan(context.triggerTokens + 150);
    }
    expect(model.calls.at(-1)?.messages[1]).toMatchObject({ content: LEFT_OUT_TEXT });
  });

  it("R24: a summary comes in as data, of what is left out", async () => {
    const asked: string[] = [];
    const { model } = await play({
      script: script(8),
      tools: [long],
      config: {
        context: {
          ...context,
          summarise: (text) => {
            asked.push(text);
            return Promise.resolve(`sum ${asked.length}`);
          },
        },
      },
    });
    expect(asked[0]).toMatch(/^assistant: Step 0\ncalls x \{"i":0\}/);
    expect(asked[1]).toMatch(/^user: Summary of earlier turns:\n\nsum 1/);
    const last = model.calls.at(-1)?.messages[1]?.content;
    expect(last).toBe(`Summary of earlier turns:\n\nsum ${asked.length}`);
  });

  it.each([
    ["throws", () => Promise.reject(new Error("no oracle")), "There is no summary: no oracle"],
    ["is too long", () => words(500), "The summary was too long, and is left out."],
  ])("R24: a summary that %s gives way to a constant sentence", async (_what, summarise, why) => {
    const { end, model, recorder } = await play({
      script: script(6),
      tools: [long],
      config: { context: { ...context, summarise } },
    });
    expect(end.stop).toBe("done");
    expect(model.calls.at(-1)?.messages[1]).toMatchObject({ content: LEFT_OUT_TEXT });
    expect(recorder.only("compaction")[0]).toContain(why);
  });

  it("R21: an abort does not wait for a summary", async () => {
    const controller = new AbortController();
    const { clock, done } = start({
      script: script(8),
      tools: [long],
      signal: controller.signal,
      config: { context: { ...context, summarise: () => never() } },
    });
    await clock.advance(10);
    controller.abort();
    const { end } = await done;
    expect(end.stop).toBe("aborted");
  });

  it("R24: what the service counts corrects the estimate", async () => {
    const counted = (input: number): ScriptStep[] => [
      { parts: [call("x", { i: 0 })], usage: { input, output: 1 } },
      { parts: [call("x", { i: 1 })], usage: { input, output: 1 } },
      "Done",
    ];
    const config = { context: { triggerTokens: 300, targetTokens: 150, keepTurns: 1 } };
    const plain = await play({ script: counted(10), tools: [long], config });
    expect(plain.recorder.only("compaction")).toEqual([]);
    const dear = await play({ script: counted(100_000), tools: [long], config });
    expect(dear.recorder.only("compaction").length).toBeGreaterThan(0);
  });

  it("R24: an agent keeps it from run to run, and forgets it with the messages", async () => {
    const model = scriptedModel([...script(8), "Again", "New"]);
    const agent = new Agent({
      protocol: model,
      context,
      initialState: { model: model.model, tools: [long] },
    });
    await agent.prompt("Go");
    const { compaction } = agent.state;
    expect(compaction?.from).toBe(1);
    await agent.prompt("More");
    expect(model.calls.at(-1)?.messages[1]).toBe(compaction?.message);
    agent.clearMessages();
    expect(agent.state.compaction).toBeUndefined();
    await agent.prompt("New");
    model.assertComplete();
  });
});
