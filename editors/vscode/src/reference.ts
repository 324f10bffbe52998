import { isAbsolute, relative, sep } from "node:path";

/** Lines count from 0, as in the editor. */
export interface Selected {
  readonly isEmpty: boolean;
  readonly start: { readonly line: number };
  readonly end: { readonly line: number; readonly character: number };
}

/** Would be taken for keys or for the end of the reference. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/**
 * The file and its selected lines as a prompt names them, with a space after: `src/a.ts:3-7 `. Empty
 * for a name with control characters, which a terminal would take for keys.
 */
export function describeSelection(file: string, folder: string, selected: Selected): string {
  const inside = relative(folder, file);
  const isOutside = inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside);
  const name = isOutside ? file : inside.split(sep).join("/");
  if (UNSAFE.test(name)) return "";
  return `${name}${describeLines(selected)} `;
}

function describeLines({ isEmpty, start, end }: Selected): string {
  if (isEmpty) return "";
  const first = start.line + 1;
  // A selection of whole lines ends before the first character of the next one.
  const last = Math.max(first, end.character === 0 ? end.line : end.line + 1);
  return first === last ? `:${first}` : `:${first}-${last}`;
}
