import type { Clock } from "@gyre/ai";
import { type AskQuestion, checkAnswer, type McpAnswer, type McpQuestion } from "@gyre/mcp";
import { OpenQuestions } from "./open-questions.ts";

/** How long a client has for an answer. Then the server is answered that the question was canceled. */
export const ANSWER_MS = 600_000;

/** Questions of MCP servers in a session, which any of its clients may answer. */
export class ServerQuestions extends OpenQuestions<McpQuestion, McpAnswer> {
  constructor(clock: Clock) {
    super(clock, {
      unfollowed: { action: "decline" },
      canceled: { action: "cancel" },
      withinMs: ANSWER_MS,
    });
  }

  /** Waits for a client. Where none follows the session, it is declined. */
  readonly ask: AskQuestion = (question, signal) => this.put(question, signal);

  /** Throws where there is no such question, or the answer does not fit it. */
  answer(id: unknown, given: McpAnswer): void {
    this.settle(id, (question) => checkAnswer(question, given));
  }
}
