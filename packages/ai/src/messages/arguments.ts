import type { StandardSchemaV1 } from "@standard-schema/spec";
import { errorMessage } from "../common/errors.ts";
import { isThenable } from "../common/promises.ts";
import { isRecord } from "../common/records.ts";
import { coerce, fillDefaults } from "../schema/coerce.ts";
import {
  compileJsonSchema,
  type JsonSchemaValidator,
  pointerTo,
  type Problem,
} from "../schema/json-schema.ts";
import { valueAt } from "../schema/schema-index.ts";
import type { Tool } from "./messages.ts";
import {
  type AnySchema,
  type InferArguments,
  isStandardSchema,
  type JsonSchema,
  type StandardSchema,
  toJsonSchema,
} from "../schema/schema.ts";

/** Arguments that a tool can be run with, or what the model should know about why not. */
export type ArgumentsResult<T = Record<string, unknown>> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: string };

/** How many problems one error lists; more would bury the first ones. */
const MAX_PROBLEMS = 10;
/** Characters of a value shown in a problem. */
const MAX_SHOWN_CHARS = 80;

/**
 * Checks the arguments of a call against the schema of its tool. What fits comes
 * back as it is, the very same object; what nearly fits is coerced on a copy, and
 * absent properties get the defaults of the schema, on a copy too. `args` is never
 * changed. A Standard Schema validates by itself, and the value is its output.
 *
 * Never throws: a schema that is broken is an error result as well. The answer is
 * a promise only where a Standard Schema validates asynchronously, or the first time that a
 * schema has one of the rare keywords whose checks are loaded then.
 *
 * A schema is compiled once; do not change it afterwards.
 */
export function validateToolArguments<S extends AnySchema>(
  tool: Pick<Tool<S>, "name" | "parameters">,
  args: unknown,
): ArgumentsResult<InferArguments<S>> | Promise<ArgumentsResult<InferArguments<S>>> {
  const answer = (outcome: Outcome): ArgumentsResult<InferArguments<S>> =>
    outcome.problems === undefined
      ? // The schema has said so; that is what the type stands for.
        { ok: true, value: outcome.value as InferArguments<S> }
      : { ok: false, error: errorText(tool.name, outcome.problems) };
  const broken = (error: unknown): ArgumentsResult<InferArguments<S>> => ({
    ok: false,
    error: `Cannot check the arguments of tool "${tool.name}": ${errorMessage(error)}`,
  });
  try {
    const schema: AnySchema = tool.parameters;
    // Some services send null for a call without arguments.
    const given = args ?? {};
    const outcome = isStandardSchema(schema)
      ? checkByStandard(schema, given)
      : checkByJsonSchema(toJsonSchema(schema), given);
    return outcome instanceof Promise ? outcome.then(answer).catch(broken) : answer(outcome);
  } catch (error) {
    return broken(error);
  }
}

type Outcome =
  | { readonly value: unknown; readonly problems?: undefined }
  | { readonly problems: readonly string[] };

const validators = new WeakMap<JsonSchema, JsonSchemaValidator>();

function getValidator(schema: JsonSchema): JsonSchemaValidator {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = compileJsonSchema(schema);
    validators.set(schema, validator);
  }
  validator.begin();
  return validator;
}

/** Why arguments of a tool with this schema are not checked, if they are not (R12). */
export function explainUnchecked(schema: AnySchema): string | undefined {
  if (isStandardSchema(schema)) return undefined;
  const { remoteRef } = getValidator(toJsonSchema(schema));
  return remoteRef && `its schema refers to "${remoteRef}", which is not a part of it.`;
}

function checkByJsonSchema(schema: JsonSchema, args: unknown): Outcome | Promise<Outcome> {
  const validator = getValidator(schema);
  return validator.isPartial ? loadRareChecks(schema, args) : checkWith(validator, schema, args);
}

async function loadRareChecks(schema: JsonSchema, args: unknown): Promise<Outcome> {
  const { createRareChecks } = await import("../schema/rare-keywords.ts");
  validators.set(schema, compileJsonSchema(schema, { createRareChecks }));
  return checkWith(getValidator(schema), schema, args);
}

