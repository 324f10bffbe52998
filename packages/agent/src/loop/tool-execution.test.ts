import { systemClock } from "@gyre/ai";
import { call, callAll, scriptedModel, type ScriptPart } from "@gyre/ai/testing";
import { describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { errorResult } from "./tool-execution.ts";
import { approval, type Middleware, type ToolInvocation } from "../contract/middleware.ts";
import { later, never, play, type Setup, start, text, tool, user } from "../testing/play.ts";
import { answer, asks, injected, ran, result } from "../testing/render.ts";
import type { AgentMessage, AgentTool, AgentToolResult, ToolReturn } from "../contract/types.ts";

/** The lines of a run's first turn after its answer. */
function afterAnswer(lines: readonly string[]): readonly string[] {
  return lines.slice(7);
}

const ending = ["turn_start", ...answer("Done"), "turn_end stop", "agent_end done"];

/** A turn with these calls, then "Done". */
function calling(...calls: (string | Parameters<typeof call>)[]): ScriptPart[][] {
  return [callAll(calls), [{ type: "text", text: "Done" }]];
}

const loop: unknown[] = [];
loop.push(loop);

const words = 'error "Skipped due to queued user message."';
const abortedWhile = (name: string): string =>
  `error "Aborted: the user stopped the run while tool "${name}" was running; it may have had effects."`;
const abortedBefore = (name: string): string =>
  `error "Aborted: the user stopped the run before tool "${name}" was started."`;

/** The text of the only result of a run. */
async function resultText(setup: Setup): Promise<string> {
  const { transcript } = await play(setup);
  const found = transcript.filter((message) => message.role === "toolResult");
  expect(found).toHaveLength(1);
  return found[0]?.content.map((block) => (block.type === "text" ? block.text : "")).join("") ?? "";
}

describe("R9: what a result says", () => {
  it("R9: a skipped call has start, end and message events, and these very words", async () => {
    const polls: AgentMessage[][] = [[], [user("S")]];
    const { lines } = await play({
      script: calling(["x", {}, "c1"], ["y", { a: 1 }, "c2"]),
      tools: [tool("x"), tool("y")],
      config: { getSteeringMessages: () => polls.shift() },
    });
    expect(lines.slice(-14, -7)).toEqual([
      ...ran("x#c1", 'ok "x"').slice(3),
      ...ran("y#c2", words, '{"a":1}'),
      "turn_end toolUse x#c1 y#c2",
      "turn_start",
    ]);
  });

  it("R9: an unknown tool is reported with near names", async () => {
    const names = await resultText({
      script: calling("raed_file"),
      tools: [tool("read_file"), tool("bash")],
    });
    expect(names).toBe("Tool raed_file not found. Did you mean read_file?");
  });

  it("R9: an unknown tool with no near name is reported with those there are", async () => {
    const names = await resultText({ script: calling("zzz"), tools: [tool("read"), tool("bash")] });
    expect(names).toBe("Tool zzz not found. Available: read, bash.");
  });

  it("R9: an unknown tool where there are none", async () => {
    expect(await resultText({ script: calling("zzz") })).toBe("Tool zzz not found");
  });

  it.each<[string, AgentTool["execute"], RegExp]>([
    [
      "throws at once",
      () => {
        throw new Error("boom");
      },
      /"x".*boom/,
    ],
    ["rejects", () => Promise.reject(new Error("boom")), /"x".*boom/],
    ["throws a string", () => Promise.reject("words"), /"x".*words/],
    ["throws nothing", () => Promise.reject(undefined), /"x" failed/],
    ["throws what has no text", () => Promise.reject(Object.create(null)), /"x" failed/],
    ["gives nothing", () => undefined as never, /"x".*nothing/],
    ["gives a function", () => (() => {}) as never, /"x".*function/],
    ["gives a loop", () => Promise.resolve(loop as never), /"x".*JSON/],
  ])("R9: a tool that %s gives an error result that names it", async (_what, execute, expected) => {
    const { transcript, end } = await play({ script: calling("x"), tools: [tool("x", execute)] });
    expect(end.stop).toBe("done");
    const [seen] = transcript.filter((message) => message.role === "toolResult");
    expect(seen?.isError).toBe(true);
    expect(JSON.stringify(seen?.content).replaceAll('\\"', '"')).toMatch(expected);
  });

  it.each<[ToolReturn, string, unknown]>([
    [3, "3", 3],
    [null, "null", null],
    [{ city: "Bern", degrees: [1, 2] }, '{"city":"Bern","degrees":[1,2]}', "itself"],
    [{ content: "of a page" }, '{"content":"of a page"}', "itself"],
    [[{ type: "text", text: "a block" }], "a block", undefined],
    [[], "[]", []],
    ["a text", "a text", undefined],
  ])(
    "R9: a tool may return %j: text for the model, the value in details",
    async (value, text, details) => {
      const { transcript } = await play({ script: calling("x"), tools: [tool("x", () => value)] });
      const [seen] = transcript.filter((message) => message.role === "toolResult");
      expect(seen).toMatchObject({ content: [{ type: "text", text }], isError: false });
      expect(seen?.details).toEqual(details === "itself" ? value : details);
    },
  );

  it("R9: content and details of a result are kept, details out of the model's sight", async () => {
    const image = { type: "image", data: "AA==", mimeType: "image/png" } as const;
    const { transcript } = await play({
      script: calling("x"),
      tools: [tool("x", () => ({ content: [image], details: { lines: 3 }, isError: true }))],
    });
    expect(transcript[2]).toEqual({
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "x",
      content: [image],
      details: { lines: 3 },
      isError: true,
      outcome: "error",
      timestamp: 0,
    });
  });
});

describe("R10: a response cut off at its length", () => {
  const cut = (id: string): NonNullable<Setup["script"]> extends infer _ ? object : never => ({
    parts: [call("x", {}, id)],
    stopReason: "length",
  });
  const smaller =
    'error "Tool "x" was not run: the response was cut off at its length limit, and the call may be incomplete. Send it again in smaller pieces."';

  it("R10: no call is run; each gets a result that asks for it in smaller pieces", async () => {
    const { lines } = await play({
      script: [{ parts: [call("x", {}, "c1"), call("x", {}, "c2")], stopReason: "length" }, "Done"],
      tools: [tool("x", () => expect.unreachable())],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...asks(["x#c1", "x#c2"], "{}", "length"),
      ...ran("x#c1", smaller),
      ...ran("x#c2", smaller),
      "turn_end length x#c1 x#c2",
      ...ending,
    ]);
  });

  it("R10: three such turns in a row end the run", async () => {
    const { lines, model } = await play({
      script: [cut("c1"), cut("c2"), cut("c3"), "Never"],
      tools: [tool("x", () => expect.unreachable())],
    });
    const turn = (id: string): string[] => [
      ...asks([`x#${id}`], "{}", "length"),
      ...ran(`x#${id}`, smaller),
      `turn_end length x#${id}`,
    ];
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...turn("c1"),
      "turn_start",
      ...turn("c2"),
      "turn_start",
      ...turn("c3"),
      "limit maxTruncatedTurnsInARow 3",
      "agent_end limit limit=maxTruncatedTurnsInARow",
    ]);
    expect(model.requests).toBe(3);
  });

  it("R10: a whole call in between restarts the count", async () => {
    const { end } = await play({
      script: [cut("c1"), cut("c2"), call("x", {}, "c3"), cut("c4"), cut("c5"), "Done"],
      tools: [tool("x")],
    });
    expect(end.stop).toBe("done");
  });

  it("R10: a text that was cut off ends the run as any answer", async () => {
    const { lines } = await play({ script: [{ parts: ["Half"], stopReason: "length" }] });
    expect(lines.slice(4)).toEqual([
      ...answer("Half", "length"),
      "turn_end length",
      "agent_end done",
    ]);
  });
});

