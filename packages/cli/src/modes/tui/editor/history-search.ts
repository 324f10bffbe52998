import { shownText } from "@gyre/coding/internal/text/shown-text";
import { measureWidth } from "../../../text/width.ts";
import { listRows } from "./completion-list.ts";
import { removeLast } from "./line-input.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import { fitRow, row, type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { PanelAnswer, PanelView } from "../ui/ui.ts";

/** Longer queries are truncated. */
const MAX_QUERY_CHARS = 200;
/** The most prompts that are listed. */
const MAX_FOUND = 100;
/** Longer prompts are shown truncated. */
const MAX_SHOWN_CHARS = 400;
const LEAD = "search: ";

/** Searches earlier prompts, the newest first. */
export class HistorySearch {
  readonly #prompts: readonly string[];
  readonly #theme: Theme;
  #query = "";
  #found: readonly string[] = [];
  #marked = 0;

  /** `prompts` has the oldest first. */
  constructor(prompts: readonly string[], theme: Theme) {
    this.#prompts = [...new Set(prompts.toReversed())];
    this.#theme = theme;
    this.#search("");
  }

  take(event: TerminalEvent): PanelAnswer<string> {
    if (event.type === "position") return { type: "none" };
    if (event.type !== "key") {
      this.#search(this.#query + event.text.split("\n", 1).join(""));
      return { type: "redraw" };
    }
    switch (event.ctrl ? `ctrl+${event.name}` : event.name) {
      case "enter":
      case "tab": {
        const value = this.#found[this.#marked];
        return value === undefined ? { type: "none" } : { type: "done", value };
      }
      case "escape":
      case "ctrl+c":
      case "ctrl+g":
        return { type: "done", value: undefined };
      case "down":
      case "ctrl+n":
      case "ctrl+r":
        return this.#move(1);
      case "up":
      case "ctrl+p":
      case "ctrl+s":
        return this.#move(-1);
      case "backspace":
        this.#search(removeLast(this.#query));
        return { type: "redraw" };
      case "ctrl+u":
        this.#search("");
        return { type: "redraw" };
      default:
        return { type: "none" };
    }
  }

  rows(columns: number, maxRows: number): PanelView {
    const theme = this.#theme;
    const asked: Row = fitRow([span(LEAD, theme.accent), span(this.#query)], columns);
    const items = this.#found.map((prompt) => ({
      label: shownText(prompt.slice(0, MAX_SHOWN_CHARS)).replaceAll("\n", " ⏎ "),
    }));
    const list =
      items.length === 0
        ? [fitRow(row("  nothing found", theme.dim), columns)].slice(0, maxRows - 1)
        : listRows(items, this.#marked, { theme, columns, maxRows: maxRows - 1 });
    const column = Math.min(columns - 1, measureWidth(LEAD + this.#query));
    return { rows: [asked, ...list], cursor: { row: 0, column } };
  }

  #move(step: -1 | 1): PanelAnswer<string> {
    const { length } = this.#found;
    if (length > 0) this.#marked = (this.#marked + step + length) % length;
    return { type: "redraw" };
  }

  /** Finds the prompts that contain all words of the query. A query with capitals is case-sensitive. */
  #search(query: string): void {
    this.#query = query.slice(0, MAX_QUERY_CHARS);
    this.#marked = 0;
    const isExact = query !== query.toLowerCase();
    const words = this.#query.split(" ").filter((word) => word !== "");
    const found: string[] = [];
    for (const prompt of this.#prompts) {
      const text = isExact ? prompt : prompt.toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(prompt);
      if (found.length >= MAX_FOUND) break;
    }
    this.#found = found;
  }
}
