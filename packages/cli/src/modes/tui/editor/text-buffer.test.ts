import fc from "fast-check";
import { expect, test } from "vitest";
import { signAt, TextRows } from "./editor-rows.ts";
import { type Motion, TextBuffer } from "./text-buffer.ts";

/** A buffer with a text, the cursor where the bar is. */
function createBuffer(marked: string): TextBuffer {
  const buffer = new TextBuffer();
  const at = marked.indexOf("|");
  buffer.insert(marked.slice(at + 1));
  buffer.move("textStart");
  buffer.insert(marked.slice(0, at));
  return buffer;
}

/** The text with a bar where the cursor is. */
function marked(buffer: TextBuffer): string {
  return `${buffer.text.slice(0, buffer.offset)}|${buffer.text.slice(buffer.offset)}`;
}

const MOTIONS: readonly Motion[] = [
  "left",
  "right",
  "wordLeft",
  "wordRight",
  "blankLeft",
  "lineStart",
  "lineEnd",
  "textStart",
  "textEnd",
];

test.each<[string, Motion, string]>([
  ["ab|c", "left", "a|bc"],
  ["|ab", "left", "|ab"],
  ["a\n|b", "left", "a|\nb"],
  ["a|\nb", "right", "a\n|b"],
  ["a👨‍👩‍👧|b", "left", "a|👨‍👩‍👧b"],
  ["a|e\u0301b", "right", "ae\u0301|b"],
  ["one two-|three", "wordLeft", "one |two-three"],
  ["one| two", "wordRight", "one two|"],
  ["naïve| x", "wordLeft", "|naïve x"],
  ["see src/a.ts |now", "blankLeft", "see |src/a.ts now"],
  ["a\nbc|d", "lineStart", "a\n|bcd"],
  ["a\n|bcd", "lineEnd", "a\nbcd|"],
  ["a\nb|", "textStart", "|a\nb"],
  ["|a\nb", "textEnd", "a\nb|"],
])("from %j, %s leads to %j", (from, motion, to) => {
  const buffer = createBuffer(from);
  buffer.move(motion);
  expect(marked(buffer)).toBe(to);
});

test("a character is removed whole, however many units it has", () => {
  const buffer = createBuffer("a👍🏽🇩🇪|");
  buffer.erase("left");
  expect(marked(buffer)).toBe("a👍🏽|");
  buffer.erase("left");
  expect(marked(buffer)).toBe("a|");
});

test("removing at the beginning of a line joins it with the one before", () => {
  const buffer = createBuffer("a\n|b");
  buffer.erase("left");
  expect(marked(buffer)).toBe("a|b");
});

test("what is killed comes back by yank, several kills together", () => {
  const buffer = createBuffer("one two three|");
  buffer.kill("blankLeft");
  buffer.kill("blankLeft");
  expect(marked(buffer)).toBe("one |");
  buffer.move("lineStart");
  buffer.yank();
  expect(marked(buffer)).toBe("two three|one ");
});

test("killing to the end of a line takes the line end where there is nothing else", () => {
  const buffer = createBuffer("a|b\nc");
  buffer.kill("lineEnd");
  expect(marked(buffer)).toBe("a|\nc");
  buffer.kill("lineEnd");
  expect(marked(buffer)).toBe("a|c");
  buffer.yank();
  expect(marked(buffer)).toBe("ab\n|c");
});

test("killing to the beginning of a line takes the line end before it where there is nothing else", () => {
  const buffer = createBuffer("a\n|b");
  buffer.kill("lineStart");
  expect(marked(buffer)).toBe("a|b");
});

test("typed letters are taken back by words", () => {
  const buffer = new TextBuffer();
  for (const letter of "one two") buffer.insert(letter, "typed");
  buffer.undo();
  expect(marked(buffer)).toBe("one |");
  buffer.undo();
  expect(marked(buffer)).toBe("|");
  expect(buffer.undo()).toBeUndefined();
  buffer.redo();
  buffer.redo();
  expect(marked(buffer)).toBe("one two|");
  expect(buffer.redo()).toBeUndefined();
});

