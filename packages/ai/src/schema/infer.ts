/**
 * The type that a JSON Schema describes, read from the schema's own type: of a schema that is
 * written out, and of what typebox makes, which is JSON Schema with a few marks. It knows what
 * tools use; a keyword that it does not know leaves `unknown`. It is written here, and small, as
 * every program with a tool pays for it in its compiler.
 */
export type InferJson<S> = S extends { readonly "~unsafe": infer T }
  ? T
  : S extends { readonly const: infer Value }
    ? Value
    : S extends { readonly enum: readonly (infer Value)[] }
      ? Value
      : S extends { readonly anyOf: readonly (infer One)[] }
        ? InferOne<One>
        : S extends { readonly oneOf: readonly (infer One)[] }
          ? InferOne<One>
          : S extends { readonly allOf: infer All extends readonly unknown[] }
            ? InferAll<All>
            : S extends { readonly type: infer Name }
              ? InferNamed<Name extends readonly (infer Each)[] ? Each : Name, S>
              : S extends { readonly properties: unknown }
                ? InferObject<S>
                : unknown;

type InferOne<One> = One extends unknown ? InferJson<One> : never;

type InferAll<All extends readonly unknown[]> = All extends readonly [infer First, ...infer Rest]
  ? InferJson<First> & InferAll<Rest>
  : unknown;

interface Scalars {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
  bigint: bigint;
  undefined: undefined;
}

type InferNamed<Name, S> = Name extends keyof Scalars
  ? Scalars[Name]
  : Name extends "array"
    ? InferArray<S>
    : Name extends "object"
      ? InferObject<S>
      : unknown;

type InferArray<S> = S extends { readonly prefixItems: infer Items }
  ? InferTuple<Items>
  : S extends { readonly items: infer Items }
    ? Items extends readonly unknown[]
      ? InferTuple<Items>
      : InferJson<Items>[]
    : unknown[];

type InferTuple<Items> = { -readonly [Index in keyof Items]: InferJson<Items[Index]> };

type InferObject<S> = S extends { readonly properties: infer P }
  ? InferProperties<P, RequiredNames<S, P>>
  : S extends { readonly patternProperties: infer P }
    ? Record<string, InferJson<P[keyof P]>>
    : S extends { readonly additionalProperties: infer Value }
      ? Record<string, Value extends boolean ? unknown : InferJson<Value>>
      : Record<string, unknown>;

/** typebox marks the properties that may be missing; a JSON Schema lists the others. */
type RequiredNames<S, P> = S extends { readonly "~kind": string }
  ? { [Name in keyof P]: P[Name] extends { readonly "~optional": true } ? never : Name }[keyof P]
  : S extends { readonly required: readonly (infer Name)[] }
    ? Name
    : never;

type InferProperties<P, Required> = Flat<
  {
    -readonly [Name in keyof P as Name extends Required ? Name : never]: InferJson<P[Name]>;
  } & {
    -readonly [Name in keyof P as Name extends Required ? never : Name]?: InferJson<P[Name]>;
  }
>;

type Flat<T> = { [Name in keyof T]: T[Name] };
