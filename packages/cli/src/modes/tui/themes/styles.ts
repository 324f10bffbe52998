const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const ATTRIBUTES: Readonly<Record<string, string>> = {
  bold: "1",
  dim: "2",
  italic: "3",
  underline: "4",
  inverse: "7",
  struck: "9",
};
const FOREGROUND = 30;
const BACKGROUND = 40;
/** From a color to its bright one. */
const BRIGHT = 60;
const DEFAULT = 9;
const MAX_INDEX = 255;
const BRIGHT_NAME = /^bright-/;
const HEX = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})$/i;
const HEX_BASE = 16;
/** The cube of a terminal's 256 colors: where it begins, and the levels of red, green and blue. */
const CUBE_START = 16;
const CUBE = [0, 95, 135, 175, 215, 255] as const;

/** What a style may be, as the end of "must be". */
export const ALLOWED_STYLES: string = `a text such as "bold cyan", "#ff8800", "208", "bright-red on 236" or "default": colors are ${NAMES.join(", ")}, "bright-" and one of these, 0 to ${MAX_INDEX}, and #rrggbb; other words are ${Object.keys(ATTRIBUTES).join(", ")}`;

/** The SGR parameters of a style in words; undefined where a word is unknown. `hasTrueColor`: the terminal has 16 million. */
export function parseStyle(text: string, hasTrueColor: boolean): string | undefined {
  const words = text.trim().toLowerCase().split(/\s+/);
  const parts: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const attribute = Object.hasOwn(ATTRIBUTES, word) ? ATTRIBUTES[word] : undefined;
    const isBehind = word === "on";
    if (isBehind) at += 1;
    const base = isBehind ? BACKGROUND : FOREGROUND;
    const part = attribute ?? parseColor(words[at] ?? "", base, hasTrueColor);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return parts.join(";");
}

function parseColor(word: string, base: number, hasTrueColor: boolean): string | undefined {
  if (word === "default") return String(base + DEFAULT);
  const name = NAMES.indexOf(word.replace(BRIGHT_NAME, ""));
  if (name >= 0) return String(base + name + (BRIGHT_NAME.test(word) ? BRIGHT : 0));
  const kind = base + 8;
  if (/^\d{1,3}$/.test(word) && Number(word) <= MAX_INDEX) return `${kind};5;${Number(word)}`;
  const [, ...hex] = HEX.exec(word) ?? [];
  if (hex.length === 0) return undefined;
  const rgb = hex.map((each) => Number.parseInt(each, HEX_BASE));
  if (hasTrueColor) return `${kind};2;${rgb.join(";")}`;
  const [red = 0, green = 0, blue = 0] = rgb.map(findLevel);
  return `${kind};5;${CUBE_START + (red * CUBE.length + green) * CUBE.length + blue}`;
}

/** The nearest level of the cube. */
function findLevel(value: number): number {
  const distances = CUBE.map((level) => Math.abs(level - value));
  return distances.indexOf(Math.min(...distances));
}
