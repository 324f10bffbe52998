import { isRecord } from "../common/records.ts";
import { nearNames } from "./near-names.ts";
import {
  type Documents,
  indexSchema,
  type Reference,
  REFERENCES,
  type SchemaIndex,
} from "./schema-index.ts";
import type { JsonSchema } from "./schema.ts";

/**
 * A JSON Schema validator: a schema becomes a tree of closures, once. It needs no
 * `eval`, is there at once, and reports what is wrong in words that a model can act
 * on. `format` is an annotation, as draft 2020-12 has it by default.
 */
export interface JsonSchemaValidator {
  readonly root: JsonSchema;
  /** Some property in it has a `default`. */
  readonly hasDefaults: boolean;
  /** It has rare keywords, and was compiled without the checks of these. */
  readonly isPartial: boolean;
  /** A reference to a document that is not there, so that nothing can be checked by it. */
  readonly remoteRef: string | undefined;
  /** Resets the count of work. Called once for each value from outside. */
  begin(): void;
  /** Counts work. Throws where there is too much of it. */
  spend(amount: number): void;
  /** Whether `value` fits `schema`, which is the root or a part of it. */
  fits(schema: unknown, value: unknown): boolean;
  /** All that is wrong with `value`; empty if it fits the root. */
  problems(value: unknown): Problem[];
  /** Where the `$ref` of `schema` leads; undefined if it has none. */
  target(schema: JsonSchema): unknown;
}

export interface Problem {
  /** JSON pointer to the value; empty for the whole. */
  readonly path: string;
  /** `expected`: `text` says what was expected of `value`. `stated`: `text` says it all. */
  readonly kind: "type" | "choice" | "expected" | "stated";
  readonly text: string;
  readonly value: unknown;
}

/** `$ref`s that may be open inside each other: a bound on recursion, so on the stack. */
const MAX_REF_DEPTH = 400;
/** `$ref`s followed for one value: a recursive union can ask for exponentially many. */
const MAX_REF_VISITS = 1_000_000;
/** Keywords looked at for one value, with all that they list: a union can be tried again and again. */
const MAX_WORK = 20_000_000;
/** Values of an `enum`, or names of properties, listed in one problem. */
const MAX_LISTED = 12;

export interface Report {
  readonly path: string;
  readonly problems: Problem[];
}

/** Without a report it stops at the first fault; with one it writes all of them down. */
export type Check = (value: unknown, at: Report | undefined) => boolean;

export interface CompileOptions {
  /** Other schemas by their address, for references that lead to them. */
  readonly documents?: Documents;
  /** From `rare-keywords.ts`, which is loaded when a schema needs it. */
  readonly createRareChecks?: (parts: CompilerParts) => RareChecks;
}

/** What the checks of rare keywords get to work with. */
export interface CompilerParts {
  readonly index: SchemaIndex;
  readonly createCheck: (schema: unknown) => Check;
  readonly resolveTarget: (schema: JsonSchema, keyword: Reference) => unknown;
  /** Counts work. Throws where there is too much of it. */
  readonly spend: (amount: number) => void;
}

/** The keywords that depend on what other keywords have looked at, and on where a schema is used. */
export interface RareChecks {
  unevaluated(schema: JsonSchema): Check[];
  /** Has references see the schema that a check is inside of. */
  within(schema: unknown, check: Check): Check;
  /** Where a dynamic reference leads, which leads to `fixed` by itself. */
  target(schema: JsonSchema, keyword: Reference, fixed: unknown): unknown;
}