test("letters removed one by one are taken back as one, and a move begins another step", () => {
  const buffer = createBuffer("abcdef|");
  buffer.erase("left");
  buffer.erase("left");
  buffer.move("left");
  buffer.erase("left");
  buffer.erase("right");
  expect(marked(buffer)).toBe("ab|");
  buffer.undo();
  expect(marked(buffer)).toBe("abc|d");
  buffer.undo();
  expect(marked(buffer)).toBe("abcdef|");
});

test("moves between rows keep the column, in rows as they are on the screen", () => {
  const rows = new TextRows(() => "");
  rows.columns = 10;
  const buffer = createBuffer("one two three\nx\nabcdefgh|");
  // one two / three / x / abcdefgh
  expect(buffer.moveRow(-1, rows)).toBe(true);
  expect(marked(buffer)).toBe("one two three\nx|\nabcdefgh");
  buffer.moveRow(-1, rows);
  expect(marked(buffer)).toBe("one two three|\nx\nabcdefgh");
  buffer.moveRow(-1, rows);
  expect(marked(buffer)).toBe("one two| three\nx\nabcdefgh");
  expect(buffer.moveRow(-1, rows)).toBe(false);
  buffer.moveRow(1, rows);
  buffer.moveRow(1, rows);
  buffer.moveRow(1, rows);
  expect(marked(buffer)).toBe("one two three\nx\nabcdefgh|");
});

test("moves between rows count wide characters as two columns", () => {
  const rows = new TextRows(() => "");
  rows.columns = 10;
  const buffer = createBuffer("漢字漢字\nabcd|ef");
  buffer.moveRow(-1, rows);
  expect(marked(buffer)).toBe("漢字|漢字\nabcdef");
});

test("a sign is one character, and like a word", () => {
  const sign = signAt(0);
  const buffer = createBuffer(`a ${sign}|`);
  buffer.erase("left");
  expect(marked(buffer)).toBe("a |");
  buffer.undo();
  buffer.kill("wordLeft");
  expect(marked(buffer)).toBe("a |");
});

const edits = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("insert"),
      text: fc.constantFrom("a", " ", "漢", "\n", "👍🏽", "x y\nz"),
    }),
    fc.record({
      do: fc.constantFrom("move", "erase", "kill"),
      motion: fc.constantFrom(...MOTIONS),
    }),
    fc.record({ do: fc.constantFrom("undo", "redo", "yank", "up", "down") }),
  ),
  { maxLength: 60 },
);

test("whatever is done, the cursor is in the text, and all of it can be taken back", () => {
  fc.assert(
    fc.property(edits, fc.integer({ min: 1, max: 12 }), (steps, columns) => {
      const buffer = new TextBuffer();
      const rows = new TextRows(() => "");
      rows.columns = columns;
      for (const step of steps) {
        if ("text" in step) buffer.insert(step.text, "typed");
        else if ("motion" in step) {
          if (step.do === "move") buffer.move(step.motion);
          else if (step.do === "erase") buffer.erase(step.motion);
          else buffer.kill(step.motion);
        } else if (step.do === "undo") buffer.undo();
        else if (step.do === "redo") buffer.redo();
        else if (step.do === "yank") buffer.yank();
        else buffer.moveRow(step.do === "up" ? -1 : 1, rows);
        const { line, column } = buffer.cursor;
        expect(buffer.lines[line]?.length).toBeGreaterThanOrEqual(column);
        expect(buffer.lines.every((each) => !each.includes("\n"))).toBe(true);
      }
      const whole = buffer.text;
      let count = 0;
      while (buffer.undo()) count += 1;
      expect(buffer.text).toBe("");
      for (; count > 0; count -= 1) buffer.redo();
      expect(buffer.text).toBe(whole);
    }),
  );
});