describe("R11, R12: arguments", () => {
  it("R11: arguments that do not parse are never run, and keep what was sent", async () => {
    const { transcript } = await play({
      script: calling(["x", '{"path": "a', "c1"]),
      tools: [tool("x", () => expect.unreachable())],
    });
    const asked = transcript[1];
    expect(asked?.role === "assistant" && asked.content).toEqual([
      {
        type: "toolCall",
        id: "c1",
        name: "x",
        arguments: {},
        rawArguments: '{"path": "a',
        argumentsError: expect.any(String),
      },
    ]);
    const block = asked?.role === "assistant" ? asked.content[0] : undefined;
    const words = block?.type === "toolCall" ? (block.argumentsError ?? "") : "";
    expect(transcript[2]).toMatchObject({
      isError: true,
      content: [
        {
          type: "text",
          text: `The arguments for tool "x" are not valid JSON, and it was not run: ${words}`,
        },
      ],
    });
  });

  it("R11: an empty string means no arguments", async () => {
    const seen: unknown[] = [];
    await play({
      script: calling(["x", "", "c1"], ["x", "  ", "c2"]),
      tools: [
        tool("x", (args) => {
          seen.push(args);
          return "ok";
        }),
      ],
    });
    expect(seen).toEqual([{}, {}]);
  });

  const nearly = String.raw`{"re": "\d+", "text": "one` + '\n two",}';

  it("R11: a whole text that is nearly JSON is repaired and run, and keeps what was sent", async () => {
    const seen: unknown[] = [];
    const { transcript } = await play({
      script: calling(["x", nearly, "c1"]),
      tools: [
        tool("x", (args) => {
          seen.push(args);
          return "ok";
        }),
      ],
    });
    const meant = { re: String.raw`\d+`, text: "one\n two" };
    expect(seen).toEqual([meant]);
    const asked = transcript[1];
    expect(asked?.role === "assistant" && asked.content).toEqual([
      {
        type: "toolCall",
        id: "c1",
        name: "x",
        arguments: meant,
        rawArguments: nearly,
        repaired: true,
      },
    ]);
  });

  it("R11: nothing is repaired after length", async () => {
    const { transcript } = await play({
      script: [{ parts: [call("x", nearly, "c1")], stopReason: "length" }, "Done"],
      tools: [tool("x", () => expect.unreachable())],
    });
    const asked = transcript[1];
    expect(asked?.role === "assistant" && asked.content).toMatchObject([
      { arguments: {}, rawArguments: nearly, argumentsError: expect.any(String) },
    ]);
  });

  it("R12: arguments are coerced on a copy; the transcript keeps what the model sent", async () => {
    const seen: unknown[] = [];
    const sent = { count: "42", tags: "a", options: '{"deep":true}' };
    const { transcript, lines } = await play({
      script: calling(["x", sent, "c1"]),
      tools: [
        tool(
          "x",
          (args) => {
            seen.push(args);
            return "ok";
          },
          {
            parameters: {
              type: "object",
              properties: {
                count: { type: "number" },
                tags: { type: "array", items: { type: "string" } },
                options: { type: "object" },
              },
            },
          },
        ),
      ],
    });
    expect(seen).toEqual([{ count: 42, tags: ["a"], options: { deep: true } }]);
    const asked = transcript[1];
    expect(asked?.role === "assistant" && asked.content[0]).toMatchObject({ arguments: sent });
    expect(lines[7]).toBe(`tool_start x#c1 ${JSON.stringify(sent)}`);
  });

  it("R12: arguments are checked against the whole schema, of which services get a simpler one", async () => {
    const byName = { properties: { name: { type: "string" } }, required: ["name"] };
    const byId = { properties: { id: { type: "number" } }, required: ["id"] };
    const parameters = { type: "object", anyOf: [byName, byId] };
    const seen: unknown[] = [];
    const find = tool("find", (args) => `Found ${seen.push(args)}.`, { parameters });
    const { transcript } = await play({
      script: calling(["find", {}, "c1"], ["find", { id: 3 }, "c2"]),
      tools: [find],
    });
    expect(seen).toEqual([{ id: 3 }]);
    const [refused] = transcript.filter(({ role }) => role === "toolResult");
    expect(refused).toMatchObject({ toolCallId: "c1", isError: true });
  });

  it("R12: a tool whose schema cannot be checked is reported once, and runs", async () => {
    const warned: string[] = [];
    const onWarning = ({ message }: Error): void => void warned.push(message);
    process.on("warning", onWarning);
    const parameters = { type: "object", properties: { n: { $ref: "https://a.example/n.json" } } };
    const seen: unknown[] = [];
    const remote = tool(
      "remote",
      (args) => {
        seen.push(args);
        return "ok";
      },
      { parameters },
    );
    // A schema is compiled for the first call of its tool.
    await play({ script: ["Hello."], tools: [remote] });
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned.filter((text) => text.includes("not checked"))).toEqual([]);
    for (let run = 0; run < 2; run++) {
      await play({ script: calling(["remote", { n: "any" }, "c1"]), tools: [remote] });
    }
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", onWarning);
    expect(seen).toEqual([{ n: "any" }, { n: "any" }]);
    expect(warned.filter((text) => text.includes("not checked"))).toEqual([
      'The arguments of tool "remote" are not checked: its schema refers to "https://a.example/n.json", which is not a part of it.',
    ]);
  });

  it("R12: the error lists each failing path", async () => {
    const seen = await resultText({
      script: calling(["x", { a: {}, list: [1, {}] }, "c1"]),
      tools: [
        tool("x", () => expect.unreachable(), {
          parameters: {
            type: "object",
            properties: {
              a: { type: "number" },
              list: { type: "array", items: { type: "number" } },
            },
            required: ["needed"],
          },
        }),
      ],
    });
    expect(seen.split("\n")[0]).toBe('Invalid arguments for tool "x":');
    expect(seen).toMatch(/\/a:/);
    expect(seen).toMatch(/\/list\/1:/);
    expect(seen).toMatch(/needed/);
  });

  it("R12: a tool that writes to its arguments does not change the transcript", async () => {
    const { transcript } = await play({
      script: calling(["x", { list: [1], inner: { a: 1 } }, "c1"]),
      tools: [
        tool("x", (args) => {
          const given = args as { list: number[]; inner: { a?: number } };
          given.list.push(2);
          delete given.inner.a;
          return JSON.stringify(given);
        }),
      ],
    });
    expect(transcript[2]).toMatchObject({
      isError: false,
      content: [{ text: '{"list":[1,2],"inner":{}}' }],
    });
    const asked = transcript[1];
    expect(asked?.role === "assistant" && asked.content[0]).toMatchObject({
      arguments: { list: [1], inner: { a: 1 } },
    });
  });

  it("R12: a schema that validates asynchronously is waited for", async () => {
    const parameters = z.object({ path: z.string().refine(async (path) => path !== "bad") });
    const seen: string[] = [];
    const { lines } = await play({
      script: calling(["x", { path: "good" }, "c1"], ["x", { path: "bad" }, "c2"]),
      tools: [
        tool(
          "x",
          (args) => {
            seen.push(JSON.stringify(args));
            return "ok";
          },
          { parameters },
        ),
      ],
    });
    expect(seen).toEqual(['{"path":"good"}']);
    expect(lines.filter((line) => line.startsWith("tool_end"))).toEqual([
      'tool_end x#c1 ok "ok"',
      expect.stringMatching(/^tool_end x#c2 error "Invalid arguments for tool "x":/),
    ]);
  });

  it("R12: a schema that never answers times out, and an abort does not wait for it", async () => {
    const parameters = z.object({}).refine(() => never<boolean>());
    const setup: Setup = {
      script: calling(["x", {}, "c1"]),
      tools: [tool("x", () => expect.unreachable(), { parameters })],
    };
    const slow = start(setup);
    await slow.clock.advance(120_000);
    const { lines } = await slow.done;
    expect(lines[8]).toMatch(/^tool_end x#c1 error "Tool "x" failed: .*120000 ms/);
    const stopped = start(setup);
    await stopped.clock.advance(10);
    stopped.abort();
    expect(afterAnswer((await stopped.done).lines)).toEqual([
      ...ran("x#c1", abortedBefore("x")),
      "turn_end toolUse x#c1",
      "agent_end aborted",
    ]);
  });
});

describe("R13: together, or one after the other", () => {
  /** Tools that end on demand, and a log of what runs. */
  function gated(...names: string[]) {
    const gates = new Map(names.map((name) => [name, later<string>()]));
    let running = 0;
    let most = 0;
    const tools = (more: Partial<AgentTool> = {}): AgentTool[] =>
      names.map((name) =>
        tool(
          name,
          async () => {
            most = Math.max(most, ++running);
            const value = await (gates.get(name) ?? later<string>()).promise;
            running--;
            return value;
          },
          more,
        ),
      );
    return {
      tools,
      end: (name: string) => gates.get(name)?.resolve(name),
      fail: (name: string) => gates.get(name)?.reject(new Error("bad")),
      most: () => most,
    };
  }

  it("R13: starts in call order, ends as they complete, results in call order", async () => {
    const { tools, end, fail } = gated("a", "b", "c");
    const { clock, done } = start({
      script: calling(["a", {}, "c1"], ["b", {}, "c2"], ["c", {}, "c3"]),
      tools: tools(),
      config: { toolExecution: "parallel" },
    });
    await clock.advance(1);
    end("c");
    await clock.advance(1);
    fail("a");
    await clock.advance(1);
    end("b");
    const bad = 'error "Tool "a" failed: bad"';
    expect(afterAnswer((await done).lines)).toEqual([
      "tool_start a#c1 {}",
      "tool_start b#c2 {}",
      "tool_start c#c3 {}",
      'tool_end c#c3 ok "c"',
      `tool_end a#c1 ${bad}`,
      'tool_end b#c2 ok "b"',
      ...result("a#c1", bad),
      ...result("b#c2", 'ok "b"'),
      ...result("c#c3", 'ok "c"'),
      "turn_end toolUse a#c1 b#c2 c#c3",
      ...ending,
    ]);
  });

  it("R13: a result that is finished is kept when the run is aborted", async () => {
    const { tools, end } = gated("a", "b");
    const { clock, done, abort } = start({
      script: calling(["a", {}, "c1"], ["b", {}, "c2"]),
      tools: tools({ concurrent: true }),
    });
    await clock.advance(1);
    end("b");
    await clock.advance(1);
    abort();
    await clock.advance(200);
    expect(afterAnswer((await done).lines)).toEqual([
      "tool_start a#c1 {}",
      "tool_start b#c2 {}",
      'tool_end b#c2 ok "b"',
      `tool_end a#c1 ${abortedWhile("a")}`,
      ...result("a#c1", abortedWhile("a")),
      ...result("b#c2", 'ok "b"'),
      "turn_end toolUse a#c1 b#c2",
      "agent_end aborted",
    ]);
  });

  it("R13: auto runs neighbors that may together, and every other call alone", async () => {
    const order: string[] = [];
    const log = (name: string, more: Partial<AgentTool> = {}): AgentTool =>
      tool(
        name,
        async (_args, { id }) => {
          order.push(`+${id}`);
          await new Promise(setImmediate);
          order.push(`-${id}`);
          return name;
        },
        more,
      );
    await play({
      script: calling(
        ["r", {}, "1"],
        ["r", {}, "2"],
        ["w", {}, "3"],
        ["w", {}, "4"],
        ["r", {}, "5"],
        ["r", {}, "6"],
      ),
      tools: [log("r", { concurrent: true }), log("w")],
    });
    expect(order.join(" ")).toBe("+1 +2 -1 -2 +3 -3 +4 -4 +5 +6 -5 -6");
  });

  it.each([
    ["sequential", true, 1],
    ["parallel", false, 3],
    ["auto", true, 3],
    ["auto", false, 1],
  ] as const)(
    "R13: %s with concurrent %s runs at most %i at once",
    async (mode, concurrent, most) => {
      const gates = gated("a", "b", "c");
      const { clock, done } = start({
        script: calling("a", "b", "c"),
        tools: gates.tools({ concurrent }),
        config: { toolExecution: mode },
      });
      for (const name of ["a", "b", "c"]) {
        await clock.advance(1);
        gates.end(name);
      }
      expect((await done).end.stop).toBe("done");
      expect(gates.most()).toBe(most);
    },
  );

  it.each([
    [undefined, 10],
    [1, 1],
    [3, 3],
    [0, 1],
  ])("R13: maxToolConcurrency %s lets %i run at once", async (maxToolConcurrency, expected) => {
    const names = Array.from({ length: 25 }, (_, i) => `t${i}`);
    const gates = gated(...names);
    const { clock, done } = start({
      script: calling(...names),
      tools: gates.tools(),
      config: {
        toolExecution: "parallel",
        ...(maxToolConcurrency !== undefined && { maxToolConcurrency }),
      },
    });
    await clock.advance(1);
    for (const name of names) gates.end(name);
    const { transcript } = await done;
    expect(gates.most()).toBe(expected);
    expect(transcript.flatMap((m) => (m.role === "toolResult" ? [m.toolName] : []))).toEqual(names);
  });

  it("R13: a slot is free as soon as any of the batch has ended", async () => {
    const gates = gated("a", "b", "c");
    const { clock, done, recorder } = start({
      script: calling(["a", {}, "c1"], ["b", {}, "c2"], ["c", {}, "c3"]),
      tools: gates.tools(),
      config: { toolExecution: "parallel", maxToolConcurrency: 2 },
    });
    await clock.advance(1);
    gates.end("b");
    await clock.advance(1);
    expect(recorder.only("tool_execution_start")).toHaveLength(3);
    gates.end("a");
    gates.end("c");
    await done;
  });
});

describe("R27: the key of a call", () => {
  it("R27: is the same for every attempt, in calls that a tool makes too, and for no other call", async () => {
    const keys: (string | undefined)[] = [];
    const again: Middleware = {
      async tool({ parentId }, next) {
        if (parentId === undefined) await next();
        return next();
      },
    };
    const attempt = (sessionId?: string): Promise<unknown> =>
      play({
        script: calling(["outer", {}, "c1"], ["inner", {}, "c2"]),
        tools: [
          tool("inner", (_args, { host }) => {
            keys.push(host.key);
            return "ok";
          }),
          tool("outer", async (_args, { host }) => {
            keys.push(host.key);
            await host.call("inner", {});
            return host.call("inner", {});
          }),
        ],
        config: { middleware: [again], ...(sessionId !== undefined && { sessionId }) },
      });
    await attempt("s1");
    const outer = ["s1:c1", "s1:c1/1", "s1:c1/2"];
    expect(keys).toEqual([...outer, ...outer, "s1:c2", "s1:c2"]);
    const first = keys.splice(0);
    await attempt("s1");
    expect(keys.splice(0)).toEqual(first);
    await attempt();
    const own = keys.splice(0);
    await attempt();
    expect(new Set([...own, ...keys]).size).toBe(8);
  });
});

describe("R14: middleware and updates", () => {
  const named = (name: string, log: string[]): Middleware => ({
    async tool(invocation, next) {
      log.push(`${name} before ${invocation.tool.name}`);
      const given = await next();
      log.push(`${name} after ${invocation.tool.name}`);
      return given;
    },
  });

  it("R14: middleware runs in order, the first outermost, after validation", async () => {
    const log: string[] = [];
    const seen: ToolInvocation[] = [];
    await play({
      script: calling(["x", { n: "1" }, "c1"], ["x", { n: "no" }, "c2"]),
      tools: [
        tool("x", () => "ok", {
          parameters: { type: "object", properties: { n: { type: "number" } } },
        }),
      ],
      config: {
        sessionId: "s",
        middleware: [
          named("one", log),
          named("two", log),
          {
            tool(invocation, next) {
              seen.push(invocation);
              return next();
            },
          },
        ],
      },
    });
    expect(log).toEqual(["one before x", "two before x", "two after x", "one after x"]);
    expect(
      seen.map(({ args, toolCall, run }) => [args, toolCall.arguments, run.sessionId]),
    ).toEqual([[{ n: 1 }, { n: "1" }, "s"]]);
  });

  it.each<[string, NonNullable<Middleware["tool"]>]>([
    [
      "rejects",
      async () => {
        throw new Error("no");
      },
    ],
    [
      "throws at once",
      () => {
        throw new Error("no");
      },
    ],
  ])("R14: middleware that %s before next denies the call", async (_what, layer) => {
    const seen = await resultText({
      script: calling("x"),
      tools: [tool("x", () => expect.unreachable())],
      config: { middleware: [{ tool: layer }] },
    });
    expect(seen).toBe('Tool "x" failed: no');
  });

  it("R14: throwing after next makes an error result", async () => {
    let runs = 0;
    const seen = await resultText({
      script: calling("x"),
      tools: [tool("x", () => `${++runs}`)],
      config: {
        middleware: [
          {
            async tool(_invocation, next) {
              await next();
              throw new Error("too much");
            },
          },
        ],
      },
    });
    expect([seen, runs]).toEqual(['Tool "x" failed: too much', 1]);
  });

  it("R14: middleware may change what the tool gets and what it gives", async () => {
    const seen = await resultText({
      script: calling(["x", { a: 1 }, "c1"]),
      tools: [tool("x", (args) => JSON.stringify(args))],
      config: {
        middleware: [
          {
            async tool(invocation, next) {
              const { content } = await next({ ...invocation, args: { a: 2 } });
              return { content: [...content, { type: "text", text: "!" }] };
            },
          },
        ],
      },
    });
    expect(seen).toBe('{"a":2}!');
  });

  it.each([undefined, "text", {}, { content: "text" }])(
    "R14: a value of middleware that is no result (%j) is an error result",
    async (given) => {
      const { transcript, end } = await play({
        script: calling("x"),
        tools: [tool("x")],
        config: {
          middleware: [{ tool: () => Promise.resolve(given as unknown as AgentToolResult) }],
        },
      });
      expect(end.stop).toBe("done");
      expect(transcript[2]).toMatchObject({ role: "toolResult", toolName: "x" });
    },
  );

  it("R14: a person may take as long as it takes: the tool's time is its own", async () => {
    const gate = later<"allow">();
    const { clock, done } = start({
      script: calling(["x", {}, "c1"]),
      tools: [tool("x", () => "x", { timeoutMs: 10 })],
      config: { middleware: [approval(() => gate.promise)] },
    });
    await clock.advance(10_000_000);
    gate.resolve("allow");
    expect((await done).lines[8]).toBe('tool_end x#c1 ok "x"');
  });

  it("R14: approval allows, denies with a reason, and lets a decision through", async () => {
    const { recorder } = await play({
      script: calling(["a", {}, "c1"], ["b", {}, "c2"]),
      tools: [tool("a"), tool("b", () => expect.unreachable())],
      config: {
        middleware: [approval(({ tool }) => (tool.name === "a" ? "allow" : { deny: "not b" }))],
      },
    });
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end a#c1 ok "a"',
      'tool_end b#c2 error "Tool "b" failed: Denied: not b"',
    ]);
  });

  it("R14: updates come between start and end", async () => {
    const { lines } = await play({
      script: calling(["x", {}, "c1"]),
      tools: [
        tool("x", async (_args, { update: onUpdate }) => {
          onUpdate(text("10 %"));
          await Promise.resolve();
          onUpdate(text("90 %"));
          return "all";
        }),
      ],
    });
    expect(afterAnswer(lines)).toEqual([
      "tool_start x#c1 {}",
      'tool_update x#c1 "10 %"',
      'tool_update x#c1 "90 %"',
      'tool_end x#c1 ok "all"',
      ...result("x#c1", 'ok "all"'),
      "turn_end toolUse x#c1",
      ...ending,
    ]);
  });

  it("R14: updates after a tool has settled are dropped, also while middleware goes on", async () => {
    const gate = later();
    let report: (partial: AgentToolResult) => void = () => {};
    const { clock, done } = start({
      script: calling(["x", {}, "c1"]),
      tools: [
        tool("x", (_args, { update: onUpdate }) => {
          report = onUpdate;
          return "all";
        }),
      ],
      config: {
        middleware: [
          {
            async tool(_invocation, next) {
              const given = await next();
              await gate.promise;
              return given;
            },
          },
        ],
      },
    });
    await clock.advance(1);
    report(text("late"));
    gate.resolve();
    const { recorder } = await done;
    report(text("later"));
    expect(recorder.only("tool_execution_update")).toEqual([]);
  });

  describe("tools that call tools", () => {
    it("R14: a nested call passes validation and the same middleware", async () => {
      const log: string[] = [];
      const parents: (string | undefined)[] = [];
      const seen = await resultText({
        script: calling(["outer", {}, "c1"]),
        tools: [
          tool("outer", async (_args, { host }) => {
            const inner = await host.call("inner", { n: "2" });
            const wrong = await host.call("inner", { n: "no" });
            const missing = await host.call("nosuch", {});
            return [inner, wrong, missing]
              .map((each) => (each.content[0]?.type === "text" ? each.content[0].text : ""))
              .join("|");
          }),
          tool("inner", (args) => JSON.stringify(args), {
            parameters: { type: "object", properties: { n: { type: "number" } } },
          }),
        ],
        config: {
          middleware: [
            named("m", log),
            {
              tool(invocation, next) {
                parents.push(invocation.parentId);
                return next();
              },
            },
          ],
        },
      });
      expect(seen).toMatch(
        /^\{"n":2\}\|Invalid arguments for tool "inner":\n.*\|Tool nosuch not found/,
      );
      expect(log).toEqual(["m before outer", "m before inner", "m after inner", "m after outer"]);
      expect(parents).toEqual([undefined, "c1"]);
    });

    it("R14: each nested call has an id of its own", async () => {
      const ids: string[] = [];
      await resultText({
        script: calling(["outer", {}, "c1"]),
        tools: [
          tool("outer", async (_args, { host }) => {
            await Promise.all([host.call("inner", {}), host.call("inner", {})]);
            return "ok";
          }),
          tool("inner", (_args, { id }) => {
            ids.push(id);
            return "ok";
          }),
        ],
      });
      expect(ids).toEqual(["c1/1", "c1/2"]);
    });

    it("R14: a denied nested call is thrown into the tool that made it", async () => {
      const seen = await resultText({
        script: calling("outer"),
        tools: [
          tool("outer", (_args, { host }) =>
            host.call("inner", {}).catch((error: unknown) => `caught ${String(error)}`),
          ),
          tool("inner", () => expect.unreachable()),
        ],
        config: {
          middleware: [
            {
              async tool({ tool }, next) {
                if (tool.name === "inner") throw new Error("not inside");
                return next();
              },
            },
          ],
        },
      });
      expect(seen).toBe("caught Error: not inside");
    });

    it("R14: nesting is bounded", async () => {
      const seen = await resultText({
        script: calling("again"),
        tools: [tool("again", (_args, { host }) => host.call("again", {}))],
      });
      expect(seen).toMatch(/"again".*16 deep/);
    });

    it("R14: a nested tool's timeout does not fire the signal of the tool that called it", async () => {
      const { clock, done } = start({
        script: calling(["outer", {}, "c1"]),
        tools: [
          tool("outer", async (_args, { signal, host }) => {
            const error = await host.call("inner", {}).catch((error: unknown) => String(error));
            return `${signal.aborted} ${typeof error === "string" ? error : "no error"}`;
          }),
          tool("inner", () => never<string>(), { timeoutMs: 50 }),
        ],
      });
      await clock.advance(50);
      expect((await done).lines[8]).toMatch(
        /^tool_end outer#c1 ok "false .*"inner" timed out after 50 ms/,
      );
    });

    it("R14: after an abort no nested tool is started", async () => {
      const gate = later();
      let ran = false;
      const { clock, done, abort } = start({
        script: calling(["outer", {}, "c1"]),
        tools: [
          tool("outer", async (_args, { host }) => {
            await gate.promise;
            return host.call("inner", {});
          }),
          tool("inner", () => {
            ran = true;
            return "x";
          }),
        ],
      });
      await clock.advance(1);
      abort();
      gate.resolve();
      await clock.advance(200);
      expect((await done).end.stop).toBe("aborted");
      expect(ran).toBe(false);
    });
  });
});

