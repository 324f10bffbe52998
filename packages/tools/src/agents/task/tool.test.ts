import { tmpdir } from "node:os";
import { Agent, type AgentTool, type AgentToolResult, approval, type Limits } from "@gyre/agent";
import { type Context, type Model } from "@gyre/ai";
import {
  call,
  callAll,
  manualClock,
  type ManualClock,
  say,
  type ScriptAnswer,
  type ScriptedModel,
  scriptedModel,
  scriptedModelInfo,
  type ScriptPart,
  type ScriptStep,
  stall,
} from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import { ToolRegistry } from "../../contract/registry.ts";
import type { Access, GuardedTool } from "../../contract/access.ts";
import { AGENT_KINDS } from "./kinds.ts";
import { noSandbox } from "../../sandbox/sandbox.ts";
import { SeenFiles } from "../../workspace/seen.ts";
import { PROGRESS_MS, type SubAgentProgress } from "../sub-agent.ts";
import { MAX_TASKS_AT_ONCE, type TaskOptions, taskTool } from "./tool.ts";
import { openWorkspace } from "../../workspace/workspace.ts";

const priced: Model = {
  ...scriptedModelInfo,
  price: { input: 1_000_000, output: 1_000_000 },
};

let env: ToolEnv;
let clock: ManualClock;

beforeEach(async () => {
  clock = manualClock();
  env = {
    workspace: await openWorkspace(tmpdir()),
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: tmpdir(),
    environment: {},
    clock,
  };
});

afterEach(() => env.workspace.close());

function tool(name: string, execute: AgentTool["execute"] = () => `${name} ran`): AgentTool {
  return { name, description: name, parameters: { type: "object" }, execute };
}

function textOfResult(result: AgentToolResult | undefined): string {
  return (result?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

interface Setup {
  /** What the agent that gives the tasks says; then "Done". */
  calls: ScriptAnswer;
  /** What sub-agents say. */
  script: readonly ScriptStep[] | ((context: Context, index: number) => ScriptAnswer);
  tools?: readonly AgentTool[];
  options?: Partial<TaskOptions>;
  limits?: Limits;
}

interface Playing {
  agent: Agent;
  model: ScriptedModel;
  results: AgentToolResult[];
  updates: AgentToolResult[];
  done: Promise<unknown>;
}

function start({ calls, script, tools = [], options = {}, limits = {} }: Setup): Playing {
  const model = scriptedModel(
    typeof script === "function" ? (context, _options, index) => script(context, index) : script,
    { clock },
  );
  const task = taskTool(env, {
    client: model,
    model: priced,
    tools: new ToolRegistry(tools),
    ...options,
  });
  const asker = scriptedModel([calls, "Done"], { clock });
  const agent = new Agent({
    protocol: asker,
    model: priced,
    tools: [task],
    clock,
    limits,
  });
  const results: AgentToolResult[] = [];
  const updates: AgentToolResult[] = [];
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") results.push(event.result);
    if (event.type === "tool_execution_update") updates.push(event.partialResult);
  });
  return { agent, model, results, updates, done: agent.prompt("Go") };
}

async function play(setup: Setup): Promise<Playing & { result: AgentToolResult; text: string }> {
  const playing = start(setup);
  await playing.done;
  const [result] = playing.results;
  if (!result) throw new Error("There is no result.");
  return { ...playing, result, text: textOfResult(result) };
}

const give = (args: Record<string, unknown> = {}): ReturnType<typeof call> =>
  call("task", { description: "Look", prompt: "Find it", ...args });

/** Several tasks at once, distinguished by their prompts. */
const giveAll = (count: number): ScriptPart[] =>
  callAll(
    Array.from({ length: count }, (_, n) => [
      "task",
      { description: `Task ${n}`, prompt: `Prompt ${n}` },
    ]),
  );

