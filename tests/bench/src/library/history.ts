import type { AgentMessage } from "@gyre/agent";

/** A question, a call, what it gave, and the answer. */
export function makeMessages(nth: number, text: string): AgentMessage[] {
  const id = `toolu_${nth}`;
  const timestamp = nth;
  const by = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-5-5" };
  const assistant = { role: "assistant", ...by, usage: {}, timestamp } as const;
  return [
    { role: "user", content: `Look at part ${nth}.`, timestamp },
    {
      ...assistant,
      content: [{ type: "toolCall", id, name: "read", arguments: { path: "a.txt" } }],
      stopReason: "toolUse",
    },
    {
      role: "toolResult",
      toolCallId: id,
      toolName: "read",
      content: [{ type: "text", text }],
      isError: false,
      timestamp,
    },
    { ...assistant, content: [{ type: "text", text: "Seen." }], stopReason: "stop" },
  ];
}