describe("timeouts", () => {
  it("R8: a tool that outlives its time gets its signal and a timed-out result, deaf or not", async () => {
    const late: unknown[] = [];
    const gate = later<string>();
    let signal: AbortSignal | undefined;
    const { clock, done, recorder } = start({
      script: calling(["x", {}, "c1"]),
      tools: [
        tool(
          "x",
          (_args, { signal: given }) => {
            signal = given;
            return gate.promise;
          },
          { timeoutMs: 1_000 },
        ),
      ],
      config: {
        onLateResult: ({ id }, given) => {
          const [block] = given.content;
          late.push([id, block?.type === "text" && block.text]);
        },
      },
    });
    await clock.advance(999);
    expect([signal?.aborted, recorder.only("tool_execution_end")]).toEqual([false, []]);
    await clock.advance(1);
    const { lines } = await done;
    expect(signal?.aborted).toBe(true);
    const timedOut =
      'error "Tool "x" timed out after 1000 ms and was stopped; it may have had effects."';
    expect(afterAnswer(lines)).toEqual([
      ...ran("x#c1", timedOut),
      "turn_end toolUse x#c1",
      ...ending,
    ]);
    gate.resolve("after all");
    await clock.advance(0);
    expect(late).toEqual([["c1", "after all"]]);
    expect(recorder.lines).toEqual(lines);
  });

  it("R8: the default time is toolTimeoutMs, and 600 s without it", async () => {
    for (const [config, ms] of [
      [{}, 600_000],
      [{ toolTimeoutMs: 5_000 }, 5_000],
    ] as const) {
      const { clock, done, recorder } = start({
        script: calling("x"),
        tools: [tool("x", () => never<string>())],
        config,
      });
      await clock.advance(ms - 1);
      expect(recorder.only("tool_execution_end")).toEqual([]);
      await clock.advance(1);
      expect((await done).end.stop).toBe("done");
    }
  });

  it("R13: one of a batch that times out does not harm its siblings", async () => {
    const gate = later<string>();
    const { clock, done } = start({
      script: calling(["slow", {}, "c1"], ["x", {}, "c2"]),
      tools: [
        tool("slow", () => never<string>(), { timeoutMs: 10 }),
        tool("x", () => gate.promise),
      ],
      config: { toolExecution: "parallel" },
    });
    await clock.advance(10);
    gate.resolve("fine");
    const { recorder } = await done;
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end slow#c1 error "Tool "slow" timed out after 10 ms and was stopped; it may have had effects."',
      'tool_end x#c2 ok "fine"',
    ]);
  });

  it("a call's end says how long it took", async () => {
    const { clock, done } = start({
      script: calling("slow", "nosuch"),
      tools: [tool("slow", () => new Promise((resolve) => clock.after(30, () => resolve("x"))))],
    });
    await clock.advance(30);
    const { events } = await done;
    const took = events.flatMap((e) => (e.type === "tool_execution_end" ? [e.durationMs] : []));
    expect(took).toEqual([30, 0]);
  });

  it("no timer is left when the run is over", async () => {
    const { clock, done } = start({
      script: calling("x", "y"),
      tools: [tool("x"), tool("y", async () => "y", { timeoutMs: 10 })],
      config: { limits: { maxDurationMs: 1_000 }, onLateResult: () => {} },
    });
    await done;
    expect(clock.pending).toBe(0);
  });
});

