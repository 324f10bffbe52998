import { type AssistantMessageEvent, emptyAssistantMessage, type StreamFn } from "@gyre/ai";
import {
  call,
  callAll,
  fail,
  type ManualClock,
  manualClock,
  say,
  type ScriptedModel,
  scriptedModel,
  type ScriptFunction,
  type ScriptStep,
  stall,
} from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";
import type { PromptInput } from "../transcript/input.ts";
import { approval } from "../contract/middleware.ts";
import { ANSWER_TOOL, OutputError } from "./output.ts";
import { checkGrammar, checkPairs } from "../testing/grammar.ts";
import { freeze, later, never, Recorder, tool, user } from "../testing/play.ts";
import { answer, asks, empty, injected, ran, renderMessage } from "../testing/render.ts";
import type { AgentEndEvent, AgentEvent, AgentMessage, AgentTool } from "../contract/types.ts";

interface Made {
  agent: Agent;
  model: ScriptedModel;
  recorder: Recorder;
  clock: ManualClock;
  errors: [string, string][];
}

function make(
  script: readonly ScriptStep[] | ScriptFunction = ["Hello"],
  options: AgentOptions = {},
): Made {
  const clock = manualClock();
  const model = scriptedModel(script, { clock });
  const errors: [string, string][] = [];
  const agent = new Agent({
    protocol: model,
    clock,
    onError: (error, where) => void errors.push([String(error), where]),
    model: model.model,
    ...options,
  });
  const recorder = new Recorder();
  agent.subscribe((event) => recorder.sink(event));
  return { agent, model, recorder, clock, errors };
}

const contents = (messages: readonly AgentMessage[]): string[] => messages.map(renderMessage);
const queued = (agent: Agent, queue: "steering" | "followUp"): unknown[] =>
  agent.queued(queue).map(({ message }) => message.content);
const hi = ["agent_start", "turn_start", ...injected("Hi")];

describe("a new agent", () => {
  it("has nothing in it", () => {
    const agent = new Agent();
    expect(agent.state).toEqual({
      systemPrompt: "",
      model: undefined,
      thinkingLevel: "off",
      tools: [],
      messages: [],
      isStreaming: false,
      streamMessage: undefined,
      streamVersion: 0,
      pendingToolCalls: new Set(),
      pending: [],
      error: undefined,
      usage: {},
    });
  });

  it("takes its initial state, and keeps a copy of the messages", async () => {
    const messages = [user("Old")];
    freeze(messages);
    const { agent, model } = make(["Hello"], {
      instructions: "S",
      thinkingLevel: "high",
      tools: [tool("x")],
      messages,
    });
    await agent.prompt("Hi");
    const [request] = model.calls;
    expect([request?.systemPrompt, request?.options.thinkingLevel, request?.tools?.length]).toEqual(
      ["S", "high", 1],
    );
    expect(contents(agent.state.messages)).toEqual([
      'user "Old"',
      'user "Hi"',
      'assistant stop "Hello"',
    ]);
  });

  it("R5: without a model, or a way to one, prompt rejects and says what to do", async () => {
    await expect(new Agent().prompt("Hi")).rejects.toThrow(/setModel/);
    const { model } = scriptedModel([]);
    const agent = new Agent({ model: "anthropic/claude-sonnet-0", protocol: scriptedModel([]) });
    await expect(agent.prompt("Hi")).rejects.toThrow(/No model fits "anthropic\/claude-sonnet-0"/);
    expect(agent.isRunning).toBe(false);
    expect(() => new Agent({ model }).run("Hi")).not.toThrow();
  });

  it("R5: run() without a way to a model gives a run that fails, and no unhandled rejection", async () => {
    const run = new Agent().run("Hi");
    await expect(run.result()).rejects.toThrow(/setModel/);
  });
});

describe("prompt", () => {
  it("runs, keeps the messages, and gives the end", async () => {
    const { agent, recorder } = make();
    const end = await agent.prompt("Hi");
    expect(recorder.lines).toEqual([...hi, ...answer("Hello"), "turn_end stop", "agent_end done"]);
    expect(end).toBe(recorder.end);
    expect(contents(agent.state.messages)).toEqual(['user "Hi"', 'assistant stop "Hello"']);
  });

  it("takes a text with images, a message, or several", async () => {
    const { agent, model } = make(() => "Ok");
    const image = { type: "image", data: "AA==", mimeType: "image/png" } as const;
    await agent.prompt("Look", { images: [image] });
    await agent.prompt(user("One"));
    await agent.prompt([user("Two"), user("Three")]);
    const sent = model.calls.at(-1)?.messages.filter((m) => m.role === "user");
    expect(sent?.map((m) => m.content)).toEqual([
      [{ type: "text", text: "Look" }, image],
      "One",
      "Two",
      "Three",
    ]);
  });

  it.each<[PromptInput]>([[""], [[]], [{ role: "user", content: [], timestamp: 0 }]])(
    "rejects an empty prompt (%j)",
    async (input) => {
      const { agent } = make();
      await expect(agent.prompt(input)).rejects.toThrow(/empty/);
      expect(() => agent.run(input)).toThrow(/empty/);
      expect(agent.isRunning).toBe(false);
    },
  );

  it("goes on in the same conversation", async () => {
    const { agent, model } = make(["One", "Two"]);
    await agent.prompt("A");
    await agent.prompt("B");
    expect(model.calls[1]?.messages.map((m) => m.role)).toEqual(["user", "assistant", "user"]);
    model.assertComplete();
  });
});

