import { Accumulator, AssistantMessageEventStream, type Message } from "@gyre/ai";
import {
  call,
  callAll,
  cutOff,
  fail,
  say,
  scriptedModel,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { agentLoop } from "./loop.ts";
import { approval, type Middleware, Suspend } from "../contract/middleware.ts";
import {
  later,
  never,
  play,
  type Played,
  type Setup,
  start,
  text,
  tool,
  user,
} from "../testing/play.ts";
import { answer, asks, empty, injected, ran, result } from "../testing/render.ts";
import type { AgentLoopConfig, AgentMessage, AgentTool, Decision } from "../contract/types.ts";

const begin = ["agent_start", "turn_start", ...injected("Go")];
const failed = ["turn_end error", "agent_end error"];
const boom = new Error("boom");

/** The ways in which a callback can go wrong, each with what is said of it. */
const ways: [string, () => never, string][] = [
  [
    "throws",
    () => {
      throw boom;
    },
    "boom",
  ],
  ["rejects", (() => Promise.reject(boom)) as () => never, "boom"],
  [
    "throws a string",
    () => {
      throw "words";
    },
    "words",
  ],
  [
    "throws nothing",
    () => {
      throw undefined;
    },
    "undefined",
  ],
  ["rejects with nothing", (() => Promise.reject(undefined)) as () => never, "undefined"],
  [
    "throws what has no text",
    () => {
      throw Object.create(null);
    },
    "an error that cannot be shown",
  ],
];

it("R27: approving a call approves what it calls in its turn", async () => {
  const tools = [
    tool("outer", async (_args, { host }) => host.call("inner", {})),
    tool("inner", () => "done"),
  ];
  const middleware = [approval(({ tool: { name } }) => (name === "inner" ? "suspend" : "allow"))];
  const suspended = await play({
    script: [call("outer", {}, "c1")],
    tools,
    config: { middleware },
  });
  expect(suspended.end.pending.map(({ toolCall }) => toolCall.id)).toEqual(["c1"]);
  const { end } = await play({
    script: ["Good"],
    prompts: [],
    messages: suspended.end.messages,
    tools,
    config: { middleware, decisions: { c1: { type: "approve" } } },
  });
  expect(end.stop).toBe("done");
  expect(end.messages[0]).toMatchObject({ role: "toolResult", isError: false });
});

it("R21: a stream that comes after the abort is not read", async () => {
  const controller = new AbortController();
  const gate = later<AssistantMessageEventStream>();
  const { clock, done } = start({ signal: controller.signal, streamFn: () => gate.promise });
  await clock.advance(1);
  controller.abort();
  await done;
  const stream = new AssistantMessageEventStream();
  gate.resolve(stream);
  await clock.advance(1);
  expect(stream.detached).toBe(true);
});

it("R19: continue on an answer that only a custom message follows is an error, and nothing is sent", async () => {
  const first = await play({ script: ["Answered"] });
  const note = { role: "note", content: "for people" } as unknown as AgentMessage;
  const { lines, model } = await play({ prompts: [], messages: [...first.end.messages, note] });
  expect(lines).toEqual([
    "agent_start",
    "turn_start",
    ...empty("error", "There is nothing to answer: the last message for the model is its own."),
    ...failed,
  ]);
  expect(model.requests).toBe(0);
});

describe("R5: whatever throws becomes a message", () => {
  describe.each(ways)("%s", (_what, wrong, words) => {
    it.each(["convertToLlm", "transformContext", "getApiKey"] as const)("R5: %s", async (name) => {
      const { lines, model } = await play({ config: { [name]: wrong } });
      expect(lines).toEqual([...begin, ...empty("error", words), ...failed]);
      expect(model.requests).toBe(0);
    });

    it("R5: the stream function", async () => {
      const { lines } = await play({ streamFn: wrong });
      expect(lines).toEqual([...begin, ...empty("error", words), ...failed]);
    });

    it("R5: middleware around the model", async () => {
      const { lines } = await play({ script: [], config: { middleware: [{ model: wrong }] } });
      expect(lines).toEqual([...begin, ...empty("error", words), ...failed]);
    });

    it("R5: the first steering poll", async () => {
      const { lines } = await play({ config: { getSteeringMessages: wrong } });
      expect(lines).toEqual([...begin, ...empty("error", words), ...failed]);
    });

    it.each(["shouldStopAfterTurn", "getFollowUpMessages"] as const)(
      "R5: %s, in one more turn",
      async (name) => {
        const { lines } = await play({ script: ["Hi"], config: { [name]: wrong } });
        expect(lines).toEqual([
          ...begin,
          ...answer("Hi"),
          "turn_end stop",
          "turn_start",
          ...empty("error", words),
          ...failed,
        ]);
      },
    );

    it("R5: prepareTurn, in one more turn", async () => {
      const { lines } = await play({
        script: [call("x", {}, "c1")],
        tools: [tool("x")],
        config: { prepareTurn: wrong },
      });
      expect(lines).toEqual([
        ...begin,
        ...asks(["x#c1"]),
        ...ran("x#c1", 'ok "x"'),
        "turn_end toolUse x#c1",
        "turn_start",
        ...empty("error", words),
        ...failed,
      ]);
    });

    it("R5: a poll among calls: the rest get error results, the error is one more turn", async () => {
      let polls = 0;
      const { lines } = await play({
        script: [
          callAll([
            ["x", {}, "c1"],
            ["x", {}, "c2"],
            ["x", {}, "c3"],
          ]),
        ],
        tools: [tool("x")],
        config: { getSteeringMessages: () => (++polls === 2 ? wrong() : []) },
      });
      const notRun = `error "Tool "x" was not run: ${words}"`;
      expect(lines).toEqual([
        ...begin,
        ...asks(["x#c1", "x#c2", "x#c3"]),
        ...ran("x#c1", 'ok "x"'),
        ...ran("x#c2", notRun),
        ...ran("x#c3", notRun),
        "turn_end toolUse x#c1 x#c2 x#c3",
        "turn_start",
        ...empty("error", words),
        ...failed,
      ]);
    });

    it("R5: a poll in a parallel batch: what runs is finished first", async () => {
      let polls = 0;
      const { recorder, end } = await play({
        script: [
          callAll([
            ["x", {}, "c1"],
            ["x", {}, "c2"],
          ]),
        ],
        tools: [tool("x", async () => "x", { concurrent: true })],
        config: { getSteeringMessages: () => (++polls === 2 ? wrong() : []) },
      });
      expect(recorder.only("tool_execution_end")).toEqual([
        'tool_end x#c1 ok "x"',
        `tool_end x#c2 error "Tool "x" was not run: ${words}"`,
      ]);
      expect(end.finalMessage?.errorMessage).toBe(words);
    });
  });

  it("R5: a stream that fails keeps what arrived", async () => {
    const { lines } = await play({ script: [[say("Half"), { breaks: boom }]] });
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update text +"Half" end',
      'message_end assistant error "Half" (boom)',
      ...failed,
    ]);
  });

  it("R5: a script that rejects late is a stream that fails", async () => {
    const { lines } = await play({ script: [() => Promise.reject(boom)] });
    expect(lines).toEqual([...begin, ...empty("error", "boom"), ...failed]);
  });

  it("R5: onSteering that throws, and what it gives", async () => {
    const { lines } = await play({
      config: {
        steering: "redirect",
        onSteering: () => {
          throw boom;
        },
      },
    });
    expect(lines).toEqual([...begin, ...empty("error", "boom"), ...failed]);
    const undone = start({
      script: ["Hi"],
      config: {
        steering: "redirect",
        onSteering: () => () => {
          throw boom;
        },
      },
    });
    expect((await undone.done).end.stop).toBe("done");
    expect(undone.clock.pending).toBe(0);
  });

  it("R5: hasQueuedMessages that throws, in one more turn", async () => {
    const { lines } = await play({
      script: ["Hi"],
      config: {
        limits: { maxTurns: 1 },
        hasQueuedMessages: () => {
          throw boom;
        },
      },
    });
    expect(lines.slice(7)).toEqual([
      "turn_end stop",
      "turn_start",
      ...empty("error", "boom"),
      ...failed,
    ]);
  });

  it("R5: tools that prepareTurn gives twice under one name are an error too", async () => {
    const { end } = await play({
      script: [call("x")],
      tools: [tool("x")],
      config: { prepareTurn: () => ({ tools: [tool("y"), tool("y")] }) },
    });
    expect(end.finalMessage?.errorMessage).toMatch(/"y"/);
  });

  it("R5: the stream of agentLoop ends with agent_end, and its result resolves", async () => {
    const { model } = scriptedModel([]);
    for (const [, wrong] of ways) {
      const stream = agentLoop([user("Go")], { messages: [] }, { model }, undefined, wrong);
      const types: string[] = [];
      for await (const event of stream) types.push(event.type);
      expect(types.at(-1)).toBe("agent_end");
      expect((await stream.result()).map((m) => m.role)).toEqual(["user", "assistant"]);
    }
  });

  describe("callbacks that never settle", () => {
    const hung = (name: string): string => `${name} did not settle within 120000 ms.`;

    it.each(["convertToLlm", "transformContext", "getApiKey", "getSteeringMessages"] as const)(
      "R5: %s times out",
      async (name) => {
        const { clock, done, recorder } = start({ config: { [name]: () => never() } });
        await clock.advance(119_999);
        expect(recorder.only("agent_end")).toEqual([]);
        await clock.advance(1);
        expect((await done).lines).toEqual([...begin, ...empty("error", hung(name)), ...failed]);
      },
    );

    it.each(["shouldStopAfterTurn", "getFollowUpMessages"] as const)(
      "R5: %s times out",
      async (name) => {
        const { lines } = await play(
          { script: ["Hi"], config: { [name]: () => never() } },
          120_000,
        );
        expect(lines.slice(7)).toEqual([
          "turn_end stop",
          "turn_start",
          ...empty("error", hung(name)),
          ...failed,
        ]);
      },
    );

    it("R5: prepareTurn times out, after hookTimeoutMs", async () => {
      const { end } = await play(
        {
          script: [call("x")],
          tools: [tool("x")],
          config: { prepareTurn: () => never(), hookTimeoutMs: 50 },
        },
        50,
      );
      expect(end.finalMessage?.errorMessage).toBe("prepareTurn did not settle within 50 ms.");
    });

    it("R5: what such a poll gives later goes back to its queue", async () => {
      const gate = later<AgentMessage[]>();
      const returned: unknown[] = [];
      const { clock, done } = start({
        script: ["Hi"],
        config: {
          getFollowUpMessages: () => gate.promise,
          requeue: (queue, messages) => void returned.push([queue, messages]),
          hookTimeoutMs: 50,
        },
      });
      await clock.advance(50);
      expect((await done).end.stop).toBe("error");
      gate.resolve([user("Late")]);
      await clock.advance(0);
      expect(returned).toEqual([["followUp", [user("Late")]]]);
    });
  });
});

