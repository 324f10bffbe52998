import { Agent, agentLoop, type AgentMessage } from "@earendil-works/pi-agent-core";
import {
  createAssistantMessageEventStream,
  createModels,
  createProvider,
  type Message,
  parseStreamingJson,
  type TSchema,
  Type,
} from "@earendil-works/pi-ai";
import { anthropicMessagesApi } from "@earendil-works/pi-ai/api/anthropic-messages.lazy";
import { openAICompletionsApi } from "@earendil-works/pi-ai/api/openai-completions.lazy";
import type { Tool } from "../peer.ts";
import { createPiPeers, type PiPeers } from "../pi/pi.ts";

/** See `../pi/pi.ts` for what was chosen and why. Clients are behind `Models`, as documented. */
const models = createModels();
models.setProvider(
  createProvider({
    id: "bench",
    auth: { apiKey: { name: "Bench", resolve: async () => ({ auth: { apiKey: "key" } }) } },
    models: [],
    api: {
      "anthropic-messages": anthropicMessagesApi(),
      "openai-completions": openAICompletionsApi(),
    },
  }),
);

export const { agent, loop }: PiPeers = createPiPeers({
  name: "pi 0.87",
  imports: ["@earendil-works/pi-agent-core"],
  createEvents: createAssistantMessageEventStream,
  parseJson: parseStreamingJson,
  buildSchema,
  createAgent: (initialState, ask, hook) =>
    new Agent({
      initialState,
      convertToLlm: asTheyAre,
      streamFn: ask ?? models.streamSimple.bind(models),
      ...(hook ? { transformContext: afterHook(hook) } : {}),
    }),
  loop: (prompt, context, config, signal, ask) =>
    agentLoop(
      [prompt],
      context,
      { ...config, convertToLlm: asTheyAre },
      signal,
      ask ?? models.streamSimple.bind(models),
    ),
});
export default agent;

/** There are no messages of an app's own here. */
function asTheyAre(messages: AgentMessage[]): Message[] {
  return messages as Message[];
}

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