describe("R20: one run at a time", () => {
  it("R20: prompt, continue, run and reset throw while a run goes on", async () => {
    const { agent, clock } = make([{ parts: ["Slow"], delayMs: 100 }]);
    const first = agent.prompt("Hi");
    expect(agent.isRunning).toBe(true);
    await expect(agent.prompt("Again")).rejects.toThrow(/running.*steer\(\)/s);
    await expect(agent.continue()).rejects.toThrow(/running/);
    expect(() => agent.run("Again")).toThrow(/running/);
    expect(() => agent.reset()).toThrow(/running/);
    expect(() => agent.replaceMessages([])).toThrow(/running/);
    expect(() => agent.appendMessage(user("x"))).toThrow(/running/);
    expect(() => agent.clearMessages()).toThrow(/running/);
    await clock.advance(100);
    expect((await first)?.stop).toBe("done");
    expect(agent.isRunning).toBe(false);
  });

  it("R20: whileRunning queues instead, and settles at once", async () => {
    const { agent, clock, recorder } = make([{ parts: ["One"], delayMs: 100 }, "Two", "Three"]);
    const first = agent.prompt("Hi");
    await clock.advance(1);
    expect(await agent.prompt("F", { whileRunning: "followUp" })).toBeUndefined();
    expect(await agent.prompt([user("S"), user("T")], { whileRunning: "steer" })).toBeUndefined();
    expect([queued(agent, "steering"), queued(agent, "followUp")]).toEqual([["S", "T"], ["F"]]);
    agent.setSteeringMode("all");
    await clock.advance(100);
    await first;
    expect(recorder.lines).toEqual([
      ...hi,
      ...answer("One"),
      "turn_end stop",
      "turn_start",
      ...injected("S"),
      ...injected("T"),
      ...answer("Two"),
      "turn_end stop",
      "turn_start",
      ...injected("F"),
      ...answer("Three"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R20: whileRunning with no run starts one", async () => {
    const { agent } = make();
    expect((await agent.prompt("Hi", { whileRunning: "steer" }))?.stop).toBe("done");
  });

  it("R20: listeners are awaited in order of subscription, before the next event", async () => {
    const { agent } = make(["Hi"]);
    const order: string[] = [];
    agent.subscribe(async ({ type }) => {
      await new Promise(setImmediate);
      order.push(`1 ${type}`);
    });
    agent.subscribe(({ type }) => void order.push(`2 ${type}`));
    agent.subscribe(async ({ type }) => {
      await Promise.resolve();
      order.push(`3 ${type}`);
    });
    await agent.prompt("Hi");
    expect(order.length % 3).toBe(0);
    for (let i = 0; i < order.length; i += 3) {
      const type = order[i]?.slice(2);
      expect(order.slice(i, i + 3)).toEqual([`1 ${type}`, `2 ${type}`, `3 ${type}`]);
    }
  });

  it("R20: the agent is idle only after agent_end's listeners have settled", async () => {
    const { agent, clock } = make();
    const gate = later();
    agent.subscribe((event) => (event.type === "agent_end" ? gate.promise : undefined));
    let idle = false;
    const run = agent.prompt("Hi");
    const waiting = agent.waitForIdle().then(() => (idle = true));
    await clock.advance(10);
    expect([agent.isRunning, idle]).toEqual([true, false]);
    await expect(agent.prompt("Next")).rejects.toThrow(/running/);
    gate.resolve();
    await waiting;
    expect([agent.isRunning, agent.state.isStreaming]).toEqual([false, false]);
    await run;
    await agent.waitForIdle();
  });

  it.each<[string, () => void | Promise<void>]>([
    [
      "throws",
      () => {
        throw new Error("bad");
      },
    ],
    ["rejects", () => Promise.reject(new Error("bad"))],
  ])(
    "R20: a listener that %s is reported; the run goes on, later listeners get the event",
    async (_how, go) => {
      const { agent, recorder, errors } = make();
      agent.subscribe((event) => (event.type === "turn_start" ? go() : undefined));
      const after = new Recorder();
      agent.subscribe(after.sink);
      expect((await agent.prompt("Hi"))?.stop).toBe("done");
      expect(after.lines).toEqual(recorder.lines);
      expect(errors).toEqual([["Error: bad", 'listener of "turn_start"']]);
    },
  );

  it("R20: a listener that hangs is abandoned after listenerTimeoutMs", async () => {
    const { agent, clock, recorder, errors } = make(["Hello"], { listenerTimeoutMs: 1_000 });
    const gate = later();
    agent.subscribe((event) => (event.type === "agent_start" ? gate.promise : undefined));
    const after = new Recorder();
    agent.subscribe(after.sink);
    const run = agent.prompt("Hi");
    await clock.advance(999);
    expect(after.lines).toEqual([]);
    await clock.advance(1);
    expect((await run)?.stop).toBe("done");
    expect(after.lines).toEqual(recorder.lines);
    expect(errors).toEqual([[expect.stringMatching(/1000 ms/), 'listener of "agent_start"']]);
    gate.reject(new Error("after all"));
    await clock.advance(0);
    expect(errors[1]).toEqual(["Error: after all", 'listener of "agent_start"']);
  });

  it("R20: many listeners that hang on one event do not end the run", async () => {
    const { agent, clock, errors, recorder } = make();
    for (let i = 0; i < 10; i++) {
      agent.subscribe((event) => (event.type === "turn_start" ? never() : undefined));
    }
    const run = agent.prompt("Hi").catch((error: unknown) => error);
    await clock.advance(10 * 30_000);
    expect(await run).toMatchObject({ stop: "done" });
    expect(errors).toHaveLength(10);
    expect(recorder.lines.at(-1)).toBe("agent_end done");
  });

  it("R20: an onError that throws does no harm, and neither does its absence", async () => {
    const warnings: string[] = [];
    const warned = (warning: Error): void => void warnings.push(warning.message);
    process.on("warning", warned);
    const worse = make(["Hello"], {
      onError: () => {
        throw new Error("worse");
      },
    });
    const { model } = make();
    const without = new Agent({ protocol: model, model: model.model });
    for (const agent of [worse.agent, without]) {
      agent.subscribe((event) => {
        if (event.type === "agent_start") throw new Error("bad");
      });
      expect((await agent.prompt("Hi"))?.stop).toBe("done");
    }
    await new Promise(setImmediate);
    process.off("warning", warned);
    expect(warnings).toEqual([expect.stringMatching(/worse/), expect.stringMatching(/bad/)]);
  });

  it("R20: a listener may unsubscribe, and subscribe others, while it is called", async () => {
    const { agent } = make();
    const heard: string[] = [];
    const undo = agent.subscribe(({ type }) => {
      heard.push(`first ${type}`);
      undo();
      agent.subscribe((event) => void heard.push(`second ${event.type}`));
    });
    await agent.prompt("Hi");
    expect(heard.slice(0, 3)).toEqual([
      "first agent_start",
      "second turn_start",
      "second message_start",
    ]);
    expect(heard.filter((line) => line.startsWith("first"))).toHaveLength(1);
    undo();
  });

  it("R20: waiting for the run inside a listener throws instead of dead-locking", async () => {
    const { agent, errors } = make();
    agent.subscribe(async (event) => {
      if (event.type === "agent_start") await agent.waitForIdle();
      if (event.type === "turn_start") await agent.prompt("Inside");
      if (event.type === "turn_end") await agent.continue();
      if (event.type === "agent_end") await agent.prompt("At the end");
    });
    expect((await agent.prompt("Hi"))?.stop).toBe("done");
    expect(errors.map(([, where]) => where)).toEqual([
      'listener of "agent_start"',
      'listener of "turn_start"',
      'listener of "turn_end"',
      'listener of "agent_end"',
    ]);
    expect(errors[0]?.[0]).toMatch(/wait for itself/);
    expect(agent.isRunning).toBe(false);
  });

  it("R20: a listener that waits for the run after an await is left behind, not dead-locked", async () => {
    const { agent, clock, errors } = make();
    agent.subscribe(async (event) => {
      if (event.type !== "turn_start") return;
      await Promise.resolve();
      await agent.waitForIdle();
    });
    const run = agent.prompt("Hi");
    await clock.advance(30_000);
    expect((await run)?.stop).toBe("done");
    expect(errors).toHaveLength(1);
  });

  it("R20: steer, followUp and abort are welcome inside a listener", async () => {
    const { agent, recorder } = make(["One", "Two"]);
    let once = true;
    agent.subscribe((event) => {
      if (event.type === "turn_end" && once) agent.followUp("F");
      if (event.type === "turn_end") once = false;
    });
    await agent.prompt("Hi");
    expect(recorder.lines.slice(-7)).toEqual(
      ["turn_start", ...injected("F"), ...answer("Two"), "turn_end stop", "agent_end done"].slice(
        -7,
      ),
    );
  });

  it("R20: reset forgets messages, queues, usage and the error; model, tools and prompt stay", async () => {
    const { agent } = make([fail("Bad", { kind: "bad_request" })], {
      instructions: "S",
      tools: [tool("x")],
    });
    await agent.prompt("Hi");
    agent.steer("S");
    agent.followUp("F");
    expect(agent.state.error).toBe("Bad");
    agent.reset();
    const { systemPrompt, tools, messages, error, usage, model } = agent.state;
    expect([systemPrompt, tools.length, messages, error, usage, model?.id]).toEqual([
      "S",
      1,
      [],
      undefined,
      {},
      "scripted",
    ]);
    expect(agent.hasQueuedMessages()).toBe(false);
  });
});

describe("R19: continue", () => {
  it("R19: throws on an empty context, even with something queued", async () => {
    const { agent } = make();
    agent.steer("S");
    await expect(agent.continue()).rejects.toThrow("Cannot continue: no messages in context");
    expect(queued(agent, "steering")).toEqual(["S"]);
  });

  it("R19: after an answer, throws where nothing is queued", async () => {
    const { agent } = make();
    await agent.prompt("Hi");
    await expect(agent.continue()).rejects.toThrow("Cannot continue from message role: assistant");
    expect(agent.isRunning).toBe(false);
  });

  it("R19: after an answer, one drain of steering is tried, the first poll is skipped", async () => {
    const { agent, recorder } = make(["Hello", "One", "Two", "Three"]);
    await agent.prompt("Hi");
    const before = recorder.lines.length;
    agent.steer("S1");
    agent.steer("S2");
    agent.followUp("F");
    await agent.continue();
    expect(recorder.lines.slice(before)).toEqual([
      "agent_start",
      "turn_start",
      ...injected("S1"),
      ...answer("One"),
      "turn_end stop",
      "turn_start",
      ...injected("S2"),
      ...answer("Two"),
      "turn_end stop",
      "turn_start",
      ...injected("F"),
      ...answer("Three"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R19: then one of follow-ups", async () => {
    const { agent, recorder } = make(["Hello", "One"]);
    await agent.prompt("Hi");
    agent.followUp("F");
    await agent.continue();
    expect(recorder.lines.slice(-7)).toEqual(
      ["turn_start", ...injected("F"), ...answer("One"), "turn_end stop", "agent_end done"].slice(
        -7,
      ),
    );
  });

  it("R16: what was drained for a run that could not start is still queued", async () => {
    const protocol = scriptedModel([]);
    const agent = new Agent({ ...(await prepared()), protocol, model: "no/such-model" });
    agent.steer("S");
    await expect(agent.continue()).rejects.toThrow(/No model fits/);
    expect(queued(agent, "steering")).toEqual(["S"]);
  });

  async function prepared(): Promise<{ messages: readonly AgentMessage[] }> {
    const { agent } = make();
    await agent.prompt("Hi");
    return { messages: agent.state.messages };
  }

  it("R26: after an error, continue takes it up again", async () => {
    const { agent, model } = make([[say("Half"), fail("Bad")], "Whole"]);
    expect((await agent.prompt("Hi"))?.stop).toBe("error");
    expect(agent.state.error).toBe("Bad");
    expect((await agent.continue()).stop).toBe("done");
    expect(agent.state.error).toBeUndefined();
    model.assertComplete();
  });

  it("R19: calls that a crash left are answered in place, also in the state", async () => {
    const orphan = (await withCall()).slice(0, 2);
    const { agent, model } = make(["Ok"], {
      messages: [...orphan, user("And?")],
    });
    await agent.continue();
    expect(agent.state.messages.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "user",
      "assistant",
    ]);
    model.assertComplete();
  });

  async function withCall(): Promise<readonly AgentMessage[]> {
    const { agent } = make([call("x"), "Done"], { tools: [tool("x")] });
    await agent.prompt("Hi");
    return agent.state.messages;
  }
});

describe("queues", () => {
  it("R17: one at a time is the default, all is the other; both are read at each drain", async () => {
    const { agent, recorder } = make(() => "Ok", { followUpMode: "all" });
    agent.steer("S1");
    agent.steer("S2");
    agent.followUp("F1");
    agent.followUp("F2");
    expect([agent.steeringMode, agent.followUpMode]).toEqual(["one-at-a-time", "all"]);
    await agent.prompt("Hi");
    const ok = [...answer("Ok"), "turn_end stop"];
    expect(recorder.lines).toEqual([
      ...hi,
      ...injected("S1"),
      ...ok,
      "turn_start",
      ...injected("S2"),
      ...ok,
      "turn_start",
      ...injected("F1"),
      ...injected("F2"),
      ...ok,
      "agent_end done",
    ]);
    agent.setFollowUpMode("one-at-a-time");
    agent.setSteeringMode("all");
    expect([agent.steeringMode, agent.followUpMode]).toEqual(["all", "one-at-a-time"]);
  });

  it("R17: a queue may be looked at, changed, reordered and cleared", () => {
    const { agent } = make();
    const a = agent.followUp("A");
    const b = agent.followUp("B");
    const c = agent.followUp("C");
    expect(agent.moveQueued("followUp", c, 0)).toBe(true);
    expect(agent.editQueued("followUp", b, "B2")).toBe(true);
    expect(queued(agent, "followUp")).toEqual(["C", "A", "B2"]);
    expect(agent.takeQueued("followUp", a)?.content).toBe("A");
    expect([
      agent.takeQueued("followUp", a),
      agent.editQueued("followUp", a, "x"),
      agent.moveQueued("followUp", a, 0),
    ]).toEqual([undefined, false, false]);
    expect(agent.moveQueued("followUp", c, 99)).toBe(true);
    expect(queued(agent, "followUp")).toEqual(["B2", "C"]);
    agent.steer("S");
    agent.clearFollowUpQueue();
    expect([queued(agent, "followUp"), queued(agent, "steering")]).toEqual([[], ["S"]]);
    agent.clearSteeringQueue();
    expect(agent.hasQueuedMessages()).toBe(false);
    agent.steer("S");
    agent.followUp("F");
    agent.clearAllQueues();
    expect(agent.hasQueuedMessages()).toBe(false);
    expect(() => agent.steer("")).toThrow(/empty/);
  });

  it("R16: reports each change of a queue that the application makes, not what a run takes", async () => {
    const changes: unknown[] = [];
    const { agent } = make(["Ok", "Ok"], {
      onQueueChange: ({ queue, messages, removed }) =>
        changes.push([queue, messages.map(({ id, message }) => [id, message.content]), removed]),
    });
    const s = agent.steer("S");
    const a = agent.followUp("A");
    const b = agent.followUp("B");
    agent.moveQueued("followUp", b, 0);
    agent.editQueued("followUp", b, "B2");
    agent.takeQueued("followUp", a);
    agent.takeQueued("followUp", a);
    agent.clearSteeringQueue();
    agent.clearSteeringQueue();
    expect(changes).toEqual([
      ["steering", [[s, "S"]], []],
      ["followUp", [[a, "A"]], []],
      [
        "followUp",
        [
          [a, "A"],
          [b, "B"],
        ],
        [],
      ],
      [
        "followUp",
        [
          [b, "B"],
          [a, "A"],
        ],
        [],
      ],
      [
        "followUp",
        [
          [b, "B2"],
          [a, "A"],
        ],
        [],
      ],
      ["followUp", [[b, "B2"]], [a]],
      ["steering", [], [s]],
    ]);
    await agent.prompt("Hi");
    expect(agent.hasQueuedMessages()).toBe(false);
    expect(changes).toHaveLength(7);
  });

  it("R16: what waited when it was saved waits again, under its id, which no other gets", async () => {
    const { agent, recorder } = make(["Ok", "Ok"], {
      queued: {
        steering: [{ id: "steering-4", message: user("S") }],
        followUp: [{ id: "followUp-2", message: user("F") }],
        made: 7,
      },
    });
    expect(queued(agent, "steering")).toEqual(["S"]);
    expect(agent.steer("T")).toBe("steering-8");
    expect(agent.takeQueued("steering", "steering-8")?.content).toBe("T");
    await agent.prompt("Hi");
    expect(recorder.lines.filter((line) => line.startsWith("message_end user"))).toEqual([
      'message_end user "Hi"',
      'message_end user "S"',
      'message_end user "F"',
    ]);
  });

  it("R16: after an abort, what was not delivered is at the front of its queue", async () => {
    const { agent, recorder } = make(["One"], {
      followUpMode: "all",
      prepareTurn: () => agent.abort(),
    });
    agent.followUp("F1");
    agent.followUp("F2");
    agent.subscribe((event) => {
      if (event.type === "turn_end") agent.setFollowUpMode("all");
    });
    await agent.prompt("Hi");
    expect(recorder.lines.at(-1)).toBe('agent_end aborted undelivered="F1","F2"');
    agent.followUp("F3");
    expect(queued(agent, "followUp")).toEqual(["F1", "F2", "F3"]);
  });

  it("R18: a follow-up queued while the run ends is in this run or left in the queue", async () => {
    for (const type of ["message_end", "turn_end", "agent_end"] as const) {
      const { agent, recorder } = make(["One", "Two"]);
      let done = false;
      agent.subscribe((event) => {
        const isAnswer = event.type !== "message_end" || event.message.role === "assistant";
        if (event.type !== type || done || !isAnswer) return;
        done = true;
        agent.followUp("Late");
      });
      await agent.prompt("Hi");
      const delivered = recorder.lines.filter((line) => line === 'message_end user "Late"').length;
      expect(delivered + agent.queued("followUp").length).toBe(1);
      expect(delivered).toBe(type === "agent_end" ? 0 : 1);
    }
  });

  it("R6: after an error queues stay as they were", async () => {
    const { agent } = make([fail("Bad", { kind: "auth" })]);
    const gate = agent.followUp("F");
    await agent.prompt("Hi");
    expect(agent.queued("followUp")).toEqual([{ id: gate, message: expect.anything() }]);
  });

  it("R23: a run at its limit with messages waiting says so, and they still wait", async () => {
    const { agent } = make(["One"], { limits: { maxTurns: 1 } });
    agent.followUp("F");
    const end = await agent.prompt("Hi");
    expect([end?.stop, end?.limit, queued(agent, "followUp")]).toEqual([
      "limit",
      "maxTurns",
      ["F"],
    ]);
  });

  it("R15: redirect cuts the response off as soon as a message steers", async () => {
    const { agent, clock, recorder, model } = make(
      [{ parts: ["abcdef"], chunkSize: 2, betweenMs: 10 }, "Done"],
      { steering: "redirect" },
    );
    const run = agent.prompt("Hi");
    await clock.advance(15);
    agent.steer("Stop");
    await run;
    expect(recorder.lines).toEqual([
      ...hi,
      "message_start assistant",
      'update text +"ab" +"cd"',
      'message_end assistant redirected "abcd"',
      "turn_end redirected",
      "turn_start",
      ...injected("Stop"),
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
    expect(agent.state.error).toBeUndefined();
    model.assertComplete();
  });
});

/** A signal that counts who listens to it. */
function countedSignal(): { signal: AbortSignal; abort: () => void; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  const on = signal.addEventListener.bind(signal);
  const off = signal.removeEventListener.bind(signal);
  const listening = new Set<unknown>();
  signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject): void => {
    listening.add(listener);
    on(type, listener);
  };
  signal.removeEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
  ): void => {
    listening.delete(listener);
    off(type, listener);
  };
  return { signal, abort: () => controller.abort(), listeners: () => listening.size };
}

describe("R21: the signal of one run", () => {
  const starts = {
    "prompt()": (agent: Agent, signal: AbortSignal) => agent.prompt("Hi", { signal }),
    "run()": (agent: Agent, signal: AbortSignal) => agent.run("Hi", { signal }).result(),
    "continue()": (agent: Agent, signal: AbortSignal) => {
      agent.appendMessage(user("Hi"));
      return agent.continue({ signal });
    },
    "continue() with what is queued": (agent: Agent, signal: AbortSignal) => {
      const empty = emptyAssistantMessage(scriptedModel([]).model, 0);
      agent.replaceMessages([user("Old"), { ...empty, content: [{ type: "text", text: "Yes" }] }]);
      agent.followUp("Hi");
      return agent.continue({ signal });
    },
    "continueRun()": (agent: Agent, signal: AbortSignal) => {
      agent.appendMessage(user("Hi"));
      return agent.continueRun({ signal }).result();
    },
  };

  describe.each(Object.entries(starts))("of %s", (_name, start) => {
    it("R21: stops it as abort() does, and is released; the next run is not affected", async () => {
      const ends = await Promise.all(
        [false, true].map(async (bySignal) => {
          const { agent, clock, recorder } = make([[say("Half"), stall()], "Whole"]);
          const { signal, abort, listeners } = countedSignal();
          const run = start(agent, signal);
          await clock.advance(1);
          expect(listeners()).toBe(1);
          if (bySignal) abort();
          else agent.abort();
          expect((await run).stop).toBe("aborted");
          expect(listeners()).toBe(0);
          const made = [...recorder.lines];
          expect((await agent.prompt("Again")).stop).toBe("done");
          return made;
        }),
      );
      expect(ends[1]).toEqual(ends[0]);
      expect(ends[1]?.at(-3)).toBe('message_end assistant aborted "Half" (Aborted.)');
    });

    it("R21: one that has fired asks no model", async () => {
      const { agent, model, recorder } = make(() => "Whole");
      const { signal, abort, listeners } = countedSignal();
      abort();
      expect((await start(agent, signal)).stop).toBe("aborted");
      expect([model.requests, listeners(), agent.isRunning]).toEqual([0, 0, false]);
      expect(recorder.lines.slice(-4, -1)).toEqual([
        ...empty("aborted", "Aborted."),
        "turn_end aborted",
      ]);
      expect((await agent.prompt("Again")).stop).toBe("done");
    });

    it("is released when the run ends by itself, and then stops nothing", async () => {
      const { agent, clock } = make(["Whole", { parts: ["On"], delayMs: 5 }]);
      const { signal, abort, listeners } = countedSignal();
      expect((await start(agent, signal)).stop).toBe("done");
      expect(listeners()).toBe(0);
      const next = agent.prompt("Again");
      abort();
      await clock.advance(10);
      expect((await next).stop).toBe("done");
    });
  });

  it("R21: while tools run, their signals fire and each call has its result", async () => {
    const controller = new AbortController();
    const slow = tool("slow", (_args, { signal }) => {
      controller.abort();
      return signal.aborted ? "heard" : "deaf";
    });
    const { agent, model } = make([callAll(["slow", "slow"])], { tools: [slow] });
    const end = await agent.prompt("Hi", { signal: controller.signal });
    expect([end.stop, model.requests]).toEqual(["aborted", 1]);
    expect(agent.state.error).toBe("Aborted.");
    expect(end.messages.filter(({ role }) => role === "toolResult")).toHaveLength(2);
  });

  it("is released when the sink throws", async () => {
    const { signal, listeners } = countedSignal();
    const { agent } = make(["Whole"], {
      sink: () => {
        throw new Error("Full.");
      },
    });
    await expect(agent.prompt("Hi", { signal })).rejects.toThrow(/Full/);
    expect(listeners()).toBe(0);
  });

  it("is not listened to where no run starts", async () => {
    const { signal, listeners } = countedSignal();
    await expect(new Agent().prompt("Hi", { signal })).rejects.toThrow(/setModel/);
    const { agent, clock } = make([[say("Half"), stall()]]);
    const run = agent.prompt("Hi");
    await clock.advance(1);
    await expect(agent.prompt("More", { signal })).rejects.toThrow(/running/);
    expect(listeners()).toBe(0);
    agent.abort();
    await run;
  });

  it("R20: does not go with whileRunning, whether or not a run goes on", async () => {
    const { agent, recorder } = make(["Whole"]);
    const both: { signal: AbortSignal; whileRunning: "steer" } = {
      signal: new AbortController().signal,
      whileRunning: "steer",
    };
    await expect(agent.prompt("Hi", both)).rejects.toThrow(/not both/);
    // @ts-expect-error -- the types refuse it where they can see it
    void agent.prompt("Hi", { signal: both.signal, whileRunning: "steer" }).catch(() => {});
    expect([recorder.lines, agent.hasQueuedMessages()]).toEqual([[], false]);
  });
});

describe("R21: abort", () => {
  it.each<[string, readonly ScriptStep[], AgentEvent["type"]]>([
    ["before the model is asked", ["Hello"], "turn_start"],
    ["while a response streams", [[say("Half"), stall()]], "message_update"],
    ["while a retry is waited for", [fail("Busy", { kind: "overloaded" })], "retry"],
    ["while tools run", [call("x"), "Done"], "tool_execution_start"],
    ["after a tool has run", [call("x"), "Done"], "tool_execution_end"],
    ["between turns", [call("x"), "Done"], "turn_end"],
  ])("R21: the state has it as its error: %s", async (_when, script, type) => {
    const { agent } = make(script, { tools: [tool("x")] });
    agent.subscribe((event) => {
      if (event.type === type) agent.abort();
    });
    expect((await agent.prompt("Hi")).stop).toBe("aborted");
    expect(agent.state.error).toBe("Aborted.");
  });

  it("R21: stops the run; the next one is not concerned", async () => {
    const { agent, clock, recorder } = make([[say("Half"), stall()], "Whole"]);
    const run = agent.prompt("Hi");
    await clock.advance(1);
    agent.abort();
    expect((await run)?.stop).toBe("aborted");
    expect(recorder.lines.slice(-3)).toEqual([
      'message_end assistant aborted "Half" (Aborted.)',
      "turn_end aborted",
      "agent_end aborted",
    ]);
    agent.abort();
    expect((await agent.prompt("Again"))?.stop).toBe("done");
  });

  it("R21: abort right after prompt makes no request", async () => {
    const { agent, model, recorder } = make([]);
    const run = agent.prompt("Hi");
    agent.abort();
    await run;
    expect(model.requests).toBe(0);
    expect(recorder.lines).toEqual([
      ...hi,
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      "agent_end aborted",
    ]);
  });

  it("R21: a real timer fires within 20,000 instant turns, and its abort ends the run", async () => {
    const model = scriptedModel(
      (_context, _options, index) => (index < 20_000 ? call("x", { n: index }) : "Done"),
      { keepCalls: false },
    );
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools: [tool("x", (args) => JSON.stringify(args))],
      limits: { maxTurns: Infinity },
    });
    let fired = 0;
    const again = (): void => {
      fired++;
      if (fired < 3) setTimeout(again, 0);
      else agent.abort();
    };
    setTimeout(again, 0);
    const end = await agent.prompt("Go");
    expect([end?.stop, fired]).toEqual(["aborted", 3]);
    expect(model.requests).toBeLessThan(20_000);
  });

  it("R21: a response of very many deltas lets timers fire on the way", async () => {
    const { model } = scriptedModel([]);
    let sent = 0;
    async function* endless(): AsyncGenerator<AssistantMessageEvent> {
      const partial = emptyAssistantMessage(model, 0);
      const block = { type: "text" as const, text: "" };
      partial.content.push(block);
      yield { type: "start", partial };
      yield { type: "text_start", contentIndex: 0, partial };
      for (; sent < 1_000_000; sent++) {
        block.text += "x";
        yield { type: "text_delta", contentIndex: 0, delta: "x", partial };
      }
      yield { type: "done", reason: "stop", message: partial };
    }
    const streamFn = (() => endless()) as unknown as StreamFn;
    const agent = new Agent({ streamFn, model });
    agent.subscribe((event) => {
      if (event.type === "message_start") setTimeout(() => agent.abort(), 0);
    });
    expect((await agent.prompt("Go"))?.stop).toBe("aborted");
    expect(sent).toBeLessThan(1_000_000);
  });
});

describe("state", () => {
  it("follows the run", async () => {
    const { agent } = make([[say("Hm"), call("x", {}, "c1")], "Done"], {
      tools: [tool("x")],
    });
    const seen: string[] = [];
    agent.subscribe(({ type }) => {
      const { isStreaming, messages, pendingToolCalls, streamMessage } = agent.state;
      const line = [
        type,
        isStreaming,
        messages.length,
        streamMessage?.role,
        [...pendingToolCalls].join(),
      ].join(" ");
      if (seen.at(-1) !== line) seen.push(line);
    });
    await agent.prompt("Hi");
    expect(seen).toEqual([
      "agent_start true 0  ",
      "turn_start true 0  ",
      "message_start true 0  ",
      "message_end true 1  ",
      "message_start true 1 assistant ",
      "message_update true 1 assistant ",
      "message_end true 2  ",
      "tool_execution_start true 2  c1",
      "tool_execution_end true 2  ",
      "message_start true 2  ",
      "message_end true 3  ",
      "turn_end true 3  ",
      "turn_start true 3  ",
      "message_start true 3 assistant ",
      "message_update true 3 assistant ",
      "message_end true 4  ",
      "turn_end true 4  ",
      "agent_end true 4  ",
    ]);
    expect(agent.state.isStreaming).toBe(false);
  });

  it("adds up the usage of all runs", async () => {
    const { agent } = make(() => ({ parts: ["Ok"], usage: { input: 10, output: 5 } }));
    await agent.prompt("A");
    const end = await agent.prompt("B");
    expect(end?.usage).toEqual({ input: 10, output: 5, totalTokens: 15 });
    expect(agent.state.usage).toEqual({ input: 20, output: 10, totalTokens: 30 });
  });

  it("messages may be replaced, appended and cleared between runs", async () => {
    const { agent, model } = make(() => "Ok");
    agent.replaceMessages([user("A")]);
    agent.appendMessage(user("B"));
    await agent.prompt("C");
    expect(model.calls[0]?.messages.map((m) => m.content)).toEqual(["A", "B", "C"]);
    agent.clearMessages();
    expect(agent.state.messages).toEqual([]);
  });

  it("changes made while a run goes on hold from its next turn", async () => {
    const { agent, model } = make([call("x"), "Done"], {
      tools: [tool("x")],
      instructions: "One",
    });
    agent.subscribe((event) => {
      if (event.type !== "tool_execution_start") return;
      agent.setModel({ ...model.model, id: "two" });
      agent.setSystemPrompt("Two");
      agent.setThinkingLevel("high");
      agent.setTools([tool("y")]);
    });
    await agent.prompt("Hi");
    const seen = model.calls.map((c) => [
      c.model.id,
      c.systemPrompt,
      c.options.thinkingLevel,
      c.tools?.map((t) => t.name),
    ]);
    expect(seen).toEqual([
      ["scripted", "One", "off", ["x"]],
      ["two", "Two", "high", ["y"]],
    ]);
  });

  it("prepareTurn of the options takes precedence over them", async () => {
    const { agent, model } = make([call("x"), "Done"], {
      tools: [tool("x")],
      prepareTurn: () => ({ thinkingLevel: "low" }),
    });
    await agent.prompt("Hi");
    expect(model.calls[1]?.options.thinkingLevel).toBe("low");
  });

  it("the session's id may change between runs", async () => {
    const { agent, model } = make(() => "Ok", { sessionId: "one" });
    await agent.prompt("A");
    agent.sessionId = "two";
    await agent.prompt("B");
    agent.sessionId = undefined;
    await agent.prompt("C");
    expect(model.calls.map((c) => c.options.sessionId)).toEqual(["one", "two", undefined]);
  });
});

describe("R27: a person decides", () => {
  const tools = [tool("ask", () => "asked"), tool("x")];
  async function suspended(script: readonly ScriptStep[] = ["Done"]): Promise<Made> {
    const made = make(
      [
        callAll([
          ["ask", {}, "c1"],
          ["x", {}, "c2"],
        ]),
        ...script,
      ],
      {
        tools,
        middleware: [approval(({ tool }) => (tool.name === "ask" ? "suspend" : "allow"))],
      },
    );
    expect((await made.agent.prompt("Hi"))?.stop).toBe("suspended");
    made.recorder.lines.length = 0;
    return made;
  }
  const done = [...answer("Done"), "turn_end stop", "agent_end done"];
  const order = (agent: Agent): string[] =>
    agent.state.messages.map((m) => (m.role === "toolResult" ? m.toolCallId : m.role));

  it("R27: what waits is in the state", async () => {
    const { agent } = await suspended();
    expect(agent.state.pending.map(({ toolCall }) => toolCall.id)).toEqual(["c1"]);
    expect([...agent.state.pendingToolCalls]).toEqual(["c1"]);
  });

  it("R27: continue with a decision answers in place and goes on", async () => {
    const { agent, recorder, model } = await suspended();
    await agent.continue({ decisions: { c1: { type: "approve" } } });
    expect(recorder.lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("ask#c1", 'ok "asked"'),
      ...done,
    ]);
    expect(order(agent)).toEqual(["user", "assistant", "c1", "c2", "assistant"]);
    expect([agent.state.pending, agent.state.pendingToolCalls.size]).toEqual([[], 0]);
    model.assertComplete();
  });

  it("R27: a decision is about what was asked, also in another process; what waits keeps its question", async () => {
    const { agent: first } = await suspended();
    const { messages } = first.state;
    const toolCall = first.state.pending[0]?.toolCall;
    if (!toolCall) throw new Error("Nothing waits.");
    const pending = [{ toolCall, reason: "Look.", access: { kind: "run" }, fingerprint: "f" }];
    const decisions: unknown[] = [];
    const { agent } = make(["Done"], {
      tools,
      messages,
      pending,
      middleware: [
        {
          tool(invocation, next) {
            decisions.push(invocation.decision);
            return next();
          },
        },
      ],
    });
    expect((await agent.continue()).pending).toEqual(pending);
    expect(agent.state.pending).toEqual(pending);
    await agent.continue({ decisions: { c1: { type: "approve" } } });
    expect(decisions).toEqual([{ type: "approve", fingerprint: "f" }]);
  });

  it("R27: continue without one leaves it waiting", async () => {
    const { agent, recorder, model } = await suspended();
    expect((await agent.continue()).stop).toBe("suspended");
    expect(recorder.lines).toEqual([
      "agent_start",
      "turn_start",
      "turn_end toolUse",
      "agent_end suspended pending=ask#c1",
    ]);
    expect(agent.state.pending[0]?.reason).toBe('Tool "ask" needs approval.');
    expect(model.requests).toBe(1);
  });

  it("R27: prompt before a decision answers it as denied", async () => {
    const { agent, recorder, model } = await suspended();
    await agent.prompt("Never mind");
    expect(recorder.lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("ask#c1", 'error "Tool "ask" was denied: the user went on without deciding"'),
      ...injected("Never mind"),
      ...done,
    ]);
    expect(order(agent)).toEqual(["user", "assistant", "c1", "c2", "user", "assistant"]);
    model.assertComplete();
  });

  it("R27: another process may decide", async () => {
    const first = await suspended();
    const { messages, pending } = JSON.parse(JSON.stringify(first.agent.state)) as {
      messages: AgentMessage[];
      pending: Agent["state"]["pending"];
    };
    const second = make(["Done"], { tools, messages, pending });
    await second.agent.continue({ decisions: { c1: { type: "deny", reason: "no" } } });
    expect(second.recorder.lines.slice(2, 6)).toEqual(
      ran("ask#c1", 'error "Tool "ask" was denied: no"'),
    );
    second.model.assertComplete();
  });

  it("R27: what waits is not forgotten when the run that should decide it does not start", async () => {
    let broken = false;
    const model = scriptedModel([call("ask", {}, "c1")]);
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools,
      middleware: [approval(() => "suspend")],
      sink: () => {
        if (broken) throw new Error("full");
      },
    });
    await agent.prompt("Hi");
    broken = true;
    await agent.continue({ decisions: { c1: { type: "approve" } } }).catch(() => {});
    expect(agent.state.pending.map(({ toolCall }) => toolCall.id)).toEqual(["c1"]);
  });
});

