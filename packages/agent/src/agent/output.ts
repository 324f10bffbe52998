import {
  type AnySchema,
  errorMessage,
  type InferArguments,
  isRecord,
  type JsonSchema,
  textOf,
  toJsonSchema,
  validateToolArguments,
} from "@gyre/ai";
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
  /** What the arguments are, where the answer itself cannot be. */
  readonly #wrapper: JsonSchema | undefined;
  #answer: { value: InferArguments<S> } | undefined;
  #repairs = 0;
  #problem = "";

  constructor(schema: S) {
    this.#schema = schema;
    const json = toJsonSchema(schema);
    this.#wrapper = canBeArguments(json) ? undefined : wrap(json);
    this.tool = {
      name: ANSWER_TOOL,
      description:
        "Gives your final answer. Call it once, when you are done, with the answer as its arguments; do not answer in any other way.",
      parameters: this.#wrapper ?? schema,
      execute: async (args) => {
        if (this.#wrapper) await this.#unwrap(args);
        else this.#answer = { value: args as InferArguments<S> };
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
    const found = findJson(text);
    if (!found) {
      this.#problem = "It was neither a call nor JSON.";
      return false;
    }
    const given = found.value;
    const checked = await validateToolArguments(
      { name: ANSWER_TOOL, parameters: this.#wrapper ?? this.#schema },
      this.#wrapper ? { [WRAPPED]: given } : given,
    );
    try {
      if (!checked.ok) throw new Error(checked.error);
      if (this.#wrapper) await this.#unwrap(checked.value);
      else this.#answer = { value: checked.value as InferArguments<S> };
    } catch (error) {
      this.#problem = errorMessage(error);
    }
    return this.#answer !== undefined;
  }

  /** Arguments that fit the wrapper. The library of the schema may ask for more, and transform. */
  async #unwrap(args: unknown): Promise<void> {
    let value = isRecord(args) ? args[WRAPPED] : undefined;
    if ("~standard" in this.#schema && value !== null) {
      const checked = await validateToolArguments(
        { name: ANSWER_TOOL, parameters: this.#schema },
        value,
      );
      if (!checked.ok) throw new Error(checked.error);
      ({ value } = checked);
    }
    this.#answer = { value: value as InferArguments<S> };
  }
}

/**
 * The JSON of an answer: all of it, its one fenced block, or what follows a sentence up to the
 * end. Where several values could be meant, there is none.
 */
function findJson(text: string): { value: unknown } | undefined {
  const [, block, , another] = text.split("```");
  const candidates = [text];
  if (block === undefined) {
    for (const start of [text.indexOf("{"), text.indexOf("[")]) {
      if (start > 0) candidates.push(text.slice(start));
    }
  } else if (another === undefined) {
    candidates.push(block.replace(/^\w+/, ""), block);
  }
  for (const candidate of candidates) {
    try {
      return { value: JSON.parse(candidate) };
    } catch {
      // The next one may be it.
    }
  }
  return undefined;
}

/** Where the answer is in the arguments, if it is not an object itself. */
const WRAPPED = "answer";

/** Whether the arguments of a call, which are an object, can be the answer. */
function canBeArguments({ type, ...schema }: JsonSchema): boolean {
  if (type !== undefined) return type === "object";
  if ("enum" in schema || "const" in schema) return false;
  const choices = [schema["anyOf"], schema["oneOf"]].filter(Array.isArray).flat();
  return choices.every((choice) => !isRecord(choice) || canBeArguments(choice));
}

/** An object with the answer in it; references of the schema lead to where it is now. */
function wrap({ $schema: _dialect, ...schema }: JsonSchema): JsonSchema {
  const moved: unknown = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "$ref" && typeof value === "string"
      ? value.replace(/^#/, `#/properties/${WRAPPED}`)
      : value,
  );
  return { type: "object", properties: { [WRAPPED]: moved }, required: [WRAPPED] };
}
