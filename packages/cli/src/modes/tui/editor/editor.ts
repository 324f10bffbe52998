import type { PromptAction } from "@gyre/coding/internal/settings/terminal/key-actions";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import type { Completions } from "./completion.ts";
import { CompletionList, MAX_LIST_ROWS } from "./completion-list.ts";
import { MAX_SIGNS, signAt, SIGNS, TextRows } from "./editor-rows.ts";
import { EditorView, SIGN_COLUMNS } from "./editor-view.ts";
import { HistorySearch } from "./history-search.ts";
import type { KeyMode, OpenKeyMode } from "./key-mode.ts";
import { formatKey, type Key, type TerminalEvent } from "../terminal/key.ts";
import { KeyBindings } from "../../../core/key-bindings.ts";
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
  /** Which key does what. Default: what is not changed by settings. */
  keys?: KeyBindings;
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

/** A text that was put aside, with what its signs stand for. */
interface Stashed {
  text: string;
  pastes: ReadonlyMap<string, string>;
  labels: ReadonlyMap<string, string>;
}

const NONE: EditorAction = { type: "none" };
const REDRAW: EditorAction = { type: "redraw" };

type Motions = Readonly<Partial<Record<PromptAction, Motion>>>;

/** Actions that move the cursor or remove something. */
const MOVES: Motions = {
  left: "left",
  right: "right",
  lineStart: "lineStart",
  lineEnd: "lineEnd",
  wordLeft: "wordLeft",
  wordRight: "wordRight",
  textStart: "textStart",
  textEnd: "textEnd",
};
const ERASES: Motions = { eraseLeft: "left", eraseRight: "right" };
const KILLS: Motions = {
  cutToSpace: "blankLeft",
  cutWordLeft: "wordLeft",
  cutWordRight: "wordRight",
  cutToLineStart: "lineStart",
  cutToLineEnd: "lineEnd",
};

/** Edits a prompt: lines, earlier prompts, completions, pastes as signs. */
export class Editor {
  /** Shown dim while the editor is empty. */
  placeholder = "";
  readonly #theme: Theme;
  readonly #history: EditorOptions["history"];
  readonly #keys: KeyBindings;
  readonly #buffer = new TextBuffer();
  #mode: KeyMode | undefined;
  readonly #rows = new TextRows((sign) => this.#labels.get(sign) ?? "");
  readonly #view: EditorView;
  readonly #list: CompletionList;
  /** What signs stand for, and how they are shown. */
  readonly #pastes = new Map<string, string>();
  readonly #labels = new Map<string, string>();
  #search: HistorySearch | undefined;
  /** Texts that were put aside, the last one last. */
  readonly #stash: Stashed[] = [];
  /** The earlier prompt that is shown, and the draft that it replaced. */
  #walk: { index: number; draft: string } | undefined;
  /** The last key showed an earlier prompt: the next one continues from there. */
  #isWalking = false;
  /** The text came back: what is typed next replaces it, and any other key has it stay. */
  #isOffered = false;

  constructor({ theme, completions, history, keys, onChange }: EditorOptions) {
    this.#theme = theme;
    this.#keys = keys ?? new KeyBindings();
    this.#history = history;
    this.#view = new EditorView(theme, this.#rows);
    this.#list = new CompletionList(completions, onChange);
  }

  /** Gets the events before the editor does. */
  get mode(): KeyMode | undefined {
    return this.#mode;
  }

  /** Has all events go to a mode first, or no longer. */
  setMode(open: OpenKeyMode | undefined): void {
    this.#buffer.endStep();
    this.#mode = open?.(this.#buffer, (step) => void this.#walkHistory(step));
  }

  /** The whole text, with pastes in full. */
  get text(): string {
    return this.#buffer.text.replace(SIGNS, (sign) => this.#pastes.get(sign) ?? "");
  }

  get isEmpty(): boolean {
    return this.#buffer.isEmpty;
  }

  /** The text that was put aside last, as it was shown. */
  get stashed(): string | undefined {
    const last = this.#stash.at(-1);
    return last?.text.replace(SIGNS, (sign) => last.labels.get(sign) ?? "");
  }

  /** Brings back what was put aside last, if there is no other text. */
  restoreStash(): void {
    const last = this.isEmpty ? this.#stash.pop() : undefined;
    if (!last) return;
    this.#leaveHistory();
    for (const piece of last.text.split(/([\u{e01f0}-\u{e0fff}])/u)) {
      const text = last.pastes.get(piece);
      if (text === undefined) this.#buffer.insert(piece);
      else this.#insertSign(text, last.labels.get(piece) ?? "");
    }
  }

  /** Inserts a sign for a text at the cursor, shown as `[label]`: an attached file, say. */
  attach(text: string, label: string): void {
    this.#search = undefined;
    this.#leaveHistory();
    this.#insertSign(text, `[${label}]`);
    this.#list.close();
  }

  /** Replaces the text; the cursor moves to the end. */
  set(text: string): void {
    this.#search = undefined;
    this.#isOffered = false;
    this.#leaveHistory();
    this.#buffer.set(removeSigns(plainText(text)));
    this.#list.close();
  }

