import { readFileSync } from "node:fs";

/** A guard taken out of the built core on purpose: the simulation has to notice. */
export interface Fault {
  name: string;
  /** The rule that is no longer guarded. */
  rule: string;
  /** Built file, from `packages`. */
  file: string;
  /** What stands there, exactly once. */
  find: string;
  replace: string;
  /** Needs more seeds than the short check has; left out of it. */
  slow?: true;
}

/**
 * Reads faults from text that looks like a diff: `--- FILE` comes before the faults of a file,
 * `@@ RULE [slow] @@ NAME` begins a fault, `- ` and `+ ` are lines of the core and what stands in
 * their place.
 */
function parseFaults(text: string): Fault[] {
  const faults: Fault[] = [];
  let file = "";
  for (const line of text.split("\n")) {
    const [, rule, slow, name] = /^@@ (\w+)( slow)? @@ (.+)$/.exec(line) ?? [];
    const fault = faults.at(-1);
    if (line.startsWith("--- ")) file = line.slice(4);
    else if (rule !== undefined && name !== undefined) {
      faults.push({ name, rule, file, find: "", replace: "", ...(slow && { slow: true }) });
    } else if (fault && line.startsWith("- ")) fault.find += `${line.slice(2)} `;
    else if (fault && line.startsWith("+ ")) fault.replace += `${line.slice(2)} `;
    else if (line !== "") throw new Error(`No line of a fault: ${line}`);
  }
  return faults.map((fault) => ({ ...fault, find: fault.find.trim() }));
}

/** At the least one for each rule of the loop that the simulation checks. */
export const FAULTS: readonly Fault[] = parseFaults(
  readFileSync(new URL("../src/faults.diff", import.meta.url), "utf8"),
);
