type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose value has schemas by name: a parameter may itself be called "pattern". */
const MAPS: ReadonlySet<string> = new Set([
  "properties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);
/** Keywords whose value is data. */
const DATA: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"]);
/** What is said of all that patterns do not name: without them it would be about too much. */
const OTHERS = ["additionalProperties", "unevaluatedProperties"];

/**
 * A schema of a server without regular expressions: one can be made so that a short text
 * keeps us busy for years, and nothing can interrupt that. The server checks them itself.
 */
export function withoutPatterns(schema: Schema): Schema {
  const left = new Set(["pattern", "patternProperties"]);
  if ("patternProperties" in schema) for (const key of OTHERS) left.add(key);
  const entries = Object.entries(schema).filter(([key]) => !left.has(key));
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (DATA.has(key)) return [key, value];
      if (MAPS.has(key) && isSchema(value)) return [key, mapped(value)];
      return [key, inside(value)];
    }),
  );
}

function mapped(schemas: Schema): Schema {
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, inside(one)]));
}

function inside(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inside);
  return isSchema(value) ? withoutPatterns(value) : value;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
