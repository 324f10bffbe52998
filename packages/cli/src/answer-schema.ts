import { readFileSync } from "node:fs";
import type { JsonSchema } from "@gyre/ai";
import { EXIT, ExitError } from "./exit-codes.ts";

/** A schema that a service takes for the arguments of a call, and the way back to what was asked for. */
export interface AnswerSchema {
  schema: JsonSchema;
  unwrap(answer: unknown): unknown;
}

const WRAPPED = "answer";

/**
 * Reads a JSON Schema for an answer. Services want an object: any other kind of answer
 * travels as a property of one. Throws what to tell the user.
 */
export function readAnswerSchema(path: string): AnswerSchema {
  let schema: unknown;
  try {
    schema = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ExitError(EXIT.usage, `--schema ${path} cannot be read: ${why}`, { cause: error });
  }
  if (!isObject(schema)) {
    throw new ExitError(EXIT.usage, `--schema ${path} is no JSON Schema: it is not an object.`);
  }
  if (schema["type"] === "object") return { schema, unwrap: (answer) => answer };
  const { $defs, definitions, $schema, ...inner } = schema;
  return {
    schema: {
      ...($schema !== undefined && { $schema }),
      type: "object",
      properties: { [WRAPPED]: inner },
      required: [WRAPPED],
      additionalProperties: false,
      // References begin at the root: what they lead to has to stay there.
      ...($defs !== undefined && { $defs }),
      ...(definitions !== undefined && { definitions }),
    },
    unwrap: (answer) => (isObject(answer) ? answer[WRAPPED] : answer),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
