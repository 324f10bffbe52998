import { ToolLoopAgent } from "ai";
import type { Peer } from "../peer.ts";
import { historyAfter, run, type Start } from "./converse.ts";
import type { Ask } from "./services.ts";

// An agent has the callbacks of `streamText` but for `onChunk`.
const start: Start = ({ settings, options }) => new ToolLoopAgent(settings).stream(options);

const ask: Ask = (model, signal) =>
  new ToolLoopAgent({ model, maxRetries: 0, onError: () => {} }).stream({
    prompt: "go",
    ...(signal ? { abortSignal: signal } : {}),
  });

/** The AI SDK's agent; what is chosen for both of its peers is in `./converse.ts`. */
const aiSdkAgent: Peer = {
  name: "AI SDK ToolLoopAgent",
  imports: ["ai"],
  run: (work) => run(work, start),
  async idle(work) {
    let agent: unknown;
    const messages = await historyAfter(work, ({ settings, options }) => {
      const own = new ToolLoopAgent(settings);
      agent = own;
      return own.stream(options);
    });
    return { agent, messages };
  },
  anthropic: async (work) => (await import("./services.ts")).anthropic(work, ask),
  openai: async (work) => (await import("./services.ts")).openai(work, ask),
  stallGuard: (work, ms) => run(work, start, ms),
};
export default aiSdkAgent;
