import { isRecord } from "@gyre/ai";
import { type Argument, checkArgument, checkSink, isArgument } from "./arguments.ts";
import { explainName } from "./elsewhere.ts";
import { NAMES, type Place } from "./names.ts";

/**
 * Throws on what a compiler would find: a misspelled option, or a value of the wrong form. Names
 * that are near to none pass, since objects with more in them are spread into options.
 */
export function checkShape(kind: Place | Argument, options: unknown): void {
  if (isArgument(kind)) return checkArgument(kind, options);
  if (!isRecord(options)) {
    throw new TypeError(`The options are missing: write ${kind}({ name, description }).`);
  }
  checkSpelling(kind, options);
  checkLists(options);
  for (const part of PARTS) {
    const given = options[part];
    if (part in NAMES[kind] && isRecord(given)) checkSpelling(part, given);
  }
  if (kind !== "tool") checkOutput(options["output"]);
  if (kind === "new Agent") checkSink(options["sink"]);
}

/** Options that have names of their own in them. A run checks its `limits` everywhere. */
const PARTS = ["retry", "context", "watchdog"] as const;

function checkSpelling(kind: Place, options: Readonly<Record<string, unknown>>): void {
  const known = NAMES[kind];
  for (const name in options) {
    if (name in known) continue;
    // A middleware may be an object of a class, with fields of its own.
    if (kind === "middleware" && typeof options[name] !== "function") continue;
    const advice = explainName(kind, name);
    if (advice !== undefined) throw new TypeError(advice);
    // Where the near one is given too, this is something else.
    const near = Object.keys(known).find((each) => isSlip(name, each) && !(each in options));
    if (near === undefined) continue;
    const owner = kind === "tool" ? ` of tool "${String(options["name"])}"` : ` of ${kind}`;
    throw new TypeError(`There is no option "${name}"${owner}. Did you mean ${near}?`);
  }
}

/** Whether two names differ by case, underscores and at most one slip of the keys. */
function isSlip(written: string, meant: string): boolean {
  const [a, b] = [written, meant].map((name) => name.toLowerCase().replaceAll("_", ""));
  if (a === undefined || b === undefined || Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  if (left.length <= 1 && right.length <= 1) return true;
  return left.length === 2 && left === [...right].reverse().join("");
}

/** Options that are lists, and what is in them. */
function checkLists(options: Readonly<Record<string, unknown>>): void {
  for (const name of ["middleware", "fallbackModels", "handoffs", "images", "attachments"]) {
    const list = options[name];
    if (list === undefined) continue;
    if (!Array.isArray(list)) throw new TypeError(`\`${name}\` is a list: write [one, another].`);
    for (const one of list as readonly unknown[]) checkItem(name, one);
  }
}

function checkItem(list: string, one: unknown): void {
  if (list === "middleware" && !isRecord(one)) {
    throw new TypeError(
      "A middleware is an object: write { tool: (call, next) => next() }, { model: ... } or { run: ... }.",
    );
  }
  if (list === "middleware" && isRecord(one)) checkSpelling("middleware", one);
  if (list === "handoffs" && isRecord(one) && "asHandoff" in one) {
    throw new TypeError("An agent is no handoff: write agent.asHandoff({ name, description }).");
  }
  if (list === "images" && (!isRecord(one) || typeof one["data"] !== "string")) {
    throw new TypeError(
      'An image is { type: "image", mimeType, data }, with its bytes as base64: load an address with fetch().',
    );
  }
}

/** Other libraries have an object around the schema. */
function checkOutput(output: unknown): void {
  if (!isRecord(output) || "~standard" in output) return;
  if ("schema" in output || "responseFormat" in output) {
    throw new TypeError("`output` is the schema itself: write output: schema.");
  }
}
