import { nearNames } from "@gyre/ai";
import { DEFAULT_KEYS, isKeyAction, listKeys, parseKey, SHARING } from "./key-actions.ts";

const ACTIONS = Object.keys(DEFAULT_KEYS);
const FIXED = "ctrl+c";

/** What is wrong with the keys of a file, each without its end. */
export function keyProblems(value: Readonly<Record<string, unknown>>): readonly string[] {
  const problems: string[] = [];
  const taken = new Map<string, string>();
  for (const [action, keys] of Object.entries(value)) {
    if (!isKeyAction(action)) {
      const near = nearNames(action, ACTIONS);
      const known =
        near.length > 0
          ? `may "${near.join('" or "')}" be meant`
          : `there are ${ACTIONS.join(", ")}`;
      problems.push(`nothing is called ${JSON.stringify(action)}; ${known}`);
      continue;
    }
    if (!isKeys(keys)) {
      problems.push(`${action} must be a key such as "ctrl+x", or a list of keys; [] for none`);
      continue;
    }
    for (const text of listKeys(keys)) {
      const problem = describeKey(action, text, taken);
      if (problem !== undefined) problems.push(problem);
    }
  }
  return problems;
}

function describeKey(action: string, text: string, taken: Map<string, string>): string | undefined {
  const key = parseKey(text);
  const shown = JSON.stringify(text);
  if (key === undefined) {
    const example = `a key is written as "ctrl+x", "alt+enter", "shift+tab" or "f5"`;
    const isLetter = [...text].length === 1;
    return `${action} is ${shown}, which is ${isLetter ? "typed as text" : "no key"}: ${example}`;
  }
  if (key === FIXED) {
    return `${action} is ${shown}, which always clears the prompt, interrupts and leaves`;
  }
  const other = taken.get(key);
  if (other !== undefined && !SHARING.has(action) && !SHARING.has(other)) {
    return `${shown} is set for both ${other} and ${action}`;
  }
  taken.set(key, action);
  return undefined;
}

function isKeys(value: unknown): value is string | readonly string[] {
  return (
    typeof value === "string" ||
    (Array.isArray(value) && value.every((key) => typeof key === "string"))
  );
}
