/** What can be said of a skill in the lines before its text. */
export type FieldValue = string | readonly string[] | Readonly<Record<string, string>>;

export interface Field {
  readonly value: FieldValue;
  /** Counted from 1. */
  readonly line: number;
}

export interface FrontmatterProblem {
  readonly line: number;
  /** For people, as the end of a line. */
  readonly text: string;
}

export interface Frontmatter {
  readonly fields: ReadonlyMap<string, Field>;
  readonly problems: readonly FrontmatterProblem[];
}

const FENCE = /^---\s*$/;
const END = /^(?:---|\.\.\.)\s*$/;
const KEY = /^([\w-]+)\s*:(?:\s+(.*))?$/;
const ITEM = /^\s*-\s+(.*)$/;
const BLOCK = /^([|>])[-+\d]*\s*(?:#.*)?$/;
/** What begins something else than text: anchors, tags, flow mappings, what YAML keeps for itself. */
const UNREAD = /^[&*!{%@`]/;

/** A text after the lines that are about it. */
export function bodyOf(text: string): string {
  const lines = linesOf(text);
  return lines
    .slice(endOf(lines) + 1)
    .join("\n")
    .trim();
}

/**
 * Reads the part of YAML that such lines are written in: keys with a text (plain, quoted,
 * over several lines, `|` or `>`), with a list of texts, or with keys and texts beneath
 * them. Takes plain text with ": " in it as it stands, which many write and YAML forbids.
 * What it cannot read is a problem if it is one of `keys`, and passed over otherwise.
 */
export function readFrontmatter(text: string, keys: ReadonlySet<string>): Frontmatter {
  const lines = linesOf(text);
  const fields = new Map<string, Field>();
  const problems: FrontmatterProblem[] = [];
  const wrong = (line: number, problem: string): void =>
    void problems.push({ line, text: problem });
  const end = endOf(lines);
  if (end < 0) {
    const isOpen = FENCE.test(lines[0] ?? "");
    wrong(1, isOpen ? 'the "---" has no second one that ends it' : 'it does not begin with "---"');
    return { fields, problems };
  }
  for (let at = 1; at < end;) {
    const line = at + 1;
    const head = lines[at++] ?? "";
    if (isNothing(head)) continue;
    const [, key, rest = ""] = KEY.exec(head) ?? [];
    const from = at;
    while (at < end && isBeneath(lines[at] ?? "")) at++;
    if (key === undefined) wrong(line, `"${head.trim()}" is no key with a value`);
    else if (!keys.has(key)) continue;
    else if (fields.has(key)) wrong(line, `"${key}" is there twice; the first counts`);
    else {
      const value = valueOf(rest.trim(), lines.slice(from, at));
      if (value === undefined)
        wrong(line, `the value of "${key}" cannot be read: write it in quotes`);
      else fields.set(key, { value, line });
    }
  }
  return { fields, problems };
}

function linesOf(text: string): string[] {
  return text.replace(/^\uFEFF/, "").split(/\r?\n/);
}

/** The line that ends what is about the text; -1 where there is none. */
function endOf(lines: readonly string[]): number {
  if (!FENCE.test(lines[0] ?? "")) return -1;
  return lines.findIndex((line, index) => index > 0 && END.test(line));
}

const isNothing = (line: string): boolean => /^\s*(?:#|$)/.test(line);
/** Belongs to the key above it. A list may stand as far left as its key. */
const isBeneath = (line: string): boolean => /^(?:\s|$|-\s)/.test(line);

function valueOf(rest: string, beneath: readonly string[]): FieldValue | undefined {
  const block = BLOCK.exec(rest)?.[1];
  if (block !== undefined) return blockText(beneath, block === ">");
  if (rest.startsWith("[")) return flowList(joined(rest, beneath));
  if (rest !== "" && !rest.startsWith("#")) return scalar(joined(rest, beneath));
  const inner = beneath.filter((line) => !isNothing(line));
  const [first] = inner;
  if (first === undefined) return "";
  if (ITEM.test(first)) return all(inner.map((line) => scalar(ITEM.exec(line)?.[1] ?? "{")));
  const isNested = KEY.test(first.trim());
  return isNested ? mapping(inner) : scalar(joined("", inner));
}

/** One text of several lines, as YAML joins them where no line break is meant. */
function joined(rest: string, beneath: readonly string[]): string {
  const isQuoted = /^["'[]/.test(rest);
  const more = isQuoted ? beneath : beneath.filter((line) => !isNothing(line));
  return [rest, ...more.map((line) => line.trim())].filter((line) => line !== "").join(" ");
}

/** A text in quotes or without; undefined for what is neither. */
function scalar(text: string): string | undefined {
  if (UNREAD.test(text)) return undefined;
  const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')\s*(?:#.*)?$/s.exec(text);
  if (quoted?.[1] !== undefined) return unescaped(quoted[1]);
  if (quoted?.[2] !== undefined) return quoted[2].replaceAll("''", "'");
  return /^["']/.test(text) ? undefined : text.replace(/\s#.*$/s, "").trim();
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "\0" };
const HEX = 16;

function unescaped(text: string): string {
  return text.replace(/\\(?:u([\da-f]{4})|x([\da-f]{2})|(.))/gis, (_, long, short, one: string) => {
    const code: unknown = long ?? short;
    if (typeof code === "string") return String.fromCharCode(Number.parseInt(code, HEX));
    return ESCAPES[one] ?? one;
  });
}

function flowList(text: string): readonly string[] | undefined {
  const [, inside] = /^\[(.*)\]\s*(?:#.*)?$/s.exec(text) ?? [];
  if (inside === undefined) return undefined;
  const items = inside.match(/(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,])+/g) ?? [];
  return all(
    items
      .map((item) => item.trim())
      .filter((item) => item !== "")
      .map(scalar),
  );
}

function mapping(lines: readonly string[]): Readonly<Record<string, string>> | undefined {
  const entries = lines.map((line) => {
    const [, key, rest = ""] = KEY.exec(line.trim()) ?? [];
    const value = scalar(rest.trim());
    return key === undefined || value === undefined ? undefined : ([key, value] as const);
  });
  const found = all(entries);
  return found && Object.fromEntries(found);
}

function all<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  const found = values.filter((value) => value !== undefined);
  return found.length === values.length ? found : undefined;
}

/** Lines without what they are indented by. Folded: a line break only where there is an empty line. */
function blockText(lines: readonly string[], isFolded: boolean): string {
  const depth = lines.find((line) => line.trim() !== "")?.search(/\S/) ?? 0;
  const text = lines.map((line) => line.slice(depth).trimEnd()).join("\n");
  return (
    isFolded ? text.replace(/([^\n])\n(?=[^\n])/g, "$1 ").replace(/\n(\n+)/g, "$1") : text
  ).trim();
}
