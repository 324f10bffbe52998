import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listFiles, splitSource } from "../scripts/check/words.mjs";
import { root } from "./snippets.ts";

const RULES = Array.from({ length: 28 }, (_, index) => `R${index + 1}`);
const page = readFileSync(join(root, "docs/rules.md"), "utf8");
const sections = page.split(/^### /m).slice(1);
/** All but this file, which cites rules that there are not. */
const files = listFiles(root)
  .filter((path) => path !== "docs/rules.test.ts")
  .map((path) => [path, readFileSync(join(root, path), "utf8")] as const);

describe("the rules", () => {
  it("are each defined once, in order", () => {
    expect(sections.map((section) => section.split(":", 1)[0])).toEqual(RULES);
  });

  it("each name tests that exist by that title, one of them with the rule's number", () => {
    const tests = files.map(([path, text]) => (path.endsWith(".test.ts") ? text : "")).join("\n");
    const wrong: string[] = [];
    for (const section of sections) {
      const rule = section.split(":", 1)[0] ?? "";
      const titles = [...section.matchAll(/^- "(.+)"$/gm)].map((match) => match[1] ?? "");
      if (!titles.some((title) => title.startsWith(`${rule}: `))) wrong.push(`${rule} has no test`);
      for (const title of titles) {
        if (!tests.includes(`"${title}"`)) wrong.push(`${rule}: no test is called "${title}"`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("are all there are: no comment, title or page cites another", () => {
    const unknown = files.flatMap(([path, text]) =>
      citedRules(path, text)
        .filter((rule) => !RULES.includes(rule))
        .map((rule) => `${path}: ${rule}`),
    );
    expect(unknown).toEqual([]);
  });

  it.each([
    ["a.ts", "// Obeys R8 and R29 (R1-R4).", ["R8", "R29", "R1", "R4"]],
    ["a.test.ts", 'it("R8: one result")', ["R8"]],
    ["a.md", "`R30` of DeepSeek-R1 and R1-0528", ["R30"]],
    ["a.ts", 'const R31 = "the model R32";', []],
  ])("a citation in %s: %j", (path, text, rules) => {
    expect(citedRules(path, text)).toEqual(rules);
  });
});

/** The numbers that a page or comment has, and those at the beginning of a string, such as a title. */
function citedRules(path: string, text: string): string[] {
  return citingTexts(path, text).flatMap((part) =>
    [...part.matchAll(/(?<!\w|[a-z]-)R\d+\b(?!-\d)/g)].map(([rule]) => rule),
  );
}

function citingTexts(path: string, text: string): string[] {
  if (path.endsWith(".md")) return [text];
  return splitSource(path, text).pieces.flatMap((piece) => {
    if (piece.place === "comments") return [piece.text];
    if (piece.place === "identifiers") return [];
    return /^["`]?R\d+(?=[:"`,])/.exec(piece.text)?.[0] ?? [];
  });
}
