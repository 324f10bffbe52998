import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { plant } from "../shared/tree.ts";
import { parseTerms } from "./terms.mjs";
import { checkWords, inspectFile, inspectTree, splitSource } from "./words.mjs";

const PAGE = `
| Not | Write | Where |
|---|---|---|
| \`mend\` | fix, \`repair\` | everywhere |
| \`told\` | reported | identifiers, comments |
| \`said\` | output | identifiers |
| \`take up\`, \`taken up\` | resume | everywhere |
| \`Who\` | callers that | comments, prose |
| \`is none\` | is absent | comments |
| \`*serialis*\` | -ize | everywhere |
| \`time-out\` | timeout | everywhere |

| Allowed | Files | Reason |
|---|---|---|
| \`there is none\` | \`**\` | plain English |
| \`serialised\` | \`packages/ai/src/**\` | a field of a service |
| \`"mended"\` | \`packages/ai/src/**\` | a value of a service |
| \`*\` | \`docs/quotes.md\` | quotations |
`;
const terms = parseTerms(PAGE);

function wordsIn(source: string, file = "packages/agent/src/a.ts"): string[] {
  return inspectFile(file, source, terms).findings.map(({ line, word }) => `${line} ${word}`);
}

describe("words", () => {
  it.each([
    ["a part of camelCase", "const toldState = 1;", ["1 told"]],
    [
      "a part of PascalCase and of constants",
      "class ToldState {}\nconst TOLD_AT = 1;",
      ["1 Told", "2 TOLD"],
    ],
    ["not a part of another word", "const stolden = recommend(amended);", []],
    [
      "every regular form",
      "// mend mends mended mending",
      ["1 mend", "1 mends", "1 mended", "1 mending"],
    ],
    ["a phrase in an identifier", "agent.takeUp(); takenUp();", ["1 takeUp", "1 takenUp"]],
    ["a phrase that wraps in a comment", "/**\n * It is taken\n * up here.\n */", ["2 taken up"]],
    ["a phrase that wraps over line comments", "// It is taken\n// up here.", ["1 taken up"]],
    ["no phrase across other signs", "take(up)", []],
    ["a string", 'throw new Error("mend it first");', ["1 mend"]],
    [
      "the text of a template, and the code in it",
      "`mend ${said + `${told}`} mend`",
      ["1 mend", "1 said", "1 told", "1 mend"],
    ],
    ["only where the rule applies", '// It said so.\nf("told");', []],
    ["letters behind an escape", String.raw`/\bmend\b/.test("\nmend")`, ["1 mend", "1 mend"]],
    [
      "a pattern with any letters",
      "deserialise(serialisable);",
      ["1 deserialise", "1 serialisable"],
    ],
    ["a hyphen only as one", "// a time-out timed out", ["1 time-out"]],
  ])("finds %s", (_, source, expected) => {
    expect(wordsIn(source)).toEqual(expected);
  });

  it.each([
    ["// Who aborts has what came.", ["1 Who"]],
    ["/** It is kept. Who aborts has what came. */", ["1 Who"]],
    ["/**\n * Who aborts\n * has what came.\n */", ["2 Who"]],
    ["// Who may write here?", []],
    ["// The user who aborts, and Who they are", []],
    ["const Who = 1;", []],
  ])("the beginning of a sentence in %j", (source, expected) => {
    expect(wordsIn(source)).toEqual(expected);
  });

  it("names of files are identifiers", () => {
    expect(wordsIn("", "packages/house/src/told-shape.ts")).toEqual(["1 told"]);
    expect(wordsIn("", "packages/told/src/shape.ts")).toEqual([]);
  });

  it("pages are prose", () => {
    expect(wordsIn("# Title\n\nMended. Told, said.", "docs/a.md")).toEqual(["3 Mended"]);
  });

  it("exceptions hold for their files and their phrases alone", () => {
    expect(wordsIn("// undefined if there is none; an empty one is none")).toEqual(["1 is none"]);
    expect(wordsIn("serialised", "packages/ai/src/x/a.ts")).toEqual([]);
    expect(wordsIn("serialised", "packages/agent/src/a.ts")).toEqual(["1 serialised"]);
    expect(wordsIn('if (a === "mended") mended("it is mended");', "packages/ai/src/a.ts")).toEqual([
      "1 mended",
      "1 mended",
    ]);
    expect(wordsIn("mended", "docs/quotes.md")).toEqual([]);
  });

  it("say what to write", () => {
    const [finding] = inspectFile("README.md", "a\nmend", terms).findings;
    expect(finding).toEqual({ file: "README.md", line: 2, word: "mend", instead: "fix, repair" });
  });
});

