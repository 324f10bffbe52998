import { expect, it } from "vitest";
import { ARROWS, checkLayers } from "./layers.mjs";
import { plant, type Tree } from "../shared/tree.ts";

const ai = {
  name: "@gyre/ai",
  exports: {
    ".": "./dist/index.js",
    "./files": { "@gyre/source": "./src/node/files.ts", default: "./dist/node/files.js" },
    "./node": "./dist/node/index.js",
    "./providers": "./dist/providers/index.js",
  },
};
const agent = { name: "@gyre/agent", dependencies: { "@gyre/ai": "0.1.0" }, exports: { ".": "x" } };
const house: Tree = {
  "packages/ai/package.json": ai,
  "packages/ai/src/index.ts": 'export * from "./text.ts";',
  "packages/ai/src/text.ts": "export const text = 1;",
  "packages/ai/src/node/index.ts": 'import "node:fs"; import "../text.ts"; process.exit();',
  "packages/agent/package.json": agent,
  "packages/agent/src/index.ts": 'import type { A } from "@gyre/ai";',
};

const problems = (more: Tree): readonly string[] =>
  checkLayers(plant({ ...house, ...more })).problems;

it("a house in order has no problems", () => {
  expect(problems({})).toEqual([]);
});

it("an arrow that is not in the list is a problem, for types too", () => {
  const upwards = 'import type { Agent } from "@gyre/agent";';
  expect(problems({ "packages/ai/src/text.ts": upwards })).toEqual([
    "packages/ai/src/text.ts:1: imports @gyre/agent, but there is no arrow ai -> agent",
  ]);
});

it("no arrow goes round in a circle", () => {
  const reaches = (from: string, to: string): boolean =>
    (ARROWS[from] ?? []).some((next) => next === to || reaches(next, to));
  for (const room of Object.keys(ARROWS)) expect(reaches(room, room), room).toBe(false);
});

it.each([
  ['import "node:fs";', "imports node:fs of Node in code for browsers"],
  ['import "fs/promises";', "imports fs/promises of Node in code for browsers"],
  ['const fs = await import("node:fs");', "imports node:fs of Node in code for browsers"],
  ['/// <reference types="node" />', "imports node of Node in code for browsers"],
  ['import "./node/index.ts";', "imports ./node/index.ts, which is for Node, in code for browsers"],
  ["process.cwd();", "uses Node's global process in code for browsers"],
  ["Buffer.from([]);", "uses Node's global Buffer in code for browsers"],
  ["await import(where);", "imports what no check can see: the specifier is not a string"],
  ['import "../../agent/src/index.ts";', "imports ../../agent/src/index.ts, outside its package"],
  ['import "@gyre/ai";', "imports its own package by name (@gyre/ai)"],
  ['import "@gyre/nowhere";', "imports @gyre/nowhere, and there is no such package"],
  ['import "left-pad";', "imports left-pad, which packages/ai/package.json does not declare"],
])("in ai, %s is a problem", (source, problem) => {
  expect(problems({ "packages/ai/src/text.ts": source })).toEqual([
    `packages/ai/src/text.ts:1: ${problem}`,
  ]);
});

it.each([
  ["@gyre/ai/src/text.ts", "which is no entry point of @gyre/ai"],
  ["@gyre/ai/dist/text.js", "which is no entry point of @gyre/ai"],
  ["@gyre/ai/node", "which is not for code for browsers"],
  ["@gyre/ai/files", "which is not for code for browsers"],
  ["@gyre/ai/providers", "but knows no provider"],
])("in agent, to import %s is a problem", (specifier, problem) => {
  expect(problems({ "packages/agent/src/index.ts": `import "${specifier}";` })).toEqual([
    `packages/agent/src/index.ts:1: imports ${specifier}, ${problem}`,
  ]);
});

it("a dependency that nothing imports is a problem", () => {
  const manifest = { ...ai, dependencies: { "left-pad": "1.3.0" } };
  expect(problems({ "packages/ai/package.json": manifest })).toEqual([
    "packages/ai/package.json: declares left-pad, which nothing in src imports",
  ]);
});

it("a devDependency is good for types alone", () => {
  const manifest = { ...ai, devDependencies: { wire: "1.0.0" } };
  const withSource = (source: string): readonly string[] =>
    problems({ "packages/ai/package.json": manifest, "packages/ai/src/text.ts": source });
  expect(withSource('import type { A } from "wire";')).toEqual([]);
  expect(withSource('import { a } from "wire";')).toHaveLength(1);
});

it("a room that has no arrows yet is a problem", () => {
  expect(problems({ "packages/attic/package.json": { name: "@gyre/attic" } })).toEqual([
    "packages/attic: scripts/check/layers.mjs has no arrows for this room",
  ]);
});

it("tests may import what they like", () => {
  const source = 'import "node:fs"; import "vitest";';
  expect(problems({ "packages/ai/src/text.test.ts": source })).toEqual([]);
  expect(problems({ "packages/ai/src/testing/world.ts": source })).toEqual([]);
});

it("a package that is published as a bundle may have what it needs as devDependencies", () => {
  const tools = { name: "@gyre/tools", dependencies: { rg: "1.0.0" }, exports: { ".": "x" } };
  const cli = {
    name: "gyre",
    bundled: true,
    dependencies: { rg: "1.0.0" },
    devDependencies: { "@gyre/tools": "0.1.0" },
  };
  const more = {
    "packages/tools/package.json": tools,
    "packages/tools/src/index.ts": 'import "rg";',
    "packages/cli/src/main.ts": 'import "@gyre/tools";',
  };
  expect(problems({ ...more, "packages/cli/package.json": cli })).toEqual([]);
  const { bundled: _, ...plain } = cli;
  expect(problems({ ...more, "packages/cli/package.json": plain })).toEqual([
    "packages/cli/src/main.ts:1: imports @gyre/tools, which packages/cli/package.json does not declare",
    "packages/cli/package.json: declares rg, which nothing in src imports",
  ]);
  const other = { ...cli, dependencies: { rg: "2.0.0" } };
  expect(problems({ ...more, "packages/cli/package.json": other })).toEqual([
    "packages/cli/package.json: declares rg, which nothing in src imports",
  ]);
});

it.each([
  ['import type { Io } from "../core/io.ts";', "imports nothing of the rest of its package"],
  [
    'import "@gyre/server";',
    "imports only @gyre/agent, @gyre/ai, @gyre/mcp, @gyre/tools, @gyre/sessions",
  ],
])("in a folder that could be a package, %s is a problem", (source, problem) => {
  const found = problems({
    "packages/coding/package.json": { name: "@gyre/coding", exports: { ".": "x" } },
    "packages/coding/src/core/io.ts": "export interface Io {}",
    "packages/coding/src/conversation/view.ts": 'import { a } from "./a.ts"; a;',
    "packages/coding/src/conversation/a.ts": source,
  });
  expect(found).toEqual([
    expect.stringContaining(`packages/coding/src/conversation/a.ts:1: imports`),
  ]);
  expect(found[0]).toContain(problem);
});
