/** The first `maxChars` of a text, one fewer where that would leave half a character. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const last = text.charCodeAt(maxChars - 1);
  const halves = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, halves ? maxChars - 1 : maxChars);
}
