import { mkdir, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/**
 * Draws the end of a real run of the demo as docs/demo.svg, for the README. Run it after
 * a build: node scripts/demo-svg.mjs
 *
 * @typedef {{ text: string, column: number, colour: string, bold: boolean }} Piece
 */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COLUMNS = 80;
/** From the end; the picture then begins with a whole paragraph. */
const MAX_LINES = 36;

const CHARACTER_WIDTH = 8.4;
const LINE_HEIGHT = 20;
const FONT_SIZE = 14;
const PADDING = 14;
const TITLE_HEIGHT = 34;

const TEXT = "#d5dae3";
const DIM = "#7f8899";
/** @type {Readonly<Record<number, string>>} by SGR number */
const COLOURS = { 31: "#f07c82", 32: "#8fc98b", 33: "#e5c07b", 36: "#6cc1d3" };

const lines = endOf(runDemo());
await mkdir(`${ROOT}/docs`, { recursive: true });
await writeFile(`${ROOT}/docs/demo.svg`, draw(lines));

/** @returns {string} what the demo wrote, with its colours */
function runDemo() {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [`${ROOT}/packages/cli/dist/main.js`, "demo", "--fast"],
    { encoding: "utf8", env: { ...process.env, FORCE_COLOR: "1" } },
  );
  if (status !== 0) throw new Error(`The demo ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

/** @param {string} output */
function endOf(output) {
  const last = output.trimEnd().split("\n").slice(-MAX_LINES);
  return last.slice(last.indexOf("") + 1);
}

/** @param {readonly string[]} shown */
function draw(shown) {
  const width = COLUMNS * CHARACTER_WIDTH + 2 * PADDING;
  const height = TITLE_HEIGHT + shown.length * LINE_HEIGHT + 2 * PADDING;
  const dots = ["#f07c82", "#e5c07b", "#8fc98b"].map(
    (colour, index) =>
      `<circle cx="${20 + index * 18}" cy="${TITLE_HEIGHT / 2 + 2}" r="5.5" fill="${colour}"/>`,
  );
  const texts = drawLines(shown);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>The end of gyre demo: the agent edits a file, the tests pass</title>
<rect width="${width}" height="${height}" rx="10" fill="#171b22"/>
${dots.join("\n")}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_SIZE}">
<text x="${width / 2}" y="${TITLE_HEIGHT / 2 + 7}" text-anchor="middle" fill="${DIM}">gyre demo</text>
${texts.join("\n")}
</g>
</svg>
`;
}

/**
 * Styles go on from one line to the next, as they do in a terminal.
 *
 * @param {readonly string[]} shown
 */
function drawLines(shown) {
  let style = { colour: 39, bold: false, dim: false };
  return shown.flatMap((line, row) => {
    const y = TITLE_HEIGHT + PADDING + row * LINE_HEIGHT + FONT_SIZE;
    /** @type {string[]} */
    const drawn = [];
    let column = 0;
    // eslint-disable-next-line no-control-regex -- it is what colours are made of
    for (const [part, sgr] of line.matchAll(/\x1b\[(\d+)m| {2,}|(?:(?! {2})[ -~])+|[^ -~\x1b]/gu)) {
      if (sgr !== undefined) {
        style = restyled(style, Number(sgr));
        continue;
      }
      const colour = COLOURS[style.colour] ?? (style.dim ? DIM : TEXT);
      if (part.trim() !== "")
        drawn.push(drawPiece({ text: part, column, colour, bold: style.bold }, y));
      column += [...part].length;
    }
    return drawn;
  });
}

/**
 * @param {{ colour: number, bold: boolean, dim: boolean }} style
 * @param {number} sgr
 */
function restyled(style, sgr) {
  if (sgr === 1) return { ...style, bold: true };
  if (sgr === 2) return { ...style, dim: true };
  if (sgr === 22) return { ...style, bold: false, dim: false };
  return { ...style, colour: sgr };
}

/**
 * Each piece has its own place and length, so that no font puts the columns out of line.
 *
 * @param {Piece} piece
 * @param {number} y
 */
function drawPiece({ text, column, colour, bold }, y) {
  const start = text.search(/\S/);
  const inked = text.trim();
  const x = (PADDING + (column + start) * CHARACTER_WIDTH).toFixed(1);
  const length =
    inked.length > 1 ? ` textLength="${(inked.length * CHARACTER_WIDTH).toFixed(1)}"` : "";
  const weight = bold ? ' font-weight="bold"' : "";
  return `<text x="${x}" y="${y}" fill="${colour}"${weight}${length}>${escaped(inked)}</text>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
