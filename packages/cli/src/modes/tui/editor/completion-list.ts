import { measureWidth } from "../../../text/width.ts";
import { errorMessage } from "@gyre/ai";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { Completion, CompletionRequest, Completions } from "./completion.ts";
import { fitRow, padRow, type Row, span, textOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/** Rows of a list; the others are reached by scrolling. */
export const MAX_LIST_ROWS = 8;
const INDENT = "  ";
const MARK = "› ";
/** The share of a row that labels may take where details follow them. */
const MAX_LABEL_SHARE = 0.6;

export interface ListItem {
  readonly label: string;
  readonly detail?: string;
}

/** A list with the marked item visible; -1: none is marked. */
export function listRows(
  items: readonly ListItem[],
  marked: number,
  { theme, columns, maxRows }: { theme: Theme; columns: number; maxRows: number },
): Row[] {
  const height = Math.min(MAX_LIST_ROWS, maxRows, items.length);
  // Half of the rows are above the marked item, and none at the end are empty.
  const middle = Math.max(0, marked - Math.floor(height / 2));
  const first = Math.max(0, Math.min(middle, items.length - height));
  const seen = items.slice(first, first + height);
  const widest = Math.max(0, ...seen.map(({ label }) => measureWidth(label)));
  const labelColumns = Math.min(widest, Math.floor(columns * MAX_LABEL_SHARE));
  return seen.map(({ label, detail }, index) => {
    const isMarked = first + index === marked;
    const name = [span((isMarked ? MARK : INDENT) + label)];
    if (detail === undefined || detail === "") {
      return restyle(fitRow(name, columns), isMarked ? theme.selected : "");
    }
    const lead = padRow(fitRow(name, INDENT.length + labelColumns), INDENT.length + labelColumns);
    const whole = fitRow([...lead, span(INDENT), span(detail, theme.dim)], columns);
    return isMarked ? restyle(whole, theme.selected) : whole;
  });
}

function restyle(spans: Row, style: string): Row {
  return [span(textOfRow(spans), style)];
}

/** The completions at the cursor, requested again with each change. */
export class CompletionList {
  readonly #completions: Completions;
  readonly #onChange: () => void;
  #request: CompletionRequest | undefined;
  #choices: readonly Completion[] = [];
  #marked = 0;
  #problem: string | undefined;
  #loading: AbortController | undefined;

  /** `onChange` is called when choices arrive after `update` has returned. */
  constructor(completions: Completions, onChange: () => void) {
    this.#completions = completions;
    this.#onChange = onChange;
  }

  get isOpen(): boolean {
    return this.#choices.length > 0;
  }

  /** The marked completion, and the part of the text that it replaces. */
  get chosen(): { completion: Completion; request: CompletionRequest } | undefined {
    const completion = this.#choices[this.#marked];
    return completion && this.#request && { completion, request: this.#request };
  }

  /** Requests completions. Until they arrive the last ones stay. */
  update(text: string, cursor: number, byTab = false): void {
    const wasByTab = this.isOpen && this.#request?.onTab === true;
    const request = this.#completions.for(text, cursor);
    if (!request || (request.onTab && !byTab && !wasByTab)) {
      this.close();
      return;
    }
    if (request.start !== this.#request?.start) this.close();
    this.#loading?.abort();
    this.#request = request;
    this.#load(request);
  }

  close(): void {
    this.#loading?.abort();
    this.#loading = undefined;
    this.#request = undefined;
    this.#choices = [];
    this.#problem = undefined;
  }

  /** Marks the next completion; the first one follows the last. */
  move(step: -1 | 1): void {
    const { length } = this.#choices;
    const from = this.#marked < 0 && step < 0 ? 0 : this.#marked;
    if (length > 0) this.#marked = (from + step + length) % length;
  }

  rows(theme: Theme, columns: number, maxRows: number): Row[] {
    if (this.#problem !== undefined && maxRows > 0) {
      return [fitRow([span(`${INDENT}! ${this.#problem}`, theme.dim)], columns)];
    }
    return listRows(this.#choices, this.#marked, { theme, columns, maxRows });
  }

  #load(request: CompletionRequest): void {
    const loading = new AbortController();
    this.#loading = loading;
    try {
      const loaded = request.load(loading.signal);
      if (!(loaded instanceof Promise)) {
        this.#show(loaded, request);
        return;
      }
      const settle = (update: () => void): void => {
        if (this.#loading !== loading) return;
        update();
        this.#onChange();
      };
      void loaded.then(
        (choices) => settle(() => this.#show(choices, request)),
        (error: unknown) => settle(() => this.#fail(error)),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  #show(choices: readonly Completion[], { isOptional = false }: CompletionRequest): void {
    this.#problem = undefined;
    this.#choices = choices;
    this.#marked = isOptional ? -1 : 0;
  }

  #fail(error: unknown): void {
    this.close();
    this.#problem = oneLine(errorMessage(error));
  }
}
