import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { createRandom, type Random } from "../../testing/command-lines.ts";
import { parseCommandLine, type Word } from "../command/parse.ts";
import { compilePattern, expandWord, type Scope, UNKNOWN, type Values } from "./expand.ts";
import { createBudget, findByPattern } from "./search.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-expand-")));
  mkdirSync(join(root, "src/lib"), { recursive: true });
  for (const name of ["a.ts", "b.ts", "src/a.ts", "src/lib/deep.ts", ".env", "x y", "[a]"])
    writeFileSync(join(root, name), "");
});
afterAll(() => rmSync(root, { recursive: true }));

const VARIABLES: Readonly<Record<string, string>> = {
  a: "src",
  b: "a.ts",
  two: "one two",
  dots: "..",
  star: "*.ts",
  path: "src/lib/deep.ts",
  empty: "",
};

const scope = (): Scope => ({
  lookup: (name) => {
    const value = VARIABLES[name];
    return value === undefined ? UNKNOWN : { values: [value], isOpen: false };
  },
  substitute: (script): Values => {
    const text = /^echo ([\w./]+)$/.exec(script)?.[1];
    return text === undefined ? UNKNOWN : { values: [text], isOpen: false };
  },
  glob: (pattern) => findByPattern(pattern, { root, cwd: ".", budget: createBudget() }),
});

/** The second word of a line, as it is parsed. */
function parseWord(text: string): Word | undefined {
  const { commands, unclear } = parseCommandLine(`: ${text}`);
  const words = commands.at(-1)?.words ?? [];
  return unclear === undefined && words.length === 2 ? words[1] : undefined;
}

const expand = (text: string): Values => {
  const word = parseWord(text);
  if (!word) throw new Error(`"${text}" is no word.`);
  return expandWord(word, scope());
};

it.each([
  ["$a/a.ts", ["src/a.ts"]],
  ['"$a"/"a.ts"', ["src/a.ts"]],
  ["${a}/${b}", ["src/a.ts"]],
  ["$two", ["one", "two"]],
  ["sr*//lib//deep.ts", ["src/lib/deep.ts"]],
  ['"$two"', ["one two"]],
  ["{$a,x}.ts", ["src.ts", "x.ts"]],
  ["{1..3}", ["1", "2", "3"]],
  ["src/{a,lib/{deep,flat}}.ts", ["src/a.ts", "src/lib/deep.ts", "src/lib/flat.ts"]],
  ["*.ts", ["a.ts", "b.ts"]],
  ["$star", ["a.ts", "b.ts"]],
  ['"$star"', ["*.ts"]],
  ["s*/*.ts", ["src/a.ts"]],
  ["[ab].ts", ["a.ts", "b.ts"]],
  ["no*", ["no*"]],
  ["$(echo src)/a.ts", ["src/a.ts"]],
  ["`echo src`", ["src"]],
  ["${path%/*}", ["src/lib"]],
  ["${path##*/}", ["deep.ts"]],
  ["${path%.ts}.js", ["src/lib/deep.js"]],
  ["${path/lib/bin}", ["src/bin/deep.ts"]],
  [".$(echo .)", [".."]],
  ["$empty", []],
  ['"$empty"', [""]],
])("%s becomes what it becomes in bash", (text, values) => {
  expect(expand(text)).toEqual({ values, isOpen: false });
});

it.each(["$unknown", "$(date)", "${path^^}", "~ada", "<(ls)x$a"])("%s is not known", (text) => {
  expect(expand(text).isOpen).toBe(true);
});

it("a default is one of the values", () => {
  expect(expand("${unknown:-$dots}")).toEqual({ values: [".."], isOpen: true });
});

it("patterns that could take forever are not compared", () => {
  expect(compilePattern("a*a*a*a*a*a*a*b")).toBeUndefined();
  expect(compilePattern("[z-a]")).toBeUndefined();
  expect(compilePattern("a**b?[!x]")?.test("aXXbYz")).toBe(true);
});

const PIECES = [
  "$a",
  "${a}",
  '"$a"',
  "$two",
  '"$two"',
  "$star",
  '"$star"',
  "$empty",
  "${path%/*}",
  "${path#*/}",
  "${path##*.}",
  "${b%.ts}",
  "${a/s/t}",
  "$(echo src)",
  "`echo a`",
  "a",
  "b",
  "src",
  ".ts",
  "/",
  ".",
  "..",
  "*",
  "?",
  "[ab]",
  "[!a]",
  "{a,b}",
  "{a,$b}",
  "{1..2}",
  "{,x}",
  "'q'",
  '"d"',
  "\\*",
  "\\ ",
  "x\\ y",
  "''",
  "-",
  "=",
  "~",
];

const sortTexts = (texts: readonly string[]): string[] =>
  texts.toSorted((a, b) => (a < b ? -1 : Number(a > b)));

function makeWord(next: Random): string {
  const count = 1 + Math.floor(next() * 4);
  return Array.from({ length: count }, () => PIECES[Math.floor(next() * PIECES.length)]).join("");
}

it("random words become what bash makes of them, where they are known", { tags: "long" }, () => {
  const seed = pickSeed();
  const next = createRandom(seed);
  const words = Array.from({ length: countCases(1_000, 20_000, "GYRE_WORDS") }, () =>
    makeWord(next),
  );
  const known = words.flatMap((text) => {
    // What is outside of the folder is not looked at.
    const word = /^~|=~|\.\./.test(text) ? undefined : parseWord(text);
    const expanded = word && expandWord(word, scope());
    const isElsewhere = expanded?.values.some((value) => value.startsWith("/"));
    return expanded && !expanded.isOpen && !isElsewhere ? [{ text, values: expanded.values }] : [];
  });
  const assigned = Object.entries(VARIABLES).map(([name, value]) => `${name}='${value}'`);
  const script = [
    ...assigned,
    ...known.map(({ text }) => `set -- ${text}; printf '%s\\0' "$#" "$@"`),
  ].join("\n");
  const { stdout, error } = spawnSync("bash", ["--norc", "--noprofile", "-s"], {
    cwd: root,
    input: script,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error) throw error;
  const printed = stdout.split("\0");
  let at = 0;
  const wrong: string[] = [];
  for (const { text, values } of known) {
    const count = Number(printed[at]);
    const real = printed.slice(at + 1, at + 1 + count);
    at += count + 1;
    const isSame = sortTexts(real).join("\0") === sortTexts(values).join("\0");
    if (!isSame)
      wrong.push(`${text}: ${JSON.stringify(values)}, and in bash ${JSON.stringify(real)}`);
  }
  console.log(`${known.length} of ${words.length} words are known, GYRE_SEED=${seed}`);
  expect(wrong.slice(0, 20), `with GYRE_SEED=${seed}`).toEqual([]);
});
