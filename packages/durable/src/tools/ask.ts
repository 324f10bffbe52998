import { type AgentTool, defineTool, Suspend } from "@gyre/agent";

export interface AskToolOptions {
  /** Default "ask". */
  name?: string;
  /** For the model: whom it asks, and what for. */
  description?: string;
}

/**
 * A tool that asks a person, or another program, and waits for the answer without a process. The
 * question is in `pending` of `Run.info()`; `Run.decide` answers it with
 * `{ type: "result", result: { content: [{ type: "text", text }] } }`.
 */
export function askTool({
  name = "ask",
  description = "Asks the user a question and waits for the answer.",
}: AskToolOptions = {}): AgentTool {
  return defineTool({
    name,
    description,
    parameters: {
      type: "object",
      properties: {
        question: { type: "string" },
        choices: { type: "array", items: { type: "string" } },
      },
      required: ["question"],
    },
    idempotent: true,
    execute({ question, choices }) {
      throw new Suspend(question, { access: { question, ...(choices && { choices }) } });
    },
  });
}
