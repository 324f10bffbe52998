import { joinLines, type Line, splitLines } from "../text/line-ends.ts";

/** What a listing puts before a line: a number, perhaps an `L` before it, and a separator. */
const PREFIX = /^ *(L?)(\d{1,8}) ?(\t|→|:|\|)/;
/** The prefix of an empty line, of which the end may have been lost. */
const PREFIX_ALONE = /^ *L?(\d{1,8}) ?(?:\t|→|:|\|)? ?$/;

export interface TextPair {
  oldText: string;
  newText: string;
}

interface Numbered {
  number: number;
  /** The same on all lines of one listing. */
  style: string;
  rest: string;
}

/**
 * An edit without the line numbers of a listing, if each line of its old text that is not
 * empty has one and they count up by one. Two answers where the space behind the
 * separator may belong to the listing or to the line; none where there are no numbers.
 * `"unclear"`: the old text has numbers and the new one may or may not have them.
 */
export function withoutLineNumbers(edit: TextPair): TextPair[] | "unclear" {
  const old = splitLines(edit.oldText);
  const numbered = old.map((line) => parseNumber(line.text));
  const style = numbered.find((found) => found && found.style !== "")?.style;
  if (style === undefined) return [];
  const anchor = numbered.findIndex((found) => found !== undefined);
  const first = (numbered[anchor]?.number ?? 0) - anchor;
  const all = old.every((line, index) => {
    const found = numbered[index];
    if (!found) return line.text.trim() === "";
    return found.number === first + index && (found.style === "" || found.style === style);
  });
  if (!all) return [];

  const next = splitLines(edit.newText);
  const last = first + old.length + next.length;
  const marked = next.map(({ text }) => {
    const found = parseNumber(text);
    return found?.style === style || old.some((line) => found && line.text === text)
      ? found
      : undefined;
  });
  if (!marked.every((found) => !found || (found.number >= first && found.number <= last)))
    return "unclear";
  if (!isRising(marked)) return "unclear";
  const isMarked = marked.some((found) => found !== undefined);
  if (isMarked && next.some((line, index) => !marked[index] && parseNumber(line.text)))
    return "unclear";
  const newLines = next.map((line, index) => stripNumber(line, marked[index]));
  const oldLines = old.map((line, index) => stripNumber(line, numbered[index]));

  const asIs = { oldText: joinLines(oldLines), newText: joinLines(newLines) };
  const isSpaced = (line: Line, index: number): boolean =>
    line.text === "" || numbered[index] === undefined || line.text.startsWith(" ");
  if (style.endsWith("\t") || style.endsWith("→") || !oldLines.every(isSpaced)) return [asIs];
  return [
    {
      oldText: joinLines(oldLines.map(withoutSpace)),
      newText: joinLines(
        newLines.map((line, index) => (marked[index] ? withoutSpace(line) : line)),
      ),
    },
    asIs,
  ];
}

function parseNumber(line: string): Numbered | undefined {
  const prefix = PREFIX.exec(line);
  if (prefix) {
    const rest = line.slice(prefix[0].length);
    return { number: Number(prefix[2]), style: `${prefix[1]}${prefix[3]}`, rest };
  }
  const alone = PREFIX_ALONE.exec(line);
  return alone ? { number: Number(alone[1]), style: "", rest: "" } : undefined;
}

/** New lines may have no number, or one that is there already: never a lower one. */
function isRising(marked: readonly (Numbered | undefined)[]): boolean {
  let highest = 0;
  return marked.every((found) => {
    if (!found) return true;
    const rises = found.number >= highest;
    highest = found.number;
    return rises;
  });
}

function stripNumber(line: Line, found: Numbered | undefined): Line {
  return found ? { ...line, text: found.rest } : line;
}

function withoutSpace(line: Line): Line {
  return line.text.startsWith(" ") ? { ...line, text: line.text.slice(1) } : line;
}
