import { AsyncLocalStorage } from "node:async_hooks";
import {
  AssistantMessageEventStream,
  emptyAssistantMessage,
  type Message,
  type StreamFn,
} from "@gyre/ai";
import {
  call,
  callAll,
  cutOff,
  fail,
  manualClock,
  say,
  scriptedModel,
  serviceTool,
  stall,
  think,
} from "@gyre/ai/testing";
import * as api from "@opentelemetry/api";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { runAgentLoop } from "../loop/loop.ts";
import { approval } from "../contract/middleware.ts";
import { tracing } from "./tracing.ts";
import { type AgentLoopConfig, type AgentTool, defineTool } from "../contract/types.ts";

/** A span that remembers all that was done to it. */
class RecordedSpan implements api.Span {
  readonly name: string;
  readonly kind: api.SpanKind | undefined;
  readonly parent: RecordedSpan | undefined;
  readonly tracer: string;
  readonly attributes: api.Attributes;
  status: api.SpanStatus | undefined;
  ends = 0;

  constructor(tracer: string, name: string, options: api.SpanOptions, context: api.Context) {
    const parent = api.trace.getSpan(context);
    this.tracer = tracer;
    this.name = name;
    this.kind = options.kind;
    this.parent = parent instanceof RecordedSpan ? parent : undefined;
    this.attributes = { ...options.attributes };
  }
  spanContext(): api.SpanContext {
    return { traceId: "1".repeat(32), spanId: "1".repeat(16), traceFlags: api.TraceFlags.SAMPLED };
  }
  setAttribute(key: string, value: api.AttributeValue): this {
    return this.setAttributes({ [key]: value });
  }
  setAttributes(attributes: api.Attributes): this {
    if (this.ends > 0) throw new Error(`Span ${this.name} was changed after its end.`);
    Object.assign(this.attributes, attributes);
    return this;
  }
  setStatus(status: api.SpanStatus): this {
    this.status = status;
    return this;
  }
  end(): void {
    this.ends++;
  }
  isRecording(): boolean {
    return this.ends === 0;
  }
  addEvent(): this {
    return this;
  }
  addLink(): this {
    return this;
  }
  addLinks(): this {
    return this;
  }
  updateName(): this {
    return this;
  }
  recordException(): void {}
}

let spans: RecordedSpan[] = [];
let startFault: Error | undefined;

const provider: api.TracerProvider = {
  getTracer: (tracer) => ({
    startSpan(name, options = {}, context = api.context.active()) {
      if (startFault) throw startFault;
      const span = new RecordedSpan(tracer, name, options, context);
      spans.push(span);
      return span;
    },
    startActiveSpan(): never {
      throw new Error("Not used.");
    },
  }),
};

const storage = new AsyncLocalStorage<api.Context>();
const contextManager: api.ContextManager = {
  active: () => storage.getStore() ?? api.ROOT_CONTEXT,
  with: (context, fn, self, ...args) => storage.run(context, () => Reflect.apply(fn, self, args)),
  bind: (_context, target) => target,
  enable: () => contextManager,
  disable: () => contextManager,
};

api.trace.setGlobalTracerProvider(provider);
api.context.setGlobalContextManager(contextManager);
afterAll(() => {
  api.trace.disable();
  api.context.disable();
});
beforeEach(() => {
  spans = [];
  startFault = undefined;
});

/** A span as the tests compare it; what is usual is left out. */
function toComparable({ name, kind, parent, attributes, status, ends }: RecordedSpan): object {
  expect(ends, `how often ${name} was ended`).toBe(1);
  const { INTERNAL, CLIENT } = api.SpanKind;
  expect(kind, `kind of ${name}`).toBe(name.startsWith("chat") ? CLIENT : INTERNAL);
  // The description of a failed span repeats what the attributes say, and nothing else.
  if (status) {
    expect(status.message?.replace(/ \(HTTP \d+\)$/, "")).toBe(attributes["error.type"]);
  }
  const { "gen_ai.response.time_to_first_chunk": time = 0, ...others } = attributes;
  expect(time).toBeGreaterThanOrEqual(0);
  return {
    name,
    in: parent?.name,
    attributes: others,
    ...(status && { status: { code: status.code } }),
  };
}

