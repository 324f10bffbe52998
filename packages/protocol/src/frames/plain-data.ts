/** Values that are nested deeper are left out: they may be endless. */
const MAX_DEPTH = 100;

/** A copy of a value that JSON can represent. The rest is left out. */
export function toPlainData(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return copyRecord(value, []);
}

function copy(value: unknown, above: readonly object[]): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) {
    return typeof value === "function" || typeof value === "symbol" ? undefined : value;
  }
  if (above.includes(value) || above.length >= MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((each) => copy(each, [...above, value]) ?? null);
  return copyRecord(value, above);
}

function copyRecord(value: object, above: readonly object[]): Record<string, unknown> {
  const made: [string, unknown][] = [];
  for (const key of Object.keys(value)) {
    try {
      made.push([key, copy((value as Record<string, unknown>)[key], [...above, value])]);
    } catch {
      // A property whose getter throws is left out.
    }
  }
  return Object.fromEntries(made.filter(([key]) => key !== "toJSON"));
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy without the fields that are undefined. */
export function withoutUndefined<T extends object>(value: T): Defined<T> {
  const defined = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(defined) as Defined<T>;
}
