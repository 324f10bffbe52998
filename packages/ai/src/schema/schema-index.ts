import { isRecord } from "../common/records.ts";
import type { JsonSchema } from "./schema.ts";

/** Schemas by their address. */
export type Documents = Readonly<Record<string, JsonSchema>>;

/** Where a schema stands, and how its keywords are to be read there. */
export interface Place {
  /** The address that its references are relative to. */
  readonly base: string;
  /** In draft 7 and before, what stands beside a `$ref` does not count. */
  readonly refAlone: boolean;
  /** The dialect of its document has no keywords such as `type` and `minimum`. */
  readonly unvalidated: boolean;
}

/** The schemas inside a schema, and how references between them are resolved. */
export interface SchemaIndex {
  readonly places: ReadonlyMap<JsonSchema, Place>;
  /** Those with a dynamic anchor, by their address with `#` and that. */
  readonly dynamic: ReadonlyMap<string, JsonSchema>;
  readonly hasDefaults: boolean;
  /** It has keywords that depend on what others have looked at, or on where a schema is used. */
  readonly hasRare: boolean;
  /** A reference to a document that is not there. */
  readonly remoteRef: string | undefined;
  /** Where a reference of `schema` leads; undefined if nowhere. */
  find(ref: string, schema: JsonSchema): unknown;
}

export const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;
export type Reference = (typeof REFERENCES)[number];

const RARE_KEYWORDS = ["unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"];
const SCHEMA_KEYWORDS =
  "items additionalItems contains additionalProperties propertyNames not if then else " +
  "unevaluatedItems unevaluatedProperties";
const LIST_KEYWORDS = "allOf anyOf oneOf prefixItems items";
const MAP_KEYWORDS = "properties patternProperties dependentSchemas dependencies $defs definitions";

export function indexSchema(root: JsonSchema, documents: Documents = {}): SchemaIndex {
  const places = new Map<JsonSchema, Place>();
  /** Schemas by their address, and by that with `#` and their anchor. */
  const named = new Map<string, unknown>([[ROOT, root]]);
  const dynamic = new Map<string, JsonSchema>();
  let hasDefaults = false;
  let hasRare = false;

  function visit(schema: unknown, parent: Place, isOld: boolean): void {
    if (!isRecord(schema) || places.has(schema)) return;
    const refAlone = isOld && typeof schema["$ref"] === "string";
    const id = refAlone ? undefined : schema["$id"];
    const resolved = typeof id === "string" ? resolveUri(id, parent.base) : parent.base;
    const [base, fragment] = splitUri(resolved);
    places.set(schema, { ...parent, base, refAlone });
    // An `$id` that is a fragment alone is the anchor of draft 7.
    if (typeof id === "string") named.set(fragment === "" ? base : resolved, schema);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor === "string") named.set(`${base}#${anchor}`, schema);
    }
    const anchor = schema["$recursiveAnchor"] === true ? "" : schema["$dynamicAnchor"];
    if (typeof anchor === "string") dynamic.set(`${base}#${anchor}`, schema);
    if (Object.hasOwn(schema, "default")) hasDefaults = true;
    if (RARE_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword))) hasRare = true;
    const go = (part: unknown) => visit(part, { ...parent, base }, isOld);
    for (const keyword of SCHEMA_KEYWORDS.split(" ")) go(schema[keyword]);
    for (const keyword of LIST_KEYWORDS.split(" ")) {
      const parts = schema[keyword];
      if (Array.isArray(parts)) parts.forEach(go);
    }
    for (const keyword of MAP_KEYWORDS.split(" ")) {
      const parts = schema[keyword];
      if (isRecord(parts)) Object.values(parts).forEach(go);
    }
  }

  function visitDocument(schema: JsonSchema, base: string): void {
    const dialect = documents[String(schema["$schema"])]?.["$vocabulary"];
    const unvalidated =
      isRecord(dialect) && !Object.keys(dialect).some((name) => name.endsWith("/validation"));
    visit(schema, { base, refAlone: false, unvalidated }, isOldDraft(schema));
  }

  /** The schema at an address. A document is looked into when a reference leads there. */
  function locate(uri: string): unknown {
    const document = documents[uri];
    if (document !== undefined && !named.has(uri)) {
      named.set(uri, document);
      visitDocument(document, uri);
    }
    return named.get(uri);
  }

  function findRemoteRef(): string | undefined {
    for (const [schema, { base }] of places) {
      for (const keyword of REFERENCES) {
        const ref = schema[keyword];
        if (typeof ref === "string" && locate(splitUri(resolveUri(ref, base))[0]) === undefined)
          return ref;
      }
    }
    return undefined;
  }

  visitDocument(root, ROOT);
  const remoteRef = findRemoteRef();
  return {
    places,
    dynamic,
    hasDefaults,
    hasRare,
    remoteRef,
    find(ref, schema) {
      const [id, fragment] = splitUri(resolveUri(ref, places.get(schema)?.base));
      if (fragment !== "" && !fragment.startsWith("/")) return named.get(`${id}#${fragment}`);
      const target = valueAt(locate(id), decodeURIComponent(fragment));
      // A place that no keyword leads to.
      if (isRecord(target)) visit(target, { base: id, refAlone: false, unvalidated: false }, false);
      return target;
    },
  };
}

/** Whether a schema is of draft 7 or before: it says so, or has the word for definitions that these have. */
function isOldDraft(schema: JsonSchema): boolean {
  const { $schema, $defs, definitions } = schema;
  if (typeof $schema === "string") return /\/draft-0[3-7]\//.test($schema);
  return isRecord(definitions) && $defs === undefined;
}

/** The address of a schema without one. */
const ROOT = "schema:/root";

/** An address relative to another, as it is written where it is no address at all. */
export function resolveUri(uri: string, base: string = ROOT): string {
  try {
    return new URL(uri, base).href;
  } catch {
    return uri;
  }
}

/** An address, and what follows its `#`. */
export function splitUri(uri: string): readonly [string, string] {
  const [id = "", fragment = ""] = uri.split("#");
  return [id, fragment];
}

/** The value that a JSON pointer leads to; undefined if it leads nowhere. */
export function valueAt(value: unknown, pointer: string): unknown {
  let current = value;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key))
      return undefined;
    current = (current as JsonSchema)[key];
  }
  return current;
}