describe("R21: abort among tools", () => {
  it("R21: signals fire, deaf tools are left behind after the grace time, the rest is not started", async () => {
    const late: unknown[] = [];
    const gate = later<string>();
    let signal: AbortSignal | undefined;
    const { clock, done, abort, recorder, model } = start({
      script: calling(["deaf", {}, "c1"], ["x", {}, "c2"]),
      tools: [
        tool("deaf", (_args, { signal: given }) => {
          signal = given;
          return gate.promise;
        }),
        tool("x", () => expect.unreachable()),
      ],
      config: { onLateResult: (toolCall, given) => late.push([toolCall.id, given]) },
    });
    await clock.advance(5);
    abort();
    expect(signal?.aborted).toBe(true);
    await clock.advance(199);
    expect(recorder.only("tool_execution_end")).toEqual([]);
    await clock.advance(1);
    const { lines } = await done;
    expect(afterAnswer(lines)).toEqual([
      ...ran("deaf#c1", abortedWhile("deaf")),
      ...ran("x#c2", abortedBefore("x")),
      "turn_end toolUse deaf#c1 x#c2",
      "agent_end aborted",
    ]);
    gate.resolve("too late");
    await clock.advance(0);
    expect(late).toEqual([["c1", text("too late")]]);
    expect(recorder.lines).toEqual(lines);
    expect(model.requests).toBe(1);
  });

  it("R21: a tool that rejects after it was left behind is a late result too", async () => {
    const late: AgentToolResult[] = [];
    const gate = later<string>();
    const { clock, done, abort } = start({
      script: calling("x"),
      tools: [tool("x", () => gate.promise)],
      config: { onLateResult: (_call, given) => late.push(given) },
    });
    await clock.advance(1);
    abort();
    await clock.advance(200);
    await done;
    gate.reject(new Error("stopped"));
    await clock.advance(0);
    expect(late.map((given) => given.isError)).toEqual([true]);
  });

  it("R21: an onLateResult that throws does no harm", async () => {
    const gate = later<string>();
    const { clock, done, abort } = start({
      script: calling("x"),
      tools: [tool("x", () => gate.promise)],
      config: {
        onLateResult: () => {
          throw new Error("bad");
        },
      },
    });
    await clock.advance(1);
    abort();
    await clock.advance(200);
    expect((await done).end.stop).toBe("aborted");
    gate.resolve("late");
    await clock.advance(0);
  });

  it("R21: a tool that listens gives its result at once, and it is kept", async () => {
    const { clock, done, abort } = start({
      script: calling(["x", {}, "c1"]),
      tools: [
        tool(
          "x",
          (_args, { signal }) =>
            new Promise((resolve) => signal.addEventListener("abort", () => resolve("what I had"))),
        ),
      ],
    });
    await clock.advance(1);
    abort();
    expect(afterAnswer((await done).lines)).toEqual([
      ...ran("x#c1", 'ok "what I had"'),
      "turn_end toolUse x#c1",
      "agent_end aborted",
    ]);
  });

  it("R21: a tool that throws on its signal gets the Aborted result", async () => {
    const { clock, done, abort } = start({
      script: calling(["x", {}, "c1"]),
      tools: [
        tool(
          "x",
          (_args, { signal }) =>
            new Promise((_resolve, reject) =>
              signal.addEventListener("abort", () => reject(new Error("AbortError"))),
            ),
        ),
      ],
    });
    await clock.advance(1);
    abort();
    expect((await done).lines[8]).toBe(`tool_end x#c1 ${abortedWhile("x")}`);
  });

  it("R14: a tool that was left behind reports no progress any more", async () => {
    let report = (): void => {};
    const { clock, done, abort, recorder } = start({
      script: calling(["deaf", {}, "c1"], ["slow", {}, "c2"]),
      tools: [
        {
          ...tool("deaf", (_args, { update }) => {
            report = () => update(text("late"));
            return never();
          }),
          abortGraceMs: 10,
          concurrent: true,
        },
        { ...tool("slow", () => never()), abortGraceMs: 1_000, concurrent: true },
      ],
    });
    await clock.advance(5);
    abort();
    await clock.advance(20);
    report();
    await clock.advance(1_000);
    await done;
    expect(recorder.only("tool_execution_update")).toEqual([]);
  });

  it("R21: the grace time is the config's, or the tool's own", async () => {
    for (const [config, more, ms] of [
      [{ abortGraceMs: 50 }, {}, 50],
      [{ abortGraceMs: 50 }, { abortGraceMs: 3_000 }, 3_000],
    ] as const) {
      const { clock, done, abort, recorder } = start({
        script: calling("x"),
        tools: [tool("x", () => never<string>(), more)],
        config,
      });
      await clock.advance(1);
      abort();
      await clock.advance(ms - 1);
      expect(recorder.only("agent_end")).toEqual([]);
      await clock.advance(1);
      expect((await done).end.stop).toBe("aborted");
    }
  });

  it("R21: an abort at tool_execution_start runs nothing", async () => {
    const { done, abort } = start({
      script: calling(["x", {}, "c1"], ["x", {}, "c2"]),
      tools: [tool("x", () => expect.unreachable())],
      onEvent: (event) => {
        if (event.type === "tool_execution_start") abort();
      },
    });
    expect(afterAnswer((await done).lines)).toEqual([
      ...ran("x#c1", abortedBefore("x")),
      ...ran("x#c2", abortedBefore("x")),
      "turn_end toolUse x#c1 x#c2",
      "agent_end aborted",
    ]);
  });

  it("R21: an abort in middleware starts no tool, though the middleware goes on", async () => {
    const execute = vi.fn<() => string>(() => "did it");
    const { done, abort } = start({
      script: calling(["x", {}, "c1"]),
      tools: [tool("x", execute)],
      config: {
        middleware: [
          {
            tool(_call, next) {
              abort();
              return next();
            },
          },
        ],
      },
    });
    expect(afterAnswer((await done).lines)).toEqual([
      ...ran("x#c1", abortedBefore("x")),
      "turn_end toolUse x#c1",
      "agent_end aborted",
    ]);
    expect(execute).not.toHaveBeenCalled();
  });

  it("R21: an abort that a tool makes itself lets it finish, and starts no other", async () => {
    const { done, abort } = start({
      script: calling(["x", {}, "c1"], ["y", {}, "c2"]),
      tools: [
        tool("x", () => {
          abort();
          return "did it";
        }),
        tool("y", () => expect.unreachable()),
      ],
    });
    expect(afterAnswer((await done).lines)).toEqual([
      ...ran("x#c1", 'ok "did it"'),
      ...ran("y#c2", abortedBefore("y")),
      "turn_end toolUse x#c1 y#c2",
      "agent_end aborted",
    ]);
  });

  it("R14: middleware that never settles is abandoned after its own deadline", async () => {
    const { clock, done } = start({
      script: calling(["x", {}, "c1"]),
      tools: [tool("x", () => expect.unreachable())],
      config: { middleware: [{ tool: () => never() }], middlewareTimeoutMs: 5_000 },
    });
    await clock.advance(4_999);
    await clock.advance(1);
    const [ended] = (await done).events.filter(({ type }) => type === "tool_execution_end");
    expect(ended).toMatchObject({
      toolCallId: "c1",
      isError: true,
      durationMs: 5_000,
      result: errorResult(
        'Tool "x" was abandoned: its middleware did not settle within 5000 ms.',
        "timeout",
      ),
    });
    expect(clock.pending).toBe(0);
  });

  it("R21: middleware that never settles does not hold an abort up", async () => {
    const { clock, done, abort } = start({
      script: calling(["x", {}, "c1"]),
      tools: [tool("x", () => expect.unreachable())],
      config: { middleware: [{ tool: () => never() }] },
    });
    await clock.advance(10);
    abort();
    await clock.advance(200);
    expect((await done).lines[8]).toBe(`tool_end x#c1 ${abortedBefore("x")}`);
  });

  it("R21: an abort during a steering poll among calls ends it at once", async () => {
    let polls = 0;
    const { clock, done, abort } = start({
      script: calling(["x", {}, "c1"], ["x", {}, "c2"]),
      tools: [tool("x")],
      config: { getSteeringMessages: () => (++polls === 2 ? never() : []) },
    });
    await clock.advance(10);
    abort();
    expect(afterAnswer((await done).lines)).toEqual([
      ...ran("x#c1", 'ok "x"'),
      ...ran("x#c2", abortedBefore("x")),
      "turn_end toolUse x#c1 x#c2",
      "agent_end aborted",
    ]);
  });
});

