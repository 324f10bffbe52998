import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** What a program loads before the first call: each costs every start. */
function loadedWith(file: string): Set<string> {
  const seen = new Set<string>();
  const ahead = [file];
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (!next.startsWith("./")) continue;
    const source = readFileSync(new URL(next, import.meta.url), "utf8");
    // Types are left out of what is built.
    for (const [, from] of source.matchAll(
      /^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gms,
    )) {
      ahead.push(from ?? "");
    }
  }
  return seen;
}

it.each(["./toolset.ts", "./permissions.ts"])(
  "%s loads what works only when it is needed",
  (file) => {
    const loaded = loadedWith(file);
    expect(loaded).toContain("./sanitise.ts");
    for (const late of [
      "./apply-patch.ts",
      "./bubblewrap.ts",
      "./command-parts.ts",
      "./edit-plan.ts",
      "./fetch.ts",
      "./find-search.ts",
      "./git.ts",
      "./grep-search.ts",
      "./ls.ts",
      "./oracle.ts",
      "./processes.ts",
      "./process-tree.ts",
      "./seatbelt.ts",
      "./shell-run.ts",
      "./task.ts",
      "@vscode/ripgrep",
      "ignore",
      "node:child_process",
      "node:https",
      "node:vm",
    ]) {
      expect(loaded, late).not.toContain(late);
    }
  },
);
