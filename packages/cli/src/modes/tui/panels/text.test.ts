import { expect, it } from "vitest";
import type { Key } from "../terminal/key.ts";
import { row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { TextPanel, type TextQuestion } from "./text.ts";
import { NO_COLORS } from "../terminal/theme.ts";

function key(name: string, more: Partial<Key> = {}): Key {
  return { type: "key", name, ctrl: false, alt: false, shift: false, ...more };
}

function createPanel(question: Partial<TextQuestion> = {}): TextPanel {
  return new TextPanel({ title: "Name?", ...question }, NO_COLORS);
}

function shown(panel: TextPanel, columns = 40, rows = 10): string[] {
  return panel.rows(columns, rows).rows.map(textOfRow);
}

it("asks, and gives what was typed", () => {
  const panel = createPanel({ about: [row("It is for you.")] });
  panel.take({ type: "text", text: "Ada" });
  expect(shown(panel)).toEqual([
    "Name?",
    "It is for you.",
    "› Ada",
    "Enter to take it · Esc to leave",
  ]);
  expect(panel.take(key("enter"))).toEqual({ type: "done", value: "Ada" });
  expect(panel.take(key("escape"))).toEqual({ type: "done", value: undefined });
});

it("edits within the line, by whole characters", () => {
  const panel = createPanel({ initial: "ab" });
  panel.take({ type: "text", text: "👩‍👩‍👧c" });
  panel.take(key("left"));
  panel.take(key("backspace"));
  panel.take({ type: "text", text: "日" });
  expect(shown(panel)[1]).toBe("› ab日c");
  expect(panel.rows(40, 10).cursor).toEqual({ row: 1, column: 6 });
  panel.take(key("home"));
  panel.take(key("delete"));
  panel.take(key("end"));
  panel.take({ type: "text", text: " two words" });
  panel.take(key("w", { ctrl: true }));
  expect(shown(panel)[1]).toBe("› b日c two ");
  panel.take(key("u", { ctrl: true }));
  expect(panel.take(key("enter"))).toEqual({ type: "done", value: "" });
});

it("takes a paste as one line", () => {
  const panel = createPanel();
  panel.take({ type: "paste", text: "sk-1\n  sk-2\n" });
  expect(panel.take(key("enter"))).toEqual({ type: "done", value: "sk-1 sk-2" });
});

it("shows nothing of a secret but its length", () => {
  const panel = createPanel({ secret: true });
  panel.take({ type: "paste", text: "sk-123\n" });
  expect(shown(panel).join("\n")).not.toContain("sk");
  expect(shown(panel)[1]).toBe("› ••••••");
  expect(panel.take(key("enter"))).toEqual({ type: "done", value: "sk-123" });
});

it("keeps the cursor in sight in a narrow terminal, and the line in a low one", () => {
  const panel = createPanel({ initial: "0123456789日本語abcdef" });
  for (const columns of [3, 8, 12]) {
    const { cursor, rows } = panel.rows(columns, 10);
    expect(Math.max(...rows.map(widthOfRow))).toBeLessThanOrEqual(columns);
    expect(cursor?.column).toBeLessThan(columns);
  }
  expect(shown(panel, 8)[1]).toBe("› bcdef");
  expect(shown(panel, 80, 1)).toEqual(["› 0123456789日本語abcdef"]);
});
