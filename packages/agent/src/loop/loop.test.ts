import {
  type AssistantMessage,
  type AssistantMessageEvent,
  AssistantMessageEventStream,
  type Message,
  type StreamFn,
} from "@gyre/ai";
import { call, callAll, cutOff, fail, say, scriptedModel, think } from "@gyre/ai/testing";
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import {
  agentLoop,
  agentLoopContinue,
  createAgentStream,
  runAgentLoop,
  streamAssistantResponse,
} from "./loop.ts";
import { Grammar } from "../testing/grammar.ts";
import {
  freeze,
  later,
  never,
  play,
  Recorder,
  type Setup,
  start,
  text,
  tool,
  user,
} from "../testing/play.ts";
import { answer, asks, empty, injected, ran, result } from "../testing/render.ts";
import type { AgentEvent, AgentLoopConfig, AgentMessage } from "../contract/types.ts";

const anAnswer: AssistantMessage = {
  role: "assistant",
  content: [{ type: "text", text: "Before" }],
  api: "scripted",
  provider: "scripted",
  model: "scripted",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
};

function asked(...ids: string[]): AssistantMessage {
  return {
    ...anAnswer,
    stopReason: "toolUse",
    content: ids.map((id) => ({
      type: "toolCall",
      id,
      name: id.replace(/\d+$/, ""),
      arguments: {},
    })),
  };
}

function resultOf(id: string): Message {
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: id.replace(/\d+$/, ""),
    content: [{ type: "text", text: "old" }],
    isError: false,
    timestamp: 0,
  };
}

/** A queue for `getSteeringMessages` or `getFollowUpMessages` that gives each list once. */
function gives(...polls: (readonly string[])[]): () => AgentMessage[] {
  return () => (polls.shift() ?? []).map(user);
}

/** A model that sends these very events. */
function sends(...responses: ((message: AssistantMessage) => AssistantMessageEvent[])[]): StreamFn {
  return () => {
    const stream = new AssistantMessageEventStream();
    const message = structuredClone(anAnswer);
    for (const event of responses.shift()?.(message) ?? []) stream.push(event);
    return stream;
  };
}

async function linesOf(stream: AsyncIterable<AgentEvent>): Promise<string[]> {
  const recorder = new Recorder();
  for await (const event of stream) recorder.sink(event);
  return recorder.lines;
}

