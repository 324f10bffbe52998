import type { Payload } from "./envelope.ts";
import { invalidRequest } from "./protocol-error.ts";

/** Describes an optional field of a payload, and checks a value of it. */
export interface FieldRule<T> {
  readonly what: string;
  readonly is: (value: unknown) => value is T;
}

/** A rule for each field of `T`. */
export type FieldRules<T> = {
  readonly [K in keyof T]-?: FieldRule<NonNullable<T[K]>>;
};

/**
 * Reads the fields that have a rule, and ignores others. Throws `invalid_request` where one breaks
 * its rule. `path` stands before their names in the error.
 */
export function parseFields(
  payload: Payload,
  rules: Readonly<Record<string, FieldRule<unknown>>>,
  path = "",
): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const [name, { what, is }] of Object.entries(rules)) {
    const value = payload[name];
    if (value === undefined) continue;
    if (!is(value)) throw invalidRequest(`"${path}${name}" is ${what}.`);
    read[name] = value;
  }
  return read;
}

/** The rule of a field that is one of some strings. */
export function createChoiceRule<T extends string>(values: readonly T[]): FieldRule<T> {
  const known: ReadonlySet<unknown> = new Set(values);
  return { what: `one of ${values.join(", ")}`, is: (value): value is T => known.has(value) };
}

export function isText(value: unknown): value is string {
  return typeof value === "string";
}
