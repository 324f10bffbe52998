import { plainText } from "@gyre/coding/internal/text/plain-text";
import type { Completions } from "./completion.ts";
import { CompletionList, MAX_LIST_ROWS } from "./completion-list.ts";
import { MAX_SIGNS, signAt, SIGNS, TextRows } from "./editor-rows.ts";
import { EditorView, SIGN_COLUMNS } from "./editor-view.ts";
import { HistorySearch } from "./history-search.ts";
import { formatKey, type Key, type TerminalEvent } from "../terminal/key.ts";
import type { PromptHistory } from "./prompt-history.ts";
import { fitRow, span } from "../terminal/row.ts";
import { type Motion, TextBuffer, removeSigns } from "./text-buffer.ts";
import type { Theme } from "../terminal/theme.ts";
import type { PanelView } from "../ui/ui.ts";

/** Longer pastes are shown as one sign. */
const MAX_PASTE_LINES = 10;
const MAX_PASTE_CHARS = 2_000;
/** Rows that the text keeps while a list is open. */
const MIN_TEXT_ROWS = 3;

export interface EditorOptions {
  theme: Theme;
  completions: Completions;
  history: Pick<PromptHistory, "prompts" | "add">;
  /** Called when the editor has changed without a key. */
  onChange: () => void;
}

/** The effect of an event. */
export type EditorAction =
  | { type: "none" }
  | { type: "redraw" }
  /** The user sends the text; the editor is empty again. */
  | { type: "submit"; text: string; followUp: boolean }
  /** A key that the editor does not handle. */
  | { type: "unhandled"; key: Key };

const NONE: EditorAction = { type: "none" };
const REDRAW: EditorAction = { type: "redraw" };

/** Keys that move the cursor or remove something. */
const MOVES = bindKeys(
  ["left", "left ctrl+b"],
  ["right", "right ctrl+f"],
  ["lineStart", "home ctrl+a"],
  ["lineEnd", "end ctrl+e"],
  ["wordLeft", "ctrl+left alt+left alt+b"],
  ["wordRight", "ctrl+right alt+right alt+f"],
  ["textStart", "ctrl+home alt+<"],
  ["textEnd", "ctrl+end alt+>"],
);
const ERASES = bindKeys(["left", "backspace shift+backspace"], ["right", "delete ctrl+d"]);
const KILLS = bindKeys(
  ["blankLeft", "ctrl+w"],
  ["wordLeft", "alt+backspace ctrl+backspace"],
  ["wordRight", "alt+d alt+delete ctrl+delete"],
  ["lineStart", "ctrl+u"],
  ["lineEnd", "ctrl+k"],
);

function bindKeys(...all: readonly (readonly [Motion, string])[]): ReadonlyMap<string, Motion> {
  return new Map(all.flatMap(([motion, keys]) => keys.split(" ").map((key) => [key, motion])));
}

/** Edits a prompt: lines, earlier prompts, completions, pastes as signs. */
export class Editor {
  /** Shown dim while the editor is empty. */
  placeholder = "";
  readonly #theme: Theme;
  readonly #history: EditorOptions["history"];
  readonly #buffer = new TextBuffer();
  readonly #rows = new TextRows((sign) => this.#labels.get(sign) ?? "");
  readonly #view: EditorView;
  readonly #list: CompletionList;
  /** What signs stand for, and how they are shown. */
  readonly #pastes = new Map<string, string>();
  readonly #labels = new Map<string, string>();
  #search: HistorySearch | undefined;
  /** The earlier prompt that is shown, and the draft that it replaced. */
  #walk: { index: number; draft: string } | undefined;
  /** The last key showed an earlier prompt: the next one continues from there. */
  #isWalking = false;

  constructor({ theme, completions, history, onChange }: EditorOptions) {
    this.#theme = theme;
    this.#history = history;
    this.#view = new EditorView(theme, this.#rows);
    this.#list = new CompletionList(completions, onChange);
  }