export function compileJsonSchema(
  root: JsonSchema,
  options: CompileOptions = {},
): JsonSchemaValidator {
  const checks = new Map<object, Check>();
  const index = indexSchema(root, options.documents);
  const work = { depth: 0, visits: 0, spent: 0 };
  const rare = options.createRareChecks?.({ index, createCheck, resolveTarget, spend });
  const within = (schema: unknown, check: Check): Check => rare?.within(schema, check) ?? check;
  function spend(amount: number): void {
    work.spent += amount;
    if (work.spent > MAX_WORK) throw new RangeError("it takes too long");
  }

  function createCheck(schema: unknown): Check {
    if (schema === true) return () => true;
    if (schema === false) return (value, at) => fail(at, "expected", "no value at all", value);
    if (!isRecord(schema)) {
      throw new TypeError(`a schema must be an object or a boolean, not ${quote(schema)}`);
    }
    let check = checks.get(schema);
    if (check === undefined) {
      check = build(schema);
      checks.set(schema, check);
    }
    return check;
  }

  function build(schema: JsonSchema): Check {
    const { refAlone = false, unvalidated = false } = index.places.get(schema) ?? {};
    if (refAlone) return refCheck(schema, "$ref");
    const asserted = unvalidated ? {} : schema;
    const type = typeCheck(asserted);
    const rules = [
      ...valueChecks(asserted),
      ...numberChecks(asserted),
      ...stringChecks(asserted),
      ...arrayChecks(schema, createCheck),
      ...objectChecks(schema, createCheck),
      ...combinedChecks(schema),
      ...(rare?.unevaluated(schema) ?? []),
    ];
    const cost = countWork(schema);
    const check: Check = (value, at) => {
      spend(cost);
      // Of a value of the wrong type there is no more to say.
      if (type !== undefined && !type(value, at)) return false;
      let ok = true;
      for (const rule of rules) {
        if (rule(value, at)) continue;
        if (at === undefined) return false;
        ok = false;
      }
      return ok;
    };
    return schema["$id"] === undefined ? check : within(schema, check);
  }

  function combinedChecks(schema: JsonSchema): Check[] {
    const rules = REFERENCES.filter((keyword) => typeof schema[keyword] === "string").map(
      (keyword) => refCheck(schema, keyword),
    );
    for (const part of toList(schema["allOf"])) rules.push(createCheck(part));
    const anyOf = toList(schema["anyOf"]);
    if (anyOf.length > 0) {
      const branches = anyOf.map(createCheck);
      rules.push(
        (value, at) =>
          branches.some((branch) => branch(value, undefined)) ||
          failUnion(at, anyOf, branches, value),
      );
    }
    const oneOf = toList(schema["oneOf"]);
    if (oneOf.length > 0) {
      const branches = oneOf.map(createCheck);
      rules.push((value, at) => {
        const fitting = branches.filter((branch) => branch(value, undefined)).length;
        if (fitting === 1) return true;
        if (fitting === 0) return failUnion(at, oneOf, branches, value);
        const text = `a value that fits one of the alternatives (it fits ${fitting})`;
        return fail(at, "expected", text, value);
      });
    }
    if (schema["not"] !== undefined) {
      const forbidden = createCheck(schema["not"]);
      const text = `anything but ${describe(schema["not"])}`;
      rules.push((value, at) => !forbidden(value, undefined) || fail(at, "expected", text, value));
    }
    if (schema["if"] !== undefined) {
      const condition = createCheck(schema["if"]);
      const then = createCheck(schema["then"] ?? true);
      const otherwise = createCheck(schema["else"] ?? true);
      rules.push((value, at) => (condition(value, undefined) ? then : otherwise)(value, at));
    }
    return rules;
  }

  function refCheck(schema: JsonSchema, keyword: Reference): Check {
    const fixed = resolveTarget(schema, keyword);
    const open: unknown[] = [];
    const reached = new Map<unknown, Check>();
    return (value, at) => {
      const target = rare?.target(schema, keyword, fixed) ?? fixed;
      // The same value again, inside itself: this schema leads to itself and to nothing else.
      if (open.some((one, place) => place % 2 === 0 && one === value && open[place + 1] === target))
        return fail(at, "stated", "the schema refers to itself", value);
      if (work.depth >= MAX_REF_DEPTH) return fail(at, "stated", "nested too deeply", value);
      if (++work.visits > MAX_REF_VISITS) return fail(at, "stated", "too much to check", value);
      let check = reached.get(target);
      if (check === undefined) reached.set(target, (check = within(target, createCheck(target))));
      work.depth++;
      open.push(value, target);
      try {
        return check(value, at);
      } finally {
        open.length -= 2;
        work.depth--;
      }
    };
  }

  function resolveTarget(schema: JsonSchema, keyword: Reference = "$ref"): unknown {
    const ref = schema[keyword];
    if (typeof ref !== "string") return undefined;
    const target = index.find(ref, schema);
    if (target === undefined)
      throw new TypeError(`${keyword} "${ref}" leads nowhere in the schema`);
    return target;
  }

  function failUnion(
    at: Report | undefined,
    schemas: readonly unknown[],
    branches: readonly Check[],
    value: unknown,
  ): false {
    if (at === undefined) return false;
    const attempts = branches.map((branch) => {
      const problems: Problem[] = [];
      branch(value, { path: at.path, problems });
      return problems;
    });
    // A branch for another type of value has nothing to teach about this one.
    const near = attempts.filter(
      (problems) => !problems.some(({ path, kind }) => path === at.path && isMismatch(kind)),
    );
    if (near.length === 0)
      return fail(at, "type", joinOr(schemas.map((one) => describe(one))), value);
    const meant = near.filter((problems) => !problems.some(({ kind }) => kind === "choice"));
    const best = fewest(meant.length > 0 ? meant : near);
    const choice = best.find(({ kind }) => kind === "choice");
    if (meant.length > 0 || choice === undefined) {
      at.problems.push(...best);
      return false;
    }
    // No branch has this tag: say which tags there are.
    const tags = near.flat().filter(({ path, kind }) => path === choice.path && kind === "choice");
    at.problems.push({ ...choice, text: joinOr(tags.map(({ text }) => text)) });
    return false;
  }

  /** A few words on what a schema asks for. */
  function describe(schema: unknown, depth = 0): string {
    if (!isRecord(schema) || depth > 3) return "another value";
    if ("const" in schema) return quote(schema["const"]);
    if (Array.isArray(schema["enum"])) return choices(schema["enum"]);
    const types = listTypes(schema);
    if (types.length > 0) return joinOr(types);
    if (typeof schema["$ref"] === "string") return describe(resolveTarget(schema), depth + 1);
    const union = [...toList(schema["anyOf"]), ...toList(schema["oneOf"])];
    if (union.length > 0) {
      return joinOr(union.slice(0, MAX_LISTED).map((one) => describe(one, depth + 1)));
    }
    return "properties" in schema || "required" in schema ? "object" : "another value";
  }

  const { remoteRef } = index;
  // What refers to something unknown cannot be built, and is not asked.
  const whole: Check = remoteRef === undefined ? within(root, createCheck(root)) : () => true;
  return {
    root,
    hasDefaults: index.hasDefaults,
    isPartial: index.hasRare && rare === undefined,
    begin: () => {
      work.visits = 0;
      work.spent = 0;
    },
    spend,
    fits: (schema, value) => (schema === root ? whole : createCheck(schema))(value, undefined),
    problems: (value) => {
      const problems: Problem[] = [];
      whole(value, { path: "", problems });
      return problems;
    },
    target: (schema) => resolveTarget(schema),
    remoteRef,
  };
}