describe("task", () => {
  it("gives a task to a sub-agent with a context of its own, and its answer back", async () => {
    const { text, model, result } = await play({
      calls: give(),
      script: [call("look"), "Found."],
      tools: [tool("look")],
    });
    expect(text).toBe("Found.");
    expect(result.details).toMatchObject({ stop: "done", turns: 2 });
    expect(result.details).not.toHaveProperty("messages");
    expect(model.calls[0]?.messages).toMatchObject([{ role: "user", content: "Find it" }]);
    expect(model.calls[0]?.systemPrompt).toMatch(/You are a sub-agent/);
  });

  it("keeps all messages for the application if asked to", async () => {
    const { result } = await play({
      calls: give(),
      script: ["Found."],
      options: { keepMessages: true },
    });
    expect(result.details).toMatchObject({
      messages: [{ role: "user" }, { role: "assistant" }],
    });
  });

  it("gives the tools that were asked for, and no others", async () => {
    const tools = [tool("look"), tool("write"), tool("run")];
    const { model } = await play({ calls: give({ tools: ["look"] }), script: ["Found."], tools });
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["look"]);
    const { model: all } = await play({
      calls: give(),
      script: ["Found."],
      tools,
      options: { toolNames: ["look", "run"] },
    });
    expect(all.calls[0]?.tools?.map(({ name }) => name)).toEqual(["look", "run"]);
  });

  it("refuses a tool that is not allowed, and says which are", async () => {
    const { text, result, model } = await play({
      calls: give({ tools: ["write"] }),
      script: [],
      tools: [tool("look"), tool("write")],
      options: { toolNames: ["look"] },
    });
    expect(result.isError).toBe(true);
    expect(text).toMatch(/cannot have the tool "write".*It can have: look\./);
    expect(model.requests).toBe(0);
  });

  it("gives a typed answer where a schema is asked for", async () => {
    const schema = {
      type: "object",
      properties: { count: { type: "integer" } },
      required: ["count"],
    };
    const { text, result } = await play({
      calls: give({ schema }),
      script: [call("final_answer", { count: "many" }), call("final_answer", { count: 3 })],
    });
    expect(text).toBe('{"count":3}');
    expect(result.details).toMatchObject({ value: { count: 3 }, stop: "terminated" });
  });

  it("reports where no answer fits the schema, with the text so far", async () => {
    const { text, result } = await play({
      calls: give({ schema: { type: "object", required: ["count"] } }),
      script: () => "I do not know.",
    });
    expect(result.isError).toBe(true);
    expect(text).toMatch(/without an answer that fits the schema[^]*I do not know\./);
  });

  it("refuses a schema that is not of an object", async () => {
    const { text } = await play({ calls: give({ schema: { type: "string" } }), script: [] });
    expect(text).toMatch(/the schema has to be of type "object"/);
  });

  it("asks another model by name, if that is allowed", async () => {
    const small: Model = { ...priced, id: "small-1" };
    const { model } = await play({
      calls: give({ model: "small" }),
      script: ["Found."],
      options: { models: { small } },
    });
    expect(model.calls[0]?.model.id).toBe("small-1");
    const { text } = await play({ calls: give({ model: "constructor" }), script: [] });
    expect(text).toMatch(/model "constructor" cannot be chosen\. Available: scripted\./);
  });

  describe("kinds", () => {
    const guarded = (name: string, kind: Access["kind"]): GuardedTool => ({
      ...tool(name),
      execute: () => `${name} ran`,
      access: () => ({ kind, targets: [], summary: `Would ${name}` }),
    });
    const reviewer = {
      name: "reviewer",
      description: "reviews",
      instructions: "Be strict.",
      tools: ["look"],
      model: "wise",
    };

    it("are what a call asks for, and all that the model has to know of them", async () => {
      const task = taskTool(env, {
        client: scriptedModel([]),
        model: priced,
        tools: new ToolRegistry(),
        agents: [...AGENT_KINDS, reviewer],
      });
      expect(task.parameters).toMatchObject({
        properties: {
          agent: {
            enum: ["explore", "general", "reviewer"],
            description: "explore: only reads; general: all tools, default; reviewer: reviews",
          },
        },
      });
      expect(task.parameters).not.toHaveProperty("properties.schema");
    });

    it("have their own tools, instructions and model", async () => {
      const wise = { ...priced, id: "wise-1" };
      const { model, text } = await play({
        calls: give({ agent: "reviewer" }),
        script: ["Fine."],
        tools: [tool("look"), tool("write")],
        options: { agents: [reviewer], findModel: () => Promise.resolve(wise) },
      });
      expect(text).toBe("Fine.");
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["look"]);
      expect(model.calls[0]?.systemPrompt).toContain("Be strict.");
      expect(model.calls[0]?.model.id).toBe("wise-1");
    });

    it("whose model is not there are asked by that of the caller, and say so", async () => {
      const { text } = await play({
        calls: give({ agent: "reviewer" }),
        script: ["Fine."],
        tools: [tool("look")],
        options: {
          agents: [reviewer],
          findModel: () => Promise.reject(new Error('There is no model "wise".')),
        },
      });
      expect(text).toContain("Fine.");
      expect(text).toContain('Its model could not be used (There is no model "wise".)');
    });

    it("that only read refuse what does more, and tools that do not say what they do", async () => {
      const { model } = await play({
        calls: give({ agent: "explore" }),
        script: [call("read"), call("git"), "Seen."],
        tools: [
          guarded("read", "read"),
          guarded("git", "write"),
          tool("grep"),
          guarded("shell", "run"),
        ],
        options: { agents: AGENT_KINDS },
      });
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["read", "git"]);
      const results = model.calls[2]?.messages.filter(({ role }) => role === "toolResult");
      expect(results).toMatchObject([
        { isError: false },
        { isError: true, content: [{ text: expect.stringContaining("only reading is allowed") }] },
      ]);
    });

    it('are named where a call asks for none, and "general" is not there', async () => {
      const { text } = await play({
        calls: give(),
        script: [],
        options: { agents: [reviewer] },
      });
      expect(text).toContain('there is no agent "general". Available: reviewer.');
    });

    it("have no tool that the caller has not at that time", async () => {
      const { model } = await play({
        calls: give(),
        script: ["Done."],
        tools: [tool("look"), tool("write")],
        options: { agents: AGENT_KINDS, isAllowed: (name) => name === "look" },
      });
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["look", "task"]);
    });
  });

  it("lists what a sub-agent and its own have called, with what they cost", async () => {
    const { result, updates } = await play({
      calls: give({ prompt: "outer" }),
      script: (context, index) => {
        const usage = { cost: { total: 1 } };
        const parts =
          context.messages[0]?.content !== "outer"
            ? context.messages.length === 1
              ? [call("look", { at: "b" })]
              : ["Inner."]
            : index === 0
              ? [call("look", { at: "a" }), give({ prompt: "inner" })]
              : ["Outer."];
        return { parts, usage };
      },
      tools: [tool("look")],
    });
    const inner = { tool: "look", title: '{"at":"b"}', state: "ok" };
    expect(result.details).toMatchObject({
      callCount: 2,
      calls: [
        { tool: "look", title: '{"at":"a"}', state: "ok" },
        { tool: "task", title: "Look", state: "ok", calls: [inner] },
      ],
      usage: { cost: { total: 4 } },
    });
    expect(updates.length).toBeGreaterThan(0);
  });

  describe("progress", () => {
    it("reports the last tool and the text, not more often than the clock allows", async () => {
      const { updates, done } = start({
        calls: give(),
        script: [
          call("look", { at: "a.ts" }),
          { parts: [say("It is in the second file.")], chunkSize: 1, betweenMs: 50 },
        ],
        tools: [tool("look")],
      });
      await clock.advance(5_000);
      await done;
      const details = updates.map((update) => update.details as SubAgentProgress);
      expect(details[0]).toEqual({ turns: 1, usage: {}, callCount: 0, calls: [] });
      expect(details.some(({ tool: last }) => last === 'look {"at":"a.ts"}')).toBe(true);
      expect(details.at(-1)?.text).toMatch(/^It is in the/);
      // 25 letters, 50 ms apart.
      expect(updates.length).toBeLessThanOrEqual(2 + (25 * 50) / PROGRESS_MS);
      expect(clock.pending).toBe(0);
    });
  });

  describe("budgets", () => {
    it("counts what sub-agents cost into the run", async () => {
      const { agent } = await play({
        calls: { parts: [give()], usage: { input: 1 } },
        script: [{ parts: ["Found."], usage: { input: 7, output: 3 } }],
      });
      expect(agent.state.usage.totalTokens).toBe(11);
    });

    it("stops a sub-agent at its own limits, says so and keeps the text so far", async () => {
      const { text, result } = await play({
        calls: give(),
        script: (_context, index) => [say(`Step ${index}.`), call("look", { index })],
        tools: [tool("look")],
        options: { limits: { maxTurns: 3 } },
      });
      expect(result).toMatchObject({
        isError: true,
        details: { stop: "limit", limit: "maxTurns", turns: 3 },
      });
      expect(text).toMatch(/stopped after 3 turns.*maxTurns[^]*Step 2\./);
    });

    it("gives a sub-agent no more than what is left of the run's limits", async () => {
      const { result, model } = await play({
        calls: { parts: [give()], usage: { input: 40 } },
        script: (_context, index) => ({
          parts: [call("look", { index })],
          usage: { input: 25 },
        }),
        tools: [tool("look")],
        options: { limits: { maxTotalTokens: 1_000 } },
        limits: { maxTotalTokens: 100 },
      });
      expect(model.requests).toBe(3);
      expect(result.isError).toBe(true);
    });

    it("shares what is left among those that run at the same time", async () => {
      const { model, results } = await play({
        calls: { parts: giveAll(2), usage: { input: 1 } },
        script: (_context, index) => ({
          parts: [call("look", { index })],
          usage: { input: 25 },
        }),
        tools: [tool("look")],
        limits: { maxTotalTokens: 101 },
      });
      // Each alone would have made four requests.
      expect(model.requests).toBeLessThanOrEqual(5);
      expect(results.every(({ isError }) => isError)).toBe(true);
    });

    it("starts none where nothing is left", async () => {
      const { results, model } = await play({
        calls: { parts: giveAll(5), usage: { input: 1 } },
        script: () => ({ parts: ["Found."], usage: { input: 30 } }),
        limits: { maxTotalTokens: 101 },
      });
      expect(model.requests).toBe(MAX_TASKS_AT_ONCE);
      expect(textOfResult(results.at(-1))).toMatch(
        /nothing is left of the run's limit maxTotalTokens/,
      );
    });

    it("stops a sub-agent when the time of the run is over", async () => {
      const { done, results } = start({
        calls: give(),
        script: [[say("I wait"), stall()]],
        limits: { maxDurationMs: 1_000 },
      });
      await clock.advance(1_000);
      await done;
      expect(textOfResult(results[0])).toMatch(/was stopped after 1 turn/);
    });
  });

  describe("depth and number", () => {
    const readPrompt = ({ messages }: Context): unknown => messages[0]?.content;

    it("lets a sub-agent have sub-agents, and those none", async () => {
      const { text, model } = await play({
        calls: give({ prompt: "outer" }),
        script: (context, index) => {
          if (readPrompt(context) !== "outer") return "Inner found.";
          return index === 0 ? give({ prompt: "inner" }) : "Outer found.";
        },
        tools: [tool("look")],
      });
      expect(text).toBe("Outer found.");
      expect(model.calls.map(({ tools }) => tools?.map(({ name }) => name))).toEqual([
        ["look", "task"],
        ["look"],
        ["look", "task"],
      ]);
    });

    it("says to a sub-agent at the greatest depth that it has none of its own", async () => {
      const { model } = await play({
        calls: give({ prompt: "outer" }),
        script: (context, index) => {
          if (readPrompt(context) !== "outer") return "Inner found.";
          return index === 0 ? give({ prompt: "inner", tools: ["task"] }) : "Outer found.";
        },
      });
      expect(model.calls.at(-1)?.messages.at(-1)).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/A sub-agent this deep has none of its own/) }],
      });
    });

    it("counts the cost of a sub-agent's sub-agents once", async () => {
      const { agent } = await play({
        calls: { parts: [give({ prompt: "outer" })], usage: { input: 1 } },
        script: (context, index) => {
          const usage = { input: 10 };
          if (readPrompt(context) !== "outer") return { parts: ["Inner found."], usage };
          return { parts: [index === 0 ? give({ prompt: "inner" }) : "Outer found."], usage };
        },
      });
      expect(agent.state.usage.totalTokens).toBe(31);
    });

    it("runs at most four at once; the others wait for their turn", async () => {
      let running = 0;
      let most = 0;
      const look = tool("look", async () => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => clock.after(10, resolve));
        running--;
        return "seen";
      });
      const { done, results } = start({
        calls: giveAll(7),
        script: ({ messages }) => (messages.length === 1 ? call("look") : "Found."),
        tools: [look],
      });
      await clock.advance(100);
      await done;
      expect(most).toBe(MAX_TASKS_AT_ONCE);
      expect(results.map(textOfResult)).toEqual(Array.from({ length: 7 }, () => "Found."));
    });
  });

  describe("abort", () => {
    it("reaches a sub-agent and its tools, and its cost is counted", async () => {
      let stopped = false;
      const slow = tool("slow", (_args, { signal }) => {
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            stopped = true;
            reject(new Error("stopped"));
          });
        });
      });
      const { agent, results, done } = start({
        calls: give(),
        script: [{ parts: [say("I begin."), call("slow")], usage: { input: 9 } }],
        tools: [slow],
      });
      await clock.advance(1);
      agent.abort();
      await clock.advance(0);
      await done;
      expect(stopped).toBe(true);
      expect(results[0]?.details).toMatchObject({ stop: "aborted" });
      expect(textOfResult(results[0])).toMatch(/was stopped after 1 turn[^]*I begin\./);
      expect(agent.state.usage.totalTokens).toBe(9);
    });

    it("reaches one that streams, one deeper, and those that wait", async () => {
      const { agent, model, results, done } = start({
        calls: giveAll(6),
        script: ({ messages }) =>
          messages[0]?.content === "inner" ? [say("I wait"), stall()] : give({ prompt: "inner" }),
      });
      await clock.advance(1);
      expect(model.requests).toBe(2 * MAX_TASKS_AT_ONCE);
      agent.abort();
      await clock.advance(0);
      await done;
      expect(results).toHaveLength(6);
      expect(model.requests).toBe(2 * MAX_TASKS_AT_ONCE);
      expect(clock.pending).toBe(0);
    });
  });

  describe("permissions", () => {
    it("hold inside of a sub-agent, with the id of the call that gave the task", async () => {
      const asked: unknown[] = [];
      const { model } = await play({
        calls: give(),
        script: [call("write", {}, "inner"), "Not allowed."],
        tools: [tool("write")],
        options: {
          middleware: [
            approval(({ toolCall, parentId }) => {
              asked.push([toolCall.id, parentId]);
              return { deny: "read only" };
            }),
          ],
        },
      });
      expect(asked).toEqual([["inner", "call_1"]]);
      expect(model.calls[1]?.messages.at(-1)).toMatchObject({ isError: true });
    });

    it("may be asked for while the sub-agent waits", async () => {
      const { text } = await play({
        calls: give(),
        script: [call("write"), "Written."],
        tools: [tool("write")],
        options: { middleware: [approval(() => Promise.resolve("allow"))] },
      });
      expect(text).toBe("Written.");
    });

    it("that only a later answer could give fail the task clearly", async () => {
      const { text, result, agent } = await play({
        calls: give(),
        script: [[say("I want to write."), call("write")]],
        tools: [tool("write")],
        options: { middleware: [approval(() => "suspend")] },
      });
      expect(result.isError).toBe(true);
      expect(text).toMatch(
        /"write" \(Tool "write" needs approval\.\) waits for a person[^]*I want to write\./,
      );
      expect(agent.state.pending).toEqual([]);
    });
  });

  it("reports a failure of the model", async () => {
    const { text, result } = await play({
      calls: give(),
      script: [
        { error: { message: "No such model", failure: { kind: "bad_request", retryable: false } } },
      ],
    });
    expect(result).toMatchObject({ isError: true, details: { stop: "error" } });
    expect(text).toMatch(/The sub-agent failed after 1 turn: No such model/);
  });

  it("reports what a call would do", async () => {
    const task = taskTool(env, {
      client: scriptedModel([]),
      model: priced,
      tools: new ToolRegistry(),
    });
    expect(await task.access({ description: "Look", prompt: "Find it" })).toEqual({
      kind: "agent",
      targets: ["scripted/scripted"],
      summary: "Sub-agent: Look",
    });
    expect(() => task.access({ description: "Look", model: "other" })).toThrow(/cannot be chosen/);
  });

  it("takes a registry that has no such tool yet, and names that there are", () => {
    const options = { client: scriptedModel([]), model: priced };
    expect(() => taskTool(env, { ...options, tools: new ToolRegistry([tool("task")]) })).toThrow(
      /a tool "task" already/,
    );
    expect(() =>
      taskTool(env, { ...options, tools: new ToolRegistry(), toolNames: ["look"] }),
    ).toThrow(/no tool "look"/);
  });
});
