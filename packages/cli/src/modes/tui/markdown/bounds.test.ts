import fc from "fast-check";
import { Lexer } from "marked";
import { describe, expect, it, vi } from "vitest";
import { AnswerBlock } from "../transcript/answer-block.ts";
import { BlockList } from "../transcript/block-list.ts";
import { MarkdownBlock } from "./markdown.ts";
import { MAX_OPEN_CHARS, splitStretches } from "./bounds.ts";
import { textOfRow } from "../terminal/row.ts";
import { COLORS } from "../terminal/theme.ts";

const COLUMNS = 60;
const SCREEN_ROWS = 30;
const FRAMES = 50;
/** What is read is read a few times by each of the levels that it is in. */
const READS = 40;

/** Texts that make no sense, and that a model may write all the same. */
const hostile: Readonly<Record<string, string>> = {
  "quotes in quotes": `${">".repeat(3_000)} x\n`,
  "lists in one line": `${"- ".repeat(1_000)}x\n`,
  "lists in lists": Array.from({ length: 120 }, (_, nth) => `${"  ".repeat(nth)}- a\n`).join(""),
  "one line": "word ".repeat(40_000),
  "one word": "w".repeat(200_000),
  "a table": `| a | b |\n|---|---|\n${"| x | y |\n".repeat(5_000)}`,
  "a list": "- item\n".repeat(20_000),
  "an item": `- item\n${"  more of it\n".repeat(5_000)}`,
  "a quote": "> some text\n".repeat(10_000),
  "signs that open": "*a ".repeat(20_000),
};

/** The longest text that was read in one frame, all levels counted. */
function mostRead(text: string): number {
  const list = new BlockList();
  const block = new AnswerBlock({ theme: COLORS, changed: () => {} });
  list.add(block);
  const lex = vi.spyOn(Lexer.prototype, "blockTokens");
  const size = Math.ceil(text.length / FRAMES);
  let most = 0;
  for (let at = 0; at < text.length; at += size) {
    lex.mockClear();
    block.feed(text.slice(at, at + size));
    const { base, rows } = list.rows(COLUMNS);
    list.release(Math.max(0, base + rows.length - SCREEN_ROWS));
    const read = lex.mock.calls.reduce((sum, [source]) => sum + source.length, 0);
    most = Math.max(most, read - size * READS);
  }
  lex.mockRestore();
  return most;
}

describe("a block that grows without end", () => {
  it.each(Object.keys(hostile))("costs a frame no more than its newest part: %s", (name) => {
    expect(mostRead(hostile[name] ?? "")).toBeLessThan(READS * MAX_OPEN_CHARS);
  });

  it("loses nothing, however it comes", () => {
    const line = fc.constantFrom(
      "alpha beta ",
      "- gamma\n",
      "> delta\n",
      "1. eps\n",
      "x\n\n",
      "zeta",
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, fc.integer({ min: 1, max: 3_000 })), { maxLength: 4 }),
        fc.integer({ min: 500, max: 20_000 }),
        (parts, size) => {
          const text = parts.map(([each, count]) => each.repeat(count)).join("\n");
          const markdown = new MarkdownBlock({ theme: COLORS });
          for (let at = 0; at < text.length; at += size) {
            markdown.feed(text.slice(at, at + size));
            markdown.rows(COLUMNS);
          }
          markdown.end();
          const shown = markdown.rows(COLUMNS).map(textOfRow).join("\n");
          expect(keepLetters(shown)).toBe(keepLetters(text));
        },
      ),
      { numRuns: 25 },
    );
  });

  it("goes on counting where a list was cut", () => {
    const markdown = new MarkdownBlock({ theme: COLORS });
    for (let nth = 1; nth <= 1_000; nth++) {
      markdown.feed(`${nth}. the item number ${nth}\n`);
      if (nth % 100 === 0) markdown.rows(COLUMNS);
    }
    expect(markdown.rows(COLUMNS).map(textOfRow)).toEqual(
      Array.from({ length: 1_000 }, (_, nth) => `${nth + 1}. the item number ${nth + 1}`),
    );
  });

  it("repeats the header where a table was cut", () => {
    const list = new BlockList();
    const block = new AnswerBlock({ theme: COLORS, changed: () => {} });
    list.add(block);
    const seen: string[] = [];
    block.feed("| name | value |\n|---|---|\n");
    for (let nth = 0; nth < 2_000; nth++) {
      block.feed(`| n${1_000 + nth} | ${1_000 + nth} |\n`);
      if (nth % 20 !== 19) continue;
      const { base, rows } = list.rows(COLUMNS);
      seen.splice(base, seen.length, ...rows.map(textOfRow));
      list.release(Math.max(0, base + rows.length - SCREEN_ROWS));
    }
    const cells = seen.flatMap((row) => /│ (n\d+) +│ (\d+)/.exec(row)?.slice(1, 3).join(" ") ?? []);
    expect(cells).toEqual(
      Array.from({ length: 2_000 }, (_, nth) => `n${1_000 + nth} ${1_000 + nth}`),
    );
    expect(seen.filter((row) => row.includes("name")).length).toBeGreaterThan(1);
    expect(seen.filter((row) => row.includes("|"))).toEqual([]);
  });
});

it("cuts a text into parts that are not too long, none of it lost", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("a", "b ", "\n", "😀"), fc.nat({ max: 9_000 }))),
      (parts) => {
        const text = parts.map(([each, count]) => each.repeat(count)).join("");
        const stretches = splitStretches(text);
        expect(stretches.map((each) => each.text).join("")).toBe(text);
        for (const { text: each } of stretches) {
          expect(each.length).toBeLessThanOrEqual(MAX_OPEN_CHARS);
          expect(Buffer.from(each).toString()).toBe(each);
        }
      },
    ),
    { numRuns: 30 },
  );
});

function keepLetters(text: string): string {
  return text.replace(/[^\p{L}]/gu, "");
}
