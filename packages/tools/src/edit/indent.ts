import { readIndent } from "../text/line-ends.ts";

/** What a tab may have been written as. */
const TAB_WIDTHS = [2, 4, 8] as const;

/** An indent of the new text as the file would have it; undefined where there is none. */
export type Reindent = (indent: string) => string | undefined;

/** A line that is not blank: its indent in the old text and in the file. */
export interface IndentPair {
  old: string;
  file: string;
}

/**
 * The ways to turn every indent of the old text into that of the file by one rule: other
 * tabs, or a common part more or less, or both. Only the simplest kind that fits is
 * given; of one kind there can be several, which agree on the old text and may not on
 * the new one. None: the difference is not the same on all lines.
 */
export function reindents(pairs: readonly IndentPair[]): Reindent[] {
  const tabs = TAB_WIDTHS.flatMap((width) => [
    tabsFrom(pairs, width, 0),
    spacesFrom(pairs, width, 0),
  ]);
  const shift = [moreFrom(pairs), lessFrom(pairs)];
  const both = TAB_WIDTHS.flatMap((width) => {
    const [first] = pairs;
    if (!first) return [];
    const by = columns(first.file, width) - columns(first.old, width);
    return by === 0 ? [] : [tabsFrom(pairs, width, by), spacesFrom(pairs, width, by)];
  });
  for (const kind of [tabs, shift, both]) {
    const fitting = kind.filter((reindent) => reindent !== undefined);
    if (fitting.length > 0) return fitting.map((reindent) => knownFirst(pairs, reindent));
  }
  return [];
}

/**
 * An indent of the old text is what the file has for it, and unclear where that differs: in a
 * file with tabs, spaces may be the content of a text over several lines.
 */
function knownFirst(pairs: readonly IndentPair[], reindent: Reindent): Reindent {
  const known = new Map<string, string | undefined>();
  for (const { old, file } of pairs) {
    known.set(old, !known.has(old) || known.get(old) === file ? file : undefined);
  }
  return (indent) => (known.has(indent) ? known.get(indent) : reindent(indent));
}

/** The line with its indent as `reindent` has it. Blank lines have none. */
export function reindented(line: string, reindent: Reindent): string | undefined {
  const indent = readIndent(line);
  if (indent.length === line.length) return line;
  const changed = reindent(indent);
  return changed === undefined ? undefined : changed + line.slice(indent.length);
}

/** The file has tabs where the old text has spaces. */
function tabsFrom(pairs: readonly IndentPair[], width: number, by: number): Reindent | undefined {
  const fits = pairs.every(
    ({ old, file }) => !old.includes("\t") && old.length + by === columns(file, width),
  );
  if (!fits || !pairs.some(({ file }) => file.includes("\t"))) return undefined;
  return (indent) => {
    const wide = columns(indent, width) + by;
    return wide < 0 ? undefined : "\t".repeat(Math.floor(wide / width)) + " ".repeat(wide % width);
  };
}

/** The file has spaces where the old text has tabs. */
function spacesFrom(pairs: readonly IndentPair[], width: number, by: number): Reindent | undefined {
  const fits = pairs.every(
    ({ old, file }) => !file.includes("\t") && columns(old, width) + by === file.length,
  );
  if (!fits || !pairs.some(({ old }) => old.includes("\t"))) return undefined;
  return (indent) => {
    const wide = columns(indent, width) + by;
    return wide < 0 ? undefined : " ".repeat(wide);
  };
}

/** The file's lines all have the same more in front. */
function moreFrom(pairs: readonly IndentPair[]): Reindent | undefined {
  const [first] = pairs;
  if (!first?.file.endsWith(first.old)) return undefined;
  const more = first.file.slice(0, first.file.length - first.old.length);
  if (more === "" || !pairs.every(({ old, file }) => file === more + old)) return undefined;
  return (indent) => unlessMixed(more + indent, pairs);
}

/** The old text's lines all have the same more in front. */
function lessFrom(pairs: readonly IndentPair[]): Reindent | undefined {
  const [first] = pairs;
  if (!first?.old.endsWith(first.file)) return undefined;
  const less = first.old.slice(0, first.old.length - first.file.length);
  if (less === "" || !pairs.every(({ old, file }) => old === less + file)) return undefined;
  return (indent) => (indent.startsWith(less) ? indent.slice(less.length) : undefined);
}

/** A space after tabs aligns; more of them, or a tab after a space, is another way to indent. */
const MIXED = /\t {2}| \t/;

/** Tabs and spaces together only where the file has it so: one of them is a slip. */
function unlessMixed(indent: string, pairs: readonly IndentPair[]): string | undefined {
  return MIXED.test(indent) && !pairs.some(({ file }) => MIXED.test(file)) ? undefined : indent;
}

function columns(indent: string, width: number): number {
  let wide = 0;
  for (const char of indent) wide += char === "\t" ? width : 1;
  return wide;
}
