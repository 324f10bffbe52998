import type { TerminalEvent } from "../terminal/key.ts";
import { containsInOrder, toCodes } from "../editor/fuzzy.ts";
import { fitAroundCursor, LineInput } from "../editor/line-input.ts";
import { QuietTime } from "./quiet-time.ts";
import { fitRow, type Row, row, type Span, span, widthOfRow } from "../terminal/row.ts";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { Theme } from "../terminal/theme.ts";
import type { Choice, Panel, PanelAnswer, PanelView, PanelQuestion } from "../ui/ui.ts";
import { wrapRows } from "../terminal/wrap.ts";

const SIGN = "› ";
const NO_SIGN = "  ";
const GAP = "  ";
/** One visible character may be several code units, and some of them are removed. */
const CHARS_PER_COLUMN = 16;
/** Choices that a digit can select. */
const MAX_NUMBERED = 9;
/** Rows of the list that the text above it leaves. */
const MIN_LIST_ROWS = 3;
/** The length of a page before the first drawing. */
const DEFAULT_PAGE = 10;
/** With fewer rows the title, the filter, the hint and the count are left out. */
const ROWS_FOR_TITLE = 2;
const ROWS_FOR_FILTER = 3;
const ROWS_FOR_HINT = 4;
const ROWS_FOR_COUNT = 3;

/** A choice with its searchable text in lower case. */
interface Candidate<T> {
  choice: Choice<T>;
  text: string;
}

/**
 * A list to choose from. Arrows, pages, Home and End, Ctrl+N and Ctrl+P move the mark, Enter chooses. With a filter,
 * typing narrows the list; without one, a digit chooses by number and a letter by key. Esc clears the filter, then
 * leaves.
 */
export class SelectPanel<T> implements Panel<T> {
  readonly #question: PanelQuestion<T>;
  readonly #theme: Theme;
  readonly #candidates: readonly Candidate<T>[];
  readonly #typed = new LineInput();
  /** The choices that match the filter. */
  #found: readonly Choice<T>[];
  #marked: number;
  /** The first visible choice, and how many were visible last. */
  #top = 0;
  #page = DEFAULT_PAGE;
  readonly #quiet: QuietTime | undefined;

