import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";

/** What a program loads before the first call: each costs every start. */
function loadedWith(file: string): Set<string> {
  const seen = new Set<string>();
  const ahead = [file];
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (!next.startsWith("./")) continue;
    const folder = posix.dirname(next);
    const source = readFileSync(new URL(next, import.meta.url), "utf8");
    // Types are left out of what is built.
    for (const [, from] of source.matchAll(
      /^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gms,
    )) {
      const isOurs = from?.startsWith(".") ?? false;
      ahead.push(isOurs ? `./${posix.join(folder, from ?? "")}` : (from ?? ""));
    }
  }
  return seen;
}

it.each(["./toolset.ts", "./permissions.ts"])(
  "%s loads what works only when it is needed",
  (file) => {
    const loaded = loadedWith(file);
    expect(loaded).toContain("./catalog.ts");
    // The notes are kept for the agent from the start; small tools are in the catalog.
    const early = loadedWith("./catalog.ts").add("./memory/notes/tool.ts");
    const works = [...loaded].filter((name) => /\/(?:tool|run)\.ts$/.test(name));
    expect(works.filter((name) => !early.has(name))).toEqual([]);
    for (const late of [
      "./edit/plan.ts",
      "./permissions/command/parts.ts",
      "./process/process-tree.ts",
      "./process/processes.ts",
      "./sandbox/bubblewrap.ts",
      "./sandbox/seatbelt.ts",
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

it("the catalog loads no package and nothing that works: every start of a program reads it", () => {
  const loaded = [...loadedWith("./catalog.ts")];
  expect(loaded.filter((name) => !name.startsWith("./"))).toEqual([]);
  // A small tool stands in one file with its entry.
  const light =
    /^\.\/(?:catalog|entries|contract\/.*|text\/text|.*\/(?:entry|tool|presentation|locations|changes))\.ts$/;
  expect(loaded.filter((name) => !light.test(name))).toEqual([]);
});

it("a tool loads its work with the first call", () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" });
  const runs = files.filter((file) => file.endsWith("/run.ts"));
  expect(runs.length).toBeGreaterThan(10);
  for (const run of runs) {
    expect(loadedWith(`./${posix.dirname(run)}/tool.ts`)).not.toContain(`./${run}`);
  }
});
