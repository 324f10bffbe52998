import type { AgentEvent } from "@gyre/agent";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import type { McpAnswer, McpQuestion } from "@gyre/mcp";
import type { PlanAnswer } from "./plan.ts";
import type { CommandPart } from "./command.ts";
import type { Outcome } from "./types.ts";
import type { UserCommandMessage } from "./user-command.ts";

/** Reads a file by its path relative to the workspace; undefined where that is not possible. */
export type ReadText = (path: string) => string | undefined;

/** Something that has happened in a conversation. */
export type ConversationItem =
  | { type: "event"; event: AgentEvent }
  /** The user runs a command of their own, one at a time. */
  | { type: "user_command_start"; command: string; aside: boolean }
  /** The end of what it has printed so far. */
  | { type: "user_command_output"; output: string }
  | { type: "user_command_end"; message: UserCommandMessage }
  /** What a command shows. */
  | { type: "parts"; parts: readonly CommandPart[] }
  | { type: "note"; text: string }
  | { type: "warning"; text: string }
  | { type: "error"; text: string }
  /** What was typed cannot be accepted now, and nothing was done. */
  | { type: "rejected"; text: string; reason: string }
  /** A prompt is sent. Not `isTyped`: a command wrote it. */
  | { type: "prompt"; text: string; isTyped: boolean }
  /** A command that was typed has made this prompt, which is sent next. */
  | { type: "expanded"; typed: string; text: string }
  /** A message waits for the agent's next step, or (`followUp`) for the end of its run. */
  | { type: "queued"; text: string; followUp: boolean }
  /** A conversation that was cut off goes on. */
  | { type: "resumed" }
  /** What was done is over. `outcome`: it was a prompt. */
  | { type: "end"; durationMs: number; outcome?: Outcome };

/**
 * What shows a conversation: a terminal, a screen reader. The controller decides what
 * happens; the view shows it and asks the user.
 */
export interface ConversationView {
  /** What stops the agent, for messages: "Esc", "/stop". */
  readonly stopKey: string;
  show(item: ConversationItem): void;
  /**
   * Asks for permission. Undefined: it was dismissed, or the call was stopped meanwhile. `readText` reads what the call
   * would change, in place of the files of `folder`.
   */
  ask(
    request: ApprovalRequest,
    folder: string,
    readText?: ReadText,
  ): Promise<ApprovalAnswer | undefined>;
  /** Asks about a plan; a view without it has none. Undefined: the question was left. */
  reviewPlan?(plan: string, signal: AbortSignal): Promise<PlanAnswer | undefined>;
  /** Has the user answer an MCP server. A view without it declines. */
  answerServer?(question: McpQuestion, signal: AbortSignal): Promise<McpAnswer>;
  /** Puts a text into the editor. */
  edit(text: string): void;
  /** Gives texts back that were not sent, before what is typed. */
  giveBack(texts: readonly string[]): void;
  /** What is being done, or what waits, has changed. */
  update(): void;
  /** What was submitted is dealt with: the next line may come. */
  ready(): void;
}