describe("R21: abort at each point", () => {
  const before = [
    ...begin,
    ...empty("aborted", "Aborted."),
    "turn_end aborted",
    "agent_end aborted",
  ];

  it.each([
    ["at once, and gives at once", <T>(value: T, abort: () => void) => (abort(), value)],
    [
      "at once, and gives later",
      <T>(value: T, abort: () => void) => (abort(), Promise.resolve(value)),
    ],
    [
      "later",
      async <T>(value: T, abort: () => void) => {
        await Promise.resolve();
        abort();
        return value;
      },
    ],
    [
      "and never settles",
      (_value: unknown, abort: () => void) => {
        abort();
        return never();
      },
    ],
  ])("R21: a callback that aborts %s", async (_when, give) => {
    const run = async (
      config: (abort: () => void) => Partial<AgentLoopConfig>,
      setup: Setup = {},
    ): Promise<Played> => {
      const controller = new AbortController();
      const abort = (): void => controller.abort();
      const playing = start({ signal: controller.signal, ...setup, config: config(abort) });
      const { clock } = playing;
      await clock.advance(1);
      const played = await playing.done;
      expect(clock.pending).toBe(0);
      return played;
    };
    const asking = [
      await run((abort) => ({ convertToLlm: (m) => give(m as Message[], abort) })),
      await run((abort) => ({ transformContext: (m) => give(m, abort) })),
      await run((abort) => ({ getApiKey: () => give("key", abort) })),
      await run((abort) => ({ getSteeringMessages: () => give([], abort) })),
    ];
    for (const { lines, model } of asking) {
      expect(lines).toEqual(before);
      expect(model.requests).toBe(0);
    }
    const after = [
      await run((abort) => ({ shouldStopAfterTurn: () => give(false, abort) }), {
        script: ["Hi"],
      }),
      await run((abort) => ({ getFollowUpMessages: () => give([], abort) }), {
        script: ["Hi"],
      }),
    ];
    for (const { lines } of after) {
      expect(lines).toEqual([...begin, ...answer("Hi"), "turn_end stop", "agent_end aborted"]);
    }
  });

  it("R21: an abort at every event of a run ends it, with nothing asked after it", async () => {
    const setup: Setup = {
      script: [[say("I look"), call("x", {}, "c1"), call("x", {}, "c2")], "Done"],
      tools: [tool("x")],
    };
    const whole = await play(setup);
    for (let index = 0; index < whole.events.length - 1; index++) {
      const controller = new AbortController();
      let requests = 0;
      let requestsThen = 0;
      const playing = start({
        ...setup,
        signal: controller.signal,
        config: { getApiKey: () => `${++requests}` },
        onEvent: (_event, { events }) => {
          if (events.length - 1 !== index) return;
          requestsThen = requests;
          controller.abort();
        },
      });
      await playing.clock.advance(200);
      const { end, model } = await playing.done;
      expect([index, end.stop]).toEqual([index, "aborted"]);
      expect(model.requests).toBe(requestsThen);
    }
  });

  it("R21: while streaming, the partial is kept", async () => {
    const { clock, done, abort } = start({
      script: [{ parts: [think("Hm"), "abcdef"], chunkSize: 2, betweenMs: 10 }],
    });
    await clock.advance(15);
    abort();
    expect((await done).lines).toEqual([
      ...begin,
      "message_start assistant",
      'update thinking +"Hm" end text +"ab"',
      'message_end assistant aborted <Hm> "ab" (Aborted.)',
      "turn_end aborted",
      "agent_end aborted",
    ]);
  });

  it("R21: a provider that is deaf to its signal does not hold the run up, nor write to what is kept", async () => {
    const stream = new AssistantMessageEventStream();
    const out = new Accumulator(stream, scriptedModel([]).model, 0);
    const { clock, done, abort } = start({ streamFn: () => stream });
    await clock.advance(1);
    const index = out.textStart();
    out.text(index, "kept");
    out.usage({ output: 1 });
    await clock.advance(1);
    abort();
    const { end, lines } = await done;
    out.text(index, " and more");
    out.textEnd(index, "signature");
    out.usage({ output: 99 });
    out.done("stop");
    expect(lines.slice(4, 7)).toEqual([
      "message_start assistant",
      'update text +"kept"',
      'message_end assistant aborted "kept" (Aborted.)',
    ]);
    expect(end.finalMessage?.usage).toEqual({ output: 1 });
  });

  it("R21: a provider that goes on writing after its stream failed does not reach what is kept", async () => {
    const stream = new AssistantMessageEventStream();
    const out = new Accumulator(stream, scriptedModel([]).model, 0);
    const { clock, done } = start({ streamFn: () => stream });
    const index = out.textStart();
    out.text(index, "kept");
    await clock.advance(1);
    stream.fail(boom);
    const { lines } = await done;
    out.text(index, " and more");
    expect(lines[6]).toBe('message_end assistant error "kept" (boom)');
  });

  it("R21: a stream function that never answers does not hold an abort up", async () => {
    const { clock, done, abort } = start({ streamFn: () => never() });
    await clock.advance(1);
    abort();
    expect((await done).lines).toEqual(before);
  });

  it("R21: abort wins over an error that comes of it", async () => {
    const { done, clock, abort } = start({
      streamFn: (_model, _context, { signal }) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new Error("socket closed")));
        }),
    });
    await clock.advance(1);
    abort();
    expect((await done).lines).toEqual(before);
  });

  it("R21: an abort of a run that has ended does nothing", async () => {
    const { done, abort, recorder } = start({ script: ["Hi"] });
    await done;
    const { lines } = recorder;
    abort();
    expect(recorder.lines).toEqual(lines);
  });

  it("R21: no listener is left on the caller's signal", async () => {
    let listeners = 0;
    const controller = new AbortController();
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const script = scriptedModel([call("x"), "Hi"]);
    const config = { model: script.model, protocol: script };
    await agentLoop([user("Go")], { messages: [], tools: [tool("x")] }, config, signal).result();
    await new Promise(setImmediate);
    expect(listeners).toBe(0);
  });
});

