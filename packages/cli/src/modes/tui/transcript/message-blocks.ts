import type { FailureKind, UserMessage } from "@gyre/ai";
import { shownLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { counted, elapsed, firstSentence } from "../../../text/tool-text.ts";
import { type Block, cacheRows, type OpenBlock } from "../ui/block.ts";
import { sentOutputText, userText } from "@gyre/coding/internal/conversation/prompt-text";
import {
  EMPTY_ROW,
  fitRow,
  joinStyles,
  padRow,
  type Row,
  row,
  span,
  widthOfRow,
} from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { type WrappedRow, wrapSpans, wrapText } from "../terminal/wrap.ts";

/** The most rows of a user message; the lines without room are counted. */
const MAX_USER_ROWS = 12;
/** Rows of a collapsed thought. */
const THINKING_ROWS = 3;
/** With less room, nothing is said of a long thought. */
const MIN_GIST_COLUMNS = 16;
const MS_PER_SECOND = 1_000;
/** Before each row of a thought: without colors only this distinguishes it from an answer. */
const THINKING_MARGIN = "┊ ";
const END_SIGN = "──";
const ESCAPE = "\\x1b";
/** An emoji, to which the next piece may join others. */
const EMOJI =
  "\\p{Extended_Pictographic}[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f\\u200d]{0,20}";
/** An incomplete sequence or character at the end of a piece, which the next piece may complete. */
const UNFINISHED = new RegExp(
  `(?:${ESCAPE}(?:\\[[0-?]*[ -/]*|\\][^\\x07${ESCAPE}]{0,200})?|${EMOJI}|[\\ud800-\\udbff]|\\r)$`,
  "u",
);

/** A block that changes until it is over. */
export interface LiveBlock extends OpenBlock {
  readonly isOver: boolean;
  /** Shows all of it again, for another width. */
  restart(): void;
  /**
   * Expands or collapses it. Rows that have left the screen stay as they are: of an expanded block only the rest
   * collapses, and a collapsed block stays collapsed.
   */
  expand?(isExpanded: boolean): void;
}

/** Rows as they were shown once. In a narrower terminal they are truncated. */
export function createFixedBlock(rows: readonly Row[]): Block {
  return cacheRows(() => rows);
}

/** A text in one style, behind a sign. */
export function createNoticeBlock(text: string, style: string, sign: Row = EMPTY_ROW): Block {
  const shown = shownText(text);
  const rest = sign === EMPTY_ROW ? EMPTY_ROW : row("  ");
  return cacheRows((columns) => wrapText(shown, columns, style, { first: sign, rest }));
}

export function createWarningBlock({ warning }: Theme, text: string): Block {
  return createNoticeBlock(text, warning, row("! ", warning));
}

/** The end of what a prompt asked for, with facts about it. */
export function createEndBlock({ dim }: Theme, facts: readonly string[]): Block {
  return createNoticeBlock(`${END_SIGN} ${facts.join(" · ")} ${END_SIGN}`, dim);
}

/** A text that another one replaces. */
export class RetryBlock implements Block {
  readonly #style: string;
  #block: Block;

  constructor(text: string, style: string) {
    this.#style = style;
    this.#block = createFixedBlock([row(shownLine(text), style)]);
  }

  replace(text: string): void {
    this.#block = createFixedBlock([row(shownLine(text), this.#style)]);
  }

  rows(columns: number): readonly Row[] {
    return this.#block.rows(columns);
  }
}

/** Suggestions by kind of failure, where the message has none. */
const SUGGESTIONS: Partial<Record<FailureKind, string>> = {
  auth: "Choose a model that has a key with /model, or set the key and start again.",
  quota: "Choose another model with /model.",
  rate_limit: "Wait a little and ask again with /retry, or choose another model with /model.",
  overloaded: "Wait a little and ask again with /retry, or choose another model with /model.",
  overflow: "Make the conversation shorter with /compact.",
  network: "Ask again with /retry once there is a connection.",
  incomplete: "Ask again with /retry.",
};

/** An error with a suggestion. */
export function createErrorBlock({ bad }: Theme, message: string, kind?: FailureKind): Block {
  const suggestion = kind && SUGGESTIONS[kind];
  const text = suggestion === undefined ? message : `${message}\n${suggestion}`;
  return createNoticeBlock(text, bad, row("✗ ", bad));
}

/** A message of the user. */
export function createUserBlock(
  { accent, strong, dim, prompt }: Theme,
  content: UserMessage["content"],
): Block {
  const text = shownText(userText(content)).trimEnd();
  const output = shownLine(sentOutputText(content));
  const below = output === "" ? [] : [row(`  ${output}`, dim)];
  return cacheRows((columns) => {
    // The rest of the text has no room in any row.
    const head = text.slice(0, columns * (MAX_USER_ROWS + 1));
    const options = { first: row("› ", joinStyles(accent, prompt)), rest: row("  ", prompt) };
    const wrapped = wrapSpans([span(head, joinStyles(strong, prompt))], columns, options);
    const rows = fillRows(
      wrapped.slice(0, MAX_USER_ROWS).map((each) => each.row),
      columns,
      prompt,
    );
    const next = wrapped[MAX_USER_ROWS];
    if (!next) return [...rows, ...below];
    const left = counted(text.slice(next.start).split("\n").length, "more line");
    return [...rows, row(`  … ${left}`, dim), ...below];
  });
}

/** Rows on a background of their own are as wide as the widest, with a space behind it. */
function fillRows(rows: readonly Row[], columns: number, style: string): readonly Row[] {
  if (style === "") return rows;
  const widest = Math.max(...rows.map(widthOfRow));
  return rows.map((each) => padRow(each, Math.min(columns, widest + 1), style));
}

export interface ThinkingOptions {
  theme: Theme;
  /** Milliseconds. */
  now: () => number;
  /** Shows all of it. */
  isExpanded?: boolean;
}

/**
 * A thought: its last rows while it arrives. Then a short one stays, and of a long one its duration and its beginning
 * are a row; or all of it. The cost of a piece does not depend on the text before.
 */
export class ThinkingBlock implements LiveBlock {
  readonly #theme: Theme;
  readonly #now: () => number;
  readonly #since: number;
  #isExpanded: boolean;
  /** It was expanded when its beginning left the screen, and collapsed since. */
  #isRestCut = false;
  #took = "";
  #isOver = false;
  #text = "";
  #unfinished = "";
  #columns = 0;
  /** Rows that no further piece changes: all, or the last visible ones. */
  #settled: WrappedRow[] = [];
  /** The offset of the row after them. */
  #settledTo = 0;
  /** How many rows have left the screen. An expanded thought does not keep them. */
  #gone = 0;
  #made: readonly Row[] | undefined;
  /** The last layout. */
  #shown: readonly Row[] = [];

  constructor({ theme, now, isExpanded = false }: ThinkingOptions) {
    this.#theme = theme;
    this.#now = now;
    this.#since = now();
    this.#isExpanded = isExpanded;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  feed(delta: string): void {
    const text = this.#unfinished + delta;
    this.#unfinished = UNFINISHED.exec(text)?.[0] ?? "";
    this.#text += shownText(text.slice(0, text.length - this.#unfinished.length));
    this.#made = undefined;
  }

  /** Ends the thought. `tookMs` is null where it is unknown. */
  end(tookMs: number | null = this.#now() - this.#since): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#text += shownText(this.#unfinished);
    this.#took = tookMs === null || tookMs < MS_PER_SECOND ? "" : ` for ${elapsed(tookMs)}`;
    // The rest of an expanded thought continues below; a collapsed one gets a new row.
    if (!this.#isExpanded) this.#gone = 0;
    this.#made = undefined;
  }

  expand(isExpanded: boolean): void {
    if (this.#gone > 0) {
      this.#isRestCut = this.#isOver && this.#isExpanded && !isExpanded;
      this.#made = undefined;
      return;
    }
    this.#isExpanded = isExpanded;
    this.restart();
  }

  restart(): void {
    if (this.#isRestCut) this.#isExpanded = false;
    this.#isRestCut = false;
    this.#settled = [];
    this.#settledTo = 0;
    this.#gone = 0;
    this.#made = undefined;
  }

  rows(columns: number): readonly Row[] {
    if (this.#columns !== columns) this.restart();
    this.#columns = columns;
    this.#made ??= this.#layOut(columns).map((each) => fitRow(each, columns));
    this.#shown = this.#made;
    return this.#made;
  }

  freeze(count: number): Block {
    const frozen = createFixedBlock(this.#shown.slice(0, count));
    const hasJustEnded = this.#isOver && !this.#made;
    if (!hasJustEnded || this.#isExpanded) this.#gone += count;
    if (this.#isExpanded) {
      // The last row, which may still grow, is frozen: new text begins the next row.
      if (count > this.#settled.length) this.#settledTo = this.#text.trimEnd().length;
      this.#settled.splice(0, count);
    }
    this.#made = undefined;
    return frozen;
  }

  #layOut(columns: number): readonly Row[] {
    if (this.#isOver && !this.#isExpanded) return this.#gone > 0 ? [] : this.#inShort(columns);
    if (this.#isRestCut) return [this.#thoughtRow()];
    const last = this.#settle(columns);
    const rows = [...this.#settled, ...(last ? [last] : [])].map((each) => each.row);
    return this.#isExpanded ? rows : rows.slice(-THINKING_ROWS).slice(this.#gone);
  }

  #thoughtRow(): Row {
    return row(`${THINKING_MARGIN}thought${this.#took}`, this.#theme.dim);
  }

  /** A short thought is as quickly read as one row about it. */
  #inShort(columns: number): readonly Row[] {
    const { dim, emphasis } = this.#theme;
    const thought = this.#thoughtRow();
    const text = this.#text.trim();
    if (text !== "" && text.length <= columns * THINKING_ROWS) {
      const first = row(THINKING_MARGIN, dim);
      const rows = wrapText(text, columns, joinStyles(dim, emphasis), { first });
      if (rows.length <= THINKING_ROWS) return rows;
    }
    if (text === "" || columns - widthOfRow(thought) < MIN_GIST_COLUMNS) return [thought];
    // Services that summarize thoughts begin with a title in bold.
    const [line = ""] = text.slice(0, columns).split("\n");
    const gist = firstSentence(line.replaceAll(/[*#`]/g, "").trim());
    return [[...thought, span(": ", dim), span(gist, joinStyles(dim, emphasis))]];
  }

  /** Breaks new text into rows. Returns the last one, which the next piece may change. */
  #settle(columns: number): WrappedRow | undefined {
    const { dim, emphasis } = this.#theme;
    const rest = this.#text.slice(this.#settledTo).trimEnd();
    if (rest === "") return undefined;
    const wrapped = wrapSpans([span(rest, joinStyles(dim, emphasis))], columns, {
      first: [span(THINKING_MARGIN, dim)],
    });
    const placed = wrapped.map((each) => ({ ...each, start: each.start + this.#settledTo }));
    const last = placed.pop();
    this.#settled.push(...placed);
    if (!this.#isExpanded) this.#settled = this.#settled.slice(-THINKING_ROWS);
    this.#settledTo = last?.start ?? this.#settledTo;
    return last;
  }
}
