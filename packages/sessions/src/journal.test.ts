import {
  Agent,
  type AgentEvent,
  type AgentMessage,
  type AgentOptions,
  type AgentTool,
  applyCompaction,
  approval,
  listCalls,
  defineTool,
  isLlmMessage,
  userMessage,
  Suspend,
} from "@gyre/agent";
import { type Clock } from "@gyre/ai";
import {
  call,
  callAll,
  fail,
  manualClock,
  say,
  scriptedModel,
  type ScriptedModel,
  type ScriptStep,
  stall,
  think,
} from "@gyre/ai/testing";
import { appendFile, type FileHandle, open, readFile, stat, writeFile } from "node:fs/promises";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { Entry } from "./format/entry.ts";
import { createJournal, type Journal } from "./journal.ts";
import { createSession, openSession } from "./file/session-file.ts";
import { temporaryPaths } from "./testing/folder.ts";
import type { SessionFile, SessionContext } from "./format/types.ts";

const newPath = temporaryPaths("journal", afterAll);

function textTool(
  name: string,
  execute: AgentTool["execute"] = () => name,
  more: Partial<AgentTool> = {},
): AgentTool {
  const tool = defineTool({ name, description: name, parameters: { type: "object" }, execute });
  return { ...tool, ...more };
}

/** Settles when asked to. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

const tools: AgentTool[] = [
  textTool("look", () => ({
    content: [{ type: "text", text: "seen" }],
    details: { lines: [1, 2] },
  })),
  textTool("fail", () => {
    throw new Error("boom");
  }),
  textTool("silent", () => ({ content: [] })),
];

interface Stage {
  session: SessionFile;
  agent: Agent;
  model: ScriptedModel;
}

function agentOn(
  session: SessionFile,
  context: SessionContext,
  script: readonly ScriptStep[],
  options: AgentOptions = {},
): Stage {
  const model = scriptedModel(script);
  const { compaction, messages } = context;
  const agent = new Agent({
    clock: manualClock(),
    protocol: model,
    sink: createJournal(session, context),
    unfinished: (id) => context.unfinished(id),
    model: model.model,
    tools,
    messages,
    ...(compaction && { compaction }),
    ...options,
  });
  return { session, agent, model };
}

async function begin(script: readonly ScriptStep[], options: AgentOptions = {}): Promise<Stage> {
  const session = await createSession(newPath(), { cwd: "/w" }, { clock: manualClock() });
  return agentOn(session, await session.context(), script, options);
}

/** An agent with all that a journal has for it. */
async function keepingAgent(
  session: SessionFile,
  script: readonly ScriptStep[],
  options: AgentOptions = {},
): Promise<Stage & { journal: Journal }> {
  const context = await session.context();
  const { messages, pending, queued, unfinished } = context;
  const journal = createJournal(session, context);
  const stage = agentOn(session, context, script, {
    sink: journal,
    unfinished,
    onQueueChange: journal.onQueueChange,
    messages,
    pending,
    queued,
    ...options,
    middleware: [...(options.middleware ?? []), journal.middleware],
  });
  return { ...stage, journal };
}

async function readEntries(session: SessionFile): Promise<Entry[]> {
  return Promise.all(session.entries.map(({ id }) => session.read(id)));
}

/** A file as it is reopened. */
async function reopen(path: string): Promise<{ session: SessionFile; context: SessionContext }> {
  const session = await openSession(path, { clock: manualClock() });
  return { session, context: await session.context() };
}

/** Closes the session and asserts that the file says what the agent knows. */
async function expectSame({ session, agent }: Stage): Promise<void> {
  await session.close();
  const again = await reopen(session.path);
  await again.session.close();
  const { compaction, messages } = agent.state;
  const sent = compaction ? applyCompaction(messages, compaction) : messages;
  const { context } = again;
  const read = context.compaction
    ? applyCompaction(context.messages, context.compaction)
    : context.messages;
  expect(read).toEqual(sent);
  expect(JSON.stringify(read)).toBe(JSON.stringify(sent));
  expect(again.session.problems).toEqual([]);
}

