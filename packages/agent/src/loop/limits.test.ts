import { AssistantMessageEventStream, emptyAssistantMessage, type Model } from "@gyre/ai";
import { call, callAll, say, scriptedModel, scriptedModelInfo } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { agentLoop } from "./loop.ts";
import { later, never, play, type Setup, start, text, tool, user } from "../testing/play.ts";
import { answer, asks, empty, injected, ran, result } from "../testing/render.ts";
import type { AgentMessage, AgentToolResult, Limits } from "../contract/types.ts";

const begin = ["agent_start", "turn_start", ...injected("Go")];

/** A model that calls `x` with a number that goes up, for ever. */
const counting: Setup["script"] = (_context, _options, index) =>
  call("x", { n: index }, `c${index}`);

function makeTurn(n: number): string[] {
  const args = `{"n":${n}}`;
  return [
    ...asks([`x#c${n}`], args),
    ...ran(`x#c${n}`, 'ok "x"', args),
    `turn_end toolUse x#c${n}`,
  ];
}

describe("R23: limits", () => {
  const priced: Model = { ...scriptedModelInfo, price: { input: 1e6, output: 1e6 } };

  it("R23: maxCostUsd stops where tokens come that have no price, and says so", async () => {
    const { end } = await play({
      script: (_context, _options, index) => ({
        parts: [call("x", { n: index }, `c${index}`)],
        usage: { input: 1, output: 1, cacheRead: 1 },
      }),
      tools: [tool("x")],
      config: { model: priced, limits: { maxCostUsd: 100, maxTurns: 9 } },
    });
    expect([end.stop, end.turns]).toEqual(["error", 2]);
    expect(end.finalMessage?.errorMessage).toMatch(/what the run has cost is not known/);
  });

  it("R23: maxCostUsd stops where a tool of the service has no price, and says so", async () => {
    const { end } = await play({
      script: (_context, _options, index) => ({
        parts: [call("x", { n: index }, `c${index}`)],
        usage: { input: 1, output: 1, unpricedTools: ["codeExecution"] },
      }),
      tools: [tool("x")],
      config: { model: priced, limits: { maxCostUsd: 100, maxTurns: 9 } },
    });
    expect([end.stop, end.turns]).toEqual(["error", 2]);
    expect(end.finalMessage?.errorMessage).toMatch(/ran a tool of its service/);
    expect(end.usage.cost).toMatchObject({ total: 2, notIncluded: ["codeExecution"] });
  });

  it("R23: maxCostUsd holds for a stream function that reports tokens and no cost", async () => {
    let asked = 0;
    const { end } = await play({
      config: { model: priced, limits: { maxCostUsd: 5, maxTurns: 9 } },
      tools: [tool("x")],
      streamFn: (model) => {
        const stream = new AssistantMessageEventStream();
        const partial = emptyAssistantMessage(model, 0);
        partial.usage = { input: 1, output: 1 };
        partial.stopReason = "toolUse";
        partial.content.push({
          type: "toolCall",
          id: `c${asked}`,
          name: "x",
          arguments: { n: asked++ },
        });
        stream.push({ type: "done", reason: "toolUse", message: partial });
        return stream;
      },
    });
    expect([end.limit, end.turns, end.usage.cost?.total]).toEqual(["maxCostUsd", 3, 6]);
  });

  it("R23: maxTurns ends the run after a turn, and the transcript is left valid", async () => {
    const { lines, end } = await play({
      script: counting,
      tools: [tool("x")],
      config: { limits: { maxTurns: 2 } },
    });
    expect(lines).toEqual([
      ...begin,
      ...makeTurn(0),
      "turn_start",
      ...makeTurn(1),
      "limit maxTurns 2",
      "agent_end limit limit=maxTurns",
    ]);
    expect(end.limit).toBe("maxTurns");
    expect(end.messages.at(-1)?.role).toBe("toolResult");
  });

  it.each<[string, NonNullable<Setup["config"]>]>([
    ["config.maxIterations", { maxIterations: 1 }],
    ["limits.maxIterations", { limits: { maxIterations: 1 } }],
  ])("R23: %s is another name of it", async (_name, config) => {
    const { end } = await play({ script: counting, tools: [tool("x")], config });
    expect([end.stop, end.limit, end.turns]).toEqual(["limit", "maxTurns", 1]);
  });

  it("R23: a run that is done at its limit is done", async () => {
    const { lines } = await play({ script: ["Hello"], config: { limits: { maxTurns: 1 } } });
    expect(lines).toEqual([...begin, ...answer("Hello"), "turn_end stop", "agent_end done"]);
  });

  it("R23: no queue is drained at a limit; a run with messages waiting says so", async () => {
    const drained = {
      getSteeringMessages: () => expect.unreachable(),
      getFollowUpMessages: () => expect.unreachable(),
    };
    const { lines } = await play({
      script: ["Hello"],
      config: {
        ...drained,
        skipInitialSteeringPoll: true,
        hasQueuedMessages: () => true,
        limits: { maxTurns: 1 },
      },
    });
    expect(lines).toEqual([
      ...begin,
      ...answer("Hello"),
      "turn_end stop",
      "limit maxTurns 1",
      "agent_end limit limit=maxTurns",
    ]);
  });

  it("R23: what a poll among calls gave is handed back at a limit", async () => {
    const returned: unknown[] = [];
    const polls: AgentMessage[][] = [[], [user("S")]];
    const { lines } = await play({
      script: [
        callAll([
          ["x", {}, "c1"],
          ["x", {}, "c2"],
        ]),
      ],
      tools: [tool("x")],
      config: {
        limits: { maxTurns: 1 },
        getSteeringMessages: () => polls.shift(),
        requeue: (queue, messages) => void returned.push([queue, messages]),
      },
    });
    expect(lines.slice(-2)).toEqual([
      "limit maxTurns 1",
      'agent_end limit limit=maxTurns undelivered="S"',
    ]);
    expect(returned).toEqual([["steering", [user("S")]]]);
  });

  it("R23: maxTotalTokens counts what services report", async () => {
    const { lines } = await play({
      script: (_context, _options, index) => ({
        parts: [call("x", { n: index }, `c${index}`)],
        usage: { input: 40, output: 10 },
      }),
      tools: [tool("x")],
      config: { limits: { maxTotalTokens: 100 } },
    });
    expect(lines.slice(-2)).toEqual([
      "limit maxTotalTokens 100",
      "agent_end limit limit=maxTotalTokens",
    ]);
    expect(lines.filter((line) => line === "turn_start")).toHaveLength(2);
  });

  it("R23: maxTotalTokens estimates where a service says nothing", async () => {
    const { end } = await play({
      script: (_context, _options, index) => [
        say("many words ".repeat(40)),
        call("x", { n: index }),
      ],
      tools: [tool("x")],
      config: { limits: { maxTotalTokens: 250 } },
    });
    expect(end.limit).toBe("maxTotalTokens");
  });

  it("R23: maxCostUsd counts the price of the model", async () => {
    const model: Model = { ...scriptedModelInfo, price: { input: 1, output: 2 } };
    const { lines } = await play({
      script: (_context, _options, index) => ({
        parts: [call("x", { n: index }, `c${index}`)],
        usage: { input: 1_000_000, output: 500_000 },
      }),
      tools: [tool("x")],
      config: { model, limits: { maxCostUsd: 4 } },
    });
    expect(lines.slice(-2)).toEqual(["limit maxCostUsd 4", "agent_end limit limit=maxCostUsd"]);
    expect(lines.filter((line) => line === "turn_start")).toHaveLength(2);
  });

  it("R23: maxCostUsd with a model of unknown price fails at the start and says so", async () => {
    const { lines, model } = await play({ script: [], config: { limits: { maxCostUsd: 1 } } });
    expect(lines).toEqual([
      ...begin,
      ...empty(
        "error",
        'limits.maxCostUsd is 1, but the price of model "scripted" is not known. Give the model a price, or leave the limit out.',
      ),
      "turn_end error",
      "agent_end error",
    ]);
    expect(model.requests).toBe(0);
  });

  it("R23: maxCostUsd holds for a model that prepareTurn brings in", async () => {
    const priced: Model = { ...scriptedModelInfo, price: { input: 1, output: 2 } };
    const { end, model } = await play({
      script: counting,
      tools: [tool("x")],
      config: {
        model: priced,
        limits: { maxCostUsd: 1 },
        prepareTurn: () => ({ model: { ...scriptedModelInfo, id: "free" } }),
      },
    });
    expect([end.stop, model.requests]).toEqual(["error", 1]);
    expect(end.finalMessage?.errorMessage).toMatch(/"free"/);
  });

  it("R23: maxDurationMs is a deadline on a response that streams", async () => {
    const { lines } = await play(
      {
        script: [{ parts: ["abcdef"], chunkSize: 2, betweenMs: 100 }],
        config: { limits: { maxDurationMs: 150 } },
      },
      150,
    );
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update text +"ab" +"cd"',
      'message_end assistant aborted "abcd" (The time limit of the run was reached.)',
      "turn_end aborted",
      "limit maxDurationMs 150",
      "agent_end limit limit=maxDurationMs",
    ]);
  });

  it("R23: maxDurationMs is a deadline on calls, as an abort is", async () => {
    const { lines } = await play(
      {
        script: [
          callAll([
            ["slow", {}, "c1"],
            ["x", {}, "c2"],
          ]),
        ],
        tools: [tool("slow", () => never<string>()), tool("x", () => expect.unreachable())],
        config: { limits: { maxDurationMs: 1_000 } },
      },
      1_200,
    );
    expect(lines).toEqual([
      ...begin,
      ...asks(["slow#c1", "x#c2"]),
      ...ran(
        "slow#c1",
        'error "Aborted: the time limit of the run was reached while tool "slow" was running; it may have had effects."',
      ),
      ...ran(
        "x#c2",
        'error "Aborted: the time limit of the run was reached before tool "x" was started."',
      ),
      "turn_end toolUse slow#c1 x#c2",
      "limit maxDurationMs 1000",
      "agent_end limit limit=maxDurationMs",
    ]);
  });

  it("R23: maxDurationMs ends a wait for a retry and a hook", async () => {
    const waiting = await play(
      {
        script: [
          { error: { message: "Busy", failure: { kind: "overloaded", retryAfterMs: 50_000 } } },
        ],
        config: { limits: { maxDurationMs: 100 } },
      },
      100,
    );
    expect(waiting.lines.slice(4)).toEqual([
      'retry 1 after 50000 ms: overloaded "Busy"',
      ...empty("aborted", "The time limit of the run was reached."),
      "turn_end aborted",
      "limit maxDurationMs 100",
      "agent_end limit limit=maxDurationMs",
    ]);
    const hooked = await play(
      {
        script: ["Hi"],
        config: { limits: { maxDurationMs: 100 }, shouldStopAfterTurn: () => never() },
      },
      100,
    );
    expect(hooked.lines.slice(7)).toEqual([
      "turn_end stop",
      "limit maxDurationMs 100",
      "agent_end limit limit=maxDurationMs",
    ]);
  });

  it("R23: the deadline is taken back when the run ends", async () => {
    const { clock, done } = start({ script: ["Hi"], config: { limits: { maxDurationMs: 1_000 } } });
    await done;
    expect(clock.pending).toBe(0);
  });

  it.each<[keyof Limits, number]>([
    ["maxTurns", 0],
    ["maxTurns", -1],
    ["maxTurns", Number.NaN],
    ["maxTurns", 0.5],
    ["maxTotalTokens", 0],
    ["maxDurationMs", -5],
    ["maxCostUsd", Number.NaN],
    ["maxIdenticalCalls", 0],
    ["maxTurns", "3" as unknown as number],
  ])("R23: %s of %s throws at the call and names it", (name, value) => {
    const script = scriptedModel([]);
    const config = { model: script.model, protocol: script, limits: { [name]: value } };
    expect(() => agentLoop([user("Go")], { messages: [] }, config)).toThrow(
      new RegExp(`limits\\.${name}.*${String(value)}`),
    );
  });
});

