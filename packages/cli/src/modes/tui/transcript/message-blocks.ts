import type { FailureKind, UserMessage } from "@gyre/ai";
import { shownLine, shownText } from "../../../text/shown-text.ts";
import { counted, elapsed } from "../../../text/tool-text.ts";
import type { Block, OpenBlock } from "../ui/block.ts";
import { sentOutputText, userText } from "../../../conversation/prompt-text.ts";
import { EMPTY_ROW, fitRow, type Row, row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { type WrappedRow, wrapSpans, wrapText } from "../terminal/wrap.ts";

/** Rows of a message of the user; the lines that have no room are counted. */
export const MAX_USER_ROWS = 12;
/** Rows of a thought that is not shown whole. */
export const THINKING_ROWS = 3;
const MS_PER_SECOND = 1_000;
/** Stands before each row of a thought: without colours it is all that tells it from an answer. */
const THINKING_MARGIN = "┊ ";
const ESCAPE = "\\x1b";
/** A sequence or a character that a piece of a text has begun, and the next one may end. */
const UNFINISHED = new RegExp(
  `(?:${ESCAPE}(?:\\[[0-?]*[ -/]*|\\][^\\x07${ESCAPE}]{0,200})?|[\\ud800-\\udbff]|\\r)$`,
);

/** A block that changes until it is over. */
export interface LiveBlock extends OpenBlock {
  readonly isOver: boolean;
  /** Shows all of it again from its beginning: for another width. */
  restart(): void;
  /**
   * Shows it whole, or in short. What has left the screen stays as it is: of a block that was
   * whole, the part below is cut and shown again; one that was short stays short.
   */
  expand?(isExpanded: boolean): void;
}

/** Both styles at once. */
export function styles(...all: readonly string[]): string {
  return all.filter((each) => each !== "").join(";");
}

/** A block of which the rows are made once for a width. */
export abstract class RememberedBlock implements Block {
  #made: { columns: number; rows: readonly Row[] } | undefined;

  rows(columns: number): readonly Row[] {
    if (this.#made?.columns !== columns) {
      const rows = this.layOut(columns).map((each) => fitRow(each, columns));
      this.#made = { columns, rows };
    }
    return this.#made.rows;
  }

  /** Something has changed: the rows are made anew. */
  protected forget(): void {
    this.#made = undefined;
  }

  /** Rows that are too wide are cut by the caller. */
  protected abstract layOut(columns: number): readonly Row[];
}

/** Rows as they were shown once. Where there is less room they are cut. */
export class FixedBlock extends RememberedBlock {
  readonly #rows: readonly Row[];

  constructor(rows: readonly Row[]) {
    super();
    this.#rows = rows;
  }

  protected override layOut(): readonly Row[] {
    return this.#rows;
  }
}

/** A text in one style, behind a sign. */
export class NoticeBlock extends RememberedBlock {
  readonly #text: string;
  readonly #style: string;
  readonly #sign: Row;

  constructor(text: string, style: string, sign: Row = EMPTY_ROW) {
    super();
    this.#text = shownText(text);
    this.#style = style;
    this.#sign = sign;
  }

  protected override layOut(columns: number): readonly Row[] {
    const rest = this.#sign === EMPTY_ROW ? EMPTY_ROW : row("  ");
    return wrapText(this.#text, columns, this.#style, { first: this.#sign, rest });
  }
}

/** A text that another takes the place of. */
export class RetryBlock extends RememberedBlock {
  readonly #style: string;
  #text: string;

  constructor(text: string, style: string) {
    super();
    this.#text = shownLine(text);
    this.#style = style;
  }

  replace(text: string): void {
    this.#text = shownLine(text);
    this.forget();
  }

  protected override layOut(): readonly Row[] {
    return [row(this.#text, this.#style)];
  }
}

/** What a person can do about a failure, where its kind tells and its message does not. */
const SUGGESTIONS: Partial<Record<FailureKind, string>> = {
  auth: "Choose a model that has a key with /model, or set the key and start again.",
  quota: "Choose another model with /model.",
  rate_limit: "Wait a little and ask again, or choose another model with /model.",
  overloaded: "Wait a little and ask again, or choose another model with /model.",
  overflow: "Make the conversation shorter with /compact.",
  network: "Ask again once there is a connection.",
};

/** What went wrong, and what to do. */
export function errorBlock(theme: Theme, message: string, kind?: FailureKind): Block {
  const way = kind && SUGGESTIONS[kind];
  const text = way === undefined ? message : `${message}\n${way}`;
  return new NoticeBlock(text, theme.bad, [span("✗ ", theme.bad)]);
}

/** A message of the user. */
export class UserBlock extends RememberedBlock {
  readonly #theme: Theme;
  readonly #text: string;
  readonly #below: string;

  constructor(theme: Theme, content: UserMessage["content"]) {
    super();
    this.#theme = theme;
    this.#below = shownLine(sentOutputText(content));
    this.#text = shownText(userText(content)).trimEnd();
  }

  protected override layOut(columns: number): readonly Row[] {
    const { accent, strong, dim } = this.#theme;
    // What no row shows need not be broken into rows.
    const head = this.#text.slice(0, columns * (MAX_USER_ROWS + 1));
    const wrapped = wrapSpans([span(head, strong)], columns, {
      first: [span("› ", accent)],
      rest: row("  "),
    });
    const rows = wrapped.slice(0, MAX_USER_ROWS).map((each) => each.row);
    const next = wrapped[MAX_USER_ROWS];
    const below = this.#below === "" ? [] : [row(`  ${this.#below}`, dim)];
    if (!next) return [...rows, ...below];
    const left = counted(this.#text.slice(next.start).split("\n").length, "more line");
    return [...rows, row(`  … ${left}`, dim), ...below];
  }
}

export interface ThinkingOptions {
  theme: Theme;
  /** Milliseconds. */
  now: () => number;
  /** Shown whole. */
  isExpanded?: boolean;
}

/**
 * A thought: its last rows while it comes, then how long it took; or all of it. The cost of
 * a piece does not grow with what came before.
 */
export class ThinkingBlock implements LiveBlock {
  readonly #theme: Theme;
  readonly #now: () => number;
  readonly #since: number;
  #isExpanded: boolean;
  /** It was whole as its beginning left the screen, and the rest is cut since. */
  #isRestCut = false;
  #took = "";
  #isOver = false;
  #text = "";
  #unfinished = "";
  #columns = 0;
  /** Rows that no further piece changes: all, or the last that are shown. */
  #settled: WrappedRow[] = [];
  /** Where in the text the row after them begins. */
  #settledTo = 0;
  /** How many rows have left the screen. Of a thought that is shown whole they are not kept. */
  #gone = 0;
  #made: readonly Row[] | undefined;
  /** As laid out last. */
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

  /** It is thought. `tookMs` is null where nobody knows any more. */
  end(tookMs: number | null = this.#now() - this.#since): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#took = tookMs === null || tookMs < MS_PER_SECOND ? "" : ` for ${elapsed(tookMs)}`;
    // Of one that is shown whole the rest goes on below; else the row for it is new.
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
    const frozen = new FixedBlock(this.#shown.slice(0, count));
    const hasJustEnded = this.#isOver && !this.#made;
    if (!hasJustEnded || this.#isExpanded) this.#gone += count;
    if (this.#isExpanded) {
      // The last row, which may still grow, goes as it is: what is added begins the next one.
      if (count > this.#settled.length) this.#settledTo = this.#text.trimEnd().length;
      this.#settled.splice(0, count);
    }
    this.#made = undefined;
    return frozen;
  }

  #layOut(columns: number): readonly Row[] {
    const inShort = row(`${THINKING_MARGIN}thought${this.#took}`, this.#theme.dim);
    if (this.#isOver && !this.#isExpanded) return this.#gone > 0 ? [] : [inShort];
    if (this.#isRestCut) return [inShort];
    const last = this.#settle(columns);
    const rows = [...this.#settled, ...(last ? [last] : [])].map((each) => each.row);
    return this.#isExpanded ? rows : rows.slice(-THINKING_ROWS).slice(this.#gone);
  }

  /** Breaks what is new into rows. Gives the last one, which the next piece may change. */
  #settle(columns: number): WrappedRow | undefined {
    const { dim, emphasis } = this.#theme;
    const rest = this.#text.slice(this.#settledTo).trimEnd();
    if (rest === "") return undefined;
    const wrapped = wrapSpans([span(rest, styles(dim, emphasis))], columns, {
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
