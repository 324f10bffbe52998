import type { AgentMessage } from "@gyre/agent";
import { isLlmMessage } from "@gyre/agent";
import type { Message, UserMessage } from "@gyre/ai";
import { toNoticeMessage } from "./notice.ts";

/** A command that the user ran with `!`. It is sent with the prompt that follows it. */
export interface UserCommandMessage {
  role: "userCommand";
  command: string;
  /** What it printed; of a long output, the end. */
  output: string;
  /** Null: a signal ended it. */
  exitCode: number | null;
  /** Run with `!!`: the model does not see it. */
  aside: boolean;
  durationMs: number;
  timestamp: number;
}

declare module "@gyre/agent" {
  interface CustomAgentMessages {
    userCommand: UserCommandMessage;
  }
}

/** `exit code 1`, `ended by a signal`. */
export function exitText({ exitCode }: Pick<UserCommandMessage, "exitCode">): string {
  return exitCode === null ? "ended by a signal" : `exit code ${exitCode}`;
}

/** What a model gets of a message: a command that the user ran becomes a message of the user. */
export function toLlmMessage(message: AgentMessage): Message | undefined {
  if (isLlmMessage(message)) return message;
  if (message.role === "notice") return toNoticeMessage(message);
  return message.role === "userCommand" && !message.aside ? toUserMessage(message) : undefined;
}

/** The messages that a model gets. */
export function toLlmMessages(messages: readonly AgentMessage[]): Message[] {
  return messages.flatMap((message) => toLlmMessage(message) ?? []);
}

function toUserMessage(ran: UserCommandMessage): UserMessage {
  const { command, output, timestamp } = ran;
  const printed = output === "" ? "It printed nothing." : `Output:\n${output}`;
  return {
    role: "user",
    content: `I ran this command myself: ${command}\n(${exitText(ran)})\n${printed}`,
    timestamp,
  };
}
