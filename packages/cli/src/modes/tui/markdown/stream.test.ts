import fc from "fast-check";
import { Lexer } from "marked";
import { describe, expect, it, vi } from "vitest";
import type { Block } from "../ui/block.ts";
import { MarkdownBlock } from "./markdown.ts";
import { type Row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS, type Theme } from "../terminal/theme.ts";

const COLUMNS = 40;
const NARROW_COLUMNS = 31;

/** Blocks as models write them, each ended by an empty line or by the next block alone. */
const words = fc
  .array(
    fc.constantFrom(
      "alpha",
      "beta",
      "gamma",
      "delta9",
      "**bold words**",
      "*slant*",
      "`code x`",
      "~~struck~~",
      "[name](https://a.example/p)",
      "日本語の文",
      "é",
      "👩‍💻",
      "a_b_c",
      "2 * 3",
      "\\*",
      "-",
      "1.",
      "#",
      "|",
      "\n",
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((list) => list.join(" "));

const line = words.map((text) => text.replaceAll("\n", " "));
const block = fc.oneof(
  words,
  line.map((text) => `## ${text}`),
  fc
    .array(line, { minLength: 1, maxLength: 6 })
    .map((items) => items.map((each) => `- ${each}`).join("\n")),
  fc
    .array(line, { minLength: 1, maxLength: 12 })
    .map((items) => items.map((each, index) => `${index + 1}. ${each}`).join("\n\n")),
  line.map((text) => `- ${text}\n  - ${text}\n    ${text}\n  - [x] ${text}\n- end`),
  line.map((text) => `> ${text}\n> > ${text}\n>\n> - ${text}`),
  fc
    .array(fc.constantFrom("const a = `x", "}", "", "  return b; // c", "x".repeat(90)), {
      maxLength: 12,
    })
    .map((lines) => `\`\`\`ts\n${lines.join("\n")}\n\`\`\``),
  line.map((text) => `1. ${text}\n\n   \`\`\`sh\n   ls -l\n\n   cd\n   \`\`\`\n2. more`),
  fc
    .array(fc.tuple(line, line), { minLength: 1, maxLength: 5 })
    .map((rows) =>
      [
        "| head | other |",
        "|---|--:|",
        ...rows.map((row) => `| ${row.map((cell) => cell.replaceAll("|", "/")).join(" | ")} |`),
      ].join("\n"),
    ),
  fc.constantFrom("---", "***", "<div>\nhtml\n</div>", "    indented\n    code", "Title\n====="),
);
const document = fc
  .array(fc.tuple(block, fc.constantFrom("\n\n", "\n")), { minLength: 1, maxLength: 6 })
  .map((blocks) => blocks.flat().join(""));
const noise = fc.string({
  unit: fc.constantFrom(..."ab 1.-*_`~#>|[]()!<&lt;\\:\n\n\t\r\x1b="),
  maxLength: 120,
});
const anyText = fc.oneof(document, noise, fc.string({ unit: "binary", maxLength: 60 }));
const theme = fc.constantFrom<Theme>(COLORS, NO_COLORS);
const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 40 });

/** The text in pieces. */
function pieces(text: string, places: readonly number[]): string[] {
  const sorted = places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b);
  return [...sorted, text.length].map((end, index) =>
    text.slice(index === 0 ? 0 : sorted[index - 1], end),
  );
}

function whole(text: string, options: { theme: Theme }, columns = COLUMNS): readonly Row[] {
  const markdown = new MarkdownBlock(options);
  markdown.feed(text);
  markdown.end();
  return markdown.rows(columns);
}

/** Letters and digits as they are read. Cells stand beside each other, so theirs are counted. */
function keepLetters(rows: readonly Row[], text: string): string {
  const letters = rows
    .map((row) => textOfRow(row))
    .join("")
    .replace(/[^\p{L}\p{N}]/gu, "");
  return text.includes("|---|") ? Array.from(letters).toSorted().join("") : letters;
}

