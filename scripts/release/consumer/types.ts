// Compiled against the packed declarations, as a user's own code would be.
import {
  Agent,
  agentLoop,
  defineTool,
  type AgentEvent,
  type AgentMessage,
  type AgentTool,
  userMessage,
} from "@gyre/agent";
import { type AssistantMessage, type Model } from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";

const read = defineTool({
  name: "read",
  description: "Reads a file",
  parameters: {
    type: "object",
    properties: { path: { type: "string" }, lines: { type: "number" } },
    required: ["path"],
  },
  execute: (args) => {
    const path: string = args.path;
    const lines: number | undefined = args.lines;
    return `${path} ${lines ?? "all"}`;
  },
});

export async function lastMessage(model: Model): Promise<AssistantMessage | undefined> {
  const { stream } = scriptedModel(["Hello"]);
  const tools: AgentTool[] = [read];
  const events = agentLoop(
    [userMessage("Hi", Date.now())],
    { messages: [], tools },
    { model },
    undefined,
    stream,
  );
  for await (const event of events) if (event.type === "agent_end") return event.finalMessage;
  return undefined;
}

export function formatEvent(event: AgentEvent): string {
  if (event.type !== "message_update") return "";
  const { assistantMessageEvent } = event;
  return assistantMessageEvent.type === "text_delta" ? assistantMessageEvent.delta : "";
}

export const agent: Agent = new Agent({ instructions: "Be brief." });
export const messages: readonly AgentMessage[] = agent.state.messages;
