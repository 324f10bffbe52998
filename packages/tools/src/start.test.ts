import { readFileSync } from "node:fs";
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
    for (const late of [
      "./edit/apply-patch/tool.ts",
      "./sandbox/bubblewrap.ts",
      "./permissions/command/parts.ts",
      "./edit/plan.ts",
      "./web/fetch/tool.ts",
      "./search/find/run.ts",
      "./git/tool.ts",
      "./search/grep/run.ts",
      "./files/ls/tool.ts",
      "./agents/oracle/tool.ts",
      "./process/processes.ts",
      "./process/process-tree.ts",
      "./sandbox/seatbelt.ts",
      "./shell/run.ts",
      "./agents/task/tool.ts",
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
