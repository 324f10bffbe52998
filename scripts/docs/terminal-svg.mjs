import { splitClusters } from "../../packages/cli/dist/text/width.js";

/**
 * Draws what a terminal shows, from its cells: a picture, or a film of many. No script, one
 * style sheet; a row that is shown often is drawn once and used again.
 *
 * @typedef {import("../../packages/cli/dist/testing/screen-text.js").Piece} Piece
 * @typedef {import("../../packages/cli/dist/testing/screen-text.js").Look} Look
 * @typedef {{ row: number, column: number }} Place
 * @typedef {{ rows: readonly Piece[][], cursor?: Place | undefined }} Screen
 * @typedef {Screen & { ms: number }} Frame a screen, and how long it is shown
 * @typedef {{ columns: number, title: string, about: string }} Caption
 */

const CHARACTER_WIDTH = 8.4;
const LINE_HEIGHT = 20;
const FONT_SIZE = 14;
/** From the top of a row to where its letters stand. */
const BASELINE = 14.5;
const PADDING = 14;
const TITLE_HEIGHT = 34;

const BACKGROUND = "#171b22";
const TEXT = "#d5dae3";
const FAINT = "#7f8899";
/** The sixteen colors that a theme sets; the rest of the 256 are the same everywhere. */
const PALETTE =
  "#2b313c #f07c82 #8fc98b #e5c07b #7aa7ec #c49aea #6cc1d3 #d5dae3 #5c6677 #ff9aa0 #a9e0a5 #f3d497 #9fc1f7 #d9b8f7 #8ed9e8 #ffffff".split(
    " ",
  );
const CUBE_STEPS = [0, 95, 135, 175, 215, 255];
const CUBE_START = 16;
const GRAY_START = 232;
const BASE_36 = 36;

/**
 * @param {Screen} screen
 * @param {Caption} caption
 */
export function drawStill(screen, caption) {
  const count = screen.rows.length;
  const rows = screen.rows.map((row, nth) => group(row, nth)).filter((row) => row !== "");
  return page(caption, count, "", rows.join("\n") + drawCursor(screen.cursor));
}

/**
 * The frames stand side by side and are drawn past a window, one after the other, again and
 * again. Viewers that want no motion, or cannot show it, see the last one.
 *
 * @param {readonly Frame[]} frames
 * @param {Caption} caption
 */
export function drawFilm(frames, caption) {
  const { width } = computeSize(caption.columns, 0);
  const count = Math.max(...frames.map(({ rows }) => rows.length));
  const whole = frames.reduce((sum, { ms }) => sum + ms, 0);
  /** @type {Map<string, string>} */
  const names = new Map();
  let at = 0;
  const steps = frames.map(({ ms }, nth) => {
    const step = `${percent(at / whole)}{transform:translateX(${-nth * width}px)}`;
    at += ms;
    return step;
  });
  const drawn = frames.map(({ rows, cursor }, nth) => {
    const uses = rows.map((row, y) => {
      const inside = drawRow(row);
      if (inside === "") return "";
      const name = names.get(inside) ?? names.size.toString(BASE_36);
      names.set(inside, name);
      return `<use href="#r${name}" y="${y * LINE_HEIGHT}"/>`;
    });
    return `<g transform="translate(${nth * width})">${uses.join("")}${drawCursor(cursor)}</g>`;
  });
  const defs = [...names].map(([inside, name]) => `<g id="r${name}">${inside}</g>`);
  const last = `transform:translateX(${-(frames.length - 1) * width}px)`;
  const style =
    `.f{${last};animation:f ${(whole / 1000).toFixed(2)}s step-end infinite}` +
    `@media (prefers-reduced-motion:reduce){.f{animation:none}}` +
    `@keyframes f{${steps.join("")}}`;
  const film = `<defs>${defs.join("\n")}</defs>\n<g class="f">${drawn.join("\n")}</g>`;
  return page(caption, count, style, film);
}

/**
 * @param {number} columns
 * @param {number} rows
 */
function computeSize(columns, rows) {
  return {
    width: Math.ceil(columns * CHARACTER_WIDTH + 2 * PADDING),
    height: TITLE_HEIGHT + rows * LINE_HEIGHT + 2 * PADDING,
  };
}

/**
 * @param {Caption} caption
 * @param {number} rows
 * @param {string} style
 * @param {string} inside
 */
