import { expect, test } from "vitest";
import { MARGIN, type Row } from "./rows.ts";
import { judge } from "./verdict.ts";

const row: Row = { what: "1,000 text deltas", ratio: 3, reason: "a live message" };
const floor = 10_000_000;

test("a row passes up to a tenth above its ratio", () => {
  const { ok, lines } = judge([{ row, floor, gyre: floor * 3 * MARGIN }]);
  expect(ok).toBe(true);
  expect(lines).toEqual([
    "1,000 text deltas: 3.30x (33.0M to 10.0M), at most 3.30x: ok",
    "1 of 1 as they must be",
  ]);
});

test("a row fails beyond that, and names what Gyre pays for", () => {
  const { ok, lines } = judge([
    { row, floor, gyre: floor * 3 },
    { row, floor, gyre: floor * 3.4 },
  ]);
  expect(ok).toBe(false);
  expect(lines.slice(1)).toEqual([
    "1,000 text deltas: 3.40x (34.0M to 10.0M), at most 3.30x: FAILED: a live message",
    "1 of 2 as they must be",
  ]);
});

test("a control fails unless it misses the limit of its row", () => {
  const judgeControl = (gyre: number): boolean => judge([{ row, floor, gyre, control: true }]).ok;
  expect(judgeControl(floor * 6)).toBe(true);
  expect(judgeControl(floor * 3)).toBe(false);
});

test("counts that are missing fail, in rows and controls alike", () => {
  expect(judge([]).ok).toBe(false);
  expect(judge([{ row, floor, gyre: Number.NaN }]).ok).toBe(false);
  expect(judge([{ row, floor, gyre: Number.NaN, control: true }]).ok).toBe(false);
});

test("a ratio that is lower by a tenth is worth stating", () => {
  const { ok, lines } = judge([{ row, floor, gyre: floor * 2.5 }]);
  expect(ok).toBe(true);
  expect(lines[0]).toContain("rows.ts may state the lower ratio");
});
