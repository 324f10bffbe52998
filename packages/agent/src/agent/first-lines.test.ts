import { type Model, type ProtocolClient } from "@gyre/ai";
import { call, fail, manualClock, say, scriptedModel, stall } from "@gyre/ai/testing";
import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import * as z from "zod";
import {
  Agent,
  type AgentEnd,
  DEFAULT_MAX_TURNS,
  defineTool,
  generate,
  type Middleware,
  OutputError,
  RunFailedError,
} from "../index.ts";
import { access } from "../model-access.ts";
import { access as nodeAccess } from "../node/model-access.ts";

const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `Rain in ${city}.`,
});

afterEach(() => void vi.restoreAllMocks());

/** The services and the catalog of Node, with a script in place of the services. */
function useScript(protocol: ProtocolClient): void {
  vi.spyOn(nodeAccess, "createClient").mockResolvedValue(protocol);
}

describe("the first lines", () => {
  it("name a model, and print the text of the answer", async () => {
    const script = scriptedModel([call("weather", { city: "Bern" }), "It rains."]);
    useScript(script);
    const agent = new Agent({
      model: "anthropic/claude-sonnet-4-5",
      instructions: "Be brief.",
      tools: [weather],
    });
    const end = await agent.prompt("How is the weather in Bern?");
    expect(end.text).toBe("It rains.");
    expect(script.calls[0]).toMatchObject({ systemPrompt: "Be brief." });
    expect(agent.state.model).toMatchObject({ provider: "anthropic", id: "claude-sonnet-4-5" });
  });

  it("stream the text", async () => {
    const script = scriptedModel([
      [say("Let me see. "), call("weather", { city: "Bern" })],
      "Rain.",
    ]);
    const agent = new Agent({ model: script.model, protocol: script, tools: [weather] });
    const parts: string[] = [];
    for await (const text of agent.run("Weather?").textStream) parts.push(text);
    expect(parts.join("")).toBe("Let me see. Rain.");
  });

  it("a run that failed does not look like an empty answer", async () => {
    const script = scriptedModel(() => fail("no such key", { kind: "auth", status: 401 }));
    const agent = new Agent({ model: script.model, protocol: script });
    const end = await agent.prompt("Hi");
    expect(end.stop).toBe("error");
    expect(() => end.text).toThrow(RunFailedError);
    expect(() => end.text).toThrow(/no such key/);
    const read = async (): Promise<void> => {
      for await (const text of agent.run("Hi").textStream) expect(text).toBe("");
    };
    await expect(read()).rejects.toThrow(/no such key/);
  });

  it("the text of an end is not in copies of it", async () => {
    const script = scriptedModel(["Hello"]);
    const end = await new Agent({ model: script.model, protocol: script }).prompt("Hi");
    expect(Object.keys(end)).not.toContain("text");
    expect(JSON.parse(JSON.stringify(end))).not.toHaveProperty("text");
    expect(structuredClone(end)).not.toHaveProperty("text");
  });

  it("a typed answer is in the end", async () => {
    const script = scriptedModel(['{"city":"Bern"}', "no idea", "none", "none", "none"]);
    const agent = new Agent({ model: script.model, protocol: script });
    const output = z.object({ city: z.string() });
    const end = await agent.prompt("Where?", { output });
    expectTypeOf(end).toEqualTypeOf<AgentEnd<{ city: string }>>();
    expect(end.output).toEqual({ city: "Bern" });
    const without = await agent.prompt("Where?", { output });
    expect(() => without.output).toThrow(OutputError);
  });
});

