import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Model } from "@gyre/ai";
import {
  call,
  callAll,
  fail,
  manualClock,
  say,
  type ScriptAnswer,
  type ScriptedModel,
  scriptedModel,
  scriptedModelInfo,
  stall,
} from "@gyre/ai/testing";
import { describe, expect, expectTypeOf, it, vi } from "vitest";
import * as z from "zod";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type AgentToolDetails,
  type AgentToolResult,
  defineTool,
  generate,
  type OpenTelemetryApi,
  type TelemetryContext,
  type TelemetrySpan,
  tracing,
} from "../index.ts";

const priced: Model = { ...scriptedModelInfo, price: { input: 1_000_000, output: 1_000_000 } };

type Script = (context: Context, index: number) => ScriptAnswer;

/** An agent whose answers are a function of what it is asked. */
function make(script: Script, options: AgentOptions = {}): { agent: Agent; model: ScriptedModel } {
  const { clock } = options;
  const model = scriptedModel(
    (context, _options, index) => script(context, index),
    clock && { clock },
  );
  return { agent: new Agent({ protocol: model, model: priced, ...options }), model };
}

const readPrompt = ({ messages }: Pick<Context, "messages">): unknown => messages[0]?.content;

/** Calls first, then "Done". */
const askThen =
  (calls: ScriptAnswer): Script =>
  ({ messages }) =>
    messages.length === 1 ? calls : "Done";

async function collect(
  agent: Agent,
): Promise<{ results: AgentToolResult[]; updates: AgentToolResult[] }> {
  const results: AgentToolResult[] = [];
  const updates: AgentToolResult[] = [];
  for await (const event of agent.run("Go")) {
    if (event.type === "tool_execution_end") results.push(event.result);
    if (event.type === "tool_execution_update") updates.push(event.partialResult);
  }
  return { results, updates };
}

