import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Key, TerminalEvent } from "../terminal/key.ts";
import { QUIET_MS } from "./quiet-time.ts";
import { row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { SelectPanel } from "./select.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";
import type { PanelQuestion } from "../ui/ui.ts";

const COLUMNS = 60;
const ROWS = 10;

function key(name: string, more: Partial<Key> = {}): Key {
  return { type: "key", name, ctrl: false, alt: false, shift: false, ...more };
}

function text(typed: string): TerminalEvent {
  return { type: "text", text: typed };
}

function numbered(count: number): PanelQuestion<number>["choices"] {
  return Array.from({ length: count }, (_, index) => ({ value: index, label: `choice ${index}` }));
}

function createPanel(question: Partial<PanelQuestion<number>> = {}): SelectPanel<number> {
  return new SelectPanel({ title: "Which?", choices: numbered(3), ...question }, NO_COLORS);
}

function shown(panel: SelectPanel<number>, rows = ROWS, columns = COLUMNS): string[] {
  return panel.rows(columns, rows).rows.map(textOfRow);
}

function marked(panel: SelectPanel<number>, rows = ROWS): string | undefined {
  return shown(panel, rows).find((line) => line.startsWith("› "));
}

describe("what is seen", () => {
  it("has the title, what it is about, the choices with a mark, and a hint", () => {
    const about = [row("Think twice.")];
    expect(shown(createPanel({ about, start: 1 }))).toEqual([
      "Which?",
      "Think twice.",
      "  1 choice 0",
      "› 2 choice 1",
      "  3 choice 2",
      "↑↓ and Enter, or its number · Esc to leave",
    ]);
  });

  it("shows how many are above and below", () => {
    const panel = createPanel({ choices: numbered(20), start: 10 });
    const lines = shown(panel, 6);
    expect(lines.at(-2)).toBe("  ↑ 8 more  ↓ 9 more");
    expect(marked(panel, 6)).toContain("choice 10");
  });

  it("shows the detail whole beside a long label", () => {
    const choices = [{ value: 1, label: "word ".repeat(40), detail: "2 h ago" }];
    const [, line = ""] = shown(createPanel({ choices }));
    expect(line.endsWith("…  2 h ago")).toBe(true);
  });

  it("strips what a terminal would obey, and stays on one row", () => {
    const choices = [{ value: 1, label: "a\x1b[31mb\nc", detail: "d\x07" }];
    expect(shown(createPanel({ choices }))[1]).toBe("› 1 ab c  d");
  });

  it("counts the lines of what it is about that have no room", () => {
    const about = Array.from({ length: 20 }, (_, index) => row(`line ${index}`));
    const lines = shown(createPanel({ about }), 8);
    expect(lines).toHaveLength(8);
    expect(lines[3]).toBe("… 18 more lines");
    expect(lines[4]).toBe("› 1 choice 0");
  });

  it("keeps title and marked choice down to four rows, and never takes more than it has", () => {
    fc.assert(
      fc.property(
        fc.record({
          count: fc.integer({ min: 1, max: 40 }),
          start: fc.integer({ min: 0, max: 50 }),
          about: fc.array(fc.string(), { maxLength: 6 }),
          rows: fc.integer({ min: 0, max: 20 }),
          columns: fc.integer({ min: 1, max: 100 }),
          filter: fc.boolean(),
        }),
        ({ count, start, about, rows, columns, filter }) => {
          const panel = new SelectPanel(
            {
              title: "Which of 項目?",
              about: about.map((line) => row(line)),
              choices: numbered(count),
              start,
              filter,
            },
            COLORS,
          );
          const view = panel.rows(columns, rows);
          expect(view.rows.length).toBeLessThanOrEqual(rows);
          for (const each of view.rows) expect(widthOfRow(each)).toBeLessThanOrEqual(columns);
          if (rows < 4 || columns < 4) return;
          const lines = view.rows.map(textOfRow);
          expect(lines[0]?.startsWith("Wh")).toBe(true);
          expect(lines.filter((line) => line.startsWith("› "))).toHaveLength(1);
        },
      ),
    );
  });
});

describe("what is typed", () => {
  it("moves the mark by arrows, around the ends", () => {
    const panel = createPanel();
    panel.take(key("up"));
    expect(marked(panel)).toContain("choice 2");
    panel.take(key("down"));
    panel.take(key("n", { ctrl: true }));
    expect(marked(panel)).toContain("choice 1");
    panel.take(key("p", { ctrl: true }));
    expect(marked(panel)).toContain("choice 0");
  });

  it("moves by pages and to the ends, and stays in the list", () => {
    const panel = createPanel({ choices: numbered(30) });
    shown(panel, 8);
    panel.take(key("pageDown"));
    expect(marked(panel, 8)).toContain("choice 5");
    panel.take(key("end"));
    panel.take(key("pageDown"));
    expect(marked(panel, 8)).toContain("choice 29");
    panel.take(key("pageUp"));
    expect(marked(panel, 8)).toContain("choice 24");
    panel.take(key("home"));
    expect(marked(panel, 8)).toContain("choice 0");
  });

  it("takes the marked choice with Enter", () => {
    const panel = createPanel();
    panel.take(key("down"));
    expect(panel.take(key("enter"))).toEqual({ type: "done", value: 1 });
  });

  it("takes a choice by its number", () => {
    expect(createPanel().take(text("2"))).toEqual({ type: "done", value: 1 });
    expect(createPanel().take(text("9"))).toEqual({ type: "none" });
  });

  it("takes a choice by its key, and by no number that is not shown", () => {
    const choices = [
      { value: 1, label: "yes", key: "y" },
      { value: 2, label: "no", key: "n" },
    ];
    expect(createPanel({ choices }).take(text("n"))).toEqual({ type: "done", value: 2 });
    expect(createPanel({ choices }).take(text("Y"))).toEqual({ type: "done", value: 1 });
    expect(createPanel({ choices }).take(text("2"))).toEqual({ type: "none" });
  });

  it("narrows the list down, whole words before letters in order", () => {
    const choices = [
      { value: 1, label: "claude-opus-4-5" },
      { value: 2, label: "opus45" },
      { value: 3, label: "gpt-5", search: "openai" },
    ];
    const panel = createPanel({ choices, filter: true });
    panel.take(text("Opus45"));
    expect(shown(panel).slice(1, 4)).toEqual(["/ Opus45", "› opus45", "  claude-opus-4-5"]);
    panel.take(key("u", { ctrl: true }));
    panel.take(text("openai"));
    expect(panel.take(key("enter"))).toEqual({ type: "done", value: 3 });
  });

  it("says where nothing has what was typed, and takes nothing then", () => {
    const panel = createPanel({ filter: true });
    panel.take(text("zzz"));
    expect(shown(panel)[2]).toBe("  nothing has this");
    expect(panel.take(key("enter"))).toEqual({ type: "none" });
  });

  it("clears what was typed with the first Esc, and leaves with the second", () => {
    const panel = createPanel({ filter: true });
    panel.take(text("1"));
    expect(panel.take(key("escape"))).toEqual({ type: "redraw" });
    expect(shown(panel)).toContain("  choice 2");
    expect(panel.take(key("escape"))).toEqual({ type: "done", value: undefined });
  });

  it("has the cursor behind what was typed", () => {
    const panel = createPanel({ filter: true });
    panel.take(text("日本"));
    expect(panel.rows(COLUMNS, ROWS).cursor).toEqual({ row: 1, column: 6 });
  });
});

describe("a grave question", () => {
  it("takes nothing but Esc until there is a pause in what is typed", () => {
    let now = 0;
    const question = { title: "Sure?", choices: numbered(3), requiresConfirmation: true };
    const panel = new SelectPanel(question, NO_COLORS, () => now);
    expect(panel.take(text("1"))).toEqual({ type: "none" });
    shown(panel);
    expect(panel.take(text("1"))).toEqual({ type: "none" });
    now += QUIET_MS - 1;
    expect(panel.take(key("enter"))).toEqual({ type: "none" });
    expect(panel.take(key("escape"))).toEqual({ type: "done", value: undefined });
    now += QUIET_MS;
    expect(panel.take(text("1"))).toEqual({ type: "done", value: 0 });
  });
});
