import { AssistantMessageEventStream, type Message } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { agentLoop } from "./loop.ts";
import { anAnswer, asked } from "../testing/messages.ts";
import { play, tool, user } from "../testing/play.ts";
import type { AgentMessage } from "../contract/types.ts";

describe("what a run reports at its end", () => {
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
