import { call, callAll } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { gives } from "../testing/messages.ts";
import { later, play, start, tool, user, type Setup } from "../testing/play.ts";
import { asks, empty, injected, ran, result } from "../testing/render.ts";
import { GO, run, textTurn, toolTurn, turn } from "../testing/sequences.ts";
import type { AgentMessage } from "../contract/types.ts";

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
    expect(lines).toEqual(run("done", textTurn("Ok", GO, injected("S1"), injected("S2"))));
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
    expect(recorder.lines).toEqual(
      run(
        "done",
        turn(
          "toolUse x#c1 x#c2 x#c3",
          "poll",
          GO,
          asks(["x#c1", "x#c2", "x#c3"]),
          ran("x#c1", 'ok "x"'),
          "poll",
          ran("x#c2", 'ok "x"'),
          "poll",
          ran("x#c3", 'ok "x"'),
          "poll",
        ),
        "poll",
        textTurn("Done"),
        "poll",
      ),
    );
  });

  it("R15: skip-remaining skips the calls that have not started", async () => {
    const { lines, model } = await play({
      script: [three, "Done"],
      tools: [tool("x")],
      config: { getSteeringMessages: gives([], ["Stop that"]) },
    });
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "x"', "x#c2": skipped, "x#c3": skipped }, GO),
        textTurn("Done", injected("Stop that")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "x"', "x#c2": 'ok "x"', "x#c3": 'ok "x"' }, GO),
        textTurn("Done", injected("Late")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "x"', "x#c2": 'ok "x"', "x#c3": 'ok "x"' }, GO),
        textTurn("Done", injected("S")),
      ),
    );
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
        tool("slow", (_args, { signal }) => gate.promise.then(() => `aborted: ${signal.aborted}`)),
        tool("x"),
      ],
      config: { toolExecution: "parallel", getSteeringMessages: gives([], [], ["S"]) },
    });
    await clock.advance(1);
    gate.resolve();
    const { lines } = await done;
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "toolUse slow#c1 x#c2 x#c3",
          GO,
          asks(["slow#c1", "x#c2", "x#c3"]),
          "tool_start slow#c1 {}",
          "tool_start x#c2 {}",
          'tool_end x#c2 ok "x"',
          'tool_end slow#c1 ok "aborted: false"',
          result("slow#c1", 'ok "aborted: false"'),
          result("x#c2", 'ok "x"'),
          ran("x#c3", skipped),
        ),
        textTurn("Done", injected("S")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        'aborted undelivered="F1","F2"',
        textTurn("One", GO),
        turn("aborted", empty("aborted", "Aborted.")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        'aborted undelivered="S2"',
        textTurn("One", GO),
        turn("aborted", injected("S1"), empty("aborted", "Aborted.")),
      ),
    );
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
    expect(lines).toEqual(
      run('error undelivered="F"', textTurn("One", GO), turn("error", empty("error", "no turn"))),
    );
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
    expect(lines).toEqual(run("aborted", textTurn("One", GO)));
    expect(returned).toEqual([["followUp", [user("Late")]]]);
  });

  it("R16: a requeue that throws does no harm", async () => {
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
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "x"' }, GO),
        textTurn("One", injected("S")),
        textTurn("Two", injected("F")),
      ),
    );
    expect(polls).toEqual(["steering", "steering", "steering", "followUp", "steering", "followUp"]);
  });
});