it("R21: a response of many instant deltas lets timers fire on the way", async () => {
  const script = scriptedModel([Array.from({ length: 1_000 }, () => "x ")]);
  let updates = 0;
  let firedAt = Infinity;
  const { end } = await play({
    streamFn: script.stream,
    clock: systemClock,
    onEvent: ({ type }) => {
      if (type !== "message_update") return;
      if (updates++ === 0) setTimeout(() => (firedAt = updates), 0);
      const until = performance.now() + 0.1;
      while (performance.now() < until);
    },
  });
  expect(end.stop).toBe("done");
  expect(updates).toBeGreaterThan(500);
  expect(firedAt).toBeLessThan(updates);
});

it("R21: a message of many instant calls lets timers fire on the way", async () => {
  const script = scriptedModel([Array.from({ length: 500 }, () => call("x")), "Done"]);
  let begun = false;
  let fired = false;
  let firedBefore = false;
  const busy = tool("x", () => {
    if (!begun) setTimeout(() => (fired = true), 0);
    begun = true;
    const until = performance.now() + 0.1;
    while (performance.now() < until);
    firedBefore ||= fired;
    return "x";
  });
  const { end } = await play({
    streamFn: script.stream,
    tools: [busy],
    clock: systemClock,
    config: { limits: { maxIdenticalCalls: 1e9 } },
  });
  expect(end.stop).toBe("done");
  expect(firedBefore).toBe(true);
});

