import { describe, expect, it } from "vitest";
import { editorWith } from "../../../testing/editor-driver.ts";
import type { EditorAction } from "../editor/editor.ts";
import { Vim } from "./vim.ts";

/** An editor with the keys of vim; the cursor is where the bar of the text is, in the normal mode. */
function vimWith(marked = "|", prompts: string[] = []) {
  const driven = editorWith({ prompts });
  const { editor, press, type } = driven;
  const at = marked.indexOf("|");
  editor.set(marked.replace("|", ""));
  editor.setMode((...parts) => new Vim(...parts));
  press("escape");
  press("ctrl+home");
  const before = marked.slice(0, at);
  const line = before.split("\n").length;
  type(`${line}G0`);
  const column = before.length - (before.lastIndexOf("\n") + 1);
  if (column > 0) type(`${column}l`);
  return {
    ...driven,
    /** `<esc>`, `<enter>` and so on are keys. */
    keys: (text: string): EditorAction => {
      let action: EditorAction = { type: "none" };
      for (const [part] of text.matchAll(/<[a-z+]+>|[^<]+|</g)) {
        const [, name] = /^<([a-z+]+)>$/.exec(part) ?? [];
        action = name === undefined ? type(part) : press(name === "esc" ? "escape" : name);
      }
      return action;
    },
    label: () => editor.mode?.label,
    /** The text with a bar before the cursor. */
    marked: (): string => {
      const { row = 0, column = 0 } = driven.cursor(80, 20) ?? {};
      const lines = editor.text.split("\n");
      const own = lines[row] ?? "";
      lines[row] = `${own.slice(0, column - 2)}|${own.slice(column - 2)}`;
      return lines.join("\n");
    },
  };
}

describe("commands", () => {
  it.each([
    ["|one two three", "dw", "|two three"],
    ["|one two three", "2dw", "|three"],
    ["|one two three", "d2w", "|three"],
    ["one |two three", "cwx<esc>", "one |x three"],
    ["one (t|wo) three", "ci(x<esc>", "one (|x) three"],
    ['say "o|ne" now', 'da"', "say |now"],
    ["one |two three", "2daw", "on|e"],
    ["one |two three four", "d2aw", "one |four"],
    ["a\n|b\nc", "ddp", "a\nc\n|b"],
    ["a\n|b\nc", "yyP", "a\n|b\nb\nc"],
    ["|a b c d", "dw2.", "|d"],
    ["|aaa", "3rx", "xx|x"],
    ["|aaa", "4rx", "|aaa"],
    ["|abc", "3ihey <esc>", "hey hey hey| abc"],
    ["|a", "2ob<esc>", "a\nb\n|b"],
    ["a\n\nb\n|c", "{", "a\n|\nb\nc"],
    ["a\n\nb\n|c", "2{", "|a\n\nb\nc"],
    ["a\n|b", "2$", "a\n|b"],
    ["|a b\nc d", "2$", "a b\nc |d"],
    ["|one two", "/tw<enter>x", "one |wo"],
    ["|one two", "/twx<backspace><enter>x", "one |wo"],
    ["one |two one", "?one<enter>nN", "|one two one"],
    ["|one two", "d/tw<enter>", "|two"],
    ["|one", "xu<ctrl+r>", "|ne"],
    ["|one two", "veygU$", "|ONE TWO"],
    ["one |two", "viwd", "one| "],
    ["|one\ntwo", "Vjd", "|"],
    ["one t|wo x", "yiwviwp", "one tw|o x"],
    ["one |two x", "yiw0viwp", "tw|o two x"],
    ["a\n|b\nc", "yyVggp", "|b\nc"],
    ["a\n|b", "yyggVGp", "|b"],
    ["|ab cd", "ywVp", "|ab "],
    ["x |y z", "yyviwp", "x \n|x y z\n z"],
    ["|one\n\n  two", "J", "on|e\n  two"],
    ["|one\ntwo", "vjJ", "one| two"],
    ["|(a\nb)", "%d%", "|"],
    ["a|b\ncde", "$di(j", "ab\nc|de"],
    ["a|b\ncde", "$/z<enter>j", "ab\nc|de"],
    ["a|b\ncde", "$fzj", "ab\ncd|e"],
    ["ab|  ", "daw", "ab | "],
    ["a|b () c", "vi(d", "ab | c"],
    ["ab |() c", "vi(d", "ab |) c"],
    ["|x\n\ny", "vdj.", "\n|y"],
    ["|x\n", "vdj.", "\n|"],
    ["|a.b c", "dW", "|c"],
    ["一二|三 x", "daw", "|x"],
  ])("%j after %s is %j", (from, typed, to) => {
    const { keys, marked } = vimWith(from);
    keys(typed);
    expect(marked()).toBe(to);
  });

  it("that are unknown do nothing, and Esc takes back what was typed of one", () => {
    const { editor, keys, label, marked } = vimWith("|one two");
    keys("zQ&@");
    expect(marked()).toBe("|one two");
    keys("2d");
    expect(label()).toBe("NORMAL 2d");
    expect(editor.mode?.takesEscape).toBe(true);
    expect(keys("<esc>").type).toBe("redraw");
    expect(label()).toBe("NORMAL");
    keys("w");
    expect(marked()).toBe("one |two");
  });

  it("of one insertion are undone together, with what removed a text before it", () => {
    const { editor, keys } = vimWith("|one two three");
    keys("cwnew words and more<esc>wx");
    expect(editor.text).toBe("new words and moretwo three".replace("moretwo", "more wo"));
    keys("u");
    expect(editor.text).toBe("new words and more two three");
    keys("u");
    expect(editor.text).toBe("one two three");
  });
});

