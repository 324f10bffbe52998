import {
  call,
  callAll,
  fail,
  type ManualClock,
  manualClock,
  say,
  scriptedModel,
} from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "../agent/agent.ts";
import { SinkError } from "../run/emitter.ts";
import { runAgentLoop } from "./loop.ts";
import { later, never, Recorder, text, tool, user } from "../testing/play.ts";
import { render } from "../testing/render.ts";
import type {
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentTool,
} from "../contract/types.ts";

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});

afterEach(async () => {
  await new Promise(setImmediate);
  process.off("unhandledRejection", note);
  if (unhandled.length > 0)
    throw new Error("A rejection was not handled.", { cause: unhandled[0] });
});

/** A run with a bit of everything: a retry, repair, text, calls alone and together, updates, steering. */
function everything(clock: ManualClock): {
  context: { messages: AgentMessage[]; tools: AgentTool[] };
  config: AgentLoopConfig;
} {
  const script = scriptedModel(
    [
      fail("Busy", { kind: "overloaded", retryAfterMs: 0 }),
      [say("I look"), call("alone", {}, "c1"), call("both", {}, "c2"), call("both", {}, "c3")],
      { parts: ["Done"], chunkSize: 2 },
      "And more",
    ],
    { clock },
  );
  const orphan: AgentMessage = {
    role: "assistant",
    content: [{ type: "toolCall", id: "old", name: "alone", arguments: {} }],
    api: "scripted",
    provider: "scripted",
    model: "scripted",
    usage: {},
    stopReason: "toolUse",
    timestamp: 0,
  };
  const followUps = [[user("F")]];
  return {
    context: {
      messages: [user("Before"), orphan],
      tools: [
        tool("alone", (_args, { update: onUpdate }) => {
          onUpdate(text("half"));
          return "alone";
        }),
        tool(
          "both",
          async (_args, { update: onUpdate }) => {
            onUpdate(text("1"));
            await Promise.resolve();
            onUpdate(text("2"));
            return "both";
          },
          { concurrent: true },
        ),
      ],
    },
    config: {
      model: script.model,
      protocol: script,
      clock,
      getFollowUpMessages: () => followUps.shift(),
      limits: { maxTurns: 3 },
    },
  };
}