describe("a page of terms that cannot be read", () => {
  it.each([
    ["# Nothing", "no table with the column Not"],
    ["| Not | Write | Where |\n|---|---|---|\n| `a` | b | here |", '"here" is not "everywhere"'],
    ["| Not | Write | Where |\n|---|---|---|\n| a | b | everywhere |", "no `code` in the cell"],
    ["| Allowed | Files | Reason |\n|---|---|---|\n| `a` | `**` | |", "without a reason"],
  ])("%j throws", (page, message) => {
    expect(() => parseTerms(page)).toThrow(message);
  });
});

it("a source is split into identifiers, comments and strings", () => {
  const source = 'a /* b */ = "c\\"d" / e / `f${g({ h: `i` })}j`; // k\n/["/]l/u.test(m) || n';
  const { pieces } = splitSource("a.ts", source);
  const pick = (wanted: string): string[] =>
    pieces.filter(({ place }) => place === wanted).map(({ text }) => text);
  expect(pick("identifiers")).toEqual(["a", "e", "g", "h", "test", "m", "n"]);
  expect(pick("comments")).toEqual(["/* b */", "// k"]);
  expect(pick("prose")).toEqual(['"c\\"d"', "`f${", "`i`", "}j`", '/["/]l/u']);
  for (const { text, start } of pieces) expect(source.startsWith(text, start)).toBe(true);
});

describe("functions named …Of", () => {
  it.each([
    ["export async function* textOf<T>(a: T) {}", ["textOf"]],
    ["const textOf = (a: string): string => a;", ["textOf"]],
    ["const textOf = async a => a, idOf = 1;", ["textOf"]],
    ["const textOf: Reader = function () {};", ["textOf"]],
    [
      "class A { static textOf(a = f()): B { return idOf(a); }\n  #idOf<T>(b: T) {} }",
      ["textOf", "idOf"],
    ],
    ["const a = { textOf(b) {}, idOf: (c) => c, roleOf: textOf };", ["textOf", "idOf"]],
    ["if (textOf(a)) {}\nconst b = c ? textOf(d) : { idOf };", []],
    ["const list = textOf(a);\nswitch (a) { case idOf(b): {} }", []],
    ["interface A { textOf(a: B): C; idOf: (a: B) => C; roleOf: B }", ["textOf", "idOf"]],
    ["const Of = () => 1; function of() {}", []],
  ])("in %j", (code, expected) => {
    expect(splitSource("a.ts", code).functions.map(({ name }) => name)).toEqual(expected);
  });
});

describe("the check", () => {
  const TERMS =
    "| Not | Write | Where |\n|---|---|---|\n| `mend*` | fix | comments, identifiers |\n";

  it("lists each word and each function named …Of; what was generated or built is left out", () => {
    const root = plant({
      "docs/terms.md": TERMS,
      "docs/reference/a.md": "mend",
      "packages/ai/src/a.ts": "mend();\nconst nameOf = () => 1;",
      "packages/ai/dist/a.js": "mend();",
      "node_modules/a/a.js": "mend();",
      "tests/b.mjs": "// It is mended.",
    });
    expect(checkWords(root).problems).toEqual([
      'packages/ai/src/a.ts:1: "mend": write fix',
      'tests/b.mjs:1: "mended": write fix',
      "packages/ai/src/a.ts:2: nameOf: begin with a verb",
    ]);
    expect(inspectTree(root, "packages").findings).toHaveLength(1);
    expect(inspectTree(root, "tests/b.mjs").findings).toHaveLength(1);
  });

  it("allows the accessors that there are", () => {
    const root = plant({
      "docs/terms.md": TERMS,
      "a.ts": "function textOf() {}\nfunction texOf() {}",
    });
    expect(checkWords(root).problems).toEqual(["a.ts:2: texOf: begin with a verb"]);
  });
});

it("the page of this tree can be read", () => {
  const page = readFileSync(new URL("../../docs/terms.md", import.meta.url), "utf8");
  const { rules } = parseTerms(page);
  expect(inspectFile("a.ts", "mended(colours)", { rules, exceptions: [] }).findings).toHaveLength(
    2,
  );
});