  /** The whole text, with pastes in full. */
  get text(): string {
    return this.#buffer.text.replace(SIGNS, (sign) => this.#pastes.get(sign) ?? "");
  }

  get isEmpty(): boolean {
    return this.#buffer.isEmpty;
  }

  /** Replaces the text; the cursor moves to the end. */
  set(text: string): void {
    this.#search = undefined;
    this.#leaveHistory();
    this.#buffer.set(removeSigns(plainText(text)));
    this.#list.close();
  }

  rows(columns: number, maxRows: number): PanelView {
    if (this.#search) return this.#search.rows(columns, maxRows);
    const listRoom = Math.max(Math.min(1, maxRows - 1), maxRows - MIN_TEXT_ROWS);
    const list = this.#list.rows(this.#theme, columns, Math.min(MAX_LIST_ROWS, listRoom));
    const { rows, cursor } = this.#view.draw(this.#buffer, columns, maxRows - list.length);
    const [first = []] = rows;
    const hint = span(this.placeholder, this.#theme.dim);
    const written = this.isEmpty ? [fitRow([...first, hint], columns)] : rows;
    return { rows: [...written, ...list], cursor: cursor ?? { row: 0, column: SIGN_COLUMNS } };
  }

  take(event: TerminalEvent): EditorAction {
    if (event.type === "position") return NONE;
    if (this.#search) return this.#takeSearch(this.#search, event);
    if (event.type === "key") return this.#takeKey(event);
    this.#isWalking = false;
    const text = removeSigns(event.text);
    if (event.type === "text") return this.#applyEdit(() => this.#buffer.insert(text, "typed"));
    this.#paste(text);
    this.#list.close();
    return REDRAW;
  }

  #takeKey(key: Key): EditorAction {
    const name = formatKey(key);
    if (this.#list.isOpen) {
      const action = this.#takeForList(name);
      if (action) return action;
    }
    if (name === "up" || name === "down") return this.#moveRow(name === "up" ? -1 : 1);
    const wasWalking = this.#isWalking;
    this.#isWalking = false;
    const action = this.#edit(name);
    if (action) return action;
    // A key that the editor does not handle changes nothing.
    this.#isWalking = wasWalking;
    return { type: "unhandled", key };
  }

  /** Handles the keys of an open list. */
  #takeForList(name: string): EditorAction | undefined {
    switch (name) {
      case "up":
      case "ctrl+p":
        this.#list.move(-1);
        return REDRAW;
      case "down":
      case "ctrl+n":
        this.#list.move(1);
        return REDRAW;
      case "escape":
        this.#list.close();
        return REDRAW;
      case "enter":
        return this.#takeChoice(true);
      case "tab":
        if (!this.#list.chosen) this.#list.move(1);
        return this.#takeChoice(false);
      default:
        return undefined;
    }
  }

  /** Undefined where nothing is marked, or where the text already contains it. */
  #takeChoice(maySubmit: boolean): EditorAction | undefined {
    const { chosen } = this.#list;
    if (!chosen) return undefined;
    const { completion, request } = chosen;
    const { start, end } = request;
    const isThere = this.#buffer.text.slice(start, end).trimEnd() === completion.text.trimEnd();
    if (maySubmit && isThere && completion.next === undefined) return undefined;
    this.#isWalking = false;
    this.#buffer.replace(start, end, completion.text);
    if (maySubmit && completion.next === "submit") return this.#submit(false);
    if (completion.next === undefined) this.#list.close();
    else this.#list.update(this.#buffer.text, this.#buffer.offset, request.onTab);
    return REDRAW;
  }

  /** Undefined for a key that the editor does not handle. */
  #edit(name: string): EditorAction | undefined {
    const buffer = this.#buffer;
    const move = MOVES.get(name);
    if (move) {
      buffer.move(move);
      if (this.#list.isOpen) this.#complete();
      return REDRAW;
    }
    if (name === "ctrl+d" && this.isEmpty) return undefined;
    const erase = ERASES.get(name);
    if (erase) return this.#applyEdit(() => buffer.erase(erase));
    const kill = KILLS.get(name);
    if (kill) return this.#applyEdit(() => buffer.kill(kill));
    switch (name) {
      case "enter":
        return this.#enter();
      case "alt+enter":
        return this.#submit(true);
      case "shift+enter":
      case "ctrl+j":
        return this.#applyEdit(() => buffer.insert("\n"));
      case "tab":
        this.#list.update(buffer.text, buffer.offset, true);
        return REDRAW;
      case "ctrl+y":
        return this.#applyEdit(() => buffer.yank());
      case "ctrl+_":
      case "ctrl+/":
      case "ctrl+shift+-":
        return this.#applyEdit(() => buffer.undo());
      case "ctrl+shift+z":
      case "alt+z":
        return this.#applyEdit(() => buffer.redo());
      case "ctrl+r":
        this.#list.close();
        this.#search = new HistorySearch(this.#history.prompts, this.#theme);
        return REDRAW;
      default:
        return undefined;
    }
  }

  #applyEdit(work: () => unknown): EditorAction {
    work();
    this.#complete();
    return REDRAW;
  }