function page({ columns, title, about }, rows, style, inside) {
  const { width, height } = computeSize(columns, rows);
  const top = TITLE_HEIGHT + PADDING;
  const dots = [1, 3, 2].map(
    (color, nth) =>
      `<circle cx="${20 + nth * 18}" cy="${TITLE_HEIGHT / 2 + 2}" r="5.5" fill="${PALETTE[color]}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(about)}</title>
<style>${styleSheet(inside)}${style}</style>
<rect width="${width}" height="${height}" rx="10" fill="${BACKGROUND}"/>
${dots.join("\n")}
<text x="${width / 2}" y="${TITLE_HEIGHT / 2 + 7}" text-anchor="middle" class="faint">${escaped(title)}</text>
<svg y="${top}" width="${width}" height="${rows * LINE_HEIGHT + 4}">
${inside}
</svg>
</svg>
`;
}

/**
 * Of the colors, those that are used.
 *
 * @param {string} inside
 */
function styleSheet(inside) {
  const colors = PALETTE.flatMap((color, nth) =>
    new RegExp(`class="[^"]*\\bc${nth}\\b`).test(inside) ? [`.c${nth}{fill:${color}}`] : [],
  );
  const font = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";
  return (
    `text{font:${FONT_SIZE}px ${font};fill:${TEXT};white-space:pre}` +
    `.faint{fill:${FAINT}}.b{font-weight:bold}.d{fill-opacity:.6}.i{font-style:italic}` +
    `.u{text-decoration:underline}.s{text-decoration:line-through}.k{fill:${TEXT};fill-opacity:.55}` +
    colors.join("")
  );
}

/**
 * @param {readonly Piece[]} row
 * @param {number} nth
 */
function group(row, nth) {
  const inside = drawRow(row);
  return inside === "" ? "" : `<g transform="translate(0 ${nth * LINE_HEIGHT})">${inside}</g>`;
}

/** @param {Place | undefined} cursor */
function drawCursor(cursor) {
  if (cursor === undefined) return "";
  const [x, y] = [left(cursor.column), cursor.row * LINE_HEIGHT];
  return `<rect class="k" x="${x}" y="${y}" width="${CHARACTER_WIDTH}" height="${LINE_HEIGHT - 2}"/>`;
}

/** @param {readonly Piece[]} row */
function drawRow(row) {
  return row.map((piece) => drawBack(piece) + drawText(piece)).join("");
}

/** @param {Piece} piece */
function drawBack({ column, columns, look }) {
  const color = look.inverse ? (toColor(look.foreground) ?? TEXT) : toColor(look.background);
  if (color === undefined) return "";
  return `<rect x="${left(column)}" width="${length(columns)}" height="${LINE_HEIGHT}" fill="${color}"/>`;
}

/**
 * Each run of letters has its own place and length, and so has each character beyond ASCII:
 * no font puts the columns out of line.
 *
 * @param {Piece} piece
 */
function drawText({ text, column, look }) {
  const { attributes, classes } = paint(look);
  const drawn = [];
  let at = column;
  for (const [part] of text.matchAll(/ {2,}|(?:(?! {2})[ -~])+|[^ -~]+/gu)) {
    const inked = part.trim();
    if (/^[ -~]/.test(part)) {
      const start = at + part.indexOf(inked);
      if (inked !== "") drawn.push(element(inked, start, inked.length, classes, attributes));
      at += part.length;
      continue;
    }
    for (const cluster of splitClusters(part)) {
      drawn.push(element(cluster.text, at, 1, classes, attributes));
      at += cluster.width;
    }
  }
  return drawn.join("");
}

/**
 * @param {string} text
 * @param {number} column
 * @param {number} columns
 * @param {string} classes
 * @param {string} attributes
 */
function element(text, column, columns, classes, attributes) {
  const size = columns > 1 ? ` textLength="${length(columns)}"` : "";
  const named = classes === "" ? "" : ` class="${classes}"`;
  return `<text x="${left(column)}" y="${BASELINE}"${size}${named}${attributes}>${escaped(text)}</text>`;
}

/** @param {Look} look */
function paint(look) {
  const classes = [
    look.bold ? "b" : "",
    look.dim ? "d" : "",
    look.italic ? "i" : "",
    look.underline ? "u" : "",
    look.struck ? "s" : "",
  ].filter((name) => name !== "");
  const color = look.inverse ? (look.background ?? BACKGROUND) : look.foreground;
  if (typeof color === "number" && color < CUBE_START) classes.push(`c${color}`);
  else if (color !== undefined) {
    return { classes: classes.join(" "), attributes: ` style="fill:${toColor(color)}"` };
  }
  return { classes: classes.join(" "), attributes: "" };
}

/**
 * @param {number | string | undefined} color
 * @returns {string | undefined}
 */
function toColor(color) {
  if (typeof color !== "number") return color;
  if (color < CUBE_START) return PALETTE[color];
  if (color >= GRAY_START) {
    const gray = 8 + (color - GRAY_START) * 10;
    return `rgb(${gray},${gray},${gray})`;
  }
  const cube = color - CUBE_START;
  const parts = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6];
  return `rgb(${parts.map((part) => CUBE_STEPS[part]).join(",")})`;
}

/** @param {number} column */
function left(column) {
  return Number((PADDING + column * CHARACTER_WIDTH).toFixed(1));
}

/** @param {number} columns */
function length(columns) {
  return Number((columns * CHARACTER_WIDTH).toFixed(1));
}

/** @param {number} share */
function percent(share) {
  return `${Number((share * 100).toFixed(3))}%`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
