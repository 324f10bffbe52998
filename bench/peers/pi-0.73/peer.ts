import { Agent, agentLoop } from "@mariozechner/pi-agent-core";
import {
  createAssistantMessageEventStream,
  parseStreamingJson,
  type TSchema,
  Type,
} from "@mariozechner/pi-ai";
import type { Peer, Tool } from "../peer.ts";
import { createPiPeer } from "../pi.ts";

/** See `../pi.ts` for what was chosen and why. The loop finds pi's own clients by itself. */
const pi: Peer = createPiPeer({
  name: "pi 0.73",
  imports: ["@mariozechner/pi-agent-core"],
  createEvents: createAssistantMessageEventStream,
  parseJson: parseStreamingJson,
  schemaOf,
  loop: (prompt, context, config, signal, ask) =>
    agentLoop(
      [prompt],
      { systemPrompt: "", ...context },
      { ...config, convertToLlm: (messages) => messages },
      signal,
      ask,
    ),
  createAgent(initialState, streamFn, hook) {
    const agent = new Agent({ initialState, streamFn });
    if (hook) {
      agent.transformContext = async (messages) => {
        hook();
        return messages;
      };
    }
    return agent;
  },
});
export default pi;

function schemaOf(tool: Tool): TSchema {
  const types = { string: Type.String(), number: Type.Number() };
  return Type.Object(
    Object.fromEntries(Object.entries(tool.parameters).map(([name, type]) => [name, types[type]])),
  );
}
