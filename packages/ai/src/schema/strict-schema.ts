import { isRecord } from "../common/records.ts";
import type { JsonSchema } from "./schema.ts";

/** The part of JSON Schema that a service enforces while its model writes. */
export type SchemaDialect = "openai" | "claude" | "gemini";

/** A schema as a service takes it, or why it cannot be one. */
export type AdaptedSchema =
  | { readonly schema: JsonSchema; readonly reason?: undefined }
  | { readonly schema?: undefined; readonly reason: string };

interface Rules {
  /** Constraints that are enforced; others become part of the description. */
  readonly keeps: ReadonlySet<string>;
  /** Objects have the properties that are listed and no others. */
  readonly isClosed: boolean;
  /** Every property is required; one that was optional may be null. */
  readonly requiresAll: boolean;
  readonly isRecursive: boolean;
  readonly maxDepth: number;
  /** How many properties may be optional, and how many schemas may be a choice of types. */
  readonly maxOptional: number;
  readonly maxChoices: number;
}

const ANY_NUMBER = Number.POSITIVE_INFINITY;

const SHARED = ["type", "description", "title", "enum", "const", "properties", "required", "items"];
const FORMATS = new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" "));

const RULES: Readonly<Record<SchemaDialect, Rules>> = {
  // "Structured outputs: supported schemas" in OpenAI's guides.
  openai: {
    keeps: new Set([
      ...SHARED,
      ..."pattern format multipleOf maximum minimum exclusiveMaximum exclusiveMinimum minItems maxItems".split(
        " ",
      ),
    ]),
    isClosed: true,
    requiresAll: true,
    isRecursive: true,
    maxDepth: 10,
    maxOptional: ANY_NUMBER,
    maxChoices: ANY_NUMBER,
  },
  // "Structured outputs: JSON Schema limitations" in the documentation of the Claude API.
  claude: {
    keeps: new Set([...SHARED, "format"]),
    isClosed: true,
    requiresAll: false,
    isRecursive: false,
    maxDepth: ANY_NUMBER,
    maxOptional: 24,
    maxChoices: 16,
  },
  // "Structured outputs: JSON Schema support" in the guides of the Gemini API.
  gemini: {
    keeps: new Set([
      ...SHARED,
      ..."format minimum maximum minItems maxItems prefixItems additionalProperties".split(" "),
    ]),
    isClosed: false,
    requiresAll: false,
    isRecursive: true,
    maxDepth: ANY_NUMBER,
    maxOptional: ANY_NUMBER,
    maxChoices: ANY_NUMBER,
  },
};

/** Keywords that say nothing about the value. */
const NOTES = new Set(
  "$schema $id $comment $anchor examples deprecated readOnly writeOnly".split(" "),
);
const STRUCTURE = new Set(
  "$ref $defs definitions anyOf oneOf allOf additionalProperties".split(" "),
);

/** Cannot be adapted; only thrown and caught here. */
class NotAdaptable extends Error {}

/**
 * A schema as a service enforces it. Every value that the result allows has the form of the schema;
 * constraints that the service does not enforce go into the descriptions, so what comes back is
 * still to be checked by the whole schema.
 */
export function adaptSchema(root: JsonSchema, dialect: SchemaDialect): AdaptedSchema {
  try {
    return { schema: new Adapter(root, RULES[dialect]).adapt() };
  } catch (error) {
    if (error instanceof NotAdaptable) return { reason: error.message };
    throw error;
  }
}

class Adapter {
  readonly #root: JsonSchema;
  readonly #rules: Rules;
  #optional = 0;
  #choices = 0;

  constructor(root: JsonSchema, rules: Rules) {
    this.#root = root;
    this.#rules = rules;
  }