describe("run", () => {
  it("gives the events to iterate, and the end as its result", async () => {
    const { agent, recorder } = make();
    const run = agent.run("Hi");
    const events: AgentEvent[] = [];
    for await (const event of run) events.push(event);
    checkGrammar(events);
    expect(events).toEqual(recorder.events);
    expect(await run.result()).toBe(recorder.end);
    expect(await run.output()).toBeUndefined();
  });

  it("leaving the loop detaches it; the run goes on", async () => {
    const { agent, recorder } = make([call("x"), "Done"], { tools: [tool("x")] });
    const run = agent.run("Hi");
    for await (const event of run) if (event.type === "turn_start") break;
    expect((await run.result()).stop).toBe("done");
    await agent.waitForIdle();
    expect(recorder.end.turns).toBe(2);
  });

  it("a run that is not iterated finishes", async () => {
    const { agent } = make();
    expect((await agent.run("Hi").result()).stop).toBe("done");
    await agent.waitForIdle();
  });

  it("R20: its end comes when the agent is idle: the next run can follow at once", async () => {
    const { agent } = make(["One", "Two", "Three"]);
    const late = later();
    agent.subscribe((event) => (event.type === "agent_end" ? late.promise : undefined));
    const ended = agent.run("1").result();
    late.resolve();
    expect((await ended).stop).toBe("done");
    for await (const event of agent.run("2")) expect(event.type).not.toBe("limit");
    expect((await agent.run("3").result()).stop).toBe("done");
  });

  describe("with an output schema", () => {
    const output = z.object({ city: z.string(), people: z.number() });

    it("the answer is a call, validated and coerced", async () => {
      const { agent, model } = make([call(ANSWER_TOOL, { city: "Bern", people: "134000" }, "c1")]);
      const run = agent.run("Where?", { output });
      expect(await run.output()).toEqual({ city: "Bern", people: 134_000 });
      expect((await run.result()).stop).toBe("terminated");
      await agent.waitForIdle();
      expect(model.calls[0]?.tools?.map((t) => t.name)).toEqual([ANSWER_TOOL]);
      checkPairs(agent.state.messages);
    });

    it("JSON in text is understood", async () => {
      const { agent } = make(['{"city":"Bern","people":134000}']);
      const run = agent.run("Where?", { output });
      expect(await run.output()).toEqual({ city: "Bern", people: 134_000 });
      expect((await run.result()).stop).toBe("done");
    });

    it("a model that forgets is reminded, and one that is wrong is corrected", async () => {
      const { agent, recorder, model } = make([
        "It is Bern.",
        call(ANSWER_TOOL, { city: 3 }, "c1"),
        call(ANSWER_TOOL, { city: "Bern", people: 1 }, "c2"),
      ]);
      const run = agent.run("Where?", { output });
      expect(await run.output()).toEqual({ city: "Bern", people: 1 });
      await agent.waitForIdle();
      expect(
        recorder.only("message_end").map((line) => line.split(" ").slice(1, 3).join(" ")),
      ).toEqual([
        'user "Where?"',
        "assistant stop",
        'user "Your',
        "assistant toolUse",
        `toolResult ${ANSWER_TOOL}#c1`,
        "assistant toolUse",
        `toolResult ${ANSWER_TOOL}#c2`,
      ]);
      model.assertComplete();
    });

    it("after three reminders the run ends, and output says why", async () => {
      const { agent, model } = make(() => "I would rather not.");
      const run = agent.run("Where?", { output });
      const error = await run.output().catch((error: unknown) => error);
      expect(error).toBeInstanceOf(OutputError);
      expect(error instanceof OutputError && [error.code, error.end.stop]).toEqual([
        "output",
        "done",
      ]);
      expect(model.requests).toBe(4);
    });

    it("a run that fails has no output, and its end can still be looked at", async () => {
      const { agent } = make([fail("Bad key", { kind: "auth" })]);
      const run = agent.run("Where?", { output });
      await expect(run.output()).rejects.toThrow(/Bad key/);
      expect((await run.result()).stop).toBe("error");
    });

    it("follow-ups come after the answer in text, and the answer stays", async () => {
      const { agent } = make(['{"city":"Bern","people":1}', "And more"]);
      agent.followUp("More?");
      const run = agent.run("Where?", { output });
      expect(await run.output()).toEqual({ city: "Bern", people: 1 });
      expect((await run.result()).turns).toBe(2);
    });

    it("the tool is gone in the next run", async () => {
      const { agent, model } = make([call(ANSWER_TOOL, { city: "Bern", people: 1 }), "Hello"]);
      await agent.run("Where?", { output }).output();
      await agent.waitForIdle();
      await agent.prompt("Hi");
      expect(model.calls[1]?.tools).toBeUndefined();
    });
  });
});

