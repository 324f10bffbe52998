import { isRecord } from "@gyre/ai";

/** A copy of a value of JSON that grows in place: what a page shows must not change under it. */
export function copyPlain<T>(value: T): T;
export function copyPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => copyPlain(item));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copyPlain(item)]));
}