const ERROR = { status: { code: api.SpanStatusCode.ERROR } };
const asked = { "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted" };
const answered = (reason = "stop"): object => ({
  "gen_ai.response.model": "scripted",
  "gen_ai.response.finish_reasons": [reason],
});
const invoked = (more: object = { "gyre.stop": "done", "gyre.turns": 1 }): object => ({
  "gen_ai.operation.name": "invoke_agent",
  ...asked,
  ...more,
});
const chatted = (more: object = answered()): object => ({
  "gen_ai.operation.name": "chat",
  ...asked,
  ...more,
});
const executed = (name: string, id: string, more: object = {}): object => ({
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": name,
  "gen_ai.tool.call.id": id,
  "gen_ai.tool.description": `The ${name} tool`,
  "gen_ai.tool.type": "function",
  ...more,
});

const user: Message = { role: "user", content: "The secret question", timestamp: 0 };

function tool(
  name: string,
  execute: AgentTool["execute"],
  more: Partial<AgentTool> = {},
): AgentTool {
  const parameters = { type: "object" } as const;
  return defineTool({ name, description: `The ${name} tool`, parameters, execute, ...more });
}

async function run(
  script: Parameters<typeof scriptedModel>[0],
  tools: AgentTool[] = [],
  config: Partial<AgentLoopConfig> = {},
  signal?: AbortSignal,
): Promise<void> {
  const protocol = scriptedModel(script);
  await runAgentLoop(
    [user],
    { messages: [], tools },
    { model: protocol.model, protocol, middleware: [tracing(api)], random: () => 0, ...config },
    () => {},
    signal,
  );
}

