import xterm from "@xterm/headless";
import fc from "fast-check";
import { expect, it } from "vitest";
import { measureWidth } from "../text/width.ts";
import {
  findColors,
  cursorMovesIn,
  fullClearsIn,
  screenText,
  styledScreen,
} from "./screen-text.ts";
import { clusterWidths } from "./terminal-widths.ts";

async function drawn(text: string, columns = 60): Promise<InstanceType<typeof xterm.Terminal>> {
  const terminal = new xterm.Terminal({ cols: columns, rows: 3, allowProposedApi: true });
  terminal.unicode.register(clusterWidths());
  terminal.unicode.activeVersion = "clusters";
  await new Promise<void>((settle) => terminal.write(text, settle));
  return terminal;
}

it("gives pieces with their looks and columns", async () => {
  const terminal = await drawn("a \x1b[1;36mbold\x1b[m  \x1b[38;2;1;2;3;7m日本\x1b[m \x1b[2mdim");
  expect(styledScreen(terminal)[0]).toEqual([
    { text: "a ", column: 0, columns: 2, look: {} },
    { text: "bold", column: 2, columns: 4, look: { foreground: 6, bold: true } },
    { text: "日本", column: 8, columns: 4, look: { foreground: "#010203", inverse: true } },
    { text: "dim", column: 13, columns: 3, look: { dim: true } },
  ]);
});

it.each([
  ["a", 1],
  ["日", 2],
  ["😀", 2],
  ["👩‍👩‍👧‍👦", 2],
  ["👍🏽", 2],
  ["🇩🇪", 2],
  ["❤️", 2],
  ["e\u0301", 1],
])("draws %s as wide as the program counts it", async (cluster, width) => {
  const terminal = await drawn(`${cluster}|`);
  expect(terminal.buffer.active.cursorX).toBe(width + 1);
  expect(terminal.buffer.active.getLine(0)?.getCell(0)?.getChars()).toBe(cluster);
});

it("agrees with the program on any row of characters that can stand alone", async () => {
  const alphabet = ["a", " ", "é", "日", "한", "😀", "👍🏽", "🇩🇪", "❤️", "e\u0301", "👨‍👩‍👧", "─", "›"];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...alphabet), { maxLength: 25 }), async (parts) => {
      const text = parts.join("");
      const terminal = await drawn(text);
      expect(terminal.buffer.active.cursorX).toBe(measureWidth(text));
      expect(screenText(terminal)[0]).toBe(text.trimEnd());
    }),
    { numRuns: 100 },
  );
});

it("counts what wipes a screen", () => {
  expect(fullClearsIn("\x1b[2J \x1b[3J \x1bc \x1b[H\x1b[J \x1b[1;1H\x1b[0J")).toBe(5);
  expect(fullClearsIn("\x1b[J \x1b[2K \x1b[5;1H\x1b[J \x1b[H text")).toBe(0);
});

it("finds what moves the cursor", () => {
  expect(cursorMovesIn("a\r\n\x1b[1mb\x1b[m\x1b[2A\x1b[K\x1b[?2004h\x1b]0;title\x07")).toEqual([
    "\x1b[2A",
    "\x1b[K",
  ]);
});

it("finds colors, and no bold", () => {
  expect(findColors("\x1b[1;36ma\x1b[m\x1b[7mb\x1b[91mc\x1b[2;3md")).toEqual(["36", "91"]);
});