const readText = (result: AgentToolResult | undefined): string =>
  (result?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");

describe("an agent as a tool", () => {
  it("answers a prompt with a context of its own, and stays as it was", async () => {
    const { agent: worker, model } = make(() => "Found.", { instructions: "Search." });
    const search = worker.asTool({ name: "search", description: "Searches." });
    const { agent } = make(askThen(call("search", { prompt: "Find it" })), { tools: [search] });
    const { results } = await collect(agent);
    expect(readText(results[0])).toBe("Found.");
    expect(results[0]?.details).toMatchObject({ stop: "done", turns: 1 });
    expect(model.calls[0]).toMatchObject({
      systemPrompt: "Search.",
      messages: [{ role: "user", content: "Find it" }],
    });
    expect(worker.state.messages).toEqual([]);
  });

  it("runs each call on a copy of the agent as it was, calls together do not meet", async () => {
    const { agent: worker, model } = make(
      ({ messages }) => `Answer to ${JSON.stringify(messages.at(-1)?.content)}`,
      {
        messages: [{ role: "user", content: "Our rules" }],
      },
    );
    const search = worker.asTool({ name: "search", description: "Searches." });
    const prompts = ["one", "two", "three"];
    const { agent } = make(askThen(callAll(prompts.map((prompt) => ["search", { prompt }]))), {
      tools: [search],
    });
    const { results } = await collect(agent);
    expect(results.map(readText)).toEqual(prompts.map((prompt) => `Answer to "${prompt}"`));
    expect(model.calls.map(({ messages }) => messages.map(({ content }) => content))).toEqual(
      prompts.map((prompt) => ["Our rules", prompt]),
    );
  });

  it("may have itself as a tool", async () => {
    const { agent: counter } = make((context) => {
      const { length } = context.messages;
      const left = Number(readPrompt(context));
      return left > 0 && length === 1 ? call("count", { prompt: `${left - 1}` }) : `${left} done`;
    });
    counter.setTools([counter.asTool({ name: "count", description: "Counts." })]);
    const { results } = await collect(
      make(askThen(call("count", { prompt: "0" })), {
        tools: [counter.asTool({ name: "count", description: "Counts." })],
      }).agent,
    );
    expect(readText(results[0])).toBe("0 done");
    const end = await counter.prompt("1");
    expect(end.text).toBe("1 done");
  });

  it("takes arguments of an `input`, as JSON or through `prompt`", async () => {
    const { agent: worker, model } = make(() => "Booked.");
    const input = z.object({ city: z.string(), nights: z.number() });
    const book = worker.asTool({ name: "book", description: "Books.", input });
    const plan = worker.asTool({
      name: "plan",
      description: "Plans.",
      input,
      prompt: ({ city, nights }) => `${nights} nights in ${city}`,
    });
    const args = { city: "Bern", nights: 2 };
    const { agent } = make(
      askThen(
        callAll([
          ["book", args],
          ["plan", args],
        ]),
      ),
      { tools: [book, plan] },
    );
    await agent.prompt("Go");
    expect(model.calls.map(readPrompt)).toEqual(['{"city":"Bern","nights":2}', "2 nights in Bern"]);
  });

  it("gives a typed value where it has an `output`", async () => {
    const { agent: worker } = make(() => call("final_answer", { score: 7 }));
    const output = z.object({ score: z.number() });
    const judge = worker.asTool({ name: "judge", description: "Judges.", output });
    const { agent } = make(askThen(call("judge", { prompt: "This" })), { tools: [judge] });
    const { results } = await collect(agent);
    expect(results[0]?.details).toEqual({ score: 7 });
    expect(readText(results[0])).toBe('{"score":7}');
    expectTypeOf<Awaited<ReturnType<typeof judge.execute>>["details"]>().toEqualTypeOf<
      { score: number } | undefined
    >();
    expectTypeOf(judge.name).toEqualTypeOf<"judge">();
    const plain = worker.asTool({ name: "plain", description: "Judges." });
    expectTypeOf<Parameters<typeof plain.execute>[0]>().toEqualTypeOf<{ prompt: string }>();
    expectTypeOf<Awaited<ReturnType<typeof plain.execute>>["details"]>().toEqualTypeOf<
      AgentToolDetails | undefined
    >();
  });

  it.each<[string, AgentOptions & { script: Script }, RegExp]>([
    ["an error", { script: () => fail("No such model") }, /agent "work" failed.*No such model/],
    [
      "a limit",
      { script: (_, index) => call("look", { index }), limits: { maxTurns: 2 } },
      /was stopped after 2 turns.*by its limit maxTurns/,
    ],
    [
      "a call that waits for a person",
      { script: () => [say("I want to look."), call("ask")] },
      /"ask" \(Tool "ask" needs approval\.\) waits for a person[^]*I want to look\./,
    ],
  ])("reports %s, with what was said", async (_what, { script, ...options }, text) => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: { type: "object" },
      execute: () => "Seen.",
    });
    const ask = { ...look, name: "ask", needsApproval: true };
    const { agent: worker } = make(script, {
      tools: [look, ask],
      retry: { maxRetries: 0 },
      ...options,
    });
    const work = worker.asTool({ name: "work", description: "Works." });
    const { agent } = make(askThen(call("work", { prompt: "Do it" })), { tools: [work] });
    const { results } = await collect(agent);
    expect(results[0]?.isError).toBe(true);
    expect(readText(results[0])).toMatch(text);
  });

  it("says where no answer fits", async () => {
    const { agent: worker } = make(() => "I do not know.");
    const output = z.object({ score: z.number() });
    const work = worker.asTool({ name: "work", description: "Works.", output });
    const { agent } = make(askThen(call("work", { prompt: "Do it" })), { tools: [work] });
    const { results } = await collect(agent);
    expect(readText(results[0])).toMatch(/without an answer that fits[^]*I do not know\./);
  });

  it("asks a person before it starts, if it needs approval", async () => {
    const { agent: worker, model } = make(() => "Found.");
    const search = worker.asTool({ name: "search", description: "Finds.", needsApproval: true });
    const { agent } = make(askThen(call("search", { prompt: "it" }, "c1")), { tools: [search] });
    const end = await agent.prompt("Go");
    expect(end.stop).toBe("suspended");
    expect(model.requests).toBe(0);
    await agent.continue({ decisions: { c1: { type: "approve" } } });
    expect(model.requests).toBe(1);
  });
});