describe("R26: what stays after an error", () => {
  const notRun = 'error "Tool "x" was not run: the response ended with an error."';

  it("R26: open blocks stay, an unfinished call goes, a finished one is answered", async () => {
    const { lines, transcript, model } = await play({
      script: [
        [
          unfinished(think("Hm")),
          unfinished(say("I loo")),
          call("x", {}, "c1"),
          unfinished(call("x", '{"a', "c2")),
          fail("Cut"),
        ],
      ],
      tools: [tool("x", () => expect.unreachable())],
    });
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update thinking +"Hm" text +"I loo" call +"{}" end call +"{\\"a"',
      'message_end assistant error <Hm> "I loo" x#c1 (Cut)',
      ...ran("x#c1", notRun),
      "turn_end error x#c1",
      "agent_end error",
    ]);
    const next = await play({ messages: transcript, script: ["Fine"], prompts: [user("Again")] });
    expect(next.model.calls[0]?.messages.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "user",
    ]);
    next.model.assertComplete();
    expect(model.requests).toBe(1);
  });

  it("R26: the same after an abort", async () => {
    const { clock, done, abort } = start({
      script: [[say("I look"), call("x", {}, "c1"), unfinished(call("x", "{", "c2")), stall()]],
      tools: [tool("x", () => expect.unreachable())],
    });
    await clock.advance(1);
    abort();
    expect((await done).lines.slice(6)).toEqual([
      'message_end assistant aborted "I look" x#c1 (Aborted.)',
      ...ran("x#c1", 'error "Aborted: the user stopped the run before tool "x" was started."'),
      "turn_end aborted x#c1",
      "agent_end aborted",
    ]);
  });

  it("R26: the same after an early end", async () => {
    const { lines } = await play({
      script: [[call("x", {}, "c1"), unfinished(call("x", "{", "c2")), cutOff()]],
      tools: [tool("x", () => expect.unreachable())],
    });
    expect(lines.slice(6)).toEqual([
      "message_end assistant error x#c1 (The response ended early.)",
      ...ran("x#c1", notRun),
      "turn_end error x#c1",
      "agent_end error",
    ]);
  });

  it.each<[string, Setup["script"]]>([
    ["nothing", [fail("Bad", { kind: "bad_request" })]],
    ["half a text", [[unfinished(say("Half")), fail("Bad")]]],
    ["a thought", [[unfinished(think("Hm")), fail("Bad")]]],
    ["a finished call", [[call("x", {}, "c1"), fail("Bad")]]],
    ["half a call", [[unfinished(call("x", "{", "c1")), fail("Bad")]]],
    ["an empty answer", () => ({ parts: [] })],
  ])("R26: after an error that left %s, prompt and continue both work", async (_what, script) => {
    const first = await play({ script: script ?? [], config: { retry: { maxRetries: 0 } } });
    expect(first.end.stop).toBe("error");
    const prompted = await play({
      messages: first.transcript,
      prompts: [user("Go on")],
      script: ["Yes"],
    });
    prompted.model.assertComplete();
    expect(prompted.end.stop).toBe("done");
    const continued = await play({ messages: first.transcript, prompts: [], script: ["Yes"] });
    continued.model.assertComplete();
    expect(continued.end.stop).toBe("done");
  });

  it("R26: an empty message is left out after any convertToLlm", async () => {
    const first = await play({ script: [fail("Bad", { kind: "bad_request" })] });
    const { model } = await play({
      messages: first.transcript,
      prompts: [user("Again")],
      script: ["Yes"],
      config: { convertToLlm: (messages) => messages as never },
    });
    expect(model.calls[0]?.messages).toEqual([user("Go"), user("Again")]);
  });

  it("R26: half an answer is sent once a user message follows it", async () => {
    const first = await play({ script: [[say("Half"), fail("Bad")]] });
    const { model } = await play({
      messages: first.transcript,
      prompts: [user("Again")],
      script: ["Yes"],
    });
    expect(model.calls[0]?.messages).toEqual([...first.transcript, user("Again")]);
  });

  it("R26: a run that failed twice goes on as well", async () => {
    const one = await play({ script: [[say("Half"), fail("Bad")]] });
    const two = await play({
      messages: one.transcript,
      prompts: [],
      script: [[say("More"), fail("Bad")]],
    });
    const three = await play({ messages: two.transcript, prompts: [], script: ["All"] });
    expect(three.end.stop).toBe("done");
    const four = await play({
      messages: three.transcript,
      prompts: [user("Thanks")],
      script: ["Bye"],
    });
    four.model.assertComplete();
  });
});

