import { readFileSync } from "node:fs";
import { errorMessage, isRecord, type JsonSchema } from "@gyre/ai";
import { EXIT, ExitError } from "../../core/exit-codes.ts";

/** A schema that a service takes for the arguments of a call, and the way back to what was asked for. */
export interface AnswerSchema {
  schema: JsonSchema;
  unwrap(answer: unknown): unknown;
}

const WRAPPED = "answer";

/**
 * Reads a JSON Schema for an answer. Services want an object: any other kind of answer
 * travels as a property of one. Throws an error with a message for the user.
 */
export function readAnswerSchema(path: string): AnswerSchema {
  let schema: unknown;
  try {
    schema = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = errorMessage(error);
    throw new ExitError(EXIT.usage, `--schema ${path} cannot be read: ${why}`, { cause: error });
  }
  if (!isRecord(schema)) {
    throw new ExitError(EXIT.usage, `--schema ${path} is no JSON Schema: it is not an object.`);
  }
  const wrong = wrongType(schema);
  if (wrong !== undefined) {
    throw new ExitError(
      EXIT.usage,
      `--schema ${path} has a type that JSON Schema has not: ${wrong}.`,
    );
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
    unwrap: (answer) => (isRecord(answer) ? answer[WRAPPED] : answer),
  };
}

const TYPES: ReadonlySet<unknown> = new Set([
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
]);
/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const INNER =
  /^(items|prefixItems|properties|patternProperties|additionalProperties|\$defs|definitions|allOf|anyOf|oneOf|not|if|then|else|contains)$/;
const MAX_DEPTH = 64;

/** The first unknown `type`: anything would fit it. */
function wrongType(schema: unknown, depth = 0): string | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (Array.isArray(schema)) return findFirst(schema, (each) => wrongType(each, depth + 1));
  if (!isRecord(schema)) return undefined;
  const { type } = schema;
  if (typeof type === "string" || Array.isArray(type)) {
    const wrong = [type].flat().find((each) => !TYPES.has(each));
    if (wrong !== undefined) return JSON.stringify(wrong);
  }
  return findFirst(Object.entries(schema), ([keyword, inner]) => {
    if (!INNER.test(keyword)) return undefined;
    const byName = /^(properties|patternProperties|\$defs|definitions)$/.test(keyword);
    return wrongType(byName && isRecord(inner) ? Object.values(inner) : inner, depth + 1);
  });
}

function findFirst<T>(all: readonly T[], find: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const found = find(one);
    if (found !== undefined) return found;
  }
  return undefined;
}
