import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { editorWith, key, words } from "../../../testing/editor-driver.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import { widthOfRow } from "../terminal/row.ts";

test("shows what is typed behind a sign, the cursor behind it", () => {
  const { type, shown, cursor } = editorWith();
  type("hello 漢字");
  expect(shown()).toEqual(["› hello 漢字"]);
  expect(cursor()).toEqual({ row: 0, column: 12 });
});

test("an empty editor shows the placeholder", () => {
  const { editor, shown, cursor } = editorWith();
  editor.placeholder = "Ask anything";
  expect(shown()).toEqual(["› Ask anything"]);
  expect(shown(9)).toEqual(["› Ask an…"]);
  expect(cursor()).toEqual({ row: 0, column: 2 });
});

test("long and further lines are indented below the sign", () => {
  const { type, press, shown, cursor } = editorWith();
  type("one two three");
  press("shift+enter");
  type("four");
  expect(shown(11)).toEqual(["› one two", "  three", "  four"]);
  expect(cursor(11)).toEqual({ row: 2, column: 6 });
});

test("a line for the shell has a sign of its own", () => {
  const { type, shown, cursor, editor } = editorWith();
  type("!ls");
  expect(shown()).toEqual(["! ls"]);
  expect(cursor()).toEqual({ row: 0, column: 4 });
  expect(editor.text).toBe("!ls");
  editor.set("!!ls");
  expect(shown()).toEqual(["! !ls"]);
});

test("a text that is taller than there is room for is scrolled around the cursor", () => {
  const { editor, press, shown, cursor } = editorWith();
  editor.set("1\n2\n3\n4\n5\n6\n7");
  expect(shown(40, 4)).toEqual(["  ↑ 4 more", "  5", "  6", "  7"]);
  press("up", "up", "up");
  expect(shown(40, 4)).toEqual(["  ↑ 3 more", "  4", "  5", "  ↓ 2 more"]);
  expect(cursor(40, 4)).toEqual({ row: 1, column: 3 });
  press("ctrl+home");
  expect(shown(40, 4)).toEqual(["› 1", "  2", "  3", "  ↓ 4 more"]);
});

test("Enter submits the text without spaces at its end, and remembers it", () => {
  const { type, press, editor, prompts } = editorWith();
  type(" hi  ");
  expect(press("enter")).toEqual({ type: "submit", text: " hi", followUp: false });
  expect([editor.isEmpty, prompts]).toEqual([true, [" hi"]]);
});

test("Alt+Enter submits a follow-up", () => {
  const { type, press } = editorWith();
  type("later");
  expect(press("alt+enter")).toEqual({ type: "submit", text: "later", followUp: true });
});

test("a blank text is not submitted", () => {
  const { type, press } = editorWith();
  expect(press("enter")).toEqual({ type: "none" });
  type("  ");
  expect(press("enter")).toEqual({ type: "none" });
  expect(press("alt+enter")).toEqual({ type: "none" });
});

test("Shift+Enter, Ctrl+J and Enter behind a backslash begin a new line", () => {
  const { type, press, editor } = editorWith();
  type("a");
  press("shift+enter");
  type("b");
  press("ctrl+j");
  type("c\\");
  press("enter");
  type("d");
  expect(editor.text).toBe("a\nb\nc\nd");
});

test("Up on the first row and Down on the last walk through earlier prompts, and the draft comes back", () => {
  const { type, press, editor } = editorWith({ prompts: ["first", "second\nline"] });
  type("draft");
  press("up");
  expect(editor.text).toBe("second\nline");
  press("up");
  expect(editor.text).toBe("first");
  expect(press("up")).toEqual({ type: "none" });
  press("down");
  press("down");
  expect(editor.text).toBe("draft");
  expect(press("down")).toEqual({ type: "none" });
});

test("an earlier prompt that is edited is walked through by its rows first", () => {
  const { type, press, editor, shown } = editorWith({ prompts: ["first", "second\nline"] });
  press("up");
  type("!");
  shown();
  press("up");
  expect(editor.text).toBe("second\nline!");
  press("up");
  expect(editor.text).toBe("first");
});

test("Ctrl+R looks through earlier prompts, narrowing as one types", () => {
  const prompts = ["fix the test", "write docs", "fix\nthe build"];
  const { type, press, editor, shown, cursor } = editorWith({ prompts });
  press("ctrl+r");
  type("FIX".toLowerCase());
  expect(shown()).toEqual(["search: fix", "› fix ⏎ the build", "  fix the test"]);
  expect(cursor()).toEqual({ row: 0, column: 11 });
  press("ctrl+r", "enter");
  expect(editor.text).toBe("fix the test");
  press("ctrl+r");
  type("nothing like it");
  expect(shown()).toEqual(["search: nothing like it", "  nothing found"]);
  press("escape");
  expect(editor.text).toBe("fix the test");
});

test("a long paste is one sign that stands for all of it", () => {
  const { type, paste, press, editor, shown } = editorWith();
  const long = Array.from({ length: 124 }, (_, index) => `line ${index}`).join("\n");
  type("see ");
  paste(long);
  type(" ok");
  expect(shown()).toEqual(["› see [pasted #1, 124 lines] ok"]);
  expect(editor.text).toBe(`see ${long} ok`);
  press("left", "left", "left", "backspace");
  expect(editor.text).toBe("see  ok");
  press("ctrl+_");
  expect(press("enter")).toEqual({ type: "submit", text: `see ${long} ok`, followUp: false });
});

