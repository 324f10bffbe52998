import type { Session } from "@gyre/sessions";
import { promptsOf, promptText } from "../../file-history/prompts.ts";
import { shownText } from "../../text/shown-text.ts";
import { grouped } from "../../text/tool-text.ts";
import type { Block } from "../tui/ui/block.ts";
import { titleText } from "../tui/commands/session-words.ts";
import type { Key, KeyName } from "../tui/terminal/key.ts";
import { textOfRow } from "../tui/terminal/row.ts";
import { SelectPanel } from "../tui/panels/select.ts";
import { oneLine, TextPanel } from "../tui/panels/text.ts";
import { NO_COLOURS, type Theme } from "../tui/terminal/theme.ts";
import { type TreeChoice, TreePanel } from "../tui/panels/tree.ts";
import type { Choice, Panel, PanelAnswer, Question, Ui } from "../tui/ui/ui.ts";
import type { LineTerminal, ReadLine } from "./line-terminal.ts";
import { blockText, rowsText, SPOKEN_COLUMNS, spokenLabel, spokenMarkdown } from "./format.ts";

/** Choices that are told at once; letters find the others. */
const MAX_TOLD_CHOICES = 20;
/** Prompts of a branch that one can go back to, the newest. */
const MAX_PROMPTS = 200;
/** More than any list has. */
const PANEL_ROWS = 10_000;

export interface LineUiOptions {
  terminal: LineTerminal;
  /** What is open now. */
  session: () => Session | undefined;
  /** Takes a text that the user may send as it is. */
  edit: (text: string) => void;
}

/** What a command can do where there are lines and nothing else. */
export class LineUi implements Ui {
  readonly columns: number = SPOKEN_COLUMNS;
  readonly theme: Theme = NO_COLOURS;
  readonly #terminal: LineTerminal;
  readonly #session: LineUiOptions["session"];
  readonly #edit: LineUiOptions["edit"];

  constructor({ terminal, session, edit }: LineUiOptions) {
    this.#terminal = terminal;
    this.#session = session;
    this.#edit = edit;
  }

  say(markdown: string): void {
    this.#terminal.line(spokenMarkdown(shownText(markdown)));
  }

  warn(text: string): void {
    this.#terminal.line(`Warning: ${shownText(text)}`);
  }

  show(block: Block): void {
    const text = blockText(block);
    if (text !== "") this.#terminal.line(text);
  }

  choose<T>(question: Question<T>): Promise<T | undefined> {
    return this.#terminal.question((read) => this.#choose(question, read));
  }

  /** Lists, lines and the tree become questions. What else draws itself needs the screen. */
  async open<T>(panel: Panel<T>): Promise<T | undefined> {
    if (panel instanceof TreePanel) {
      // A tree gives places, and nothing else.
      return (await this.#place()) as T | undefined;
    }
    if (panel instanceof TextPanel || panel instanceof SelectPanel) {
      return this.#terminal.question((read) => this.#drive(panel, read));
    }
    this.warn("This needs the full screen: start gyre without --screen-reader for it.");
    return undefined;
  }

  edit(text: string): void {
    if (text === "") return;
    this.#terminal.line(`Your text:\n${shownText(text)}\n/send sends it as it is.`);
    this.#edit(text);
  }

  /** Nothing is drawn, so nothing is drawn again. */
  draw(): void {}

  suspend<T>(work: () => Promise<T>): Promise<T> {
    return this.#terminal.suspend(work);
  }

  /** What a terminal obeys is never written here. */
  control(): boolean {
    return false;
  }

  async #choose<T>(question: Question<T>, read: ReadLine): Promise<T | undefined> {
    const { about = [], choices, title } = question;
    this.#terminal.line(oneLine(title));
    if (about.length > 0) this.#terminal.line(rowsText(about));
    let told = choices;
    for (;;) {
      this.#list(told);
      const typed = (await read("Number: "))?.trim();
      if (typed === undefined || typed === "") return undefined;
      const found = matching(typed, told, choices);
      const [only, ...others] = found;
      if (only && others.length === 0) return only.value;
      if (only) told = found;
      else this.#terminal.line(`Nothing here is "${shownText(typed)}".`);
    }
  }

  #list<T>(choices: readonly Choice<T>[]): void {
    for (const [index, { label, detail }] of choices.slice(0, MAX_TOLD_CHOICES).entries()) {
      const more = detail === undefined || detail === "" ? "" : `, ${spokenLabel(oneLine(detail))}`;
      this.#terminal.line(`${index + 1}. ${spokenLabel(oneLine(label))}${more}`);
    }
    const hidden = choices.length - MAX_TOLD_CHOICES;
    if (hidden > 0) this.#terminal.line(`${grouped(hidden)} more.`);
    this.#terminal.line("Write a number, or a part of the text. An empty line leaves.");
  }

  /** A panel that takes keys, by the lines that say which. */
  async #drive<T>(panel: Panel<T>, read: ReadLine): Promise<T | undefined> {
    const isList = panel instanceof SelectPanel;
    for (;;) {
      // The last row tells of keys.
      const rows = panel.rows(SPOKEN_COLUMNS, PANEL_ROWS).rows.slice(0, -1);
      this.#terminal.line(
        rows
          .map((row) => textOfRow(row).replace(/^› /, ""))
          .join("\n")
          .trim(),
      );
      const typed = await read(isList ? "Number: " : "Answer: ");
      if (typed === undefined || (isList && typed.trim() === "")) return undefined;
      const answer = isList ? chosen(panel, typed.trim()) : written(panel, typed);
      if (answer.type === "done") return answer.value;
    }
  }

  /** A prompt of this branch to go back to. */
  async #place(): Promise<TreeChoice | undefined> {
    const session = this.#session();
    const choices: Choice<TreeChoice>[] = [];
    for await (const prompt of session ? promptsOf(session) : []) {
      const edit = promptText(prompt);
      const value = { entry: prompt.parent, edit };
      choices.push({ value, label: titleText(edit), search: edit });
      if (choices.length >= MAX_PROMPTS) break;
    }
    return this.choose({ title: "Go back to which prompt? The newest is the first.", choices });
  }
}

/** One by its number, by its key or its whole label; else those that hold all the words. */
function matching<T>(
  typed: string,
  told: readonly Choice<T>[],
  all: readonly Choice<T>[],
): readonly Choice<T>[] {
  const number = /^\d+$/.test(typed) ? Number(typed) : 0;
  const named =
    told.slice(0, MAX_TOLD_CHOICES)[number - 1] ??
    all.find(({ key, label }) => [key, label].includes(typed.toLowerCase()) || label === typed);
  if (named) return [named];
  const words = typed.toLowerCase().split(/\s+/);
  return all.filter(({ label, detail = "", search = "" }) => {
    const text = `${label} ${detail} ${search}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function key(name: KeyName): Key {
  return { type: "key", name, ctrl: false, alt: false, shift: false };
}

function written<T>(panel: Panel<T>, text: string): PanelAnswer<T> {
  panel.take({ type: "paste", text });
  return panel.take(key("enter"));
}

/** A number goes there and takes it; letters narrow the list down. */
function chosen<T>(panel: Panel<T>, typed: string): PanelAnswer<T> {
  if (!/^\d+$/.test(typed)) return panel.take({ type: "text", text: typed });
  panel.take(key("home"));
  for (let at = 1; at < Math.min(Number(typed), PANEL_ROWS); at++) panel.take(key("down"));
  return panel.take(key("enter"));
}
