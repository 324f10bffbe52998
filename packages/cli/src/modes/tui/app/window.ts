import type { Clock } from "@gyre/ai";
import { AnswerBlock } from "../transcript/answer-block.ts";
import type { Block } from "../ui/block.ts";
import type { Editor } from "../editor/editor.ts";
import { InputDecoder } from "../terminal/input.ts";
import type { DecodedEvent, Key, TerminalEvent } from "../terminal/key.ts";
import { createWarningBlock } from "../transcript/message-blocks.ts";
import { EMPTY_ROW, type Row, row } from "../terminal/row.ts";
import { type Frame, type TerminalQuirks, Screen } from "../terminal/screen.ts";
import { SelectPanel } from "../panels/select.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Transcript } from "../transcript/transcript.ts";
import type { CursorShape, Tty } from "../terminal/tty.ts";
import type { Panel, PanelQuestion, Ui } from "../ui/ui.ts";

/** The time between two frames of a stream. Typed keys are drawn at once. */
const FRAME_MS = 60;
/** How long a terminal may take to report where its cursor is. */
const POSITION_MS = 150;
/** Terminals with fewer rows get neither the rule nor the footer. */
const LOW = 9;
/** Rows of the conversation that stay visible above a panel or a long text. */
const KEPT_IN_SIGHT = 3;

export interface WindowOptions {
  tty: Tty;
  theme: Theme;
  clock: Clock;
  transcript: Transcript;
  editor: Editor;
  /** Rows between the conversation and the editor: what it does, what waits. */
  status: (columns: number) => readonly Row[];
  footer: (columns: number) => Row;
  quirks?: TerminalQuirks;
  onSubmit: (text: string, followUp: boolean) => void;
  /** Whether a key is for `onKey`, although the editor has a use for it. */
  claims: (key: Key) => boolean;
  /** Called with a key that the editor does not handle. */
  onKey: (key: Key) => void;
  /** Called when something else was typed. */
  onTyped: () => void;
  onEnd: () => void;
}

/**
 * Draws the conversation, the status, the editor or a panel in its place, and a footer, and sends what the user types
 * to them. It knows the terminal and nothing of agents.
 */
export class Window implements Ui {
  readonly #options: WindowOptions;
  readonly #screen: Screen;
  readonly #input: InputDecoder;
  readonly #panels: { panel: Panel<unknown>; done: (value: unknown) => void }[] = [];
  #cancelFrame: (() => void) | undefined;
  #drawnAt = 0;
  #asked = 0;
  /** Callers that wait for answers of the terminal. */
  readonly #askers = new Set<(answer: string) => void>();
  #cancelPosition: (() => void) | undefined;
  #shape: CursorShape | undefined;
  #isFocused: boolean | undefined;
  #isAway = false;
  #isLate = false;
  #isStopped = false;

  constructor(options: WindowOptions) {
    this.#options = options;
    const { clock, tty } = options;
    this.#screen = new Screen((text) => tty.write(text), tty.size, options.quirks);
    this.#input = new InputDecoder({ emit: (event) => this.#handleEvent(event), clock });
  }

  get columns(): number {
    return this.#screen.size.columns;
  }

  /** Whether the terminal has the focus, where it has reported that. */
  get isFocused(): boolean | undefined {
    return this.#isFocused;
  }

  get theme(): Theme {
    return this.#options.theme;
  }

  get hasPanel(): boolean {
    return this.#panels.length > 0;
  }

  open<T>(panel: Panel<T>): Promise<T | undefined> {
    return new Promise((settle) => {
      const done = (value: unknown): void => settle(value as T | undefined);
      this.#panels.push({ panel, done });
      this.draw();
    });
  }

  choose<T>(question: PanelQuestion<T>): Promise<T | undefined> {
    const { clock, theme } = this.#options;
    return this.open(new SelectPanel(question, theme, () => clock.now()));
  }

