import { sanitize } from "@gyre/tools";
import { plainText } from "./plain-text.ts";

/** Of a text that has to stay on one line: wider than any terminal. */
const MAX_LINE_CHARS = 1_000;

/** A process has one screen. Until it is known to draw them as one, emoji of several parts are shown as their parts. */
const screen = { wholeEmoji: false };

/** Whether an emoji of several parts, such as a family, is shown as one from now on. */
export function showWholeEmoji(isWhole: boolean): void {
  screen.wholeEmoji = isWhole;
}

/** The text without anything that a terminal obeys, and without characters that are invisible. */
export function shownText(text: string): string {
  return sanitize(plainText(text), screen);
}

/** The same on one line of limited length. */
export function shownLine(text: string): string {
  return shownText(text.slice(0, MAX_LINE_CHARS)).replaceAll("\n", " ");
}

/** The same with each line end as one space, whatever the length. */
export function oneLine(text: string): string {
  return shownText(text).replace(/\s*\n\s*/g, " ");
}