  /** The same for a text that was not taken: what is typed next replaces it. It is among the earlier prompts. */
  offer(text: string): void {
    this.set(text);
    this.#isOffered = true;
  }

  rows(columns: number, maxRows: number): PanelView {
    if (this.#search) return this.#search.rows(columns, maxRows);
    const listRoom = Math.max(Math.min(1, maxRows - 1), maxRows - MIN_TEXT_ROWS);
    const list = this.#list.rows(this.#theme, columns, Math.min(MAX_LIST_ROWS, listRoom));
    const { rows, cursor = { row: 0, column: SIGN_COLUMNS } } = this.#view.draw(
      this.#buffer,
      columns,
      maxRows - list.length,
      this.#mode?.selection,
    );
    const [first = []] = rows;
    const hint = span(this.placeholder, this.#theme.dim);
    const written = this.isEmpty ? [fitRow([...first, hint], columns)] : rows;
    const shape = this.#mode?.cursor;
    return { rows: [...written, ...list], cursor: { ...cursor, ...(shape && { shape }) } };
  }

  take(event: TerminalEvent): EditorAction {
    if (event.type === "position") return NONE;
    if (this.#search) return this.#takeSearch(this.#search, event);
    // In vim's normal mode letters are commands.
    const isTyped = event.type !== "key" && (this.#mode?.takesEscape ?? true);
    if (this.#isOffered && isTyped) this.#buffer.set("");
    this.#isOffered = false;
    const action = this.#takeInMode(event) ?? this.#takeEvent(event);
    this.#mode?.settle();
    return action;
  }

  /** Undefined where the event is for the editor itself. */
  #takeInMode(event: TerminalEvent): EditorAction | undefined {
    const answer = this.#mode?.take(event) ?? "pass";
    if (answer === "pass") return undefined;
    this.#isWalking = false;
    if (answer === "edited") this.#complete();
    else this.#list.close();
    return REDRAW;
  }

  #takeEvent(event: Exclude<TerminalEvent, { type: "position" }>): EditorAction {
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
    const wanted = this.#keys.findForPrompt(name);
    if (wanted === "up" || wanted === "down") return this.#moveRow(wanted === "up" ? -1 : 1);
    const wasWalking = this.#isWalking;
    this.#isWalking = false;
    const action = wanted && this.#edit(wanted, name);
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

  /** Undefined for an action that the program may have another one for. */
  #edit(action: PromptAction, key: string): EditorAction | undefined {
    const buffer = this.#buffer;
    const move = MOVES[action];
    if (move) {
      buffer.move(move);
      if (this.#list.isOpen) this.#complete();
      return REDRAW;
    }
    if (this.isEmpty && this.#keys.findForProgram(key) === "exit") return undefined;
    const erase = ERASES[action];
    if (erase) return this.#applyEdit(() => buffer.erase(erase));
    const kill = KILLS[action];
    if (kill) return this.#applyEdit(() => buffer.kill(kill));
    switch (action) {
      case "submit":
        return this.#enter();
      case "followUp":
        return this.#submit(true);
      case "newLine":
        return this.#applyEdit(() => buffer.insert("\n"));
      case "complete":
        this.#list.update(buffer.text, buffer.offset, true);
        return REDRAW;
      case "putBack":
        return this.#applyEdit(() => buffer.yank());
      case "undo":
        return this.#applyEdit(() => buffer.undo());
      case "redo":
        return this.#applyEdit(() => buffer.redo());
      case "stash":
        return this.#stashOrRestore();
      case "searchHistory":
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
    this.#mode?.reset();
    return { type: "submit", text, followUp };
  }

  /** Puts the text aside; an empty editor gets back what was put aside last. */
  #stashOrRestore(): EditorAction {
    this.#list.close();
    if (this.isEmpty) {
      if (this.#stash.length === 0) return NONE;
      this.restoreStash();
      return REDRAW;
    }
    // It is among the earlier prompts, too, in case the program ends before it is back.
    this.#history.add(this.text.trimEnd());
    const { text } = this.#buffer;
    this.#stash.push({ text, pastes: new Map(this.#pastes), labels: new Map(this.#labels) });
    this.#buffer.set("");
    this.#leaveHistory();
    return REDRAW;
  }

  #paste(text: string): void {
    // A line end at its end does not begin another line.
    const lines = text.replace(/\n$/, "").split("\n").length;
    const isLong = lines > MAX_PASTE_LINES || text.length > MAX_PASTE_CHARS;
    if (!isLong) {
      this.#buffer.insert(text);
      return;
    }
    const size = lines > 1 ? `${lines} lines` : `${text.length} characters`;
    this.#insertSign(text, `[pasted #${this.#pastes.size + 1}, ${size}]`);
  }

  #insertSign(text: string, label: string): void {
    if (this.#pastes.size >= MAX_SIGNS) return this.#buffer.insert(text);
    const sign = signAt(this.#pastes.size);
    this.#pastes.set(sign, text);
    this.#labels.set(sign, label);
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
