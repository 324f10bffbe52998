import { describe, expect, it } from "vitest";
import { plant } from "../shared/tree.ts";
import { checkFolders, MAX_FILES_IN_FOLDER } from "./folders.mjs";

describe("folders", () => {
  it("import each other in one direction", () => {
    const root = plant({
      "packages/ai/src/index.ts": `import { a } from "./a/a.ts"; export { a };`,
      "packages/ai/src/a/a.ts": `import { b } from "../b/b.ts"; export const a = b;`,
      "packages/ai/src/b/b.ts": `export const b = 1;`,
    });
    expect(checkFolders(root).problems).toEqual([]);
  });

  it.each([
    ["a value", `import { a } from "../a/a.ts"; export const b = a;`],
    ["a type", `import type { A } from "../a/a.ts"; export type B = A;`],
    ["a module when needed", `export const b = () => import("../a/a.ts");`],
  ])("that import each other are reported: %s", (_, source) => {
    const root = plant({
      "packages/ai/src/a/a.ts": `import { b } from "../b/b.ts"; export const a = b;`,
      "packages/ai/src/b/b.ts": source,
    });
    expect(checkFolders(root).problems).toEqual([
      "packages/ai/src/a and packages/ai/src/b import each other: packages/ai/src/a/a.ts:1; packages/ai/src/b/b.ts:1",
    ]);
  });

  it("may be imported by tests and test doubles of any folder", () => {
    const root = plant({
      "packages/ai/src/a/a.ts": `import { b } from "../b/b.ts"; export const a = b;`,
      "packages/ai/src/b/b.ts": `export const b = 1;`,
      "packages/ai/src/b/b.test.ts": `import { a } from "../a/a.ts"; a;`,
      "packages/ai/src/testing/double.ts": `import { a } from "../a/a.ts"; export { a };`,
    });
    expect(checkFolders(root).problems).toEqual([]);
  });

  it(`have at most ${MAX_FILES_IN_FOLDER} source files, tests aside`, () => {
    const files = Array.from({ length: MAX_FILES_IN_FOLDER }, (_, i) => `packages/ai/src/f${i}.ts`);
    const tree = Object.fromEntries(files.map((file) => [file, "export {};"]));
    expect(
      checkFolders(plant({ ...tree, "packages/ai/src/x.test.ts": "export {};" })).problems,
    ).toEqual([]);
    expect(checkFolders(plant({ ...tree, "packages/ai/src/x.ts": "export {};" })).problems).toEqual(
      ["packages/ai/src: 17 source files of at most 16. Split it by purpose."],
    );
  });
});