describe("R23: identical calls", () => {
  const same: Setup["script"] = (_context, _options, index) =>
    call("x", { a: 1, b: 2 }, `c${index}`);
  const refused =
    'error "Tool "x" was not run: it was called with the same arguments and gave the same result several times in a row. Do something else."';

  it("R23: the fourth is not run, the fifth ends the run after its turn", async () => {
    let runs = 0;
    const args = '{"a":1,"b":2}';
    const { lines } = await play({
      script: same,
      tools: [
        tool("x", () => {
          runs++;
          return "same";
        }),
      ],
    });
    const turn = (n: number, outcome: string): string[] => [
      ...asks([`x#c${n}`], args),
      ...ran(`x#c${n}`, outcome, args),
      `turn_end toolUse x#c${n}`,
    ];
    expect(lines).toEqual([
      ...begin,
      ...turn(0, 'ok "same"'),
      "turn_start",
      ...turn(1, 'ok "same"'),
      "turn_start",
      ...turn(2, 'ok "same"'),
      "turn_start",
      ...turn(3, refused),
      "turn_start",
      ...turn(4, refused),
      "limit maxIdenticalCalls 3",
      "agent_end limit limit=maxIdenticalCalls",
    ]);
    expect(runs).toBe(3);
  });

  it("R23: another result, other arguments or another tool in between restart the count", async () => {
    let runs = 0;
    const differing = await play({
      script: (_c, _o, index) => (index < 10 ? call("x") : "Done"),
      tools: [tool("x", () => `${++runs}`)],
    });
    expect([differing.end.stop, runs]).toEqual(["done", 10]);
    const between = await play({
      script: (_c, _o, index) => (index === 12 ? "Done" : call(index % 3 === 2 ? "y" : "x")),
      tools: [tool("x"), tool("y")],
    });
    expect(between.end.stop).toBe("done");
  });

  it("R23: the order of keys makes no difference", async () => {
    const { end } = await play({
      script: (_c, _o, index) =>
        index > 8 ? "Done" : call("x", index % 2 === 0 ? { a: 1, b: [2] } : { b: [2], a: 1 }),
      tools: [tool("x")],
    });
    expect(end.limit).toBe("maxIdenticalCalls");
  });

  it("R23: the number may be chosen", async () => {
    let runs = 0;
    const { end } = await play({
      script: same,
      tools: [tool("x", () => `same${"".repeat(++runs)}`)],
      config: { limits: { maxIdenticalCalls: 1 } },
    });
    expect([end.limit, runs, end.turns]).toEqual(["maxIdenticalCalls", 1, 3]);
  });

  it("R23: a model that does something else after the refusal goes on", async () => {
    const { end } = await play({
      script: (_c, _o, index) => (index === 4 ? call("y") : index === 5 ? "Done" : call("x")),
      tools: [tool("x"), tool("y")],
    });
    expect(end.stop).toBe("done");
  });

  it.each<[string, ReturnType<typeof call>]>([
    ["an unknown tool", call("nosuch", { a: 1 })],
    ["wrong arguments", call("strict", { a: 1 })],
    ["arguments that do not parse", call("strict", "{nope")],
  ])("R23: %s over and over ends the run too", async (_what, part) => {
    const { end } = await play({
      script: (_c, _o, index) => (index < 40 ? part : "Done"),
      tools: [tool("strict", () => "x", { parameters: { type: "object", required: ["path"] } })],
    });
    expect([end.stop, end.limit, end.turns]).toEqual(["limit", "maxIdenticalCalls", 5]);
  });

  it("R23: arguments that do not parse, each in its own way, are not the same", async () => {
    const { end } = await play({
      script: (_c, _o, index) => (index < 8 ? call("x", `{"n": ${index}`) : "Done"),
      tools: [tool("x")],
    });
    expect(end.stop).toBe("done");
  });

  it("R23: the same among the calls of one message counts as well", async () => {
    const { recorder, end } = await play({
      script: [
        callAll([
          ["x", {}, "c1"],
          ["x", {}, "c2"],
          ["x", {}, "c3"],
          ["x", {}, "c4"],
          ["x", {}, "c5"],
        ]),
      ],
      tools: [tool("x")],
    });
    expect(recorder.only("tool_execution_end").map((line) => line.split(" ")[2])).toEqual([
      "ok",
      "ok",
      "ok",
      "error",
      "error",
    ]);
    expect(end.limit).toBe("maxIdenticalCalls");
    expect(recorder.lines.slice(-4, -3)).toEqual(result("x#c5", refused).slice(1));
  });
});

