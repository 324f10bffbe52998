export type Background = "light" | "dark";

const COLOR = /^11;rgba?:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})/i;
const HEX_BASE = 16;
/** How much of the brightness red, green and blue are. */
const WEIGHTS = [0.299, 0.587, 0.114] as const;
const HALF = 0.5;
/** The light ones of a terminal's 16 colors. */
const LIGHT_INDEXES: ReadonlySet<string> = new Set(["7", "9", "10", "11", "12", "13", "14", "15"]);
const DARK_INDEXES: ReadonlySet<string> = new Set(["0", "1", "2", "3", "4", "5", "6", "8"]);

/** Reads what a terminal answers to the question about its background: `11;rgb:ffff/ffff/ffff`. */
export function parseBackground(answer: string): Background | undefined {
  const [, ...parts] = COLOR.exec(answer) ?? [];
  if (parts.length === 0) return undefined;
  const brightness = parts.reduce((sum, part, index) => {
    const most = HEX_BASE ** part.length - 1;
    return sum + (WEIGHTS[index] ?? 0) * (Number.parseInt(part, HEX_BASE) / most);
  }, 0);
  return brightness > HALF ? "light" : "dark";
}

/** Reads COLORFGBG, by which some terminals give the numbers of their colors: `15;0`, `0;default;15`. */
export function readColorVariable(value: string | undefined): Background | undefined {
  const last = value?.split(";").at(-1) ?? "";
  if (LIGHT_INDEXES.has(last)) return "light";
  return DARK_INDEXES.has(last) ? "dark" : undefined;
}