describe("a journal", () => {
  it("writes a conversation that is read back as it was", async () => {
    const stage = await begin([
      [think("hm", { signature: "s" }), say("I look"), call("look", { a: [1] }), call("fail")],
      [call("silent"), call("missing", "not json")],
      "done",
      "again",
    ]);
    await stage.agent.prompt("go");
    await stage.agent.prompt("more");
    stage.model.assertComplete();
    expect(stage.agent.state.messages).toHaveLength(10);
    await expectSame(stage);
  });

  it("stores a result once", async () => {
    const long = "long ".repeat(1_000);
    const { session, agent } = await begin([call("long"), "done"], {
      tools: [textTool("long", () => long)],
    });
    await agent.prompt("go");
    await session.close();
    const text = await readFile(session.path, "utf8");
    expect(text.split(long)).toHaveLength(2);
    expect(text).toContain('"resultOf":4');
  });

  it("keeps results that ended in another order in that of the calls", async () => {
    const slow = gate();
    const stage = await begin([callAll(["slow", "quick"]), "done"], {
      toolExecution: "parallel",
      tools: [
        textTool("slow", async () => {
          await slow.opened;
          return "slow";
        }),
        textTool("quick"),
      ],
    });
    stage.agent.subscribe((event) => {
      if (event.type === "tool_execution_end" && event.toolName === "quick") slow.open();
    });
    await stage.agent.prompt("go");
    await expectSame(stage);
  });

  it("writes down an abort and an error", async () => {
    const stage = await begin([
      [say("half"), stall()],
      [say("half"), fail("overheated", { kind: "bad_request" })],
      "fine",
    ]);
    const stop = stage.agent.subscribe(({ type }) => {
      if (type === "message_update") stage.agent.abort();
    });
    await stage.agent.prompt("one");
    stop();
    await stage.agent.prompt("two");
    await stage.agent.prompt("three");
    const reasons = stage.agent.state.messages.map((message) =>
      message.role === "assistant" ? message.stopReason : "",
    );
    expect(reasons).toEqual(["", "aborted", "", "error", "", "stop"]);
    await expectSame(stage);
  });

  it("R27: a decision that comes later puts its result in its place", async () => {
    let asked = 0;
    const stage = await begin([callAll(["look", "silent"]), "done"], {
      middleware: [
        approval(({ toolCall }) => {
          if (toolCall.name === "look" && asked++ === 0) throw new Suspend("ask");
          return "allow";
        }),
      ],
    });
    const end = await stage.agent.prompt("go");
    expect(end.stop).toBe("suspended");
    const [pending] = end.pending;
    await stage.agent.continue({
      decisions: { [pending?.toolCall.id ?? ""]: { type: "approve" } },
    });
    const results = stage.agent.state.messages.flatMap((message) =>
      message.role === "toolResult" ? [message.toolName] : [],
    );
    expect(results).toEqual(["look", "silent"]);
    await expectSame(stage);
  });

  it("ends the run where it cannot write, and no listener sees what it could not", async () => {
    const { session, agent } = await begin(["one", "two"]);
    await agent.prompt("a");
    await session.close();
    const seen: AgentEvent["type"][] = [];
    agent.subscribe(({ type }) => void seen.push(type));
    await expect(agent.prompt("b")).rejects.toMatchObject({ name: "SinkError" });
    expect(seen).not.toContain("message_end");
    const again = await reopen(session.path);
    expect(again.context.messages).toEqual(agent.state.messages);
    await again.session.close();
  });
});

