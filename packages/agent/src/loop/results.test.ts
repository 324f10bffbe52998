import { call, callAll } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { asked, makeResult } from "../testing/messages.ts";
import { play, tool, user } from "../testing/play.ts";
import { GO, run, textTurn, toolTurn } from "../testing/sequences.ts";

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
      tools: [tool("x", (_args, { id }) => id)],
    });
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "c1"', "x#new_1": 'ok "new_1"' }, GO),
        toolTurn({ "x#new_2": 'ok "new_2"' }),
        toolTurn({ "x#new_3": 'ok "new_3"' }),
        textTurn("Done"),
      ),
    );
    model.assertComplete();
  });

  it("R8: an empty id, and an id of the messages before, are replaced too", async () => {
    const long = Array.from({ length: 80 }, (_, i) => user(`${i}`));
    for (const before of [[], long]) {
      const { model, transcript } = await play({
        messages: [...before, asked("x1"), makeResult("x1")],
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