describe("modes", () => {
  it("are in the label and in the shape of the cursor, and begin with the insert mode", () => {
    const { editor } = editorWith();
    editor.setMode((...parts) => new Vim(...parts));
    const shape = () => editor.rows(40, 10).cursor?.shape;
    expect([editor.mode?.label, shape()]).toEqual(["INSERT", "bar"]);
    const { keys, label } = vimWith("|one");
    expect(label()).toBe("NORMAL");
    keys("v");
    expect(label()).toBe("VISUAL");
    keys("V");
    expect(label()).toBe("VISUAL LINE");
    keys("<esc>");
    expect(label()).toBe("NORMAL");
  });

  it("Esc in the normal mode is for the program", () => {
    const { editor, keys } = vimWith("|one");
    expect(editor.mode?.takesEscape).toBe(false);
    expect(keys("<esc>")).toMatchObject({ type: "unhandled", key: { name: "escape" } });
    expect(keys("i<esc>").type).toBe("redraw");
    expect(keys("v<esc>").type).toBe("redraw");
  });

  it("Enter sends from each of them, and the next prompt begins with the insert mode", () => {
    const { keys, label } = vimWith("|one");
    expect(keys("A two<enter>")).toEqual({ type: "submit", text: "one two", followUp: false });
    expect(label()).toBe("INSERT");
    expect(keys("three<esc><enter>")).toMatchObject({ type: "submit", text: "three" });
  });

  it("what arrives together is taken key by key", () => {
    const { editor, keys, label } = vimWith("|one two");
    keys("wcwmany");
    expect(editor.text).toBe("one many");
    expect(label()).toBe("INSERT");
  });

  it("Esc and a letter that arrive together are both taken", () => {
    const { editor, keys, label, press } = vimWith("|one two");
    keys("Ax");
    press("alt+b");
    keys("D");
    expect(editor.text).toBe("one ");
    press("alt+i");
    expect(label()).toBe("INSERT");
  });

  it("k in the first line and j in the last one are earlier and later prompts", () => {
    const { editor, keys } = vimWith("|draft", ["first", "second"]);
    keys("k");
    expect(editor.text).toBe("second");
    keys("k");
    expect(editor.text).toBe("first");
    keys("jj");
    expect(editor.text).toBe("draft");
    keys("dk2k");
    expect(editor.text).toBe("draft");
  });

  it("can be left, with the text as it is", () => {
    const { editor, keys, press, type } = vimWith("|one");
    keys("x");
    editor.setMode(undefined);
    type("h");
    press("ctrl+_");
    press("ctrl+_");
    expect(editor.text).toBe("one");
  });
});

describe("a selection", () => {
  it("is shown, line ends of empty lines included", () => {
    const { editor, keys } = vimWith("on|e\n\ntwo");
    keys("vjj");
    const { rows } = editor.rows(40, 10);
    expect(rows.map((row) => row.map(({ text }) => text))).toEqual([
      ["› ", "on", "e"],
      ["  ", " "],
      ["  ", "two"],
    ]);
  });
});

describe("a paste", () => {
  const long = "line\n".repeat(20);

  it("is one character for motions and operators, and whole when it is put elsewhere", () => {
    const { editor, keys, paste, shown } = vimWith("|a b");
    paste(long);
    keys("0x$p");
    expect(shown()[0]).toBe("› a b[pasted #1, 20 lines]");
    expect(editor.text).toBe(`a b${long}`);
  });

  it("does not come back in a later prompt as something else", () => {
    const { editor, keys, paste } = vimWith("|");
    paste(long);
    keys("0yl<enter>");
    paste("other\n".repeat(20));
    keys("<esc>p");
    expect(editor.text).toBe("other\n".repeat(20));
  });
});

it("a long prompt costs no more than its line", () => {
  const { editor, keys } = vimWith("|");
  editor.set("a word and more\n".repeat(20_000));
  const startedAt = performance.now();
  keys("ggdwxp~jdd.u");
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});
