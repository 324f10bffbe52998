import { AssistantMessageEventStream, type Message } from "@gyre/ai";
import {
  call,
  callAll,
  cutOff,
  fail,
  manualClock,
  type ManualClock,
  say,
  scriptedModel,
  think,
} from "@gyre/ai/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { jsonLines, type Logger, logging, type LogLine } from "./logging.ts";
import { runAgentLoop } from "../loop/loop.ts";
import { approval, type Middleware } from "../contract/middleware.ts";
import {
  type AgentLoopConfig,
  type AgentSink,
  type AgentTool,
  defineTool,
} from "../contract/types.ts";

const user: Message = { role: "user", content: "The secret question", timestamp: 0 };
const asked = { provider: "scripted", model: "scripted" };

/** The time so many milliseconds after the start of a test. */
const at = (ms: number): { time: string } => ({ time: new Date(ms).toISOString() });

const started: LogLine = { ...at(0), level: "info", event: "run_start", ...asked };

function tool(
  name: string,
  execute: AgentTool["execute"],
  more: Partial<AgentTool> = {},
): AgentTool {
  const parameters = { type: "object" } as const;
  return defineTool({ name, description: name, parameters, execute, ...more });
}

interface Logged {
  clock: ManualClock;
  lines: LogLine[];
  run: (
    script: Parameters<typeof scriptedModel>[0],
    tools?: AgentTool[],
    config?: Partial<AgentLoopConfig>,
    signal?: AbortSignal,
    sink?: AgentSink,
  ) => Promise<unknown>;
}