  /** Removes a panel whose answer is no longer needed. */
  withdraw(panel: Panel<unknown>): void {
    const at = this.#panels.findIndex((each) => each.panel === panel);
    const [found] = at < 0 ? [] : this.#panels.splice(at, 1);
    found?.done(undefined);
    this.draw();
  }

  /** Leaves the visible panel, as Esc does. */
  leavePanel(): void {
    const [first] = this.#panels;
    if (first) this.withdraw(first.panel);
  }

  say(markdown: string): void {
    const { theme } = this.#options;
    const block = new AnswerBlock({ theme, changed: () => this.drawSoon() });
    block.feed(markdown);
    block.end();
    this.show(block);
  }

  warn(text: string): void {
    this.show(createWarningBlock(this.#options.theme, text));
  }

  show(block: Block): void {
    this.#options.transcript.add(block);
    this.draw();
  }

  edit(text: string): void {
    this.#options.editor.set(text);
    this.draw();
  }

  /** Puts a text there that what is typed next replaces. */
  offer(text: string): void {
    this.#options.editor.offer(text);
    this.draw();
  }

  control(sequence: string): boolean {
    this.#options.tty.write(sequence);
    return true;
  }

  /** Asks the terminal something; `onAnswer` gets its answers until the returned function is called. */
  ask(question: string, onAnswer: (answer: string) => void): () => void {
    const end = this.#input.expectAnswers();
    this.#askers.add(onAnswer);
    this.#options.tty.write(question);
    return () => {
      this.#askers.delete(onAnswer);
      end();
    };
  }

  /** Takes over the terminal and draws the first frame. `beforeFrame`: the screen is not drawn on yet. */
  start(beforeFrame: () => void): void {
    const { tty, onEnd } = this.#options;
    tty.listen({
      data: (bytes) => this.#input.feed(bytes),
      resize: () => this.#resize(),
      caughtUp: () => {
        if (this.#isLate) this.draw();
      },
      end: onEnd,
    });
    tty.takeOver();
    beforeFrame();
    this.draw();
  }

  /** Leaves the conversation on the screen and restores the terminal. */
  end(): void {
    if (this.#isAway) return;
    this.#stopTimers();
    this.#isAway = true;
    const { transcript, tty } = this.#options;
    // The terminal is restored even if the last frame cannot be drawn.
    try {
      this.#screen.draw(transcript.rows(this.columns));
    } finally {
      this.#screen.finish();
      tty.restore();
    }
  }

  async suspend<T>(work: () => Promise<T>): Promise<T> {
    const { transcript, tty } = this.#options;
    this.#stopTimers();
    this.#isAway = true;
    const conversation = transcript.rows(this.columns);
    this.#screen.draw(conversation);
    this.#screen.finish(conversation.base + conversation.rows.length);
    tty.restore();
    try {
      return await work();
    } finally {
      tty.takeOver();
      this.#isAway = false;
      if (tty.size.columns !== this.columns) this.#resize();
      else this.draw();
    }
  }

  /** Gives the terminal back to the shell, which is about to stop the program. */
  leaveToShell(): void {
    if (this.#isAway) return;
    this.#stopTimers();
    this.#isStopped = true;
    this.#isAway = true;
    this.#screen.finish(this.#screen.top);
    this.#options.tty.restore();
  }

  /** Takes the terminal back from the shell, and draws all that was on the screen. */
  returnFromShell(): void {
    const { tty } = this.#options;
    if (this.#isStopped) {
      this.#isStopped = false;
      this.#isAway = false;
      tty.takeOver();
    } else if (this.#isAway) return;
    else tty.retake();
    // The shell may have written anything, anywhere, and the size may be another.
    this.#resize();
  }

  /** Draws one frame for many changes. */
  drawSoon(): void {
    if (this.#cancelFrame) return;
    const { clock } = this.#options;
    const wait = Math.max(0, this.#drawnAt + FRAME_MS - clock.now());
    this.#cancelFrame = clock.after(wait, () => this.draw());
  }

  draw(): void {
    this.#cancelFrame?.();
    this.#cancelFrame = undefined;
    const { clock, transcript, tty } = this.#options;
    if (this.#isAway || !this.#screen.isReady) return;
    this.#isLate = tty.isBehind;
    if (this.#isLate) return;
    this.#drawnAt = clock.now();
    this.#screen.draw(this.#frame());
    tty.shapeCursor(this.#shape);
    transcript.release(this.#screen.top);
  }

  #stopTimers(): void {
    this.#cancelFrame?.();
    this.#cancelFrame = undefined;
    this.#cancelPosition?.();
    this.#cancelPosition = undefined;
  }

  #frame(): Frame {
    const { footer, status, theme, transcript } = this.#options;
    const { columns, rows: height } = this.#screen.size;
    const conversation = transcript.rows(columns);
    const isLow = height < LOW;
    const above = [...(conversation.rows.length > 0 ? [EMPTY_ROW] : []), ...status(columns)];
    if (!isLow) above.push(row("─".repeat(columns), theme.dim));
    const below = isLow ? [] : [footer(columns)];
    const kept = Math.min(KEPT_IN_SIGHT, Math.max(0, height - LOW));
    const room = height - above.length - below.length - kept;
    const panel = this.#panels[0]?.panel ?? this.#options.editor;
    const view = panel.rows(columns, Math.max(1, room));
    const first = conversation.rows.length + above.length;
    const { cursor } = view;
    this.#shape = cursor?.shape;
    return {
      base: conversation.base,
      rows: [...conversation.rows, ...above, ...view.rows, ...below],
      ...(cursor && { cursor: { row: first + cursor.row, column: cursor.column } }),
    };
  }

  #handleEvent(event: DecodedEvent): void {
    if (event.type === "focus") this.#isFocused = event.isFocused;
    if (this.#isAway || event.type === "focus") return;
    if (event.type === "answer") for (const take of [...this.#askers]) take(event.text);
    else if (event.type === "position") this.#settle(event);
    else if (this.#panels[0] && !isInterrupt(event)) this.#sendToPanel(event);
    else this.#sendToEditor(event);
  }

  #sendToPanel(event: TerminalEvent): void {
    const [first] = this.#panels;
    if (!first) return;
    const answer = first.panel.take(event);
    if (answer.type === "done") {
      this.#panels.shift();
      first.done(answer.value);
    }
    if (answer.type !== "none") this.draw();
  }

  #sendToEditor(event: TerminalEvent): void {
    const { editor, onKey, onSubmit } = this.#options;
    if (event.type === "key" && (isInterrupt(event) || this.#options.claims(event))) {
      onKey(event);
      this.draw();
      return;
    }
    const action = editor.take(event);
    if (action.type !== "unhandled") this.#options.onTyped();
    if (action.type === "submit") onSubmit(action.text, action.followUp);
    else if (action.type === "unhandled") onKey(action.key);
    if (action.type !== "none") this.draw();
  }

  #resize(): void {
    const { clock, tty } = this.#options;
    if (this.#isAway) return;
    this.#asked++;
    this.#input.expectPosition();
    this.#screen.resize(tty.size);
    this.#cancelPosition?.();
    this.#cancelPosition = clock.after(POSITION_MS, () => {
      this.#asked = 0;
      this.#relayout();
    });
  }

  #settle({ row: at, column }: { row: number; column: number }): void {
    if (this.#asked === 0 || --this.#asked > 0) return;
    this.#relayout({ row: at, column });
  }

  #relayout(position?: { row: number; column: number }): void {
    this.#cancelPosition?.();
    this.#cancelPosition = undefined;
    const { transcript } = this.#options;
    transcript.relayout();
    this.#screen.settle(this.#frame(), position);
    transcript.release(this.#screen.top);
  }
}

/** Ctrl-C always reaches the program. */
function isInterrupt(event: TerminalEvent): event is Key {
  return event.type === "key" && event.ctrl && event.name === "c";
}