it("middleware is called when a run starts and ends, and its throws are contained", async () => {
  const seen: string[] = [];
  const ends: (AgentEndEvent | undefined)[] = [];
  const { agent } = make(["Hello"], {
    sessionId: "s",
    middleware: [
      {
        run({ sessionId }) {
          seen.push(`start ${sessionId}`);
          return (end) => void ends.push(end);
        },
      },
      {
        run() {
          throw new Error("bad");
        },
      },
      {
        run: () => () => {
          throw new Error("bad");
        },
      },
    ],
  });
  const end = await agent.prompt("Hi");
  expect([seen, ends]).toEqual([["start s"], [end]]);
});

it("messages are deeply read-only once published: nothing writes to them in a long conversation", async () => {
  const tools: AgentTool[] = [tool("x", (args) => JSON.stringify(args))];
  const { agent, model, recorder } = make(
    (_context, _options, index) =>
      index % 3 === 2
        ? "Done"
        : [say(`step ${index}`), call("x", { index }), call("x", { again: index })],
    { tools },
  );
  for (let i = 0; i < 30; i++) await agent.prompt(`Prompt ${i}`);
  for (const message of agent.state.messages) freeze(message);
  await agent.prompt("Last");
  model.assertComplete();
  checkPairs(agent.state.messages);
  expect(recorder.lines.filter((line) => line === "agent_end done")).toHaveLength(31);
  expect(asks(["x#1"])).toHaveLength(3);
});

