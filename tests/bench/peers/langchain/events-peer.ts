import type { ChatModelStreamEvent } from "@langchain/core/language_models/event";
import type { BaseMessage } from "@langchain/core/messages";
import type { Peer } from "../peer.ts";
import { guardSteps, idle, type Read, run } from "./converse.ts";

/** `streamEvents`, in the order in which things happen. */
const read: Read = async (agent, input, settings, sink) => {
  const stream = await agent.streamEvents(input, { ...settings, version: "v3" });
  const calls = settle(stream.toolCalls);
  for await (const { method, params } of stream) {
    // What `data` is hangs on `method`; the library's types leave it open.
    if (method === "values") sink.state((params.data as { messages: BaseMessage[] }).messages);
    else if (method === "messages") {
      const event = params.data as ChatModelStreamEvent;
      if (event.event === "content-block-delta") {
        if (event.delta.type === "text-delta") sink.text(event.delta.text);
        else sink.argument();
      }
    }
    const wait = sink.event?.();
    if (wait) await wait;
  }
  await calls;
  await stream.output;
};

/** What is not read of a failed call would be an unhandled rejection. */
async function settle(calls: AsyncIterable<{ readonly output: Promise<unknown> }>): Promise<void> {
  try {
    for await (const { output } of calls) output.catch(() => {});
  } catch {
    // The run failed, which `output` of the run reports.
  }
}

/**
 * LangChain's agent by its events of version 3: the documentation calls them the way for
 * most applications, its types call them experimental. What is chosen for both peers is
 * described in `./converse.ts`.
 */
const langchainEvents: Peer = {
  name: "LangChain events",
  imports: ["langchain"],
  run: (work) => run(work, read),
  idle: (work) => idle(work, read),
  anthropic: async (work) => (await import("./services.ts")).anthropic(work, read),
  openai: async (work) => (await import("./services.ts")).openai(work, read),
  stallGuard: (work, ms) => guardSteps(work, ms, read),
  // A limit of silence, as the other peer has it, does not hear these events either.
  stallGuardLimits: "the whole answer",
};
export default langchainEvents;
