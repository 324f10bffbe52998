import { oneLine } from "./shown-text.ts";

/** How much of a long text is shown in a list. */
const MAX_TITLE_CHARS = 200;
const SHORT_ID_CHARS = 8;

/** A prompt or title on one line. */
export function titleText(text: string): string {
  const title = oneLine(text.slice(0, MAX_TITLE_CHARS + 1)).trim();
  return title.length > MAX_TITLE_CHARS ? `${title.slice(0, MAX_TITLE_CHARS)}…` : title;
}

export function shortId(id: string): string {
  return id.slice(0, SHORT_ID_CHARS);
}
