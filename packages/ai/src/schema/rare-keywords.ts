import { isRecord } from "../common/records.ts";
import {
  below,
  type Check,
  type CompilerParts,
  countWork,
  fail,
  getPattern,
  has,
  itemSchemas,
  type RareChecks,
  toList,
  toMap,
} from "./json-schema.ts";
import { type Reference, REFERENCES, resolveUri, splitUri } from "./schema-index.ts";
import type { JsonSchema } from "./schema.ts";

/** Schemas inside each other that are followed to find out what they look at. */
const MAX_DEPTH = 400;

const UNEVALUATED = [
  ["unevaluatedProperties", isRecord],
  ["unevaluatedItems", Array.isArray],
] as const;

/** `unevaluatedProperties`, `unevaluatedItems`, `$dynamicRef` and `$recursiveRef`. */
export function createRareChecks(parts: CompilerParts): RareChecks {
  const { index, createCheck, resolveTarget, spend } = parts;
  /** The addresses of the schemas that a value is inside of, outermost first. */
  const scope: string[] = [];
  let depth = 0;

  function within(schema: unknown, check: Check): Check {
    const base = isRecord(schema) ? index.places.get(schema)?.base : undefined;
    if (base === undefined) return check;
    return (value, at) => {
      scope.push(base);
      try {
        return check(value, at);
      } finally {
        scope.pop();
      }
    };
  }

  /** The outermost schema with the dynamic anchor that a reference leads to, if it leads to one. */
  function target(schema: JsonSchema, keyword: Reference, fixed: unknown): unknown {
    if (keyword === "$ref") return fixed;
    const uri = resolveUri(String(schema[keyword]), index.places.get(schema)?.base);
    const [id, anchor] = splitUri(uri);
    if (index.dynamic.get(`${id}#${anchor}`) !== fixed) return fixed;
    for (const base of scope) {
      const outer = index.dynamic.get(`${base}#${anchor}`);
      if (outer !== undefined) return outer;
    }
    return fixed;
  }

  function unevaluated(schema: JsonSchema): Check[] {
    return UNEVALUATED.flatMap(([keyword, isOwn]) => {
      const part = schema[keyword];
      if (part === undefined) return [];
      const check = createCheck(part);
      const open: unknown[] = [];
      return (value, at) => {
        // Inside itself it has nothing to add: what is evaluated is being found out.
        if (!isOwn(value) || open.includes(value)) return true;
        const seen = new Set<string>();
        open.push(value);
        try {
          addEvaluated(schema, value, seen, keyword);
        } finally {
          open.pop();
        }
        let ok = true;
        for (const [key, one] of Object.entries(value)) {
          if (seen.has(key) || one === undefined) continue;
          const inner = at && below(at, key);
          ok =
            (part === false && isRecord(value)
              ? fail(inner, "stated", "unknown property", one)
              : check(one, inner)) && ok;
          if (!ok && at === undefined) return false;
        }
        return ok;
      };
    });
  }

  /** Adds the properties or items of `value` that the keywords of `schema` look at, but for the keyword `without`. */
  function addEvaluated(schema: unknown, value: object, seen: Set<string>, without = ""): void {
    if (!isRecord(schema)) return;
    const keys = Object.keys(value);
    spend(countWork(schema) + keys.length);
    const add = (names: readonly string[]): void => names.forEach((name) => seen.add(name));
    const addAllFor = (keyword: string): void => {
      if (keyword !== without && schema[keyword] !== undefined) add(keys);
    };
    if (Array.isArray(value)) {
      const { prefix, rest } = itemSchemas(schema);
      add(rest === undefined ? keys.slice(0, prefix.length) : keys);
      addAllFor("unevaluatedItems");
      if (schema["contains"] !== undefined) {
        const contained = createCheck(schema["contains"]);
        add(keys.filter((key) => contained(value[Number(key)], undefined)));
      }
    } else {
      const properties = toMap(schema["properties"]);
      const patterns = Object.keys(toMap(schema["patternProperties"])).map(getPattern);
      add(keys.filter((key) => has(properties, key) || patterns.some((one) => one.test(key))));
      addAllFor("additionalProperties");
      addAllFor("unevaluatedProperties");
    }
    const follow = (part: unknown): void => {
      if (depth >= MAX_DEPTH || !createCheck(part)(value, undefined)) return;
      depth++;
      try {
        addEvaluated(part, value, seen);
      } finally {
        depth--;
      }
    };
    for (const keyword of REFERENCES) {
      if (typeof schema[keyword] !== "string") continue;
      const led = target(schema, keyword, resolveTarget(schema, keyword));
      within(led, () => {
        follow(led);
        return true;
      })(value, undefined);
    }
    for (const keyword of ["allOf", "anyOf", "oneOf"]) toList(schema[keyword]).forEach(follow);
    for (const [key, part] of Object.entries(toMap(schema["dependentSchemas"]))) {
      if (Object.hasOwn(value, key)) follow(part);
    }
    if (schema["if"] !== undefined) {
      follow(schema["if"]);
      const holds = createCheck(schema["if"])(value, undefined);
      follow(schema[holds ? "then" : "else"] ?? true);
    }
  }

  return { unevaluated, within, target };
}
