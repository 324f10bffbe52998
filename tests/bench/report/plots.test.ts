import { expect, it } from "vitest";
import { COLUMNS } from "../peers/peers.ts";
import { growthPlot, speedPlot } from "./plots.ts";
import type { Cell, ResultRow, Results } from "./results.ts";

const row = (
  name: string,
  size: number,
  cells: Readonly<Record<string, Cell>>,
  title = `${name} ${size}`,
): ResultRow => ({ case: name, size, title, unit: "ms", cells });

const of = (gyre: number, other: number): Record<string, Cell> => ({
  floor: { median: gyre / 2 },
  gyre: { median: gyre },
  other: { median: other },
});

const found: Results = {
  when: "2030-01-02T03:04:05.000Z",
  node: "v24.0.0",
  machine: "made up",
  rounds: 5,
  columns: [
    { id: "floor", name: "floor", version: "" },
    { id: "gyre", name: "Gyre", version: "0.1.0" },
    { id: "other", name: "Other & <sons>", version: "9.8.7" },
  ],
  rows: [
    row("text", 100, of(1, 5)),
    row("text", 1_000, of(10, 400)),
    row("tools", 5, of(3, 2), "tools <a & b>"),
  ],
  growth: [{ case: "text", title: "growth of text", cells: { gyre: 1, other: 1.9 } }],
  behaviors: [],
};

const PLOTS = [
  ["speed", speedPlot],
  ["growth", growthPlot],
] as const;

const TAG = /<(?<close>\/?)(?<name>\w+)(?:\s+[\w-]+=(?:"[^"<&]*"|'[^'<&]*'))*\s*(?<empty>\/?)>/g;

/** That every tag is well made and closed, all text escaped, and every number a number. */
function expectDrawn(svg: string): void {
  const open: string[] = [];
  for (const { groups } of svg.matchAll(TAG)) {
    if (groups?.["close"]) expect(open.pop()).toBe(groups["name"]);
    else if (!groups?.["empty"]) open.push(groups?.["name"] ?? "");
  }
  expect(open).toEqual([]);
  expect(svg.replaceAll(TAG, "").replaceAll(/&(?:amp|lt|gt);/g, "")).not.toMatch(/[<>&]/);
  expect(svg).not.toMatch(/NaN|Infinity|undefined|null/);
}

/** The fills of the dots, in the order in which they are drawn. */
const dots = (svg: string): string[] =>
  [...svg.matchAll(/<circle [^>]*fill="(#\w+)"/g)].map(([, fill = ""]) => fill);

const numbers = (svg: string, name: string): number[] =>
  [...svg.matchAll(new RegExp(`\\b${name}="([^"]*)"`, "g"))].map(([, value]) => Number(value));

it.each(PLOTS)("the %s plot is well-formed, whatever the names have in them", (_, plot) => {
  const svg = plot(found);
  expectDrawn(svg);
  expect(svg).toContain(">Other &amp; &lt;sons&gt;</text>");
});

it.each(PLOTS)("all dots of the %s plot are within the picture", (_, plot) => {
  const svg = plot(found);
  const [, , width = 0, height = 0] = /viewBox="([^"]*)"/.exec(svg)?.[1]?.split(" ") ?? [];
  for (const x of numbers(svg, "cx")) expect(x > 0 && x < Number(width)).toBe(true);
  for (const y of numbers(svg, "cy")) expect(y > 0 && y < Number(height)).toBe(true);
});

const everybody = COLUMNS.map(({ id }) => ({ id, name: `name of ${id}`, version: "" }));

it("every column is in the legend; the floor only where it is drawn", () => {
  const [speed, growth] = [speedPlot, growthPlot].map((plot) =>
    plot({ ...found, columns: everybody }),
  );
  for (const { id, name } of everybody) {
    expect(growth).toContain(`>${name}</text>`);
    expect(speed?.includes(`>${name}</text>`)).toBe(id !== "floor");
  }
});

it("every column has a color of its own", () => {
  const legend = dots(growthPlot({ ...found, columns: everybody, rows: [], growth: [] }));
  expect(new Set(legend).size).toBe(COLUMNS.length);
});

it("a work that comes in sizes is raced in the largest", () => {
  const svg = speedPlot(found);
  expect(svg).not.toContain(">text 100<");
  expect(svg).toContain(">text 1000<");
});

it("our dots stand above each other; who takes more is to the right of them", () => {
  const svg = speedPlot({ ...found, rows: [row("a", 1, of(2, 20)), row("b", 1, of(5, 1))] });
  const [, , ours = 0, slower, oursAgain, faster] = numbers(svg, "cx");
  expect(oursAgain).toBe(ours);
  expect(slower).toBeGreaterThan(ours);
  expect(faster).toBeLessThan(ours);
});

it("a row where we have no figure has its title and no dots", () => {
  const without = { ...of(1, 5), gyre: { note: "failed" } };
  const alone = { ...found, rows: [row("turns", 1, without)] };
  const svg = speedPlot(alone);
  expectDrawn(svg);
  expect(svg).toContain(">turns 1</text>");
  const inLegend = found.columns.length - 1;
  expect(dots(svg)).toHaveLength(inLegend);
  const both = speedPlot({ ...found, rows: [...found.rows, ...alone.rows] });
  expectDrawn(both);
  expect(dots(both)).toHaveLength(dots(speedPlot(found)).length);
});

const same = { floor: { median: 1 }, gyre: { median: 1 }, other: { median: 1 } };

it.each<[string, Partial<Results>]>([
  ["nothing was measured", { rows: [], growth: [] }],
  ["a work was not measured", { rows: [row("text", 1, { gyre: { note: "none" } })] }],
  ["only we were measured", { columns: found.columns.slice(1, 2) }],
  ["all take the same", { rows: [row("text", 10, same), row("text", 100, same)] }],
  ["there is one size", { rows: [row("text", 1_000, of(1, 5))] }],
  ["a figure is nothing", { rows: [row("text", 10, of(1, 0)), row("text", 100, of(0, 1))] }],
  ["a figure is lost in the noise", { rows: [row("text", 10, of(-1, 3))] }],
  ["a figure is tiny", { rows: [row("text", 10, of(1, 0.000_01))] }],
])("the plots can be drawn where %s", (_, more) => {
  for (const [, plot] of PLOTS) expectDrawn(plot({ ...found, ...more }));
});

it("no two lines of the scale have the same figure", () => {
  const svg = speedPlot({ ...found, rows: [row("text", 10, of(1, 0.000_01))] });
  const scale = [...svg.matchAll(/>([\d.,]+x)</g)].map(([, figure]) => figure);
  expect(scale).toEqual(["0.00001x", "0.0001x", "0.001x", "0.01x", "0.1x", "1x"]);
});

it("growth is a line of each library through the sizes that it has a figure for", () => {
  const rows = [row("text", 10, of(1, 5)), row("text", 100, { ...of(9, 0), other: {} })];
  const svg = growthPlot({ ...found, rows });
  const lines = [...svg.matchAll(/<polyline points="([^"]*)"/g)].map(([, points = ""]) =>
    points === "" ? 0 : points.split(" ").length,
  );
  expect(lines).toEqual([2, 2, 1]);
});