/** How much there is to look at in a schema itself. */
export function countWork(schema: JsonSchema): number {
  const sizes = Object.values(schema).map((value) => {
    if (Array.isArray(value)) return value.length;
    return isRecord(value) ? Object.keys(value).length : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 1);
}

function typeCheck(schema: JsonSchema): Check | undefined {
  const types = listTypes(schema);
  const [only] = types;
  if (only === undefined) return undefined;
  const text = joinOr(types);
  if (types.length === 1) {
    return (value, at) => isOfType(value, only) || fail(at, "type", text, value);
  }
  return (value, at) =>
    types.some((type) => isOfType(value, type)) || fail(at, "type", text, value);
}

function valueChecks(schema: JsonSchema): Check[] {
  const rules: Check[] = [];
  if ("const" in schema) {
    const equals = equalTo(schema["const"]);
    const text = quote(schema["const"]);
    rules.push((value, at) => equals(value) || fail(at, "choice", text, value));
  }
  const allowed = schema["enum"];
  if (Array.isArray(allowed)) {
    const tests = allowed.map(equalTo);
    rules.push(
      (value, at) =>
        tests.some((equals) => equals(value)) ||
        (at !== undefined && fail(at, "choice", choices(allowed) + meant(value, allowed), value)),
    );
  }
  // What a schema of typebox has from `Type.Refine`.
  for (const refinement of toList(schema["~refine"])) {
    if (!isRefinement(refinement)) continue;
    rules.push(
      (value, at) =>
        refinement.check(value) ||
        (at !== undefined && fail(at, "stated", refinement.error(value), value)),
    );
  }
  return rules;
}

interface Refinement {
  check(value: unknown): boolean;
  error(value: unknown): string;
}

function isRefinement(value: unknown): value is Refinement {
  return (
    isRecord(value) && typeof value["check"] === "function" && typeof value["error"] === "function"
  );
}

function meant(value: unknown, allowed: readonly unknown[]): string {
  if (typeof value !== "string") return "";
  const [near] = nearNames(
    value,
    allowed.filter((one) => typeof one === "string"),
  );
  return near === undefined ? "" : ` (did you mean ${quote(near)}?)`;
}

function numberChecks(schema: JsonSchema): Check[] {
  const rules: Check[] = [];
  const rule = (
    keyword: string,
    words: string,
    test: (value: number, limit: number) => boolean,
  ) => {
    const limit = schema[keyword];
    if (typeof limit !== "number") return;
    rules.push(
      (value, at) =>
        typeof value !== "number" ||
        test(value, limit) ||
        fail(at, "expected", `${words} ${limit}`, value),
    );
  };
  rule("minimum", "at least", (value, limit) => value >= limit);
  rule("maximum", "at most", (value, limit) => value <= limit);
  rule("exclusiveMinimum", "more than", (value, limit) => value > limit);
  rule("exclusiveMaximum", "less than", (value, limit) => value < limit);
  rule("multipleOf", "a multiple of", isMultiple);
  return rules;
}

/** 0.3 is a multiple of 0.1, whatever binary fractions say. */
function isMultiple(value: number, step: number): boolean {
  const quotient = value / step;
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9;
}

function stringChecks(schema: JsonSchema): Check[] {
  const rules: Check[] = [];
  const { minLength, maxLength, pattern } = schema;
  if (typeof minLength === "number") {
    const text = `at least ${count(minLength, "character")}`;
    rules.push(
      (value, at) =>
        typeof value !== "string" ||
        // Counting code points is slow, and a string has at least half as many as units.
        value.length >= 2 * minLength ||
        (value.length >= minLength && [...value].length >= minLength) ||
        fail(at, "expected", text, value),
    );
  }
  if (typeof maxLength === "number") {
    const text = `at most ${count(maxLength, "character")}`;
    rules.push(
      (value, at) =>
        typeof value !== "string" ||
        value.length <= maxLength ||
        (value.length <= 2 * maxLength && [...value].length <= maxLength) ||
        fail(at, "expected", text, value),
    );
  }
  if (typeof pattern === "string" || pattern instanceof RegExp) {
    const regexp = getPattern(pattern);
    const text = `a string that matches /${regexp.source}/`;
    rules.push(
      (value, at) =>
        typeof value !== "string" || regexp.test(value) || fail(at, "expected", text, value),
    );
  }
  return rules;
}

/** Patterns are Unicode ones; some in the wild are only valid without. */
export function getPattern(pattern: string | RegExp): RegExp {
  // A flag that moves `lastIndex` would make a check depend on the one before it.
  if (typeof pattern !== "string")
    return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
  try {
    return new RegExp(pattern, "u");
  } catch {
    return new RegExp(pattern);
  }
}

/** The checks of how many items or properties a value has. */
function sizeChecks(least: unknown, most: unknown, noun: string) {
  const create = (limit: unknown, words: string, fits: (size: number, limit: number) => boolean) =>
    typeof limit !== "number"
      ? []
      : (size: number, value: unknown, at: Report | undefined) =>
          fits(size, limit) || fail(at, "expected", `${words} ${count(limit, noun)}`, value);
  return [
    create(least, "at least", (size, limit) => size >= limit),
    create(most, "at most", (size, limit) => size <= limit),
  ].flat();
}

function arrayChecks(schema: JsonSchema, createCheck: (schema: unknown) => Check): Check[] {
  const rules: Check[] = [];
  const rule = (test: (value: readonly unknown[], at: Report | undefined) => boolean) => {
    rules.push((value, at) => !Array.isArray(value) || test(value, at));
  };
  const { minItems, maxItems } = schema;
  for (const check of sizeChecks(minItems, maxItems, "item")) {
    rule((value, at) => check(value.length, value, at));
  }
  if (schema["uniqueItems"] === true) {
    rule(
      (value, at) =>
        new Set(value.map(canonical)).size === value.length ||
        fail(at, "expected", "no item twice", value),
    );
  }
  const { prefix, rest } = itemSchemas(schema);
  const prefixChecks = prefix.map(createCheck);
  const restCheck = rest === undefined ? undefined : createCheck(rest);
  if (prefixChecks.length > 0 || restCheck !== undefined) {
    rule((value, at) => {
      let ok = true;
      const length =
        restCheck === undefined ? Math.min(value.length, prefixChecks.length) : value.length;
      for (let index = 0; index < length; index++) {
        const check = prefixChecks[index] ?? restCheck;
        if (check === undefined || check(value[index], at && below(at, index))) continue;
        if (at === undefined) return false;
        ok = false;
      }
      return ok;
    });
  }
  if (schema["contains"] !== undefined) {
    const contained = createCheck(schema["contains"]);
    const least = numberOr(schema["minContains"], 1);
    const most = numberOr(schema["maxContains"], Number.POSITIVE_INFINITY);
    const limit = most === Number.POSITIVE_INFINITY ? "" : ` and at most ${most}`;
    const text = `at least ${least}${limit} of its items to fit "contains"`;
    rule((value, at) => {
      const found = value.filter((item) => contained(item, undefined)).length;
      return (found >= least && found <= most) || fail(at, "expected", text, value);
    });
  }
  return rules;
}

/** Draft 2020-12 says `prefixItems` and `items`; older ones a list in `items` and `additionalItems`. */
export function itemSchemas(schema: JsonSchema): { prefix: readonly unknown[]; rest: unknown } {
  const items = schema["items"];
  if (Array.isArray(items)) return { prefix: items, rest: schema["additionalItems"] };
  return { prefix: toList(schema["prefixItems"]), rest: items };
}

function objectChecks(schema: JsonSchema, createCheck: (schema: unknown) => Check): Check[] {
  const rules: Check[] = [];
  const rule = (test: (value: JsonSchema, at: Report | undefined) => boolean) => {
    rules.push((value, at) => !isRecord(value) || test(value, at));
  };
  const properties = toMap(schema["properties"]);
  const known = Object.keys(properties);

  const required = listStrings(schema["required"]);
  if (required.length > 0) {
    rule((value, at) => {
      let ok = true;
      for (const key of required) {
        if (has(value, key)) continue;
        if (at === undefined) return false;
        ok = fail(
          below(at, key),
          "stated",
          `required, missing${misnamed(key, value, known)}`,
          value,
        );
      }
      return ok;
    });
  }

  const propertyChecks = known.map((key) => ({ key, check: createCheck(properties[key]) }));
  if (propertyChecks.length > 0) {
    rule((value, at) => {
      let ok = true;
      for (const { key, check } of propertyChecks) {
        if (!has(value, key) || check(value[key], at && below(at, key))) continue;
        if (at === undefined) return false;
        ok = false;
      }
      return ok;
    });
  }

  const patterns = Object.entries(toMap(schema["patternProperties"])).map(([pattern, part]) => ({
    regexp: getPattern(pattern),
    check: createCheck(part),
  }));
  const additional = schema["additionalProperties"];
  if (patterns.length > 0 || (additional !== undefined && additional !== true)) {
    const names = new Set(known);
    const additionalCheck = createCheck(additional ?? true);
    rule((value, at) => {
      let ok = true;
      for (const key of Object.keys(value)) {
        if (value[key] === undefined) continue;
        const matching = patterns.filter(({ regexp }) => regexp.test(key));
        const isExtra = matching.length === 0 && !names.has(key);
        const fits = !isExtra
          ? allFit(matching, value[key], at && below(at, key))
          : additional === false
            ? at !== undefined && fail(below(at, key), "stated", unknownProperty(key, known), value)
            : additionalCheck(value[key], at && below(at, key));
        if (fits) continue;
        if (at === undefined) return false;
        ok = false;
      }
      return ok;
    });
  }

  if (schema["propertyNames"] !== undefined) {
    const nameCheck = createCheck(schema["propertyNames"]);
    rule((value, at) => {
      const bad = Object.keys(value).find((key) => !nameCheck(key, undefined));
      if (bad === undefined) return true;
      return fail(at && below(at, bad), "stated", "a name that is not allowed", value);
    });
  }
  const { minProperties, maxProperties } = schema;
  for (const check of sizeChecks(minProperties, maxProperties, "property")) {
    rule((value, at) => check(Object.keys(value).length, value, at));
  }
  const dependent = [
    ...Object.entries(toMap(schema["dependentRequired"])),
    ...Object.entries(toMap(schema["dependentSchemas"])),
    ...Object.entries(toMap(schema["dependencies"])),
  ];
  for (const [key, needs] of dependent) {
    if (Array.isArray(needs)) {
      rule((value, at) => {
        if (!has(value, key)) return true;
        const absent = listStrings(needs).filter((name) => !has(value, name));
        for (const name of absent)
          fail(at && below(at, name), "stated", `required with "${key}", missing`, value);
        return absent.length === 0;
      });
    } else {
      const check = createCheck(needs);
      rule((value, at) => !has(value, key) || check(value, at));
    }
  }
  return rules;
}

function allFit(
  rules: readonly { check: Check }[],
  value: unknown,
  at: Report | undefined,
): boolean {
  return rules.every(({ check }) => check(value, at));
}

/** A property that is missing may be there under another name. */
function misnamed(key: string, value: JsonSchema, known: readonly string[]): string {
  const [near] = nearNames(
    key,
    Object.keys(value).filter((name) => !known.includes(name)),
  );
  return near === undefined ? "" : ` (is ${quote(near)} meant to be it?)`;
}

function unknownProperty(key: string, known: readonly string[]): string {
  const [near] = nearNames(key, known);
  if (near !== undefined) return `unknown property (did you mean ${quote(near)}?)`;
  return known.length === 0 ? "unknown property" : `unknown property (known: ${listed(known)})`;
}

/** A JSON pointer one step longer. */
export function pointerTo(path: string, key: string | number): string {
  return `${path}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

export function below(at: Report, key: string | number): Report {
  return { path: pointerTo(at.path, key), problems: at.problems };
}

export function fail(
  at: Report | undefined,
  kind: Problem["kind"],
  text: string,
  value: unknown,
): false {
  at?.problems.push({ path: at.path, kind, text, value });
  return false;
}

function isMismatch(kind: Problem["kind"]): boolean {
  return kind === "type" || kind === "choice";
}

function fewest(attempts: readonly Problem[][]): Problem[] {
  return attempts.reduce((best, one) => (one.length < best.length ? one : best));
}

export function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type;
    case "number":
      return Number.isFinite(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    default:
      return true;
  }
}

export function listTypes(schema: JsonSchema): string[] {
  const type = schema["type"];
  return typeof type === "string" ? [type] : listStrings(type);
}

/** Whether a property is there. One that is `undefined` is not: JSON cannot say so. */
export function has(value: JsonSchema, key: string): boolean {
  return value[key] !== undefined && Object.hasOwn(value, key);
}

export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function toMap(value: unknown): JsonSchema {
  return isRecord(value) ? value : {};
}

export function listStrings(value: unknown): string[] {
  return toList(value).filter((one) => typeof one === "string");
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function equalTo(expected: unknown): (value: unknown) => boolean {
  if (typeof expected !== "object" || expected === null) return (value) => value === expected;
  const text = canonical(expected);
  return (value) => typeof value === "object" && value !== null && canonical(value) === text;
}

/** JSON with sorted keys: the same text for equal values, and only for them. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? "undefined";
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function choices(values: readonly unknown[]): string {
  return values.length === 1 ? quote(values[0]) : `one of ${listed(values)}`;
}

function listed(values: readonly unknown[]): string {
  const shown = values.slice(0, MAX_LISTED).map(quote).join(", ");
  return values.length > MAX_LISTED ? `${shown} and ${values.length - MAX_LISTED} more` : shown;
}

function quote(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}

function joinOr(words: readonly string[]): string {
  return [...new Set(words)].join(" or ");
}

function count(number: number, noun: string): string {
  if (number === 1) return `1 ${noun}`;
  return `${number} ${noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}
