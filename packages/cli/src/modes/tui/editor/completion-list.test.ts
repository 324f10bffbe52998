import { expect, test } from "vitest";
import { type EditorParts, editorWith, key, words } from "../../../testing/editor-driver.ts";
import { Editor } from "./editor.ts";
import { COLORS } from "../terminal/theme.ts";

test("the list of completions is below the text, the marked one with a sign", () => {
  const request = words("alpha", { label: "alps", detail: "mountains", text: "alps" });
  const { type, press, shown } = editorWith({ request });
  type("al");
  expect(shown()).toEqual(["› al", "› alpha", "  alps   mountains"]);
  press("down");
  expect(shown()).toEqual(["› al", "  alpha", "› alps   mountains"]);
  press("down");
  expect(shown()[1]).toBe("› alpha");
});

test("at most eight completions are seen, the marked one among them", () => {
  const names = Array.from({ length: 20 }, (_, index) => `a${index}`);
  const { type, press, shown } = editorWith({ request: words(...names) });
  type("a");
  expect(shown()).toHaveLength(9);
  press("up");
  expect(shown().at(-1)).toBe("› a19");
  expect(shown(40, 6)).toHaveLength(4);
});

test("Enter and Tab take the marked completion", () => {
  const { type, press, editor, shown } = editorWith({ request: words("alpha ") });
  type("al");
  expect(press("enter")).toEqual({ type: "redraw" });
  expect([editor.text, shown()]).toEqual(["alpha ", ["› alpha"]]);
  press("ctrl+u");
  type("al");
  press("tab");
  expect(editor.text).toBe("alpha ");
});

test("Enter submits what a completion cannot add to", () => {
  const { type, press } = editorWith({ request: words("alpha ") });
  type("alpha");
  expect(press("enter")).toEqual({ type: "submit", text: "alpha", followUp: false });
});

test("a command is taken and submitted by Enter, and only taken by Tab", () => {
  const request = words({ label: "/model", text: "/model ", next: "submit" });
  const { type, press, editor } = editorWith({ request });
  type("/mo");
  expect(press("tab")).toEqual({ type: "redraw" });
  expect(editor.text).toBe("/model ");
  press("ctrl+u");
  type("/mo");
  expect(press("enter")).toEqual({ type: "submit", text: "/model", followUp: false });
});

test("after a folder the list stays open for what is in it", () => {
  const { type, press, shown } = editorWith({
    request: words({ label: "src/", text: "src/", next: "continue" }, "src/a.ts", "src/b.ts"),
  });
  type("s");
  press("tab");
  expect(shown()).toEqual(["› src/", "› src/", "  src/a.ts", "  src/b.ts"]);
});

test("Escape closes an open list, and is not used otherwise", () => {
  const { type, press, shown } = editorWith({ request: words("alpha") });
  type("a");
  expect(press("escape")).toEqual({ type: "redraw" });
  expect(shown()).toEqual(["› a"]);
  expect(press("escape")).toEqual({ type: "unhandled", key: key("escape") });
});

test("an optional list marks nothing: Enter submits, Tab takes the first", () => {
  const request: EditorParts["request"] = (text) => ({
    ...(words("x", "y")("x", 1) ?? { start: 0, end: 0, load: () => [] }),
    start: text.length,
    end: text.length,
    isOptional: true,
  });
  const { type, press, editor } = editorWith({ request });
  type("/m ");
  press("tab");
  expect(editor.text).toBe("/m x");
  type(" ");
  expect(press("enter")).toMatchObject({ type: "submit", text: "/m x" });
});

test("choices for Tab alone come on Tab", () => {
  const request: EditorParts["request"] = (text) => ({
    start: 0,
    end: text.length,
    onTab: true,
    load: () => [{ label: "path", text: "path " }],
  });
  const { type, press, shown } = editorWith({ request });
  type("p");
  expect(shown()).toEqual(["› p"]);
  press("tab");
  expect(shown()).toEqual(["› p", "› path"]);
});

test("choices that come later are shown then, and those that come too late are dropped", async () => {
  const answers: ((names: string[]) => void)[] = [];
  const { type, shown, changes } = editorWith({
    request: (text) => ({
      start: 0,
      end: text.length,
      load: async () => {
        const names = await new Promise<string[]>((resolve) => answers.push(resolve));
        return names.map((name) => ({ label: name, text: name }));
      },
    }),
  });
  type("a");
  type("b");
  expect(shown()).toEqual(["› ab"]);
  answers[1]?.(["abacus"]);
  answers[0]?.(["stale"]);
  await new Promise(setImmediate);
  expect(shown()).toEqual(["› ab", "› abacus"]);
  expect(changes()).toBe(1);
});

test("the reason for missing choices is shown below the text", async () => {
  const { type, shown, press } = editorWith({
    request: (text) =>
      text === ""
        ? undefined
        : { start: 0, end: 1, load: () => Promise.reject(new Error("no\nway")) },
  });
  type("a");
  await new Promise(setImmediate);
  expect(shown()).toEqual(["› a", "  ! no way"]);
  press("backspace");
  expect(shown()).toEqual(["›"]);
});

test("colors mark the sign and the selected completion", () => {
  const editor = new Editor({
    theme: COLORS,
    completions: { for: words("alpha") },
    history: { prompts: [], add: () => undefined },
    onChange: () => undefined,
  });
  editor.take({ type: "text", text: "a" });
  const { rows } = editor.rows(40, 10);
  expect(rows[0]?.[0]).toEqual({ text: "› ", style: COLORS.accent });
  expect(rows[1]).toEqual([{ text: "› alpha", style: COLORS.selected }]);
});
