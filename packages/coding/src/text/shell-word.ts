/** A text as a shell takes it for one word that means itself. */
export function shellWord(text: string): string {
  const isPlain = /^[\w./:@%+,=-]+$/.test(text);
  return isPlain ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
