import { describe, expect, it } from "vitest";
import type { Format } from "./formatters.ts";
import { MarkdownBlock, type MarkdownOptions } from "./markdown.ts";
import { type Row, textOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";

function layoutRows(
  text: string,
  columns: number,
  options: Partial<MarkdownOptions> = {},
): readonly Row[] {
  const markdown = new MarkdownBlock({ theme: COLORS, ...options });
  markdown.feed(text);
  markdown.end();
  return markdown.rows(columns);
}

function layoutLines(text: string, columns = 40, options: Partial<MarkdownOptions> = {}): string[] {
  return layoutRows(text, columns, options).map(textOfRow);
}

/** The style of the span that has the text. */
function findStyle(rows: readonly Row[], text: string): string | undefined {
  return rows.flat().find((span) => span.text.includes(text))?.style;
}

describe("Markdown with colors", () => {
  it("shows a heading in its style and without its signs", () => {
    expect(layoutRows("## Plan", 40)).toEqual([[{ text: "Plan", style: COLORS.heading }]]);
  });

  it("shows the level of a heading", () => {
    const { title, heading, subheading } = COLORS;
    const styles = ["# A", "## A", "### A", "#### A"].map(
      (text) => layoutRows(text, 40)[0]?.[0]?.style,
    );
    expect(styles).toEqual([title, heading, subheading, subheading]);
    expect(new Set(styles).size).toBe(3);
  });

  it("shows bold, emphasis, struck text and code by their styles alone", () => {
    const rows = layoutRows("**a** *b* ~~c~~ `d`", 40);
    expect(rows.map(textOfRow)).toEqual(["a b c d"]);
    expect(["a", "b", "c", "d"].map((text) => findStyle(rows, text))).toEqual([
      COLORS.strong,
      COLORS.emphasis,
      COLORS.struck,
      COLORS.code,
    ]);
  });

  it("puts the styles of a text on top of the one that all of it has", () => {
    expect(findStyle(layoutRows("so **sure**", 40, { style: "2" }), "sure")).toBe("2;1");
  });

  it("shows where a link leads, once", () => {
    expect(
      layoutLines("[docs](https://a.example) https://b.example <https://c.example>", 80),
    ).toEqual(["docs (https://a.example) https://b.example https://c.example"]);
  });

  it("shows what an image is called and where it is", () => {
    expect(layoutLines("![a chart](pic.png)")).toEqual(["[image: a chart] pic.png"]);
  });

  it("indents the rows of an item below its text", () => {
    expect(layoutLines("- one that is too long for a row\n- two", 20)).toEqual([
      "• one that is too",
      "  long for a row",
      "• two",
    ]);
  });

  it("counts the items of a list, and marks what is done", () => {
    expect(layoutLines("3. a\n3. b\n\n- [ ] c\n- [x] d")).toEqual([
      "3. a",
      "4. b",
      "",
      "☐ c",
      "☑ d",
    ]);
  });

  it("has an empty row between items only where the source has one", () => {
    expect(layoutLines("- a\n  - b\n- c\n\n- d")).toEqual(["• a", "  • b", "• c", "", "• d"]);
  });

  it("shows a quote behind a bar, and a rule as a line", () => {
    expect(layoutLines("> said\n> so\n\n---", 10)).toEqual(["│ said so", "", "──────────"]);
  });

  it("names the language of code, indents it and leaves the fences out", () => {
    const rows = layoutRows("```ts\nconst a = 1;\n```", 40);
    expect(rows.map(textOfRow)).toEqual(["  ts", "  const a = 1;"]);
    expect(findStyle(rows, "const")).toBe(COLORS.keyword);
  });

  it("breaks a long line of code and marks where it goes on", () => {
    expect(layoutLines("```\nabcdefghijklmnopqrstuv\n```", 14)).toEqual([
      "  abcdefghijkl",
      "  ↪ mnopqrstuv",
    ]);
  });

  it("shows HTML as it is written", () => {
    expect(layoutLines("<div>\n  <b>x</b>\n</div>")).toEqual(["<div>", "  <b>x</b>", "</div>"]);
  });

  it("leaves columns free at the left", () => {
    expect(layoutLines("a b c", 5, { indent: 2 })).toEqual(["  a b", "  c"]);
  });

  it("has nothing in it that a terminal obeys", () => {
    expect(layoutLines("a\x1b[2Jb [x](http://a\x1b]0;t\x07b) `\x9b1mc` &#27;")).toEqual([
      "ab x (http://ab) c &#27;",
    ]);
  });
});

describe("Markdown without colors", () => {
  it("keeps the signs in place of colors", () => {
    expect(layoutLines("# A\n\n**b** *c* `d`\n\n```ts\ne\n```", 40, { theme: NO_COLORS })).toEqual([
      "# A",
      "",
      "**b** *c* `d`",
      "",
      "  ```ts",
      "  e",
      "  ```",
    ]);
  });
});

describe("Markdown that is still written", () => {
  it("shows code at once, the line that is not complete too", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("```go\nfunc a() {\n  ret");
    expect(markdown.rows(40).map(textOfRow)).toEqual(["  go", "  func a() {", "    ret"]);
  });

  it("does not show half of a closing fence as code", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("```\na\n``");
    expect(markdown.rows(40).map(textOfRow)).toEqual(["  a"]);
  });

  it("shows signs that are not closed yet as text", () => {
    for (const text of ["so **", "so `", "so [", "so ![a](b"]) {
      const markdown = new MarkdownBlock({ theme: COLORS });
      markdown.feed(text);
      expect(markdown.rows(40).map(textOfRow)).toEqual([text]);
    }
  });

  it("ends bold text that began in a row that has left the screen", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("**one two three");
    markdown.rows(9);
    markdown.freeze(1);
    markdown.feed(" four** five");
    expect(markdown.rows(20)).toEqual([
      [
        { text: "three four", style: COLORS.strong },
        { text: " five", style: "" },
      ],
    ]);
  });

  it("keeps a table's columns when its header has left the screen", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("| a | b |\n|---|---|\n| 1 | 2 |\n");
    markdown.rows(40);
    markdown.freeze(3);
    markdown.feed("| longer | 4 |\n");
    expect(markdown.rows(40).map(textOfRow)).toEqual([
      "│ 1   │ 2   │",
      "│ lon │ 4   │",
      "│ ger │     │",
      "└─────┴─────┘",
    ]);
  });

  it("is shown as it was written where signs are nested too deep", () => {
    expect(layoutLines(`${">".repeat(40)} deep`, 80).join("")).toContain("deep");
  });
});