describe("R25: the sink", () => {
  it("R25: is awaited event by event: what it has not taken, the loop does not go past", async () => {
    const script = scriptedModel([call("x", {}, "c1"), "Done"]);
    const seen: string[] = [];
    let inside = 0;
    await runAgentLoop(
      [user("Go")],
      { messages: [], tools: [tool("x", () => (seen.push("ran x"), "x"))] },
      { model: script.model, protocol: script },
      async (event) => {
        expect(++inside).toBe(1);
        seen.push(`in ${event.type}`);
        await new Promise(setImmediate);
        seen.push(`out ${event.type}`);
        inside--;
      },
    );
    const events = seen.filter((line) => line !== "ran x");
    for (let i = 0; i < events.length; i += 2) {
      expect(events[i]?.slice(3)).toBe(events[i + 1]?.slice(4));
    }
    expect(seen[seen.indexOf("ran x") - 1]).toBe("out tool_execution_start");
  });

  const kinds: [string, (failure: Error) => void | Promise<void>][] = [
    [
      "throws",
      (failure) => {
        throw failure;
      },
    ],
    ["rejects", (failure) => Promise.reject(failure)],
    ["rejects later", (failure) => new Promise((_, reject) => setImmediate(() => reject(failure)))],
  ];

  it.each(kinds)(
    "R25: a sink that %s at any event is not called again, and the run rejects",
    async (_how, go) => {
      const whole: string[] = [];
      {
        const clock = manualClock();
        const { context, config } = everything(clock);
        const run = runAgentLoop(
          [user("Go")],
          context,
          config,
          (event) => void whole.push(render(event)),
        );
        await clock.advance(10);
        await run;
      }
      expect(whole.length).toBeGreaterThan(50);
      for (let index = 0; index < whole.length; index++) {
        const clock = manualClock();
        const { context, config } = everything(clock);
        const seen: AgentEvent[] = [];
        const failure = new Error(`at ${index}`);
        const returned: AgentMessage[] = [];
        config.requeue = (_queue, messages) => void returned.push(...messages);
        const run = runAgentLoop([user("Go")], context, config, (event) => {
          seen.push(event);
          return seen.length - 1 === index ? go(failure) : undefined;
        }).then(
          () => "resolved",
          (error: unknown) => error,
        );
        await clock.advance(1_000);
        const error = await run;
        expect(error).toBeInstanceOf(SinkError);
        expect(seen).toHaveLength(index + 1);
        if (!(error instanceof SinkError)) continue;
        expect(error.event).toBe(seen.at(-1));
        expect(error.cause).toBe(failure);
        expect(error.code).toBe("sink");
        expect(clock.pending).toBe(0);
        // The follow-up was taken by the sink, or is back in its queue, or was never polled.
        const taken = seen
          .slice(0, -1)
          .filter((e) => e.type === "message_end" && e.message.content === "F").length;
        expect(taken + returned.length).toBeLessThanOrEqual(1);
        const started = seen.some((e) => e.type === "message_start" && e.message.content === "F");
        if (started) expect(taken + returned.length).toBe(1);
      }
    },
  );

  it("R25: a sink that throws what has no text is a SinkError too", async () => {
    const script = scriptedModel([]);
    const run = runAgentLoop(
      [user("Go")],
      { messages: [] },
      { model: script.model, protocol: script },
      () => {
        throw Object.create(null);
      },
    );
    await expect(run).rejects.toBeInstanceOf(SinkError);
  });

  it("R25: a sink has a timeout of its own, sinkTimeoutMs", async () => {
    const clock = manualClock();
    const script = scriptedModel(["Ok"]);
    let release = (): void => {};
    let settled = false;
    const done = runAgentLoop(
      [user("Go")],
      { messages: [] },
      {
        model: script.model,
        protocol: script,
        clock,
        hookTimeoutMs: 1_000,
        sinkTimeoutMs: 3_600_000,
      },
      ({ type }) => (type === "message_end" ? new Promise((done) => (release = done)) : undefined),
    ).catch((error: unknown) => error);
    void done.then(() => (settled = true));
    await clock.advance(3_599_999);
    expect(settled).toBe(false);
    release();
    await clock.turn();
    await clock.advance(3_600_000);
    const error = await done;
    expect(error).toBeInstanceOf(SinkError);
    expect(String(error)).toContain("did not settle within 3600000 ms");
  });

  it("R25: a sink that does not settle within hookTimeoutMs has failed", async () => {
    const clock = manualClock();
    const script = scriptedModel([]);
    let calls = 0;
    const run = runAgentLoop(
      [user("Go")],
      { messages: [] },
      { model: script.model, protocol: script, clock, hookTimeoutMs: 1_000 },
      () => {
        calls++;
        return never();
      },
    );
    const caught = run.catch((error: unknown) => error);
    await clock.advance(1_000);
    const error = await caught;
    expect(error).toBeInstanceOf(SinkError);
    expect(String(error)).toMatch(/1000 ms/);
    expect(calls).toBe(1);
  });

  it("R25: when the sink fails among tools their signals fire, and nothing more is made", async () => {
    const clock = manualClock();
    const script = scriptedModel([callAll(["slow", "slow", "quick"]), "Never"]);
    const signals: AbortSignal[] = [];
    let quick = 0;
    const seen: string[] = [];
    const run = runAgentLoop(
      [user("Go")],
      {
        messages: [],
        tools: [
          tool("slow", (_args, { signal }) => {
            signals.push(signal);
            return never<string>();
          }),
          tool("quick", () => `${++quick}`),
        ],
      },
      { model: script.model, protocol: script, clock, toolExecution: "parallel" },
      (event) => {
        seen.push(event.type);
        if (event.type === "tool_execution_end") throw new Error("full");
      },
    ).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await run).toBeInstanceOf(SinkError);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
    expect([quick, script.requests, seen.at(-1)]).toEqual([1, 1, "tool_execution_end"]);
    expect(clock.pending).toBe(0);
  });

  it("R25: a sink that fails on an update of a tool ends the run as well", async () => {
    const clock = manualClock();
    const script = scriptedModel([call("x"), "Never"]);
    let signal: AbortSignal | undefined;
    const seen: string[] = [];
    const run = runAgentLoop(
      [user("Go")],
      {
        messages: [],
        tools: [
          tool("x", (_args, { signal: given, update: onUpdate }) => {
            signal = given;
            onUpdate(text("1"));
            onUpdate(text("2"));
            return never<string>();
          }),
        ],
      },
      { model: script.model, protocol: script, clock },
      (event) => {
        seen.push(event.type);
        if (event.type === "tool_execution_update") throw new Error("full");
      },
    ).catch((error: unknown) => error);
    await clock.advance(200);
    const error = await run;
    expect(error).toBeInstanceOf(SinkError);
    expect(error instanceof SinkError && error.event.type).toBe("tool_execution_update");
    expect(signal?.aborted).toBe(true);
    expect(seen.at(-1)).toBe("tool_execution_update");
  });

  it("R25: updates that wait for the sink are replaced by the newest of their call", async () => {
    const gate = later();
    const script = scriptedModel([
      callAll([
        ["x", {}, "c1"],
        ["y", {}, "c2"],
      ]),
      "Done",
    ]);
    const seen: string[] = [];
    const reports = (name: string): AgentTool =>
      tool(name, async (_args, { update: onUpdate }) => {
        for (let i = 1; i <= 1_000; i++) onUpdate(text(`${name}${i}`));
        await gate.promise;
        return name;
      });
    const run = runAgentLoop(
      [user("Go")],
      { messages: [], tools: [reports("x"), reports("y")] },
      { model: script.model, protocol: script, toolExecution: "parallel" },
      async (event) => {
        if (event.type.startsWith("tool_")) seen.push(render(event));
        if (event.type === "tool_execution_update" && seen.length < 4) {
          await new Promise(setImmediate);
          gate.resolve();
          await new Promise(setImmediate);
        }
      },
    );
    await run;
    expect(seen).toEqual([
      "tool_start x#c1 {}",
      'tool_update x#c1 "x1000"',
      "tool_start y#c2 {}",
      'tool_end x#c1 ok "x"',
      'tool_update y#c2 "y1000"',
      'tool_end y#c2 ok "y"',
    ]);
  });
});

