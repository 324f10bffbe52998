import { expect, it } from "vitest";
import { type Cell, failures, ranking, type ResultRow, timesOurs } from "./results.ts";

const row = (cells: Readonly<Record<string, Cell>>): ResultRow => ({
  case: "text",
  size: 1,
  title: "text",
  unit: "ms",
  cells,
});

it("the least is first", () => {
  const cells = { gyre: { median: 2 }, b: { median: 10 }, a: { median: 1 } };
  expect(ranking(row(cells))).toEqual(["a", "gyre", "b"]);
});

it("the floor is in no race, however little it takes", () => {
  expect(ranking(row({ floor: { median: 1 }, gyre: { median: 2 } }))).toEqual(["gyre"]);
});

it("our other way is not ranked beside the first", () => {
  expect(ranking(row({ "gyre-agent": { median: 1 }, gyre: { median: 2 } }))).toEqual(["gyre"]);
});

it("reports which cells ought to have a figure", () => {
  const cells = {
    a: { note: "failed" },
    b: { note: "over 60 s" },
    c: { median: 1 },
    d: { note: "none" },
  };
  const results = {
    when: "",
    node: "",
    machine: "",
    rounds: 1,
    columns: [],
    growth: [],
    behaviors: [],
  };
  expect(failures({ ...results, rows: [row(cells)] })).toEqual(["text: a failed"]);
});

it("who has no figure is not ranked", () => {
  expect(ranking(row({ gyre: { median: 2 }, slow: { note: "over 60 s" } }))).toEqual(["gyre"]);
  expect(ranking(row({}))).toEqual([]);
});

it("those that take the same stay in the order of the columns", () => {
  const cells = { b: { median: 3 }, gyre: { median: 3 }, a: { median: 3 } };
  expect(ranking(row(cells))).toEqual(["b", "gyre", "a"]);
});

it("a figure is shown in times of ours", () => {
  const cells = { gyre: { median: 4 }, more: { median: 10 }, less: { median: 1 } };
  expect(timesOurs(row(cells), "more")).toBe(2.5);
  expect(timesOurs(row(cells), "less")).toBe(0.25);
  expect(timesOurs(row(cells), "gyre")).toBe(1);
});

it.each<[string, Record<string, Cell>]>([
  ["we have no column", { a: { median: 1 } }],
  ["we have no figure", { gyre: { note: "failed" }, a: { median: 1 } }],
  ["they have no column", { gyre: { median: 1 } }],
  ["they have no figure", { gyre: { median: 1 }, a: { note: "none" } }],
  ["ours is nothing", { gyre: { median: 0 }, a: { median: 1 } }],
  ["ours is lost in the noise", { gyre: { median: -0.1 }, a: { median: 1 } }],
])("nothing is shown in times of ours where %s", (_, cells) => {
  expect(timesOurs(row(cells), "a")).toBeUndefined();
});
