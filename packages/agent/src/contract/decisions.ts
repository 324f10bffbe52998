import { isRecord } from "@gyre/ai";
import type { Decision } from "./types.ts";

/** What programs write in place of `args`: without it, the call would run as it is. */
const WRONG_NAMES = ["arguments", "input", "parameters", "params"];

/** Decisions by the ids of calls, as they came, from a page say. Throws on anything else. */
export function readDecisions(value: unknown): Readonly<Record<string, Decision>> {
  if (!isDecisions(value)) throw new TypeError('"decisions" is an object, by the ids of calls.');
  return value;
}

function isDecisions(value: unknown): value is Record<string, Decision> {
  if (!isRecord(value)) return false;
  for (const [id, decision] of Object.entries(value)) checkDecision(id, decision);
  return true;
}

function checkDecision(id: string, value: unknown): void {
  const { type, ...fields } = isRecord(value) ? value : {};
  switch (type) {
    case "approve":
      return checkApproval(id, fields);
    case "result":
      if (isRecord(fields["result"]) && isContent(fields["result"]["content"])) return undefined;
      throw new TypeError(
        `The result for "${id}" has "content", a list of texts, images and files.`,
      );
    case "deny":
    case "wait":
      return undefined;
    default:
      throw new TypeError(`The decision on "${id}" is one of approve, deny, result and wait.`);
  }
}

/** Left out, each of its fields would have something else approved. */
function checkApproval(id: string, fields: Readonly<Record<string, unknown>>): void {
  const wrong = WRONG_NAMES.find((name) => fields[name] !== undefined);
  if (wrong !== undefined) {
    throw new TypeError(`There is no "${wrong}" of an approval: write args.`);
  }
  const { fingerprint, args, keep, direct } = fields;
  const isList = Array.isArray(keep) && keep.every((each) => typeof each === "number");
  if ((keep !== undefined && !isList) || (direct !== undefined && typeof direct !== "boolean")) {
    throw new TypeError(
      `Of the decision on "${id}", "keep" is a list of numbers, and "direct" is true or false.`,
    );
  }
  if (fingerprint !== undefined && typeof fingerprint !== "string") {
    throw new TypeError(`"fingerprint" of the decision on "${id}" is a text.`);
  }
  if (args !== undefined && !isRecord(args)) {
    throw new TypeError(
      `"args" of the decision on "${id}" is an object: what the tool is run with.`,
    );
  }
}

function isContent(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(
      (block) =>
        isRecord(block) &&
        (block["type"] === "image" ||
          block["type"] === "file" ||
          (block["type"] === "text" && typeof block["text"] === "string")),
    )
  );
}
