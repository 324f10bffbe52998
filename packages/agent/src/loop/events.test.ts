import type { AssistantMessageEvent, StreamFn } from "@gyre/ai";
import { call, callAll, cutOff, say, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { agentLoop, agentLoopContinue } from "./loop.ts";
import { anAnswer, asked, gives, sends } from "../testing/messages.ts";
import { freeze, play, tool, user } from "../testing/play.ts";
import { asks, injected, ran, result } from "../testing/render.ts";
import { GO, oneTurn, run, textTurn, turn } from "../testing/sequences.ts";
import type { AgentEvent } from "../contract/types.ts";

describe("the event grammar", () => {
  it("R1: a run of one answer", async () => {
    const { lines } = await play({ script: ["Hello"] });
    expect(lines).toEqual(oneTurn("Hello"));
  });

  it("R2: a run with calls one after the other: each result follows its own end", async () => {
    const { lines, model } = await play({
      script: [[say("I look"), call("read", { a: 1 }, "c1"), call("read", { a: 2 }, "c2")], "Done"],
      tools: [tool("read", (args) => JSON.stringify(args))],
    });
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "toolUse read#c1 read#c2",
          GO,
          "message_start assistant",
          'update text +"I look" end call +"{\\"a\\":1}" end call +"{\\"a\\":2}" end',
          'message_end assistant toolUse "I look" read#c1 read#c2',
          ran("read#c1", 'ok "{"a":1}"', '{"a":1}'),
          ran("read#c2", 'ok "{"a":2}"', '{"a":2}'),
        ),
        textTurn("Done"),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "toolUse read#c1 read#c2",
          GO,
          asks(["read#c1", "read#c2"]),
          "tool_start read#c1 {}",
          "tool_start read#c2 {}",
          'tool_end read#c1 ok "x"',
          'tool_end read#c2 ok "x"',
          result("read#c1", 'ok "x"'),
          result("read#c2", 'ok "x"'),
        ),
        textTurn("Done"),
      ),
    );
  });

  it("R2: several prompts, and what is injected into a later turn, come after its turn_start", async () => {
    const { lines } = await play({
      script: ["One", "Two"],
      prompts: [user("A"), user("B")],
      config: { getFollowUpMessages: gives(["C", "D"]) },
    });
    expect(lines).toEqual(
      run(
        "done",
        textTurn("One", injected("A"), injected("B")),
        textTurn("Two", injected("C"), injected("D")),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        turn("stop", GO, "message_start assistant", 'message_end assistant stop "Before"'),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        turn(
          "toolUse x#x1",
          GO,
          "message_start assistant",
          "message_end assistant toolUse x#x1",
          ran("x#x1", 'ok "x"'),
        ),
        turn("stop", "message_start assistant", 'message_end assistant stop "Before"'),
      ),
    );
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
    expect(lines).toEqual(
      run(
        "done",
        textTurn("Hello", GO, 'retry 1 after 1000 ms: incomplete "The response ended early."'),
      ),
    );
  });

  it("R4: an early end after content is an error of kind incomplete that keeps what arrived", async () => {
    const { lines, end } = await play({ script: [[say("Half of"), cutOff()]] });
    expect(lines).toEqual(
      run(
        "error",
        turn(
          "error",
          GO,
          "message_start assistant",
          'update text +"Half of" end',
          'message_end assistant error "Half of" (The response ended early.)',
        ),
      ),
    );
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