describe("compaction", () => {
  const context = { triggerTokens: 300, targetTokens: 120, keepTurns: 1 };
  const words = (name: string): string => `${name} `.repeat(60);

  it("is read back as it was sent, again and again", async () => {
    const stage = await begin(
      Array.from({ length: 8 }, (_, i) => (i % 3 === 1 ? call("look") : words(`a${i}`))),
      { context },
    );
    let compactions = 0;
    stage.agent.subscribe(({ type }) => void (compactions += Number(type === "compaction")));
    for (const name of ["q1", "q2", "q3", "q4"]) await stage.agent.prompt(words(name));
    expect(compactions).toBeGreaterThan(1);
    await expectSame(stage);

    const { session, context: read } = await reopen(stage.session.path);
    const next = agentOn(session, read, [words("b1"), words("b2"), words("b3")], { context });
    next.agent.subscribe(({ type }) => void (compactions += Number(type === "compaction")));
    const before = compactions;
    for (const name of ["q5", "q6", "q7"]) await next.agent.prompt(words(name));
    expect(compactions).toBeGreaterThan(before);
    await expectSame(next);
    expect(next.model.calls.at(-1)?.messages).toEqual(
      next.agent.state.compaction &&
        applyCompaction(next.agent.state.messages, next.agent.state.compaction).slice(0, -1),
    );
  });

  it("names what it stands for where a result was put in its place later", async () => {
    const stage = await begin([call("look"), words("a1"), words("a2")], {
      context: { ...context, triggerTokens: 1e6 },
    });
    await stage.agent.prompt(words("q1"));
    await stage.agent.prompt(words("q2"));
    await stage.session.close();
    // The result and its message are lost; the call is answered when the file is opened again.
    const lines = (await readFile(stage.session.path, "utf8")).split("\n");
    await writeFile(
      stage.session.path,
      lines.filter((line) => !/^\{"id":[45],/.test(line)).join("\n"),
    );
    const { session, context: read } = await reopen(stage.session.path);
    const next = agentOn(session, read, [words("a3"), words("a4")], { context });
    await next.agent.prompt(words("q3"));
    await next.agent.prompt(words("q4"));
    const compactions = session.entries.filter(({ type }) => type === "compaction");
    expect(await session.read(compactions[0]?.id ?? 0)).toHaveProperty("entries");
    const { compaction, messages } = next.agent.state;
    const sent = compaction ? applyCompaction(messages, compaction) : messages;
    await session.close();
    const again = await reopen(session.path);
    expect(again.context.messages).toEqual(sent);
    const fork = await again.session.fork(newPath());
    expect((await fork.context()).messages).toEqual(sent);
    await Promise.all([again.session.close(), fork.close()]);
  });

  it("keeps short forms, facts and notes, so that a resumed session sends the same bytes", async () => {
    const roomy = { triggerTokens: 4_000, targetTokens: 2_000, keepTurns: 1 };
    let notes = 0;
    const pinned = (): string => `Notes ${notes}`;
    const edit: AgentTool = {
      ...textTool("edit", () => words(`e${++notes}`).repeat(8)),
      presentation: { kind: "edit", effects: ({ path }) => ({ changes: [String(path)] }) },
    };
    const options: AgentOptions = {
      context: { ...roomy, pinned },
      tools: [edit],
    };
    const steps = (from: number, count: number): ScriptStep[] =>
      Array.from({ length: count }, (_, i) => [
        say(i % 4 === 0 ? `Decision: ${from + i}` : `Step ${from + i}`),
        call("edit", { path: `file-${(from + i) % 10}` }, `id-${from + i}`),
      ]);
    let stage = await begin([...steps(0, 11), "done"], options);
    const shapes = new Set<string>();
    const watch = ({ agent }: Stage): void => {
      agent.subscribe((event) => {
        if (event.type !== "compaction") return;
        const { from, to, message, shortened } = event.compaction;
        shapes.add(`${message ? (to > from ? "left" : "notes") : ""} ${shortened ? "short" : ""}`);
      });
    };
    watch(stage);
    await stage.agent.prompt("go");
    for (let round = 1; round <= 6; round++) {
      await expectSame(stage);
      const before = stage.agent.state;
      const { session, context: read } = await reopen(stage.session.path);
      const next = agentOn(session, read, [...steps(round * 20, 7), "done"], options);
      watch(next);
      expect(next.agent.state.compaction?.facts).toEqual(before.compaction?.facts);
      await next.agent.prompt("on");
      const sent = before.compaction
        ? applyCompaction(before.messages, before.compaction)
        : before.messages;
      const first = next.model.calls[0]?.messages ?? [];
      expect(JSON.stringify(first.slice(0, sent.length))).toBe(JSON.stringify(sent));
      stage = next;
    }
    expect(shapes).toContain("left short");
    expect(shapes.size).toBeGreaterThan(1);
    const last = JSON.stringify(stage.model.calls.at(-1)?.messages);
    for (const fact of ["Decision: 0", "Decision: 84", "file-3", "file-9"]) {
      expect(last).toContain(fact);
    }
    const { messages, compaction } = stage.agent.state;
    await stage.session.close();
    const again = await reopen(stage.session.path);
    const fork = await again.session.fork(newPath());
    const forked = await fork.context();
    expect(forked.compaction && applyCompaction(forked.messages, forked.compaction)).toEqual(
      compaction && applyCompaction(messages, compaction),
    );
    await Promise.all([again.session.close(), fork.close()]);
  });

  it("of results alone leaves every message in its place", async () => {
    const long = textTool("long", () => words("long").repeat(8));
    const stage = await begin(
      Array.from({ length: 9 }, (_, i) => (i < 8 ? call("long", { i }) : "done")),
      {
        context: { triggerTokens: 3_000, targetTokens: 2_600, keepTurns: 1 },
        tools: [long],
      },
    );
    await stage.agent.prompt("go");
    const { compaction, messages } = stage.agent.state;
    expect(compaction).toEqual({ from: 0, to: 0, shortened: expect.anything() });
    await expectSame(stage);
    const again = await reopen(stage.session.path);
    expect(again.context.messages).toEqual(messages);
    expect(again.context.compaction).toEqual(compaction);
    const fork = await again.session.fork(newPath());
    expect(await fork.context()).toMatchObject({ messages, compaction });
    await Promise.all([again.session.close(), fork.close()]);
  });

  it("a long result is written down as short as it was seen", async () => {
    const whole = Array.from({ length: 2_000 }, (_, i) => `line ${i}`).join("\n");
    const stage = await begin([call("long"), "done"], {
      context: { maxResultTokens: 500, storeResult: () => "ask for it" },
      tools: [textTool("long", () => whole)],
    });
    await stage.agent.prompt("go");
    await expectSame(stage);
    const text = await readFile(stage.session.path, "utf8");
    expect(text).toContain("The whole result is kept: ask for it");
    expect(text).not.toContain("line 1000");
  });
});

/** What was on the disk when an event was shown. */
interface Shown {
  event: AgentEvent;
  bytes: number;
}

/** A run with several calls at once, and each event with the size of the file when it was shown. */
async function watchedRun(): Promise<{ stage: Stage; shown: Shown[]; bytes: Buffer }> {
  const stage = await begin([callAll(["look", "fail", "silent"]), "done"], {
    toolExecution: "parallel",
  });
  const shown: Shown[] = [];
  stage.agent.subscribe(async (event) => {
    shown.push({ event, bytes: (await stat(stage.session.path)).size });
  });
  await stage.agent.prompt("go");
  await stage.session.close();
  return { stage, shown, bytes: await readFile(stage.session.path) };
}

describe("R25: cut off at any byte", () => {
  it("nothing is lost whose end was shown", async () => {
    const { stage, shown, bytes } = await watchedRun();
    const header = bytes.indexOf("\n");
    const { messages } = stage.agent.state;
    const path = newPath();
    for (let cut = header; cut <= bytes.length; cut++) {
      await writeFile(path, bytes.subarray(0, cut));
      const session = await openSession(path, { readOnly: true });
      const context = await session.context();
      await session.close();
      expect(context.messages).toEqual(messages.slice(0, context.messages.length));
      const before = shown.filter((each) => each.bytes <= cut).map(({ event }) => event);
      const ended = before.filter(({ type }) => type === "message_end");
      expect(context.messages.length).toBeGreaterThanOrEqual(ended.length);
      for (const event of before) {
        if (event.type !== "tool_execution_end") continue;
        const { toolCallId, result, outcome } = event;
        const isAnswered = context.messages.some(
          (message) => message.role === "toolResult" && message.toolCallId === toolCallId,
        );
        if (!isAnswered)
          expect(context.unfinished(toolCallId)).toMatchObject({ ...result, outcome });
      }
    }
  });

  it("R19: it goes on from there, and the file says what the agent knows", async () => {
    const { bytes } = await watchedRun();
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 10).map((at) => at + 1);
    for (const end of ends.flatMap((at) => [at - 40, at])) {
      const path = newPath();
      if (end < (ends[0] ?? 0)) continue;
      await writeFile(path, bytes.subarray(0, end));
      const { session, context } = await reopen(path);
      const stage = agentOn(session, context, ["resumed", "more"]);
      await stage.agent.prompt("and now");
      const ids = session.entries.filter(({ type }) => type === "result").map(({ id }) => id);
      const results = await Promise.all(ids.map((id) => session.read(id)));
      const calls = results.map((entry) => entry.type === "result" && entry.toolCallId);
      expect(new Set(calls).size).toBe(calls.length);
      expect(openCalls(stage.agent.state.messages)).toEqual([]);
      await session.close();
      const again = await reopen(path);
      expect(again.context.messages).toEqual(stage.agent.state.messages);
      await again.session.close();
    }
  });
});