describe("spans of a run", () => {
  it("a text run is a chat in an agent", async () => {
    await run(["Hello"]);
    expect(spans.map(toComparable)).toEqual([
      { name: "invoke_agent", in: undefined, attributes: invoked() },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted() },
    ]);
    expect(spans.map((span) => span.tracer)).toEqual(["@gyre/agent", "@gyre/agent"]);
  });

  it("says all that is known of the agent, the request, the service and the usage", async () => {
    const usage = { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, reasoning: 3 };
    const tokens = {
      "gen_ai.usage.input_tokens": 130,
      "gen_ai.usage.output_tokens": 5,
      "gen_ai.usage.cache_read.input_tokens": 100,
      "gen_ai.usage.cache_creation.input_tokens": 20,
      "gen_ai.usage.reasoning.output_tokens": 3,
    };
    const model = {
      id: "m",
      name: "M",
      api: "a",
      provider: "xai",
      baseUrl: "http://u:p@h.test/v1",
    };
    await run([[say("Hi"), { responseId: "r1", servedModel: "m-2", usage }]], [], {
      model,
      sessionId: "s1",
      maxTokens: 99,
      temperature: 0,
      apiKey: "sk-1",
      middleware: [tracing(api, { tracerName: "mine", agentName: "helper" })],
    });
    const common = { "gen_ai.conversation.id": "s1", "gen_ai.provider.name": "x_ai" };
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent helper",
        in: undefined,
        attributes: {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.agent.name": "helper",
          "gen_ai.request.model": "m",
          ...common,
          ...tokens,
          "gyre.stop": "done",
          "gyre.turns": 1,
        },
      },
      {
        name: "chat m",
        in: "invoke_agent helper",
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.request.model": "m",
          "gen_ai.request.max_tokens": 99,
          "gen_ai.request.temperature": 0,
          "gen_ai.response.id": "r1",
          "gen_ai.response.model": "m-2",
          "gen_ai.response.finish_reasons": ["stop"],
          "server.address": "h.test",
          "server.port": 80,
          ...common,
          ...tokens,
        },
      },
    ]);
    expect(spans.map((span) => span.tracer)).toEqual(["mine", "mine"]);
  });

  it("is in the span that was active where the run was started", async () => {
    const outer = new RecordedSpan("test", "request", {}, api.ROOT_CONTEXT);
    await api.context.with(api.trace.setSpan(api.context.active(), outer), () => run(["Hello"]));
    expect(spans.map((span) => span.parent?.name)).toEqual(["request", "invoke_agent"]);
  });

  it("a tool's error is its span's, whether thrown or given", async () => {
    const breaks = tool("breaks", () => {
      throw new RangeError("secret");
    });
    const fails = tool("fails", () => ({
      content: [{ type: "text", text: "secret" }],
      isError: true,
    }));
    await run([callAll(["breaks", "fails"]), "Done"], [breaks, fails]);
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent",
        in: undefined,
        attributes: invoked({ "gyre.stop": "done", "gyre.turns": 2 }),
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(answered("tool_call")) },
      {
        name: "execute_tool breaks",
        in: "invoke_agent",
        attributes: executed("breaks", "call_1", { "error.type": "RangeError" }),
        ...ERROR,
      },
      {
        name: "execute_tool fails",
        in: "invoke_agent",
        attributes: executed("fails", "call_2", { "error.type": "tool_error" }),
        ...ERROR,
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted() },
    ]);
  });

  it("tools that run together each have their own span, which is active in them", async () => {
    const active: Record<string, unknown> = {};
    let arrived = 0;
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const both = tool(
      "both",
      async (_args, { id }) => {
        if (++arrived === 2) open();
        await gate;
        active[id] = api.trace.getActiveSpan();
        return "ok";
      },
      { concurrent: true },
    );
    await run([callAll(["both", "both"]), "Done"], [both]);
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent",
        in: undefined,
        attributes: invoked({ "gyre.stop": "done", "gyre.turns": 2 }),
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(answered("tool_call")) },
      { name: "execute_tool both", in: "invoke_agent", attributes: executed("both", "call_1") },
      { name: "execute_tool both", in: "invoke_agent", attributes: executed("both", "call_2") },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted() },
    ]);
    expect(active).toEqual({ call_1: spans[2], call_2: spans[3] });
    expect(active["call_1"]).toBe(spans[2]);
  });

  it("the chat's span is active where the model is asked", async () => {
    const active: unknown[] = [];
    await run(async () => {
      active.push(api.trace.getActiveSpan());
      await Promise.resolve();
      active.push(api.trace.getActiveSpan());
      return "Hello";
    });
    expect(active[0]).toBe(spans[1]);
    expect(active[1]).toBe(spans[1]);
  });

  it("a tool that a tool called is in the caller's span", async () => {
    const inner = tool("inner", () => "ok");
    const outer = tool("outer", (_args, { host }) => host.call("inner", {}));
    await run([call("outer"), "Done"], [inner, outer]);
    expect(spans.map(toComparable).slice(2, 4)).toEqual([
      { name: "execute_tool outer", in: "invoke_agent", attributes: executed("outer", "call_1") },
      {
        name: "execute_tool inner",
        in: "execute_tool outer",
        attributes: executed("inner", "call_1/1"),
      },
    ]);
  });

  it("so is one that this tool called in its turn", async () => {
    const calls = (name: string, next: string): AgentTool =>
      tool(name, (_args, { host }) => host.call(next, {}));
    await run([call("a"), "Done"], [calls("a", "b"), calls("b", "c"), tool("c", () => "ok")]);
    expect(spans.slice(2, 5).map(({ name, parent }) => [name, parent?.name])).toEqual([
      ["execute_tool a", "invoke_agent"],
      ["execute_tool b", "execute_tool a"],
      ["execute_tool c", "execute_tool b"],
    ]);
  });

  it("each attempt has a chat of its own", async () => {
    await run([fail("Too many", { kind: "rate_limit", status: 429 }), "Hello"]);
    expect(spans.map(toComparable)).toEqual([
      { name: "invoke_agent", in: undefined, attributes: invoked() },
      {
        name: "chat scripted",
        in: "invoke_agent",
        attributes: chatted({
          "gen_ai.response.finish_reasons": ["error"],
          "error.type": "rate_limit",
        }),
        ...ERROR,
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted() },
    ]);
  });

  it.each([
    { how: "throws", step: { throws: new Error("secret") }, kind: "hook" },
    { how: "rejects", step: { rejects: new Error("secret") }, kind: "hook" },
    { how: "breaks its stream", step: [say("Hel"), { breaks: new Error("secret") }], kind: "hook" },
  ])("a model that $how has a failed chat", async ({ step, kind }) => {
    await run([step]);
    const failed = { "error.type": kind };
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent",
        in: undefined,
        attributes: invoked({ "gyre.stop": "error", "gyre.turns": 1, ...failed }),
        ...ERROR,
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(failed), ...ERROR },
    ]);
  });

  it("a response that ends early has a failed chat", async () => {
    await run([[say("Hel"), cutOff()]]);
    expect(spans.map(toComparable)[1]).toEqual({
      name: "chat scripted",
      in: "invoke_agent",
      attributes: chatted({ "error.type": "incomplete" }),
      ...ERROR,
    });
  });

  it("a refusal is reported as the service's filter, without its text", async () => {
    await run([{ refuse: "I will not say that" }]);
    expect(spans.map(toComparable)[1]).toEqual({
      name: "chat scripted",
      in: "invoke_agent",
      attributes: chatted({
        "gen_ai.response.finish_reasons": ["content_filter"],
        "error.type": "refused",
      }),
      ...ERROR,
    });
  });

  it("a call that waits for a person is no error", async () => {
    const middleware = [tracing(api), approval(() => "suspend")];
    await run([call("delete")], [tool("delete", () => "gone")], { middleware });
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent",
        in: undefined,
        attributes: invoked({ "gyre.stop": "suspended", "gyre.turns": 1 }),
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(answered("tool_call")) },
      {
        name: "execute_tool delete",
        in: "invoke_agent",
        attributes: executed("delete", "call_1", { "gyre.suspended": true }),
      },
    ]);
  });

  it("a run whose sink failed says so", async () => {
    const protocol = scriptedModel(["Hello"]);
    const config = { model: protocol.model, protocol, middleware: [tracing(api)] };
    const sink = (event: { type: string }): void => {
      if (event.type === "message_end") throw new Error("disk full");
    };
    await expect(runAgentLoop([user], { messages: [] }, config, sink)).rejects.toThrow("disk full");
    expect(spans.map(toComparable)).toEqual([
      {
        name: "invoke_agent",
        in: undefined,
        attributes: invoked({ "gyre.stop": "sink", "error.type": "sink" }),
        ...ERROR,
      },
    ]);
  });
});

