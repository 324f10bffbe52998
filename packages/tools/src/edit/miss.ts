import { readIndent, type Line, trimLineEnd } from "../text/line-ends.ts";

/** So much of a file is looked at for the nearest place, in UTF-16 units. */
export const MAX_LOOKED_AT_CHARS: number = 1024 * 1024;
/** So many lines of the nearest place are shown. */
export const MAX_SHOWN_LINES = 20;
/** Of one line so much is shown. */
export const MAX_SHOWN_LINE_CHARS = 200;
/** A line that is in the old text more often than this says little about the place. */
const MAX_REPEATS = 8;
/** A long line counts more than a bracket, up to this. */
const MAX_WEIGHT = 24;
/** Words that are looked for where no line is in common. */
const MAX_WORDS = 64;

/** The place that an old text may have meant. */
export interface NearPlace {
  /** Line of the file, from 0, that stands against the first line of the old text. */
  line: number;
  /** How many lines are the same but for white space around them. */
  common: number;
}

/**
 * The place that has most in common with the old text: lines first, words where there
 * is no such line. Undefined where there is nothing. Never a reason to edit there.
 */
export function nearestPlace(file: readonly Line[], old: readonly Line[]): NearPlace | undefined {
  const looked = lookedAt(file);
  return byLines(looked, old) ?? byWords(looked, old);
}

function lookedAt(file: readonly Line[]): readonly Line[] {
  const behind = file.findIndex(({ start, text }) => start + text.length > MAX_LOOKED_AT_CHARS);
  return behind < 0 ? file : file.slice(0, behind);
}

function byLines(file: readonly Line[], old: readonly Line[]): NearPlace | undefined {
  const wanted = new Map<string, number[]>();
  old.forEach(({ text }, index) => {
    const key = text.trim();
    const places = wanted.get(key);
    if (key === "" || places?.length === MAX_REPEATS) return;
    if (places) places.push(index);
    else wanted.set(key, [index]);
  });
  const votes = new Map<number, number>();
  file.forEach(({ text }, index) => {
    const key = text.trim();
    for (const at of wanted.get(key) ?? []) {
      const line = index - at;
      votes.set(line, (votes.get(line) ?? 0) + Math.min(key.length, MAX_WEIGHT));
    }
  });
  const best = highest(votes);
  if (best === undefined) return undefined;
  const common = old.filter(({ text }, index) => {
    const there = file[best + index];
    return text.trim() !== "" && there?.text.trim() === text.trim();
  });
  return { line: best, common: common.length };
}

function byWords(file: readonly Line[], old: readonly Line[]): NearPlace | undefined {
  const at = old.findIndex(({ text }) => text.trim() !== "");
  const words = new Set(splitWords(old[at]?.text ?? ""));
  if (words.size === 0) return undefined;
  const votes = new Map<number, number>();
  file.forEach(({ text }, index) => {
    const common = new Set(splitWords(text).filter((word) => words.has(word)));
    // One word of several is no likeness.
    if (common.size * 2 >= words.size) votes.set(index - at, common.size);
  });
  const best = highest(votes);
  return best === undefined ? undefined : { line: best, common: 0 };
}

function splitWords(line: string): string[] {
  return (
    line
      .slice(0, MAX_SHOWN_LINE_CHARS)
      .match(/[\p{L}\p{N}_]+/gu)
      ?.slice(0, MAX_WORDS) ?? []
  );
}

/** The key with the most votes; of several the first. */
function highest(votes: ReadonlyMap<number, number>): number | undefined {
  let best: number | undefined;
  let most = 0;
  for (const [key, count] of votes) {
    if (count > most) [best, most] = [key, count];
  }
  return best;
}

/** What is at a near place against what the old text says, with white space made visible. */
export function showNearPlace(
  file: readonly Line[],
  old: readonly Line[],
  near: NearPlace,
): string {
  const rows: string[] = [];
  const width = String(near.line + old.length).length;
  let same = 0;
  let more = 0;
  for (const [index, wanted] of old.entries()) {
    const at = near.line + index;
    const there = file[at];
    const isSame = there !== undefined && there.text === wanted.text && !isOtherEnd(there, wanted);
    if (isSame) same += 1;
    if (rows.length >= MAX_SHOWN_LINES) {
      more += 1;
      continue;
    }
    const number = String(at + 1).padStart(width);
    const none = " ".repeat(width);
    if (isSame) {
      rows.push(`  both  ${number} ${visibleLine(there)}`);
      continue;
    }
    if (there) rows.push(`! file  ${number} ${visibleLine(there)}`);
    rows.push(`! yours ${none} ${visibleLine(wanted)}${whatDiffers(there, wanted)}`);
  }
  if (more > 0) rows.push(`  (${more} more lines; read the file from line ${near.line + 1} on)`);
  return `${same} of ${old.length} lines are the same (→ tab, · space, ␍ carriage return):\n${rows.join("\n")}`;
}

/** A line end that one has and the other has in another way. */
function isOtherEnd(there: Line, wanted: Line): boolean {
  return there.end !== "" && wanted.end !== "" && there.end !== wanted.end;
}

function whatDiffers(there: Line | undefined, wanted: Line): string {
  if (!there) return "   (the file has no line here)";
  if (there.text === wanted.text) return "   (only the line end differs)";
  if (there.text.trim() !== wanted.text.trim()) return "";
  return readIndent(there.text) === readIndent(wanted.text)
    ? "   (only white space at the end differs)"
    : "   (only white space differs)";
}

function visibleLine(line: Line): string {
  const shown = line.text.slice(0, MAX_SHOWN_LINE_CHARS);
  const cut = shown.length < line.text.length ? " [cut]" : "";
  return visibleSpace(line.end === "\r\n" && cut === "" ? `${shown}\r` : shown) + cut;
}

/** White space made visible where it is easily mistaken: around the text, and wherever it is more than one space. */
export function visibleSpace(text: string): string {
  const end = trimLineEnd(text.replace(/\r$/, "")).length;
  const start = readIndent(text).length;
  let shown = "";
  for (let index = 0; index < text.length; index++) {
    const char = text.charAt(index);
    const isEdge = index < start || index >= end;
    const isRun = text.charAt(index - 1) === " " || text.charAt(index + 1) === " ";
    if (char === "\t") shown += "→";
    else if (char === "\r") shown += "␍";
    else if (char === " " && (isEdge || isRun)) shown += "·";
    else if (char === "\u00a0") shown += "⍽";
    else shown += char;
  }
  return shown;
}
