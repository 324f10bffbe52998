import { isRecord } from "../common/records.ts";
import { valueAt } from "./schema-index.ts";
import { type AnySchema, type JsonSchema, toJsonSchema } from "./schema.ts";

/** A schema of the form that services take for a tool: an object with its properties. */
export interface ToolObjectSchema extends JsonSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, unknown>>;
}

const COMBINATIONS = ["allOf", "anyOf", "oneOf", "$ref"] as const;
/** Keywords that services refuse at the top, and that say nothing about one property. */
const REFUSED = ["not", "if", "then", "else", "enum", "const", "dependentSchemas"] as const;
/** `$ref`s at the top that lead to one another. */
const MAX_DEPTH = 16;

const adapted = new WeakMap<JsonSchema, ToolObjectSchema>();

/**
 * The schema of a tool as services take it: at its top an object with `properties`, and neither
 * a reference nor a choice. Alternatives are merged: all their properties may be there, those
 * that each of them requires have to be, and the description lists them. The model learns less
 * than the schema says; its arguments are checked against the whole schema.
 */
export function toToolSchema(schema: AnySchema): ToolObjectSchema {
  const json = toJsonSchema(schema);
  if (isToolSchema(json)) return json;
  const known = adapted.get(json);
  if (known) return known;
  const made = flatten(json, json, 0);
  adapted.set(json, made);
  return made;
}

function isToolSchema(schema: JsonSchema): schema is ToolObjectSchema {
  if (schema["type"] !== "object" || !isRecord(schema["properties"])) return false;
  return ![...COMBINATIONS, ...REFUSED].some((keyword) => Object.hasOwn(schema, keyword));
}

function flatten(schema: JsonSchema, root: JsonSchema, depth: number): ToolObjectSchema {
  const rest = Object.fromEntries(
    Object.entries(schema).filter(
      ([keyword]) => ![...COMBINATIONS, ...REFUSED].some((refused) => refused === keyword),
    ),
  );
  const properties = new Map(Object.entries(toRecord(schema["properties"])));
  const required = new Set(toNames(schema["required"]));
  const descriptions = typeof schema["description"] === "string" ? [schema["description"]] : [];
  if (depth < MAX_DEPTH) {
    for (const part of listParts(schema, root)) {
      const flat = flatten(part, root, depth + 1);
      addProperties(properties, flat.properties);
      for (const name of toNames(flat["required"])) required.add(name);
    }
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = toSchemas(schema[keyword]).map((part) => flatten(part, root, depth + 1));
      if (branches.length === 0) continue;
      for (const branch of branches) addProperties(properties, branch.properties);
      const everywhere = branches.map((branch) => toNames(branch["required"]));
      const [first = [], ...others] = everywhere;
      for (const name of first)
        if (others.every((names) => names.includes(name))) required.add(name);
      const choice = describeChoice(everywhere);
      if (choice !== "") descriptions.push(choice);
    }
  }
  return {
    ...rest,
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.size > 0 && { required: [...required] }),
    ...(descriptions.length > 0 && { description: descriptions.join(" ") }),
  };
}

/** What a schema says all of: its `allOf`, and what its `$ref` leads to. */
function listParts(schema: JsonSchema, root: JsonSchema): JsonSchema[] {
  const ref = schema["$ref"];
  const target =
    typeof ref === "string" && ref.startsWith("#") ? valueAt(root, decode(ref)) : undefined;
  return [...(isRecord(target) ? [target] : []), ...toSchemas(schema["allOf"])];
}

function decode(ref: string): string {
  try {
    return decodeURIComponent(ref.slice(1));
  } catch {
    return ref.slice(1);
  }
}

/** A property of several alternatives may have the form of any of them. */
function addProperties(
  properties: Map<string, unknown>,
  added: Readonly<Record<string, unknown>>,
): void {
  for (const [name, schema] of Object.entries(added)) {
    const before = properties.get(name);
    if (before === undefined) properties.set(name, schema);
    else if (JSON.stringify(before) !== JSON.stringify(schema)) {
      const forms = isRecord(before) && Array.isArray(before["anyOf"]) ? before["anyOf"] : [before];
      properties.set(name, { anyOf: [...forms, schema] });
    }
  }
}

/** "Give "a" and "b", or "c"."; nothing where the alternatives require the same. */
function describeChoice(alternatives: readonly (readonly string[])[]): string {
  const texts = alternatives.map((names) => names.map((name) => `"${name}"`).join(" and "));
  if (new Set(texts).size < 2 || texts.includes("")) return "";
  return `Give ${texts.join(", or ")}.`;
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function toSchemas(value: unknown): JsonSchema[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function toNames(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
}
