import fc from "fast-check";
import { expect, test } from "vitest";
import { fuzzyRank } from "./fuzzy.ts";

const PATHS = [
  "src/",
  "src/index.ts",
  "src/index.test.ts",
  "src/deep/down/index.ts",
  "src/server/inbox.ts",
  "docs/reindexing.md",
  "src/userProfile.ts",
  "src/pull_request.ts",
  "README.md",
];
const best = (query: string): string | undefined => fuzzyRank(query, PATHS, 5)[0];

test.each([
  ["srcidx", "src/index.ts"],
  ["index", "src/index.ts"],
  ["deepindex", "src/deep/down/index.ts"],
  ["up", "src/userProfile.ts"],
  ["pr", "src/pull_request.ts"],
  ["readme", "README.md"],
  ["src", "src/"],
  ["idx test", "src/index.test.ts"],
])("%j finds %s first", (query, path) => {
  expect(best(query)).toBe(path);
});

test("letters out of order are not found", () => {
  expect(fuzzyRank("xedni", PATHS, 5)).toEqual([]);
});

test("capitals count where the query has some", () => {
  expect(fuzzyRank("README", PATHS, 5)).toEqual(["README.md"]);
  expect(fuzzyRank("INDEX", PATHS, 5)).toEqual([]);
});

test("an empty query gives the first ones, and a limit is kept", () => {
  expect(fuzzyRank("", PATHS, 2)).toEqual(PATHS.slice(0, 2));
  expect(fuzzyRank("s", PATHS, 3)).toHaveLength(3);
});

test("finds all that hold the letters in their order, and nothing else", () => {
  const texts = fc.array(
    fc.string({ unit: fc.constantFrom("a", "b", "C", "/", "."), maxLength: 12 }),
  );
  const query = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(texts, query, (texts, query) => {
      const pattern = new RegExp([...query].join(".*"), "i");
      const found = fuzzyRank(query, texts, texts.length + 1);
      expect(found.sort()).toEqual(texts.filter((text) => pattern.test(text)).sort());
    }),
  );
});
