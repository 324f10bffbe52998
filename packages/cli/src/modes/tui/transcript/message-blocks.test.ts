import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createErrorBlock,
  createFixedBlock,
  createNoticeBlock,
  ThinkingBlock,
  createUserBlock,
} from "./message-blocks.ts";
import { type Row, row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";

const clock = { ms: 0 };
const OPTIONS = { theme: NO_COLORS, now: (): number => clock.ms };

function shown(rows: readonly Row[]): string {
  return rows.map((each) => textOfRow(each).trimEnd()).join("\n");
}

function thought(text: string, isExpanded = false): ThinkingBlock {
  clock.ms = 0;
  const block = new ThinkingBlock({ ...OPTIONS, isExpanded });
  block.feed(text);
  return block;
}

describe("a message of the user", () => {
  it("has a sign, and its further rows are indented", () => {
    const block = createUserBlock(NO_COLORS, "The tests of this small project fail. Fix them.");
    expect(shown(block.rows(40))).toBe("› The tests of this small project fail.\n  Fix them.");
  });

  it("is cut where it is long, with a count", () => {
    const text = Array.from({ length: 30 }, (_, index) => `line ${index}`).join("\n");
    const rows = shown(createUserBlock(NO_COLORS, text).rows(80)).split("\n");
    expect(rows).toHaveLength(13);
    expect(rows.slice(-2)).toEqual(["  line 11", "  … 18 more lines"]);
  });

  it("names its images", () => {
    const image = { type: "image", data: "", mimeType: "image/png" } as const;
    const content = [{ type: "text", text: "Look:" } as const, image, image];
    expect(shown(createUserBlock(NO_COLORS, content).rows(80))).toBe(
      "› Look:\n  [image 1]\n  [image 2]",
    );
  });

  it("is broken by columns where characters are wide", () => {
    expect(shown(createUserBlock(NO_COLORS, "漢字漢字漢字").rows(10))).toBe("› 漢字漢字\n  漢字");
  });
});

describe("a thought", () => {
  it("shows its last rows while it comes", () => {
    const block = thought("one two three four five six seven eight nine ten");
    expect(shown(block.rows(12))).toBe("┊ seven\n┊ eight nine\n┊ ten");
    block.feed(" elevens");
    expect(shown(block.rows(12))).toBe("┊ eight nine\n┊ ten\n┊ elevens");
  });

  it("stays when it is over and short", () => {
    const block = thought("Let me see.");
    clock.ms = 4_200;
    block.end();
    expect(shown(block.rows(80))).toBe("┊ Let me see.");
    expect(shown(block.rows(10))).toBe("┊ Let me\n┊ see.");
  });

  it("is one row when it is over and long: how long it took, and how it begins", () => {
    const block = thought(`**Reading the parser.** It ${"goes on ".repeat(40)}`);
    clock.ms = 4_200;
    block.end();
    expect(shown(block.rows(80))).toBe("┊ thought for 4 s: Reading the parser.");
    expect(shown(block.rows(24))).toBe("┊ thought for 4 s");
  });

  it("does not say how long it took where that is not known", () => {
    const block = thought(`Let me see. ${"And ".repeat(90)}`);
    block.end(null);
    expect(shown(block.rows(80))).toBe("┊ thought: Let me see.");
  });

  it("has no more to say than that it was one, where its text is hidden", () => {
    const block = thought("");
    block.end(null);
    expect(shown(block.rows(80))).toBe("┊ thought");
  });

  it("is shown whole when that is wanted, also later", () => {
    const block = thought("one two three four five six seven", true);
    const whole = "┊ one two\n┊ three four\n┊ five six\n┊ seven";
    expect(shown(block.rows(12))).toBe(whole);
    block.end();
    block.expand(false);
    expect(shown(block.rows(12))).toBe("┊ thought");
    block.expand(true);
    expect(shown(block.rows(12))).toBe(whole);
  });

  it("looks the same in whatever pieces it comes", () => {
    const word = fc.constantFrom("a", "word", "longer-than-a-row-can-be", "漢字", "\n", "é");
    const text = fc.array(word).map((words) => words.join(" "));
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), fc.boolean(), (all, size, isExpanded) => {
        const whole = thought(all, isExpanded);
        const pieces = thought("", isExpanded);
        for (let at = 0; at < all.length; at += size) {
          pieces.feed(all.slice(at, at + size));
          pieces.rows(20);
        }
        expect(shown(pieces.rows(20))).toBe(shown(whole.rows(20)));
      }),
    );
  });

  it("loses nothing and shows nothing twice when rows leave the screen", () => {
    const words = fc.array(fc.constantFrom("one", "two", "three"), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.tuple(words, fc.nat(5)), { minLength: 1 }), (steps) => {
        const block = thought("", true);
        const gone: Row[] = [];
        let all = "";
        for (const [some, count] of steps) {
          all += `${some.join(" ")} `;
          block.feed(`${some.join(" ")} `);
          const rows = block.rows(16);
          gone.push(...block.freeze(Math.min(count, rows.length)).rows(16));
        }
        const shown = [...gone, ...block.rows(16)].map((each) => textOfRow(each).slice(2));
        expect(shown.join(" ").split(/\s+/).join(" ").trim()).toBe(all.trim());
      }),
    );
  });

  it("does not take a sequence for text that comes in two pieces", () => {
    const block = thought("a\x1b");
    block.feed("[31mb");
    expect(shown(block.rows(80))).toBe("┊ ab");
  });
});

describe("what else is said", () => {
  it("an error has a sign, and a suggestion where its kind allows one", () => {
    const block = createErrorBlock(NO_COLORS, "The conversation is too long.", "overflow");
    expect(shown(block.rows(60))).toBe(
      "✗ The conversation is too long.\n  Make the conversation shorter with /compact.",
    );
  });

  it("nothing of it is obeyed by a terminal, and no row is too wide", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom("\x1b[2J", "\x9b1A", "\r\n", "漢"), fc.string())),
        fc.integer({ min: 4, max: 60 }),
        (parts, columns) => {
          const text = parts.join("");
          const blocks = [
            createUserBlock(COLORS, text),
            createNoticeBlock(text, "2"),
            createErrorBlock(COLORS, text),
            thought(text),
            thought(text, true),
          ];
          for (const each of blocks.flatMap((block) => block.rows(columns))) {
            expect(widthOfRow(each)).toBeLessThanOrEqual(columns);
            expect(textOfRow(each)).not.toMatch(/\p{Cc}/u);
          }
        },
      ),
    );
  });

  it("rows as they were are cut where there is less room", () => {
    expect(shown(createFixedBlock([row("one two three")]).rows(8))).toBe("one two…");
  });
});
