import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { splitClusters } from "../../../text/width.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import { fitAroundCursor, LineInput } from "../editor/line-input.ts";
import { fitRow, type Row, row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Panel, PanelAnswer, PanelView } from "../ui/ui.ts";
import { wrapRows } from "../terminal/wrap.ts";

const SIGN = "› ";
const DOT = "•";
/** With fewer rows the title or the hint is left out. */
const ROWS_FOR_TITLE = 2;
const ROWS_FOR_HINT = 3;

export interface TextQuestion {
  title: string;
  /** Shown between the title and the line. */
  about?: readonly Row[];
  /** Shows dots in place of the text. Default: false. */
  secret?: boolean;
  /** The initial text of the line. */
  initial?: string;
}

/** Asks for one line. Enter returns it unchanged, even if it is empty; Esc leaves. Pasted line ends become spaces. */
export class TextPanel implements Panel<string> {
  readonly #question: TextQuestion;
  readonly #theme: Theme;
  readonly #line: LineInput;

  constructor(question: TextQuestion, theme: Theme) {
    this.#question = question;
    this.#theme = theme;
    this.#line = new LineInput(oneLine(question.initial ?? ""));
  }

  rows(columns: number, rows: number): PanelView {
    if (rows < 1 || columns < 1) return { rows: [] };
    const { about = [], title } = this.#question;
    const head = rows < ROWS_FOR_TITLE ? [] : [row(oneLine(title), this.#theme.strong)];
    const foot =
      rows < ROWS_FOR_HINT ? [] : [row("Enter to take it · Esc to leave", this.#theme.dim)];
    const room = rows - head.length - foot.length - 1;
    const more = about.flatMap((each) => wrapRows(each, columns));
    const above = [...head, ...more.slice(0, room)];
    const { text, cursor } = fitAroundCursor(
      ...this.#maskSecret(),
      Math.max(1, columns - SIGN.length),
    );
    const line = [span(SIGN, this.#theme.accent), span(text)];
    return {
      rows: [...above, line, ...foot].map((each) => fitRow(each, columns)),
      cursor: { row: above.length, column: Math.min(columns - 1, SIGN.length + cursor) },
    };
  }

  take(event: TerminalEvent): PanelAnswer<string> {
    if (event.type === "key" && event.name === "escape") return { type: "done", value: undefined };
    if (event.type === "key" && event.name === "enter") {
      return { type: "done", value: this.#line.text };
    }
    return this.#line.take(event) ? { type: "redraw" } : { type: "none" };
  }

  /** The text before the cursor, and the whole text; dots for a secret. */
  #maskSecret(): [string, string] {
    const { before, text } = this.#line;
    if (!this.#question.secret) return [before, text];
    return [DOT.repeat(splitClusters(before).length), DOT.repeat(splitClusters(text).length)];
  }
}