describe("calls without a result", () => {
  const isAsked = approval(({ tool }) => (tool.name === "look" ? "suspend" : "allow"));

  it("begin is in the file before the tool runs, once, and not where it may run again", async () => {
    const session = await createSession(newPath(), { cwd: "/w" }, { clock: manualClock() });
    const seen: string[][] = [];
    const types = (): string[] => session.entries.map(({ type }) => type);
    const act = textTool("act", () => (seen.push(types()), "done"));
    const read = textTool("read", () => "read", { idempotent: true });
    const { agent } = await keepingAgent(session, [callAll(["read", "act"]), "done"], {
      tools: [act, read],
    });
    await agent.prompt("go");
    expect(seen).toEqual([["message", "start", "message", "result", "message", "begin"]]);
    expect((await readEntries(session)).filter(({ type }) => type === "begin")).toMatchObject([
      { toolCallId: "call_2", toolName: "act" },
    ]);
    await session.close();
  });

  it("begins that wait share one write", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const act = textTool("act", () => "done", { concurrent: true });
    const { agent } = await keepingAgent(session, [callAll(["act", "act", "act"]), "done"], {
      tools: [act],
    });
    const synced = vi.spyOn(await fileHandlePrototype(), "datasync");
    let before = 0;
    const counts: number[] = [];
    agent.subscribe(({ type }) => {
      if (type === "tool_execution_start" && counts.length === 0) before = synced.mock.calls.length;
      if (type === "tool_execution_end") counts.push(synced.mock.calls.length - before);
    });
    await agent.prompt("go");
    // One for all that begin; then the results, as they come.
    expect(counts[0]).toBe(2);
    synced.mockRestore();
    await session.close();
  });

  it("is not begun only where that would be known: a file of an older version", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent } = await begin([call("look")]);
    await agent.prompt("go").catch(() => {});
    const [prompt, asked] = agent.state.messages;
    if (!prompt || !asked) throw new Error("Nothing was said.");
    await session.append({ type: "message", message: prompt });
    await session.append({ type: "message", message: asked });
    expect((await session.context()).unfinished("call_1")).toBeUndefined();
    await session.append({ type: "message", message: asked, begins: true });
    expect((await session.context()).unfinished("call_1")).toBe("not begun");
    await session.append({ type: "begin", toolCallId: "call_1", toolName: "look" });
    expect((await session.context()).unfinished("call_1")).toBeUndefined();
    await session.close();
  });

  it("R27: is not known not to have begun where it began on another branch, nor in a fork", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent } = await keepingAgent(session, [callAll([["look"], ["look"]]), "done"]);
    await agent.prompt("go");
    const asked = session.findBranch()[1] ?? null;
    await session.branch(asked);
    const { unfinished } = await session.context();
    expect(unfinished("call_1")).toMatchObject({ outcome: "ok" });
    expect(unfinished("call_2")).toBeUndefined();
    await session.close();
    const other = await createSession(newPath(), { cwd: "/w" });
    const [prompt, calls] = agent.state.messages;
    if (!prompt || !calls) throw new Error("Nothing was said.");
    await other.append({ type: "message", message: prompt });
    await other.append({ type: "message", message: calls, begins: true });
    const fork = await other.fork(newPath());
    expect((await other.context()).unfinished("call_1")).toBe("not begun");
    expect((await fork.context()).unfinished("call_1")).toBeUndefined();
    await Promise.all([other.close(), fork.close()]);
  });

  it("R27: a question is written before agent_end is shown, with what was shown", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent } = await keepingAgent(session, [call("look")], { middleware: [isAsked] });
    const seen: unknown[] = [];
    agent.subscribe(async ({ type }) => {
      if (type === "agent_end") seen.push((await session.context()).pending);
    });
    const { pending } = await agent.prompt("go");
    expect(seen).toEqual([pending]);
    await session.close();
  });

  it("R27: a question without the middleware is not asked again once the call has started", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const context = await session.context();
    const { agent } = agentOn(session, context, [call("look"), "done"], { middleware: [isAsked] });
    await agent.prompt("go");
    expect((await session.context()).pending).toHaveLength(1);
    await agent.continue({ decisions: { call_1: { type: "approve" } } });
    const types = session.entries.map(({ type }) => type);
    expect(types.slice(types.indexOf("pending"))).toEqual([
      "pending",
      "end",
      "start",
      "begin",
      "result",
      "message",
      "message",
      "end",
    ]);
    await session.close();
  });

  it("R27: the newest counts: a decision, a second question, a fork", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, [call("look")], {
      middleware: [isAsked],
    });
    const { pending } = await agent.prompt("go");
    await journal.decide({ call_1: { type: "approve" } });
    let context = await session.context();
    expect(context.pending).toEqual([]);
    expect(context.unfinished("call_1")).toEqual({ type: "approve" });
    await journal.ask("call_1", { reason: "It has changed.", fingerprint: "f" });
    await journal.ask("call_1", { reason: "It has changed.", fingerprint: "f" });
    await journal.ask("unknown", { reason: "Of another agent." });
    context = await session.context();
    expect(context.pending).toEqual([
      { toolCall: pending[0]?.toolCall, reason: "It has changed.", fingerprint: "f" },
    ]);
    const fork = await session.fork(newPath());
    expect((await fork.context()).pending).toEqual(context.pending);
    await fork.close();
    expect((await readEntries(session)).map(({ type }) => type).slice(3)).toEqual([
      "pending",
      "end",
      "decision",
      "pending",
    ]);
    await session.close();
  });

  it.each([
    [
      { call_1: { type: "approved" } },
      'The decision on "call_1" is one of approve, deny, result and wait.',
    ],
    [{ call_1: true }, 'The decision on "call_1" is one of approve, deny, result and wait.'],
    [
      { call_1: { type: "approve", arguments: { euros: 1 } } },
      'There is no "arguments" of an approval: write args.',
    ],
    [
      { call_1: { type: "result", result: "By hand." } },
      'The result for "call_1" has "content", a list of texts, images and files.',
    ],
    [
      { call_1: { type: "approve" }, other: { type: "approve" } },
      'No call "other" waits for a decision. Open calls: call_1.',
    ],
  ])("R27: of %j nothing is written", async (decisions, message) => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, [call("look")], {
      middleware: [isAsked],
    });
    await agent.prompt("go");
    const { length } = session.entries;
    await expect(journal.decide(decisions as never)).rejects.toThrow(message);
    expect(session.entries).toHaveLength(length);
    expect((await session.context()).pending).toHaveLength(1);
    await session.close();
  });

  it("R27: a decision may be written again, and one on a call of another agent is not written", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, [call("look")], {
      middleware: [isAsked],
    });
    await agent.prompt("go");
    await journal.decide({ call_1: { type: "approve" } });
    const { length } = session.entries;
    await journal.decide({ call_1: { type: "approve" } });
    await journal.ask("elsewhere", { reason: "Of another agent." });
    await journal.decide({ elsewhere: { type: "approve" } });
    expect(session.entries).toHaveLength(length);
    await session.close();
  });

  it("R27: a decision of a kind that is not known does not count, and the session is readable", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent } = await keepingAgent(session, [call("look")], { middleware: [isAsked] });
    await agent.prompt("go");
    const id = session.entries.length + 1;
    const head = { id, parentId: session.leaf, type: "decision", w: 1, timestamp: 1 };
    const data = { toolCallId: "call_1", decision: { type: "approved" } };
    await session.close();
    await appendFile(session.path, `${JSON.stringify({ ...head, ...data })}\n`);
    const again = await openSession(session.path);
    expect(await again.read(id)).toMatchObject({ type: "custom", kind: "decision", data });
    const { pending } = await again.context();
    expect(pending).toMatchObject([{ toolCall: { id: "call_1" } }]);
    await again.close();
  });

  it("what could not be read again is not written", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const wrong: unknown[] = [
      { type: "decision", toolCallId: "c1", decision: { type: "approved" } },
      { type: "message", message: { content: "Hi" } },
      { type: "result", toolCallId: "c1", toolName: "look", result: "By hand.", isError: false },
      { type: "label", entry: "1", label: "x" },
    ];
    for (const body of wrong) {
      await expect(session.append(body as never)).rejects.toMatchObject({ code: "write_failed" });
    }
    expect(session.entries).toEqual([]);
    await session.close();
  });
});

