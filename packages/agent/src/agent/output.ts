import { type AnySchema, type InferArguments, textOf, validateToolArguments } from "@gyre/ai";
import { userMessage } from "../transcript/input.ts";
import type { AgentEndEvent, AgentMessage, AgentTool } from "../contract/types.ts";

/** How often the model is asked again for an answer that fits. */
export const MAX_OUTPUT_REPAIRS = 3;
/** The tool with which a model gives its answer in a run with an `output` schema. */
export const ANSWER_TOOL = "final_answer";

/** The run ended without an answer that fits the schema. */
export class OutputError extends Error {
  readonly code = "output";
  readonly end: AgentEndEvent;
  constructor(end: AgentEndEvent, why: string) {
    super(`The run ended (${end.stop}) without an answer that fits the schema. ${why}`.trim());
    this.name = "OutputError";
    this.end = end;
  }
}

/**
 * A typed answer: a tool whose arguments are the answer, so that validation and repair are those
 * of every tool call. JSON text is accepted as well; a model that gives neither is reminded.
 */
export class TypedOutput<S extends AnySchema> {
  readonly tool: AgentTool;
  readonly #schema: S;
  #answer: { value: InferArguments<S> } | undefined;
  #repairs = 0;
  #problem = "";

  constructor(schema: S) {
    this.#schema = schema;
    this.tool = {
      name: ANSWER_TOOL,
      description:
        "Gives your final answer. Call it once, when you are done, with the answer as its arguments; do not answer in any other way.",
      parameters: schema,
      execute: (args) => {
        this.#answer = { value: args as InferArguments<S> };
        return { content: [{ type: "text", text: "Answer taken." }], terminate: true };
      },
    };
  }

  /** The reminder for a model that would stop; nothing once there is an answer. */
  async remind(text: string, timestamp: number): Promise<AgentMessage | undefined> {
    if (this.#answer || (await this.#readText(text)) || this.#repairs >= MAX_OUTPUT_REPAIRS) {
      return undefined;
    }
    this.#repairs++;
    return userMessage(
      `Your answer was not given in the form that was asked for. ${this.#problem} Call the tool "${ANSWER_TOOL}" with the answer.`,
      timestamp,
    );
  }

  /** Reads the answer of a run that has ended. What it gives throws where there is none. */
  async take(end: AgentEndEvent): Promise<() => InferArguments<S>> {
    const { finalMessage } = end;
    // A run that ends at a limit sends no reminder, and its text is not read yet.
    if (!this.#answer && finalMessage?.stopReason === "stop") {
      await this.#readText(textOf(finalMessage));
    }
    return () => {
      if (this.#answer) return this.#answer.value;
      throw new OutputError(end, end.finalMessage?.errorMessage ?? this.#problem);
    };
  }

  async #readText(text: string): Promise<boolean> {
    let given: unknown;
    try {
      given = JSON.parse(text);
    } catch {
      this.#problem = "It was neither a call nor JSON.";
      return false;
    }
    const checked = await validateToolArguments(
      { name: ANSWER_TOOL, parameters: this.#schema },
      given,
    );
    if (checked.ok) this.#answer = { value: checked.value };
    else this.#problem = checked.error;
    return checked.ok;
  }
}
