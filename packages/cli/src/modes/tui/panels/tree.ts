import { errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { TerminalEvent } from "../terminal/key.ts";
import { fitRow, type Row, row, type Span, span } from "../terminal/row.ts";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { TextPanel } from "./text.ts";
import type { Theme } from "../terminal/theme.ts";
import { type MessageTree, buildMessageTree, type TreeRow } from "./tree-layout.ts";
import { TreeTexts } from "./tree-texts.ts";
import type { Panel, PanelAnswer, PanelView } from "../ui/ui.ts";

const SIGN = "› ";
const NO_SIGN = "  ";
/** Before prompts, and before answers. */
const PROMPT_SIGN = "> ";
const ANSWER_SIGN = "  ";
const HINT =
  "↑↓ move · ←→ branches · Enter go there · l name it · u prompts only or all · Esc leave";
/** The length of a page before the first drawing. */
const DEFAULT_PAGE = 10;
const ROWS_FOR_TITLE = 3;
const ROWS_FOR_HINT = 4;

/** Where to continue: after this entry; null: before the first. */
export interface TreeChoice {
  entry: number | null;
  /** The prompt of that place, to edit and send again. */
  edit?: string;
  /** Its entry. */
  before?: number;
}

/** The part of a session that the tree needs. */
export type TreeSession = Pick<Session, "entries" | "leaf" | "read" | "findIds" | "append">;

export interface TreePanelOptions {
  session: TreeSession;
  theme: Theme;
  /** Called when the panel has to be drawn again. */
  changed: () => void;
}

/**
 * The messages of a session as a tree. Messages are read when they become visible, so that a long session opens as
 * fast as a short one. Choosing a prompt returns the entry before it and its text; choosing an answer returns its
 * entry.
 */
export class TreePanel implements Panel<TreeChoice> {
  readonly #session: TreeSession;
  readonly #theme: Theme;
  readonly #changed: () => void;
  readonly #tree: MessageTree;
  readonly #texts: TreeTexts;
  readonly #folded = new Set<number>();
  #list: readonly TreeRow[];
  #marked: number;
  #page = DEFAULT_PAGE;
  #onlyPrompts = false;
  /** The question for a name, while it is open. */
  #naming: { panel: TextPanel; id: number } | undefined;
  #error: string | undefined;

  constructor({ session, theme, changed }: TreePanelOptions) {
    this.#session = session;
    this.#theme = theme;
    this.#changed = changed;
    this.#tree = buildMessageTree(session.entries, session.leaf);
    this.#texts = new TreeTexts(session, changed);
    this.#list = this.#tree.rows(this.#folded);
    const { current } = this.#tree;
    const at = this.#list.findIndex(({ id }) => id === current);
    this.#marked = at < 0 ? this.#list.length - 1 : at;
  }

  rows(columns: number, rows: number): PanelView {
    if (rows < 1 || columns < 1) return { rows: [] };
    if (this.#naming) return this.#naming.panel.rows(columns, rows);
    const { bad, dim, strong } = this.#theme;
    const title = this.#onlyPrompts ? "The prompts of this session" : "This session";
    const head = rows < ROWS_FOR_TITLE ? [] : [row(title, strong)];
    const note = this.#error === undefined ? row(HINT, dim) : row(this.#error, bad);
    const foot = rows < ROWS_FOR_HINT ? [] : [note];
    const room = rows - head.length - foot.length;
    this.#page = Math.max(1, room - 1);
    const view = [...head, ...this.#listRows(columns, room), ...foot];
    return { rows: view.map((each) => fitRow(each, columns)) };
  }

  take(event: TerminalEvent): PanelAnswer<TreeChoice> {
    this.#error = undefined;
    if (this.#naming) return this.#takeName(this.#naming, event);
    if (event.type === "text") return this.#handleLetter(event.text.charAt(0));
    if (event.type !== "key") return { type: "none" };
    switch (event.ctrl ? `ctrl+${event.name}` : event.name) {
      case "up":
      case "ctrl+p":
        return this.#move(-1, 1);
      case "down":
      case "ctrl+n":
        return this.#move(1, 1);
      case "pageUp":
        return this.#move(-1, this.#page);
      case "pageDown":
        return this.#move(1, this.#page);
      case "home":
        return this.#mark(0);
      case "end":
        return this.#mark(this.#list.length - 1);
      case "left":
        return this.#foldBranch();
      case "right":
        return this.#unfoldBranch();
      case "enter":
        return this.#choose();
      case "escape":
        return { type: "done", value: undefined };
      default:
        return { type: "none" };
    }
  }

  #handleLetter(letter: string): PanelAnswer<TreeChoice> {
    if (letter === "u") {
      this.#onlyPrompts = !this.#onlyPrompts;
      return { type: "redraw" };
    }
    const id = this.#list[this.#marked]?.id;
    const text = id === undefined ? undefined : this.#texts.get(id);
    if (letter !== "l" || id === undefined || !text) return { type: "none" };
    const question = {
      title: "A name for this place (leave empty to remove it)",
      about: [row(text.line, this.#theme.dim)],
      initial: this.#texts.getLabel(id) ?? "",
    };
    this.#naming = { panel: new TextPanel(question, this.#theme), id };
    return { type: "redraw" };
  }

  #takeName(
    { panel, id }: { panel: TextPanel; id: number },
    event: TerminalEvent,
  ): PanelAnswer<TreeChoice> {
    const answer = panel.take(event);
    if (answer.type !== "done") return answer;
    this.#naming = undefined;
    if (answer.value !== undefined) void this.#name(id, answer.value.trim());
    return { type: "redraw" };
  }

  /** Never rejects: an error is shown below the tree. */
  async #name(entry: number, name: string): Promise<void> {
    const label = name === "" ? null : name;
    try {
      await this.#session.append({ type: "label", entry, label });
      this.#texts.setLabel(entry, label);
    } catch (error) {
      this.#error = oneLine(`The name was not stored: ${errorMessage(error)}`);
    }
    this.#changed();
  }

  #choose(): PanelAnswer<TreeChoice> {
    const marked = this.#list[this.#marked];
    const text = marked && this.#texts.get(marked.id);
    if (!marked || !text) return { type: "none" };
    const value =
      text.prompt === undefined
        ? { entry: marked.id }
        : { entry: marked.parentId, edit: text.prompt, before: marked.id };
    return { type: "done", value };
  }

  #mark(index: number): PanelAnswer<TreeChoice> {
    this.#marked = index;
    return { type: "redraw" };
  }

  /** Moves by up to `count` rows that are read already; drawing has requested the next ones. */
  #move(step: 1 | -1, count: number): PanelAnswer<TreeChoice> {
    const seen = this.#listVisible(this.#marked + step, step, count);
    const to = seen.at(-1);
    return to === undefined ? { type: "none" } : this.#mark(to);
  }

  /** Folds the branch of the marked message; from a folded one moves to the branch above. */
  #foldBranch(): PanelAnswer<TreeChoice> {
    const marked = this.#list[this.#marked];
    if (!marked) return { type: "none" };
    const head = this.#findHead(marked);
    if (head && !this.#folded.has(head.id)) {
      this.#folded.add(head.id);
      return this.#refold(head.id);
    }
    const above = this.#list.findLastIndex((each, at) => each.isHead && at < this.#marked);
    return above < 0 ? { type: "none" } : this.#mark(above);
  }

  /** Unfolds the marked branch; else moves to the next one below. */
  #unfoldBranch(): PanelAnswer<TreeChoice> {
    const marked = this.#list[this.#marked];
    if (marked && this.#folded.delete(marked.id)) return this.#refold(marked.id);
    const below = this.#list.findIndex((each, at) => each.isHead && at > this.#marked);
    return below < 0 ? { type: "none" } : this.#mark(below);
  }

  #findHead({ branch }: TreeRow): TreeRow | undefined {
    return this.#list.find((each) => each.isHead && each.branch === branch);
  }

  #refold(id: number): PanelAnswer<TreeChoice> {
    this.#list = this.#tree.rows(this.#folded);
    return this.#mark(this.#list.findIndex((each) => each.id === id));
  }

  #listRows(columns: number, room: number): Row[] {
    const { dim } = this.#theme;
    if (this.#list.length === 0) return [row("  No messages yet.", dim)].slice(0, room);
    this.#settle();
    // A page above and below is read too, for the next move.
    const above = this.#listVisible(this.#marked - 1, -1, room);
    const below = this.#listVisible(this.#marked + 1, 1, room);
    const isMarkedSeen = this.#isVisible(this.#marked) === true;
    const unreadAbove = this.#listUnread(this.#marked, -1, room);
    this.#texts.request([...unreadAbove, ...this.#listUnread(this.#marked + 1, 1, room)]);
    if (!isMarkedSeen) return [row("  Reading…", dim)].slice(0, room);
    const half = Math.floor((room - 1) / 2);
    const down = Math.min(below.length, Math.max(half, room - 1 - above.length));
    const up = Math.min(above.length, room - 1 - down);
    const shown = [...above.slice(0, up).reverse(), this.#marked, ...below.slice(0, room - 1 - up)];
    return shown.map((index) => this.#row(index, columns));
  }

  /** Whether a message is shown; undefined until it is read. */
  #isVisible(index: number): boolean | undefined {
    const id = this.#list[index]?.id;
    const text = id === undefined ? null : this.#texts.get(id);
    if (text === undefined) return undefined;
    return text !== null && (!this.#onlyPrompts || text.prompt !== undefined);
  }

  /** The nearest visible messages from an index on, up to one that is not read. */
  #listVisible(from: number, step: 1 | -1, count: number): number[] {
    const seen: number[] = [];
    for (let at = from; this.#list[at] && seen.length < count; at += step) {
      const isSeen = this.#isVisible(at);
      if (isSeen === undefined) break;
      if (isSeen) seen.push(at);
    }
    return seen;
  }

  /** The messages to read for the screen, from an index on in one direction. */
  #listUnread(from: number, step: 1 | -1, room: number): number[] {
    const ids: number[] = [];
    let seen = 0;
    for (let at = from; seen + ids.length < room; at += step) {
      const id = this.#list[at]?.id;
      if (id === undefined) break;
      const isSeen = this.#isVisible(at);
      if (isSeen === undefined) ids.push(id);
      else if (isSeen) seen++;
    }
    return ids;
  }

  /** Moves the mark from a hidden message to a visible one above, or else below. */
  #settle(): void {
    if (this.#isVisible(this.#marked) !== false) return;
    let at = this.#marked - 1;
    while (at >= 0 && this.#isVisible(at) === false) at--;
    if (at < 0) {
      at = this.#marked + 1;
      while (at < this.#list.length && this.#isVisible(at) === false) at++;
    }
    if (this.#list[at]) this.#marked = at;
  }

  #row(index: number, columns: number): Row {
    const { accent, dim, selected, strong, warning } = this.#theme;
    const entry = this.#list[index];
    const text = entry && this.#texts.get(entry.id);
    if (!entry || !text) return [];
    const { branch, hidden, id, isHead } = entry;
    const isMarked = index === this.#marked;
    const isPrompt = text.prompt !== undefined;
    const label = this.#texts.getLabel(id);
    const plain = isPrompt ? strong : dim;
    const spans: Span[] = [
      isMarked ? span(SIGN, accent) : span(NO_SIGN),
      span(shortenGuides(isHead ? branch.first : branch.rest, columns), dim),
      span(isPrompt ? PROMPT_SIGN : ANSWER_SIGN, accent),
    ];
    if (label !== undefined) spans.push(span(`[${label}] `, warning));
    if (id === this.#tree.current) spans.push(span("● here ", accent));
    spans.push(span(text.line, isMarked ? selected : plain));
    if (hidden > 0) spans.push(span(`  ▸ ${hidden} more`, dim));
    return spans;
  }
}

/** Keeps the innermost guides of deeply nested branches. */
function shortenGuides(guides: string, columns: number): string {
  const room = Math.floor(columns / 2);
  return guides.length <= room ? guides : `…${guides.slice(guides.length - room + 1)}`;
}
