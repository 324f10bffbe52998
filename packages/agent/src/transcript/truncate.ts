import { estimateTokens } from "@gyre/ai";

/** More characters than this for a token are spaces, or a drawing: nothing to read. */
const MAX_CHARS_PER_TOKEN = 8;
/** Share of the room that the beginning of a text gets. */
const HEAD_SHARE = 0.6;
/** How far back a cut looks for the end of a line, as a share of what is kept. */
const LINE_SEARCH_SHARE = 0.2;

/**
 * The beginning and the end of a text, with `note` between them where something was left
 * out. At most about `tokens` long, but for the note.
 */
export function truncateMiddle(text: string, tokens: number, note: string): string {
  if (estimateTokens(text) <= tokens) return text;
  const head = keepStart(text, Math.floor(tokens * HEAD_SHARE));
  const tail = keepEnd(text, tokens - estimateTokens(head));
  return `${head}\n${note}\n${tail}`.trim();
}

/** One line of a text, for a list. */
export function oneLine(text: string, maxChars: number): string {
  const line = text
    .slice(0, maxChars * 2)
    .replaceAll(/\s+/g, " ")
    .trim();
  return line.length <= maxChars && text.length <= maxChars * 2
    ? line
    : `${line.slice(0, avoidSplit(line, maxChars - 1))}…`;
}

function keepStart(text: string, tokens: number): string {
  const end = findLargest(
    Math.min(text.length, tokens * MAX_CHARS_PER_TOKEN),
    (chars) => estimateTokens(text.slice(0, chars)) <= tokens,
  );
  const line = text.lastIndexOf("\n", end);
  const isNear = line >= end * (1 - LINE_SEARCH_SHARE);
  return text.slice(0, isNear ? line : avoidSplit(text, end));
}

function keepEnd(text: string, tokens: number): string {
  const { length } = text;
  const chars = findLargest(
    Math.min(length, Math.max(0, tokens) * MAX_CHARS_PER_TOKEN),
    (count) => estimateTokens(text.slice(length - count)) <= tokens,
  );
  const start = length - chars;
  const line = text.indexOf("\n", start);
  const isNear = line >= 0 && line - start <= chars * LINE_SEARCH_SHARE;
  return text.slice(isNear ? line + 1 : avoidSplit(text, start));
}

/** The largest number up to `most` that holds, where smaller ones do. */
function findLargest(most: number, holds: (count: number) => boolean): number {
  let low = 0;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** A position that does not split a surrogate pair. */
function avoidSplit(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code < 0xe000 ? at + 1 : at;
}