test("a long paste in one line shows its characters; after a submit counting begins again", () => {
  const { paste, press, shown, editor } = editorWith();
  paste("x".repeat(2_001));
  paste("y\n".repeat(11));
  expect(shown(60)).toEqual(["› [pasted #1, 2001 characters][pasted #2, 11 lines]"]);
  press("enter");
  paste("z".repeat(3_000));
  expect(shown(60)).toEqual(["› [pasted #1, 3000 characters]"]);
  expect(editor.text).toBe("z".repeat(3_000));
});

test("a short paste is text, and so is the path of an image", () => {
  const { paste, editor } = editorWith();
  paste("a\nb ");
  paste("'/tmp/my shot.png' file:///tmp/a%20b.jpg");
  expect(editor.text).toBe("a\nb '/tmp/my shot.png' file:///tmp/a%20b.jpg");
});

test("a user cannot type a sign", () => {
  const { paste, type, editor } = editorWith();
  paste("x\n".repeat(20));
  type("\u{e01f0}");
  editor.set("a\u{e01f0}");
  expect(editor.text).toBe("a");
});

test.each([
  "escape",
  "ctrl+c",
  "ctrl+d",
  "alt+up",
  "ctrl+g",
  "ctrl+o",
  "ctrl+l",
  "shift+tab",
  "ctrl+p",
  "pageUp",
])("%s is left to others", (name) => {
  expect(editorWith().press(name)).toEqual({ type: "unhandled", key: key(name) });
});

test("Ctrl+D removes a character where there is one", () => {
  const { type, press, editor } = editorWith();
  type("ab");
  expect(press("home", "ctrl+d")).toEqual({ type: "redraw" });
  expect(editor.text).toBe("b");
});

test("what is set from outside has nothing in it that a terminal obeys", () => {
  const { editor, shown } = editorWith();
  editor.set("a\x1b[31mb\r\nc");
  expect(shown()).toEqual(["› ab", "  c"]);
});

const events: fc.Arbitrary<TerminalEvent> = fc.oneof(
  fc
    .constantFrom("a", "漢", " ", "👍🏽", "!", "/m", "@s")
    .map((text) => ({ type: "text" as const, text })),
  fc.constantFrom("x\ny", "z\n".repeat(15)).map((text) => ({ type: "paste" as const, text })),
  fc
    .constantFrom(
      ...["up", "down", "left", "right", "home", "end", "backspace", "delete", "enter", "tab"],
      ...[
        "shift+enter",
        "ctrl+w",
        "ctrl+u",
        "ctrl+k",
        "ctrl+y",
        "ctrl+_",
        "alt+z",
        "ctrl+r",
        "escape",
      ],
    )
    .map(key),
);

test("whatever is typed, rows fit the screen and the cursor is among them", () => {
  fc.assert(
    fc.property(
      fc.array(events, { maxLength: 40 }),
      fc.integer({ min: 5, max: 30 }),
      fc.integer({ min: 1, max: 12 }),
      (events, columns, maxRows) => {
        const { editor } = editorWith({ request: words("aa", "ab", "/model", "!") });
        for (const event of events) {
          editor.take(event);
          const { rows, cursor } = editor.rows(columns, maxRows);
          expect(rows.length).toBeLessThanOrEqual(maxRows);
          expect(Math.max(...rows.map((each) => widthOfRow(each)))).toBeLessThanOrEqual(columns);
          expect(cursor?.row).toBeGreaterThanOrEqual(0);
          expect(cursor?.row).toBeLessThan(rows.length);
          expect(cursor?.column).toBeLessThan(columns);
        }
      },
    ),
  );
});

describe("a prompt that is put aside", () => {
  it("comes back with its pastes, the last one first", () => {
    const { editor, paste, press, shown, type } = editorWith();
    type("See ");
    paste("line\n".repeat(20));
    editor.attach('"/tmp/a.png"', "picture #1, PNG, 1 KB");
    const [first] = shown(80);
    expect(first).toBe("› See [pasted #1, 20 lines][picture #1, PNG, 1 KB]");
    const { text } = editor;
    press("ctrl+s");
    expect(editor.isEmpty).toBe(true);
    expect(editor.stashed).toBe("See [pasted #1, 20 lines][picture #1, PNG, 1 KB]");
    paste("other\n".repeat(30));
    press("ctrl+s");
    expect(press("ctrl+s")).toEqual({ type: "redraw" });
    expect(editor.text).toBe("other\n".repeat(30));
    expect(press("enter")).toMatchObject({ type: "submit" });
    editor.restoreStash();
    expect(shown(80)).toEqual([first]);
    expect(editor.text).toBe(text);
    expect(editor.stashed).toBeUndefined();
  });

  it("is among the earlier prompts, and does not replace what is typed", () => {
    const { editor, press, prompts, type } = editorWith();
    expect(press("ctrl+s")).toEqual({ type: "none" });
    type("one");
    press("ctrl+s");
    expect(prompts).toEqual(["one"]);
    type("two");
    editor.restoreStash();
    expect(editor.text).toBe("two");
    press("ctrl+u", "ctrl+s");
    expect(editor.text).toBe("one");
  });
});
