import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { slimPackage } from "./slim.mjs";

const FILES = {
  "package.json": JSON.stringify({
    type: "module",
    exports: {
      ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
      "./x": "./x.js",
      "./by/*": { types: "./dist/by/*/index.d.ts" },
    },
  }),
  "dist/index.js": `/** Doubles. */\nexport function double(value) {\n  // Twice.\n  return 2 * value;\n}\n`,
  "dist/index.d.ts": `export * from "./deep/types.ts";\n/** Doubles. */\nexport declare function double(value: Twice): number;\n`,
  "dist/deep/types.d.ts": `export type Twice = import("../more.js").More;\n`,
  "dist/more.d.ts": "export type More = number;\n",
  "dist/by/name/index.d.ts": `export * from "./own.ts";\n`,
  "dist/by/name/own.d.ts": "export type Own = number;\n",
  "dist/by/name/inner.d.ts": "export type Inner = number;\n",
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
        ...["by", "deep", "index.d.ts", "index.js", "more.d.ts"],
      ]);
      expect(existsSync(join(folder, "dist/deep/types.d.ts"))).toBe(true);
      expect(readdirSync(join(folder, "dist/by/name")).sort()).toEqual(["index.d.ts", "own.d.ts"]);
    }));

  it("has no source maps of an older build", () =>
    inTemporaryFolder(async (folder) => {
      write(folder, { ...FILES, "dist/index.js.map": "{}" });
      slimPackage(folder);
      expect(existsSync(join(folder, "dist/index.js.map"))).toBe(false);
    }));
});
