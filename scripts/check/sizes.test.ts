import { expect, it } from "vitest";
import { root as home } from "../../docs/snippets.ts";
import { bundleForBrowser } from "../release/bundle.mjs";
import { checkSizes } from "./sizes.mjs";
import { plant, type Tree } from "../shared/tree.ts";

const house: Tree = {
  "packages/ai/package.json": { name: "@gyre/ai", version: "0.1.0", exports: "./index.js" },
  "packages/ai/index.js": "export const text = 'hello';",
  "node_modules/@gyre/ai/package.json": { name: "@gyre/ai", exports: "./index.js" },
  "node_modules/@gyre/ai/index.js": "export const text = 'hello';",
};
const withLimits = (limits: unknown): ReturnType<typeof checkSizes> =>
  checkSizes(plant({ ...house, "sizes.json": limits }));

it("what is below its limit is fine, and is shown", async () => {
  const { problems, figures } = await withLimits({ "@gyre/ai": { tarball: 9999, browser: 999 } });
  expect(problems).toEqual([]);
  expect(figures).toHaveLength(2);
});

it("what is above its limit is a problem", async () => {
  const { problems } = await withLimits({ "@gyre/ai": { tarball: 1, browser: 1 } });
  expect(problems).toEqual([
    expect.stringMatching(/^too large: @gyre\/ai tarball +\d+ of at most 1 bytes$/),
    expect.stringMatching(/^too large: @gyre\/ai browser +\d+ of at most 1 bytes$/),
  ]);
});

it("a limit for a package that is gone is a problem", async () => {
  const { problems } = await withLimits({ "@gyre/attic": { tarball: 1 } });
  expect(problems).toEqual(["sizes.json: there is no package @gyre/attic"]);
});

it("what needs Node is not bundled for browsers", async () => {
  await expect(bundleForBrowser('import "node:fs";', plant(house))).rejects.toThrow("node:fs");
});

it("what is not there is not bundled", async () => {
  await expect(bundleForBrowser('import "nowhere";', plant(house))).rejects.toThrow("nowhere");
});

it("a chunk that is loaded later counts", async () => {
  const root = plant({ ...house, "later.js": "export const later = 1;" });
  const chunks = await bundleForBrowser('export const load = () => import("./later.js");', root);
  expect(chunks.map(({ fileName }) => fileName)).toEqual([
    "main.js",
    expect.stringContaining("later"),
  ]);
});

it("a page with an agent has neither the catalog nor a service in it, unless it imports them", async () => {
  const bundle = async (module: string): Promise<string> =>
    (await bundleForBrowser(module, home)).map(({ code }) => code).join("\n");
  const catalog = "claude-haiku-4-5-20251001|Claude Haiku 4.5";
  const service = "https://api.anthropic.com";
  const plain = await bundle('export { Agent, generate } from "@gyre/agent";');
  expect([plain.includes(catalog), plain.includes(service)]).toEqual([false, false]);
  expect(plain).toContain("Names are looked up under Node alone.");
  const all =
    'export { Agent } from "@gyre/agent"; export { findModel } from "@gyre/ai/models"; export { createProviders } from "@gyre/ai/providers";';
  const whole = await bundle(all);
  expect([whole.includes(catalog), whole.includes(service)]).toEqual([true, true]);
});
