import { describe, expect, it } from "vitest";
import { MarkdownBlock } from "./markdown.ts";
import { textOfRow } from "../terminal/row.ts";
import { COLORS } from "../terminal/theme.ts";

function layoutTable(text: string, columns: number): string[] {
  const markdown = new MarkdownBlock({ theme: COLORS });
  markdown.feed(text);
  markdown.end();
  return markdown.rows(columns).map(textOfRow);
}

describe("a table", () => {
  it("has borders, and its columns are as wide as they need to be", () => {
    expect(layoutTable("| name | n |\n|:---|---:|\n| one | 1 |\n| two | 2222 |", 40)).toEqual([
      "┌──────┬──────┐",
      "│ name │    n │",
      "├──────┼──────┤",
      "│ one  │    1 │",
      "│ two  │ 2222 │",
      "└──────┴──────┘",
    ]);
  });

  it("fits the width: the widest column gives way and its cells wrap", () => {
    expect(layoutTable("| a | text |\n|---|---|\n| x | some words that are long |", 24)).toEqual([
      "┌─────┬────────────────┐",
      "│ a   │ text           │",
      "├─────┼────────────────┤",
      "│ x   │ some words     │",
      "│     │ that are long  │",
      "└─────┴────────────────┘",
    ]);
  });

  it("counts columns as East Asian writing takes them", () => {
    expect(layoutTable("| 名前 |\n|---|\n| 日本 |", 20)).toEqual([
      "┌──────┐",
      "│ 名前 │",
      "├──────┤",
      "│ 日本 │",
      "└──────┘",
    ]);
  });

  it("breaks the line of a cell at <br>", () => {
    expect(layoutTable("| a |\n|---|\n| x<br>y |", 20).slice(3, 5)).toEqual(["│ x   │", "│ y   │"]);
  });

  it("shows a bar that was escaped", () => {
    expect(layoutTable("| a |\n|---|\n| x \\| y |", 20)[3]).toBe("│ x | y │");
  });

  it("is a list of its cells where there is no room for borders", () => {
    expect(layoutTable("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", 10)).toEqual([
      "a: 1",
      "b: 2",
      "",
      "a: 3",
      "b: 4",
    ]);
  });

  it("goes on within a row whose beginning has left the screen, at another width too", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("| a | text |\n|---|---|\n| x | some words that are long |");
    markdown.rows(24);
    const frozen = markdown.freeze(4);
    expect(frozen.rows(24).map(textOfRow)).toHaveLength(4);
    expect(markdown.rows(60).map(textOfRow)[0]).toMatch(/^│ {5}│ that are long +│$/);
  });
});
