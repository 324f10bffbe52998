import { type Message, validateTranscript } from "@gyre/ai";
import { call, say, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Agent } from "../agent/agent.ts";
import {
  applyCompaction,
  type CompactionPlan,
  contextLimits,
  LEFT_OUT_TEXT,
  makesProgress,
  planCompaction,
  toReadableText,
  SHORT_RESULT_TOKENS,
  makeStandIn,
} from "./compaction.ts";
import type { Compaction } from "../contract/compaction.ts";
import { formatShortForm } from "./long-results.ts";
import { ContextMemory } from "./memory.ts";
import { never, play, start, tool, user } from "../testing/play.ts";
import type { AgentMessage } from "../contract/types.ts";

const memory = new ContextMemory();
const base = { api: "a", provider: "p", model: "m", usage: {}, timestamp: 0 } as const;

function answered(text: string): Message {
  return { ...base, role: "assistant", stopReason: "stop", content: [{ type: "text", text }] };
}

/** A turn with calls and their results. */
function worked(ids: readonly string[], text: string): Message[] {
  return [
    {
      ...base,
      role: "assistant",
      stopReason: "toolUse",
      content: ids.map((id) => ({ type: "toolCall", id, name: "x", arguments: {} })),
    },
    ...ids.map((id): Message => ({
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
const measure = (messages: readonly AgentMessage[]): number =>
  messages.reduce((sum, message) => sum + memory.countTokens(message), 0);
const limits = { trigger: 500, target: 250, keepTurns: 2, window: Number.POSITIVE_INFINITY };

/** What a plan comes to without summarize and storeResult. */
function done(
  messages: readonly AgentMessage[],
  plan: CompactionPlan,
  earlier?: Compaction,
): Compaction {
  const { from, to } = plan;
  const left = messages.slice(to);
  const shortened: Record<string, string> = {};
  for (const message of left) {
    if (message.role !== "toolResult") continue;
    const { toolCallId: id } = message;
    const tokens = plan.shorten.get(id);
    const text = tokens === undefined ? earlier?.shortened?.[id] : formatShortForm(message, tokens);
    if (text !== undefined) shortened[id] = text;
  }
  const isLess = to > (earlier?.message ? earlier.to : from);
  const message = isLess ? makeStandIn({}, 0) : earlier?.message;
  return { ...(message ? { from, to, message } : { from: 0, to: 0 }), shortened };
}

/** A transcript of some length, every call answered. */
const transcripts = fc
  .array(
    fc.oneof(
      fc.nat(200).map((n) => ({ kind: "chat" as const, n })),
      fc.tuple(fc.integer({ min: 1, max: 3 }), fc.nat(900)).map(([calls, n]) => ({
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

/** Any sizes to keep to. */
const anyLimits = fc
  .record({
    trigger: fc.integer({ min: 100, max: 4_000 }),
    share: fc.double({ min: 0.1, max: 0.9, noNaN: true }),
    keepTurns: fc.nat(4),
    window: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 200, max: 5_000 })),
  })
  .map(({ share, ...rest }) => ({ ...rest, target: Math.round(rest.trigger * share) }));

describe("R24: planning and applying", () => {
  it("R24: nothing is planned while there is room", () => {
    expect(planCompaction([user("A"), answered("B")], limits)).toBeUndefined();
  });

  it("R24: whatever the transcript and the limits, calls keep their results and the start stays byte for byte", () => {
    fc.assert(
      fc.property(transcripts, anyLimits, fc.nat(20), (messages, any, atLeast) => {
        const plan = planCompaction(messages, any, { atLeast });
        if (!plan) return;
        const compaction = done(messages, plan);
        const sent = applyCompaction(messages, compaction);
        expect(validateTranscript(sent as Message[])).toEqual([]);
        expect(sent[0]).toBe(messages[0]);
        expect(sent.at(-1)?.role).toBe(messages.at(-1)?.role);
        if (makesProgress(plan)) expect(measure(sent)).toBeLessThan(measure(messages));
        expect(measure(sent)).toBeLessThanOrEqual(plan.after);
        if (plan.after > any.target) expect(plan.why).toMatch(/the last turns \d+\.$/);
        else expect(plan.why).toBeUndefined();
      }),
    );
  });

  it("R24: above the trigger there is a plan that is worth it, or the context may wait", () => {
    fc.assert(
      fc.property(transcripts, anyLimits, (messages, any) => {
        const size = measure(messages);
        const plan = planCompaction(messages, any);
        if (size <= any.trigger) expect(plan).toBeUndefined();
        else if (size > Math.max(any.trigger, any.window)) expect(plan).toBeDefined();
        const forced = planCompaction(messages, any, { force: true });
        if (forced && !makesProgress(forced)) expect(forced.after).toBe(size);
      }),
    );
  });

  it("R24: both are pure, and the same when done again", () => {
    fc.assert(
      fc.property(transcripts, anyLimits, (messages, any) => {
        const copy = structuredClone(messages);
        const plan = planCompaction(messages, any);
        expect(planCompaction(messages, any)).toEqual(plan);
        if (!plan) return;
        const compaction = done(messages, plan);
        const sent = applyCompaction(messages, compaction);
        expect(applyCompaction(sent, compaction)).toBe(sent);
        expect(applyCompaction(messages, structuredClone(compaction))).toEqual(sent);
        expect(messages).toEqual(copy);
        const again = planCompaction(messages, any, { earlier: compaction });
        if (plan.after <= any.trigger) expect(again).toBeUndefined();
      }),
    );
  });

  it("R24: again and again, on a transcript that grows: it never parts a call, and ends", () => {
    fc.assert(
      fc.property(transcripts, anyLimits, fc.boolean(), (whole, any, asked) => {
        const messages = asked ? whole : whole.filter(({ role }) => role !== "user");
        let earlier: Compaction | undefined;
        for (let length = 1; length <= messages.length; length++) {
          const part = messages.slice(0, length);
          if (validateTranscript(part as Message[]).length > 0) continue;
          for (let tries = 0; ; tries++) {
            expect(tries).toBeLessThan(3);
            const plan = planCompaction(part, any, { earlier });
            if (!plan || !makesProgress(plan, earlier)) break;
            earlier = done(part, plan, earlier);
            expect(validateTranscript(applyCompaction(part, earlier) as Message[])).toEqual([]);
          }
        }
      }),
    );
  });

  it("R24: a second one is built on the first, and reported as one of the transcript", () => {
    const turns = (from: number, count: number): AgentMessage[] =>
      Array.from({ length: count }, (_, i) => worked([`c${from + i}`], words(80))).flat();
    const early = [user("First"), ...turns(0, 8)];
    const first = planCompaction(early, limits);
    if (!first) return expect.unreachable();
    const earlier = done(early, first);
    const late = [...early, ...turns(8, 8)];
    const second = planCompaction(late, limits, { earlier });
    if (!second) return expect.unreachable();
    expect(second.from).toBe(first.from);
    expect(second.to).toBeGreaterThan(first.to);
    const sent = applyCompaction(late, done(late, second, earlier));
    expect(validateTranscript(sent as Message[])).toEqual([]);
    expect(measure(sent)).toBeLessThanOrEqual(limits.target);
    expect(sent.at(-1)).toBe(late.at(-1));
    return undefined;
  });

  it("R24: so it is where there is no request", () => {
    const turns = (from: number, count: number): AgentMessage[] =>
      Array.from({ length: count }, (_, i) => worked([`c${from + i}`], words(80))).flat();
    const early = turns(0, 8);
    const first = planCompaction(early, limits);
    if (!first) return expect.unreachable();
    const earlier = done(early, first);
    const late = [...early, ...turns(8, 8)];
    const second = planCompaction(late, limits, { earlier });
    if (!second) return expect.unreachable();
    expect([first.from, second.from]).toEqual([0, 0]);
    const sent = applyCompaction(late, done(late, second, earlier));
    expect(validateTranscript(sent as Message[])).toEqual([]);
    expect(sent.filter(({ role }) => role === "user")).toHaveLength(1);
    return undefined;
  });

  it("R24: old results go first, in one line each; the newest stay whole", () => {
    const turns = Array.from({ length: 10 }, (_, i) => worked([`c${i}`], words(1_000))).flat();
    const messages = [user("First"), ...turns];
    const roomy = { ...limits, trigger: 8_000, target: 4_500 };
    const plan = planCompaction(messages, roomy);
    if (!plan) return expect.unreachable();
    expect(plan.to).toBe(plan.from);
    expect([...plan.shorten]).toEqual(Array.from({ length: 7 }, (_, i) => [`c${i}`, 0]));
    const sent = applyCompaction(messages, done(messages, plan));
    expect(sent).toHaveLength(messages.length);
    expect(sent[2]).toMatchObject({
      content: [
        {
          text: "[Result of x of 1000 tokens, left out to save space.] [Call the tool again if you need it.]",
        },
      ],
    });
    expect(measure(sent.slice(2, 3))).toBeLessThanOrEqual(SHORT_RESULT_TOKENS);
    expect(sent.at(-1)).toBe(messages.at(-1));
    return undefined;
  });

  it("R24: a last turn that is too large alone is cut, the largest results to one height", () => {
    const last = worked(["a", "b", "c"], words(2_000));
    const messages = [user("First"), ...worked(["d"], words(300)), ...last, ...worked(["e"], "ok")];
    messages.splice(-2);
    const plan = planCompaction(messages, { ...limits, trigger: 3_000, target: 1_500 });
    if (!plan) return expect.unreachable();
    expect([...plan.shorten.keys()].toSorted()).toEqual(["a", "b", "c"]);
    const sent = applyCompaction(messages, done(messages, plan));
    expect(measure(sent)).toBeLessThanOrEqual(1_500);
    expect(JSON.stringify(sent.at(-1))).toContain("Here a part is left out");
    return undefined;
  });

  it("R24: what cannot be made smaller is said", () => {
    const messages = [user(words(1_000)), answered("Yes"), user(words(900))];
    const plan = planCompaction(messages, { ...limits, window: 1_000 }, { overhead: 10 });
    expect(plan).toMatchObject({ from: 1, to: 1, why: expect.stringContaining("take 10 tokens") });
    expect(plan && makesProgress(plan)).toBe(false);
  });

  it("R24: what would gain next to nothing waits", () => {
    const messages = [user(words(450)), ...worked(["a"], "x"), ...worked(["b"], words(60))];
    expect(planCompaction(messages, { ...limits, keepTurns: 1 })).toBeUndefined();
  });

  it("R24: the limits come from the model's window where it is small", () => {
    const model = { id: "m", name: "m", api: "a", provider: "p" };
    const window = Number.POSITIVE_INFINITY;
    expect(contextLimits({}, model)).toEqual({
      trigger: 160_000,
      target: 80_000,
      keepTurns: 2,
      window,
    });
    expect(contextLimits({}, { ...model, contextWindow: 10_000 }).trigger).toBe(8_000);
    expect(contextLimits({ triggerTokens: 9, targetTokens: 3, keepTurns: 1 }, model)).toEqual({
      trigger: 9,
      target: 3,
      keepTurns: 1,
      window,
    });
  });

  it("what is to be summed up can be read", () => {
    expect(toReadableText([user("Do it"), ...worked(["c1"], "done"), answered("Good")])).toBe(
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
      expect(measure(messages)).toBeLessThan(context.triggerTokens + 150);
    }
    expect(model.calls.at(-1)?.messages[1]).toMatchObject({
      content: `${LEFT_OUT_TEXT}\n\nSteps:\n${[21, 22, 23, 24, 25, 26].map((n) => `- Step ${n}`).join("\n")}`,
    });
  });

  it("R24: a summary comes in as data, of what is left out", async () => {
    const asked: string[] = [];
    const { model } = await play({
      script: script(8),
      tools: [long],
      config: {
        context: {
          ...context,
          summarize: (text) => {
            asked.push(text);
            return Promise.resolve(`sum ${asked.length}`);
          },
        },
      },
    });
    expect(asked[0]).toMatch(/^assistant: Step 0\ncalls x \{"i":0\}/);
    expect(asked[1]).toMatch(/^user: Summary of earlier turns:\n\nsum 1/);
    const last = model.calls.at(-1)?.messages[1]?.content;
    // What was left out after the summary had been asked for is listed behind it.
    expect(last).toBe(`Summary of earlier turns:\n\nsum ${asked.length}\n\nSteps:\n- Step 5`);
  });

  it.each([
    ["throws", () => Promise.reject(new Error("no oracle")), "There is no summary: no oracle"],
    ["is too long", () => words(500), "The summary was too long, and is left out."],
  ])(
    "R24: a summary that %s gives way to a constant sentence and the facts",
    async (_what, summarize, why) => {
      const { end, model, recorder } = await play({
        script: script(6),
        tools: [long],
        config: { context: { ...context, summarize } },
      });
      expect(end.stop).toBe("done");
      expect(model.calls.at(-1)?.messages[1]).toMatchObject({
        content: `${LEFT_OUT_TEXT}\n\nSteps:\n- Step 0\n- Step 1\n- Step 2`,
      });
      expect(recorder.only("compaction")[0]).toContain(why);
    },
  );

  it("R21: an abort does not wait for a summary", async () => {
    const controller = new AbortController();
    const { clock, done } = start({
      script: script(8),
      tools: [long],
      signal: controller.signal,
      config: { context: { ...context, summarize: () => never() } },
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
      model: model.model,
      tools: [long],
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
