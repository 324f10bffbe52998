import { alignLines } from "./align.ts";
import type { Line, LineEnd } from "../text/line-ends.ts";

/** Old text that was found, and what is to be there. */
export interface Rewriting {
  /** The place in the file: a piece for each line of the old text. */
  pieces: readonly Line[];
  old: readonly Line[];
  next: readonly Line[];
  /** For new lines where the pieces have no line end. */
  end: LineEnd;
  /**
   * A line of new text as the file would have it; undefined where that is unclear.
   * `before`: the line that it stands for, if that is clear.
   */
  adapt(line: string, before?: { old: string; file: string }): string | undefined;
}

/**
 * The new text with the file's own habits: lines that are in the old text too keep the
 * file's bytes, the others are adapted and end as the lines that they replace or follow. Undefined
 * where a line cannot be adapted.
 */
export function rewrite(rewriting: Rewriting): string | undefined {
  const { pieces, old, next } = rewriting;
  const oldTexts = old.map((line) => line.text);
  const aligned = alignLines(
    oldTexts,
    next.map((line) => line.text),
  );
  const known = bytesByText(oldTexts, pieces);
  const changed = changedLines(aligned, old.length);
  let end = pieces.find((piece) => piece.end !== "")?.end ?? rewriting.end;
  let text = "";
  for (const [index, line] of next.entries()) {
    const from = pieces[aligned[index] ?? -1];
    const at = changed.get(index) ?? -1;
    const [was, file] = [old[at], pieces[at]];
    const adapted =
      from?.text ??
      known.get(line.text) ??
      rewriting.adapt(line.text, was && file && { old: was.text, file: file.text });
    if (adapted === undefined) return undefined;
    end = from?.end || file?.end || end;
    const isLast = index === next.length - 1;
    // The file ends without the line end that the old text has there: so it stays.
    const isOpen = isLast && old.at(-1)?.end !== "" && pieces.at(-1)?.end === "";
    text += adapted + (line.end === "" || isOpen ? "" : end || line.end);
  }
  return text;
}

/** What the file has for a line of old text, where that is the same everywhere. */
function bytesByText(
  oldTexts: readonly string[],
  pieces: readonly Line[],
): Map<string, string | undefined> {
  const bytes = new Map<string, string | undefined>();
  oldTexts.forEach((text, index) => {
    const piece = pieces[index]?.text;
    bytes.set(text, !bytes.has(text) || bytes.get(text) === piece ? piece : undefined);
  });
  return bytes;
}

/** For new lines between equal ones the old line at their place, where there are as many. */
function changedLines(aligned: Int32Array, oldLength: number): Map<number, number> {
  const changed = new Map<number, number>();
  let [lastNew, lastOld] = [-1, -1];
  for (let index = 0; index <= aligned.length; index++) {
    const at = index === aligned.length ? oldLength : (aligned[index] ?? -1);
    if (at < 0) continue;
    if (index - lastNew === at - lastOld) {
      for (let k = 1; k < index - lastNew; k++) changed.set(lastNew + k, lastOld + k);
    }
    [lastNew, lastOld] = [index, at];
  }
  return changed;
}