describe("a text in Markdown that comes in pieces", () => {
  it("is shown as if it had come at once", () => {
    fc.assert(
      fc.property(anyText, cuts, theme, (text, places, theme) => {
        const markdown = new MarkdownBlock({ theme });
        for (const piece of pieces(text, places)) {
          markdown.feed(piece);
          markdown.rows(COLUMNS);
        }
        markdown.end();
        expect(markdown.rows(COLUMNS)).toEqual(whole(text, { theme }));
      }),
      { numRuns: 200 },
    );
  });

  it("is never wider than the screen", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 12, max: 60 }), theme, (text, columns, theme) => {
        for (const row of whole(text, { theme }, columns)) {
          expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
        }
      }),
      { numRuns: 100 },
    );
  });

  it("loses nothing and shows nothing twice where its beginning has left the screen", () => {
    fc.assert(
      fc.property(
        document,
        cuts,
        theme,
        fc.integer({ min: 1, max: 12 }),
        (text, places, theme, height) => {
          const markdown = new MarkdownBlock({ theme });
          const frozen: Block[] = [];
          for (const piece of pieces(text, places)) {
            markdown.feed(piece);
            const rows = markdown.rows(COLUMNS);
            const gone = Math.max(0, rows.length - height);
            const block = markdown.freeze(gone);
            expect(block.rows(COLUMNS)).toEqual(rows.slice(0, gone));
            expect(markdown.rows(COLUMNS).map(textOfRow)).toEqual(rows.slice(gone).map(textOfRow));
            frozen.push(block);
          }
          markdown.end();
          frozen.push(markdown.freeze(markdown.rows(COLUMNS).length));
          expect(markdown.rows(COLUMNS)).toEqual([]);
          const rows = frozen.flatMap((block) => block.rows(COLUMNS));
          expect(keepLetters(rows, text)).toBe(keepLetters(whole(text, { theme }), text));
          const narrow = frozen.flatMap((block) => block.rows(NARROW_COLUMNS));
          expect(keepLetters(narrow, text)).toBe(keepLetters(rows, text));
        },
      ),
      { numRuns: 150 },
    );
  });

  it("is read a bounded number of times, however long it gets", () => {
    const paragraph =
      "A paragraph of an answer, with **bold** words and some `code` in it. ".repeat(4);
    const text = `${paragraph}\n\n`.repeat(200);
    const size = Math.ceil(text.length / 2000);
    let read = 0;
    const lex = vi.spyOn(Lexer.prototype, "blockTokens");
    const markdown = new MarkdownBlock({ theme: COLORS });
    for (let at = 0; at < text.length; at += size) {
      markdown.feed(text.slice(at, at + size));
      markdown.rows(COLUMNS);
    }
    for (const [source] of lex.mock.calls) read += source.length;
    lex.mockRestore();
    expect(read).toBeLessThan(20 * text.length);
  });

  it("is not read again in a block of code", () => {
    const lex = vi.spyOn(Lexer.prototype, "blockTokens");
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("```ts\n");
    for (let line = 0; line < 500; line++) {
      markdown.feed(`const a${line} = ${line};\n`);
      markdown.rows(COLUMNS);
    }
    expect(lex).not.toHaveBeenCalled();
    lex.mockRestore();
  });

  it("is dropped item by item where the beginning of a list has left the screen", () => {
    const lex = vi.spyOn(Lexer.prototype, "blockTokens");
    const markdown = new MarkdownBlock({ theme: COLORS });
    let longest = 0;
    for (let item = 1; item <= 300; item++) {
      lex.mockClear();
      markdown.feed(`1. the item with number ${item}\n`);
      const rows = markdown.rows(COLUMNS);
      longest = Math.max(longest, ...lex.mock.calls.map(([source]) => source.length));
      markdown.freeze(Math.max(0, rows.length - 10));
    }
    lex.mockRestore();
    expect(longest).toBeLessThan(1000);
    expect(markdown.rows(COLUMNS).map(textOfRow).at(-1)).toBe("300. the item with number 300");
  });

  it("does not repeat a character of a cell that has left the screen above the border", () => {
    const markdown = new MarkdownBlock({ theme: NO_COLORS });
    markdown.feed("| name |\n| --- |\n| [x](http://a");
    const { length } = markdown.rows(COLUMNS);
    const above = markdown
      .freeze(length - 1)
      .rows(COLUMNS)
      .map(textOfRow);
    markdown.feed("\\_b.c/d) |\n");
    const below = markdown.rows(COLUMNS).map(textOfRow);
    expect(above.at(-1)).toBe("│ [x](http://a │");
    expect(below[0]).toMatch(/^│ _b\.c\/d\) +│$/);
  });

  it("gives the same rows, not equal ones, where nothing has changed", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    markdown.feed("Some *text*\n\nand more");
    expect(markdown.rows(COLUMNS)).toBe(markdown.rows(COLUMNS));
    const frozen = markdown.freeze(1);
    expect(frozen.rows(COLUMNS)).toBe(frozen.rows(COLUMNS));
  });
});
