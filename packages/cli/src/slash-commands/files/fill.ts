const PLACEHOLDER = /\$(?:(ARGUMENTS)\b|(@)|([1-9])(?!\d))/g;

/**
 * A text with what was typed behind the command in the place of `$ARGUMENTS` and `$@`, and
 * its words in that of `$1` to `$9`. Where it has no place for it, it stands at the end.
 */
export function filledIn(text: string, rest: string): string {
  const filled = fillPlaces(text, rest);
  return filled.isUsed || rest === "" ? filled.text : `${filled.text.trimEnd()}\n\n${rest}`;
}

/** The same, without the rest at the end; `isUsed`: there was a place for it. */
export function fillPlaces(text: string, rest: string): { text: string; isUsed: boolean } {
  const words = splitWords(rest);
  let isUsed = false;
  const filled = text.replace(PLACEHOLDER, (_, all?: string, each?: string, digit?: string) => {
    isUsed = true;
    if (all !== undefined || each !== undefined) return rest;
    return words[Number(digit) - 1] ?? "";
  });
  return { text: filled, isUsed };
}

/** Words with blanks between them; what is in quotes is one. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}
