import { readIndent } from "../text/line-ends.ts";

/**
 * Edits as models make them, from real source files: what was meant is known, so that it
 * is known whether an edit was made as meant, refused, or made wrong. All of it
 * follows from the numbers that `random` gives.
 */
export interface BatteryEdit {
  /** The file as it is on disk. */
  content: string;
  /** The file as the agent saw it. */
  seen: string;
  oldText: string;
  newText: string;
  /** What the file has to become; absent: the edit has to be refused. */
  expected?: string;
}

/** Numbers from 0 up to 1, without it. */
export type Random = () => number;

export interface BatteryCase {
  name: string;
  /** One edit of a file; undefined where this file is not fit for it. */
  make(source: string, random: Random): BatteryEdit | undefined;
}

/** Lines of a block, at least and at most. */
const MIN_BLOCK = 2;
const MAX_BLOCK = 12;
/** Tries to find a block in a file before another file is taken. */
const MAX_TRIES = 20;
const TAB_WIDTHS = [2, 4, 8] as const;

export const batteryCases: readonly BatteryCase[] = [
  { name: "exact", make: (source, random) => applied(source, random, {}) },
  {
    name: "trailing space",
    make: (source, random) => {
      const marked = (line: string): string =>
        random() < 0.5 ? line : line + spaces(1, 3, random);
      return applied(source, random, {
        slip: (old, next) => {
          const slipped = old.map(marked);
          if (slipped.every((line, index) => line === old[index])) slipped[0] += " ";
          // Lines that stay are written the same way twice.
          const twice = next.map((line) => slipped[old.indexOf(line)] ?? line);
          return [slipped, random() < 0.5 ? next : twice];
        },
      });
    },
  },
  {
    name: "tabs as spaces",
    make: (source, random) => {
      const width = pick(TAB_WIDTHS, random);
      const expand = (line: string): string =>
        line.replace(/^\t+/, (tabs) => " ".repeat(tabs.length * width));
      return applied(withTabs(source), random, {
        fits: (block) => block.some((line) => line.startsWith("\t")),
        slip: (old, next) => [old.map(expand), next.map(expand)],
      });
    },
  },
  {
    name: "spaces as tabs",
    make: (source, random) => {
      const tabbed = (line: string): string =>
        line.replace(/^(?: {2})+/, (indent) => "\t".repeat(indent.length / 2));
      return applied(source, random, {
        fits: (block) => block.some((line) => line.startsWith("  ")),
        slip: (old, next) => [old.map(tabbed), next.map(tabbed)],
      });
    },
  },
  {
    name: "indent dropped",
    make: (source, random) =>
      applied(random() < 0.5 ? source : withTabs(source), random, {
        fits: (block) => commonIndent(block) !== "",
        slip: (old, next) => {
          const dropped = commonIndent([...old, ...next]);
          return [dedented(old, dropped), dedented(next, dropped)];
        },
      }),
  },
  {
    name: "CRLF file, LF edit",
    make: (source, random) => {
      const edit = applied(source, random, {});
      return edit && withFile(edit, (text) => text.replaceAll("\n", "\r\n"));
    },
  },
  {
    name: "byte order mark",
    make: (source, random) => {
      const edit = applied(source, random, {});
      return edit && withFile(edit, (text) => `\uFEFF${text}`);
    },
  },
  {
    name: "line numbers left in",
    make: (source, random) => {
      const prefix = pick<(line: number) => string>(
        [
          (n) => `${n}\t`,
          (n) => `${String(n).padStart(4)}: `,
          (n) => `${n}|`,
          (n) => `L${n}: `,
          (n) => `L${n}:`,
          (n) => `${String(n).padStart(6)}→`,
        ],
        random,
      );
      const isInBoth = random() < 0.7;
      return applied(source, random, {
        slip: (old, next, first) => [
          old.map((line, index) => prefix(first + index) + line),
          isInBoth ? next.map((line, index) => prefix(first + index) + line) : next,
        ],
      });
    },
  },
  {
    name: "changed elsewhere",
    make: (source, random) => {
      const edit = applied(source, random, {});
      if (!edit) return undefined;
      const line = `// ${word(random)} ${word(random)}\n`;
      return withFile({ ...edit }, (text, isSeen) => (isSeen ? text : line + text));
    },
  },
  { name: "one line changed on disk", make: changedOnDisk },
  { name: "block twice", make: blockTwice },
  { name: "ambiguous after dedent", make: ambiguousAfterDedent },
];