function checkWith(validator: JsonSchemaValidator, schema: JsonSchema, args: unknown): Outcome {
  // A part of what is expected is unknown: the tool has to cope.
  if (validator.remoteRef !== undefined && isRecord(args)) return { value: args };
  let value = args;
  let fits = isRecord(value) && validator.fits(schema, value);
  if (!fits) {
    value = coerce(validator, args);
    fits = isRecord(value) && validator.fits(schema, value);
  }
  if (validator.hasDefaults) {
    const filled = fillDefaults(validator, value);
    const filledFits = filled === value ? fits : isRecord(filled) && validator.fits(schema, filled);
    // Defaults must not break what was right without them.
    if (filledFits || !fits) {
      value = filled;
      fits = filledFits;
    }
  }
  if (!fits) return { problems: listProblems(validator, value) };
  return { value };
}

function checkByStandard(schema: StandardSchema, args: unknown): Outcome | Promise<Outcome> {
  const first = schema["~standard"].validate(args);
  if (isThenable(first)) {
    return Promise.resolve(first).then((result) => afterFirst(schema, args, result));
  }
  return afterFirst(schema, args, first);
}

function afterFirst(
  schema: StandardSchema,
  args: unknown,
  first: StandardSchemaV1.Result<unknown>,
): Outcome | Promise<Outcome> {
  if (first.issues === undefined) return { value: first.value };
  const validator = getValidator(toJsonSchema(schema));
  const coerced = coerce(validator, args);
  if (coerced === args) return standardOutcome(validator, args, first);
  const second = schema["~standard"].validate(coerced);
  return isThenable(second)
    ? Promise.resolve(second).then((result) => standardOutcome(validator, coerced, result))
    : standardOutcome(validator, coerced, second);
}

function standardOutcome(
  validator: JsonSchemaValidator,
  value: unknown,
  result: StandardSchemaV1.Result<unknown>,
): Outcome {
  if (result.issues === undefined) return { value: result.value };
  // Where the JSON Schema sees the same fault, our words: they are alike for all libraries.
  const problems = validator.problems(value);
  const issues = result.issues.map(({ message, path }) => ({
    message,
    path: toPointer(path ?? []),
  }));
  const reported = new Set(issues.map(({ path }) => path));
  const lines = issues.flatMap(({ message, path }) => {
    const same = problems.filter((problem) => problem.path === path);
    // A library may report an error at the union or object that holds it.
    const inside = problems.filter(
      (problem) => problem.path.startsWith(`${path}/`) && !reported.has(problem.path),
    );
    const own = same.length > 0 ? same : inside;
    if (own.length > 0) return own.map(ownLine);
    return [problemLine(path, `${message}, got ${shown(valueAt(value, path))}`)];
  });
  return { problems: lines };
}

function toPointer(path: readonly (PropertyKey | StandardSchemaV1.PathSegment)[]): string {
  return path.reduce<string>(
    (pointer, step) => pointerTo(pointer, String(typeof step === "object" ? step.key : step)),
    "",
  );
}

function listProblems(validator: JsonSchemaValidator, value: unknown): readonly string[] {
  if (!isRecord(value)) return [problemLine("", `expected object, got ${shown(value)}`)];
  return validator.problems(value).map(ownLine);
}

function ownLine({ path, kind, text, value }: Problem): string {
  return problemLine(path, kind === "stated" ? text : `expected ${text}, got ${shown(value)}`);
}

function problemLine(path: string, text: string): string {
  return `- ${path === "" ? "arguments" : path}: ${text}`;
}

function errorText(tool: string, problems: readonly string[]): string {
  const lines = [...new Set(problems)];
  const more = lines.length - MAX_PROBLEMS;
  return [
    `Invalid arguments for tool "${tool}":`,
    ...lines.slice(0, MAX_PROBLEMS),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}

/** A value for the eye: its type, and as much of it as helps. */
function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  const type = Array.isArray(value) ? "array" : typeof value;
  // Cut before it is quoted too: it may be a whole file.
  const part = typeof value === "string" ? value.slice(0, MAX_SHOWN_CHARS + 1) : value;
  return `${type} ${cut(toJson(part))}`;
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Too deep, circular or a bigint; the type alone will do.
    return "(not shown)";
  }
}

function cut(text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text;
  // Half of a surrogate pair is not a character, and some services refuse it.
  return `${text.slice(0, MAX_SHOWN_CHARS).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
