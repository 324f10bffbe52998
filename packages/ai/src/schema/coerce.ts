import { isRecord } from "../common/records.ts";
import {
  has,
  isOfType,
  itemSchemas,
  type JsonSchemaValidator,
  toList,
  toMap,
  getPattern,
  listStrings,
  listTypes,
} from "./json-schema.ts";
import type { JsonSchema } from "./schema.ts";

/** Schemas inside each other that coercion goes into. */
const MAX_DEPTH = 32;
/** Values looked at for one call: nested unions try every branch on every level. */
const MAX_VISITS = 100_000;
/** To fill in one value, compared with the check of a keyword: references are resolved. */
const FILL_WORK = 100;

/**
 * What a model meant, where it wrote the right thing in the wrong type: `"42"` for
 * 42, `"true"` for true, one thing for a list of it, JSON in a string for the
 * value itself, a number for its digits, `null` for a property left out. Nothing
 * is guessed and nothing is lost: what does not convert there and back stays.
 * The value given is never changed; only the path to a change is copied, and the
 * very same value comes back where there is nothing to do. The result need not fit.
 */
export function coerce(validator: JsonSchemaValidator, value: unknown): unknown {
  const pass: Pass = { validator, visits: 0 };
  const { root } = validator;
  // Arguments are always an object, also under a schema that does not say so.
  const start =
    listTypes(root).length > 0 ? value : toType(pass, { type: "object" }, value, 0, true);
  return coerceValue(pass, root, start, 0, true);
}

/** Puts the defaults of a schema where properties are absent, on a copy. */
export function fillDefaults(validator: JsonSchemaValidator, value: unknown): unknown {
  return fill(validator, validator.root, value, 0);
}

interface Pass {
  readonly validator: JsonSchemaValidator;
  visits: number;
}

/** `toStrings`: numbers may become strings here. Off while something better may fit. */
function coerceValue(
  pass: Pass,
  schema: unknown,
  value: unknown,
  depth: number,
  toStrings: boolean,
): unknown {
  if (!isRecord(schema) || depth > MAX_DEPTH || ++pass.visits > MAX_VISITS) return value;
  if (pass.validator.fits(schema, value)) return value;
  let coerced = toType(pass, schema, toAllowed(schema, value), depth, toStrings);
  if (Array.isArray(coerced)) coerced = coerceItems(pass, schema, coerced, depth, toStrings);
  else if (isRecord(coerced)) coerced = coerceProperties(pass, schema, coerced, depth, toStrings);
  const target = pass.validator.target(schema);
  if (target !== undefined) coerced = coerceValue(pass, target, coerced, depth + 1, toStrings);
  for (const part of toList(schema["allOf"]))
    coerced = coerceValue(pass, part, coerced, depth + 1, toStrings);
  for (const union of [toList(schema["anyOf"]), toList(schema["oneOf"])]) {
    coerced = coerceUnion(pass, schema, union, coerced, depth, toStrings);
  }
  return coerced;
}

/** Of `const` and `enum`: the one value that reads the same. */
function toAllowed(schema: JsonSchema, value: unknown): unknown {
  if (!isScalar(value)) return value;
  const allowed = "const" in schema ? [schema["const"]] : toList(schema["enum"]);
  const same = allowed.filter((one) => isScalar(one) && String(one) === String(value));
  return same.length === 1 ? same[0] : value;
}

function toType(
  pass: Pass,
  schema: JsonSchema,
  value: unknown,
  depth: number,
  toStrings: boolean,
): unknown {
  const types = listTypes(schema);
  const isAsked = (one: unknown): boolean => types.some((type) => isOfType(one, type));
  if (types.length === 0 || isAsked(value)) return value;
  if (typeof value === "string") {
    const read = readString(value);
    if (read !== undefined && isAsked(read)) return read;
  }
  if (types.includes("array") && value !== null && value !== undefined) {
    const { prefix, rest } = itemSchemas(schema);
    const wrapped = [coerceValue(pass, prefix[0] ?? rest, value, depth + 1, toStrings)];
    if (pass.validator.fits(schema, wrapped)) return wrapped;
  }
  const isNumberOrBoolean = typeof value === "boolean" || Number.isFinite(value);
  if (toStrings && types.includes("string") && isNumberOrBoolean) return String(value);
  return value;
}

/** The number, boolean, object or array that a string spells; undefined if none, or not exactly. */
function readString(value: string): unknown {
  const text = value.trim();
  if (/^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
  if (/^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text)) return exactNumber(text);
  if (!text.startsWith("{") && !text.startsWith("[")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON, so it stays the string that it is.
    return undefined;
  }
}

