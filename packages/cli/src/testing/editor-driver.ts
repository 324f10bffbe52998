import type { Completion, CompletionRequest } from "../modes/tui/editor/completion.ts";
import { Editor, type EditorAction } from "../modes/tui/editor/editor.ts";
import type { Key } from "../modes/tui/terminal/key.ts";
import { textOfRow } from "../modes/tui/terminal/row.ts";
import { NO_COLORS } from "../modes/tui/terminal/theme.ts";
import type { PanelView } from "../modes/tui/ui/ui.ts";

/** What an editor is made with in a test. */
export interface EditorParts {
  prompts?: string[];
  request?: (text: string, cursor: number) => CompletionRequest | undefined;
}

/** An editor with what a test does to it and sees of it. */
export interface DrivenEditor {
  editor: Editor;
  prompts: readonly string[];
  /** How often something changed by itself. */
  changes: () => number;
  type: (text: string) => EditorAction;
  paste: (text: string) => EditorAction;
  /** `ctrl+a`: what comes of the last key. */
  press: (...names: string[]) => EditorAction;
  shown: (columns?: number, maxRows?: number) => string[];
  cursor: (columns?: number, maxRows?: number) => PanelView["cursor"];
}

/** An editor without colors, and hands to type into it. */
export function editorWith({
  prompts = [],
  request = () => undefined,
}: EditorParts = {}): DrivenEditor {
  let changes = 0;
  const editor = new Editor({
    theme: NO_COLORS,
    completions: { for: request },
    history: { prompts, add: (text) => void prompts.push(text) },
    onChange: () => (changes += 1),
  });
  return {
    editor,
    prompts,
    changes: () => changes,
    type: (text: string): EditorAction => editor.take({ type: "text", text }),
    paste: (text: string): EditorAction => editor.take({ type: "paste", text }),
    press: (...names: string[]): EditorAction => {
      let action: EditorAction = { type: "none" };
      for (const name of names) action = editor.take(key(name));
      return action;
    },
    shown: (columns = 40, maxRows = 20): string[] =>
      editor.rows(columns, maxRows).rows.map((each) => textOfRow(each).trimEnd()),
    cursor: (columns = 40, maxRows = 20) => editor.rows(columns, maxRows).cursor,
  };
}

/** `ctrl+a` as an event. */
export function key(name: string): Key {
  const parts = name.split("+");
  const held = (part: string): boolean => parts.slice(0, -1).includes(part);
  const last = parts.at(-1) ?? "";
  return { type: "key", name: last, ctrl: held("ctrl"), alt: held("alt"), shift: held("shift") };
}

/** Words that begin with what is written. */
export function words(...all: (string | Completion)[]): NonNullable<EditorParts["request"]> {
  return (text) => ({
    start: 0,
    end: text.length,
    load: () =>
      all
        .map((each) => (typeof each === "string" ? { label: each, text: each } : each))
        .filter((each) => text !== "" && each.label.startsWith(text)),
  });
}