describe("usage and limits of agents that work for another", () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    execute: () => "Seen.",
  });

  it("R23: what all levels spend is counted once", async () => {
    const usage = { input: 10, output: 1 };
    const { agent: inner } = make(() => ({ parts: ["Inner."], usage }));
    const { agent: middle } = make(
      (_context, index) => ({
        parts: [index === 0 ? call("inner", { prompt: "Go" }) : "Middle."],
        usage,
      }),
      { tools: [inner.asTool({ name: "inner", description: "Inner." })] },
    );
    const { agent } = make(
      (_context, index) => ({
        parts: [index === 0 ? call("middle", { prompt: "Go" }) : "Outer."],
        usage,
      }),
      { tools: [middle.asTool({ name: "middle", description: "Middle." })] },
    );
    const end = await agent.prompt("Go");
    expect(end.usage).toMatchObject({ totalTokens: 55, cost: { total: 55 } });
    expect(agent.state.usage.totalTokens).toBe(55);
  });

  it("R23: workers that run together share what is left", async () => {
    const { agent: worker, model } = make(
      (_context, index) => ({ parts: [call("look", { index })], usage: { input: 5 } }),
      { tools: [look] },
    );
    const calls = callAll([1, 2, 3].map((n) => ["work", { prompt: `Part ${n}` }]));
    const { agent } = make(askThen({ parts: calls, usage: { input: 5 } }), {
      tools: [worker.asTool({ name: "work", description: "Works." })],
      limits: { maxCostUsd: 50 },
    });
    const end = await agent.prompt("Go");
    expect(end).toMatchObject({ stop: "limit", limit: "maxCostUsd" });
    // Each alone had 45 left and would have made nine requests.
    expect(model.requests).toBeGreaterThanOrEqual(9);
    expect(model.requests).toBeLessThanOrEqual(11);
    expect(end.usage.cost?.total).toBe(5 + 5 * model.requests);
  });

  it("R23: a worker of a worker has what is left of all above", async () => {
    const { agent: inner, model } = make(
      (_context, index) => ({ parts: [call("look", { index })], usage: { input: 10 } }),
      { tools: [look] },
    );
    const usage = { input: 1 };
    const { agent: middle } = make(() => ({ parts: [call("inner", { prompt: "Go" })], usage }), {
      tools: [inner.asTool({ name: "inner", description: "Inner." })],
      limits: { maxTotalTokens: 1_000 },
    });
    const calls = callAll([1, 2].map((n) => ["middle", { prompt: `Part ${n}` }]));
    const { agent } = make(askThen({ parts: calls, usage }), {
      tools: [middle.asTool({ name: "middle", description: "Middle." })],
      limits: { maxTotalTokens: 60 },
    });
    await agent.prompt("Go");
    // 57 are left for both; each alone would have made six requests.
    expect(model.requests).toBeGreaterThanOrEqual(6);
    expect(model.requests).toBeLessThanOrEqual(7);
  });

  it("R23: none is started where nothing is left", async () => {
    const { agent: worker, model } = make(() => ({ parts: ["Found."], usage: { input: 60 } }));
    const calls = callAll([1, 2].map((n) => ["work", { prompt: `Part ${n}` }]));
    const { agent } = make(askThen(calls), {
      tools: [worker.asTool({ name: "work", description: "Works.", concurrent: false })],
      limits: { maxTotalTokens: 50 },
    });
    const { results } = await collect(agent);
    expect(model.requests).toBe(1);
    expect(readText(results[1])).toMatch(/nothing is left of the run's limit maxTotalTokens/);
  });

  it("R23: a limit on cost holds for a worker whose model has no price", async () => {
    const { price: _, ...unpriced } = priced;
    const { agent: worker, model } = make(() => "Found.", { model: unpriced });
    const { agent } = make(askThen(call("work", { prompt: "Go" })), {
      tools: [worker.asTool({ name: "work", description: "Works." })],
      limits: { maxCostUsd: 50 },
    });
    const { results } = await collect(agent);
    expect(model.requests).toBe(0);
    expect(readText(results[0])).toMatch(/price of model "scripted" is not known/);
  });

  it("R23: a run that a tool makes by hand has the same with `caller`", async () => {
    const model = scriptedModel([{ parts: ["Berne"], usage: { input: 7 } }]);
    const ask = defineTool({
      name: "ask",
      description: "Asks.",
      parameters: { type: "object" },
      execute: async (_args, context) => {
        const { text, usage } = await generate({
          protocol: model,
          model: priced,
          prompt: "The capital?",
          caller: context,
        });
        return { content: [{ type: "text", text }], usage };
      },
    });
    const { agent } = make(askThen({ parts: [call("ask")], usage: { input: 1 } }), {
      tools: [ask],
    });
    const end = await agent.prompt("Go");
    expect(end.usage.totalTokens).toBe(8);
  });
});