describe("R27: waiting for a person", () => {
  const suspending = (...names: string[]): Middleware =>
    approval(({ tool }) => (names.includes(tool.name) ? "suspend" : "allow"));
  const two = callAll([
    ["ask", {}, "c1"],
    ["x", {}, "c2"],
  ]);
  const tools = [tool("ask"), tool("x")];

  async function suspended(script: Setup["script"] = [two]): Promise<Played> {
    return play({ script: script ?? [], tools, config: { middleware: [suspending("ask")] } });
  }

  it("R27: siblings finish, and the run ends with the calls that wait", async () => {
    const { lines, end } = await suspended();
    expect(lines).toEqual([
      ...begin,
      ...asks(["ask#c1", "x#c2"]),
      "tool_start ask#c1 {}",
      ...ran("x#c2", 'ok "x"'),
      "turn_end toolUse x#c2",
      "agent_end suspended pending=ask#c1",
    ]);
    expect(end.pending[0]?.reason).toBe('Tool "ask" needs approval.');
  });

  it.each<[string, NonNullable<Middleware["tool"]>]>([
    [
      "at once",
      () => {
        throw new Suspend("who knows");
      },
    ],
    [
      "later",
      async () => {
        throw new Suspend("who knows");
      },
    ],
  ])("R27: Suspend thrown %s", async (_when, layer) => {
    const { end } = await play({
      script: [call("x", {}, "c1")],
      tools,
      config: { middleware: [{ tool: layer }] },
    });
    expect([end.stop, end.pending.map((p) => p.reason)]).toEqual(["suspended", ["who knows"]]);
  });

  it("R27: no queue is polled after it, and steering that was polled is handed back", async () => {
    const polls: AgentMessage[][] = [[], [user("S")]];
    const { lines } = await play({
      script: [two],
      tools,
      config: {
        middleware: [suspending("ask")],
        getSteeringMessages: () => polls.shift(),
        getFollowUpMessages: () => expect.unreachable(),
      },
    });
    expect(lines.slice(-6)).toEqual([
      ...ran("x#c2", 'error "Skipped due to queued user message."'),
      "turn_end toolUse x#c2",
      'agent_end suspended undelivered="S" pending=ask#c1',
    ]);
  });

  const decide = async (
    decision: Decision | undefined,
    script: Setup["script"] = ["Done"],
    more: Partial<AgentTool> = {},
  ): Promise<Played> => {
    const first = await suspended();
    return play({
      messages: first.transcript,
      prompts: [],
      script: script ?? [],
      tools: [tool("ask", () => "asked", more), tool("x")],
      config: {
        middleware: [suspending("ask")],
        ...(decision && { decisions: { c1: decision } }),
      },
    });
  };
  const done = [...answer("Done"), "turn_end stop", "agent_end done"];

  it.each<[string, Decision, string]>([
    ["approve", { type: "approve" }, 'ok "asked"'],
    ["deny", { type: "deny" }, 'error "Tool "ask" was denied."'],
    [
      "deny with a reason",
      { type: "deny", reason: "too risky" },
      'error "Tool "ask" was denied: too risky"',
    ],
    ["result", { type: "result", result: text("by hand") }, 'ok "by hand"'],
  ])(
    "R27: %s answers the call in its place, then the model goes on",
    async (_what, decision, outcome) => {
      const { lines, transcript, model } = await decide(decision);
      expect(lines).toEqual(["agent_start", "turn_start", ...ran("ask#c1", outcome), ...done]);
      expect(transcript.map((m) => (m.role === "toolResult" ? m.toolCallId : m.role))).toEqual([
        "user",
        "assistant",
        "c1",
        "c2",
        "assistant",
      ]);
      model.assertComplete();
    },
  );

  it("R27: a value that is no result is an error result", async () => {
    const { lines } = await decide({ type: "result", result: 1n as never });
    expect(lines[3]).toMatch(/^tool_end ask#c1 error "Tool "ask" .*JSON/);
    expect(lines.at(-1)).toBe("agent_end done");
  });

  it("R27: wait leaves it pending, and the run ends suspended again, with no request", async () => {
    const { lines, end, model } = await decide({ type: "wait", reason: "lunch" });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      "turn_end toolUse",
      "agent_end suspended pending=ask#c1",
    ]);
    expect([end.pending[0]?.reason, end.messages, model.requests]).toEqual(["lunch", [], 0]);
  });

  it("R27: an approved call may be suspended again", async () => {
    const first = await suspended();
    const { lines } = await play({
      messages: first.transcript,
      prompts: [],
      tools,
      config: {
        decisions: { c1: { type: "approve" } },
        middleware: [{ tool: () => Promise.reject(new Suspend("a second key")) }],
      },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      "tool_start ask#c1 {}",
      "turn_end toolUse",
      "agent_end suspended pending=ask#c1",
    ]);
  });

  it("R27: some decided, some not: what is decided is answered, the rest waits", async () => {
    const first = await play({
      script: [
        callAll([
          ["ask", {}, "c1"],
          ["ask", {}, "c2"],
          ["ask", {}, "c3"],
        ]),
      ],
      tools,
      config: { middleware: [suspending("ask")] },
    });
    expect(first.end.pending.map((p) => p.toolCall.id)).toEqual(["c1", "c2", "c3"]);
    const { lines, transcript } = await play({
      messages: first.transcript,
      prompts: [],
      tools,
      config: {
        middleware: [suspending("ask")],
        decisions: { c1: { type: "wait" }, c2: { type: "approve" }, c3: { type: "deny" } },
      },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("ask#c2", 'ok "ask"'),
      ...ran("ask#c3", 'error "Tool "ask" was denied."'),
      "turn_end toolUse ask#c2 ask#c3",
      "agent_end suspended pending=ask#c1",
    ]);
    const last = await play({
      messages: transcript,
      prompts: [],
      script: ["Done"],
      tools,
      config: { decisions: { c1: { type: "approve" } } },
    });
    expect(last.lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("ask#c1", 'ok "ask"'),
      ...done,
    ]);
    last.model.assertComplete();
  });

  it("R27: without a decision the call is one that a crash left (R19)", async () => {
    const { lines } = await decide(undefined);
    expect(lines[3]).toMatch(/^tool_end ask#c1 error "Interrupted/);
  });

  it("R27: an abort before the decision is carried out answers the call as aborted", async () => {
    const first = await suspended();
    const { lines } = await play({
      messages: first.transcript,
      prompts: [],
      tools,
      signal: AbortSignal.abort(),
      config: { decisions: { c1: { type: "approve" } } },
    });
    expect(lines.slice(2, 6)).toEqual(
      ran("ask#c1", 'error "Aborted: the user stopped the run before tool "ask" was started."'),
    );
  });

  it("R27: a prompt is not lost where a call that is run again is suspended", async () => {
    const first = await suspended();
    const { lines, end, transcript } = await play({
      messages: first.transcript,
      prompts: [user("And?")],
      tools: [tool("ask", () => "asked", { idempotent: true }), tool("x")],
      config: { middleware: [suspending("ask")] },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      "tool_start ask#c1 {}",
      ...injected("And?"),
      "turn_end toolUse",
      "agent_end suspended pending=ask#c1",
    ]);
    expect(end.messages).toEqual([user("And?")]);
    const next = await play({
      messages: transcript,
      prompts: [],
      script: ["Done"],
      tools,
      config: { decisions: { c1: { type: "deny" } } },
    });
    next.model.assertComplete();
    expect(next.transcript.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
    ]);
  });

  it("R27: all calls of a batch may wait", async () => {
    const { lines } = await play({
      script: [
        callAll([
          ["ask", {}, "c1"],
          ["ask", {}, "c2"],
        ]),
      ],
      tools: [tool("ask", () => "x", { concurrent: true })],
      config: { middleware: [suspending("ask")] },
    });
    expect(lines.slice(7)).toEqual([
      "tool_start ask#c1 {}",
      "tool_start ask#c2 {}",
      "turn_end toolUse",
      "agent_end suspended pending=ask#c1,ask#c2",
    ]);
  });

  it("R27: terminate of the siblings does not hide what waits", async () => {
    const { lines } = await play({
      script: [two],
      tools: [tool("ask"), tool("x", () => ({ ...text("x"), terminate: true }))],
      config: { middleware: [suspending("ask")] },
    });
    expect(lines.slice(-4)).toEqual([
      ...result("x#c2", 'ok "x"'),
      "turn_end toolUse x#c2",
      "agent_end suspended pending=ask#c1",
    ]);
  });
});
