import { call, fail, say, scriptedModel, think } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { agentLoop, agentLoopContinue, runAgentLoop } from "./loop.ts";
import { play, Recorder, tool, user, type Setup } from "../testing/play.ts";
import { answer, asks, empty, ran } from "../testing/render.ts";
import { GO, run, textTurn, turn } from "../testing/sequences.ts";

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

  it("R5: streamFn takes precedence over config.protocol", async () => {
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
    expect(lines).toEqual(
      run(
        "error",
        turn(
          "error x#c1",
          GO,
          "message_start assistant",
          'update text +"Hm" end call +"{}" end',
          'message_end assistant error "Hm" x#c1 (Broken)',
          ran("x#c1", 'error "Tool "x" was not run: the response ended with an error."'),
        ),
      ),
    );
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
    expect(lines).toEqual(run("aborted", turn("aborted", GO, empty("aborted", "Aborted."))));
    expect([model.requests, polled]).toEqual([0, []]);
  });

  it("R7: calls are found whatever the stop reason says", async () => {
    const { lines } = await play({
      script: [{ parts: [call("x", {}, "c1")], stopReason: "stop" }, "Done"],
      tools: [tool("x")],
    });
    expect(lines).toEqual(
      run(
        "done",
        turn("stop x#c1", GO, asks(["x#c1"], "{}", "stop"), ran("x#c1", 'ok "x"')),
        textTurn("Done"),
      ),
    );
  });

  it.each<[string, NonNullable<Setup["script"]>]>([
    ["nothing at all", () => ({ parts: [] })],
    ["an empty text", () => ""],
    ["an empty thought", () => think("")],
    ["toolUse without a call", () => ({ parts: [], stopReason: "toolUse" })],
    ["an empty answer cut off at its length", () => ({ parts: [], stopReason: "length" })],
  ])("R7: %s is retried, then an error", async (_what, script) => {
    const { lines, end } = await play({ script, config: { retry: { maxRetries: 2 } } }, 10_000);
    const seen = lines.filter((line) =>
      /^(retry|message_end assistant|turn_end|agent_end)/.test(line),
    );
    expect(seen.map((line) => line.replace(/( ""| <>)? ?[:(].*/, ""))).toEqual([
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
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "stop",
          GO,
          "message_start assistant",
          'update thinking +"Hm" end',
          "message_end assistant stop <Hm>",
        ),
      ),
    );
  });

  it("R7: pause calls the model again in a new turn, with the transcript as it is", async () => {
    const { lines, model } = await play({
      script: [{ parts: ["Working"], stopReason: "pause" }, "Done"],
    });
    expect(lines).toEqual(
      run("done", turn("pause", GO, answer("Working", "pause")), textTurn("Done")),
    );
    expect(model.calls[1]?.messages.map((m) => m.role)).toEqual(["user", "assistant"]);
  });

  it("R7: a pause with nothing in it goes on too", async () => {
    const { end, model } = await play({ script: [{ parts: [], stopReason: "pause" }, "Done"] });
    expect([end.stop, model.requests]).toEqual(["done", 2]);
  });

  it("R7: ten pauses in a row are resumed, the eleventh ends the run", async () => {
    const paused = { parts: ["."], stopReason: "pause" } as const;
    const { lines, model } = await play({ script: () => paused });
    const pause = turn("pause", answer(".", "pause"));
    expect(lines).toEqual(
      run(
        "limit limit=maxPausesInARow",
        turn("pause", GO, answer(".", "pause")),
        ...Array.from({ length: 10 }, () => pause),
        "limit maxPausesInARow 10",
      ),
    );
    expect(model.requests).toBe(11);
  });

  it("R7: an answer between pauses restarts the count", async () => {
    const paused = { parts: ["."], stopReason: "pause" } as const;
    const { end } = await play({
      script: (_context, _options, index) =>
        index === 25 ? "Done" : index % 9 === 8 ? call("x") : paused,
      tools: [tool("x", (_args, { id }) => id)],
    });
    expect(end.stop).toBe("done");
  });

  it("R7: a refusal is an error of kind refused, and is not retried", async () => {
    const { lines, end } = await play({ script: [{ refuse: "No." }] });
    expect(lines).toEqual(run("error", turn("error", GO, empty("error", "No."))));
    expect(end.finalMessage?.failure?.kind).toBe("refused");
  });
});
