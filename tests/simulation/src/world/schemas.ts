import type { ToolSchema } from "@gyre/ai";
import type { Random } from "./random.ts";

/** The parameters that simulated tools ask for: none, or a few of the kinds that are coerced. */
export const SCHEMAS: Readonly<Record<"bare" | "typed", ToolSchema>> = {
  bare: { type: "object", properties: {} },
  typed: {
    type: "object",
    properties: {
      n: { type: "integer" },
      tags: { type: "array", items: { type: "string" } },
      opts: { type: "object", properties: { deep: { type: "boolean" } } },
    },
    required: ["n"],
  },
};

const FITTING = ['{"n":1}', '{"n":2,"tags":["a","b"]}', '{"n":3,"opts":{"deep":true}}'];
const COERCIBLE = ['{"n":"42"}', '{"n":4,"tags":"one"}', '{"n":5,"opts":"{\\"deep\\":false}"}'];
const FAILING = ['{"n":"many"}', "{}", '{"n":6,"opts":{"deep":"perhaps"}}'];
const BROKEN = ['{"n":1', '{"n":1}}', "[1]", "nonsense", '{"n":1,"tags":["a"'];

/** The JSON of a call's arguments: mostly right, also nearly right, wrong and broken. */
export function drawArguments(random: Random, parameters: ToolSchema | undefined): string {
  if (random.chance(0.06)) return random.pick(BROKEN);
  if (parameters === undefined) return random.pick(["", "{}", '{"x":1}']);
  if (!isTyped(parameters)) return random.pick(["", "{}", '{"x":1}', '{"x":{"y":[2]}}']);
  const kind = random.weighted({ fitting: 6, coercible: 3, failing: 1 });
  if (kind === "fitting") return random.pick(FITTING);
  return random.pick(kind === "coercible" ? COERCIBLE : FAILING);
}

function isTyped(parameters: unknown): boolean {
  return "required" in (parameters as object);
}

/** Whether a call's arguments are among those that no coercion can save. */
export function cannotFit(schema: ToolSchema, args: Readonly<Record<string, unknown>>): boolean {
  if (!isTyped(schema)) return false;
  const { n, opts } = args as { n?: unknown; opts?: { deep?: unknown } };
  return n === "many" || n === undefined || opts?.deep === "perhaps";
}

/** What is wrong with the arguments that a tool was run with, if anything is. */
export function complaint(schema: ToolSchema, args: unknown): string | undefined {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return "not an object";
  if (!isTyped(schema)) return undefined;
  const { n, tags, opts } = args as Record<"n" | "tags" | "opts", unknown>;
  if (!Number.isInteger(n)) return `n is ${JSON.stringify(n)}`;
  const isTags = Array.isArray(tags) && tags.every((tag) => typeof tag === "string");
  if (tags !== undefined && !isTags) return `tags is ${JSON.stringify(tags)}`;
  if (opts === undefined) return undefined;
  const isObject = typeof opts === "object" && opts !== null;
  const deep = isObject ? (opts as { deep?: unknown }).deep : undefined;
  const isRight = isObject && (deep === undefined || typeof deep === "boolean");
  return isRight ? undefined : `opts is ${JSON.stringify(opts)}`;
}