describe("R25: the sink of an Agent", () => {
  function agentWith(
    sink: AgentSink,
    more: { script?: string[] } = {},
  ): { agent: Agent; heard: Recorder } {
    const script = scriptedModel(more.script ?? ["Hello", "Again"]);
    const agent = new Agent({ protocol: script, model: script.model, sink });
    const heard = new Recorder();
    agent.subscribe(heard.sink);
    return { agent, heard };
  }

  it("R25: comes before every listener and before the state", async () => {
    const order: string[] = [];
    const script = scriptedModel(["Hello"]);
    const agent: Agent = new Agent({
      protocol: script,
      model: script.model,
      sink: async (event) => {
        await new Promise(setImmediate);
        order.push(`sink ${event.type} ${agent.state.messages.length}`);
      },
    });
    agent.subscribe((event) => void order.push(`listener ${event.type}`));
    await agent.prompt("Hi");
    const types = order.filter((line) => line.startsWith("listener")).map((line) => line.slice(9));
    expect(order.map((line) => line.split(" ")[0])).toEqual(
      types.flatMap(() => ["sink", "listener"]),
    );
    expect(order).toContain("sink message_end 0");
  });

  it("R25: when it throws at any event, listeners get one agent_end with the messages it had taken", async () => {
    for (let index = 0; ; index++) {
      const taken: AgentMessage[] = [];
      let count = 0;
      let last: AgentEvent | undefined;
      const { agent, heard } = agentWith((event) => {
        last = event;
        if (count++ === index) throw new Error("disk full");
        if (event.type === "message_end") taken.push(event.message);
      });
      const outcome = await agent.prompt("Hi").catch((error: unknown) => error);
      if (!(outcome instanceof SinkError)) {
        expect(index).toBeGreaterThan(8);
        break;
      }
      expect(outcome.event).toBe(last);
      const ends = heard.events.filter((event) => event.type === "agent_end");
      expect(ends).toHaveLength(1);
      expect(heard.end.stop).toBe("sink");
      expect(heard.end.messages).toEqual(taken);
      expect(agent.state.messages).toEqual(taken);
      expect(heard.events.length).toBe(index + 1);
      expect([agent.isRunning, agent.state.error]).toEqual([false, outcome.message]);
    }
  });

  it("R16: a message in flight when the sink fails is back in its queue, and reported as undelivered", async () => {
    const { agent, heard } = agentWith((event) => {
      if (event.type === "message_end" && event.message.content === "Steer")
        throw new Error("full");
    });
    agent.steer("Steer");
    await expect(agent.prompt("Hi")).rejects.toBeInstanceOf(SinkError);
    expect(agent.queued("steering").map(({ message }) => message.content)).toEqual(["Steer"]);
    expect(heard.end.undelivered.map((message) => message.content)).toEqual(["Steer"]);
  });

  it("R25: the agent works again afterwards", async () => {
    let broken = true;
    const { agent } = agentWith(() => {
      if (broken) throw new Error("full");
    });
    await expect(agent.prompt("Hi")).rejects.toBeInstanceOf(SinkError);
    broken = false;
    expect((await agent.prompt("Hi"))?.stop).toBe("done");
  });

  it("R25: agent.run() ends with the same agent_end", async () => {
    const { agent } = agentWith((event) => {
      if (event.type === "turn_start") throw new Error("full");
    });
    const run = agent.run("Hi");
    const types: string[] = [];
    for await (const event of run) types.push(event.type);
    expect(types).toEqual(["agent_start", "agent_end"]);
    expect((await run.result()).stop).toBe("sink");
    await agent.waitForIdle();
  });
});

it("R25: middleware gets no end that the sink did not take", async () => {
  const seen: unknown[] = [];
  const run = runAgentLoop(
    [user("Go")],
    { messages: [] },
    {
      model: scriptedModel([]).model,
      protocol: scriptedModel(["Done"]),
      middleware: [{ run: () => (end) => void seen.push(end) }],
    },
    (event) => {
      if (event.type === "agent_end") throw new Error("disk full");
    },
  );
  await expect(run).rejects.toThrow(SinkError);
  expect(seen).toEqual([undefined]);
});
