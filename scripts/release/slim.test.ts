import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { slimPackage } from "./slim.mjs";

const FILES = {
  "package.json": JSON.stringify({
    type: "module",
    exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" }, "./x": "./x.js" },
  }),
  "dist/index.js": `/** Doubles. */\nexport function double(value) {\n  // Twice.\n  return 2 * value;\n}\n`,
  "dist/index.d.ts": `export * from "./deep/types.ts";\n/** Doubles. */\nexport declare function double(value: Twice): number;\n`,
  "dist/deep/types.d.ts": `export type Twice = import("../more.js").More;\n`,
  "dist/more.d.ts": "export type More = number;\n",
  "dist/inner.d.ts": "export declare const inner: number;\n",
};

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

describe("a package that is published", () => {
  it("has no comments in its code, and no declaration that no entry point leads to", () =>
    inTemporaryFolder(async (folder) => {
      write(folder, FILES);
      slimPackage(folder);
      const code = readFileSync(join(folder, "dist/index.js"), "utf8");
      expect(code).not.toMatch(/Doubles|Twice/);
      expect(code).toContain("function double(value)");
      const { double } = await import(pathToFileURL(join(folder, "dist/index.js")).href);
      expect(double(2)).toBe(4);
      expect(readFileSync(join(folder, "dist/index.d.ts"), "utf8")).toContain("/** Doubles. */");
      expect(readdirSync(join(folder, "dist")).sort()).toEqual([
        ...["deep", "index.d.ts", "index.js", "more.d.ts"],
      ]);
      expect(existsSync(join(folder, "dist/deep/types.d.ts"))).toBe(true);
    }));

  it("is left as it is where it has source maps", () =>
    inTemporaryFolder(async (folder) => {
      write(folder, { ...FILES, "dist/index.js.map": "{}" });
      slimPackage(folder);
      expect(readFileSync(join(folder, "dist/index.js"), "utf8")).toBe(FILES["dist/index.js"]);
      expect(existsSync(join(folder, "dist/inner.d.ts"))).toBe(true);
    }));
});