describe("abort", () => {
  it("R21: reaches all levels, and what they had spent is counted", async () => {
    const clock = manualClock();
    const stopped: string[] = [];
    const slow = defineTool({
      name: "slow",
      description: "Waits.",
      parameters: { type: "object" },
      execute: (_args, { signal }) =>
        new Promise<string>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            stopped.push("slow");
            reject(new Error("stopped"));
          });
        }),
    });
    const { agent: inner } = make(() => ({ parts: [call("slow")], usage: { input: 3 } }), {
      clock,
      tools: [slow],
    });
    const { agent: middle } = make(
      () => ({ parts: [call("inner", { prompt: "Go" })], usage: { input: 2 } }),
      { clock, tools: [inner.asTool({ name: "inner", description: "Inner." })] },
    );
    const { agent } = make(
      () => ({ parts: [call("middle", { prompt: "Go" })], usage: { input: 1 } }),
      { clock, tools: [middle.asTool({ name: "middle", description: "Middle." })] },
    );
    const done = agent.prompt("Go");
    await clock.advance(1);
    agent.abort();
    await clock.advance(0);
    const end = await done;
    expect(end.stop).toBe("aborted");
    expect(stopped).toEqual(["slow"]);
    expect(end.usage.totalTokens).toBe(6);
    expect(clock.pending).toBe(0);
  });

  it("R21: ends a worker that streams when its call times out", async () => {
    const clock = manualClock();
    const { agent: worker } = make(() => [say("I wait"), stall()], { clock });
    const ends: string[] = [];
    const work = worker.asTool({
      name: "work",
      description: "Works.",
      timeoutMs: 1_000,
      onEvent: (event) => void (event.type === "agent_end" && ends.push(event.stop)),
    });
    const { agent } = make(askThen(call("work", { prompt: "Go" })), { clock, tools: [work] });
    const done = agent.prompt("Go");
    await clock.advance(1_000);
    await done;
    expect(ends).toEqual(["aborted"]);
  });
});

