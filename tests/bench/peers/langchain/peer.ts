import { AIMessageChunk } from "@langchain/core/messages";
import type { Peer } from "../peer.ts";
import { guardSilence, idle, type Read, run } from "./converse.ts";

/** `stream`, with tokens as they come and the state after each step. */
const read: Read = async (agent, input, settings, sink) => {
  const streamMode: ("messages" | "values")[] = ["messages", "values"];
  for await (const [mode, data] of await agent.stream(input, { ...settings, streamMode })) {
    if (mode === "values") sink.state(data.messages);
    else {
      const [message] = data;
      // Results of tools come this way too.
      if (AIMessageChunk.isInstance(message)) {
        const { text } = message;
        if (text !== "") sink.text(text);
        for (const { args } of message.tool_call_chunks ?? []) if (args) sink.argument();
      }
    }
    const wait = sink.event?.();
    if (wait) await wait;
  }
};

/** LangChain's agent by its stable stream; what is chosen for both peers is in `./converse.ts`. */
const langchain: Peer = {
  name: "LangChain",
  imports: ["langchain"],
  run: (work) => run(work, read),
  idle: (work) => idle(work, read),
  anthropic: async (work) => (await import("./services.ts")).anthropic(work, read),
  openai: async (work) => (await import("./services.ts")).openai(work, read),
  stallGuard: (work, ms) => guardSilence(work, ms, read),
};
export default langchain;