  adapt(): JsonSchema {
    const adapted = this.#schema(this.#root, "", 0);
    const defs: Record<string, unknown> = {};
    for (const keyword of ["$defs", "definitions"]) {
      const found = this.#root[keyword];
      if (!isRecord(found)) continue;
      const parts = Object.entries(found).map(([name, part]) => {
        return [name, this.#schema(part, `/${keyword}/${name}`, 1)] as const;
      });
      defs[keyword] = Object.fromEntries(parts);
    }
    const { maxChoices, maxOptional } = this.#rules;
    if (this.#optional > maxOptional)
      throw new NotAdaptable(`more than ${maxOptional} properties are optional`);
    if (this.#choices > maxChoices)
      throw new NotAdaptable(`more than ${maxChoices} values are a choice of types`);
    return { ...adapted, ...defs };
  }

  #schema(schema: unknown, path: string, depth: number): JsonSchema {
    const { isClosed, maxDepth } = this.#rules;
    if (depth > maxDepth) throw new NotAdaptable(`it is nested deeper than ${maxDepth} levels`);
    if (!isRecord(schema)) throw new NotAdaptable(`${place(path)} is ${JSON.stringify(schema)}`);
    const { $ref, allOf, anyOf, oneOf } = schema;
    if (typeof $ref === "string") return this.#reference($ref, path);
    if (Array.isArray(allOf)) {
      const [only, ...more] = allOf;
      if (more.length > 0 || !isRecord(only)) throw new NotAdaptable(`${place(path)} has allOf`);
      const { allOf: _, ...rest } = schema;
      return this.#schema({ ...only, ...rest }, path, depth);
    }
    const choices = Array.isArray(anyOf) ? anyOf : oneOf;
    if (Array.isArray(choices)) {
      this.#choices++;
      const forms = choices.map((one, index) => this.#schema(one, `${path}/anyOf/${index}`, depth));
      return { ...this.#describe(schema), anyOf: forms };
    }
    const type = schema["type"] ?? guessType(schema);
    if (Array.isArray(type) && isClosed) {
      this.#choices++;
      const forms = type.map((one) => this.#typed(pickFor(schema, one), one, path, depth));
      return { ...this.#describe(schema), anyOf: forms };
    }
    return { ...this.#typed(schema, type, path, depth), ...this.#describe(schema) };
  }

  #typed(schema: JsonSchema, type: unknown, path: string, depth: number): JsonSchema {
    const { isClosed, keeps } = this.#rules;
    if (type === undefined) {
      if (isClosed) throw new NotAdaptable(`${place(path)} may be any value`);
      return this.#keep(schema);
    }
    const kept: Record<string, unknown> = { ...this.#keep(schema), type };
    if (type === "object") Object.assign(kept, this.#object(schema, path, depth));
    if (type === "array") {
      const { items, prefixItems } = schema;
      if (isClosed && (prefixItems !== undefined || !isRecord(items)))
        throw new NotAdaptable(`${place(path)} has items of no one form`);
      if (isRecord(items)) kept["items"] = this.#schema(items, `${path}/items`, depth + 1);
      else if (Array.isArray(prefixItems) && keeps.has("prefixItems")) {
        kept["prefixItems"] = prefixItems.map((one, index) =>
          this.#schema(one, `${path}/prefixItems/${index}`, depth + 1),
        );
      }
    }
    return kept;
  }

  #object(schema: JsonSchema, path: string, depth: number): JsonSchema {
    const { isClosed, requiresAll } = this.#rules;
    const { additionalProperties: more, patternProperties } = schema;
    const isOpen = more === true || isRecord(more) || patternProperties !== undefined;
    const listed = isRecord(schema["properties"]) ? schema["properties"] : undefined;
    if (isClosed && (isOpen || (!listed && more !== false)))
      throw new NotAdaptable(`${place(path)} may have properties of any name`);
    const required = Array.isArray(schema["required"]) ? schema["required"] : [];
    const properties = Object.entries(listed ?? {}).map(([name, part]) => {
      const adapted = this.#schema(part, `${path}/properties/${name}`, depth + 1);
      const isOptional = !required.includes(name);
      if (isOptional) this.#optional++;
      return [name, isOptional && requiresAll ? orNull(adapted) : adapted] as const;
    });
    return {
      ...(listed && { properties: Object.fromEntries(properties) }),
      ...(requiresAll
        ? { required: properties.map(([name]) => name) }
        : required.length > 0 && { required }),
      ...(isClosed
        ? { properties: Object.fromEntries(properties), additionalProperties: false }
        : isRecord(more)
          ? { additionalProperties: this.#schema(more, `${path}/additionalProperties`, depth + 1) }
          : more !== undefined && { additionalProperties: more }),
    };
  }

  #reference(ref: string, path: string): JsonSchema {
    const { keyword, name } = parseRef(ref);
    const parts = this.#root[keyword];
    if (ref === "#" && this.#rules.isRecursive) return { $ref: ref };
    if (!isRecord(parts) || !Object.hasOwn(parts, name))
      throw new NotAdaptable(`${place(path)} refers to ${ref}`);
    if (!this.#rules.isRecursive && this.#leadsTo(ref, ref))
      throw new NotAdaptable(`${ref} refers to itself`);
    return { $ref: ref };
  }

  /** Whether the references in what `from` leads to lead to `ref`. */
  #leadsTo(from: string, ref: string, seen = new Set<string>()): boolean {
    if (from === "#") return true;
    const { keyword, name } = parseRef(from);
    const parts = this.#root[keyword];
    const text = JSON.stringify(isRecord(parts) ? parts[name] : undefined) ?? "";
    return [...text.matchAll(/"\$ref":"([^"]*)"/g)].some(([, next = ""]) => {
      if (next === ref) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return this.#leadsTo(next, ref, seen);
    });
  }

  /** The constraints that the service enforces. */
  #keep(schema: JsonSchema): JsonSchema {
    const { keeps } = this.#rules;
    const entries = Object.entries(schema).filter(
      ([keyword, value]) => keeps.has(keyword) && isEnforced(keyword, value),
    );
    const { properties: _, required: __, items: ___, ...kept } = Object.fromEntries(entries);
    return kept;
  }

  /** The description, with the constraints that the service does not enforce. */
  #describe(schema: JsonSchema): JsonSchema {
    const { keeps } = this.#rules;
    const rest = Object.entries(schema).filter(
      ([keyword, value]) =>
        !(keeps.has(keyword) && isEnforced(keyword, value)) &&
        !NOTES.has(keyword) &&
        !STRUCTURE.has(keyword),
    );
    const description = schema["description"];
    const texts = typeof description === "string" ? [description] : [];
    if (rest.length > 0) {
      texts.push(`(${rest.map(([keyword, value]) => `${keyword}: ${write(value)}`).join(", ")})`);
    }
    return texts.length > 0 ? { description: texts.join(" ") } : {};
  }
}

/** A reference to a part of the schema by its name. */
function parseRef(ref: string): { keyword: string; name: string } {
  const [, keyword = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? [];
  return { keyword, name };
}

function isEnforced(keyword: string, value: unknown): boolean {
  return keyword !== "format" || (typeof value === "string" && FORMATS.has(value));
}

function write(value: unknown): string {
  return value instanceof RegExp ? value.source : JSON.stringify(value);
}

function orNull(schema: JsonSchema): JsonSchema {
  const { anyOf, description, ...rest } = schema;
  if (Array.isArray(anyOf)) {
    const hasNull = anyOf.some((one) => isRecord(one) && one["type"] === "null");
    return hasNull ? schema : { ...schema, anyOf: [...anyOf, { type: "null" }] };
  }
  return { ...(description !== undefined && { description }), anyOf: [rest, { type: "null" }] };
}

/** What a schema with several types says of one of them. */
function pickFor(schema: JsonSchema, type: unknown): JsonSchema {
  const { type: _, description: __, ...rest } = schema;
  const allowed = rest["enum"];
  if (!Array.isArray(allowed)) return type === "null" ? {} : rest;
  const values = allowed.filter((value) => typeName(value) === type);
  return { ...rest, enum: values };
}

function guessType(schema: JsonSchema): unknown {
  if ("const" in schema) return typeName(schema["const"]);
  const values = schema["enum"];
  if (Array.isArray(values)) {
    const types = [...new Set(values.map(typeName))];
    return types.length === 1 ? types[0] : types;
  }
  if ("properties" in schema) return "object";
  return "items" in schema ? "array" : undefined;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function place(path: string): string {
  return path === "" ? "it" : path;
}
