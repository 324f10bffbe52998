import { promptLine } from "../../../text/ran-command.ts";
import { oneLine } from "../panels/text.ts";

/** How much of a long text is shown in a list. */
const MAX_TITLE_CHARS = 200;
const SHORT_ID_CHARS = 8;

/** What somebody said, in one line. */
export function titleText(text: string): string {
  const title = promptLine(oneLine(text.slice(0, MAX_TITLE_CHARS + 1))).trim();
  return title.length > MAX_TITLE_CHARS ? `${title.slice(0, MAX_TITLE_CHARS)}…` : title;
}

export function shortId(id: string): string {
  return id.slice(0, SHORT_ID_CHARS);
}

/** A text in Markdown that means itself: an id, a path. */
export function asCode(text: string): string {
  const line = oneLine(text);
  const runs = line.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(0, ...runs.map(({ length }) => length)) + 1);
  return runs.length === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`;
}
