import { expect, it } from "vitest";
import { checkManifests } from "./manifests.mjs";
import { plant, type Tree } from "../shared/tree.ts";

const engines = { node: ">=20.19.0" };
const root = { name: "root", private: true, engines };
const ai = {
  name: "@gyre/ai",
  version: "0.1.0",
  type: "module",
  license: "MIT",
  engines,
  files: ["dist"],
};
const house: Tree = {
  "package.json": root,
  "package-lock.json": { packages: { "": {}, "node_modules/a": { version: "1.0.0" } } },
  "packages/ai/package.json": ai,
  "packages/ai/LICENSE": "MIT",
};

const problems = (more: Tree): readonly string[] =>
  checkManifests(plant({ ...house, ...more })).problems;

it("a house in order has no problems", () => {
  expect(problems({})).toEqual([]);
});

it.each(["^1.0.0", "~1.0.0", ">=1.0.0", "*", "latest", "1.0", "file:../a"])(
  "the version %s is not exact",
  (version) => {
    const problem = `a is ${version}, not an exact version`;
    expect(problems({ "package.json": { ...root, devDependencies: { a: version } } })).toEqual([
      `package.json: ${problem}`,
    ]);
    expect(
      problems({ "packages/ai/package.json": { ...ai, dependencies: { a: version } } }),
    ).toEqual([`packages/ai/package.json: ${problem}`]);
  },
);

it("a peer dependency may be a range", () => {
  const manifest = { ...ai, peerDependencies: { a: ">=1.9.0 <2" } };
  expect(problems({ "packages/ai/package.json": manifest })).toEqual([]);
});

it("the addresses of the project are those of one file, and package.json can be imported", () => {
  const addresses = {
    repository: "https://git.example/a/b",
    homepage: "https://a.example",
    keywords: { "": ["agent"], ai: ["models"] },
  };
  const fields = {
    homepage: "https://a.example",
    repository: { type: "git", url: "git+https://git.example/a/b.git", directory: "packages/ai" },
    bugs: { url: "https://git.example/a/b/issues" },
    keywords: ["agent", "models"],
  };
  const file = { "scripts/shared/addresses.json": addresses };
  const exports = { "./package.json": "./package.json" };
  const manifest = { ...ai, ...fields, exports };
  expect(problems({ ...file, "packages/ai/package.json": manifest })).toEqual([]);
  const other = { ...manifest, homepage: "https://b.example", exports: {} };
  expect(problems({ ...file, "packages/ai/package.json": other })).toEqual([
    'packages/ai/package.json: exports have no "./package.json"',
    "packages/ai/package.json: homepage is not as in scripts/shared/addresses.json: run node scripts/shared/addresses.mjs",
  ]);
});

it("an example asks for exact versions, of our own packages those that are here", () => {
  const dependencies = { "@gyre/ai": "0.2.0", a: "^1.0.0" };
  const file = "examples/page/package.json";
  expect(problems({ [file]: { name: "page", private: true, dependencies } })).toEqual([
    `${file}: @gyre/ai is 0.2.0, but here it is 0.1.0`,
    `${file}: a is ^1.0.0, not an exact version`,
    `${file}: no engines.node`,
  ]);
});

it("our own packages are asked for in the version that they have", () => {
  const manifest = { ...ai, dependencies: { "@gyre/ai": "0.2.0" } };
  expect(problems({ "packages/ai/package.json": manifest })).toEqual([
    "packages/ai/package.json: @gyre/ai is 0.2.0, but here it is 0.1.0",
  ]);
});

it("every package says which Node it needs, and all say the same", () => {
  const { engines: _, ...without } = ai;
  expect(problems({ "packages/ai/package.json": without })).toEqual([
    "packages/ai/package.json: no engines.node",
    "packages/ai/package.json: engines.node is not that of the root (>=20.19.0)",
  ]);
});

it("a public package has a license, a list of files and is a module", () => {
  const bare = { name: "@gyre/ai", version: "0.1.0", engines };
  expect(problems({ "packages/ai/package.json": bare })).toHaveLength(3);
  expect(problems({ "packages/ai/package.json": { ...bare, private: true } })).toEqual([]);
});

it("nothing of ours runs a script when it is installed", () => {
  const manifest = { ...ai, scripts: { postinstall: "node x.js" } };
  expect(problems({ "packages/ai/package.json": manifest })).toEqual([
    "packages/ai/package.json: has a script postinstall",
  ]);
});

it("no dependency runs a script when it is installed, whatever names it", () => {
  const problem = ["package-lock.json: a runs a script when it is installed"];
  const lock = { packages: { "node_modules/b/node_modules/a": { hasInstallScript: true } } };
  expect(problems({ "package-lock.json": lock })).toEqual(problem);
  const installed = { name: "a", scripts: { install: "node-gyp rebuild" } };
  expect(problems({ "node_modules/a/package.json": installed })).toEqual(problem);
});

it("the one that may is let pass", () => {
  const lock = { packages: { "node_modules/fsevents": { hasInstallScript: true } } };
  expect(problems({ "package-lock.json": lock })).toEqual([]);
});

it("the lockfile names no registry", () => {
  const lock = { packages: { "node_modules/a": { resolved: "https://registry.example/a.tgz" } } };
  expect(problems({ "package-lock.json": lock })).toEqual([
    'package-lock.json: a has the address of a registry in "resolved"',
  ]);
});

it("the lockfile has the builds for every platform", () => {
  const locked = (more: object): readonly string[] =>
    problems({
      "package-lock.json": {
        packages: { "node_modules/a": { optionalDependencies: { "a-darwin": "1.0.0" } }, ...more },
      },
    });
  expect(locked({})).toEqual(["package-lock.json: a-darwin is missing, which a may need"]);
  expect(locked({ "node_modules/a-darwin": {} })).toEqual([]);
  expect(locked({ "node_modules/a/node_modules/a-darwin": {} })).toEqual([]);
});

const library = { name: "bench-b", private: true, dependencies: { b: "1.0.0" } };
const measured: Tree = {
  "tests/bench/peers/package.json": { name: "bench", private: true },
  "tests/bench/peers/b/package.json": library,
  "tests/bench/peers/b/package-lock.json": { packages: { "": {}, "node_modules/b": {} } },
};

it("a library that we are measured against may run on any Node and have scripts", () => {
  const lock = { packages: { "node_modules/b": { hasInstallScript: true } } };
  const installed = { name: "b", scripts: { postinstall: "node x.js" } };
  expect(
    problems({
      ...measured,
      "tests/bench/peers/b/package-lock.json": lock,
      "tests/bench/peers/b/node_modules/b/package.json": installed,
    }),
  ).toEqual([]);
});

it.each(["tests/bench/peers", "tests/bench/peers/b"])(
  "what is measured in %s is pinned",
  (folder) => {
    const manifest = { ...library, dependencies: { b: "^1.0.0" } };
    const lock = { packages: { "node_modules/b": { resolved: "https://registry.example/b.tgz" } } };
    expect(
      problems({
        ...measured,
        [`${folder}/package.json`]: manifest,
        [`${folder}/package-lock.json`]: lock,
      }),
    ).toEqual([
      `${folder}/package.json: b is ^1.0.0, not an exact version`,
      `${folder}/package-lock.json: b has the address of a registry in "resolved"`,
    ]);
  },
);

it("a library that we are measured against has a lockfile", () => {
  const { "tests/bench/peers/b/package-lock.json": _, ...without } = measured;
  expect(problems(without)).toEqual([
    "tests/bench/peers/b: no package-lock.json, so each install may bring something else",
  ]);
});
