import { expect, it } from "vitest";
import { figure, markdown, standing } from "./report.ts";
import type { Cell, ResultRow, Results } from "./results.ts";

const row = (title: string, cells: Readonly<Record<string, Cell>>): ResultRow => ({
  case: title,
  size: 1,
  title,
  unit: "ms",
  cells,
});

const found: Results = {
  when: "2030-01-02T03:04:05.000Z",
  node: "v24.0.0",
  machine: "2 cores (made up)",
  rounds: 5,
  columns: [
    { id: "floor", name: "floor", version: "" },
    { id: "gyre", name: "Gyre", version: "0.1.0" },
    { id: "other", name: "Other", version: "9.8.7" },
  ],
  rows: [],
  growth: [],
  behaviors: [],
};

const renderLines = (more: Partial<Results>): string[] =>
  markdown({ ...found, ...more }).split("\n");

it("the report says where, when and how often was measured", () => {
  const [first] = renderLines({});
  for (const part of ["v24.0.0", "2 cores (made up)", "2030-01-02", "5 rounds"]) {
    expect(first).toContain(part);
  }
});

it("a figure comes with how far the samples were from it, and how many times ours it is", () => {
  const cells = {
    floor: { median: 1.5, low: 1.25, high: 2.5 },
    gyre: { median: 4.5, low: 4.25, high: 5.5 },
    other: { median: 54, low: 50, high: 61 },
  };
  expect(renderLines({ rows: [row("text", cells)] })).toContain(
    "| text (ms) | 1.50 ±67 % | 4.50 ±22 % | 54 ±13 % 12x |",
  );
});

it("few times ours are shown to a tenth", () => {
  const cells = { gyre: { median: 4 }, other: { median: 5 } };
  expect(renderLines({ rows: [row("text", cells)] })).toContain("| text (ms) |  | 4 | 5 1.3x |");
});

it("a cell without a figure says why", () => {
  const cells = { gyre: { median: 4 }, other: { note: "over 60 s" } };
  expect(renderLines({ rows: [row("text", cells)] })).toContain("| text (ms) |  | 4 | over 60 s |");
});

it("a count has no unit", () => {
  const packages: ResultRow = { ...row("packages", { gyre: { median: 3 } }), unit: "" };
  expect(renderLines({ rows: [packages] })).toContain("| packages |  | 3 |  |");
});

it("growth is shown as an exponent, and left out where there is none", () => {
  const growth = [{ case: "text", title: "growth of text", cells: { gyre: 1, other: 1.987 } }];
  expect(renderLines({ growth })).toContain("| growth of text: exponent |  | 1.00 | 1.99 |");
});

const behaviors = [{ name: "a", title: "a tool throws", cells: { gyre: "ends", other: "dies" } }];

it("the floor has no column among the behaviors", () => {
  const lines = renderLines({ behaviors });
  expect(lines).toContain("|  | Gyre | Other |");
  expect(lines).toContain("| a tool throws | ends | dies |");
});

it("no other column is lost where the floor was not measured", () => {
  const lines = renderLines({ behaviors, columns: found.columns.slice(1) });
  expect(lines).toContain("| a tool throws | ends | dies |");
});

it("all rows of a table have as many cells as its head", () => {
  const lines = renderLines({
    rows: [row("text", {}), row("tools", { gyre: { median: 1 } })],
    growth: [{ case: "text", title: "growth", cells: {} }],
    behaviors,
  }).filter((line) => line.startsWith("|"));
  const widths = lines.map((line) => line.split("|").length - 2);
  expect(widths).toEqual([4, 4, 4, 4, 4, 3, 3, 3]);
});

it("the versions are those of the libraries; the floor has none", () => {
  expect(renderLines({})).toContain("Versions: Gyre 0.1.0, Other 9.8.7.");
});

it("the report ends with where we stand", () => {
  expect(markdown(found).endsWith(standing(found))).toBe(true);
});

it("where we stand counts the rows that were a race, and names the lost ones", () => {
  const rows = [
    row("won", { gyre: { median: 1 }, other: { median: 2 } }),
    row("lost", { gyre: { median: 4 }, other: { median: 1 } }),
    row("alone", { gyre: { median: 1 }, other: { note: "none" } }),
    row("against the floor", { floor: { median: 0.5 }, gyre: { median: 1 } }),
  ];
  expect(standing({ ...found, rows })).toBe(
    "Gyre is first in 1 of 2 rows.\n- lost: Other is first with 0.25x of Gyre's.",
  );
});

it("a row where we have no figure and others do is lost", () => {
  const columns = [...found.columns, { id: "third", name: "Third", version: "1.0.0" }];
  const cells = { gyre: { note: "failed" }, other: { median: 2 }, third: { median: 1 } };
  expect(standing({ ...found, columns, rows: [row("text", cells)] })).toBe(
    "Gyre is first in 0 of 1 rows.\n- text: Third is first.",
  );
});

it.each([
  [123_456.7, "123,457"],
  [123.4, "123"],
  [99.96, "100"],
  [12.34, "12.3"],
  [9.996, "10.0"],
  [1.234, "1.23"],
  [0.996, "1.00"],
  [0.1234, "0.12"],
  [0.001234, "0.0012"],
  [-12.34, "-12.3"],
])("%d has the digits of %s", (value, text) => {
  expect(figure(value)).toBe(text);
});

it.each([0, 3, 12, 100])("the whole number %d has no digits after the point", (value) => {
  expect(figure(value)).toBe(String(value));
});

it("a table without rows is left out", () => {
  const lines = renderLines({
    rows: [row("text", { gyre: { median: 4 } })],
    growth: [],
    behaviors: [],
  });
  expect(lines.filter((line) => line.startsWith("| ---"))).toHaveLength(1);
});
