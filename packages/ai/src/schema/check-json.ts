import { compileJsonSchema } from "./json-schema.ts";
import { createRareChecks } from "./rare-keywords.ts";
import type { Documents } from "./schema-index.ts";
import type { JsonSchema } from "./schema.ts";

/** What is wrong with a value: `path` is a JSON pointer to the part of it. */
export interface JsonProblem {
  readonly path: string;
  readonly message: string;
}

/**
 * Whether a value fits a JSON Schema (draft 2020-12, and 7 where it says so), without any coercion.
 * `documents` are other schemas by their address, which references of this one may lead to; nothing is
 * fetched. `unchecked` is a reference that leads to a document that is not there: then nothing is
 * known about the value. Throws for a schema that is broken.
 */
export function checkJson(
  schema: JsonSchema | boolean,
  value: unknown,
  documents?: Documents,
): { readonly problems: readonly JsonProblem[]; readonly unchecked?: string } {
  const root = typeof schema === "boolean" ? { allOf: [schema] } : schema;
  const validator = compileJsonSchema(root, {
    createRareChecks,
    ...(documents && { documents }),
  });
  const { remoteRef } = validator;
  if (remoteRef !== undefined) return { problems: [], unchecked: remoteRef };
  const problems = validator.problems(value).map(({ path, kind, text }) => ({
    path,
    message: kind === "stated" ? text : `expected ${text}`,
  }));
  return { problems };
}
