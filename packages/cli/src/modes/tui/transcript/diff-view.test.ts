import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffTexts, countChanges, type DiffOptions, fileRows, parseDiff } from "./diff-view.ts";
import { type Row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";

const DIFF = `--- a/src/a.ts
+++ b/src/a.ts
@@ -8,7 +8,8 @@
 eight
 nine
 ten
-const port = 80;
+const port = 8080;
+const host = "localhost";
 twelve
 thirteen
 fourteen
`;

function shown(rows: readonly Row[]): string {
  return rows.map((each) => textOfRow(each).trimEnd()).join("\n");
}

function layoutRows(diff: string, more: Partial<DiffOptions> = {}): Row[] {
  return fileRows(parseDiff(diff), { theme: NO_COLORS, columns: 80, indent: 0, ...more });
}

describe("a diff", () => {
  it("has line numbers, signs, and two lines around a change", () => {
    expect(shown(layoutRows(DIFF))).toMatchInlineSnapshot(`
      " 9   nine
      10   ten
      11 - const port = 80;
      11 + const port = 8080;
      12 + const host = "localhost";
      13   twelve
      14   thirteen"
    `);
  });

  it("replaces colors by signs", () => {
    expect(layoutRows(DIFF).every((row) => row.every(({ style }) => style === ""))).toBe(true);
  });

  it("shows what differs in a line that replaced another", () => {
    const one = DIFF.replace('+const host = "localhost";\n', "").replace("+8,8", "+8,7");
    const strong = layoutRows(one, { theme: COLORS })
      .flat()
      .filter(({ style }) => style.endsWith(";7"));
    expect(strong.map(({ text, style }) => [text, style])).toEqual([
      ["80", "31;7"],
      ["8080", "32;7"],
    ]);
  });

  it("counts the lines that have no room, and says how to see them", () => {
    const added = Array.from({ length: 54 }, (_, index) => `+line ${index + 1}\n`).join("");
    const rows = layoutRows(`--- /dev/null\n+++ b/new.ts\n${added}`, { hint: "Ctrl+O" });
    expect(rows).toHaveLength(21);
    expect(shown(rows.slice(-2))).toBe("20 + line 20\n… 34 more lines (Ctrl+O)");
  });

  it("names the files where there are several", () => {
    const two = `${DIFF}--- a/b.ts\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-gone\n`;
    expect(shown(layoutRows(two)).split("\n")).toEqual(
      expect.arrayContaining(["src/a.ts", "b.ts", "1 - gone"]),
    );
  });

  it("puts a mark where lines are left out", () => {
    const far = `${DIFF}@@ -40,2 +41,2 @@\n forty\n-old\n+new\n`;
    expect(shown(layoutRows(far)).split("\n").slice(-4)).toEqual([
      "   ⋮",
      "41   forty",
      "41 - old",
      "42 + new",
    ]);
  });

  it("takes changed lines that look like the head of a file for what they are", () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n--- old\n+++ new\n";
    expect(shown(layoutRows(diff))).toBe("1 - -- old\n1 + ++ new");
  });

  it("notes that the last line has no end, and that the diff is cut", () => {
    const diff =
      "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n+b\n\\ No newline at end of file\n[cut: x]\n";
    expect(shown(layoutRows(diff))).toContain("(no line end at the end of the file)");
    expect(shown(layoutRows(diff))).toContain("[cut: x]");
  });

  it("goes on below where a line does not fit, without a number", () => {
    const diff = `--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+${"word ".repeat(12)}\n`;
    expect(shown(layoutRows(diff, { columns: 40 }))).toMatchInlineSnapshot(`
      "1 + word word word word word word word
          word word word word word"
    `);
  });

  it("shows the beginning of a line that is longer than there is room", () => {
    const rows = layoutRows(`--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+${"x".repeat(100_000)}\n`);
    expect(rows).toHaveLength(21);
    expect(shown(rows.slice(-1))).toBe("… 1 more line");
  });

  it("leaves the numbers out where there is hardly room for the text", () => {
    expect(shown(layoutRows(DIFF, { columns: 20 })).split("\n")[2]).toBe("- const port = 80;");
  });

  it("shows nothing that a terminal obeys", () => {
    const hostile = "--- a/x\n+++ b/\x1b]0;x\x07y\n@@ -0,0 +1,1 @@\n+\x1b[2J\x1b[31mred\r\n";
    const text = shown(layoutRows(`${hostile}${DIFF}`));
    expect(text).toContain("+ red");
    expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  it("takes any text at any width, and stays within it", () => {
    const line = fc.oneof(
      fc.constantFrom("--- a/x", "+++ b/x", "@@ -1,2 +1,3 @@", "\\ No newline", "", "漢字漢字漢字"),
      fc.string({ unit: "grapheme" }).map((text) => `+${text}`),
      fc.string().map((text) => `-${text}`),
      fc.string().map((text) => ` ${text}`),
    );
    fc.assert(
      fc.property(fc.array(line), fc.integer({ min: 4, max: 200 }), (lines, columns) => {
        for (const row of fileRows(parseDiff(lines.join("\n")), { theme: COLORS, columns })) {
          expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
        }
      }),
    );
  });
});

describe("two texts", () => {
  it("are compared line by line", () => {
    const lines = diffTexts("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\ng\n");
    const rows = fileRows([{ path: "x", lines }], { theme: NO_COLORS, columns: 80, indent: 0 });
    expect(shown(rows)).toMatchInlineSnapshot(`
      "2   b
      3   c
      4 - d
      4 + D
      5   e
      6   f
      7 + g"
    `);
  });

  it("have each line by its number in the text that it is from", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 8 });
    fc.assert(
      fc.property(text, text, (old, next) => {
        const lines = diffTexts(old.join("\n"), next.join("\n"));
        const at = (type: "added" | "removed", from: readonly string[]): void => {
          for (const line of lines) {
            if (line.type === type) expect(line.text).toBe(from[line.number - 1]);
          }
        };
        at("removed", old);
        at("added", next);
      }),
    );
  });

  it("have their changes counted", () => {
    expect(countChanges(parseDiff(DIFF))).toEqual({ added: 2, removed: 1 });
  });
});