interface Slip {
  fits?: (block: readonly string[]) => boolean;
  /** How the model writes the old and the new lines. */
  slip?: (old: string[], next: string[], firstLine: number) => [string[], string[]];
}

interface Block {
  lines: string[];
  at: number;
  length: number;
}

/** An edit of a block that is the only one of its kind, white space around lines apart. */
function applied(source: string, random: Random, { fits, slip }: Slip): BatteryEdit | undefined {
  const block = pickBlock(source, random, fits);
  if (!block) return undefined;
  const { lines, at, length } = block;
  const old = lines.slice(at, at + length);
  const next = changed(old, random);
  const expected = [...lines.slice(0, at), ...next, ...lines.slice(at + length)].join("\n");
  const [oldLines, newLines] = slip?.(old, next, at + 1) ?? [old, next];
  const end = random() < 0.5 ? "\n" : "";
  const newText = newLines.join("\n") + end;
  return { content: source, seen: source, oldText: oldLines.join("\n") + end, newText, expected };
}

function pickBlock(
  source: string,
  random: Random,
  fits: (block: readonly string[]) => boolean = () => true,
): Block | undefined {
  const lines = source.split("\n");
  const trimmed = lines.map((line) => line.trim());
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const length = between(MIN_BLOCK, MAX_BLOCK, random);
    const at = between(0, lines.length - length - 2, random);
    if (at < 0) continue;
    const block = lines.slice(at, at + length);
    if (block[0]?.trim() === "" || block.at(-1)?.trim() === "") continue;
    const text = block.join("\n");
    // Also not as the beginning of longer lines.
    if (source.indexOf(text) !== source.lastIndexOf(text)) continue;
    if (fits(block) && isOnlyOne(trimmed, at, length)) return { lines, at, length };
  }
  return undefined;
}

function isOnlyOne(trimmed: readonly string[], at: number, length: number): boolean {
  const wanted = trimmed.slice(at, at + length);
  return !trimmed.some(
    (line, other) =>
      other !== at &&
      line === wanted[0] &&
      wanted.every((text, index) => trimmed[other + index] === text),
  );
}

/** What a person may want of a block: a line changed, added, taken away, or all one deeper. */
function changed(old: readonly string[], random: Random): string[] {
  const next = [...old];
  const at = between(0, old.length - 1, random);
  const line = next[at] ?? "";
  const indent = readIndent(line);
  const kind = random();
  if (kind < 0.35) next[at] = `${indent}${word(random)}(${line.trim()})`;
  else if (kind < 0.6)
    next.splice(at, 0, `${indent}${word(random)};`, `${indent}${word(random)}();`);
  else if (kind < 0.75) next.splice(at, 1);
  else {
    const unit = old.some((other) => other.startsWith("\t")) ? "\t" : "  ";
    const outer = commonIndent(old);
    return [
      `${outer}if (${word(random)}) {`,
      ...old.map((other) => (other === "" ? "" : unit + other)),
      `${outer}}`,
    ];
  }
  return next;
}

