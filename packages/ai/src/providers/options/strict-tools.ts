import { adaptSchema, type SchemaDialect } from "../../schema/strict-schema.ts";
import type { JsonSchema } from "../../schema/schema.ts";

/** The schema of a tool as a service enforces it. Throws a `TypeError` that names the tool. */
export function toStrictToolSchema(
  name: unknown,
  written: JsonSchema,
  dialect: SchemaDialect,
): JsonSchema {
  const { schema, reason } = adaptSchema(written, dialect);
  if (schema) return schema;
  throw new TypeError(
    `the schema of tool "${String(name)}" cannot be enforced, because ${reason}. Change it, or leave out strictTools.`,
  );
}