describe("calls that the middleware does not see", () => {
  it("an unknown tool and invalid arguments have a span", async () => {
    const strict = tool("strict", () => "ok", {
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    await run([callAll(["strcit", "strict"]), "Done"], [strict], { sessionId: "s1" });
    const rejected = (name: string, id: string, type: string): object => ({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.conversation.id": "s1",
      "gen_ai.tool.name": name,
      "gen_ai.tool.call.id": id,
      "gen_ai.tool.type": "function",
      "error.type": type,
    });
    expect(spans.map(toComparable).slice(2, 4)).toEqual([
      {
        name: "execute_tool strcit",
        in: "invoke_agent",
        attributes: rejected("strcit", "call_1", "unknown_tool"),
        ...ERROR,
      },
      {
        name: "execute_tool strict",
        in: "invoke_agent",
        attributes: rejected("strict", "call_2", "invalid"),
        ...ERROR,
      },
    ]);
  });

  it("one that a tool makes is in the span of that tool", async () => {
    const outer = tool("outer", (_args, { host }) => host.call("iner", {}));
    await run([call("outer"), "Done"], [outer]);
    expect(spans[3]).toMatchObject({ name: "execute_tool iner", parent: spans[2] });
  });

  it("one that waits for the approval which its tool needs says so", async () => {
    await run([call("pay")], [tool("pay", () => "ok", { needsApproval: true })]);
    expect(spans[2]).toMatchObject({
      name: "execute_tool pay",
      status: undefined,
      attributes: { "gyre.suspended": true },
    });
  });
});

describe("what an application adds", () => {
  it("attributes of its own are on every span of the run", async () => {
    const own = { "user.id": "u1", tenant: "acme", tags: ["a", "b"] };
    await run([call("x"), "Done"], [tool("x", () => "ok")], {
      middleware: [tracing(api, { attributes: own })],
    });
    expect(spans).toHaveLength(4);
    for (const { attributes } of spans) expect(attributes).toMatchObject(own);
  });

  it("they may be found when the run starts", async () => {
    const users = new AsyncLocalStorage<string>();
    const middleware = [
      tracing(api, { attributes: () => ({ "user.id": users.getStore() ?? "" }) }),
    ];
    await users.run("u2", () => run(["Hello"], [], { middleware }));
    expect(spans.map(({ attributes }) => attributes["user.id"])).toEqual(["u2", "u2"]);
  });

  it("the conversation is on the spans of tools", async () => {
    await run([call("x"), "Done"], [tool("x", () => "ok")], { sessionId: "s1" });
    const ids = spans.map(({ attributes }) => attributes["gen_ai.conversation.id"]);
    expect(ids).toEqual(["s1", "s1", "s1", "s1"]);
  });
});

describe("what is known once a service has answered", () => {
  it("the time to the first chunk, in seconds", async () => {
    const clock = manualClock();
    const streamFn: StreamFn = (model) => {
      const stream = new AssistantMessageEventStream();
      const partial = emptyAssistantMessage(model, 0);
      const message = { ...partial, content: [{ type: "text" as const, text: "One" }] };
      clock.after(100, () => stream.push({ type: "start", partial }));
      clock.after(250, () => {
        stream.push({ type: "text_start", contentIndex: 0, partial: message });
        stream.push({ type: "text_delta", contentIndex: 0, delta: "One", partial: message });
      });
      clock.after(900, () => stream.push({ type: "done", reason: "stop", message }));
      return stream;
    };
    const { model } = scriptedModel([]);
    const running = runAgentLoop(
      [user],
      { messages: [] },
      { model, clock, middleware: [tracing(api, { clock })] },
      () => {},
      undefined,
      streamFn,
    );
    await Promise.all([running, clock.advance(1_000)]);
    expect(spans[1]?.attributes["gen_ai.response.time_to_first_chunk"]).toBe(0.25);
  });

  it("its address, also where the model names none", async () => {
    const seen: string[] = [];
    const protocol = scriptedModel(["Hello"]);
    const streamFn: StreamFn = async (model, context, options) => {
      const url = "https://api.test:8443/v1/messages";
      await options?.onResponse?.({ status: 200, headers: {}, url }, model);
      return protocol.stream(model, context, options);
    };
    await runAgentLoop(
      [user],
      { messages: [] },
      {
        model: protocol.model,
        middleware: [tracing(api)],
        onResponse: ({ url }) => void seen.push(url),
      },
      () => {},
      undefined,
      streamFn,
    );
    expect(spans[1]?.attributes).toMatchObject({
      "server.address": "api.test",
      "server.port": 8443,
    });
    expect(seen).toEqual(["https://api.test:8443/v1/messages"]);
  });

  it("the status of a failure is in the description, its text is not", async () => {
    await run([fail("The secret question is too much", { kind: "quota", status: 429 })]);
    expect(spans.map(({ status }) => status?.message)).toEqual([
      "quota (HTTP 429)",
      "quota (HTTP 429)",
    ]);
  });

  it("the cost of a request and of the run", async () => {
    const protocol = scriptedModel([{ parts: ["Hello"], usage: { input: 1_000_000 } }]);
    const model = { ...protocol.model, price: { input: 2, output: 1 } };
    await run([{ parts: ["Hello"], usage: { input: 1_000_000 } }], [], { model });
    expect(spans[0]?.attributes["gyre.usage.cost"]).toBe(2);
  });
});

describe("what is cut off", () => {
  const aborted = { "error.type": "aborted" };
  const abortedRun = {
    name: "invoke_agent",
    in: undefined,
    attributes: invoked({ "gyre.stop": "aborted", "gyre.turns": 1, ...aborted }),
    ...ERROR,
  };

  it("a response that listens to the abort is reported as it ended", async () => {
    const controller = new AbortController();
    const script = (): ReturnType<typeof stall>[] => {
      setTimeout(() => controller.abort(), 1);
      return [{ parts: ["Hel"] }, { responseId: "r1" }, stall()];
    };
    await run(script, [], {}, controller.signal);
    expect(spans.map(toComparable)).toEqual([
      abortedRun,
      {
        name: "chat scripted",
        in: "invoke_agent",
        attributes: chatted({
          "gen_ai.response.id": "r1",
          "gen_ai.response.finish_reasons": ["aborted"],
          ...aborted,
        }),
        ...ERROR,
      },
    ]);
  });

  it.each([
    { what: "stream", streamFn: () => new AssistantMessageEventStream() },
    { what: "promise", streamFn: () => new Promise<never>(() => {}) },
  ])("a $what that never settles is ended when its signal fires", async ({ streamFn }) => {
    const controller = new AbortController();
    const { model } = scriptedModel([]);
    const ended: number[] = [];
    setTimeout(() => {
      controller.abort();
      queueMicrotask(() => queueMicrotask(() => ended.push(...spans.map(({ ends }) => ends))));
    }, 1);
    await runAgentLoop(
      [user],
      { messages: [] },
      { model, middleware: [tracing(api)] },
      () => {},
      controller.signal,
      streamFn,
    );
    expect(ended).toEqual([0, 1]);
    expect(spans.map(toComparable)).toEqual([
      abortedRun,
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(aborted), ...ERROR },
    ]);
  });

  it("a tool that does not listen is ended with the run, and what it gives later is dropped", async () => {
    const controller = new AbortController();
    let release: (text: string) => void = () => {};
    const deaf = tool("deaf", () => {
      controller.abort();
      return new Promise<string>((resolve) => {
        release = resolve;
      });
    });
    await run([call("deaf")], [deaf], { abortGraceMs: 1 }, controller.signal);
    const expected = [
      abortedRun,
      { name: "chat scripted", in: "invoke_agent", attributes: chatted(answered("tool_call")) },
      {
        name: "execute_tool deaf",
        in: "invoke_agent",
        attributes: executed("deaf", "call_1", aborted),
        ...ERROR,
      },
    ];
    expect(spans.map(toComparable)).toEqual(expected);
    release("late");
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(spans.map(toComparable)).toEqual(expected);
  });

  it("a silent response is ended, and the next attempt has its own span", async () => {
    const clock = manualClock();
    const running = run([{ parts: ["Late"], delayMs: 1_000 }, "Hello"], [], {
      clock,
      random: () => 0,
      watchdog: { contentMs: 50 },
    });
    await clock.advance(60);
    await running;
    expect(spans.map(toComparable).slice(1)).toEqual([
      {
        name: "chat scripted",
        in: "invoke_agent",
        attributes: chatted({ "gen_ai.response.finish_reasons": ["aborted"], ...aborted }),
        ...ERROR,
      },
      { name: "chat scripted", in: "invoke_agent", attributes: chatted() },
    ]);
  });
});

describe("looking on", () => {
  it("concurrent runs with one middleware are not mixed", async () => {
    const shared = [tracing(api)];
    const wait = tool("wait", async (_args, { id }) => {
      await new Promise((resolve) => setTimeout(resolve, id === "a" ? 5 : 1));
      return id;
    });
    const one = (id: string): Promise<void> =>
      run([call("wait", {}, id), "Done"], [wait], { sessionId: id, middleware: shared });
    await Promise.all(["a", "b", "c"].map(one));
    for (const id of ["a", "b", "c"]) {
      const root = spans.find(
        ({ name, attributes }) =>
          name === "invoke_agent" && attributes["gen_ai.conversation.id"] === id,
      );
      const conversation = { "gen_ai.conversation.id": id };
      expect(
        spans.filter((span) => span === root || span.parent === root).map(toComparable),
      ).toEqual([
        {
          name: "invoke_agent",
          in: undefined,
          attributes: invoked({ "gyre.stop": "done", "gyre.turns": 2, ...conversation }),
        },
        {
          name: "chat scripted",
          in: "invoke_agent",
          attributes: chatted({ ...answered("tool_call"), ...conversation }),
        },
        {
          name: "execute_tool wait",
          in: "invoke_agent",
          attributes: executed("wait", id, conversation),
        },
        {
          name: "chat scripted",
          in: "invoke_agent",
          attributes: chatted({ ...answered(), ...conversation }),
        },
      ]);
    }
    expect(spans).toHaveLength(12);
  });

  it("passes the very stream on, with every event in it", async () => {
    const protocol = scriptedModel([[say("Hello"), { chunkSize: 1 }]]);
    const model = protocol.model;
    const context = { messages: [user] };
    const given = await protocol.stream(model, context, {});
    const info = { sessionId: undefined, model, fallbacks: [] };
    const call = { model, context, options: {}, run: info };
    const answer = await tracing(api).model?.(call, () => Promise.resolve(given));
    expect(answer).toBe(given);
    const deltas: string[] = [];
    for await (const event of given) if (event.type === "text_delta") deltas.push(event.delta);
    expect(deltas).toEqual(["H", "e", "l", "l", "o"]);
    expect(spans.map((span) => span.ends)).toEqual([1]);
  });

  it("a tracer that throws does not hurt the run, and is reported once", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    startFault = new Error("exporter is broken");
    const ran: string[] = [];
    const note = tool("note", (_args, { id }) => {
      ran.push(id);
      return "ok";
    });
    await run([call("note"), "Done"], [note]);
    expect(ran).toEqual(["call_1"]);
    expect(warned.mock.calls).toEqual([
      ["Tracing failed (reported only once): exporter is broken", "GyreWarning"],
    ]);
    warned.mockRestore();
  });
});

