/**
 * A text on one line, for a list or a title: each run of white space becomes one space. Longer
 * texts end in an ellipsis after at most `maxChars` characters, never inside a surrogate pair.
 */
export function oneLine(text: string, maxChars: number = Number.POSITIVE_INFINITY): string {
  // A long text is cut before the search, with room for some white space.
  const head = text.slice(0, maxChars * 2);
  const line = head.replaceAll(/\s+/g, " ").trim();
  if (line.length <= maxChars && head.length === text.length) return line;
  const end = Math.max(0, Math.min(line.length, maxChars - 1));
  return `${line.slice(0, isHighSurrogate(line, end - 1) ? end - 1 : end)}…`;
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff;
}