describe("what others see of an agent that works for another", () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    execute: () => "Seen.",
  });

  it("onEvent receives every event with the id of the call; updates say what it does", async () => {
    const seen: [string, AgentEvent["type"]][] = [];
    const { agent: worker } = make(
      ({ messages }) => (messages.length === 1 ? [say("Let me look."), call("look")] : "Found."),
      { tools: [look] },
    );
    const work = worker.asTool({
      name: "work",
      description: "Works.",
      onEvent: (event, { id }) => seen.push([id, event.type]),
    });
    const { agent } = make(askThen(call("work", { prompt: "Go" }, "c1")), { tools: [work] });
    const updates: AgentToolResult[] = [];
    agent.subscribe((event) => {
      if (event.type === "tool_execution_update") updates.push(event.partialResult);
    });
    await agent.prompt("Go");
    expect(seen[0]).toEqual(["c1", "agent_start"]);
    expect(seen.at(-1)).toEqual(["c1", "agent_end"]);
    expect(seen).toContainEqual(["c1", "tool_execution_end"]);
    expect(updates.map(({ details }) => details)).toEqual([
      { turns: 1 },
      { turns: 1, tool: "look" },
      { turns: 2, tool: "look" },
    ]);
    expect(readText(updates[1])).toBe("Let me look.");
  });

  it("R20: onEvent that throws is reported, and harms nothing", async () => {
    const onError = vi.fn<(error: unknown) => void>();
    const { agent: worker } = make(() => "Found.", { onError });
    const work = worker.asTool({
      name: "work",
      description: "Works.",
      onEvent: () => {
        throw new Error("bad listener");
      },
    });
    const { agent } = make(askThen(call("work", { prompt: "Go" })), { tools: [work] });
    const { results } = await collect(agent);
    expect(readText(results[0])).toBe("Found.");
    expect(onError).toHaveBeenCalled();
  });

  it("its calls pass its middleware with the id of the call as parentId", async () => {
    const parents: unknown[] = [];
    const { agent: worker } = make(
      ({ messages }) => (messages.length === 1 ? call("look") : "Found."),
      {
        tools: [look],
        middleware: [
          {
            tool: (invocation, next) => {
              parents.push(invocation.parentId);
              return next();
            },
          },
        ],
      },
    );
    const work = worker.asTool({ name: "work", description: "Works." });
    const { agent } = make(askThen(call("work", { prompt: "Go" }, "c1")), { tools: [work] });
    await agent.prompt("Go");
    expect(parents).toEqual(["c1"]);
  });

  it("its trace is inside of the span of the tool, with tracing in both", async () => {
    const { api, lines } = fakeTelemetry();
    const { agent: worker } = make(
      ({ messages }) => (messages.length === 1 ? call("look") : "Found."),
      { tools: [look], middleware: [tracing(api, { agentName: "worker" })] },
    );
    const work = worker.asTool({ name: "work", description: "Works." });
    const { agent } = make(askThen(call("work", { prompt: "Go" })), {
      tools: [work],
      middleware: [tracing(api, { agentName: "boss" })],
    });
    await agent.prompt("Go");
    expect(lines).toEqual([
      "invoke_agent boss",
      "invoke_agent boss > chat scripted",
      "invoke_agent boss > execute_tool work",
      "invoke_agent boss > execute_tool work > invoke_agent worker",
      "invoke_agent boss > execute_tool work > invoke_agent worker > chat scripted",
      "invoke_agent boss > execute_tool work > invoke_agent worker > execute_tool look",
      "invoke_agent boss > execute_tool work > invoke_agent worker > chat scripted",
      "invoke_agent boss > chat scripted",
    ]);
  });
});

/** OpenTelemetry whose context follows promises, as its context manager for Node does. */
function fakeTelemetry(): { api: OpenTelemetryApi; lines: string[] } {
  interface Place extends TelemetryContext {
    path: string;
  }
  const storage = new AsyncLocalStorage<TelemetryContext>();
  const paths = new WeakMap<TelemetrySpan, string>();
  const lines: string[] = [];
  const root: Place = { path: "", getValue: () => undefined };
  const api: OpenTelemetryApi = {
    SpanKind: { INTERNAL: 0, CLIENT: 2 },
    SpanStatusCode: { ERROR: 2 },
    trace: {
      getTracer: () => ({
        startSpan(name, _options, context) {
          const { path } = (context ?? root) as Place;
          const own = path === "" ? name : `${path} > ${name}`;
          lines.push(own);
          const span: TelemetrySpan = { setAttributes() {}, setStatus() {}, end() {} };
          paths.set(span, own);
          return span;
        },
      }),
      setSpan: (_context, span): Place => ({ ...root, path: paths.get(span) ?? "" }),
    },
    context: {
      active: () => storage.getStore() ?? root,
      with: (context, work) => storage.run(context, work),
    },
  };
  return { api, lines };
}