function changedOnDisk(source: string, random: Random): BatteryEdit | undefined {
  const edit = applied(source, random, {});
  if (!edit) return undefined;
  const old = edit.oldText.split("\n");
  const at = between(0, old.length - 1, random);
  const line = old[at] ?? "";
  if (line.trim() === "") return undefined;
  const others: [string, ...string[]] = [
    `${line} // ${word(random)}`,
    `${readIndent(line)}${word(random)}`,
    line.replace(/\w(?=\W*$)/, "_0"),
  ];
  const other = pick(others, random);
  if (other === line) return undefined;
  const now = old.map((kept, index) => (index === at ? other : kept)).join("\n");
  // Where the change only adds to the last line of a text without a line end, the old
  // text is still there: it is the change on disk itself that has to be seen.
  const content = source.replace(edit.oldText, () => now);
  return { content, seen: source, oldText: edit.oldText, newText: edit.newText };
}

function blockTwice(source: string, random: Random): BatteryEdit | undefined {
  const edit = applied(source, random, {});
  if (!edit) return undefined;
  const whole = edit.oldText.replace(/\n?$/, "\n");
  const content = random() < 0.5 ? `${whole}\n${source}` : `${source}\n${whole}`;
  return { content, seen: content, oldText: edit.oldText, newText: edit.newText };
}

/** The block once more, deeper; and the model drops what both have in common. */
function ambiguousAfterDedent(source: string, random: Random): BatteryEdit | undefined {
  const edit = applied(source, random, { fits: (block) => commonIndent(block) !== "" });
  if (!edit) return undefined;
  const old = edit.oldText.split("\n");
  const by = spaces(1, 2, random, 2);
  const copy = old.map((line) => (line === "" ? "" : by + line)).join("\n");
  const content = random() < 0.5 ? `${copy}\n${source}` : `${source}\n${copy}\n`;
  const dropped = commonIndent(old);
  return {
    content,
    seen: content,
    oldText: dedented(old, dropped).join("\n"),
    newText: dedented(edit.newText.split("\n"), dropped).join("\n"),
  };
}

function withFile(
  edit: BatteryEdit,
  change: (text: string, isSeen: boolean) => string,
): BatteryEdit {
  const { expected } = edit;
  return {
    ...edit,
    content: change(edit.content, false),
    seen: change(edit.seen, true),
    ...(expected !== undefined && { expected: change(expected, false) }),
  };
}

/** Two spaces of indent as a tab each. */
export function withTabs(source: string): string {
  return source.replace(/^(?: {2})+/gm, (indent) => "\t".repeat(indent.length / 2));
}

function commonIndent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== "").map(readIndent);
  let common = indents[0] ?? "";
  for (const indent of indents) {
    while (!indent.startsWith(common)) common = common.slice(0, -1);
  }
  return common;
}

function dedented(lines: readonly string[], indent: string): string[] {
  return lines.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
}

function between(least: number, most: number, random: Random): number {
  return least + Math.floor(random() * (most - least + 1));
}

function pick<T>(list: readonly [T, ...T[]], random: Random): T {
  return list[between(0, list.length - 1, random)] ?? list[0];
}

function spaces(least: number, most: number, random: Random, unit = 1): string {
  return " ".repeat(unit * between(least, most, random));
}

const LETTERS = 26;
const WORD_LENGTH = 7;

function word(random: Random): string {
  let text = "";
  while (text.length < WORD_LENGTH)
    text += String.fromCharCode(0x61 + Math.floor(random() * LETTERS));
  return text;
}

/** The same numbers for the same seed. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    // A Weyl sequence, stirred: good enough to pick lines with.
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** `damaged`: as meant, but for white space. */
export type Verdict = "applied" | "refused" | "damaged" | "wrong";

/** How an edit came out: `result` is the content after it, undefined where it was refused. */
export function judge(edit: BatteryEdit, result: string | undefined): Verdict {
  if (result === undefined) return "refused";
  if (result === edit.expected) return "applied";
  const bare = (text: string): string => text.replace(/\s+/g, "");
  return bare(result) === bare(edit.expected ?? "") ? "damaged" : "wrong";
}
