import {
  type Cell,
  FLOOR,
  OURS,
  ranking,
  type Results,
  type ResultRow,
  timesOurs,
} from "./results.ts";

/** Both tables, and what is to be said of them, in Markdown. */
export function markdown(results: Results): string {
  const heads = results.columns.map(({ name }) => name);
  const racing = results.columns.filter(({ id }) => id !== FLOOR);
  const speed = results.rows.map((row) => [
    formatTitle(row),
    ...results.columns.map(({ id }) => cellText(row, id)),
  ]);
  const growth = results.growth.map(({ title, cells }) => [
    `${title}: exponent`,
    ...results.columns.map(({ id }) => cells[id]?.toFixed(2) ?? ""),
  ]);
  const behaviors = results.behaviors.map(({ title, cells }) => [
    title,
    ...racing.map(({ id }) => cells[id] ?? ""),
  ]);
  return [
    `Node ${results.node}, ${results.machine}, ${results.when.slice(0, 10)}: medians of ${results.rounds} round${results.rounds === 1 ? "" : "s"}, and how far the samples were from them; "12x" is twelve times what Gyre takes.`,
    "",
    ...table(["", ...heads], [...speed, ...growth]),
    "",
    ...table(["", ...racing.map(({ name }) => name)], behaviors),
    "",
    `Versions: ${results.columns
      .filter(({ version }) => version !== "")
      .map(({ name, version }) => `${name} ${version}`)
      .join(", ")}.`,
    "",
    standing(results),
  ].join("\n");
}

/** In which rows we are not first, and by how much. */
export function standing(results: Results): string {
  const races = results.rows.filter((row) => ranking(row).length > 1);
  const lost = races.filter((row) => ranking(row)[0] !== OURS);
  const lines = lost.map((row) => {
    const first = ranking(row)[0] ?? "";
    const name = results.columns.find(({ id }) => id === first)?.name ?? first;
    const times = timesOurs(row, first);
    return `- ${row.title}: ${name} is first${times === undefined ? "" : ` with ${times.toFixed(2)}x of Gyre's`}.`;
  });
  return [`Gyre is first in ${races.length - lost.length} of ${races.length} rows.`, ...lines].join(
    "\n",
  );
}

function formatTitle({ title, unit }: ResultRow): string {
  return unit === "" ? title : `${title} (${unit})`;
}

function cellText(row: ResultRow, id: string): string {
  const cell = row.cells[id];
  if (cell === undefined) return "";
  if (cell.median === undefined) return cell.note ?? "";
  const times = id === OURS || id === FLOOR ? undefined : timesOurs(row, id);
  const ratio = times === undefined ? "" : ` ${times < 10 ? times.toFixed(1) : times.toFixed(0)}x`;
  const note = cell.note === undefined ? "" : `; ${cell.note}`;
  return `${figure(cell.median)}${spread(cell)}${ratio}${note}`;
}

/** How far the samples are from their median at the most, in hundredths of it. */
function spread({ median = 0, low = median, high = median }: Cell): string {
  const far = Math.max(median - low, high - median);
  return far === 0 || median <= 0 ? "" : ` ±${Math.round((far / median) * 100)} %`;
}

/** Three digits, two of what is less than 1; a whole number as it is. */
export function figure(value: number): string {
  if (value < 0) return `-${figure(-value)}`;
  if (Number.isInteger(value) || value >= 99.95) return Math.round(value).toLocaleString("en");
  // What would be rounded up to 10 or to 1 has its digits.
  if (value >= 9.995) return value.toFixed(1);
  return value >= 0.995 ? value.toFixed(2) : value.toPrecision(2);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  // Of a part of the work there may be nothing to show.
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)];
}
