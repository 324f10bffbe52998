import { call, callAll, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { gives } from "../testing/messages.ts";
import { play, start, text, tool } from "../testing/play.ts";
import { injected } from "../testing/render.ts";
import { GO, run, textTurn, toolTurn } from "../testing/sequences.ts";

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
    expect(lines).toEqual(
      run("terminated", toolTurn({ "ends#c1": 'ok "bye"', "ends#c2": 'ok "bye"' }, GO)),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        textTurn("One", GO),
        "shouldStop",
        "steering",
        "followUp",
        "prepare",
        textTurn("Two", injected("F")),
        "shouldStop",
        "steering",
        "followUp",
      ),
    );
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
