import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { plant, type Tree } from "../../../scripts/shared/tree.ts";
import { footprint } from "./footprint.ts";

/** A package whose manifest and code are `bytes` together. */
function weighing(path: string, bytes: number, manifest: object = {}): Tree {
  const json = JSON.stringify(manifest);
  return {
    [`${path}/package.json`]: json,
    [`${path}/lib/code.js`]: " ".repeat(bytes - json.length),
  };
}

const needing = (...names: readonly string[]): object => ({
  dependencies: Object.fromEntries(names.map((name) => [name, "1.0.0"])),
});

it("a package brings itself, what it needs, and what that needs", () => {
  const folder = plant({
    ...weighing("node_modules/a", 1_000, needing("@scope/b")),
    ...weighing("node_modules/@scope/b", 2_000, needing("c")),
    ...weighing("node_modules/c", 4_000),
    ...weighing("node_modules/unneeded", 8_000),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 3, mb: 0.007 });
});

it("what two packages share counts once", () => {
  const folder = plant({
    ...weighing("node_modules/a", 1_000, needing("shared")),
    ...weighing("node_modules/b", 2_000, needing("shared")),
    ...weighing("node_modules/shared", 4_000),
  });
  expect(footprint(folder, ["a", "b", "a"])).toEqual({ packages: 3, mb: 0.007 });
});

it("packages that need each other come to an end", () => {
  const folder = plant({
    ...weighing("node_modules/a", 1_000, needing("b")),
    ...weighing("node_modules/b", 2_000, needing("a", "b")),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 2, mb: 0.003 });
});

it("a package within a package is the one that its owner gets, and counts by itself", () => {
  const folder = plant({
    ...weighing("node_modules/a", 1_000, needing("b", "c")),
    ...weighing("node_modules/a/node_modules/b", 2_000),
    ...weighing("node_modules/b", 4_000),
    ...weighing("node_modules/c", 8_000, needing("b")),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 4, mb: 0.015 });
});

it("a package within a package that is not needed weighs nothing", () => {
  const folder = plant({
    ...weighing("node_modules/a", 1_000),
    ...weighing("node_modules/a/node_modules/b", 2_000),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 1, mb: 0.001 });
});

it("what is installed further up is found as Node finds it", () => {
  const root = plant({
    ...weighing("node_modules/b", 2_000),
    ...weighing("deep/down/node_modules/a", 1_000, needing("b")),
  });
  expect(footprint(join(root, "deep/down"), ["a"])).toEqual({ packages: 2, mb: 0.003 });
});

it("a peer counts unless it is optional", () => {
  const manifest = {
    peerDependencies: { needed: "*", wanted: "*" },
    peerDependenciesMeta: { wanted: { optional: true } },
  };
  const folder = plant({
    ...weighing("node_modules/a", 1_000, manifest),
    ...weighing("node_modules/needed", 2_000),
    ...weighing("node_modules/wanted", 4_000),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 2, mb: 0.003 });
  expect(footprint(folder, ["a", "wanted"])).toEqual({ packages: 3, mb: 0.007 });
});

it("an optional dependency counts where it was installed", () => {
  const manifest = { optionalDependencies: { here: "1.0.0", "for-others": "1.0.0" } };
  const folder = plant({
    ...weighing("node_modules/a", 1_000, manifest),
    ...weighing("node_modules/here", 2_000),
  });
  expect(footprint(folder, ["a"])).toEqual({ packages: 2, mb: 0.003 });
});

it("a link weighs itself, not what it leads to", () => {
  const folder = plant({ ...weighing("node_modules/a", 1_000), "big.bin": " ".repeat(1_000_000) });
  symlinkSync("../../big.bin", join(folder, "node_modules/a/link.bin"));
  expect(footprint(folder, ["a"]).mb).toBeLessThan(0.002);
});

it("a package that is not installed is named, with the folder and what to do", () => {
  const folder = plant({ "package.json": {} });
  expect(() => footprint(folder, ["@gyre/not-there"])).toThrow(
    `@gyre/not-there is not installed in ${folder}. Run npm ci there.`,
  );
});
