import { describe, expect, it } from "vitest";
import { readModule } from "./imports.mjs";

const specifiers = (source: string): (string | undefined)[] =>
  readModule(source, "a.ts").imports.map(({ specifier }) => specifier);

const globals = (source: string): string[] =>
  readModule(source, "a.ts").nodeGlobals.map(({ name, line }) => `${name}:${line}`);

describe("the imports of a module", () => {
  it.each([
    ['import a from "x";', "x"],
    ['import "x";', "x"],
    ['import type { A } from "x";', "x"],
    ['export * from "x";', "x"],
    ['export { a } from "x";', "x"],
    ['export type { A } from "x";', "x"],
    ['const a = await import("x");', "x"],
    ['type A = import("x").A;', "x"],
    ['import a = require("x");', "x"],
    ['const a = require("x");', "x"],
    ['/// <reference types="x" />', "x"],
    ["const a = await import(name);", undefined],
  ])("are found in %s", (source, specifier) => {
    expect(specifiers(source)).toEqual([specifier]);
  });

  it("are not what a string or a comment says", () => {
    expect(specifiers(`// import "x"\nconst a = 'import "y"';\nexport const b = 1;`)).toEqual([]);
  });

  it("say where they stand, and whether they are gone at run time", () => {
    const { imports } = readModule('\nimport type { A } from "x";\nimport { b } from "y";', "a.ts");
    expect(imports).toEqual([
      { specifier: "x", typeOnly: true, line: 2 },
      { specifier: "y", typeOnly: false, line: 3 },
    ]);
  });
});

describe("Node's globals", () => {
  it("are found where they are used", () => {
    expect(globals("const a = 1;\nprocess.exit(a);")).toEqual(["process:2"]);
    expect(globals("const a = { b: Buffer.from([]) };")).toEqual(["Buffer:1"]);
    expect(globals("let timer: NodeJS.Timeout;")).toEqual(["NodeJS:1"]);
    expect(globals("x[process];")).toEqual(["process:1"]);
    expect(globals("export { process };")).toEqual(["process:1"]);
  });

  it("are not members, keys, or names that the module declares", () => {
    expect(globals("run.process(); const a = { process: 1 };")).toEqual([]);
    expect(globals("interface A { process: string }")).toEqual([]);
    expect(globals("const { process } = globalThis as { process?: object }; process;")).toEqual([]);
    expect(globals("function f(process: string) { return process; }")).toEqual([]);
    expect(globals("function f({ process = 1 }, [Buffer]) { return process + Buffer; }")).toEqual(
      [],
    );
  });
});
