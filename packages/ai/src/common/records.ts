/** Whether a value is an object and not an array. Its keys may be inherited: use `Object.hasOwn`. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of an object; none for any other value. */
export function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
