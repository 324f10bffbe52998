import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readSnippets } from "../../docs/snippets.ts";
import { checkReference, missingDocs, referencePages, writeReference } from "./reference.mjs";
import { plant, type Tree } from "../shared/tree.ts";

const manifest = (name: string, ...entries: string[]): object => ({
  name: `@gyre/${name}`,
  description: `The package ${name}`,
  exports: Object.fromEntries([
    [".", { types: "./dist/index.d.ts" }],
    ...entries.map((entry) => [`./${entry}`, { types: `./dist/${entry}.d.ts` }]),
  ]),
});

/** One package with one entry point, and whatever else is there. */
const house = (index: string, more: Tree = {}): string =>
  plant({
    "packages/one/package.json": manifest("one"),
    "packages/one/dist/index.d.ts": index,
    ...more,
  });

const renderPage = async (index: string, more: Tree = {}, page = "one.md"): Promise<string> =>
  (await referencePages(house(index, more))).get(page) ?? "";

/** What stands under a heading. */
const findEntry = (page: string, heading: string): string =>
  page.split(/^#{2,3} /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";

it.each([
  ["function", "export declare function it(a: string): number;", "function it(a: string): number;"],
  [
    "class",
    "export declare class it { a: string; b(): void }",
    "class it {\n  a: string;\n  b(): void;\n}",
  ],
  ["interface", "export interface it {\n    a: string;\n}", "interface it {\n  a: string;\n}"],
  ["type", 'export type it = "a" | "b";', 'type it = "a" | "b";'],
  ["const", "export declare const it = 30;", "const it = 30;"],
])("a %s has a heading of its kind, and its declaration", async (kind, source, shown) => {
  const page = await renderPage(source);
  expect(page).toContain(`- [it](#${kind}-it)`);
  expect(findEntry(page, `${kind} it`)).toContain(`\`\`\`ts\n${shown}\n\`\`\``);
});

it("a doc comment stands above the block, those of members in it", async () => {
  const source =
    "/**\n * What it\n * is.\n */\nexport interface It {\n  /** What a is. */\n  a: string;\n}";
  expect(findEntry(await renderPage(source), "interface It")).toBe(
    "interface It\n\nWhat it\nis.\n\n```ts\ninterface It {\n  /** What a is. */\n  a: string;\n}\n```\n\n" +
      "Source: [index.ts](../../packages/one/src/index.ts).\n",
  );
});

it("the contents have the first sentence of each, whole", async () => {
  const page = await renderPage(
    "/**\n * Reads `a.b. c`, e.g. files,\n * in one go. Then more.\n */\nexport type It = 1;",
  );
  expect(page).toContain("- [It](#type-it): Reads `a.b. c`, e.g. files, in one go.\n");
});

it("sections go by kind, names by the alphabet whatever their case", async () => {
  const page = await renderPage(
    "export type b = 1; export type A = 1; export type c = 1; export declare function z(): void;",
  );
  expect([...page.matchAll(/^#+ (.*)$/gm)].map((match) => match[1])).toEqual([
    "@gyre/one",
    "Functions",
    "function z",
    "Types",
    "type A",
    "type b",
    "type c",
  ]);
});

it.each([
  ["a star", 'export * from "./deep.ts";', "It"],
  ["a star of types", 'export type * from "./deep.ts";', "It"],
  ["a name", 'export { type It } from "./deep.ts";', "It"],
  ["another name", 'export { It as That } from "./deep.ts";', "That"],
  ["an import", 'import { It } from "./deep.ts";\nexport { It };', "It"],
  ["another module", 'export * from "./middle.js";', "It"],
])("what is exported by way of %s is found where it is declared", async (_, index, name) => {
  const page = await renderPage(index, {
    "packages/one/dist/deep.d.ts": "/** Deep down. */\nexport interface It {\n  a: It;\n}",
    "packages/one/dist/middle.d.ts": 'export { It } from "./deep.ts";',
  });
  expect(page).toContain(`- [${name}](#interface-${name.toLowerCase()}): Deep down.`);
  expect(findEntry(page, `interface ${name}`)).toContain(`\ninterface ${name} {`);
  expect(page).toContain("Source: [deep.ts](../../packages/one/src/deep.ts).");
});

it("modules that export each other are read once", async () => {
  const page = await renderPage('export * from "./other.ts";\nexport type Here = 1;', {
    "packages/one/dist/other.d.ts": 'export * from "./index.ts";\nexport type There = Here;',
  });
  expect(page.match(/^### .*$/gm)).toEqual(["### type Here", "### type There"]);
});

it("a name of the module itself takes precedence over one that comes with a star", async () => {
  const page = await renderPage('export * from "./other.ts";\nexport type It = "mine";', {
    "packages/one/dist/other.d.ts": 'export type It = "other";',
  });
  expect(page).toContain('type It = "mine"');
  expect(page).not.toContain('"other"');
});

it("overloads share a heading, and keep the words of each", async () => {
  const page = await renderPage(
    "/** One way. */\nexport declare function it(a: string): void;\n" +
      "/** Another. */\nexport declare function it(a: number): void;",
  );
  expect(page.match(/^### /gm)).toHaveLength(1);
  expect(findEntry(page, "function it")).toContain(
    "One way.\n\n```ts\nfunction it(a: string): void;\n\n/** Another. */\nfunction it(a: number): void;\n```",
  );
});

it("a type and a value of one name share a heading", async () => {
  const page = await renderPage("export declare const It: It;\nexport type It = { a: string };");
  expect(findEntry(page, "const and type It")).toContain(
    "const It: It;\n\ntype It = { a: string };\n",
  );
});

it("private members are left out with their words, a private constructor is not", async () => {
  const page = await renderPage(
    "export declare class It {\n  #private;\n  a: string;\n  /** Hidden. */\n  private b;\n" +
      "  private constructor();\n  private static c;\n  /** Ours. */\n  protected d: string;\n}",
  );
  expect(page).toContain(
    "class It {\n  a: string;\n  private constructor();\n  /** Ours. */\n  protected d: string;\n}",
  );
});

it("a class with nothing to show is shown empty", async () => {
  expect(await renderPage("export declare class It {\n  #private;\n}")).toContain(
    "\nclass It {}\n",
  );
});

it("a code example of a doc comment stays one, whatever is in it", async () => {
  const page = await renderPage(
    "/**\n * Use it so:\n *\n * ```ts\n * @it<string>()\n * ```\n */\nexport declare function it(): void;",
  );
  expect(page).toContain("Use it so:\n\n```ts\n@it<string>()\n```\n\n```ts\nfunction it");
  expect(page).toContain("- [it](#function-it): Use it so.\n");
});

it("an example without a fence gets one", async () => {
  const page = await renderPage("/**\n * It.\n *\n * @example\n * it();\n */\nexport type It = 1;");
  expect(page).toContain("It.\n\nExample:\n\n```ts\nit();\n```\n\n```ts\ntype It = 1;");
});

it("tags become lists and sentences", async () => {
  const page = await renderPage(
    "/**\n * It.\n * @param a - the first\n * @param b the second,\n *   on two lines\n" +
      " * @returns nothing\n * @throws often\n */\nexport declare function it(a: 1, b: 2): void;",
  );
  expect(page).toContain(
    "It.\n\nParameters:\n\n- `a`: the first\n- `b`: the second,\n  on two lines\n\n" +
      "Returns: nothing\n\nThrows: often\n",
  );
});

it("what looks like HTML in the words is shown as it is written", async () => {
  const page = await renderPage(
    "/** A List<T>, `Set<T>`, {@link Map} and 1 < 2. */\nexport type It = 1;",
  );
  expect(page).toContain("A List&lt;T>, `Set<T>`, `Map` and 1 < 2.\n\n```ts");
});

it("leads to what a declaration speaks of, on its page and on others", async () => {
  const page = await renderPage(
    'import type { Far as Away } from "@gyre/two/deep";\nimport type { Near } from "./near.ts";\n' +
      "export { Near };\n" +
      'export declare class It extends Near implements Away { a(b: typeof it, c: import("./near.ts").Beside): It; }\n' +
      "export declare const it: Promise<string>;",
    {
      "packages/one/package.json": manifest("one", "near"),
      "packages/one/dist/near.d.ts": "export declare class Near {}\nexport type Beside = 1;",
      "packages/two/package.json": manifest("two", "deep"),
      "packages/two/dist/index.d.ts": "export {};",
      "packages/two/dist/deep.d.ts": "export interface Far {}",
    },
  );
  expect(findEntry(page, "class It")).toContain(
    "See: [Near](#class-near), [Far](two/deep.md#interface-far), [it](#const-it), " +
      "[Beside](one/near.md#type-beside). Source:",
  );
});

it("a type that cannot be imported is shown with what is made of it", async () => {
  const page = await renderPage(
    'import type { Deeper } from "./deeper.ts";\nexport interface It { a: Part }\n' +
      "/** Of it. */\ninterface Part { b: Deeper }\ntype Unused = 2;\nexport {};",
    { "packages/one/dist/deeper.d.ts": "export type Deeper = 1;" },
  );
  expect(page).toContain(
    "interface It {\n  a: Part;\n}\n\n/** Of it. */\ninterface Part {\n  b: Deeper;\n}\n\ntype Deeper = 1;\n```",
  );
});

it("a name of another package is a link to its page there, not a copy", async () => {
  const page = await renderPage(
    'export { It } from "@gyre/two";\nexport { Theirs } from "far-away";',
    {
      "packages/two/package.json": manifest("two"),
      "packages/two/dist/index.d.ts": "export type It = 1;",
    },
  );
  expect(page).toContain(
    "**From elsewhere**\n\n- [It](two.md#type-it), of `@gyre/two`\n- `Theirs`, of `far-away`\n",
  );
  expect(page).not.toContain("```");
});

it("a name at two entry points is documented at the first", async () => {
  const pages = await referencePages(
    house('export * from "./shared.ts";', {
      "packages/one/package.json": manifest("one", "deep/other"),
      "packages/one/dist/shared.d.ts": "export type It = 1;",
      "packages/one/dist/deep/other.d.ts": 'export * from "../shared.ts";',
    }),
  );
  expect(pages.get("one.md")).toContain("### type It\n");
  expect(pages.get("one/deep/other.md")).toContain("- [It](../../one.md#type-it), of `@gyre/one`");
});

it("the index leads to each entry point and each name", async () => {
  const index = await renderPage(
    "export type b = 1;",
    {
      "packages/one/package.json": manifest("one", "node"),
      "packages/one/dist/node.d.ts": "export interface A {}\nexport declare class C {}",
    },
    "README.md",
  );
  expect(index).toContain(
    "## @gyre/one\n\nThe package one.\n\n- [@gyre/one](one.md): 1 name\n- [@gyre/one/node](one/node.md): 2 names\n",
  );
  expect(index).toContain(
    "## All names\n\n- [A](one/node.md#interface-a): interface of `@gyre/one/node`\n" +
      "- [b](one.md#type-b): type of `@gyre/one`\n- [C](one/node.md#class-c): class of `@gyre/one/node`\n",
  );
});

it("names that differ in case alone have anchors of their own, or are refused", async () => {
  const page = await renderPage("export type It = 1;\nexport declare const it: It;");
  expect(page).toContain("(#type-it)");
  expect(page).toContain("(#const-it)");
  await expect(renderPage("export type It = 1;\nexport type IT = 2;")).rejects.toThrow(
    "@gyre/one exports IT and It, which differ in case alone.",
  );
});

it("a package without entry points has no page", async () => {
  const tree = { "packages/two/package.json": { name: "two" } };
  const pages = await referencePages(house("export type It = 1;", tree));
  expect([...pages.keys()]).toEqual(["README.md", "one.md"]);
});

it("what was not built is named, with what to run", async () => {
  const gone = renderPage('export * from "./gone.ts";');
  await expect(gone).rejects.toThrow(/packages.one.dist.gone\.d\.ts is missing\. Run: npx tsc -b/);
});

it.each(["export default It;", 'export * as all from "./index.ts";'])(
  "%s is refused, not left out",
  async (source) => {
    await expect(renderPage(`type It = 1;\n${source}`)).rejects.toThrow("cannot show `export");
  },
);

it("names without a doc comment are listed by package", async () => {
  const root = house("export type It = 1;\n/** Shown. */\nexport type That = 1;");
  expect(await missingDocs(root)).toEqual(
    new Map([["@gyre/one", ["packages/one/src/index.ts: type It"]]]),
  );
});

it("the check finds nothing in what was just written", async () => {
  const root = house("export type It = 1;");
  await writeReference(root);
  expect(await checkReference(root)).toEqual({ problems: [] });
});

it("the check names a page that is not what the types say, and what to run", async () => {
  const root = house("export type It = 1;");
  await writeReference(root);
  writeFileSync(join(root, "packages/one/dist/index.d.ts"), "export type It = 2;");
  expect(await checkReference(root)).toEqual({
    problems: [
      "docs/reference/one.md is not what the types say. Run: npx tsc -b && node scripts/docs/reference.mjs",
    ],
  });
});

it("the check names a page that is missing, and one of no entry point", async () => {
  const root = house("export type It = 1;");
  await writeReference(root);
  rmSync(join(root, "docs/reference/one.md"));
  writeFileSync(join(root, "docs/reference/two.md"), "");
  const { problems } = await checkReference(root);
  expect(problems).toHaveLength(2);
  expect(problems[0]).toContain("docs/reference/one.md is missing.");
  expect(problems[1]).toContain("docs/reference/two.md is of no entry point.");
});

it("writing takes away the page of an entry point that is gone", async () => {
  const root = house("export type It = 1;", { "docs/reference/old/gone.md": "Gone" });
  await writeReference(root);
  expect(existsSync(join(root, "docs/reference/old/gone.md"))).toBe(false);
  expect(readFileSync(join(root, "docs/reference/one.md"), "utf8")).toContain("type It = 1;");
});

it("no block of these pages is run as a program", () => {
  const block = "```ts\ntype It = 1;\n```\n";
  expect(readSnippets(block, join("docs", "page.md"))).toHaveLength(1);
  expect(readSnippets(block, join("docs", "reference", "one.md"))).toEqual([]);
});