describe("what an agent keeps", () => {
  it("options given to two agents stay each agent's own, and the caller's", () => {
    const options: AgentOptions = Object.freeze({ sessionId: "a" });
    const [one, other] = [new Agent(options), new Agent(options)];
    one.sessionId = "b";
    expect([one.sessionId, other.sessionId, options.sessionId]).toEqual(["b", "a", "a"]);
  });

  it("R27: calls that are not in replaced messages wait no more, the others do", async () => {
    const { agent } = make([callAll([["x", {}, "c1"]])], {
      middleware: [approval(() => "suspend")],
    });
    agent.setTools([tool("x")]);
    await agent.prompt("Go");
    agent.replaceMessages(agent.state.messages.slice());
    expect(agent.state.pending).toHaveLength(1);
    agent.replaceMessages([user("New")]);
    expect([agent.state.pending, [...agent.state.pendingToolCalls]]).toEqual([[], []]);
  });

  it("a prompt with an empty message among others is refused", async () => {
    const { agent } = make();
    await expect(agent.prompt([user("A"), user("")])).rejects.toThrow(/empty/);
    expect(agent.state.messages).toEqual([]);
  });

  it("an answer in text is read where a limit left no turn to ask for it", async () => {
    const { agent } = make(['{"n":1}'], { limits: { maxTurns: 1 } });
    const run = agent.run("Go", { output: z.object({ n: z.number() }) });
    expect(await run.output()).toEqual({ n: 1 });
  });
});
