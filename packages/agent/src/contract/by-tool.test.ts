import { call, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import {
  Agent,
  type AgentEnd,
  type AgentEvent,
  type AgentState,
  type AgentTool,
  approval,
  type Decision,
  type DecisionOf,
  defineTool,
  type PendingCall,
} from "../index.ts";

const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, celsius: 21 }),
});
const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({ amount: z.number() }),
  needsApproval: true,
  execute: async ({ amount }) => ({
    content: [{ type: "text", text: `${amount} paid.` }],
    details: { receipt: 7 },
  }),
});
const note = defineTool({
  name: "note",
  description: "Notes.",
  parameters: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  },
  execute: () => "Noted.",
});

const make = () => {
  const model = scriptedModel([
    call("weather", { city: "Bern" }),
    call("pay", { amount: 5 }, "p1"),
    "Done.",
  ]);
  return new Agent({ protocol: model, model: model.model, tools: [weather, pay, note] });
};

describe("an agent knows the types of its tools", () => {
  it("in the events of a run: toolName narrows args and details", async () => {
    const seen: unknown[] = [];
    for await (const event of make().run("Go")) {
      if (event.type === "tool_execution_start" && event.toolName === "weather") {
        expectTypeOf(event.args).toEqualTypeOf<{ city: string }>();
        seen.push(event.args.city);
      }
      if (event.type === "tool_execution_end") {
        expectTypeOf(event.toolName).toEqualTypeOf<"weather" | "pay" | "note">();
        if (event.toolName === "weather") {
          expectTypeOf(event.result.details).toEqualTypeOf<
            { city: string; celsius: number } | undefined
          >();
          seen.push(event.result.details?.celsius);
        }
        if (event.toolName === "pay") {
          expectTypeOf(event.result.details).toEqualTypeOf<{ receipt: number } | undefined>();
        }
        if (event.toolName === "note") {
          expectTypeOf(event.result.details).toEqualTypeOf<undefined>();
        }
      }
    }
    expect(seen).toEqual(["Bern", 21]);
  });

  it("in the events that listeners get", async () => {
    const agent = make();
    const amounts: number[] = [];
    agent.subscribe((event) => {
      if (event.type !== "tool_execution_start" || event.toolName !== "pay") return;
      expectTypeOf(event.args).toEqualTypeOf<{ amount: number }>();
      amounts.push(event.args.amount);
      // @ts-expect-error The tool has no such argument.
      void event.args.city;
    });
    agent.subscribe((event) => {
      if (event.type !== "tool_execution_end") return;
      // @ts-expect-error The agent has no such tool.
      if (event.toolName === "whether") throw new Error("There is no such tool.");
    });
    await agent.prompt("Go");
    expect(amounts).toEqual([5]);
  });

  it("R27: in the calls that wait for a person, of an end and of the state", async () => {
    const agent = make();
    const end = await agent.prompt("Go");
    for (const pending of [end.pending, agent.state.pending]) {
      const [first] = pending;
      if (first?.toolCall.name !== "pay") throw new Error("It waits for another call.");
      const { toolCall } = first;
      if (toolCall.name === "pay") {
        expectTypeOf(toolCall.arguments).toEqualTypeOf<{ amount: number }>();
        expect(toolCall.arguments.amount).toBe(5);
      }
    }
    const last = await agent.continue({ decisions: { p1: { type: "approve" } } });
    expect(last.text).toBe("Done.");
    expect((await make().run("Go").result()).pending[0]?.toolCall.name).toBe("pay");
  });

  it("in the questions of approval(), where it is given the tools", async () => {
    const asked: unknown[] = [];
    const script = scriptedModel([
      call("weather", { city: "Bern" }),
      call("pay", { amount: "5" }),
      call("note", { text: "Hi" }),
      "Done.",
    ]);
    const tools = [weather, { ...pay, needsApproval: false }, note];
    const ask = approval([weather, pay], (question) => {
      expectTypeOf(question.toolName).toEqualTypeOf<"weather" | "pay">();
      if (question.toolName === "pay") {
        expectTypeOf(question.args).toEqualTypeOf<{ amount: number }>();
        expectTypeOf(question.tool).toEqualTypeOf<typeof pay>();
        asked.push(question.args.amount);
        // @ts-expect-error The tool has no such argument.
        void question.args.city;
        return { deny: "too much" };
      }
      expectTypeOf(question.args).toEqualTypeOf<{ city: string }>();
      asked.push(question.args.city);
      // @ts-expect-error There is no such tool in the list.
      if (question.toolName === "note") throw new Error("Only those of the list are asked about.");
      return "allow";
    });
    const { model } = script;
    const end = await new Agent({ model, protocol: script, tools, middleware: [ask] }).prompt("Go");
    expect(asked).toEqual(["Bern", 5]);
    const results = end.messages.filter(({ role }) => role === "toolResult");
    expect(results).toMatchObject([
      { toolName: "weather", isError: false },
      { toolName: "pay", isError: true, outcome: "denied" },
      { toolName: "note", isError: false },
    ]);
    approval((question) => {
      expectTypeOf(question.toolName).toEqualTypeOf<string>();
      expectTypeOf(question.args).toEqualTypeOf<Record<string, unknown>>();
      return "suspend";
    });
  });

  it("in needsApproval", () => {
    defineTool({
      ...weather,
      name: "rain",
      needsApproval: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string }>();
        return args.city === "Bern";
      },
    });
  });

  it("R27: in decisions, which may have the arguments of any of them", async () => {
    const agent = make();
    await agent.prompt("Go");
    // @ts-expect-error None of the tools takes that.
    const wrong = (): unknown => agent.continue({ decisions: { p1: approve({ amount: "7" }) } });
    expect(wrong).toBeTypeOf("function");
    const end = await agent.continue({ decisions: { p1: approve({ amount: 7 }) } });
    expect(end.text).toBe("Done.");
    const [result] = end.messages;
    expect(result).toMatchObject({ content: [{}, { text: "7 paid." }] });
    expectTypeOf<DecisionOf<AgentTool>>().toEqualTypeOf<Decision>();
    function approve<Args>(args: Args): { type: "approve"; args: Args } {
      return { type: "approve", args };
    }
  });

  it("also where another agent is the tool", () => {
    const worker = make().asTool({
      name: "work",
      description: "Works.",
      output: z.object({ ok: z.boolean() }),
    });
    const boss = new Agent({ tools: [worker, weather] });
    boss.subscribe((event) => {
      if (event.type !== "tool_execution_end" || event.toolName !== "work") return;
      expectTypeOf(event.result.details).toEqualTypeOf<{ ok: boolean } | undefined>();
    });
    expect(boss.state.tools).toHaveLength(2);
  });
});

describe("an agent whose tools the types do not know", () => {
  it("has events of any name", () => {
    const untyped: AgentTool[] = [weather, pay];
    expectTypeOf<Parameters<Parameters<Agent["subscribe"]>[0]>[0]>().toEqualTypeOf<AgentEvent>();
    expectTypeOf(new Agent({ tools: untyped })).toEqualTypeOf<Agent>();
    expectTypeOf(new Agent()).toEqualTypeOf<Agent>();
    expectTypeOf(new Agent().state).toEqualTypeOf<AgentState>();
    expectTypeOf<Awaited<ReturnType<Agent["continue"]>>>().toExtend<AgentEnd<unknown>>();
    expectTypeOf(new Agent().state.pending).toEqualTypeOf<readonly PendingCall[]>();
    expect(new Agent({ tools: untyped }).state.tools).toBe(untyped);
  });

  it("is what an agent of known tools can be used as", async () => {
    const read = (agent: Agent): number => agent.state.messages.length;
    const agents: Agent[] = [make(), new Agent({ tools: [note] })];
    expect(agents.map(read)).toEqual([0, 0]);
    const end: AgentEnd = await make().prompt("Go");
    expect(end.stop).toBe("suspended");
  });
});
