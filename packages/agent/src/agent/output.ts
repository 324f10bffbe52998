import {
  type AnySchema,
  type AssistantMessage,
  errorMessage,
  type InferArguments,
  isRecord,
  type JsonSchema,
  type OutputFormat,
  PartialJsonParser,
  textOf,
  toJsonSchema,
  validateToolArguments,
} from "@gyre/ai";
import { userMessage } from "../transcript/input.ts";
import type { AgentEndEvent, AgentEvent, AgentMessage, AgentTool } from "../contract/types.ts";

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
 * A typed answer. Services with structured output are asked for it (`format`): it is the text of the
 * last response. Others get a tool whose arguments are the answer, so that validation and repair are
 * those of every tool call. Either is accepted from any model; one that gives neither is reminded.
 */
export class TypedOutput<S extends AnySchema> {
  readonly tool: AgentTool;
  /** For services that make text fit a schema. */
  readonly format: OutputFormat;
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
    this.format = { schema: this.#wrapper ?? json, tool: ANSWER_TOOL };
    this.tool = {
      name: ANSWER_TOOL,
      description:
        "Gives your final answer. Call it once, when you are done, with the answer as its arguments; do not answer in any other way.",
      parameters: this.#wrapper ?? schema,
      execute: async (args) => {
        await this.#accept(args);
        return { content: [{ type: "text", text: "Answer taken." }], terminate: true };
      },
    };
  }

  /** The reminder for a model that would stop; nothing once there is an answer. */
  async remind(
    last: AssistantMessage | undefined,
    timestamp: number,
  ): Promise<AgentMessage | undefined> {
    if (this.#answer || (await this.#read(last))) return undefined;
    // A model that refuses does so again.
    if (this.#repairs >= MAX_OUTPUT_REPAIRS || isRefusal(last)) return undefined;
    this.#repairs++;
    return userMessage(
      `Your answer was not given in the form that was asked for. ${this.#problem} Call the tool "${ANSWER_TOOL}" with the answer; if you have no such tool, answer with its JSON alone.`,
      timestamp,
    );
  }

  /** Reads the answer of a run that has ended. What it gives throws where there is none. */
  async take(end: AgentEndEvent): Promise<() => InferArguments<S>> {
    const { finalMessage } = end;
    // A run that ends at a limit sends no reminder, and its text is not read yet.
    if (!this.#answer) await this.#read(finalMessage);
    return () => {
      if (this.#answer) return this.#answer.value;
      throw new OutputError(end, end.finalMessage?.errorMessage ?? this.#problem);
    };
  }

  /** The answer of a message, as a call or as text. Throws where it has none that fits. */
  async readFrom(message: AssistantMessage): Promise<InferArguments<S>> {
    const call = message.content.find(
      (block) => block.type === "toolCall" && block.name === ANSWER_TOOL,
    );
    if (call?.type === "toolCall") {
      const checked = await validateToolArguments(this.tool, call.arguments);
      if (!checked.ok) throw new Error(checked.error);
      await this.#accept(checked.value);
    } else await this.#read(message);
    if (this.#answer) return this.#answer.value;
    throw new Error(this.#problem);
  }

  /** Arguments that fit. */
  async #accept(args: unknown): Promise<void> {
    if (this.#wrapper) await this.#unwrap(args);
    else this.#answer = { value: args as InferArguments<S> };
  }

  /** Reads the text of a response that is whole. */
  async #read(message: AssistantMessage | undefined): Promise<boolean> {
    if (message?.stopReason === "length") {
      this.#problem = "It was cut off at the limit of its length (maxTokens).";
      return false;
    }
    if (message?.stopReason !== "stop") return false;
    const text = textOf(message);
    const found = isRefusal(message) ? undefined : findJson(text);
    if (!found) {
      this.#problem = isRefusal(message)
        ? `The model refused: ${text}`
        : "It was neither a call nor JSON.";
      return false;
    }
    const given = found.value;
    const parameters = this.#wrapper ?? this.#schema;
    // A service that was given the wrapper answers with it.
    const isWrapped = isRecord(given) && Object.keys(given).join() === WRAPPED;
    const checked = await validateToolArguments(
      { name: ANSWER_TOOL, parameters },
      this.#wrapper && !isWrapped ? { [WRAPPED]: given } : given,
    );
    try {
      if (!checked.ok) throw new Error(checked.error);
      await this.#accept(checked.value);
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
 * The answer that the last message of a run with an `output` schema has, for programs that find the
 * run in a store. Throws where it has none that fits.
 */
export function readAnswer<const S extends AnySchema>(
  schema: S,
  message: AssistantMessage,
): Promise<InferArguments<S>> {
  return new TypedOutput(schema).readFrom(message);
}

/** The answer of a run as far as it has come, from the arguments of its call or from JSON text. */
export async function* readPartialOutputs(
  events: AsyncIterable<AgentEvent>,
  schema: AnySchema | undefined,
): AsyncGenerator<unknown, void, void> {
  if (schema === undefined) return;
  const isBare = canBeArguments(toJsonSchema(schema));
  let texts = new Map<number, PartialJsonParser>();
  for await (const event of events) {
    if (event.type === "message_start") texts = new Map();
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update } = event;
    let value: unknown;
    if (update.type === "toolcall_delta") {
      const call = update.partial.content[update.contentIndex];
      if (call?.type === "toolCall" && call.name === ANSWER_TOOL) value = call.arguments;
    } else if (update.type === "text_delta") {
      const parser = texts.get(update.contentIndex) ?? new PartialJsonParser();
      texts.set(update.contentIndex, parser);
      parser.feed(update.delta);
      ({ value } = parser);
    }
    const answer = !isBare && isRecord(value) && WRAPPED in value ? value[WRAPPED] : value;
    const isWrapper = !isBare && isRecord(value) && !(WRAPPED in value);
    if (answer !== undefined && !isWrapper) yield answer;
  }
}

/** Whether the service reports that the model refused to answer. */
function isRefusal(message: AssistantMessage | undefined): boolean {
  return message?.report?.details?.["refusal"] !== undefined;
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
