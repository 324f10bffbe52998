import { streamText } from "ai";
import type { Peer } from "../peer.ts";
import { run, type Start } from "./converse.ts";
import type { Ask } from "./services.ts";

const start: Start = ({ settings, options, listener }) =>
  streamText({
    ...settings,
    ...options,
    ...(listener ? { onChunk: ({ chunk }) => listener(chunk.type) } : {}),
  });

const ask: Ask = (model, signal) =>
  streamText({
    model,
    prompt: "go",
    maxRetries: 0,
    onError: () => {},
    ...(signal ? { abortSignal: signal } : {}),
  });

/** The AI SDK's function; what is chosen for both of its peers is in `./converse.ts`. */
const aiSdk: Peer = {
  name: "AI SDK streamText",
  imports: ["ai"],
  run: (work) => run(work, start),
  anthropic: async (work) => (await import("./services.ts")).anthropic(work, ask),
  openai: async (work) => (await import("./services.ts")).openai(work, ask),
  stallGuard: (work, ms) => run(work, start, ms),
};
export default aiSdk;
