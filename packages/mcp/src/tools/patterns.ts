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
/** Keywords that are left to the server: of each, the work cannot be bounded here. */
const UNBOUNDED: readonly string[] = [
  "pattern",
  "patternProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "$dynamicRef",
  "$recursiveRef",
  "~refine",
];
/** Then references are relative to the whole; one by an address counts as remote, and is not followed. */
const ADDRESS = "$id";
const REFERENCE = "$ref";
/** What is said of all that patterns do not name: without them it would be about too much. */
const OTHERS = "additionalProperties";

/**
 * A schema of a server without what can keep us busy for years on a short text, and cannot be
 * interrupted: regular expressions, and keywords that need another checker. The server checks
 * these itself. A reference to something else than a schema would bring them back, and is left out.
 */
export function withoutPatterns(schema: Schema): Schema {
  const made = new Set<unknown>();
  const whole = cleaned(schema, made);
  for (const one of made) {
    if (!isSchema(one)) continue;
    const { [REFERENCE]: reference } = one;
    if (typeof reference !== "string" || !reference.startsWith("#/")) continue;
    const target = findTarget(whole, reference.slice(1));
    if (typeof target !== "boolean" && !made.has(target)) Reflect.deleteProperty(one, REFERENCE);
  }
  return whole;
}

function cleaned(schema: Schema, made: Set<unknown>): Schema {
  const left = new Set([...UNBOUNDED, ADDRESS]);
  if ("patternProperties" in schema) left.add(OTHERS);
  const entries = Object.entries(schema).filter(([key]) => !left.has(key));
  const inside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inside);
    return isSchema(value) ? cleaned(value, made) : value;
  };
  const whole = Object.fromEntries(
    entries.map(([key, value]) => {
      if (DATA.has(key)) return [key, value];
      if (!MAPS.has(key) || !isSchema(value)) return [key, inside(value)];
      const named = Object.entries(value).map(([name, one]) => [name, inside(one)] as const);
      return [key, Object.fromEntries(named)];
    }),
  );
  made.add(whole);
  return whole;
}

/** What a JSON pointer leads to; undefined where it leads nowhere. */
function findTarget(whole: unknown, pointer: string): unknown {
  let decoded: string;
  try {
    decoded = decodeURIComponent(pointer);
  } catch {
    return undefined;
  }
  let current = whole;
  for (const part of decoded.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof current !== "object" || current === null) return undefined;
    current = Object.getOwnPropertyDescriptor(current, key)?.value;
  }
  return current;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