/** A double holds every number of 15 digits; a longer one only if it is a safe integer. */
function exactNumber(text: string): number | undefined {
  const number = Number(text);
  if (/^-?\d+$/.test(text)) return Number.isSafeInteger(number) ? number : undefined;
  const digits = text
    .replace(/e.*$/i, "")
    .replace(/[-.]/g, "")
    .replace(/^0+|0+$/g, "");
  const vanished = number === 0 && digits !== "";
  return digits.length <= 15 && Number.isFinite(number) && !vanished ? number : undefined;
}

function coerceItems(
  pass: Pass,
  schema: JsonSchema,
  items: readonly unknown[],
  depth: number,
  toStrings: boolean,
): readonly unknown[] {
  const { prefix, rest } = itemSchemas(schema);
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const coerced = coerceValue(pass, prefix[index] ?? rest, item, depth + 1, toStrings);
    if (coerced === item) continue;
    copy ??= [...items];
    copy[index] = coerced;
  }
  return copy ?? items;
}

function coerceProperties(
  pass: Pass,
  schema: JsonSchema,
  value: JsonSchema,
  depth: number,
  toStrings: boolean,
): JsonSchema {
  const properties = toMap(schema["properties"]);
  const required = listStrings(schema["required"]);
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(value)) {
    const part = propertySchema(schema, key);
    const isOptional = has(properties, key) && !required.includes(key);
    if (value[key] === null && isOptional && !pass.validator.fits(part, null)) {
      copy ??= { ...value };
      delete copy[key];
      continue;
    }
    const coerced = coerceValue(pass, part, value[key], depth + 1, toStrings);
    if (coerced === value[key]) continue;
    copy ??= { ...value };
    put(copy, key, coerced);
  }
  return copy ?? value;
}

function propertySchema(schema: JsonSchema, key: string): unknown {
  const properties = toMap(schema["properties"]);
  if (has(properties, key)) return properties[key];
  for (const [pattern, part] of Object.entries(toMap(schema["patternProperties"]))) {
    if (getPattern(pattern).test(key)) return part;
  }
  return schema["additionalProperties"];
}

function coerceUnion(
  pass: Pass,
  schema: JsonSchema,
  branches: readonly unknown[],
  value: unknown,
  depth: number,
  toStrings: boolean,
): unknown {
  // A string takes any scalar, so it is asked last.
  for (const strings of toStrings ? [false, true] : [false]) {
    for (const branch of branches) {
      const coerced = coerceValue(pass, branch, value, depth + 1, strings);
      if (coerced !== value && pass.validator.fits(schema, coerced)) return coerced;
    }
  }
  return value;
}

function fill(
  validator: JsonSchemaValidator,
  schema: unknown,
  value: unknown,
  depth: number,
): unknown {
  if (!isRecord(schema) || depth > MAX_DEPTH) return value;
  validator.spend(FILL_WORK);
  let filled = value;
  if (Array.isArray(filled)) filled = fillItems(validator, schema, filled, depth);
  else if (isRecord(filled)) filled = fillProperties(validator, schema, filled, depth);
  for (const part of [validator.target(schema), ...toList(schema["allOf"])]) {
    filled = fill(validator, part, filled, depth + 1);
  }
  return filled;
}

function fillItems(
  validator: JsonSchemaValidator,
  schema: JsonSchema,
  items: readonly unknown[],
  depth: number,
): readonly unknown[] {
  const { prefix, rest } = itemSchemas(schema);
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const filled = fill(validator, prefix[index] ?? rest, item, depth + 1);
    if (filled === item) continue;
    copy ??= [...items];
    copy[index] = filled;
  }
  return copy ?? items;
}

function fillProperties(
  validator: JsonSchemaValidator,
  schema: JsonSchema,
  value: JsonSchema,
  depth: number,
): JsonSchema {
  let copy: Record<string, unknown> | undefined;
  const properties = Object.entries(toMap(schema["properties"]));
  validator.spend(properties.length);
  for (const [key, part] of properties) {
    const filled = has(value, key)
      ? fill(validator, part, value[key], depth + 1)
      : findDefault(validator, part);
    if (filled === undefined || filled === value[key]) continue;
    copy ??= { ...value };
    put(copy, key, filled);
  }
  return copy ?? value;
}

/** A copy, since the tool may change it; a default that breaks its own schema counts as absent. */
function findDefault(validator: JsonSchemaValidator, schema: unknown): unknown {
  if (!isRecord(schema) || schema["default"] === undefined) return undefined;
  return validator.fits(schema, schema["default"]) ? structuredClone(schema["default"]) : undefined;
}

/** Assigning to `__proto__` would change what the object is instead of what it holds. */
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
