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
    // These two hold what a toolset keeps for the agent.
    const states = ["./memory/notes/tool.ts", "./memory/todo/tool.ts"];
    const works = [...loaded].filter((name) => /\/(?:tool|run)\.ts$/.test(name));
    expect(works.filter((name) => !states.includes(name))).toEqual([]);
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

it("the catalog loads no tool and no package: every start of a program reads it", () => {
  const loaded = [...loadedWith("./catalog.ts")];
  const more = /\/(?:entry|entries|presentation|locations|changes|loose|result-lines|text)\.ts$/;
  expect(loaded.filter((file) => file !== "./catalog.ts" && !more.test(file))).toEqual([]);
});

it("a tool loads its work with the first call", () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" });
  const runs = files.filter((file) => file.endsWith("/run.ts"));
  expect(runs.length).toBeGreaterThan(10);
  for (const run of runs) {
    expect(loadedWith(`./${posix.dirname(run)}/tool.ts`)).not.toContain(`./${run}`);
  }
});
