import { type HighlightState, type LineHighlighter, createLineHighlighter } from "./highlight.ts";
import { CHARACTER, type Look, type Places } from "./inline.ts";
import { findLineStarts } from "./lines.ts";
import { joinStyles, type Span, span } from "../terminal/row.ts";

export interface CodeLine {
  readonly text: string;
  readonly spans: readonly Span[];
  readonly at: number;
  readonly step: number;
}

export interface CodeNode {
  readonly type: "code";
  readonly at: number;
  /** As the fence names it; empty where it names none. */
  readonly language: string;
  readonly languageAt: number;
  /** Lines are added while the block is open. */
  readonly lines: readonly CodeLine[];
  /** A line that is not complete. */
  readonly last?: CodeLine;
  /** The fences as they were written; absent where there are none. */
  readonly opening?: string;
  readonly closing?: { readonly text: string; readonly at: number };
}

/** How a block of code begins. */
export interface Fence {
  readonly indent: number;
  readonly sign: string;
  readonly language: string;
}

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)$/;

/** Undefined where the line does not open a block of code. */
export function parseFence(line: string): Fence | undefined {
  const [, indent, sign, info] = FENCE.exec(line) ?? [];
  if (indent === undefined || sign === undefined) return undefined;
  const language = /^[^\s{,]*/.exec(info?.trim() ?? "")?.[0] ?? "";
  return { indent: indent.length, sign, language };
}

/** Reads a block of code line by line; each line is highlighted once. */
export class CodeReader {
  readonly #fence: Fence;
  readonly #look: Look;
  readonly #highlight: LineHighlighter;
  readonly #lines: CodeLine[] = [];
  readonly #node: CodeNode;
  #state: HighlightState;
  #closing: CodeNode["closing"];

  /** `opening`: the line with the fence; absent where the code is indented instead. */
  constructor(fence: Fence, at: number, look: Look, opening?: string) {
    this.#fence = fence;
    this.#look = look;
    this.#highlight = createLineHighlighter(fence.language || undefined, look.theme);
    const { indent, language, sign } = fence;
    const languageStart = Math.max(0, opening?.indexOf(language, indent + sign.length) ?? 0);
    this.#node = {
      type: "code",
      at,
      language,
      languageAt: at + languageStart * CHARACTER,
      lines: this.#lines,
      ...(opening !== undefined && { opening: opening.trim() }),
    };
  }

  /** The block so far; `last` is a line that is not complete. */
  node(last?: { text: string; at: number }): CodeNode {
    return {
      ...this.#node,
      ...(this.#closing && { closing: this.#closing }),
      ...(last && { last: this.#highlightLine(last.text, last.at, CHARACTER).line }),
    };
  }

  /** The code itself. */
  get text(): string {
    return this.#lines.map(({ text }) => `${text}\n`).join("");
  }

  /** Whether the line ends the block. It then goes to `close`, not to `take`. */
  isEnd(line: string): boolean {
    const text = line.trim();
    const { sign } = this.#fence;
    if (sign === "" || line.search(/\S/) > 3 || text.length < sign.length) return false;
    return text === sign.charAt(0).repeat(text.length);
  }

  /** Whether an incomplete line may become the end. */
  mayEnd(line: string): boolean {
    const text = line.trimStart();
    return text !== "" && text === this.#fence.sign.charAt(0).repeat(text.length);
  }

  close(line: string, at: number): void {
    this.#closing = { text: line.trim(), at };
  }

  /** `step`: places per character. */
  take(raw: string, start: number, step: number = CHARACTER): void {
    const { line, state } = this.#highlightLine(raw, start, step);
    this.#lines.push(line);
    this.#state = state;
  }

  #highlightLine(
    raw: string,
    start: number,
    step: number,
  ): { line: CodeLine; state: HighlightState } {
    const { style } = this.#look;
    const indent = Math.min(this.#fence.indent, Math.max(0, raw.search(/\S|$/)));
    const text = raw.slice(indent);
    const { spans, state } = this.#highlight(text, this.#state);
    const all =
      style === "" ? spans : spans.map((each) => span(each.text, joinStyles(style, each.style)));
    return { line: { text, spans: all, at: start + indent * step, step }, state };
  }
}

/** The same block with other code in it, whose lines share the places of the old ones. */
export function replaceCode(node: CodeNode, code: string, end: number, look: Look): CodeNode {
  const first = node.lines[0]?.at ?? node.at;
  const step = Math.max(1, Math.floor((end - first) / (code.length + 1)));
  const reader = new CodeReader({ indent: 0, sign: "", language: node.language }, node.at, look);
  let offset = 0;
  for (const line of code.replace(/\n$/, "").split("\n")) {
    reader.take(line, first + offset * step, step);
    offset += line.length + 1;
  }
  return { ...node, lines: reader.node().lines };
}

const INDENTED: Fence = { indent: 4, sign: "", language: "" };

/** Reads a block of code that has arrived as a whole. */
export function parseCode(raw: string, places: Places, look: Look): CodeNode {
  const starts = findLineStarts(raw);
  const lines = raw.split("\n");
  const fence = parseFence(lines[0] ?? "");
  const reader = new CodeReader(fence ?? INDENTED, places(0), look, fence && lines[0]);
  for (let index = fence ? 1 : 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    const at = places(starts[index] ?? 0);
    if (fence && reader.isEnd(line)) reader.close(line, at);
    else reader.take(line, at);
  }
  return reader.node();
}