describe("a model by its name", () => {
  it("is looked up once, while the agent counts as running", async () => {
    const script = scriptedModel(["One", "Two"]);
    const find = vi.spyOn(nodeAccess, "findModel");
    const agent = new Agent({ model: "anthropic/claude-sonnet-4-5", protocol: script });
    expect(agent.state.model).toBeUndefined();
    const first = agent.prompt("1");
    expect(agent.isRunning).toBe(true);
    await expect(agent.prompt("2")).rejects.toThrow(/the agent is running/);
    let idle = false;
    void agent.waitForIdle().then(() => (idle = true));
    await first;
    await agent.waitForIdle();
    expect(idle).toBe(true);
    await agent.prompt("2");
    expect(find).toHaveBeenCalledTimes(1);
  });

  it("R21: an abort while it is looked up ends the run before the model is asked", async () => {
    const script = scriptedModel(["One"]);
    const agent = new Agent({ model: "anthropic/claude-sonnet-4-5", protocol: script });
    const end = agent.prompt("1");
    agent.abort();
    expect(await end).toMatchObject({ stop: "aborted" });
    expect(script.calls).toHaveLength(0);
  });

  it("can be set during a run, for its next turn", async () => {
    const script = scriptedModel([call("weather", { city: "Bern" }), "Rain."]);
    const agent = new Agent({ model: script.model, protocol: script, tools: [weather] });
    agent.subscribe((event) => {
      if (event.type === "tool_execution_start") agent.setModel("anthropic/claude-opus-4-5");
    });
    const end = await agent.prompt("Weather?");
    expect(end.text).toBe("Rain.");
    expect(agent.state.model).toMatchObject({ id: "claude-opus-4-5" });
  });

  it("that fits no model rejects the prompt, and the agent is idle", async () => {
    const agent = new Agent({ model: "anthropic/claude-sonnett", protocol: scriptedModel([]) });
    await expect(agent.prompt("Hi")).rejects.toThrow(/Did you mean anthropic\/claude-sonnet/);
    expect(agent.isRunning).toBe(false);
    expect(agent.state.messages).toEqual([]);
  });

  it.each(["ollama/llama3", "vllm/Qwen/Qwen3-8B"])(
    "may be one of a server on this machine: %s",
    async (name) => {
      const script = scriptedModel(["Hi"]);
      useScript(script);
      const agent = new Agent({ model: name });
      await agent.prompt("Hi");
      const { provider, id } = agent.state.model ?? {};
      expect(`${provider}/${id}`).toBe(name);
    },
  );

  it("of a service that is not known says how to write it", async () => {
    const agent = new Agent({ model: "acme/llama" });
    await expect(agent.prompt("Hi")).rejects.toThrow(/model\("acme", "llama"\)/);
  });

  it("outside of Node says what to give", async () => {
    await expect(access.findModel("openai/gpt-5")).rejects.toThrow(
      /findModel\("openai\/gpt-5"\) of @gyre\/ai\/models/,
    );
    await expect(access.createClient()).rejects.toThrow(/give it a `protocol`/);
  });
});

describe("one run of its own", () => {
  it("has its own settings, and the next one has the agent's again", async () => {
    const script = scriptedModel(() => "Ok");
    const options: unknown[] = [];
    const protocol: ProtocolClient = {
      stream: (model: Model, context, given) => {
        options.push(given);
        return script.stream(model, context, given);
      },
    };
    const agent = new Agent({
      model: script.model,
      protocol,
      temperature: 0,
      seed: 1,
      headers: { a: "1" },
    });
    const providerOptions = { openai: { serviceTier: "flex" } } as const;
    const own = { temperature: 1, maxTokens: 5, seed: 2, providerOptions, headers: { b: "2" } };
    await agent.prompt("1", own);
    await agent.prompt("2");
    expect(options).toMatchObject([
      { temperature: 1, maxTokens: 5, seed: 2, providerOptions, headers: { a: "1", b: "2" } },
      { temperature: 0, seed: 1, headers: { a: "1" } },
    ]);
    expect(options[1]).not.toHaveProperty("maxTokens");
  });

  it("has tools and limits of its own; its middleware is inside of the agent's", async () => {
    const seen: string[] = [];
    const note = (name: string): Middleware => ({
      tool: async (invocation, next) => {
        seen.push(name);
        return next(invocation);
      },
    });
    const script = scriptedModel(() => call("weather", { city: "Bern" }));
    const agent = new Agent({ model: script.model, protocol: script, middleware: [note("agent")] });
    const end = await agent.prompt("Weather?", {
      tools: [weather],
      limits: { maxTurns: 2 },
      middleware: [note("run")],
    });
    expect(end).toMatchObject({ stop: "limit", limit: "maxTurns", turns: 2 });
    expect(seen).toEqual(["agent", "run", "agent", "run"]);
    expect(agent.state.tools).toEqual([]);
  });

  it("R23: ends after 100 turns unless it has another limit, and can be continued", async () => {
    let turn = 0;
    const script = scriptedModel(() => call("weather", { city: `Bern ${++turn}` }));
    const agent = new Agent({ model: script.model, protocol: script, tools: [weather] });
    const end = await agent.prompt("Weather?");
    expect(end).toMatchObject({ stop: "limit", limit: "maxTurns", turns: DEFAULT_MAX_TURNS });
    expect(await agent.continue({ limits: { maxTurns: 1 } })).toMatchObject({ turns: 1 });
    const long = await agent.continue({ limits: { maxTurns: 101 } });
    expect(long.turns).toBe(101);
  });
});

