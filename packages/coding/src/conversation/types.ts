import type { Agent, AgentEndEvent } from "@gyre/agent";
import type { AnySchema, ImageContent, Usage, UserContent } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { Toolset } from "@gyre/tools";
import type { UserCommandMessage } from "./user-command.ts";

export interface PromptRequest {
  text: string;
  images?: readonly ImageContent[];
  /** Commands that the user ran before it: messages of their own, before the prompt. */
  userCommands?: readonly UserCommandMessage[];
  /** Further content after the text: files, say, with their `source`. */
  attachments?: readonly UserContent[];
  /** The answer has to fit this. */
  output?: AnySchema;
  /** Cancels the prompt before the agent has started with it; from then on `abort()` does that. */
  signal?: AbortSignal;
}

/** How a prompt ended. */
export interface Outcome {
  end: AgentEndEvent;
  /** Of all runs that the prompt took. */
  turns: number;
  usage: Usage;
  /** The same by what it was for. */
  spending?: Readonly<Record<string, Usage>>;
  /** The typed answer, where one was asked for and came. */
  output?: unknown;
  /** Why there is none. */
  outputError?: string;
  /** Why the session could not be written to, which ended the run. */
  sessionError?: string;
}

/** What a conversation needs of the agent, its folder and its session. */
export interface ConversationAgent {
  readonly agent: Agent;
  readonly toolset: Toolset;
  /** What is written to; undefined before the first prompt where that makes it. */
  readonly session: Session | undefined;
  /** Whether the conversation stops in the middle: a question or a result without an answer. */
  readonly isCutOff: boolean;
  /** Runs on a prompt to its end. Rejects where a hook does not let it through. */
  prompt(request: PromptRequest): Promise<Outcome>;
  /** Continues a conversation that is cut off, to its end. */
  resume(output?: AnySchema): Promise<Outcome>;
  /** Settles when the changes of the queues so far are saved. Rejects where that failed. */
  saved(): Promise<void>;
  close(): Promise<void>;
}
