import { expect, it } from "vitest";
import { checkPublishable } from "./publishable.mjs";
import { plant } from "../shared/tree.ts";

const manifest = {
  name: "@gyre/ai",
  version: "0.1.0",
  type: "module",
  files: ["dist"],
  exports: { ".": "./dist/index.js" },
};

it("a package whose entry is in the tarball is publishable", async () => {
  const root = plant({
    "packages/ai/package.json": manifest,
    "packages/ai/dist/index.js": "export const a = 1;",
  });
  expect((await checkPublishable(root)).problems).toEqual([]);
});

it("a package whose entry is left out of the tarball is not", async () => {
  const root = plant({
    "packages/ai/package.json": { ...manifest, files: ["src"] },
    "packages/ai/dist/index.js": "export const a = 1;",
  });
  expect((await checkPublishable(root)).problems).toEqual([
    expect.stringContaining("./dist/index.js"),
  ]);
});

it("a private package is not checked", async () => {
  const root = plant({ "packages/ai/package.json": { ...manifest, private: true } });
  expect((await checkPublishable(root)).problems).toEqual([]);
});