function logged(...inner: Middleware[]): Logged {
  const clock = manualClock();
  const lines: LogLine[] = [];
  const middleware = [logging((line) => lines.push(line), { clock }), ...inner];
  return {
    clock,
    lines,
    run: (script, tools = [], config = {}, signal, sink = () => {}) => {
      const protocol = scriptedModel(script);
      const { model } = protocol;
      const running = runAgentLoop(
        [user],
        { messages: [], tools },
        { model, protocol, middleware, clock, random: () => 0, ...config },
        sink,
        signal,
      );
      return Promise.all([running, clock.advance(1_000)]);
    },
  };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("calls that never reach a tool", () => {
  it("each has a line: unknown, invalid, a schema that throws, one that needs approval", async () => {
    const { lines, run } = logged();
    const strict = tool("strict", () => "ok", {
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    const odd = tool("odd", () => "ok", {
      parameters: {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: () => {
            throw new Error("secret");
          },
          jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
        },
      },
    });
    const pay = tool("pay", () => "ok", { needsApproval: true });
    await run([callAll(["strcit", "strict", "odd", "pay"])], [strict, odd, pay]);
    const calls = lines.flatMap((line) => (line.event === "tool_call" ? [line] : []));
    const rejected = { ...at(0), level: "warn", event: "tool_call", latency_ms: 0, is_error: true };
    expect(calls).toEqual([
      {
        ...rejected,
        tool_name: "strcit",
        tool_call_id: "call_1",
        error: { kind: "unknown_tool" },
      },
      { ...rejected, tool_name: "strict", tool_call_id: "call_2", error: { kind: "invalid" } },
      { ...rejected, tool_name: "odd", tool_call_id: "call_3", error: { kind: "invalid" } },
      {
        ...rejected,
        level: "info",
        is_error: false,
        tool_name: "pay",
        tool_call_id: "call_4",
        suspended: true,
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("secret");
  });
});

describe("loggers", () => {
  const levels = (log: (level: string, args: unknown[]) => void): Logger => ({
    info: (...args) => log("info", args),
    warn: (...args) => log("warn", args),
    error: (...args) => log("error", args),
  });

  async function logTo(make: (log: Logger) => Logger): Promise<unknown[]> {
    const seen: unknown[] = [];
    const logger = make(levels((level, args) => seen.push([level, ...args])));
    const protocol = scriptedModel([fail("Full", { kind: "quota" })]);
    const { model } = protocol;
    const clock = manualClock();
    const middleware = [logging(logger, { clock })];
    await runAgentLoop([user], { messages: [] }, { model, protocol, middleware, clock }, () => {});
    return seen;
  }

  const error = { kind: "quota", message: "Full" };
  const lines = [
    ["info", { event: "run_start", ...asked }],
    ["warn", { event: "model_call", ...asked, latency_ms: 0, is_error: true, error }],
    ["error", { event: "run_end", ...asked, latency_ms: 0, is_error: true, error }],
  ] as const;

  it("pino's shape: fields without level and time, then the event as message", async () => {
    const seen = await logTo((logger) => logger);
    expect(seen).toMatchObject(lines.map(([level, fields]) => [level, fields, fields.event]));
    for (const line of seen) expect(JSON.stringify(line)).not.toMatch(/"(?:level|time)"/);
  });

  it.each([
    ["winston's", { transports: [] }],
    ["a console's", { group: () => {} }],
  ])("%s shape: the message first", async (_, own) => {
    const seen = await logTo((logger) => Object.assign(logger, own));
    expect(seen).toMatchObject(lines.map(([level, fields]) => [level, fields.event, fields]));
  });

  it("a method is called on its logger", async () => {
    class Own {
      readonly seen: unknown[] = [];
      info(_fields: object | string, message: object | string): void {
        this.seen.push(message);
      }
      warn(): void {}
      error(): void {}
    }
    const own = new Own();
    await logTo(() => own);
    expect(own.seen).toEqual(["run_start"]);
  });
});

describe("log lines", () => {
  it("a text run: start, model call, end", async () => {
    const { lines, run } = logged();
    const usage = { input: 10, output: 5, cacheRead: 100 };
    await run([[say("Hello"), { delayMs: 40, usage }]], [], { sessionId: "s1" });
    const conversation_id = "s1";
    expect(lines).toEqual([
      { ...started, conversation_id },
      {
        ...at(40),
        level: "info",
        conversation_id,
        event: "model_call",
        ...asked,
        latency_ms: 40,
        is_error: false,
        stop_reason: "stop",
        usage,
      },
      {
        ...at(40),
        level: "info",
        conversation_id,
        event: "run_end",
        ...asked,
        latency_ms: 40,
        is_error: false,
        stop: "done",
        turns: 1,
        usage: { ...usage, totalTokens: 115 },
      },
    ]);
  });

  it("tools: how long each took, and the kind of its error, not its words", async () => {
    const { clock, lines, run } = logged();
    const slow = tool("slow", () => new Promise((resolve) => clock.after(30, () => resolve("ok"))));
    const breaks = tool("breaks", () => {
      throw new RangeError("secret");
    });
    const fails = tool("fails", () => ({ content: [], isError: true }));
    await run([callAll(["slow", "breaks", "fails"]), "Done"], [slow, breaks, fails]);
    const model = { event: "model_call", ...asked, latency_ms: 0, is_error: false };
    const failed = { level: "warn", event: "tool_call", latency_ms: 0, is_error: true };
    expect(lines).toEqual([
      started,
      { ...at(0), level: "info", ...model, stop_reason: "toolUse" },
      {
        ...at(30),
        level: "info",
        event: "tool_call",
        tool_name: "slow",
        tool_call_id: "call_1",
        latency_ms: 30,
        is_error: false,
      },
      {
        ...at(30),
        ...failed,
        tool_name: "breaks",
        tool_call_id: "call_2",
        error: { kind: "RangeError" },
      },
      {
        ...at(30),
        ...failed,
        tool_name: "fails",
        tool_call_id: "call_3",
        error: { kind: "tool_error" },
      },
      { ...at(30), level: "info", ...model, stop_reason: "stop" },
      {
        ...at(30),
        level: "info",
        event: "run_end",
        ...asked,
        latency_ms: 30,
        is_error: false,
        stop: "done",
        turns: 2,
      },
    ]);
  });

  it("each attempt has a line, and a failed run says why", async () => {
    const { lines, run } = logged();
    await run(
      [
        fail("Too many requests", { kind: "rate_limit" }),
        fail("The key sk-1 is wrong", { kind: "auth" }),
      ],
      [],
      { apiKey: "sk-1" },
    );
    const model = { ...at(0), level: "warn", event: "model_call", ...asked, latency_ms: 0 };
    const wrong = {
      is_error: true,
      error: { kind: "auth", message: "The key [redacted] is wrong" },
    };
    expect(lines).toEqual([
      started,
      {
        ...model,
        is_error: true,
        error: { kind: "rate_limit", message: "Too many requests" },
        stop_reason: "error",
      },
      { ...model, ...wrong, stop_reason: "error" },
      {
        ...at(0),
        level: "error",
        event: "run_end",
        ...asked,
        latency_ms: 0,
        ...wrong,
        stop: "error",
        turns: 1,
      },
    ]);
  });

  it("a model that throws, and one that ends early, have no stop reason", async () => {
    const { lines, run } = logged();
    await run([{ throws: new TypeError("no such model") }]);
    await run([[say("Hel"), cutOff()]]);
    expect(lines.filter(({ event }) => event === "model_call")).toEqual([
      {
        ...at(0),
        level: "warn",
        event: "model_call",
        ...asked,
        latency_ms: 0,
        is_error: true,
        error: { kind: "hook", message: "no such model" },
      },
      {
        ...at(1_000),
        level: "warn",
        event: "model_call",
        ...asked,
        latency_ms: 0,
        is_error: true,
        error: { kind: "incomplete", message: "The stream ended without a terminal event." },
      },
    ]);
  });

  it("R21: a result that comes after its call was answered", async () => {
    const { clock, lines, run } = logged();
    const slow = tool(
      "slow",
      () => new Promise<string>((resolve) => clock.after(500, () => resolve("at last"))),
      { timeoutMs: 100 },
    );
    await run([call("slow"), "Done"], [slow]);
    await clock.advance(500);
    expect(lines.at(-1)).toEqual({
      ...at(500),
      level: "warn",
      event: "late_result",
      tool_name: "slow",
      tool_call_id: "call_1",
      is_error: false,
    });
  });

  it("an abort while a deaf model streams", async () => {
    const { clock, lines, run } = logged();
    const controller = new AbortController();
    clock.after(25, () => controller.abort());
    const protocol = { stream: () => new AssistantMessageEventStream() };
    await run([], [], { protocol }, controller.signal);
    const aborted = { latency_ms: 25, is_error: true, error: { kind: "aborted" } };
    expect(lines).toEqual([
      started,
      { ...at(25), level: "warn", event: "model_call", ...asked, ...aborted },
      {
        ...at(25),
        level: "warn",
        event: "run_end",
        ...asked,
        ...aborted,
        stop: "aborted",
        turns: 1,
      },
    ]);
  });

  it("a tool that was abandoned is reported at the end of the run", async () => {
    const { clock, lines, run } = logged();
    const controller = new AbortController();
    clock.after(25, () => controller.abort());
    const deaf = tool("deaf", () => new Promise<never>(() => {}), { abortGraceMs: 10 });
    await run([call("deaf")], [deaf], {}, controller.signal);
    const aborted = { latency_ms: 35, is_error: true, error: { kind: "aborted" } };
    expect(lines.slice(2)).toEqual([
      {
        ...at(35),
        level: "warn",
        event: "tool_call",
        tool_name: "deaf",
        tool_call_id: "call_1",
        ...aborted,
      },
      {
        ...at(35),
        level: "warn",
        event: "run_end",
        ...asked,
        ...aborted,
        stop: "aborted",
        turns: 1,
      },
    ]);
  });

  it("a call that waits for a person is no error", async () => {
    const { lines, run } = logged(approval(() => "suspend"));
    await run([call("delete")], [tool("delete", () => "gone")]);
    expect(lines.slice(2)).toEqual([
      {
        ...at(0),
        level: "info",
        event: "tool_call",
        tool_name: "delete",
        tool_call_id: "call_1",
        latency_ms: 0,
        is_error: false,
        suspended: true,
      },
      {
        ...at(0),
        level: "info",
        event: "run_end",
        ...asked,
        latency_ms: 0,
        is_error: false,
        stop: "suspended",
        turns: 1,
      },
    ]);
  });

  it("a sink that fails", async () => {
    const { lines, run } = logged();
    const sink = (): never => {
      throw new Error("disk full");
    };
    await expect(run(["Hello"], [], {}, undefined, sink)).rejects.toThrow("disk full");
    expect(lines).toEqual([
      started,
      {
        ...at(0),
        level: "error",
        event: "run_end",
        ...asked,
        latency_ms: 0,
        is_error: true,
        error: { kind: "sink" },
        stop: "sink",
      },
    ]);
  });

  it("concurrent runs with one middleware are not mixed", async () => {
    const { clock, lines, run } = logged();
    const wait = tool("wait", (_args, { id }) => {
      return new Promise((resolve) => clock.after(id === "a" ? 20 : 5, () => resolve("ok")));
    });
    const ids = ["a", "b", "c"];
    await Promise.all(
      ids.map((id) => run([call("wait", {}, id), "Done"], [wait], { sessionId: id })),
    );
    for (const id of ids) {
      const own = lines.filter(({ conversation_id }) => conversation_id === id);
      const latency = id === "a" ? 20 : 5;
      expect(own.map((line) => [line.event, "latency_ms" in line && line.latency_ms])).toEqual([
        ["run_start", false],
        ["model_call", 0],
        ["tool_call", latency],
        ["model_call", 0],
        ["run_end", latency],
      ]);
      expect(own[2]).toMatchObject({ tool_call_id: id });
    }
    expect(lines).toHaveLength(15);
  });

  it("hold no content, no arguments and no keys", async () => {
    const { lines, run } = logged();
    const read = tool("read", () => ({
      content: [{ type: "text", text: "secret" }],
      isError: true,
    }));
    const answer = [think("secret"), say("secret"), call("read", { path: "secret" })];
    await run([answer, { refuse: "secret" }], [read], {
      apiKey: "hidden",
      headers: { authorization: "hidden" },
    });
    expect(lines.map(({ event }) => event)).toEqual([
      "run_start",
      "model_call",
      "tool_call",
      "model_call",
      "run_end",
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/secret|hidden/);
  });
});

describe("write", () => {
  it.each([
    {
      how: "throws",
      write: () => {
        throw new Error("disk full");
      },
    },
    { how: "rejects", write: () => Promise.reject(new Error("disk full")) },
  ])("that $how does not hurt the run, and is reported once", async ({ write }) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const seen: string[] = [];
    const noteAndWrite = (line: LogLine): unknown => {
      seen.push(line.event);
      return write();
    };
    const middleware = [logging(noteAndWrite)];
    const { run } = logged();
    await run([call("note"), "Done"], [tool("note", () => "ok")], { middleware });
    expect(seen).toEqual(["run_start", "model_call", "tool_call", "model_call", "run_end"]);
    expect(warned.mock.calls).toEqual([
      ["The log failed (reported only once): disk full", "GyreWarning"],
    ]);
  });

  it("through jsonLines gets one JSON a line", async () => {
    const clock = manualClock();
    let text = "";
    const write = jsonLines((more) => {
      text += more;
    });
    const middleware = [logging(write, { clock })];
    await logged().run([fail("two\nlines", { kind: "auth" })], [], { middleware });
    const rows = text.split("\n");
    expect(rows.pop()).toBe("");
    expect(rows.map((row) => JSON.parse(row) as unknown)).toEqual([
      started,
      expect.objectContaining({ event: "model_call" }),
      expect.objectContaining({ event: "run_end", error: { kind: "auth", message: "two\nlines" } }),
    ]);
  });

  it("gets the system's time if there is no clock", async () => {
    const lines: LogLine[] = [];
    const before = Date.now();
    await logged().run(["Hello"], [], { middleware: [logging((line) => lines.push(line))] });
    const times = lines.map(({ time }) => Date.parse(time));
    expect(times).toHaveLength(3);
    for (const time of times) {
      expect(time).toBeGreaterThanOrEqual(before);
      expect(time).toBeLessThanOrEqual(Date.now());
    }
  });
});

it.each([[undefined], ["app.log"], [{ write: () => {} }]])(
  "logging(%j) is answered with what to write",
  (given) => {
    expect(() => logging(given as never)).toThrow(
      /A log is a logger or a function: write logging\(console\) or logging\(\(line\) => /,
    );
  },
);
