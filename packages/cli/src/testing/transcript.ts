import type { AgentMessage } from "@gyre/agent";
import { openSession } from "@gyre/sessions";

/** What a session file holds at its end, the facts of its start aside, a line a message, and what is wrong with the file. */
export interface Transcript {
  lines: string[];
  messages: AgentMessage[];
  problems: string[];
}

export async function readTranscript(file: string): Promise<Transcript> {
  const session = await openSession(file, { readOnly: true });
  try {
    const { messages: all } = await session.context();
    const messages = all.filter((message) => message.role !== "notice" || !message.isFacts);
    const problems = session.problems.map(({ line, message }) => `line ${line}: ${message}`);
    return { lines: messages.map(formatMessage), messages, problems };
  } finally {
    await session.close();
  }
}

/** One line: who, and what in short. */
function formatMessage(message: AgentMessage): string {
  switch (message.role) {
    case "user": {
      const { content } = message;
      return `user: ${typeof content === "string" ? content : texts(content)}`;
    }
    case "assistant": {
      const calls = message.content.flatMap((part) =>
        part.type === "toolCall" ? [`[${part.name}]`] : [],
      );
      const text = [texts(message.content), ...calls].filter(Boolean).join(" ");
      const fine = message.stopReason === "stop" || message.stopReason === "toolUse";
      return `assistant${fine ? "" : ` (${message.stopReason})`}: ${text}`;
    }
    case "toolResult":
      return `${message.toolName} ${message.isError ? "failed" : "gave"}: ${texts(message.content)}`;
    default:
      return "something else";
  }
}

function texts(content: readonly { type: string }[]): string {
  return content
    .map((part) => ("text" in part && typeof part.text === "string" ? part.text : ""))
    .filter(Boolean)
    .join(" ");
}