  /** Enter behind a backslash begins a new line. */
  #enter(): EditorAction {
    const { cursor, lines } = this.#buffer;
    if (lines[cursor.line]?.[cursor.column - 1] !== "\\") return this.#submit(false);
    const { offset } = this.#buffer;
    return this.#applyEdit(() => this.#buffer.replace(offset - 1, offset, "\n"));
  }

  #submit(followUp: boolean): EditorAction {
    const text = this.text.trimEnd();
    if (text === "") return NONE;
    this.#history.add(text);
    this.#buffer.clear();
    this.#pastes.clear();
    this.#labels.clear();
    this.#rows.forget();
    this.#list.close();
    this.#leaveHistory();
    return { type: "submit", text, followUp };
  }

  #paste(text: string): void {
    // A line end at its end does not begin another line.
    const lines = text.replace(/\n$/, "").split("\n").length;
    const isLong = lines > MAX_PASTE_LINES || text.length > MAX_PASTE_CHARS;
    if (!isLong || this.#pastes.size >= MAX_SIGNS) {
      this.#buffer.insert(text);
      return;
    }
    const sign = signAt(this.#pastes.size);
    const size = lines > 1 ? `${lines} lines` : `${text.length} characters`;
    this.#pastes.set(sign, text);
    this.#labels.set(sign, `[pasted #${this.#pastes.size}, ${size}]`);
    this.#buffer.insert(sign);
  }

  #complete(): void {
    this.#list.update(this.#buffer.text, this.#buffer.offset);
  }

  #moveRow(step: -1 | 1): EditorAction {
    if (!this.#isWalking && this.#buffer.moveRow(step, this.#rows)) return REDRAW;
    return this.#walkHistory(step);
  }

  /** Shows an older or newer prompt. The draft follows the newest. */
  #walkHistory(step: -1 | 1): EditorAction {
    const { prompts } = this.#history;
    const from = this.#walk?.index ?? prompts.length;
    const index = from + step;
    if (index < 0 || index > prompts.length) return NONE;
    const draft = this.#walk?.draft ?? this.#buffer.text;
    const isDraft = index === prompts.length;
    const earlier = removeSigns(plainText(prompts[index] ?? ""));
    this.#buffer.set(isDraft ? draft : earlier);
    this.#walk = isDraft ? undefined : { index, draft };
    this.#isWalking = !isDraft;
    this.#list.close();
    return REDRAW;
  }

  #leaveHistory(): void {
    this.#walk = undefined;
    this.#isWalking = false;
  }

  #takeSearch(search: HistorySearch, event: TerminalEvent): EditorAction {
    const answer = search.take(event);
    if (answer.type !== "done") return answer;
    this.#search = undefined;
    if (answer.value !== undefined) this.set(answer.value);
    return REDRAW;
  }
}
