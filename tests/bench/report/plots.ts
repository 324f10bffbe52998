import { FLOOR, OURS, type Results, type ResultRow, timesOurs } from "./results.ts";

/** A color for each column that is distinct on white; ours is the darkest. */
const COLORS: Readonly<Record<string, string>> = {
  floor: "#b5b5b5",
  gyre: "#111111",
  "gyre-agent": "#666666",
  "pi-0.87-loop": "#a63603",
  "pi-0.87": "#e6550d",
  "pi-0.73-loop": "#fd8d3c",
  "pi-0.73": "#fdbe85",
  "ai-sdk": "#1f78b4",
  "ai-sdk-agent": "#8ec7ea",
  "openai-agents": "#1b9e77",
  langchain: "#e7298a",
  "langchain-events": "#f4a3cf",
  mastra: "#7570b3",
  strands: "#a6761d",
};

const FONT = "font-family='system-ui, sans-serif'";
const DOT = 5;

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function words(x: number, y: number, text: string, more = ""): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="12" fill="#333" ${more}>${escape(text)}</text>`;
}

const heading = (text: string): string =>
  words(16, 26, text, 'font-weight="600" style="font-size:15px"');

function line(x1: number, y1: number, x2: number, y2: number, color = "#ddd"): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1));
  return `<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" stroke="${color}"/>`;
}

function dot(x: number, y: number, id: string): string {
  const color = COLORS[id] ?? "#000";
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${DOT}" fill="${color}" fill-opacity="0.9"/>`;
}

function svg(width: number, height: number, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ${FONT} role="img">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** The columns' names, each with its color, in lines that fit. */
function legend(results: Results, x: number, y: number, width: number, without: string): string[] {
  const parts: string[] = [];
  let [at, row] = [x, y];
  for (const { id, name } of results.columns.filter((column) => column.id !== without)) {
    const space = 24 + name.length * 7;
    if (at + space > x + width) [at, row] = [x, row + 18];
    parts.push(dot(at + DOT, row - 4, id), words(at + 16, row, name));
    at += space;
  }
  return parts;
}

/** The powers of ten that hold all values; two at the least, for a way from one to the other. */
function decades(values: readonly number[]): { from: number; to: number } {
  const logs = values.map((value) => Math.log10(value));
  const from = Math.floor(Math.min(...logs));
  return { from, to: Math.max(from + 1, Math.ceil(Math.max(...logs))) };
}

/** What has a place among powers of ten; a figure that noise made nothing, or less, has none. */
function placed(value: number | undefined): value is number {
  return value !== undefined && value > 0;
}

/** How many times ours, for those in the race. */
function computeRatio(row: ResultRow, id: string): number | undefined {
  return id === FLOOR ? undefined : timesOurs(row, id);
}

/** The rows of a plot: of each case and figure the largest size. */
function largest(results: Results): ResultRow[] {
  return results.rows.filter(
    (row, at) =>
      !results.rows.slice(at + 1).some((later) => later.case === row.case && later.size > row.size),
  );
}

const powerOfTen = (power: number): string =>
  (10 ** power).toLocaleString("en", { maximumSignificantDigits: 1 });

/** How many times our figure each library takes, work by work. */
export function speedPlot(results: Results): string {
  const [width, left, right, step, top] = [960, 370, 44, 26, 92];
  const rows = largest(results);
  const ratios = rows
    .flatMap((row) => results.columns.map(({ id }) => computeRatio(row, id)))
    .filter(placed);
  const { from, to } = decades([...ratios, 1]);
  const across = (times: number): number =>
    left + ((Math.log10(times) - from) / (to - from)) * (width - left - right);
  const bottom = top + rows.length * step;
  const parts = [
    heading("Times what Gyre takes: less is better"),
    ...legend(results, 16, 50, width - 32, FLOOR),
  ];
  for (let power = from; power <= to; power++) {
    const x = across(10 ** power);
    parts.push(line(x, top - 8, x, bottom, power === 0 ? "#888" : "#ddd"));
    parts.push(words(x, bottom + 18, `${powerOfTen(power)}x`, 'text-anchor="middle"'));
  }
  for (const [at, row] of rows.entries()) {
    const y = top + at * step + step / 2;
    parts.push(line(left, y, width - right, y, "#f2f2f2"));
    parts.push(words(left - 12, y + 4, row.title, 'text-anchor="end"'));
    for (const { id } of results.columns) {
      const times = computeRatio(row, id);
      if (placed(times)) parts.push(dot(across(times), y, id));
    }
  }
  return svg(width, bottom + 32, "Work by work, how many times what Gyre takes", parts);
}

/** Time over size for the works that come in sizes, both as powers of ten. */
export function growthPlot(results: Results): string {
  const [width, height, gap, top] = [960, 380, 62, 84];
  const each = (width - gap * (results.growth.length + 1)) / results.growth.length;
  const bottom = height - 44;
  const parts = [
    heading("CPU time as the work grows, ms"),
    ...legend(results, 16, 48, width - 32, ""),
  ];
  for (const [at, growth] of results.growth.entries()) {
    const left = gap + at * (each + gap);
    const rows = results.rows.filter((row) => row.case === growth.case);
    const times = rows
      .flatMap(({ cells }) => Object.values(cells).map(({ median }) => median))
      .filter(placed);
    if (times.length === 0) continue;
    const [sizes, spans] = [decades(rows.map(({ size }) => size)), decades(times)];
    const across = (size: number): number =>
      left + ((Math.log10(size) - sizes.from) / (sizes.to - sizes.from)) * each;
    const down = (ms: number): number =>
      bottom - ((Math.log10(ms) - spans.from) / (spans.to - spans.from)) * (bottom - top);
    for (let power = spans.from; power <= spans.to; power++) {
      const y = down(10 ** power);
      parts.push(line(left, y, left + each, y));
      parts.push(words(left - 8, y + 4, powerOfTen(power), 'text-anchor="end"'));
    }
    for (const { size } of rows) {
      const x = across(size);
      parts.push(words(x, bottom + 18, size.toLocaleString("en"), 'text-anchor="middle"'));
    }
    parts.push(words(left + each / 2, bottom + 36, growth.case, 'text-anchor="middle"'));
    for (const { id } of results.columns) {
      const points = rows.flatMap(({ size, cells }) => {
        const ms = cells[id]?.median;
        return placed(ms) ? [[across(size), down(ms)] as const] : [];
      });
      const path = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
      const stroke = id === OURS ? 3 : 1.5;
      parts.push(
        `<polyline points="${path}" fill="none" stroke="${COLORS[id] ?? "#000"}" stroke-width="${stroke}"/>`,
        ...points.map(([x, y]) => dot(x, y, id)),
      );
    }
  }
  return svg(width, height, "CPU time as the work grows", parts);
}