describe("what middleware and nested calls are given", () => {
  const again: Middleware = {
    async tool(_call, next) {
      try {
        return await next();
      } catch {
        return next();
      }
    },
  };

  it("a try after a timeout has a signal that has not fired", async () => {
    const fired: boolean[] = [];
    const slow = tool(
      "slow",
      (_args, { signal }) => {
        fired.push(signal.aborted);
        return fired.length === 1 ? never() : "ok";
      },
      { timeoutMs: 100 },
    );
    const { lines } = await play(
      { script: calling(["slow", {}, "c1"]), tools: [slow], config: { middleware: [again] } },
      150,
    );
    expect(fired).toEqual([false, false]);
    expect(afterAnswer(lines)).toEqual([
      ...ran("slow#c1", 'ok "ok"'),
      "turn_end toolUse slow#c1",
      ...ending,
    ]);
  });

  it("an abort reaches the second try as well", async () => {
    const signals: AbortSignal[] = [];
    const slow = tool(
      "slow",
      (_args, { signal }) => {
        signals.push(signal);
        return never();
      },
      { timeoutMs: 100 },
    );
    const { clock, done, abort } = start({
      script: calling(["slow", {}, "c1"]),
      tools: [slow],
      config: { middleware: [again] },
    });
    await clock.advance(150);
    abort();
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
    await clock.advance(200);
    expect((await done).end.stop).toBe("aborted");
  });

  it("parentId names the call that made the call, however deep", async () => {
    const seen: [string, string | undefined][] = [];
    const look: Middleware = {
      tool: ({ toolCall, parentId }, next) => {
        seen.push([toolCall.id, parentId]);
        return next();
      },
    };
    const calls = (name: string, inner: string): AgentTool =>
      tool(name, (_args, { host }) => host.call(inner, {}));
    await play({
      script: calling(["a", {}, "c1"]),
      tools: [calls("a", "b"), calls("b", "c"), tool("c")],
      config: { middleware: [look] },
    });
    expect(seen).toEqual([
      ["c1", undefined],
      ["c1/1", "c1"],
      ["c1/1/2", "c1/1"],
    ]);
  });
});

it("R21: calls of a batch that never wait let timers fire between them", async () => {
  let turns = 0;
  const clock = {
    ...systemClock,
    turn: () => {
      turns++;
      return systemClock.turn();
    },
  };
  const busy = tool(
    "busy",
    () => {
      const until = Date.now() + 3;
      while (Date.now() < until);
      return "ok";
    },
    { concurrent: true },
  );
  const calls = Array.from({ length: 40 }, (_, i) => ["busy", { i }, `c${i}`] as const);
  let turnsAtFirstResult = 0;
  await play({
    script: [callAll(calls.map((one) => [...one])), "Done"],
    tools: [busy],
    clock,
    onEvent: (event) => {
      if (event.type === "message_end" && event.message.role === "toolResult") {
        turnsAtFirstResult ||= turns;
      }
    },
  });
  expect(turnsAtFirstResult).toBeGreaterThanOrEqual(3);
});
