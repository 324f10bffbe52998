import { Agent, agentLoop, type AgentMessage } from "@mariozechner/pi-agent-core";
import {
  createAssistantMessageEventStream,
  parseStreamingJson,
  type TSchema,
  Type,
} from "@mariozechner/pi-ai";
import type { Tool } from "../peer.ts";
import { createPiPeers, type PiPeers } from "../pi/pi.ts";

/** See `../pi/pi.ts` for what was chosen and why. Both ways find pi's own clients by themselves. */
export const { agent, loop }: PiPeers = createPiPeers({
  name: "pi 0.73",
  imports: ["@mariozechner/pi-agent-core"],
  createEvents: createAssistantMessageEventStream,
  parseJson: parseStreamingJson,
  buildSchema,
  createAgent: (initialState, ask, hook) =>
    new Agent({
      initialState,
      convertToLlm: (messages) => messages,
      getApiKey: () => "key",
      ...(ask ? { streamFn: ask } : {}),
      ...(hook ? { transformContext: afterHook(hook) } : {}),
    }),
  loop: (prompt, context, config, signal, ask) =>
    agentLoop(
      [prompt],
      { systemPrompt: "", ...context },
      { ...config, convertToLlm: (messages) => messages },
      signal,
      ask,
    ),
});
export default agent;

function afterHook(hook: () => void) {
  return async (messages: AgentMessage[]): Promise<AgentMessage[]> => {
    hook();
    return messages;
  };
}

function buildSchema(tool: Tool): TSchema {
  const types = { string: Type.String(), number: Type.Number() };
  return Type.Object(
    Object.fromEntries(Object.entries(tool.parameters).map(([name, type]) => [name, types[type]])),
  );
}