describe("the code of a block that has ended", () => {
  /** Formats when the test says so. */
  function later(): {
    format: Format;
    answer: (text: string | undefined) => Promise<void>;
    asked: string[];
  } {
    const asked: string[] = [];
    let give: (text: string | undefined) => void = () => {};
    return {
      asked,
      format: (language, code) => {
        asked.push(`${language}: ${code}`);
        return new Promise((resolve) => {
          give = resolve;
        });
      },
      answer: async (text) => {
        give(text);
        await Promise.resolve();
        await Promise.resolve();
      },
    };
  }

  function opened(format: Format): { markdown: MarkdownBlock; changes: () => number } {
    let changes = 0;
    const markdown = new MarkdownBlock({ theme: COLORS, format, changed: () => changes++ });
    markdown.feed("```js\na( )\n```\n");
    markdown.rows(40);
    return { markdown, changes: () => changes };
  }

  it("is replaced by its formatted form", async () => {
    const { answer, asked, format } = later();
    const { changes, markdown } = opened(format);
    await answer("a();\nb();\n");
    expect(asked).toEqual(["js: a( )\n"]);
    expect(changes()).toBe(1);
    expect(markdown.rows(40).map(textOfRow)).toEqual(["  js", "  a();", "  b();"]);
  });

  it("stays as it was streamed where a row of it has left the screen", async () => {
    const { answer, format } = later();
    const { changes, markdown } = opened(format);
    markdown.freeze(1);
    await answer("a();\n");
    expect(changes()).toBe(0);
    expect(markdown.rows(40).map(textOfRow)).toEqual(["  a( )"]);
  });

  it("is left alone where the formatter has nothing to say", async () => {
    for (const text of [undefined, "a( )\n"]) {
      const { answer, format } = later();
      const { changes } = opened(format);
      await answer(text);
      expect(changes()).toBe(0);
    }
  });

  it("can leave the screen row by row after it was formatted", async () => {
    const { answer, format } = later();
    const { markdown } = opened(format);
    await answer("one();\ntwo();\nthree();\n");
    markdown.rows(40);
    expect(markdown.freeze(2).rows(40).map(textOfRow)).toEqual(["  js", "  one();"]);
    expect(markdown.rows(40).map(textOfRow)).toEqual(["  two();", "  three();"]);
  });

  it("is not asked about before its fence is closed", () => {
    const { asked, format } = later();
    const markdown = new MarkdownBlock({ theme: COLORS, format });
    markdown.feed("```js\na( )\n");
    markdown.end();
    markdown.rows(40);
    expect(asked).toEqual([]);
  });
});
