import { call, callAll, fail, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { gives } from "../testing/messages.ts";
import { later, never, play, start, tool, user, type Setup } from "../testing/play.ts";
import { empty, injected, ran } from "../testing/render.ts";
import { GO, run, textTurn, toolTurn, turn } from "../testing/sequences.ts";
import type { AgentMessage } from "../contract/types.ts";

const skipped = 'error "Skipped due to queued user message."';

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
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "redirected",
          GO,
          "message_start assistant",
          'update text +"I l" +"ook" end call +"{}" end text',
          'message_end assistant redirected "I look" ""',
        ),
        textTurn("Done", injected("Rather not")),
      ),
    );
    model.assertComplete();
  });

  it("R15: redirect before anything came leaves an empty message, which is not sent", async () => {
    const { clock, done, steer, model } = redirectable({
      script: [{ parts: ["Never"], delayMs: 1_000 }, "Done"],
    });
    await clock.advance(10);
    steer("Other");
    const { lines } = await done;
    expect(lines).toEqual(
      run("done", turn("redirected", GO, empty("redirected")), textTurn("Done", injected("Other"))),
    );
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
    expect((await done).lines).toEqual(
      run("done", turn("redirected", GO, empty("redirected")), textTurn("Done", injected("Other"))),
    );
  });

  it("R15: redirect ends the wait for a retry, and leaves no timer", async () => {
    const { clock, done, steer, model } = redirectable({
      script: [fail("Busy", { kind: "overloaded", retryAfterMs: 50_000 }), "Done"],
    });
    await clock.advance(10);
    steer("Other");
    const { lines } = await done;
    expect(lines).toEqual(
      run(
        "done",
        turn("redirected", GO, 'retry 1 after 50000 ms: overloaded "Busy"', empty("redirected")),
        textTurn("Done", injected("Other")),
      ),
    );
    expect(model.requests).toBe(2);
    expect(clock.pending).toBe(0);
  });

  it("R15: a message that comes while a hook runs is delivered before the model is asked", async () => {
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
    expect(lines).toEqual(
      run("done", turn("redirected", GO, empty("redirected")), textTurn("Done", injected("Other"))),
    );
    expect(model.requests).toBe(1);
  });

  it("R15: a message that comes while a turn is prepared is delivered before the model is asked", async () => {
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
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "x#c1": 'ok "x"' }, GO),
        turn("redirected", empty("redirected")),
        textTurn("Done", injected("Other")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        toolTurn({ "slow#c1": 'ok "slow"', "x#c2": skipped }, GO),
        textTurn("Done", injected("S")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "redirected",
          GO,
          "message_start assistant",
          'update text +"Lo"',
          'message_end assistant redirected "Lo"',
        ),
        textTurn("Done"),
      ),
    );
    model.assertComplete();
  });
});
