/** An object as JSON has it, of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

export function isTexts(value: unknown): value is Record<string, string> {
  return isFields(value) && Object.values(value).every((one) => typeof one === "string");
}
