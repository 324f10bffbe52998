import { Agent, agentLoop } from "@earendil-works/pi-agent-core";
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
import type { Peer, Tool } from "../peer.ts";
import { createPiPeer } from "../pi.ts";

/** See `../pi.ts` for what was chosen and why. Clients are behind `Models`, as documented. */
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

const pi: Peer = createPiPeer({
  name: "pi 0.87",
  imports: ["@earendil-works/pi-agent-core"],
  createEvents: createAssistantMessageEventStream,
  parseJson: parseStreamingJson,
  schemaOf,
  loop: (prompt, context, config, signal, ask) =>
    agentLoop(
      [prompt],
      context,
      // There are no messages of an app's own here, and a filter would cost each turn.
      { ...config, convertToLlm: (messages) => messages as Message[] },
      signal,
      ask ?? models.streamSimple.bind(models),
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
