import { expect, it } from "vitest";
import { checkLoopLines, codeLines, MAX_LOOP_LINES } from "./loop-lines.mjs";
import { plant } from "../shared/tree.ts";

const plantLoop = (lines: number): string =>
  plant({ "packages/agent/src/loop/loop.ts": `// The loop\n\n${"step();\n".repeat(lines)}` });

it("300 lines of code are enough, 301 are too many", () => {
  expect(checkLoopLines(plantLoop(MAX_LOOP_LINES)).problems).toEqual([]);
  expect(checkLoopLines(plantLoop(MAX_LOOP_LINES + 1)).problems).toEqual([
    "packages/agent/src/loop/loop.ts: 301 lines of code of at most 300",
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
  expect(codeLines(source)).toBe(lines);
});