describe("the event grammar", () => {
  it("R1: a run of one answer", async () => {
    const { lines } = await play({ script: ["Hello"] });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...answer("Hello"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R2: a run with calls one after the other: each result follows its own end", async () => {
    const { lines, model } = await play({
      script: [[say("I look"), call("read", { a: 1 }, "c1"), call("read", { a: 2 }, "c2")], "Done"],
      tools: [tool("read", (_id, args) => JSON.stringify(args))],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      "message_start assistant",
      'update text +"I look" end call +"{\\"a\\":1}" end call +"{\\"a\\":2}" end',
      'message_end assistant toolUse "I look" read#c1 read#c2',
      ...ran("read#c1", 'ok "{"a":1}"', '{"a":1}'),
      ...ran("read#c2", 'ok "{"a":2}"', '{"a":2}'),
      "turn_end toolUse read#c1 read#c2",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
    model.assertComplete();
  });

  it("R2: the results of a batch follow the batch, in call order", async () => {
    const { lines } = await play({
      script: [
        callAll([
          ["read", {}, "c1"],
          ["read", {}, "c2"],
        ]),
        "Done",
      ],
      tools: [tool("read", () => "x", { concurrent: true })],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...asks(["read#c1", "read#c2"]),
      "tool_start read#c1 {}",
      "tool_start read#c2 {}",
      'tool_end read#c1 ok "x"',
      'tool_end read#c2 ok "x"',
      ...result("read#c1", 'ok "x"'),
      ...result("read#c2", 'ok "x"'),
      "turn_end toolUse read#c1 read#c2",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R2: several prompts, and what is injected into a later turn, come after its turn_start", async () => {
    const { lines } = await play({
      script: ["One", "Two"],
      prompts: [user("A"), user("B")],
      config: { getFollowUpMessages: gives(["C", "D"]) },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("A"),
      ...injected("B"),
      ...answer("One"),
      "turn_end stop",
      "turn_start",
      ...injected("C"),
      ...injected("D"),
      ...answer("Two"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R3: agent_end holds this run's messages only, and the result of the stream is the same", async () => {
    const script = scriptedModel(["Now"]);
    const before = [user("Earlier"), anAnswer, user("And?")];
    const stream = agentLoopContinue(
      { messages: before },
      { model: script.model, protocol: script },
    );
    const events: AgentEvent[] = [];
    for await (const event of stream) events.push(event);
    const end = events.at(-1);
    expect(end?.type === "agent_end" && end.messages.map((m) => m.role)).toEqual(["assistant"]);
    expect(await stream.result()).toEqual(end?.type === "agent_end" ? end.messages : undefined);
    expect(script.calls[0]?.messages).toEqual(before);
  });

  it("R3: repaired results are of this run, what they answer is not", async () => {
    const { end } = await play({ messages: [user("A"), asked("x1")], script: ["Ok"] });
    expect(end.messages.map((m) => m.role)).toEqual(["toolResult", "user", "assistant"]);
  });

  it("R3: neither the context nor its arrays are changed", async () => {
    const messages = [user("A"), asked("x1")];
    const context = { messages, tools: [], systemPrompt: "S" };
    freeze(context);
    const script = scriptedModel(["Ok"]);
    await agentLoop([user("B")], context, { model: script.model, protocol: script }).result();
    expect(messages).toHaveLength(2);
    expect(script.calls[0]?.systemPrompt).toBe("S");
  });

  it("R4: a delta before start is ignored, and the message is made from the end", async () => {
    const { lines } = await play({
      streamFn: sends((message) => [
        { type: "text_delta", contentIndex: 0, delta: "Bef", partial: message },
        { type: "text_delta", contentIndex: 0, delta: "ore", partial: message },
        { type: "done", reason: "stop", message },
      ]),
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      "message_start assistant",
      'message_end assistant stop "Before"',
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R4: of deltas around a late start, only those after it are passed on", async () => {
    const { lines } = await play({
      streamFn: sends((message) => [
        { type: "text_delta", contentIndex: 0, delta: "Bef", partial: message },
        { type: "start", partial: message },
        { type: "text_delta", contentIndex: 0, delta: "ore", partial: message },
        { type: "start", partial: message },
        { type: "done", reason: "stop", message },
      ]),
    });
    expect(lines.slice(4, -2)).toEqual([
      "message_start assistant",
      'update +"ore"',
      'message_end assistant stop "Before"',
    ]);
  });

  it("R4: a provider that sends only its end, with calls, is served as any other", async () => {
    const { lines } = await play({
      streamFn: sends(
        () => [{ type: "done", reason: "toolUse", message: asked("x1") }],
        (message) => [{ type: "done", reason: "stop", message }],
      ),
      tools: [tool("x")],
    });
    expect(lines.slice(4)).toEqual([
      "message_start assistant",
      "message_end assistant toolUse x#x1",
      ...ran("x#x1", 'ok "x"'),
      "turn_end toolUse x#x1",
      "turn_start",
      "message_start assistant",
      'message_end assistant stop "Before"',
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R4: an async generator is as good as a stream", async () => {
    async function* events(): AsyncGenerator<AssistantMessageEvent> {
      const message = structuredClone(anAnswer);
      yield { type: "start", partial: message };
      yield { type: "text_delta", contentIndex: 0, delta: "Before", partial: message };
      yield { type: "done", reason: "stop", message };
    }
    const { lines } = await play({ streamFn: (() => events()) as unknown as StreamFn });
    expect(lines.slice(4, -2)).toEqual([
      "message_start assistant",
      'update +"Before"',
      'message_end assistant stop "Before"',
    ]);
  });

  it("R4: an early end with nothing shown is retried as incomplete", async () => {
    const { lines } = await play({ script: [cutOff(), "Hello"] }, 1_000);
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      'retry 1 after 1000 ms: incomplete "The response ended early."',
      ...answer("Hello"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R4: an early end after content is an error of kind incomplete that keeps what arrived", async () => {
    const { lines, end } = await play({ script: [[say("Half of"), cutOff()]] });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      "message_start assistant",
      'update text +"Half of" end',
      'message_end assistant error "Half of" (The response ended early.)',
      "turn_end error",
      "agent_end error",
    ]);
    expect(end.finalMessage?.failure?.kind).toBe("incomplete");
  });

  it("R4: the partial message has one place in what is sent", async () => {
    const { model } = await play({
      script: [[say("a"), call("x", {}, "c1")], "b"],
      tools: [tool("x")],
    });
    expect(model.calls[1]?.messages.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
    ]);
  });
});

describe("it always ends", () => {
  it("R5: a missing way to a model throws at the call", () => {
    const { model } = scriptedModel([]);
    expect(() => agentLoop([user("Go")], { messages: [] }, { model })).toThrow(/No way to a model/);
    expect(() => agentLoopContinue({ messages: [user("Go")] }, { model })).toThrow(
      /No way to a model/,
    );
  });

  it("R5: runAgentLoop rejects with the same, and the sink hears nothing", async () => {
    const { model } = scriptedModel([]);
    const recorder = new Recorder();
    const run = runAgentLoop([user("Go")], { messages: [] }, { model }, recorder.sink);
    await expect(run).rejects.toThrow(/No way to a model/);
    expect(recorder.lines).toEqual([]);
  });

  it("R5: two tools of one name throw at the call", () => {
    const script = scriptedModel([]);
    const context = { messages: [], tools: [tool("x"), tool("x")] };
    const config = { model: script.model, protocol: script };
    expect(() => agentLoop([user("Go")], context, config)).toThrow(/"x"/);
  });

  it("R5: streamFn goes before config.protocol", async () => {
    const other = scriptedModel(["Other"]);
    const { lines, model } = await play({ script: ["Own"], streamFn: other.stream });
    expect(lines).toContain('message_end assistant stop "Other"');
    expect(model.requests).toBe(0);
  });

  it("R6: after an error no tool is started, no queue is polled, and finished calls are answered", async () => {
    const polled: string[] = [];
    const { lines } = await play({
      script: [[say("Hm"), call("x", {}, "c1"), fail("Broken", { kind: "bad_request" })]],
      tools: [tool("x", () => expect.unreachable())],
      config: {
        skipInitialSteeringPoll: true,
        getSteeringMessages: () => void polled.push("steering"),
        getFollowUpMessages: () => void polled.push("followUp"),
      },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      "message_start assistant",
      'update text +"Hm" end call +"{}" end',
      'message_end assistant error "Hm" x#c1 (Broken)',
      ...ran("x#c1", 'error "Tool "x" was not run: the response ended with an error."'),
      "turn_end error x#c1",
      "agent_end error",
    ]);
    expect(polled).toEqual([]);
  });

  it("R6: a signal that fired before makes no request and polls nothing", async () => {
    const polled: string[] = [];
    const { lines, model } = await play({
      script: [],
      signal: AbortSignal.abort(),
      config: {
        getSteeringMessages: () => void polled.push("steering"),
        getFollowUpMessages: () => void polled.push("followUp"),
      },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      "agent_end aborted",
    ]);
    expect([model.requests, polled]).toEqual([0, []]);
  });

  it("R7: calls are found whatever the stop reason says", async () => {
    const { lines } = await play({
      script: [{ parts: [call("x", {}, "c1")], stopReason: "stop" }, "Done"],
      tools: [tool("x")],
    });
    expect(lines.slice(4)).toEqual([
      ...asks(["x#c1"], "{}", "stop"),
      ...ran("x#c1", 'ok "x"'),
      "turn_end stop x#c1",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it.each<[string, NonNullable<Setup["script"]>]>([
    ["nothing at all", () => ({ parts: [] })],
    ["an empty text", () => ""],
    ["an empty thought", () => think("")],
    ["toolUse without a call", () => ({ parts: [], stopReason: "toolUse" })],
    ["an empty answer cut off at its length", () => ({ parts: [], stopReason: "length" })],
  ])("R7: %s is retried, then an error", async (_what, script) => {
    const { lines, end } = await play({ script, config: { retry: { maxRetries: 2 } } }, 10_000);
    const told = lines.filter((line) =>
      /^(retry|message_end assistant|turn_end|agent_end)/.test(line),
    );
    expect(told.map((line) => line.replace(/( ""| <>)? ?[:(].*/, ""))).toEqual([
      "retry 1 after 1000 ms",
      "retry 2 after 2000 ms",
      "message_end assistant error",
      "turn_end error",
      "agent_end error",
    ]);
    expect(end.finalMessage?.failure?.kind).toBe("empty");
    expect(end.finalMessage?.errorMessage).toMatch(/empty/);
  });

  it("R7: toolUse without a call, after text was shown, is an error that says so", async () => {
    const { end, lines } = await play({
      script: [{ parts: ["I will look"], stopReason: "toolUse" }],
    });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.failure?.kind).toBe("empty");
    expect(end.finalMessage?.errorMessage).toMatch(/call/);
    expect(end.finalMessage?.errorMessage).not.toMatch(/neither text/);
    expect(lines.filter((line) => line.startsWith("retry"))).toEqual([]);
  });

  it("R7: a thought alone is an answer", async () => {
    const { lines } = await play({ script: [think("Hm")] });
    expect(lines.slice(4)).toEqual([
      "message_start assistant",
      'update thinking +"Hm" end',
      "message_end assistant stop <Hm>",
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R7: pause calls the model again in a new turn, with the transcript as it is", async () => {
    const { lines, model } = await play({
      script: [{ parts: ["Working"], stopReason: "pause" }, "Done"],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...answer("Working", "pause"),
      "turn_end pause",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
    expect(model.calls[1]?.messages.map((m) => m.role)).toEqual(["user", "assistant"]);
  });

  it("R7: a pause with nothing in it goes on too", async () => {
    const { end, model } = await play({ script: [{ parts: [], stopReason: "pause" }, "Done"] });
    expect([end.stop, model.requests]).toEqual(["done", 2]);
  });

  it("R7: ten pauses in a row are taken up, the eleventh ends the run", async () => {
    const paused = { parts: ["."], stopReason: "pause" } as const;
    const { lines, model } = await play({ script: () => paused });
    const turn = ["turn_start", ...answer(".", "pause"), "turn_end pause"];
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...answer(".", "pause"),
      "turn_end pause",
      ...Array.from({ length: 10 }, () => turn).flat(),
      "limit maxPausesInARow 10",
      "agent_end limit limit=maxPausesInARow",
    ]);
    expect(model.requests).toBe(11);
  });

  it("R7: an answer between pauses starts the count anew", async () => {
    const paused = { parts: ["."], stopReason: "pause" } as const;
    const { end } = await play({
      script: (_context, _options, index) =>
        index === 25 ? "Done" : index % 9 === 8 ? call("x") : paused,
      tools: [tool("x", (id) => id)],
    });
    expect(end.stop).toBe("done");
  });

  it("R7: a refusal is an error of kind refused, and is not retried", async () => {
    const { lines, end } = await play({ script: [{ refuse: "No." }] });
    expect(lines.slice(4)).toEqual([...empty("error", "No."), "turn_end error", "agent_end error"]);
    expect(end.finalMessage?.failure?.kind).toBe("refused");
  });

  it("the grammar that the tests use refuses what the rules forbid", () => {
    const accept = (...events: AgentEvent[]) => {
      const grammar = new Grammar();
      for (const event of events) grammar.accept(event);
    };
    const message = user("A");
    expect(() => accept({ type: "turn_start" })).toThrow(/turn_start/);
    expect(() => accept({ type: "agent_start" }, { type: "agent_start" })).toThrow(/once/);
    expect(() => accept({ type: "agent_start" }, { type: "message_start", message })).toThrow(
      /message_start/,
    );
    expect(() =>
      accept(
        { type: "agent_start" },
        { type: "turn_start" },
        { type: "message_start", message: anAnswer },
        { type: "message_end", message: anAnswer },
        { type: "message_start", message },
      ),
    ).toThrow(/out of order/);
    expect(() =>
      accept(
        { type: "agent_start" },
        { type: "turn_start" },
        { type: "turn_end", message: anAnswer, toolResults: [resultOf("x1") as never] },
        { type: "turn_end", message: anAnswer, toolResults: [] },
      ),
    ).toThrow(/turn_end/);
  });
});

describe("R8: every call has one result", () => {
  it("R8: one result for every call, in order, whatever became of it", async () => {
    const { lines, transcript } = await play({
      script: [
        callAll([
          ["ok", {}, "c1"],
          ["throws", {}, "c2"],
          ["nosuch", {}, "c3"],
          ["strict", {}, "c4"],
          ["ok", "{broken", "c5"],
          ["denied", {}, "c6"],
          ["silent", {}, "c7"],
        ]),
        "Done",
      ],
      tools: [
        tool("ok"),
        tool("throws", () => {
          throw new Error("boom");
        }),
        tool("strict", () => "never", { parameters: { type: "object", required: ["path"] } }),
        tool("denied"),
        tool("silent", () => ({ content: [] })),
      ],
      config: {
        middleware: [
          {
            async tool(invocation, next) {
              if (invocation.tool.name === "denied") throw new Error("not today");
              return next();
            },
          },
        ],
      },
    });
    expect(lines.filter((line) => line.startsWith("message_end toolResult"))).toEqual([
      'message_end toolResult ok#c1 ok "ok"',
      'message_end toolResult throws#c2 error "Tool "throws" failed: boom"',
      'message_end toolResult nosuch#c3 error "Tool nosuch not found. Available: ok, throws, strict, denied, silent."',
      expect.stringMatching(
        /^message_end toolResult strict#c4 error "Invalid arguments for tool "strict":\n.*path/,
      ),
      expect.stringMatching(
        /^message_end toolResult ok#c5 error "The arguments for tool "ok" are not valid JSON/,
      ),
      'message_end toolResult denied#c6 error "Tool "denied" failed: not today"',
      'message_end toolResult silent#c7 ok "(no output)"',
    ]);
    expect(transcript.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      ...Array.from({ length: 7 }, () => "toolResult"),
      "assistant",
    ]);
  });

  it("R8: an id that a service uses twice in a message, or again later, is renamed", async () => {
    const { lines, model } = await play({
      script: [
        [call("x", {}, "c1"), call("x", {}, "c1")],
        call("x", {}, "c1"),
        call("x", {}, "new_1"),
        "Done",
      ],
      tools: [tool("x", (id) => id)],
    });
    expect(lines.slice(4)).toEqual([
      ...asks(["x#c1", "x#new_1"]),
      ...ran("x#c1", 'ok "c1"'),
      ...ran("x#new_1", 'ok "new_1"'),
      "turn_end toolUse x#c1 x#new_1",
      "turn_start",
      ...asks(["x#new_2"]),
      ...ran("x#new_2", 'ok "new_2"'),
      "turn_end toolUse x#new_2",
      "turn_start",
      ...asks(["x#new_3"]),
      ...ran("x#new_3", 'ok "new_3"'),
      "turn_end toolUse x#new_3",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
    model.assertComplete();
  });

  it("R8: an empty id, and an id of the messages before, are replaced too", async () => {
    const long = Array.from({ length: 80 }, (_, i) => user(`${i}`));
    for (const before of [[], long]) {
      const { model, transcript } = await play({
        messages: [...before, asked("x1"), resultOf("x1")],
        script: [[call("x", {}, ""), call("x", {}, "x1")], "Done"],
        tools: [tool("x")],
      });
      model.assertComplete();
      expect(
        transcript.slice(-4, -1).map((m) => (m.role === "toolResult" ? m.toolCallId : m.role)),
      ).toEqual(["assistant", "new_1", "new_2"]);
    }
  });

  it.each<[string, () => string]>([
    ["gives the same id for ever", () => "c"],
    [
      "throws",
      () => {
        throw new Error("no ids");
      },
    ],
  ])("R8: a generateId that %s does not hold the run up", async (_what, generateId) => {
    const { model, end } = await play({
      script: [[call("x", {}, "c"), call("x", {}, "c")], "Done"],
      tools: [tool("x")],
      config: { generateId },
    });
    model.assertComplete();
    expect(end.stop).toBe("done");
  });

  it("R8: without generateId the new ids are all different", async () => {
    const { model, transcript } = await play({
      script: [[call("x", {}, "c"), call("x", {}, "c"), call("x", {}, "c")], "Done"],
      tools: [tool("x")],
      config: { generateId: undefined as never },
    });
    model.assertComplete();
    expect(transcript).toHaveLength(6);
  });
});

describe("steering and follow-up", () => {
  const three = callAll([
    ["x", {}, "c1"],
    ["x", {}, "c2"],
    ["x", {}, "c3"],
  ]);
  const skipped = 'error "Skipped due to queued user message."';

  it("R15: steering is polled when the run starts, and comes after the prompts", async () => {
    const { lines } = await play({
      script: ["Ok"],
      config: { getSteeringMessages: gives(["S1", "S2"]) },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...injected("S1"),
      ...injected("S2"),
      ...answer("Ok"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R15: skipInitialSteeringPoll leaves the first poll out", async () => {
    const polls: number[] = [];
    const setup: Setup = {
      script: ["Ok"],
      config: {
        skipInitialSteeringPoll: true,
        getSteeringMessages: () => void polls.push(1),
      },
    };
    await play(setup);
    expect(polls).toHaveLength(1);
  });

  it("R15: the polls of a turn are before each call but the first, after the last, and after turn_end", async () => {
    const { recorder, done } = start({
      script: [three, "Done"],
      tools: [tool("x")],
      config: {
        getSteeringMessages: () => void recorder.lines.push("poll"),
      },
    });
    await done;
    expect(recorder.lines).toEqual([
      "agent_start",
      "turn_start",
      "poll",
      ...injected("Go"),
      ...asks(["x#c1", "x#c2", "x#c3"]),
      ...ran("x#c1", 'ok "x"'),
      "poll",
      ...ran("x#c2", 'ok "x"'),
      "poll",
      ...ran("x#c3", 'ok "x"'),
      "poll",
      "turn_end toolUse x#c1 x#c2 x#c3",
      "poll",
      "turn_start",
      ...answer("Done"),
      "turn_end stop",
      "poll",
      "agent_end done",
    ]);
  });

  it("R15: skip-remaining skips the calls that have not started", async () => {
    const { lines, model } = await play({
      script: [three, "Done"],
      tools: [tool("x")],
      config: { getSteeringMessages: gives([], ["Stop that"]) },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...asks(["x#c1", "x#c2", "x#c3"]),
      ...ran("x#c1", 'ok "x"'),
      ...ran("x#c2", skipped),
      ...ran("x#c3", skipped),
      "turn_end toolUse x#c1 x#c2 x#c3",
      "turn_start",
      ...injected("Stop that"),
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
    model.assertComplete();
  });

  it("R15: no poll follows turn_end where a poll among the calls gave messages", async () => {
    let polls = 0;
    await play({
      script: [three, "Done"],
      tools: [tool("x")],
      config: { getSteeringMessages: () => (++polls === 2 ? [user("S")] : []) },
    });
    // At the start, before the second call, and after the second turn.
    expect(polls).toBe(3);
  });

  it("R15: steering that comes after the last call is in the next turn, and skips nothing", async () => {
    const { lines } = await play({
      script: [three, "Done"],
      tools: [tool("x")],
      config: { getSteeringMessages: gives([], [], [], ["Late"]) },
    });
    expect(lines.slice(7)).toEqual([
      ...ran("x#c1", 'ok "x"'),
      ...ran("x#c2", 'ok "x"'),
      ...ran("x#c3", 'ok "x"'),
      "turn_end toolUse x#c1 x#c2 x#c3",
      "turn_start",
      ...injected("Late"),
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R15: after-batch runs all calls of the message first", async () => {
    let polls = 0;
    const { lines } = await play({
      script: [three, "Done"],
      tools: [tool("x")],
      config: {
        steering: "after-batch",
        getSteeringMessages: () => (++polls === 2 ? [user("S")] : []),
      },
    });
    expect(lines.slice(7)).toEqual([
      ...ran("x#c1", 'ok "x"'),
      ...ran("x#c2", 'ok "x"'),
      ...ran("x#c3", 'ok "x"'),
      "turn_end toolUse x#c1 x#c2 x#c3",
      "turn_start",
      ...injected("S"),
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R15: steering never kills a call that has started, also in a batch", async () => {
    const gate = later();
    const { clock, done } = start({
      script: [
        callAll([
          ["slow", {}, "c1"],
          ["x", {}, "c2"],
          ["x", {}, "c3"],
        ]),
        "Done",
      ],
      tools: [
        tool("slow", (_id, _args, signal) => gate.promise.then(() => `aborted: ${signal.aborted}`)),
        tool("x"),
      ],
      config: { toolExecution: "parallel", getSteeringMessages: gives([], [], ["S"]) },
    });
    await clock.advance(1);
    gate.resolve();
    const { lines } = await done;
    expect(lines.slice(7)).toEqual([
      "tool_start slow#c1 {}",
      "tool_start x#c2 {}",
      'tool_end x#c2 ok "x"',
      'tool_end slow#c1 ok "aborted: false"',
      ...result("slow#c1", 'ok "aborted: false"'),
      ...result("x#c2", 'ok "x"'),
      ...ran("x#c3", skipped),
      "turn_end toolUse slow#c1 x#c2 x#c3",
      "turn_start",
      ...injected("S"),
      ...answer("Done"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  describe("redirect", () => {
    function redirectable(
      setup: Setup,
    ): ReturnType<typeof start> & { steer: (words: string) => void } {
      const queue: AgentMessage[] = [];
      const wakes = new Set<() => void>();
      const playing = start({
        ...setup,
        config: {
          steering: "redirect",
          getSteeringMessages: () => queue.splice(0),
          onSteering: (wake) => {
            wakes.add(wake);
            return () => wakes.delete(wake);
          },
          ...setup.config,
        },
      });
      return {
        ...playing,
        steer(words) {
          queue.push(user(words));
          for (const wake of [...wakes]) wake();
        },
      };
    }

    it("R15: redirect cuts a response off at once, keeps its text and drops its calls", async () => {
      const { clock, done, steer, model } = redirectable({
        script: [
          { parts: ["I look", call("x", {}, "c1"), "more text"], chunkSize: 3, betweenMs: 10 },
          "Done",
        ],
        tools: [tool("x", () => expect.unreachable())],
      });
      await clock.advance(25);
      steer("Rather not");
      const { lines } = await done;
      expect(lines).toEqual([
        "agent_start",
        "turn_start",
        ...injected("Go"),
        "message_start assistant",
        'update text +"I l" +"ook" end call +"{}" end text',
        'message_end assistant redirected "I look" ""',
        "turn_end redirected",
        "turn_start",
        ...injected("Rather not"),
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ]);
      model.assertComplete();
    });

    it("R15: redirect before anything came leaves an empty message, which is not sent", async () => {
      const { clock, done, steer, model } = redirectable({
        script: [{ parts: ["Never"], delayMs: 1_000 }, "Done"],
      });
      await clock.advance(10);
      steer("Other");
      const { lines } = await done;
      expect(lines.slice(4)).toEqual([
        ...empty("redirected"),
        "turn_end redirected",
        "turn_start",
        ...injected("Other"),
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ]);
      expect(model.calls[1]?.messages.map((m) => m.role)).toEqual(["user", "user"]);
    });

    it("R15: redirect cuts off a request that has given no stream yet", async () => {
      const script = scriptedModel(["Done"]);
      let asked = 0;
      const { clock, done, steer } = redirectable({
        streamFn: (...request) => (asked++ === 0 ? never() : script.stream(...request)),
      });
      await clock.advance(10);
      steer("Other");
      expect((await done).lines.slice(4, 8)).toEqual([
        ...empty("redirected"),
        "turn_end redirected",
        "turn_start",
      ]);
    });

    it("R15: redirect ends the wait for a retry, and leaves no timer", async () => {
      const { clock, done, steer, model } = redirectable({
        script: [fail("Busy", { kind: "overloaded", retryAfterMs: 50_000 }), "Done"],
      });
      await clock.advance(10);
      steer("Other");
      const { lines } = await done;
      expect(lines.slice(4)).toEqual([
        'retry 1 after 50000 ms: overloaded "Busy"',
        ...empty("redirected"),
        "turn_end redirected",
        "turn_start",
        ...injected("Other"),
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ]);
      expect(model.requests).toBe(2);
      expect(clock.pending).toBe(0);
    });

    it("R15: a message that comes while a hook runs is told before the model is asked", async () => {
      const gate = later();
      let hooks = 0;
      const { clock, done, steer, model } = redirectable({
        script: ["Done"],
        config: {
          transformContext: async (messages) => {
            if (hooks++ === 0) await gate.promise;
            return messages;
          },
        },
      });
      await clock.advance(10);
      steer("Other");
      gate.resolve();
      const { lines } = await done;
      expect(lines.slice(4, 7)).toEqual([...empty("redirected"), "turn_end redirected"]);
      expect(model.requests).toBe(1);
    });

    it("R15: a message that comes while a turn is prepared is told before the model is asked", async () => {
      const gate = later();
      let prepared = 0;
      const { clock, done, steer, model } = redirectable({
        script: [call("x", {}, "c1"), "Done"],
        tools: [tool("x")],
        config: {
          prepareTurn: async () => {
            if (prepared++ === 0) await gate.promise;
          },
        },
      });
      await clock.advance(10);
      steer("Other");
      gate.resolve();
      const { lines } = await done;
      const tail = [
        "turn_start",
        ...empty("redirected"),
        "turn_end redirected",
        "turn_start",
        ...injected("Other"),
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ];
      expect(lines.slice(-tail.length)).toEqual(tail);
      expect(model.requests).toBe(2);
    });

    it("R15: redirect among calls is skip-remaining", async () => {
      const gate = later<string>();
      const { clock, done, steer } = redirectable({
        script: [
          callAll([
            ["slow", {}, "c1"],
            ["x", {}, "c2"],
          ]),
          "Done",
        ],
        tools: [tool("slow", () => gate.promise), tool("x")],
      });
      await clock.advance(10);
      steer("S");
      await clock.advance(10);
      gate.resolve("slow");
      const { lines } = await done;
      expect(lines.slice(7)).toEqual([
        ...ran("slow#c1", 'ok "slow"'),
        ...ran("x#c2", skipped),
        "turn_end toolUse slow#c1 x#c2",
        "turn_start",
        ...injected("S"),
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ]);
    });

    it("R15: redirect without onSteering is skip-remaining", async () => {
      const { lines } = await play({
        script: [
          callAll([
            ["x", {}, "c1"],
            ["x", {}, "c2"],
          ]),
          "Done",
        ],
        tools: [tool("x")],
        config: { steering: "redirect", getSteeringMessages: gives([], ["S"]) },
      });
      expect(lines.slice(7, 15)).toEqual([...ran("x#c1", 'ok "x"'), ...ran("x#c2", skipped)]);
    });

    it("R15: a redirected run goes on even when the message was taken back meanwhile", async () => {
      let wake: () => void = () => {};
      const { clock, done, model } = start({
        script: [{ parts: ["Long"], chunkSize: 2, betweenMs: 100 }, "Done"],
        config: {
          steering: "redirect",
          onSteering: (call) => {
            wake = call;
            return () => {};
          },
        },
      });
      await clock.advance(10);
      wake();
      const { lines } = await done;
      expect(lines.slice(4)).toEqual([
        "message_start assistant",
        'update text +"Lo"',
        'message_end assistant redirected "Lo"',
        "turn_end redirected",
        "turn_start",
        ...answer("Done"),
        "turn_end stop",
        "agent_end done",
      ]);
      model.assertComplete();
    });
  });

  it("R16: an abort before delivery hands a message back to the front of its queue", async () => {
    const returned: unknown[] = [];
    const { abort, done } = start({
      script: ["One"],
      config: {
        getFollowUpMessages: gives(["F1", "F2"]),
        prepareTurn: () => abort(),
        requeue: (queue, messages) => void returned.push([queue, messages.map((m) => m.content)]),
      },
    });
    const { lines, end } = await done;
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...answer("One"),
      "turn_end stop",
      "turn_start",
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      'agent_end aborted undelivered="F1","F2"',
    ]);
    expect(end.undelivered).toEqual([user("F1"), user("F2")]);
    expect(returned).toEqual([["followUp", ["F1", "F2"]]]);
  });

  it("R16: of two messages, the one before the abort is delivered, the other handed back", async () => {
    const returned: unknown[] = [];
    const { abort, done } = start({
      script: ["One"],
      config: {
        getSteeringMessages: gives([], ["S1", "S2"]),
        requeue: (queue, messages) => void returned.push([queue, messages.map((m) => m.content)]),
      },
      onEvent: (event) => {
        if (event.type === "message_start" && event.message.role === "user") {
          if (event.message.content === "S1") abort();
        }
      },
    });
    const { lines } = await done;
    expect(lines.slice(8)).toEqual([
      "turn_start",
      ...injected("S1"),
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      'agent_end aborted undelivered="S2"',
    ]);
    expect(returned).toEqual([["steering", ["S2"]]]);
  });

  it("R16: an error of prepareTurn hands back what was polled", async () => {
    const { lines } = await play({
      script: ["One"],
      config: {
        getFollowUpMessages: gives(["F"]),
        prepareTurn: () => {
          throw new Error("no turn");
        },
      },
    });
    expect(lines.slice(7)).toEqual([
      "turn_end stop",
      "turn_start",
      ...empty("error", "no turn"),
      "turn_end error",
      'agent_end error undelivered="F"',
    ]);
  });

  it("R16: what a poll gives after the run was aborted is handed back as well", async () => {
    const gate = later<AgentMessage[]>();
    const returned: unknown[] = [];
    const { clock, abort, done } = start({
      script: ["One"],
      config: {
        getFollowUpMessages: () => gate.promise,
        requeue: (queue, messages) => void returned.push([queue, messages]),
      },
    });
    await clock.advance(1);
    abort();
    const { lines } = await done;
    gate.resolve([user("Late")]);
    await clock.advance(1);
    expect(lines.slice(7)).toEqual(["turn_end stop", "agent_end aborted"]);
    expect(returned).toEqual([["followUp", [user("Late")]]]);
  });

  it("R16: a requeue that throws harms nobody", async () => {
    const gate = later<AgentMessage[]>();
    const { clock, abort, done } = start({
      script: ["One"],
      config: {
        getFollowUpMessages: () => gate.promise,
        requeue: () => {
          throw new Error("full");
        },
      },
    });
    await clock.advance(1);
    abort();
    expect((await done).end.stop).toBe("aborted");
    gate.resolve([user("Late")]);
    await clock.advance(1);
  });

  it("R16: steering polled among calls is handed back when the run then ends", async () => {
    const returned: unknown[] = [];
    const { lines } = await play({
      script: [three],
      tools: [tool("x")],
      config: {
        getSteeringMessages: gives([], ["S"]),
        shouldStopAfterTurn: () => true,
        requeue: (queue, messages) => void returned.push([queue, messages]),
      },
    });
    expect(lines.slice(-2)).toEqual([
      "turn_end toolUse x#c1 x#c2 x#c3",
      'agent_end stopped undelivered="S"',
    ]);
    expect(returned).toEqual([["steering", [user("S")]]]);
  });

  it("R18: follow-ups are polled only when there is neither a call nor steering", async () => {
    const polls: string[] = [];
    const steering = gives([], ["S"]);
    const followUps = gives(["F"]);
    const { lines } = await play({
      script: [call("x", {}, "c1"), "One", "Two"],
      tools: [tool("x")],
      config: {
        getSteeringMessages: () => {
          polls.push("steering");
          return steering();
        },
        getFollowUpMessages: () => {
          polls.push("followUp");
          return followUps();
        },
      },
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...asks(["x#c1"]),
      ...ran("x#c1", 'ok "x"'),
      "turn_end toolUse x#c1",
      "turn_start",
      ...injected("S"),
      ...answer("One"),
      "turn_end stop",
      "turn_start",
      ...injected("F"),
      ...answer("Two"),
      "turn_end stop",
      "agent_end done",
    ]);
    expect(polls).toEqual(["steering", "steering", "steering", "followUp", "steering", "followUp"]);
  });
});

describe("R19: taking a transcript up again", () => {
  const interrupted = (name: string): string =>
    `error "Interrupted: the run ended before tool "${name}" gave its result. Whether it had effects is not known; look before you call it again."`;

  it("R19: continue throws on an empty context", () => {
    const script = scriptedModel([]);
    const config = { model: script.model, protocol: script };
    expect(() => agentLoopContinue({ messages: [] }, config)).toThrow(
      "Cannot continue: no messages in context",
    );
  });

  it("R19: continue throws on an assistant message", () => {
    const script = scriptedModel([]);
    const config = { model: script.model, protocol: script };
    expect(() => agentLoopContinue({ messages: [user("A"), anAnswer] }, config)).toThrow(
      "Cannot continue from message role: assistant",
    );
  });

  it("R19: runAgentLoop without prompts continues, and refuses the same", async () => {
    const bad = start({ prompts: [], messages: [user("A"), anAnswer] });
    await expect(bad.done).rejects.toThrow("Cannot continue from message role: assistant");
    expect(bad.recorder.lines).toEqual([]);
    const { lines } = await play({ prompts: [], messages: [user("A")], script: ["B"] });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...answer("B"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it.each(["error", "aborted"] as const)(
    "R19: trailing %s messages are looked past",
    async (stopReason) => {
      const failed: AssistantMessage = { ...anAnswer, stopReason, errorMessage: "x" };
      const { model, end } = await play({
        prompts: [],
        messages: [user("A"), { ...failed, content: [] }, failed],
        script: ["B"],
      });
      expect(end.stop).toBe("done");
      expect(model.calls[0]?.messages).toEqual([user("A")]);
    },
  );

  it("R19: calls without results are answered in place, before anything else", async () => {
    const { lines, model, transcript } = await play({
      messages: [user("A"), asked("x1", "x2"), resultOf("x2"), user("B"), asked("y1")],
      prompts: [user("C")],
      script: ["D"],
      tools: [tool("x", () => expect.unreachable())],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("x#x1", interrupted("x")),
      ...ran("y#y1", interrupted("y")),
      ...injected("C"),
      ...answer("D"),
      "turn_end stop",
      "agent_end done",
    ]);
    expect(transcript.map((m) => (m.role === "toolResult" ? m.toolCallId : m.role))).toEqual([
      "user",
      "assistant",
      "x1",
      "x2",
      "user",
      "assistant",
      "y1",
      "user",
      "assistant",
    ]);
    expect(model.calls[0]?.messages).toEqual(transcript.slice(0, -1));
  });

  it("R19: continue answers the calls of the last message and goes on", async () => {
    const { lines } = await play({
      prompts: [],
      messages: [user("A"), asked("x1")],
      script: ["B"],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("x#x1", interrupted("x")),
      ...answer("B"),
      "turn_end stop",
      "agent_end done",
    ]);
  });

  it("R19: a result that a journal recorded is used, before the tool is run again", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1", "x2")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "again", { idempotent: true })],
      config: { recordedResult: (id) => (id === "x1" ? text("recorded") : undefined) },
    });
    expect(lines.slice(2, -5)).toEqual([
      ...ran("x#x1", 'ok "recorded"'),
      ...ran("x#x2", 'ok "again"'),
    ]);
  });

  it("R19: an idempotent tool runs again through the middleware", async () => {
    const seen: string[] = [];
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "again", { idempotent: true })],
      config: {
        middleware: [
          {
            tool(invocation, next) {
              seen.push(invocation.toolCall.id);
              return next();
            },
          },
        ],
      },
    });
    expect(seen).toEqual(["x1"]);
    expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "again"'));
  });

  it("R19: repair comes before the prompts and the first steering poll", async () => {
    const { recorder, done } = start({
      messages: [user("A"), asked("x1")],
      script: ["B"],
      config: { getSteeringMessages: () => void recorder.lines.push("poll") },
    });
    const { lines } = await done;
    expect(lines.slice(0, 9)).toEqual([
      "agent_start",
      "turn_start",
      ...ran("x#x1", interrupted("x")),
      "poll",
      ...injected("Go"),
    ]);
  });

  it("R19: a signal that fired before answers the calls as aborted and runs nothing", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      signal: AbortSignal.abort(),
      tools: [tool("x", () => expect.unreachable(), { idempotent: true })],
    });
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...ran("x#x1", 'error "Aborted: the user stopped the run before tool "x" was started."'),
      ...injected("Go"),
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      "agent_end aborted",
    ]);
  });

  it("R19: a recordedResult that throws ends the run with an error, and the calls are answered", async () => {
    const { end, transcript } = await play({
      messages: [user("A"), asked("x1", "x2")],
      config: {
        recordedResult: () => {
          throw new Error("the journal is gone");
        },
      },
    });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toBe("the journal is gone");
    expect(transcript.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
    ]);
  });

  it("R19: a recorded result that is none is an error result", async () => {
    const { end, recorder } = await play({
      messages: [user("A"), asked("x1")],
      script: ["Ok"],
      config: { recordedResult: () => ({}) as never },
    });
    expect(end.stop).toBe("done");
    expect(recorder.only("tool_execution_end")).toEqual([
      expect.stringMatching(/^tool_end x#x1 error "Tool "x" .*content/),
    ]);
  });

  it.each(["error", "aborted", "length"] as const)(
    "R19: a call of a message that ended %s is not run, idempotent or not",
    async (stopReason) => {
      const { end, recorder } = await play({
        messages: [user("A"), { ...asked("x1"), stopReason }],
        script: ["Ok"],
        tools: [tool("x", () => expect.unreachable(), { idempotent: true })],
      });
      expect(end.stop).toBe("done");
      expect(recorder.only("tool_execution_end")).toEqual([
        expect.stringMatching(/^tool_end x#x1 error "Tool "x" was not run/),
      ]);
    },
  );

  it("R19: prompts that hold unanswered calls end with a clear error, and the next run mends them", async () => {
    const script = scriptedModel(["Ok"]);
    const config: AgentLoopConfig = { model: script.model, protocol: script };
    const made = await agentLoop(
      [user("A"), asked("x1"), user("B")],
      { messages: [] },
      config,
    ).result();
    const last = made.at(-1);
    expect(last?.role === "assistant" && last.failure?.kind).toBe("invalid_transcript");
    expect(script.requests).toBe(0);
    const next = await agentLoop([user("C")], { messages: made }, config).result();
    expect(next.map((m) => m.role)).toEqual(["toolResult", "user", "assistant"]);
    script.assertComplete();
  });

  it("R19: in a long history only what is missing is made", async () => {
    const long = Array.from({ length: 200 }, (_, i) => user(`${i}`));
    const { model, transcript } = await play({
      messages: [...long, asked("x1"), ...long.map((m) => ({ ...m }))],
      script: ["Ok"],
    });
    expect(transcript.length).toBe(404);
    expect(transcript[201]?.role).toBe("toolResult");
    model.assertComplete();
  });
});

describe("R28: the end of a turn", () => {
  const ends = (): ReturnType<typeof tool> =>
    tool("ends", () => ({ ...text("bye"), terminate: true }));

  it("R28: terminate ends the run when every result of the message has it", async () => {
    const { lines } = await play({
      script: [
        callAll([
          ["ends", {}, "c1"],
          ["ends", {}, "c2"],
        ]),
      ],
      tools: [ends()],
      config: {
        skipInitialSteeringPoll: true,
        shouldStopAfterTurn: () => expect.unreachable(),
        prepareTurn: () => expect.unreachable(),
        getFollowUpMessages: () => expect.unreachable(),
      },
    });
    expect(lines.slice(7)).toEqual([
      ...ran("ends#c1", 'ok "bye"'),
      ...ran("ends#c2", 'ok "bye"'),
      "turn_end toolUse ends#c1 ends#c2",
      "agent_end terminated",
    ]);
  });

  it("R28: terminate of some results does not", async () => {
    const { end, model } = await play({
      script: [callAll(["ends", "x"]), "Done"],
      tools: [ends(), tool("x")],
    });
    expect([end.stop, model.requests]).toEqual(["done", 2]);
  });

  it("R28: shouldStopAfterTurn, polls, and prepareTurn come after turn_end, in this order", async () => {
    const followUps = gives(["F"]);
    const { recorder, done } = start({
      script: ["One", "Two"],
      config: {
        skipInitialSteeringPoll: true,
        shouldStopAfterTurn: () => {
          recorder.lines.push("shouldStop");
          return false;
        },
        getSteeringMessages: () => void recorder.lines.push("steering"),
        getFollowUpMessages: () => {
          recorder.lines.push("followUp");
          return followUps();
        },
        prepareTurn: () => void recorder.lines.push("prepare"),
      },
    });
    const { lines } = await done;
    expect(lines).toEqual([
      "agent_start",
      "turn_start",
      ...injected("Go"),
      ...answer("One"),
      "turn_end stop",
      "shouldStop",
      "steering",
      "followUp",
      "prepare",
      "turn_start",
      ...injected("F"),
      ...answer("Two"),
      "turn_end stop",
      "shouldStop",
      "steering",
      "followUp",
      "agent_end done",
    ]);
  });

  it("R28: shouldStopAfterTurn sees the turn and stops before queues are drained", async () => {
    const seen: unknown[] = [];
    const { lines } = await play({
      script: [call("x", {}, "c1")],
      tools: [tool("x")],
      config: {
        shouldStopAfterTurn: ({ message, toolResults, messages, turns }) => {
          seen.push(message.stopReason, toolResults.length, messages.length, turns);
          return true;
        },
        getFollowUpMessages: () => expect.unreachable(),
      },
    });
    expect(seen).toEqual(["toolUse", 1, 3, 1]);
    expect(lines.slice(-2)).toEqual(["turn_end toolUse x#c1", "agent_end stopped"]);
  });

  it("R28: prepareTurn may change model, tools, thinking level and system prompt", async () => {
    const second = { ...scriptedModel([]).model, id: "second" };
    const { model } = await play({
      script: [call("x", {}, "c1"), call("y", {}, "c2"), "Done"],
      systemPrompt: "First",
      tools: [tool("x")],
      config: {
        thinkingLevel: "low",
        prepareTurn: ({ turns }) =>
          turns === 1
            ? { model: second, tools: [tool("y")], thinkingLevel: "high", systemPrompt: "Second" }
            : undefined,
      },
    });
    expect(
      model.calls.map((c) => [
        c.model.id,
        c.tools?.map((t) => t.name),
        c.options.thinkingLevel,
        c.systemPrompt,
      ]),
    ).toEqual([
      ["scripted", ["x"], "low", "First"],
      ["second", ["y"], "high", "Second"],
      ["second", ["y"], "high", "Second"],
    ]);
    model.assertComplete();
  });

  it("R28: prepareTurn is not asked when the run ends", async () => {
    const { end } = await play({
      script: ["One"],
      config: { prepareTurn: () => expect.unreachable() },
    });
    expect(end.stop).toBe("done");
  });
});

describe("what a run tells at its end", () => {
  it("counts turns, adds usage and names the last message", async () => {
    const { end } = await play({
      script: [
        { parts: [call("x", {}, "c1")], usage: { input: 10, output: 1 } },
        { parts: ["Done"], usage: { input: 20, output: 2 } },
      ],
      tools: [tool("x")],
    });
    expect(end.turns).toBe(2);
    expect(end.usage).toEqual({ input: 30, output: 3, totalTokens: 33 });
    expect(end.finalMessage?.content).toEqual([{ type: "text", text: "Done" }]);
    expect([end.undelivered, end.pending]).toEqual([[], []]);
  });

  it("passes the options of the request on, and asks for the key each time", async () => {
    const keys: string[] = [];
    const { model } = await play({
      script: [call("x"), "Done"],
      tools: [tool("x")],
      config: {
        temperature: 0.5,
        maxTokens: 100,
        sessionId: "s",
        apiKey: "fallback",
        getApiKey: (provider) => {
          keys.push(provider);
          return keys.length === 1 ? "first" : undefined;
        },
      },
    });
    expect(keys).toEqual(["scripted", "scripted"]);
    const [one, two] = model.calls.map((c) => c.options);
    expect([one?.apiKey, two?.apiKey]).toEqual(["first", "fallback"]);
    expect([one?.temperature, one?.maxTokens, one?.sessionId]).toEqual([0.5, 100, "s"]);
  });

  it("transformContext and convertToLlm shape what is sent, not what is kept", async () => {
    const { model, transcript } = await play({
      messages: [user("old")],
      script: ["Done"],
      config: {
        transformContext: async (messages) => messages.slice(-1),
        convertToLlm: (messages) => [user("note"), ...(messages as Message[])],
      },
    });
    expect(model.calls[0]?.messages).toEqual([user("note"), user("Go")]);
    expect(transcript.map((m) => m.role)).toEqual(["user", "user", "assistant"]);
  });

  it("an invalid transcript of a hook is not sent, and says what is wrong with it", async () => {
    const { end, model } = await play({
      script: [],
      config: { convertToLlm: () => [user("A"), asked("x1"), user("B")] },
    });
    expect(model.requests).toBe(0);
    expect(end.finalMessage?.failure?.kind).toBe("invalid_transcript");
    expect(end.finalMessage?.errorMessage).toMatch(/x1/);
  });

  it("nothing to send is an error, not a request", async () => {
    const { end, model } = await play({ config: { convertToLlm: () => [] } });
    expect([end.stop, model.requests]).toEqual(["error", 0]);
  });
});

describe("streams of the loop", () => {
  const config = (script: ReturnType<typeof scriptedModel>): AgentLoopConfig => ({
    model: script.model,
    protocol: script,
  });

  it("a stream gives the same events as the sink", async () => {
    const script = ["I look", [say("a"), call("x", {}, "c1")], "Done"];
    const tools = [tool("x")];
    const { lines } = await play({ script, tools });
    const model = scriptedModel(script);
    const stream = agentLoop([user("Go")], { messages: [], tools }, config(model));
    expect(await linesOf(stream)).toEqual(lines);
  });

  it("a stream that nobody iterates still finishes", async () => {
    const messages = await agentLoop(
      [user("Go")],
      { messages: [] },
      config(scriptedModel(["A"])),
    ).result();
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant"]);
  });

  it("leaving the iterator only detaches it: the run goes on", async () => {
    const script = scriptedModel([call("x"), "Done"]);
    const stream = agentLoop([user("Go")], { messages: [], tools: [tool("x")] }, config(script));
    for await (const event of stream) if (event.type === "turn_start") break;
    expect((await stream.result()).map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "assistant",
    ]);
    script.assertComplete();
  });

  it("a reader that lags gets its deltas joined, with nothing lost", async () => {
    const words = "x".repeat(20_000);
    const script = scriptedModel([words], { chunkSize: 1 });
    const stream = agentLoop([user("Go")], { messages: [] }, config(script));
    await stream.result();
    let count = 0;
    let seen = "";
    for await (const event of stream) {
      count++;
      if (event.type !== "message_update" || !("delta" in event.assistantMessageEvent)) continue;
      seen += event.assistantMessageEvent.delta;
    }
    expect(seen).toBe(words);
    expect(count).toBeLessThan(400);
  });

  it("streamAssistantResponse puts one response into a stream", async () => {
    const script = scriptedModel(["Hello"]);
    const stream = createAgentStream();
    const message = await streamAssistantResponse(
      { messages: [user("Go")] },
      config(script),
      stream,
    );
    stream.end([]);
    expect(await linesOf(stream)).toEqual(answer("Hello"));
    expect(message.stopReason).toBe("stop");
  });

  it("streamAssistantResponse turns a hook's throw into a message too", async () => {
    const script = scriptedModel([]);
    const stream = createAgentStream();
    const message = await streamAssistantResponse(
      { messages: [user("Go")] },
      {
        ...config(script),
        getApiKey: () => {
          throw new Error("no key");
        },
      },
      stream,
    );
    stream.end([]);
    expect(await linesOf(stream)).toEqual(empty("error", "no key"));
    expect(message.errorMessage).toBe("no key");
  });
});

describe("what comes from outside without types", () => {
  it("R5: a prompt without content leaves no stream open", async () => {
    const nothing = { role: "user", timestamp: 0 } as unknown as AgentMessage;
    const model = scriptedModel(["Done"]);
    const config = { model: model.model, protocol: model };
    const messages = await agentLoop([nothing, user("Go")], { messages: [] }, config).result();
    expect(messages.map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
    const alone = await agentLoop([nothing], { messages: [] }, config).result();
    expect(alone.at(-1)).toMatchObject({ stopReason: "error" });
  });

  it("R5: what is no message at all fails the stream, and is not an unhandled rejection", async () => {
    const model = scriptedModel([]);
    const config = { model: model.model, protocol: model };
    const stream = agentLoop([null as unknown as AgentMessage], { messages: [] }, config);
    await expect(stream.result()).rejects.toThrow(TypeError);
  });

  it("an error event is an error, whatever its message says of itself", async () => {
    const { end } = await play({
      streamFn: () => {
        const stream = new AssistantMessageEventStream();
        stream.push({ type: "error", reason: "error", error: { ...anAnswer, stopReason: "stop" } });
        return stream;
      },
    });
    expect(end.stop).toBe("error");
  });

  it("R10: the event's reason decides whether a call may be cut off", async () => {
    const content = [{ type: "toolCall", id: "c1", name: "x", arguments: {} } as const];
    let asked = 0;
    const { recorder } = await play({
      tools: [tool("x", () => expect.unreachable())],
      streamFn: () => {
        const stream = new AssistantMessageEventStream();
        if (asked++ > 0) stream.push({ type: "done", reason: "stop", message: anAnswer });
        else
          stream.push({
            type: "done",
            reason: "length",
            message: { ...anAnswer, content: [...content] },
          });
        return stream;
      },
    });
    expect(recorder.only("turn_end")).toEqual(["turn_end length x#c1", "turn_end stop"]);
  });
});

it("a configuration that throws leaves no listener on the signal", () => {
  const { signal } = new AbortController();
  const model = scriptedModel([]);
  const config = { model: model.model, protocol: model, tools: [tool("x"), tool("x")] };
  expect(() => agentLoop([user("Go")], { messages: [] }, config, signal)).toThrow(/Two tools/);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("a stream nobody reads keeps the newest of a call's updates, not all", async () => {
  const busy = tool("busy", (_id, _args, _signal, update) => {
    for (let n = 1; n <= 2000; n++) update(text(String(n)));
    return "ok";
  });
  const model = scriptedModel([call("busy"), "Done"]);
  const config = { model: model.model, protocol: model };
  const stream = agentLoop([user("Go")], { messages: [], tools: [busy] }, config);
  await stream.result();
  const updates: string[] = [];
  for await (const event of stream) {
    if (event.type !== "tool_execution_update") continue;
    const [block] = event.partialResult.content;
    updates.push(block?.type === "text" ? block.text : "");
  }
  expect(updates.length).toBeLessThan(300);
  expect(updates.at(-1)).toBe("2000");
});

it("callbacks that reject late are warnings, not unhandled rejections", async () => {
  const warnings: string[] = [];
  const note = ({ name, message }: Error): void => {
    if (name === "GyreWarning") warnings.push(message);
  };
  process.on("warning", note);
  const polls: AgentMessage[][] = [[], [user("S")]];
  await play({
    script: ["Done"],
    config: {
      getSteeringMessages: () => polls.shift(),
      prepareTurn: () => Promise.reject(new Error("no")),
      requeue: () => Promise.reject(new Error("queue is gone")) as unknown as void,
    },
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.off("warning", note);
  expect(warnings).toEqual(["requeue threw: queue is gone"]);
});
