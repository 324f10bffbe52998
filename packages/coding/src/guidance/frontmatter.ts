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
/** Begins something else than plain text: an anchor, an alias, a tag, a quote, a block, a list. */
const NOT_PLAIN = /^[&*!{%@`"'|>[]/;
/** `[file] [line]` is no list in YAML. */
const IN_BRACKETS = /^\[.*\]$/s;

/** One value, in characters. */
const MAX_VALUE_CHARS = 8192;
/**
 * What may open a level of nesting, in one value. The parser overflows the stack at about 800
 * levels; V8 ends the process if it compiles a regular expression at that moment.
 */
const MAX_OPENERS = 200;
const OPENERS = /[[{]|[-?]\s/g;

type Yaml = typeof import("yaml");

/** A text after the lines that are about it. */
export function readBody(text: string): string {
  const lines = splitLines(text);
  return lines
    .slice(findEnd(lines) + 1)
    .join("\n")
    .trim();
}

/**
 * Reads the YAML before a text: each key with a text, a list of texts, or keys with texts.
 * Takes plain text with ": " in it as it stands, which many write and YAML forbids. A value
 * that it cannot read is a problem if its key is one of `keys`; other keys are ignored. The
 * YAML parser is loaded with the first value.
 */
export async function readFrontmatter(
  text: string,
  keys: ReadonlySet<string>,
): Promise<Frontmatter> {
  const lines = splitLines(text);
  const fields = new Map<string, Field>();
  const problems: FrontmatterProblem[] = [];
  const report = (line: number, problem: string): void =>
    void problems.push({ line, text: problem });
  const end = findEnd(lines);
  if (end < 0) {
    const isOpen = FENCE.test(lines[0] ?? "");
    report(1, isOpen ? 'the "---" has no second one that ends it' : 'it does not begin with "---"');
    return { fields, problems };
  }
  for (let at = 1; at < end;) {
    const line = at + 1;
    const head = lines[at++] ?? "";
    if (isNothing(head)) continue;
    const [, key, rest = ""] = KEY.exec(head) ?? [];
    const from = at;
    while (at < end && isBeneath(lines[at] ?? "")) at++;
    if (key === undefined) report(line, `"${head.trim()}" is no key with a value`);
    else if (!keys.has(key)) continue;
    else if (fields.has(key)) report(line, `"${key}" is there twice; the first counts`);
    else {
      const value = readValue(await import("yaml"), key, rest.trim(), lines.slice(from, at));
      if (value === undefined)
        report(line, `the value of "${key}" cannot be read: write it in quotes`);
      else fields.set(key, { value, line });
    }
  }
  return { fields, problems };
}

function splitLines(text: string): string[] {
  return text.replace(/^\uFEFF/, "").split(/\r?\n/);
}

/** The line that ends what is about the text; -1 where there is none. */
function findEnd(lines: readonly string[]): number {
  if (!FENCE.test(lines[0] ?? "")) return -1;
  return lines.findIndex((line, index) => index > 0 && END.test(line));
}

const isNothing = (line: string): boolean => /^\s*(?:#|$)/.test(line);
/** Belongs to the key above it. A list may stand as far left as its key. */
const isBeneath = (line: string): boolean => /^(?:\s|$|-\s)/.test(line);

function readValue(
  yaml: Yaml,
  key: string,
  rest: string,
  beneath: readonly string[],
): FieldValue | undefined {
  const source = [`${key}: ${rest}`, ...beneath].join("\n");
  if (source.length > MAX_VALUE_CHARS) return undefined;
  if ((source.match(OPENERS)?.length ?? 0) > MAX_OPENERS) return undefined;
  // Without types: `yes`, `1.10` and a date are texts.
  const { contents, errors } = yaml.parseDocument(source, {
    schema: "failsafe",
    prettyErrors: false,
    logLevel: "silent",
  });
  if (errors.length > 0 || !yaml.isMap(contents)) return readPlain(rest, beneath);
  return readNode(yaml, contents.items[0]?.value);
}

/** Looks one level deep: to convert the whole value takes a very long time if it is deep. */
function readNode(yaml: Yaml, node: unknown): FieldValue | undefined {
  const readText = (one: unknown): string | undefined => {
    if (one === null) return "";
    return yaml.isScalar(one) && typeof one.value === "string" ? one.value.trimEnd() : undefined;
  };
  if (yaml.isSeq(node)) return all(node.items.map(readText));
  if (!yaml.isMap(node)) return readText(node);
  const texts = new Map<string, string>();
  for (const pair of node.items) {
    const key = readText(pair.key);
    const value = readText(pair.value);
    if (key === undefined || value === undefined) return undefined;
    texts.set(key, value);
  }
  return Object.fromEntries(texts);
}

function all<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  const found = values.filter((value) => value !== undefined);
  return found.length === values.length ? found : undefined;
}

/** Text that is no YAML, as it stands; undefined if it begins as something else than text. */
function readPlain(rest: string, beneath: readonly string[]): string | undefined {
  const more = beneath.filter((line) => !isNothing(line)).map((line) => line.trim());
  const text = [rest, ...more]
    .filter((line) => line !== "")
    .join(" ")
    .replace(/\s#.*$/s, "")
    .trim();
  return NOT_PLAIN.test(text) && !IN_BRACKETS.test(text) ? undefined : text;
}
