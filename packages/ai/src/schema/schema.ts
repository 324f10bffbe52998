import { errorMessage } from "../common/errors.ts";
import type {
  StandardJSONSchemaV1,
  StandardSchemaV1,
  StandardTypedV1,
} from "@standard-schema/spec";
import type { InferJson } from "./infer.ts";

/** A JSON Schema as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What typebox's `Type.*` makes: JSON Schema at run time, with its type behind it. */
export interface TypeboxSchema {
  readonly "~kind": string;
}

/** A schema of another library (zod, arktype, valibot) that has a JSON Schema. */
export type StandardSchema = StandardSchemaV1 & StandardJSONSchemaV1;

/** What a tool may say its parameters with. */
export type AnySchema = JsonSchema | TypeboxSchema | StandardSchema;

/**
 * The type of arguments that a schema lets through: a Standard Schema's output, or what a
 * schema of typebox and a JSON Schema written `as const` describe. A
 * schema of which nothing more is known gives `Record<string, unknown>`.
 */
export type InferArguments<S extends AnySchema> = [JsonSchema] extends [S]
  ? Record<string, unknown>
  : S extends StandardTypedV1
    ? StandardTypedV1.InferOutput<S>
    : InferJson<S>;

const JSON_SCHEMA_TARGET = "draft-2020-12";

const converted = new WeakMap<StandardSchema, JsonSchema>();

/**
 * The JSON Schema of any schema, ready for `JSON.stringify`. Plain JSON Schema
 * and typebox come back as they are; a Standard Schema is asked once for the
 * schema of its input. Throws if a library has none: that is a mistake in
 * the program, best seen when the tool is defined.
 */
export function toJsonSchema(schema: AnySchema): JsonSchema {
  if (!isStandardSchema(schema)) {
    // zod before it knew Standard Schema: an object that looks like data.
    if ("_def" in schema) throw new TypeError(describeMissing("zod"));
    return schema as JsonSchema;
  }
  const known = converted.get(schema);
  if (known !== undefined) return known;
  const { vendor, jsonSchema } = schema["~standard"];
  // The type says that it is there; a library that is older than the type does not know that.
  if (typeof jsonSchema?.input !== "function") {
    throw new TypeError(describeMissing(vendor));
  }
  let result: JsonSchema;
  try {
    result = jsonSchema.input({ target: JSON_SCHEMA_TARGET });
  } catch (cause) {
    throw new TypeError(
      `The ${vendor} schema has no JSON Schema: ${errorMessage(cause)}. ` +
        "Use types that JSON can hold for the input of a tool.",
      { cause },
    );
  }
  converted.set(schema, result);
  return result;
}

/** What to write where a library has no JSON Schema, for the libraries that have a way to it. */
const WAYS: Readonly<Record<string, string>> = {
  valibot: "Give toStandardJsonSchema(schema) of @valibot/to-json-schema",
  zod: "Update zod: zod has it from version 4.2 on",
};

function describeMissing(vendor: string): string {
  const way = WAYS[vendor] ?? `Use a version of ${vendor} that can`;
  return `The ${vendor} schema has no JSON Schema (no "~standard".jsonSchema). ${way}, or give the tool a plain JSON Schema.`;
}

/** Whether a schema is of a library that validates by itself. */
export function isStandardSchema(schema: AnySchema): schema is StandardSchema {
  if (!("~standard" in schema)) return false;
  const standard = schema["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard;
}
