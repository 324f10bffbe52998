import {
  call,
  cutOff,
  fail,
  manualClock,
  say,
  scriptedModel,
  type ScriptedModel,
  type ScriptFunction,
  type ScriptStep,
  stall,
  unfinished,
} from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";
import { checkGrammar, checkPairs } from "../testing/grammar.ts";
import { Recorder, tool } from "../testing/play.ts";
import { answer, injected } from "../testing/render.ts";

interface Made {
  agent: Agent;
  model: ScriptedModel;
  recorder: Recorder;
}

function make(script: readonly ScriptStep[] | ScriptFunction, options: AgentOptions = {}): Made {
  const clock = manualClock();
  const model = scriptedModel(script, { clock });
  const agent = new Agent({
    protocol: model,
    clock,
    maxContinuations: 3,
    ...options,
    model: model.model,
  });
  const recorder = new Recorder();
  agent.subscribe((event) => recorder.sink(event));
  return { agent, model, recorder };
}

const begin = ["agent_start", "turn_start", ...injected("Hi")];
/** A response that breaks off after some of it was shown. */
const half = [unfinished(say("Half")), cutOff()];
const cut = [
  "message_start assistant",
  'update text +"Half"',
  'message_end assistant error "Half" (The response ended early.)',
  "turn_end error",
];

describe("R22: a response that breaks off after content was shown", () => {
  it("R22: is followed by a new turn, and the run has one end", async () => {
    const { agent, recorder, model } = make([half, "Whole"]);
    const end = await agent.prompt("Hi");
    expect(recorder.lines).toEqual([
      ...begin,
      ...cut,
      "turn_start",
      ...answer("Whole"),
      "turn_end stop",
      "agent_end done",
    ]);
    checkGrammar(recorder.events);
    expect([end.turns, end.messages.length, model.requests]).toEqual([2, 3, 2]);
    expect(agent.state.error).toBeUndefined();
  });

  it("R22: the user's message is not repeated, and the part is kept, and not sent (R26)", async () => {
    const { agent, model } = make([half, "Whole"]);
    await agent.prompt("Hi");
    expect(agent.state.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "assistant",
    ]);
    expect(model.calls[1]?.messages).toEqual(model.calls[0]?.messages);
  });

  it("R22: no call of it is run, neither a whole one nor half a one", async () => {
    const script = [
      [call("x", {}, "c1"), unfinished(call("x", "{", "c2")), cutOff()],
      call("x", {}, "c3"),
      "Done",
    ];
    let runs = 0;
    const x = tool("x", () => {
      runs++;
      return "ran";
    });
    const { agent, recorder } = make(script, { tools: [x] });
    const end = await agent.prompt("Hi");
    checkGrammar(recorder.events);
    checkPairs(agent.state.messages, new Set());
    expect([end.stop, end.turns, runs]).toEqual(["done", 3, 1]);
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end x#c1 error "Tool "x" was not run: the response ended with an error."',
      'tool_end x#c3 ok "ran"',
    ]);
  });

  it("R22: half a call alone was shown, too", async () => {
    const { agent, model } = make([[unfinished(call("x", "{", "c1")), cutOff()], "Whole"], {
      tools: [tool("x", () => expect.unreachable())],
    });
    expect((await agent.prompt("Hi")).stop).toBe("done");
    expect(model.requests).toBe(2);
  });

  it("R22: at most so many in a row; a whole response starts the count over", async () => {
    const always = make(() => half);
    const failed = await always.agent.prompt("Hi");
    expect([failed.stop, failed.turns, always.model.requests]).toEqual(["error", 4, 4]);
    expect(always.agent.state.error).toBe("The response ended early.");
    checkGrammar(always.recorder.events);
    const steps = [half, half, half, call("x"), half, half, half, "Whole"];
    const { agent } = make(steps, { tools: [tool("x")] });
    expect(await agent.prompt("Hi")).toMatchObject({ stop: "done", turns: 8 });
  });

  it("R22: everything that was paid is counted, and the limits hold", async () => {
    const usage = { input: 10, output: 5 };
    const { agent } = make([
      {
        parts: [unfinished(say("Half"))],
        error: { message: "Cut", failure: { kind: "incomplete" } },
        usage,
      },
      { parts: ["Whole"], usage: { input: 20, output: 7 } },
    ]);
    await agent.prompt("Hi");
    expect(agent.state.usage).toMatchObject({ input: 30, output: 12 });
    const limited = make([half, "Whole"], { limits: { maxTurns: 1 } });
    const ended = await limited.agent.prompt("Hi");
    expect([ended.stop, limited.model.requests]).toEqual(["error", 1]);
  });

  it.each([
    ["what no retry helps against", [say("Half"), fail("No", { kind: "refused" })]],
    ["a service that may still be at work", [say("Half"), stall()]],
  ])("R22: not after %s", async (_what, step) => {
    const clock = manualClock();
    const model = scriptedModel([step, "Whole"], { clock });
    const agent = new Agent({
      protocol: model,
      clock,
      maxContinuations: 3,
      model: model.model,
    });
    const ended = agent.prompt("Hi");
    await clock.advance(900_000);
    expect([(await ended).stop, model.requests]).toEqual(["error", 1]);
  });

  it("R22: what failed before content was retried already, and ends the run", async () => {
    const { agent, model } = make(() => cutOff(), { retry: { maxRetries: 0 } });
    expect((await agent.prompt("Hi")).stop).toBe("error");
    expect(model.requests).toBe(1);
  });

  it("R22: an abort ends it", async () => {
    const { agent, model } = make([half, "Whole"]);
    agent.subscribe((event) => {
      if (event.type === "turn_end") agent.abort();
    });
    expect((await agent.prompt("Hi")).stop).toBe("aborted");
    expect(model.requests).toBe(1);
  });

  it("R22: a message that was steered meanwhile comes into the new turn", async () => {
    const { agent, model } = make([half, "Whole"]);
    const unsubscribe = agent.subscribe((event) => {
      if (event.type !== "message_update") return;
      unsubscribe();
      agent.steer("Shorter");
    });
    expect((await agent.prompt("Hi")).stop).toBe("done");
    const sent = model.calls[1]?.messages ?? [];
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  it("R22: without the option it ends the run", async () => {
    const { agent, recorder } = make([half], { maxContinuations: 0 });
    await agent.prompt("Hi");
    expect(recorder.lines).toEqual([...begin, ...cut, "agent_end error"]);
  });
});
