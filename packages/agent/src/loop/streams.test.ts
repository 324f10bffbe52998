import { call, say, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { agentLoop, createAgentStream, streamAssistantResponse } from "./loop.ts";
import { renderStream, play, text, tool, user } from "../testing/play.ts";
import { answer, empty } from "../testing/render.ts";
import type { AgentLoopConfig } from "../contract/types.ts";

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
    expect(await renderStream(stream)).toEqual(lines);
  });

  it("a stream that is not iterated still finishes", async () => {
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
    expect(await renderStream(stream)).toEqual(answer("Hello"));
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
    expect(await renderStream(stream)).toEqual(empty("error", "no key"));
    expect(message.errorMessage).toBe("no key");
  });
});

it("a stream without a reader keeps the newest of a call's updates, not all", async () => {
  const busy = tool("busy", (_args, { update }) => {
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