describe("messages without a time", () => {
  it("get the time of the call; others stay as they are", async () => {
    const script = scriptedModel(["Ok"]);
    const kept = { role: "user", content: "Hi", timestamp: 7 } as const;
    const agent = new Agent({
      model: script.model,
      protocol: script,
      messages: [kept, { ...(await answer()), timestamp: 8 }],
      clock: manualClock(42),
    });
    await agent.prompt({ role: "user", content: "And now?" });
    expect(agent.state.messages[0]).toBe(kept);
    expect(agent.state.messages[2]).toEqual({ role: "user", content: "And now?", timestamp: 42 });
  });

  async function answer(): Promise<NonNullable<AgentEnd["finalMessage"]>> {
    const script = scriptedModel(["Hello"]);
    const end = await new Agent({ model: script.model, protocol: script }).prompt("Hi");
    if (!end.finalMessage) throw new Error("There is no answer.");
    return end.finalMessage;
  }
});

describe("what people write by mistake", () => {
  const make = (options: object): Agent => new Agent(options);
  it.each([
    [
      { initialState: { model: "x" } },
      /no option "initialState": write its parts beside it: model/,
    ],
    [{ systemPrompt: "Be brief." }, /no option "systemPrompt": write instructions/],
    [{ maxSteps: 3 }, /no option "maxSteps": write limits: \{ maxTurns \}/],
    [{ stopWhen: [] }, /no option "stopWhen": write limits: \{ maxTurns \}/],
    [{ messages: [{ role: "system", content: "Be brief." }] }, /no role "system".*`instructions`/],
    [{ messages: [{ role: "assistant", content: "Hi" }] }, /is a list of blocks.*got "Hi"/],
    [{ protocol: () => scriptedModel([]) }, /`protocol` is a function.*createModelClient\(\)/],
    [{ protocol: {} }, /`protocol` has no method `stream`.*createModelClient\(\)/],
    [{ thinkingLevel: "most" }, /no thinking level "most": write off, minimal, low.*or max/],
    [
      { instruction: "Be brief." },
      /no option "instruction" of new Agent. Did you mean instructions/,
    ],
    [{ max_tokens: 9 }, /no option "max_tokens" of new Agent. Did you mean maxTokens/],
    [{ tool: [] }, /no option "tool" of new Agent. Did you mean tools/],
    [{ fallbackModels: "openai/gpt-5" }, /`fallbackModels` is a list/],
    [{ middleware: {} }, /`middleware` is a list/],
    [{ sink: { append: () => {} } }, /`sink` is a function: write sink: createJournal\(session\)/],
    [{ sink: "file" }, /`sink` is a function: write sink: \(event\) => /],
    [{ middleware: [() => {}] }, /A middleware is an object: write \{ tool/],
    [{ handoffs: [new Agent()] }, /agent\.asHandoff\(\{ name, description \}\)/],
  ])("%j is answered with what to write", (options, text) => {
    expect(() => make(options)).toThrow(text);
  });

  it("options with more in them than an agent has are no misspelling", () => {
    const more = { entries: [], settings: {}, mode: "fast", recordedResult: () => undefined };
    expect(() => make({ ...more, ...scriptedModel([]) })).not.toThrow();
  });

  it("subscribe() with an observer, and asTool() without options, are answered with what to write", () => {
    const agent = new Agent();
    expect(() => agent.subscribe({ next: () => {} } as never)).toThrow(/A listener is a function/);
    expect(() => agent.asTool(undefined as never)).toThrow(/write asTool\(\{ name, description/);
    expect(() => agent.asTool({ name: "a", descripton: "A." } as never)).toThrow(
      /no option "descripton" of asTool. Did you mean description/,
    );
  });

  it("prompt(undefined) is answered with what to write", async () => {
    const script = scriptedModel([]);
    const agent = new Agent({ model: script.model, protocol: script });
    await expect(agent.prompt(undefined as never)).rejects.toThrow(
      /A prompt is a text, or messages/,
    );
  });

  it.each([
    [{ abortSignal: new AbortController().signal }, /no option "abortSignal": write signal/],
    [{ schema: {} }, /no option "schema": write output/],
    [{ temprature: 1 }, /no option "temprature" of \w.*\. Did you mean temperature/],
  ])("prompt() with %j is answered with what to write", async (options, text) => {
    const script = scriptedModel(["Hi"]);
    const agent = new Agent({ model: script.model, protocol: script });
    await expect(agent.prompt("Hi", options as never)).rejects.toThrow(text);
    expect(() => agent.run("Hi", options as never)).toThrow(text);
    await expect(
      generate({ model: script.model, protocol: script, prompt: "Hi", ...options } as never),
    ).rejects.toThrow(text);
    expect(script.calls).toEqual([]);
  });

  it("prompt() with addresses of images is answered with what to write", async () => {
    const script = scriptedModel(["Hi"]);
    const agent = new Agent({ model: script.model, protocol: script });
    const images = ["https://example.org/tea.png"] as never;
    await expect(agent.prompt("Hi", { images })).rejects.toThrow(/An image is \{ type: "image"/);
    await expect(agent.continue({ decision: {} } as never)).rejects.toThrow(
      /no option "decision" of continue. Did you mean decisions/,
    );
  });

  it.each([
    [{ specificationVersion: "v3", provider: "a", modelId: "b" }, /write \.\.\.fromAiSdk\(model\)/],
    [scriptedModel([]), /`model` is a client: give it as `protocol`/],
    [{ id: "llama3" }, /`model` has no `api`: write a name, or model\(service, id\)/],
  ])("%j in place of a model is answered with what to write", async (model, text) => {
    await expect(make({ model }).prompt("Hi")).rejects.toThrow(text);
  });

  it("an agent among tools is answered with asTool()", async () => {
    const script = scriptedModel([]);
    const start = { model: script.model, protocol: script };
    const agent = new Agent({ ...start, tools: [new Agent(start) as never] });
    await expect(agent.prompt("Hi")).rejects.toThrow(/agent\.asTool\(/);
  });

  it("setThinkingLevel() with a level that there is not is answered with what to write", () => {
    const agent = new Agent({ thinkingLevel: "low" });
    expect(() => agent.setThinkingLevel("ultra" as never)).toThrow(/no thinking level "ultra"/);
    expect(agent.state.thinkingLevel).toBe("low");
  });

  const schema = { type: "object", properties: {} } as const;
  const execute = (): string => "ok";
  const executeInOrder = (id: string, args: object, signal: object): string =>
    JSON.stringify({ id, args, signal });
  it.each<[object, RegExp]>([
    [{ name: "a", inputSchema: schema, execute }, /Tool "a" has no `parameters`/],
    [{ name: "a", parameters: schema }, /Tool "a" has no function `execute`/],
    [{ parameters: schema, execute }, /name of a tool has letters.*got undefined/],
    [
      { name: "a", parameters: schema, execute, needApproval: true },
      /no option "needApproval" of tool "a"\. Did you mean needsApproval/,
    ],
    [
      { name: "a", parameters: schema, execute: executeInOrder },
      /`execute` of tool "a" has 3 parameters: write execute\(args, \{ id, signal/,
    ],
    [{ name: "get weather!", parameters: schema, execute }, /letters, digits.*"get weather!"/],
    [{ name: "a", parameters: z.string(), execute }, /schema of type "string".*give an object/],
  ])("a tool %j is answered with what to write", async (tool, text) => {
    expect(() => defineTool(tool as never)).toThrow(text);
    const script = scriptedModel([]);
    const agent = new Agent({ model: script.model, protocol: script, tools: [tool as never] });
    await expect(agent.prompt("Hi")).rejects.toThrow(text);
  });

  it.each([
    ["AsyncGenerator", async function* () {}],
    ["Generator", function* () {}],
    ["Map", () => new Map([["a", 1]])],
    ["Response", () => new Response("Hi")],
    ["Error", () => new Error("No such tea.")],
  ])("a tool that returns %s is an error, not an empty object", async (what, run) => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    const tool = defineTool({ name: "a", description: "A.", parameters: schema, execute });
    const tools = [{ ...tool, execute: run as never }];
    const script = scriptedModel([call("a"), "Done."]);
    const agent = new Agent({ model: script.model, protocol: script, tools });
    const { messages } = await agent.prompt("Hi");
    const result = messages.find(({ role }) => role === "toolResult");
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result)).toContain(what);
    expect(warned).toHaveBeenCalledOnce();
  });

  it.each([
    {},
    Object.create(null),
    new (class Tea {
      name = "sencha";
    })(),
    new Date(0),
  ])("a tool may return %j", async (value) => {
    const tool = defineTool({ name: "a", description: "A.", parameters: schema, execute });
    const script = scriptedModel([call("a"), "Done."]);
    const tools = [{ ...tool, execute: () => value }];
    const agent = new Agent({ model: script.model, protocol: script, tools });
    const { messages } = await agent.prompt("Hi");
    const content = [{ type: "text", text: JSON.stringify(value) }];
    expect(messages.find(({ role }) => role === "toolResult")).toMatchObject({ content });
  });

  it("tools that are no list, and limits that there are not, are named", async () => {
    const script = scriptedModel([]);
    const start = { model: script.model, protocol: script };
    const named = new Agent({ ...start, tools: { weather } as never });
    await expect(named.prompt("Hi")).rejects.toThrow(/`tools` is a list/);
    const limited = new Agent({ ...start, limits: { maxSteps: 3 } as never });
    await expect(limited.prompt("Hi")).rejects.toThrow(/no limit "maxSteps"\. There are maxTurns/);
  });
});

describe("a call that a person has to approve", () => {
  const paid: unknown[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ amount: z.number().max(100) }),
    needsApproval: ({ amount }) => amount > 10,
    execute: ({ amount }) => {
      paid.push(amount);
      return { paid: amount };
    },
  });

  function make(script: Parameters<typeof scriptedModel>[0]): {
    agent: Agent;
    script: ReturnType<typeof scriptedModel>;
  } {
    paid.length = 0;
    const scripted = scriptedModel(script);
    const agent = new Agent({ model: scripted.model, protocol: scripted, tools: [pay] });
    return { agent, script: scripted };
  }

  it("R27: waits, and runs once it is approved; one that needs none runs at once", async () => {
    const { agent } = make([call("pay", { amount: 5 }), call("pay", { amount: 50 }, "p"), "Paid."]);
    const end = await agent.prompt("Pay.");
    expect(end.stop).toBe("suspended");
    expect(end.pending).toMatchObject([{ toolCall: { id: "p" }, reason: /needs approval/ }]);
    expect(paid).toEqual([5]);
    const done = await agent.continue({ decisions: { p: { type: "approve" } } });
    expect(done.text).toBe("Paid.");
    expect(paid).toEqual([5, 50]);
  });

  it("R27: may have its arguments changed; the transcript keeps the call, the result says so", async () => {
    const { agent, script } = make([call("pay", { amount: 50 }, "p"), "Paid."]);
    await agent.prompt("Pay.");
    await agent.continue({ decisions: { p: { type: "approve", args: { amount: 20 } } } });
    expect(paid).toEqual([20]);
    expect(agent.state.messages[1]).toMatchObject({ content: [{ arguments: { amount: 50 } }] });
    expect(JSON.stringify(script.calls[1]?.messages.at(-1))).toContain(
      "A person changed the arguments before the tool ran",
    );
  });

  it("R12: changed arguments are checked as those of the model", async () => {
    const { agent } = make([call("pay", { amount: 50 }, "p"), "No."]);
    await agent.prompt("Pay.");
    await agent.continue({ decisions: { p: { type: "approve", args: { amount: 2000 } } } });
    expect(paid).toEqual([]);
    expect(agent.state.messages[2]).toMatchObject({ isError: true, outcome: "invalid" });
  });

  it("R27: a decision on a call that does not wait is an error, and nothing is lost", async () => {
    const { agent } = make([call("pay", { amount: 50 }, "p"), "Paid."]);
    await agent.prompt("Pay.");
    await expect(agent.continue({ decisions: { q: { type: "approve" } } })).rejects.toThrow(
      'No call "q" waits for a decision. Open calls: p.',
    );
    expect(agent.state.pending).toHaveLength(1);
    expect(paid).toEqual([]);
  });

  it.each([
    [{ type: "approved" }, 'The decision on "p" is one of approve, deny, result and wait.'],
    [true, 'The decision on "p" is one of approve, deny, result and wait.'],
    [
      { type: "approve", arguments: { amount: 20 } },
      'There is no "arguments" of an approval: write args.',
    ],
    [
      { type: "approve", args: [20] },
      '"args" of the decision on "p" is an object: what the tool is run with.',
    ],
    [{ type: "approve", fingerprint: 1 }, '"fingerprint" of the decision on "p" is a text.'],
    [
      { type: "result", result: { text: "20" } },
      'The result for "p" has "content", a list of texts, images and files.',
    ],
  ])("R27: %j is no decision, and the call waits as before", async (decision, message) => {
    const { agent, script } = make([call("pay", { amount: 50 }, "p"), "Paid."]);
    await agent.prompt("Pay.");
    const before = structuredClone(agent.state.messages);
    const decisions = { p: decision as never };
    await expect(agent.continue({ decisions })).rejects.toThrow(message);
    const iterate = async (): Promise<void> => {
      for await (const _ of agent.continueRun({ decisions }));
    };
    await expect(iterate()).rejects.toThrow(message);
    expect(agent.isRunning).toBe(false);
    expect(agent.state.messages).toEqual(before);
    expect(agent.state.pending).toHaveLength(1);
    expect([paid, script.calls.length]).toEqual([[], 1]);
    const end = await agent.continue({ decisions: { p: { type: "approve" } } });
    expect([end.text, paid]).toEqual(["Paid.", [50]]);
  });

  it("R27: a wrong decision leaves what waits in a queue there", async () => {
    const { agent } = make([call("pay", { amount: 50 }, "p"), "Paid.", "More."]);
    await agent.prompt("Pay.");
    agent.steer("Hurry.");
    const decisions = { p: { type: "yes" } as never };
    await expect(agent.continue({ decisions })).rejects.toThrow("is one of approve");
    expect(agent.queued("steering")).toHaveLength(1);
  });
});

describe("a forced tool choice", () => {
  it.each([
    ["the first turn, so that the run ends", {}, ["required", undefined]],
    ["every turn where that is said", { toolChoiceInEveryTurn: true }, ["required", "required"]],
  ])("holds for %s", async (_, options, expected) => {
    const script = scriptedModel([call("weather", { city: "Bern" }), "Rain."]);
    const seen: unknown[] = [];
    const agent = new Agent({
      model: script.model,
      tools: [weather],
      toolChoice: "required",
      ...options,
      streamFn: (model, context, given) => {
        seen.push(given?.toolChoice);
        return script.stream(model, context, given);
      },
    });
    await agent.prompt("Weather?");
    expect(seen).toEqual(expected);
  });
});

describe("generate", () => {
  it("answers once, with text or a typed value", async () => {
    const script = scriptedModel(["Hello", '{"city":"Bern"}']);
    const start = { model: script.model, protocol: script };
    expect((await generate({ ...start, prompt: "Hi" })).text).toBe("Hello");
    const end = await generate({
      ...start,
      prompt: "Where?",
      output: z.object({ city: z.string() }),
    });
    expectTypeOf(end.output).toEqualTypeOf<{ city: string }>();
    expect(end.output).toEqual({ city: "Bern" });
  });

  it("works the type out of a plain JSON Schema too", async () => {
    const script = scriptedModel(['{"mood":"good"}']);
    const { output } = await generate({
      model: script.model,
      protocol: script,
      prompt: "Well?",
      output: {
        type: "object",
        properties: { mood: { enum: ["good", "bad"] } },
        required: ["mood"],
      },
    });
    expectTypeOf(output).toEqualTypeOf<{ mood: "good" | "bad" }>();
    expect(output.mood).toBe("good");
  });

  const json = '{"mood":"good"}';
  it.each([
    ["a fenced block", "```json\n" + json + "\n```"],
    ["a fenced block without a language", "```\n" + json + "\n```\n"],
    ["text around a fenced block", "Here it is:\n\n```json\n" + json + "\n```\n\nAnything else?"],
    ["text before it", `Here it is: ${json}`],
    ["text before it, on lines of its own", `Sure [1].\n\n${json}\n`],
  ])("takes JSON text as %s, without another request", async (_, text) => {
    const script = scriptedModel([text]);
    const { output } = await generate({
      model: script.model,
      protocol: script,
      prompt: "Well?",
      output: z.object({ mood: z.enum(["good", "bad"]) }),
    });
    expect(output).toEqual({ mood: "good" });
    expect(script.calls).toHaveLength(1);
  });

  it.each([
    ["two fenced blocks", "```json\n" + json + "\n```\nor\n```json\n" + json + "\n```"],
    ["text after it", `${json} or ${json}`],
    ["a part of a sentence that is JSON", "There are 7"],
  ])("asks again where it is not clear what the answer is: %s", async (_, text) => {
    const script = scriptedModel([text, call("final_answer", { answer: 8 })]);
    const { output } = await generate({
      model: script.model,
      protocol: script,
      prompt: "How many?",
      output: z.number(),
    });
    expect(output).toBe(8);
  });

  it.each([
    ["an array", z.array(z.string()), ["a", "b"]],
    ["an enumeration", z.enum(["good", "bad"]), "good"],
    ["a number", z.number(), 7],
    ["plain JSON Schema", { enum: ["good", "bad"] }, "bad"],
    ["a choice", z.union([z.string().min(20), z.number(), z.null()]), null],
  ])("takes a schema that is no object: %s", async (_, output, answer) => {
    const script = scriptedModel([
      call("final_answer", { answer: { no: "such thing" } }),
      call("final_answer", { answer }),
    ]);
    const called = await generate({ ...script, protocol: script, prompt: "Well?", output });
    expect(called.output).toEqual(answer);
    expect(called.turns).toBe(2);
    expect(script.calls[0]?.tools?.[0]?.parameters).toMatchObject({ type: "object" });
    const texts = scriptedModel([JSON.stringify(answer)]);
    const spelled = await generate({ ...texts, protocol: texts, prompt: "Well?", output });
    expect(spelled.output).toEqual(answer);
  });

  it("a schema that is no object may refer to itself, transform and refine", async () => {
    type Tree = readonly Tree[];
    const tree: z.ZodType<Tree> = z.lazy(() => z.array(tree));
    const nested = scriptedModel([
      call("final_answer", { answer: [["leaf"]] }),
      call("final_answer", { answer: [[], [[]]] }),
    ]);
    const found = await generate({ ...nested, protocol: nested, prompt: "Tree?", output: tree });
    expect(found.output).toEqual([[], [[]]]);

    const even = z.number().refine((value) => value % 2 === 0, "is odd");
    const output = z.array(even.transform(String));
    const script = scriptedModel([
      call("final_answer", { answer: [1] }),
      call("final_answer", { answer: [2] }),
    ]);
    const end = await generate({ ...script, protocol: script, prompt: "Even?", output });
    expect(end.output).toEqual(["2"]);
    expect(JSON.stringify(script.calls[1]?.messages)).toContain("is odd");
  });

  it("rejects where it is aborted", async () => {
    const script = scriptedModel(() => [say("It "), stall()]);
    const reason = new Error("The reader left.");
    const leave = AbortSignal.abort(reason);
    const options = { model: script.model, protocol: script, prompt: "Hi" };
    await expect(generate({ ...options, signal: leave })).rejects.toBe(reason);
    expect(script.calls).toEqual([]);
    const controller = new AbortController();
    const running = generate({ ...options, signal: controller.signal });
    await vi.waitFor(() => expect(script.calls).toHaveLength(1));
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
  });

  it("rejects where the model fails, and where no value fits", async () => {
    const failing = scriptedModel(() => fail("no such key", { kind: "auth", status: 401 }));
    await expect(
      generate({ model: failing.model, protocol: failing, prompt: "Hi" }),
    ).rejects.toThrow(RunFailedError);
    const vague = scriptedModel(() => "perhaps");
    const output = z.object({ city: z.string() });
    await expect(
      generate({ model: vague.model, protocol: vague, prompt: "Where?", output }),
    ).rejects.toThrow(OutputError);
  });
});