describe("content", () => {
  const script = (): Parameters<typeof run>[0] => [
    [
      think("secret thought"),
      say("secret text"),
      serviceTool("search", { id: "w1", input: { q: "secret" }, output: "secret find" }),
      call("read", { path: "secret.txt" }, "c1"),
    ],
    fail("secret failure", { kind: "auth" }),
  ];
  const read = tool("read", () => ({
    content: [
      { type: "text", text: "secret result" },
      { type: "image", data: "c2VjcmV0", mimeType: "image/png" },
    ],
  }));
  const config = { apiKey: "secret", headers: { authorization: "secret" } };

  it("is in no span by default", async () => {
    await run(script(), [read], config);
    expect(spans.map(({ name }) => name)).toEqual([
      "invoke_agent",
      "chat scripted",
      "execute_tool read",
      "chat scripted",
    ]);
    expect(JSON.stringify(spans.map(toComparable))).not.toMatch(/secret|c2VjcmV0/);
  });

  it("is in the spans where that is asked for", async () => {
    const protocol = scriptedModel(script());
    const middleware = [tracing(api, { captureContent: true })];
    await runAgentLoop(
      [user],
      { systemPrompt: "Be brief", messages: [], tools: [read] },
      { model: protocol.model, protocol, middleware, ...config },
      () => {},
    );
    const parsed = (span: RecordedSpan | undefined): object =>
      Object.fromEntries(
        Object.entries(span?.attributes ?? {})
          .filter(([key]) => /messages|instructions|definitions|arguments|result/.test(key))
          .map(([key, value]) => [key, JSON.parse(String(value)) as unknown]),
      );
    const question = { role: "user", parts: [{ type: "text", content: "The secret question" }] };
    const answer = {
      role: "assistant",
      parts: [
        { type: "reasoning", content: "secret thought" },
        { type: "text", content: "secret text" },
        {
          type: "server_tool_call",
          id: "w1",
          name: "search",
          server_tool_call: { type: "search", input: { q: "secret" } },
        },
        {
          type: "server_tool_call_response",
          id: "w1",
          server_tool_call_response: { type: "search", output: "secret find" },
        },
        { type: "tool_call", id: "c1", name: "read", arguments: { path: "secret.txt" } },
      ],
    };
    const result = [
      { type: "text", content: "secret result" },
      { type: "blob", modality: "image", mime_type: "image/png", content: "c2VjcmV0" },
    ];
    const { name, description, parameters } = read;
    const system = {
      "gen_ai.system_instructions": [{ type: "text", content: "Be brief" }],
      "gen_ai.tool.definitions": [{ type: "function", name, description, parameters }],
    };
    expect(spans.map(parsed)).toEqual([
      {
        ...system,
        "gen_ai.input.messages": [question],
        "gen_ai.output.messages": [{ role: "assistant", parts: [], finish_reason: "error" }],
      },
      {
        ...system,
        "gen_ai.input.messages": [question],
        "gen_ai.output.messages": [{ ...answer, finish_reason: "tool_call" }],
      },
      { "gen_ai.tool.call.arguments": { path: "secret.txt" }, "gen_ai.tool.call.result": result },
      {
        ...system,
        "gen_ai.input.messages": [
          question,
          answer,
          { role: "tool", parts: [{ type: "tool_call_response", id: "c1", response: result }] },
        ],
        "gen_ai.output.messages": [{ role: "assistant", parts: [], finish_reason: "error" }],
      },
    ]);
    expect(spans[3]?.status).toEqual({
      code: api.SpanStatusCode.ERROR,
      message: "[redacted] failure",
    });
  });

  it("that is no JSON does not hurt the call", async () => {
    const parameters = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => ({ value: { big: 1n } }),
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    } as const;
    const big: AgentTool = { ...tool("big", () => "ok"), parameters };
    await run([call("big"), "Done"], [big], {
      middleware: [tracing(api, { captureContent: true })],
    });
    expect(spans[2]?.attributes["gen_ai.tool.call.arguments"]).toMatch(/^Not recorded: .*BigInt/);
    expect(spans[2]?.status).toBeUndefined();
  });
});

it.each([[undefined], [{}], [{ agentName: "tea" }]])(
  "tracing(%j) is answered with what to write",
  (given) => {
    expect(() => tracing(given as never)).toThrow(
      'The API of OpenTelemetry is missing: write tracing(api), with import * as api from "@opentelemetry/api".',
    );
  },
);