  /** `now` in milliseconds. */
  constructor(question: PanelQuestion<T>, theme: Theme, now = (): number => performance.now()) {
    if (question.requiresConfirmation) this.#quiet = new QuietTime(now);
    this.#question = question;
    this.#theme = theme;
    this.#found = question.choices;
    this.#marked = clamp(question.start ?? 0, question.choices.length);
    this.#candidates = question.choices.map((choice) => ({
      choice,
      text: `${choice.label} ${choice.detail ?? ""} ${choice.search ?? ""}`.toLowerCase(),
    }));
  }

  rows(columns: number, rows: number): PanelView {
    if (rows < 1 || columns < 1) return { rows: [] };
    this.#quiet?.begin();
    const { dim, strong } = this.#theme;
    const { filter = false, title } = this.#question;
    const head = rows < ROWS_FOR_TITLE ? [] : [row(oneLine(title), strong)];
    const foot = rows < ROWS_FOR_HINT ? [] : [row(this.#hint(), dim)];
    const isTyped = filter && rows >= ROWS_FOR_FILTER;
    const room = rows - head.length - foot.length - (isTyped ? 1 : 0);
    const about = this.#about(columns, room);
    const line = fitAroundCursor(
      this.#typed.before,
      this.#typed.text,
      Math.max(1, columns - GAP.length),
    );
    const above = [...head, ...about];
    const view = [
      ...above,
      ...(isTyped ? [this.#filterRow(line.text)] : []),
      ...this.#list(columns, room - about.length),
      ...foot,
    ];
    return {
      rows: view.map((each) => fitRow(each, columns)),
      ...(isTyped && {
        cursor: { row: above.length, column: Math.min(columns - 1, GAP.length + line.cursor) },
      }),
    };
  }

  take(event: TerminalEvent): PanelAnswer<T> {
    const { filter = false } = this.#question;
    const isEscape = event.type === "key" && event.name === "escape";
    if (!isEscape && this.#quiet?.isTooEarly()) return { type: "none" };
    if (event.type === "key") {
      const answer = this.#key(event.name, event.ctrl);
      if (answer) return answer;
    }
    if (!filter) return event.type === "text" ? this.#chooseByKey(event.text) : { type: "none" };
    const before = this.#typed.text;
    if (!this.#typed.take(event)) return { type: "none" };
    if (this.#typed.text !== before) this.#search();
    return { type: "redraw" };
  }

  #key(name: string, ctrl: boolean): PanelAnswer<T> | undefined {
    const { length } = this.#found;
    switch (ctrl ? `ctrl+${name}` : name) {
      case "up":
      case "ctrl+p":
        return this.#mark(this.#marked === 0 ? length - 1 : this.#marked - 1);
      case "down":
      case "ctrl+n":
        return this.#mark(this.#marked === length - 1 ? 0 : this.#marked + 1);
      case "pageUp":
        return this.#mark(this.#marked - this.#page);
      case "pageDown":
        return this.#mark(this.#marked + this.#page);
      case "home":
        return this.#mark(0);
      case "end":
        return this.#mark(length - 1);
      case "enter": {
        const choice = this.#found[this.#marked];
        return choice ? { type: "done", value: choice.value } : { type: "none" };
      }
      case "escape":
        if (this.#typed.text === "") return { type: "done", value: undefined };
        this.#typed.clear();
        this.#search();
        return { type: "redraw" };
      default:
        return undefined;
    }
  }

  #mark(index: number): PanelAnswer<T> {
    this.#marked = clamp(index, this.#found.length);
    return { type: "redraw" };
  }

  /** Chooses by a typed letter or digit. */
  #chooseByKey(text: string): PanelAnswer<T> {
    for (const letter of text) {
      const { choices } = this.#question;
      const choice =
        choices.find(({ key }) => key === letter) ??
        choices.find(({ key }) => key === letter.toLowerCase()) ??
        choices.find(({ key }, index) => key === undefined && String(index + 1) === letter);
      if (choice) return { type: "done", value: choice.value };
    }
    return { type: "none" };
  }

  /** Choices that contain each word come before those that contain its letters in order. */
  #search(): void {
    const words = this.#typed.text.toLowerCase().split(/\s+/).filter(Boolean);
    const exact: Choice<T>[] = [];
    const loose: Choice<T>[] = [];
    for (const { choice, text } of this.#candidates) {
      if (words.every((word) => text.includes(word))) exact.push(choice);
      else if (words.every((word) => containsInOrder(text, toCodes(word)))) loose.push(choice);
    }
    this.#found = [...exact, ...loose];
    this.#marked = 0;
    this.#top = 0;
  }

  #about(columns: number, room: number): Row[] {
    const rows = (this.#question.about ?? []).flatMap((each) => wrapRows(each, columns));
    const listRows = Math.min(MIN_LIST_ROWS, Math.max(1, this.#question.choices.length));
    const free = Math.max(0, room - listRows);
    if (rows.length <= free) return rows;
    if (free === 0) return [];
    const left = rows.length - free + 1;
    return [...rows.slice(0, free - 1), row(`… ${left} more lines`, this.#theme.dim)];
  }

  #filterRow(text: string): Row {
    const { accent, dim } = this.#theme;
    const hint = this.#typed.text === "" ? span("type to search", dim) : span("");
    return [span("/ ", accent), span(text), hint];
  }

  #list(columns: number, room: number): Row[] {
    if (room < 1) return [];
    const { length } = this.#found;
    if (length === 0) return [row(`${NO_SIGN}nothing has this`, this.#theme.dim)];
    const isCounted = length > room && room >= ROWS_FOR_COUNT;
    const shown = Math.min(length, isCounted ? room - 1 : room);
    this.#page = shown;
    const lowest = Math.max(0, this.#marked - shown + 1);
    this.#top = Math.min(Math.max(this.#top, lowest), this.#marked, length - shown);
    const rows = this.#found
      .slice(this.#top, this.#top + shown)
      .map((choice, index) => this.#choiceRow(choice, this.#top + index, columns));
    return isCounted ? [...rows, this.#countRow(shown)] : rows;
  }

  #countRow(shown: number): Row {
    const above = this.#top;
    const below = this.#found.length - this.#top - shown;
    const parts = [
      ...(above > 0 ? [`↑ ${above} more`] : []),
      ...(below > 0 ? [`↓ ${below} more`] : []),
    ];
    return row(NO_SIGN + parts.join(GAP), this.#theme.dim);
  }

  #choiceRow({ label, detail, key }: Choice<T>, index: number, columns: number): Row {
    const { accent, dim, selected } = this.#theme;
    const isMarked = index === this.#marked;
    const spans: Span[] = [isMarked ? span(SIGN, accent) : span(NO_SIGN)];
    const name = key ?? (index < MAX_NUMBERED ? String(index + 1) : " ");
    if (!this.#question.filter) spans.push(span(`${name} `, dim));
    const more = detail ? [span(GAP + truncateText(detail, columns), dim)] : [];
    // The detail is shown whole, unless that takes more than half of the row.
    const room = columns - widthOfRow(spans) - widthOfRow(more);
    const text = [span(truncateText(label, columns), isMarked ? selected : "")];
    spans.push(...(room >= columns / 2 ? fitRow(text, room) : text), ...more);
    return spans;
  }

  #hint(): string {
    const { choices, filter } = this.#question;
    const ways = choices.some(({ key }) => key !== undefined) ? "its key" : "its number";
    return filter
      ? "↑↓ to choose · Enter to take it · Esc to leave"
      : `↑↓ and Enter, or ${ways} · Esc to leave`;
  }
}

/** The beginning of a text that one row can show. */
function truncateText(text: string, columns: number): string {
  return oneLine(text.slice(0, columns * CHARS_PER_COLUMN));
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(index, length - 1));
}