describe("R23: what tools spend on models of their own", () => {
  const priced: Model = { ...scriptedModelInfo, price: { input: 1e6, output: 1e6 } };
  const spent = { input: 3, output: 1, cost: { input: 3, output: 1, total: 4 } };
  const asking = tool("ask", () => ({ ...text("answer"), usage: spent }));

  it("R23: it counts into the usage of the run", async () => {
    const { end } = await play({
      script: [{ parts: [call("ask")], usage: { input: 1 } }, "Done"],
      tools: [asking],
      config: { model: priced },
    });
    expect(end.usage).toEqual({
      input: 4,
      output: 1,
      totalTokens: 5,
      cost: { input: 4, output: 1, total: 5 },
    });
  });

  it("R23: it counts against maxCostUsd and maxTotalTokens", async () => {
    const both: Limits[] = [{ maxCostUsd: 8 }, { maxTotalTokens: 8 }];
    for (const limits of both) {
      const { end, events } = await play({
        script: (_context, _options, index) => ({
          parts: [call("ask", { index })],
          usage: { input: 1 },
        }),
        tools: [asking],
        config: { model: priced, limits },
      });
      const [limit] = Object.keys(limits);
      expect([end.stop, end.limit, end.turns]).toEqual(["limit", limit, 2]);
      expect(events.find(({ type }) => type === "limit")).toMatchObject({ limit, value: 10 });
    }
  });

  it("R23: tokens of a tool that have no price stop a run with maxCostUsd", async () => {
    const { end } = await play({
      script: (_context, _options, index) => call("ask", { index }),
      tools: [tool("ask", () => ({ ...text("answer"), usage: { input: 3 } }))],
      config: { model: priced, limits: { maxCostUsd: 8 } },
    });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toMatch(/what the run has cost is not known/);
  });

  it("R23: a call that a tool made of a tool counts once, also where its result is passed on", async () => {
    const passesOn = tool("outer", (_args, { host }) => host.call("ask", {}));
    const { end } = await play({
      script: [call("outer"), "Done"],
      tools: [asking, passesOn],
      config: { model: priced },
    });
    expect(end.usage.totalTokens).toBe(4);
  });

  it("R23: what came too late was spent as well", async () => {
    const answer = later<AgentToolResult>();
    const playing = start({
      script: [call("slow"), "Done"],
      tools: [tool("slow", () => answer.promise, { timeoutMs: 10 }), tool("other")],
      onEvent: (event) => {
        if (event.type === "tool_execution_end") {
          answer.resolve({ ...text("late"), usage: spent });
        }
      },
    });
    await playing.clock.advance(10);
    expect((await playing.done).end.usage.totalTokens).toBe(4);
  });

  it("R23: a tool can read what is left of tokens, cost and time", async () => {
    const seen: unknown[] = [];
    const looks = tool("look", async (_args, { host }) => {
      seen.push(host.left?.());
      await clock.advance(100);
      return { ...text("answer"), usage: spent };
    });
    const playing = start({
      script: [
        { parts: [call("look", { n: 1 })], usage: { input: 1 } },
        { parts: [call("look", { n: 2 })], usage: { input: 1 } },
        "Done",
      ],
      tools: [looks],
      config: {
        model: priced,
        limits: { maxCostUsd: 100, maxTotalTokens: 50, maxDurationMs: 1000, maxTurns: 9 },
      },
    });
    const { clock } = playing;
    await playing.done;
    expect(seen).toEqual([
      { maxTotalTokens: 49, maxCostUsd: 99, maxDurationMs: 1000 },
      { maxTotalTokens: 44, maxCostUsd: 94, maxDurationMs: 900 },
    ]);
  });

  it("R23: a run without limits has nothing to report", async () => {
    let seen: unknown;
    const looks = tool("look", (_args, { host }) => {
      seen = host.left?.();
      return "seen";
    });
    await play({ script: [call("look"), "Done"], tools: [looks] });
    expect(seen).toEqual({});
  });
});
