import { expect, it } from "vitest";
import {
  checkLoopStory,
  countCodeLines,
  MAX_HELPER_LINES,
  MAX_LOOP_LINES,
  MAX_STORY_MODULES,
} from "./loop-story.mjs";
import { plant, type Tree } from "../shared/tree.ts";

const FOLDER = "packages/agent/src/loop";

const link = (name: string): string => `| [${name}](../${FOLDER}/${name}.ts) | x |`;

const plantLoop = (story: readonly string[], helpers: readonly string[], files: Tree): string =>
  plant({
    "docs/loop.md": [
      "# The loop",
      "### Modules of a turn",
      ...story.map(link),
      "### Helpers of a turn",
      ...helpers.map(link),
      "## Shown by",
      link("elsewhere"),
    ].join("\n"),
    ...Object.fromEntries(
      [...story, ...helpers].map((name) => [`${FOLDER}/${name}.ts`, "step();\n"]),
    ),
    ...files,
  });

const steps = (lines: number): string => `// A comment\n\n${"step();\n".repeat(lines)}`;

it("300 lines of code are enough, 301 are too many", () => {
  const plantLines = (lines: number): string =>
    plantLoop(["loop"], [], { [`${FOLDER}/loop.ts`]: steps(lines) });
  expect(checkLoopStory(plantLines(MAX_LOOP_LINES))).toEqual({
    problems: [],
    figures: [
      `${FOLDER}/loop.ts: 300 lines of code of at most 300`,
      "1 modules of a turn of at most 6, 0 helpers",
    ],
  });
  expect(checkLoopStory(plantLines(MAX_LOOP_LINES + 1)).problems).toEqual([
    `${FOLDER}/loop.ts: 301 lines of code of at most 300`,
  ]);
});

it("a turn runs through six modules, not through seven", () => {
  const names = ["loop", "a", "b", "c", "d", "e", "f"];
  expect(checkLoopStory(plantLoop(names.slice(0, MAX_STORY_MODULES), [], {})).problems).toEqual([]);
  expect(checkLoopStory(plantLoop(names, [], {})).problems).toEqual([
    "docs/loop.md: 7 modules of a turn of at most 6",
  ]);
});

it("the page names every module of the folder, and none that does not exist", () => {
  const hidden = { [`${FOLDER}/hidden.ts`]: "", [`${FOLDER}/loop.test.ts`]: "" };
  expect(checkLoopStory(plantLoop(["loop"], ["retry"], hidden)).problems).toEqual([
    `${FOLDER}/hidden.ts is neither a module nor a helper of a turn in docs/loop.md.`,
  ]);
  const root = plant({
    "docs/loop.md": `\n### Modules of a turn\n${link("gone")}`,
    [`${FOLDER}/loop.ts`]: "",
  });
  expect(checkLoopStory(root).problems).toEqual([
    `docs/loop.md: "### Modules of a turn" does not name ${FOLDER}/loop.ts.`,
    `docs/loop.md names ${FOLDER}/gone.ts, which does not exist.`,
    `${FOLDER}/loop.ts is neither a module nor a helper of a turn in docs/loop.md.`,
  ]);
});

it("helpers are small, and import no helpers", () => {
  const files = {
    [`${FOLDER}/retry.ts`]: steps(MAX_HELPER_LINES + 1),
    [`${FOLDER}/repair.ts`]: 'import { a } from "./retry.ts";\nimport { b } from "./loop.ts";\n',
  };
  expect(checkLoopStory(plantLoop(["loop"], ["retry", "repair"], files)).problems).toEqual([
    `${FOLDER}/retry.ts: 101 lines of code of at most 100 for a helper`,
    `${FOLDER}/repair.ts is a helper and imports another one: ${FOLDER}/retry.ts.`,
  ]);
});

it.each([
  ["a();\n\n  \nb();", 2],
  ["// a\na(); // b", 1],
  ["/** a */\n/*\n * b\n */\na();", 1],
  ["/* a */ b();", 1],
  ["/* a */ // b", 0],
  ["/* a\n*/ b(); /* c", 1],
  ["a(); /* b */", 1],
  ["", 0],
])("in %j the code has %i lines", (source, lines) => {
  expect(countCodeLines(source)).toBe(lines);
});
