/** Values from outside: arguments as a model sent them, details as a file held them. */
export type Loose = Readonly<Record<string, unknown>>;

export function looseRecord(value: unknown): Loose {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord ? (value as Loose) : {};
}

/** A field that is a text, else "". */
export function looseText(record: Loose, name: string): string {
  const value = record[name];
  return typeof value === "string" ? value : "";
}

export function looseNumber(record: Loose, name: string): number | undefined {
  const value = record[name];
  return typeof value === "number" ? value : undefined;
}
