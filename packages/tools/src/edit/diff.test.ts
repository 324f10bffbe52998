import fc from "fast-check";
import { expect, test } from "vitest";
import { formatDiff, MAX_DIFF_CHARS } from "./diff.ts";
import { editedFile, planPlaced } from "./plan.ts";

/** The text before and after the hunks of a diff, with what is between them. */
function applied(before: string, diff: string): string {
  const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const next: string[] = [];
  let at = 0;
  for (const row of diff.match(/[^\n]*\n/g)?.slice(2) ?? []) {
    const header = /^@@ -(\d+),(\d+)/.exec(row);
    if (header) {
      const start = Number(header[1]) - (header[2] === "0" ? 0 : 1);
      while (at < start) next.push(lines[at++] ?? "");
    } else if (row.startsWith("\\")) {
      next.push((next.pop() ?? "").replace(/\n$/, ""));
    } else {
      if (!row.startsWith("+") && lines[at++]?.replace(/\n?$/, "\n") !== row.slice(1))
        throw new Error(`Not there: ${row}`);
      if (!row.startsWith("-")) next.push(row.slice(1));
    }
  }
  return [...next, ...lines.slice(at)].join("");
}

test("a diff says what was done", () => {
  const text = fc
    .array(fc.constantFrom("a\n", "b\n", "c", "\n"), { maxLength: 30 })
    .map((parts) => parts.join(""));
  const replacement = fc.constantFrom("", "x", "x\n", "\nx", "x\ny\n");
  const cuts = fc.array(fc.tuple(fc.nat(), replacement), { minLength: 2, maxLength: 6 });
  fc.assert(
    fc.property(text, cuts, (before, cuts) => {
      fc.pre(before.length > 2);
      const offsets = [...new Set(cuts.map(([cut]) => cut % before.length))].sort((a, b) => a - b);
      const edits = offsets.slice(1).flatMap((end, index) =>
        index % 2 === 1
          ? []
          : [
              {
                name: "e",
                tolerance: "exact" as const,
                start: offsets[index] ?? 0,
                end,
                replacement: cuts[index]?.[1] ?? "",
              },
            ],
      );
      const changes = edits.some(
        ({ start, end, replacement }) => before.slice(start, end) !== replacement,
      );
      fc.pre(changes && !before.endsWith("c"));
      const after = edits.reduceRight(
        (now, { start, end, replacement }) => now.slice(0, start) + replacement + now.slice(end),
        before,
      );
      fc.pre(after !== before && (after === "" || after.endsWith("\n")));
      const plan = planPlaced(editedFile("f", before), edits);
      expect(applied(before, formatDiff("f", before, plan))).toBe(after);
    }),
  );
});

test("a last line without its end is marked, and a long diff is cut", () => {
  const diff = (before: string, replacement: string): string => {
    const edit = {
      name: "e",
      tolerance: "exact" as const,
      start: 0,
      end: before.length,
      replacement,
    };
    return formatDiff("f", before, planPlaced(editedFile("f", before), [edit]));
  };
  expect(diff("a", "b\n")).toBe(
    "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n",
  );
  const cut = diff("a\n", "b\n".repeat(MAX_DIFF_CHARS));
  expect(cut.length).toBeLessThan(MAX_DIFF_CHARS + 100);
  expect(cut).toMatch(/\[cut: [^\n]+\]\n$/);
});
