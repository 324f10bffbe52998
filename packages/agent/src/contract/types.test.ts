import {
  type AssistantMessage,
  type EventStream,
  type InferArguments,
  type Message,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { Type } from "typebox";
import { describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import {
  Agent,
  type AgentEnd,
  type AgentEndEvent,
  type AgentEvent,
  type AgentEventStream,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentOptions,
  type AgentRun,
  type AgentState,
  type AgentTool,
  type AgentToolResult,
  agentLoop,
  agentLoopContinue,
  approval,
  type CustomAgentMessages,
  type Decision,
  defineTool,
  type LimitName,
  runAgentLoop,
} from "../index.ts";

interface Note {
  role: "note";
  content: string;
  timestamp: number;
}

declare module "../index.ts" {
  interface CustomAgentMessages {
    note: Note;
  }
}

const done: AgentToolResult = { content: [] };

describe("the arguments of a tool", () => {
  it("are worked out from typebox", () => {
    const tool = defineTool({
      name: "read",
      description: "Reads a file.",
      parameters: Type.Object({ path: Type.String(), lines: Type.Optional(Type.Number()) }),
      execute(args, { id, signal, update: onUpdate, host }) {
        expectTypeOf(id).toBeString();
        expectTypeOf(args).toEqualTypeOf<{ path: string; lines?: number }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(onUpdate).toEqualTypeOf<(partial: AgentToolResult) => void>();
        expectTypeOf<typeof host.call>().returns.toEqualTypeOf<Promise<AgentToolResult>>();
        return done;
      },
    });
    expectTypeOf(tool).toExtend<AgentTool<typeof tool.parameters>>();
    expect(tool.name).toBe("read");
  });

  it("are worked out from zod: its output", () => {
    const parameters = z.object({
      path: z.string(),
      deep: z.boolean().default(false),
      size: z.string().transform(Number),
    });
    const tool = defineTool({
      name: "read",
      description: "Reads a file.",
      parameters,
      execute(args) {
        expectTypeOf(args).toEqualTypeOf<{ path: string; deep: boolean; size: number }>();
        return "a plain string is a result";
      },
    });
    expect(tool.parameters).toBe(parameters);
  });

  it("are worked out from a JSON Schema as it is written", () => {
    defineTool({
      name: "read",
      description: "Reads a file.",
      parameters: {
        type: "object",
        properties: {
          path: { type: "string" },
          kind: { enum: ["file", "folder"] },
          tags: { type: "array", items: { type: "string" } },
        },
        required: ["path", "kind"],
      },
      execute(args) {
        expectTypeOf(args.path).toBeString();
        expectTypeOf(args.kind).toEqualTypeOf<"file" | "folder">();
        expectTypeOf(args.tags).toEqualTypeOf<string[] | undefined>();
        return Promise.resolve("later");
      },
    });
    expect(defineTool).toBeTypeOf("function");
  });

  it("are a record where nothing is known", () => {
    const tool: AgentTool = {
      name: "any",
      description: "Anything.",
      parameters: { type: "object" },
      execute(args) {
        expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
        return done;
      },
    };
    expect(tool.name).toBe("any");
  });

  it("tools of different schemas go into one list", () => {
    const tools: AgentTool[] = [
      defineTool({
        name: "a",
        description: "a",
        parameters: Type.Object({ n: Type.Number() }),
        execute: ({ n }) => `${n}`,
      }),
      defineTool({
        name: "b",
        description: "b",
        parameters: z.object({ s: z.string() }),
        execute: ({ s }) => s,
      }),
    ];
    expect(tools).toHaveLength(2);
  });

  it("a tool may return any JSON value, and nothing else", () => {
    const counting = defineTool({
      name: "a",
      description: "a",
      parameters: { type: "object" },
      execute: () => ({ count: 3 }),
    });
    expectTypeOf(counting.name).toEqualTypeOf<"a">();
    expectTypeOf<typeof counting.execute>().returns.toEqualTypeOf<
      { count: number } | Promise<{ count: number }>
    >();
    defineTool({
      name: "a",
      description: "a",
      parameters: { type: "object" },
      // @ts-expect-error A function is no result.
      execute: () => () => {},
    });
    expect(done.content).toEqual([]);
  });
});

describe("a run", () => {
  it("without a schema has no output", () => {
    expectTypeOf<Agent["run"]>().toBeCallableWith("Hi");
    const plain = (agent: Agent): AgentRun => agent.run("Hi");
    expectTypeOf(plain).returns.toEqualTypeOf<AgentRun>();
    expectTypeOf<AgentRun["output"]>().returns.toEqualTypeOf<Promise<undefined>>();
    expectTypeOf<AgentRun["result"]>().returns.toEqualTypeOf<Promise<AgentEnd>>();
    expect(plain).toBeTypeOf("function");
  });

  it("with a schema has its type", async () => {
    const script = scriptedModel(() => '{"city":"Bern"}');
    const agent = new Agent({ protocol: script, model: script.model });
    const zodRun = agent.run("Where?", { output: z.object({ city: z.string() }) });
    expectTypeOf<typeof zodRun.output>().returns.toEqualTypeOf<Promise<{ city: string }>>();
    expect(await zodRun.output()).toEqual({ city: "Bern" });
    await agent.waitForIdle();
    const typeboxRun = agent.run("Where?", { output: Type.Object({ city: Type.String() }) });
    expectTypeOf<typeof typeboxRun.output>().returns.toEqualTypeOf<Promise<{ city: string }>>();
    expect(await typeboxRun.output()).toEqual({ city: "Bern" });
  });

  it("is an async iterable of agent events", () => {
    expectTypeOf<AgentRun>().toExtend<AsyncIterable<AgentEvent>>();
    expectTypeOf<AgentEventStream>().toEqualTypeOf<EventStream<AgentEvent, AgentMessage[]>>();
    expectTypeOf(agentLoop).returns.toEqualTypeOf<AgentEventStream>();
    expectTypeOf(agentLoopContinue).returns.toEqualTypeOf<AgentEventStream>();
    expectTypeOf(runAgentLoop).returns.toEqualTypeOf<Promise<AgentMessage[]>>();
    expect(agentLoop).toBeTypeOf("function");
  });
});

describe("messages", () => {
  it("may be an application's own, by declaration merging", () => {
    expectTypeOf<CustomAgentMessages["note"]>().toEqualTypeOf<Note>();
    expectTypeOf<AgentMessage>().toEqualTypeOf<Message | Note>();
    expectTypeOf<Extract<AgentMessage, { role: "note" }>>().toEqualTypeOf<Note>();
    const convert: AgentLoopConfig["convertToLlm"] = (messages) =>
      messages.flatMap((message): Message[] =>
        message.role === "note"
          ? [{ role: "user", content: `Note: ${message.content}`, timestamp: message.timestamp }]
          : [message],
      );
    const note: AgentMessage = { role: "note", content: "x", timestamp: 0 };
    expect(convert([note])).toEqual([{ role: "user", content: "Note: x", timestamp: 0 }]);
  });

  it("a custom message reaches the transcript, and the model only through convertToLlm", async () => {
    const script = scriptedModel(() => "Ok");
    const agent = new Agent({ protocol: script, model: script.model });
    await agent.prompt([
      { role: "note", content: "for people", timestamp: 0 },
      { role: "user", content: "Hi", timestamp: 0 },
    ]);
    expect(agent.state.messages.map((m) => m.role)).toEqual(["note", "user", "assistant"]);
    expect(script.calls[0]?.messages.map((m) => m.role)).toEqual(["user"]);
  });
});

/** Fails to compile where an event is added and forgotten here. */
function classifyEvent(event: AgentEvent): "run" | "turn" | "message" | "tool" | "other" {
  switch (event.type) {
    case "agent_start":
    case "agent_end":
      return "run";
    case "turn_start":
    case "turn_end":
      return "turn";
    case "message_start":
    case "message_update":
    case "message_end":
      return "message";
    case "tool_execution_start":
    case "tool_execution_update":
    case "tool_execution_end":
      return "tool";
    case "waiting":
    case "retry":
    case "fallback":
    case "compaction":
    case "limit":
      return "other";
    default:
      return event satisfies never;
  }
}

describe("events", () => {
  it("are one union that a program can switch over", () => {
    expect(classifyEvent({ type: "turn_start" })).toBe("turn");
    expectTypeOf<
      Extract<AgentEvent, { type: "message_update" }>["message"]
    >().toEqualTypeOf<AssistantMessage>();
    expectTypeOf<
      Extract<AgentEvent, { type: "message_end" }>["message"]
    >().toEqualTypeOf<AgentMessage>();
    expectTypeOf<Extract<AgentEvent, { type: "limit" }>["limit"]>().toEqualTypeOf<LimitName>();
    expectTypeOf<AgentEndEvent["usage"]>().toEqualTypeOf<Usage>();
    expectTypeOf<AgentEndEvent["finalMessage"]>().toEqualTypeOf<AssistantMessage | undefined>();
  });
});

describe("options", () => {
  it("an Agent owns its queues; its options have no callbacks for them", () => {
    expectTypeOf<AgentOptions>().not.toHaveProperty("getSteeringMessages");
    expectTypeOf<AgentOptions>().not.toHaveProperty("requeue");
    expectTypeOf<AgentOptions>().not.toHaveProperty("decisions");
    expectTypeOf<AgentOptions>().toHaveProperty("limits");
    expectTypeOf<AgentLoopConfig>().toHaveProperty("model");
    expectTypeOf<AgentLoopConfig>().not.toHaveProperty("signal");
    expect(new Agent({})).toBeInstanceOf(Agent);
  });

  it("state is read-only from outside", () => {
    const readOnly = (state: AgentState): void => {
      // @ts-expect-error It is read-only.
      state.systemPrompt = "x";
      // @ts-expect-error So is the list.
      state.messages.push({ role: "user", content: "x", timestamp: 0 });
    };
    expect(readOnly).toBeTypeOf("function");
  });

  it("a decision says one thing", () => {
    expectTypeOf<Decision["type"]>().toEqualTypeOf<"approve" | "deny" | "result" | "wait">();
    expectTypeOf<AgentToolResult["content"]>().toEqualTypeOf<UserContent[]>();
    expectTypeOf<InferArguments<{ readonly type: "object" }>>().not.toBeNever();
    // @ts-expect-error A result needs one.
    const wrong: Decision = { type: "result" };
    expect(wrong.type).toBe("result");
  });
});

describe("the question of an approval", () => {
  it("may be answered by an async function with one word", () => {
    expect(approval(async () => "allow")).toHaveProperty("tool");
    expect(approval(async () => ({ deny: "not now" }))).toHaveProperty("tool");
    // @ts-expect-error No such answer.
    expect(approval(async () => "perhaps")).toHaveProperty("tool");
  });
});
