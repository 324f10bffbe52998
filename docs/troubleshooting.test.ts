import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { listFiles } from "../scripts/check/words.mjs";
import { root } from "./snippets.ts";

const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
const sources = listFiles(root)
  .filter((path) => /^packages\/.*\/src\/.*(?<!\.test)\.ts$/.test(path))
  .map((path) => joinStrings(readFileSync(join(root, path), "utf8")));

const errors = [...page.matchAll(/^### (.*`.*)$/gm)].flatMap(([, heading = ""]) =>
  [...heading.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text),
);

it("the page has its errors as headings", () => {
  expect(errors.length).toBeGreaterThan(30);
});

it.each(errors)("a source can print %j", (error) => {
  const parts = error.split("…").map((part) => part.trim());
  expect(sources.some((source) => parts.every((part) => source.includes(part)))).toBe(true);
});

/** A message that is written as several strings, as one. */
function joinStrings(source: string): string {
  return source.replaceAll(/["`]\s*\+\s*["`]/g, "").replaceAll(String.raw`\"`, '"');
}