describe("queues", () => {
  it("what is written of a long queue grows with its number, and is read as it was", async () => {
    const measure = async (count: number): Promise<number> => {
      const session = await createSession(newPath(), { cwd: "/w" }, { clock: manualClock() });
      const { agent, journal } = await keepingAgent(session, ["Done.", "Again."], {
        followUpMode: "all",
      });
      for (let n = 0; n < count; n++) agent.followUp(`m${n}`);
      await journal.saved();
      const { followUp } = (await session.context()).queued;
      expect(followUp.map(({ message }) => message)).toMatchObject(
        Array.from({ length: count }, (_, n) => ({ content: `m${n}` })),
      );
      await agent.prompt("Go.");
      await journal.saved();
      expect((await session.context()).queued.followUp).toEqual([]);
      await session.close();
      return (await stat(session.path)).size;
    };
    const [few, many] = [await measure(100), await measure(1_000)];
    expect(many).toBeLessThan(12 * few);
  });

  it("a message of the application's own role waits until it is delivered, and no longer", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, ["one"]);
    const own: object = { role: "notice", text: "It is late.", timestamp: 0 };
    agent.steer(own as AgentMessage);
    await journal.saved();
    expect((await session.context()).queued.steering).toMatchObject([{ message: own }]);
    await agent.prompt("go");
    const { messages, queued } = await session.context();
    expect(messages.filter((message) => message.role === "notice")).toEqual([own]);
    expect(queued.steering).toEqual([]);
    await session.close();
  });

  it("what is in flight waits in the file until it is delivered, also while others are queued", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const hold = gate();
    const { agent, journal } = await keepingAgent(session, ["one", "two", "three"], {
      // Between the poll and the message.
      prepareTurn: () => hold.opened,
    });
    const first = agent.followUp("A");
    const run = agent.prompt("go");
    await vi.waitFor(() => expect(agent.queued("followUp")).toEqual([]));
    const second = agent.followUp("B");
    await journal.saved();
    const ids = async (): Promise<string[]> =>
      (await session.context()).queued.followUp.map(({ id }) => id);
    expect(await ids()).toEqual([first, second]);
    hold.open();
    await run;
    expect(await ids()).toEqual([]);
    const delivered = (await readEntries(session)).flatMap((entry) =>
      entry.type === "message" && entry.queued !== undefined ? [entry.queued] : [],
    );
    expect(delivered).toEqual([first, second]);
    await session.close();
  });

  it("a message whose line is there does not wait, even where the line behind it is missing", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent } = await keepingAgent(session, ["one"]);
    agent.steer("A");
    await agent.prompt("go");
    await session.close();
    const lines = (await readFile(session.path, "utf8")).trimEnd().split("\n");
    const at = lines.findIndex((line) => line.includes('"queued":'));
    await writeFile(session.path, `${lines.slice(0, at + 1).join("\n")}\n`);
    const again = await reopen(session.path);
    expect(again.context.messages.at(-1)).toMatchObject({ content: "A" });
    expect(again.context.queued.steering).toEqual([]);
    await again.session.close();
  });

  it("what is taken back is gone with the next write, so that it can be sent as a prompt", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, ["one"]);
    const id = agent.followUp("A");
    await journal.saved();
    agent.takeQueued("followUp", id);
    await session.append({ type: "title", title: "Beside" });
    expect((await session.context()).queued.followUp).toHaveLength(1);
    await agent.prompt("A");
    expect(session.entries.map(({ type }) => type)).toEqual([
      "queue",
      "title",
      "queue",
      "message",
      "start",
      "message",
      "end",
    ]);
    expect((await session.context()).queued.followUp).toEqual([]);
    const other = agent.followUp("B");
    agent.takeQueued("followUp", other);
    await journal.saved();
    expect((await session.context()).queued.followUp).toEqual([]);
    await session.close();
  });

  it("another place in the tree has nothing that waits, nor has a fork", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, ["one"]);
    await agent.prompt("go");
    agent.followUp("A");
    await journal.saved();
    const fork = await session.fork(newPath());
    expect((await fork.context()).queued.followUp).toEqual([]);
    await fork.close();
    expect((await session.context(1)).queued.followUp).toEqual([]);
    await session.branch(1);
    expect((await session.context()).queued.followUp).toEqual([]);
    await session.close();
  });

  it("a change that cannot be written is reported, and the next one writes it", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { agent, journal } = await keepingAgent(session, []);
    const failing = vi
      .spyOn(await fileHandlePrototype(), "datasync")
      .mockRejectedValueOnce(new Error("ENOSPC"));
    agent.steer("A");
    await expect(journal.saved()).rejects.toThrow("could not be written to");
    failing.mockRestore();
    agent.steer("B");
    await journal.saved();
    const { queued } = await session.context();
    expect(queued.steering).toMatchObject([
      { message: { content: "A" } },
      { message: { content: "B" } },
    ]);
    await session.close();
  });
});

async function fileHandlePrototype(): Promise<FileHandle> {
  const handle = await open(process.execPath, "r");
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}

function openCalls(messages: readonly AgentMessage[]): string[] {
  const open = new Set<string>();
  for (const message of messages.filter(isLlmMessage)) {
    if (message.role === "assistant") for (const { id } of listCalls(message)) open.add(id);
    if (message.role === "toolResult") open.delete(message.toolCallId);
  }
  return [...open];
}

it("a request after reopening begins with the bytes of the one before", async () => {
  const clock: Clock = manualClock();
  const stage = await begin([[think("t", { signature: "x" }), call("look")], "done"], { clock });
  await stage.agent.prompt("go");
  await stage.session.close();
  const before = JSON.stringify(stage.model.calls.at(-1)?.messages);
  const { session, context } = await reopen(stage.session.path);
  const next = agentOn(session, context, ["later"]);
  await next.agent.prompt("on");
  const after = next.model.calls[0]?.messages ?? [];
  const length = stage.model.calls.at(-1)?.messages.length ?? 0;
  expect(JSON.stringify(after.slice(0, length))).toBe(before);
  expect(after).toHaveLength(length + 2);
  await session.close();
});

describe("a run that was cut off", () => {
  const spend = { input: 10, output: 2, cost: { total: 0.5 } };
  const steps = (...answers: readonly ScriptStep[]): ScriptStep[] =>
    answers.map((answer) =>
      Array.isArray(answer)
        ? { parts: answer, usage: spend }
        : { parts: [answer as string], usage: spend },
    );

  /** An agent of a file that ends at a line, as it is in a process that starts after a crash. */
  async function resume(
    path: string,
    script: readonly ScriptStep[],
    options: AgentOptions = {},
  ): Promise<Stage & { context: SessionContext }> {
    const { session, context } = await reopen(path);
    const { interrupted, unfinished, pending } = context;
    const stage = agentOn(session, context, script, {
      unfinished,
      pending,
      ...(interrupted && { interrupted }),
      ...options,
    });
    return { ...stage, context };
  }

  /** The file up to the nth line of a type that has a text. */
  async function cutAfter(path: string, type: string, nth: number): Promise<string> {
    const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
    const places = lines.flatMap((line, at) => (line.includes(`"type":"${type}"`) ? [at] : []));
    const cut = newPath();
    await writeFile(cut, `${lines.slice(0, (places[nth - 1] ?? 0) + 1).join("\n")}\n`);
    return cut;
  }

  it("R23: its turns, usage, tokens and time are read from the file; of one that has ended, nothing", async () => {
    const clock = manualClock();
    const session = await createSession(newPath(), { cwd: "/w" }, { clock });
    const slow = textTool("slow", async () => (await clock.advance(700), "done"));
    const { agent } = await keepingAgent(session, steps([call("slow")], [call("slow")], "Done."), {
      clock,
      tools: [slow],
    });
    await agent.prompt("go");
    expect((await session.context()).interrupted).toBeUndefined();
    await session.close();
    const cut = await cutAfter(session.path, "result", 2);
    const { session: again, context } = await reopen(cut);
    expect(context.interrupted).toEqual({
      turns: 2,
      usage: { input: 20, output: 4, totalTokens: 24, cost: { total: 1 } },
      tokens: 24,
      durationMs: 1_400,
    });
    await again.close();
  });

  it("R23: maxTurns holds over two crashes; a prompt starts another run", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const stage = await keepingAgent(session, [call("look"), call("look"), call("look"), "done"]);
    await stage.agent.prompt("go");
    await session.close();
    const limits = { maxTurns: 2 };
    const cut = await cutAfter(session.path, "result", 1);
    const second = await resume(cut, [call("look"), "never"], { limits });
    expect(await second.agent.continue()).toMatchObject({ stop: "limit", turns: 2 });
    expect(second.model.requests).toBe(1);
    await second.session.close();
    // The end is lost, too.
    const third = await resume(await cutAfter(cut, "result", 2), ["fresh"], { limits });
    expect(third.context.interrupted?.turns).toBe(2);
    expect((await third.agent.continue()).stop).toBe("limit");
    expect(third.model.requests).toBe(0);
    await third.session.close();
    const fourth = await resume(await cutAfter(cut, "result", 2), ["fresh"], { limits });
    expect(await fourth.agent.prompt("Once more")).toMatchObject({ stop: "done", turns: 1 });
    expect((await fourth.session.context()).interrupted).toBeUndefined();
    await fourth.session.close();
    const fifth = await resume(await cutAfter(fourth.session.path, "start", 4), []);
    expect(fifth.context.interrupted?.turns).toBe(0);
    await fifth.session.close();
  });

  it("R23: time in which no process ran does not count", async () => {
    const clock = manualClock();
    const session = await createSession(newPath(), { cwd: "/w" }, { clock });
    const { agent } = await keepingAgent(session, [call("slow"), "done"], {
      clock,
      tools: [textTool("slow", async () => (await clock.advance(500), "done"))],
    });
    await agent.prompt("go");
    await session.close();
    const cut = await cutAfter(session.path, "result", 1);
    const later = manualClock(1_000_000);
    const again = await openSession(cut, { clock: later });
    const context = await again.context();
    const next = agentOn(again, context, [call("slow"), "done"], {
      clock: later,
      unfinished: context.unfinished,
      ...(context.interrupted && { interrupted: context.interrupted }),
      tools: [textTool("slow", async () => (await later.advance(300), "done"))],
    });
    await next.agent.continue();
    await again.close();
    const third = await reopen(await cutAfter(cut, "result", 2));
    expect(third.context.interrupted?.durationMs).toBe(800);
    await third.session.close();
  });

  it("R28: terminate holds, whether the results have their messages or not", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const bye: AgentTool = {
      ...textTool("bye", () => ""),
      execute: () => ({ content: [{ type: "text", text: "bye" }], terminate: true }),
    };
    const { agent } = await keepingAgent(session, [callAll(["bye", "bye"])], { tools: [bye] });
    expect((await agent.prompt("go")).stop).toBe("terminated");
    await session.close();
    const lines = (await readFile(session.path, "utf8")).trimEnd().split("\n");
    const first = lines.findIndex((line) => line.includes('"type":"result"'));
    for (let count = first + 1; count < lines.length; count++) {
      const cut = newPath();
      await writeFile(cut, `${lines.slice(0, count).join("\n")}\n`);
      const next = await resume(cut, [], { tools: [{ ...bye, idempotent: true }] });
      expect(await next.agent.continue()).toMatchObject({ stop: "terminated", turns: 1 });
      expect(next.model.requests).toBe(0);
      await next.session.close();
    }
    const whole = await resume(session.path, ["asked"]);
    expect((await whole.agent.continue()).stop).toBe("done");
    await whole.session.close();
  });

  it("R23: what a compaction stands for counts", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append({ type: "message", message: userMessage("go", 0) });
    await session.append({ type: "start" });
    const { agent } = await begin([call("look"), "done"]);
    await agent.prompt("go");
    const [, asked, result] = agent.state.messages;
    if (!asked || !result) throw new Error("Nothing was said.");
    const { id } = await session.append({ type: "message", message: asked });
    await session.append({ type: "message", message: result });
    await session.append({
      type: "compaction",
      first: id,
      until: null,
      message: userMessage("s", 0),
    });
    const { interrupted, messages } = await session.context();
    expect(messages).toHaveLength(2);
    expect(interrupted?.turns).toBe(1);
    await session.close();
  });

  it("nothing is known of runs of older versions", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append({ type: "message", message: userMessage("go", 0) });
    expect((await session.context()).interrupted).toBeUndefined();
    await session.close();
  });
});
